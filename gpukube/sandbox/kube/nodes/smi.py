"""What nvidia-smi shows inside a container.

Lives here: the devices a kubelet hands to a pod, and the lines of `nvidia-smi -L`; pure. Must not live here: running
the program (`programs`), what the plugin registers (`plugin`).

Source: NVIDIA/k8s-device-plugin README (a pod without a request whose image asks for all devices sees all of them);
NVIDIA MIG User Guide (the listing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.sandbox.kube.nodes.hardware import find_model, resource_of
from gpukube.sandbox.kube.nodes.plugin import devices_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.sandbox.kube.nodes.machines import Machine
    from gpukube.sandbox.kube.nodes.podruns import PodRun
    from gpukube.sandbox.kube.store.objects import JsonObject

_DOMAIN = "nvidia.com/"
_MIG = f"{_DOMAIN}mig-"
_SHARED = ".shared"

_Device = tuple[int, int | None]
"""A GPU of the machine and an instance in it; None is the whole GPU."""


def listing(machine: Machine, run: PodRun) -> list[str]:
    """Write what `nvidia-smi -L` shows to a pod.

    Args:
        machine: Where it runs; it has GPUs and a driver.
        run: The pod. What it asks for is handed out in the order of pods; without a request it sees everything.
    """
    gpu = machine.shape.gpu
    if gpu is None:
        return []
    layouts = devices_of(gpu)
    asked = _asked(run)
    given = [device for name, count in asked.items() for device in _given(machine, layouts, run, name, count)]
    if not asked:
        given = [(index, None) for index in range(len(layouts))]
    product = find_model(gpu.model).product.replace("-", " ")
    lines: list[str] = []
    for number, index in enumerate(sorted({device[0] for device in given})):
        lines.append(f"GPU {number}: {product} (UUID: GPU-{machine.shape.name}-{index})")
        layout = layouts[index] or ()
        whole = (index, None) in given
        shown = range(len(layout)) if whole else sorted({one for at, one in given if at == index and one is not None})
        lines += [
            f"  MIG {layout[one]:<11} Device {place:>2}: (UUID: MIG-{machine.shape.name}-{index}-{one})"
            for place, one in enumerate(shown)
        ]
    return lines


def _asked(run: PodRun) -> dict[str, int]:
    total: dict[str, int] = {}
    for name, count in _requests(item.body for item in run.mains):
        total[name] = total.get(name, 0) + count
    return total


def _requests(containers: Iterable[JsonObject]) -> list[tuple[str, int]]:
    found = []
    for body in containers:
        resources = body.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        found += [(name, int(count)) for name, count in asked.items() if name.startswith(_DOMAIN) and int(count)]
    return found


def _given(
    machine: Machine, layouts: Sequence[tuple[str, ...] | None], run: PodRun, name: str, count: int
) -> list[_Device]:
    """Hand devices out after those of the pods that came before; replicas of a device are the same device."""
    devices = _behind(name, layouts, machine.capacity.get(name, 0))
    before = 0
    for uid, other in machine.pods.items():
        if uid == run.uid:
            break
        before += _asked(other).get(name, 0)
    return [devices[(before + at) % len(devices)] for at in range(count)] if devices else []


def _behind(name: str, layouts: Sequence[tuple[str, ...] | None], count: int) -> list[_Device]:
    """Find the devices that are registered under a name, so many of them.

    Under the GPUs' own name instances are registered by strategy single, whole GPUs by none, and by mixed those GPUs
    that are not cut; the number tells single from none.
    """
    instances = [(at, one) for at, layout in enumerate(layouts) for one in range(len(layout or ()))]
    if name.startswith(_MIG):
        wanted = name.removesuffix(_SHARED)
        return [(at, one) for at, one in instances if resource_of((layouts[at] or ())[one]) == wanted]
    uncut = [at for at, layout in enumerate(layouts) if layout is None]
    if instances and not uncut and count % len(instances) == 0:
        return list(instances)
    return [(at, None) for at in uncut or range(len(layouts))]
