"""What nvidia-smi shows inside a container.

Lives here: the lines of `nvidia-smi -L`; pure. Must not live here: running the program (`programs`), handing out
devices (`devices`).

Source: NVIDIA/k8s-device-plugin README (a pod without a request whose image asks for all devices sees all of them);
NVIDIA MIG User Guide (the listing).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.hardware import find_model
from gpukube_sandbox.kube.nodes.plugin import devices_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import PodRun

_BUS: Final = re.compile(r" (SXM\d|PCIE) (?=\d)")
"""The one place where the driver itself writes hyphens: NVIDIA A100-SXM4-40GB, but NVIDIA A100 80GB PCIe."""


def listing(machine: Machine, run: PodRun) -> list[str]:
    """Write what `nvidia-smi -L` shows to a pod.

    Args:
        machine: Where it runs; it has GPUs and a driver.
        run: The pod; one that asks for no devices sees everything.
    """
    gpu = machine.shape.gpu
    if gpu is None:
        return []
    layouts = devices_of(gpu)
    given = {device for devices in run.held.values() for device in devices}
    if not given:
        given = {(index, None) for index in range(len(layouts))}
    product = _BUS.sub(r"-\1-", find_model(gpu.model).product.replace("-", " "))
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
