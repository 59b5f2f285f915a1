"""Where nvidia-smi is inside a container, and what it shows.

In scope: which containers are given the driver, the lines of `nvidia-smi -L`; pure. Out of scope: running the
program (`programs`), handing out devices (`devices`).

Source: NVIDIA/k8s-device-plugin README (a pod without a request whose image asks for all devices sees all of them);
NVIDIA MIG User Guide (the listing); NVIDIA container toolkit, docker-specialized (NVIDIA_VISIBLE_DEVICES, which CUDA
base images set); Bottlerocket, settings.nvidia-container-runtime; GKE docs, how-to/gpus (/usr/local/nvidia).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.containers import env_of
from gpukube_sandbox.kube.nodes.devices import requested_devices
from gpukube_sandbox.kube.nodes.hardware import find_model
from gpukube_sandbox.kube.nodes.plugin import devices_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import PodRun
    from gpukube_sandbox.kube.store.objects import JsonObject

_BUS: Final = re.compile(r" (SXM\d|PCIE) (?=\d)")
"""The one place where the driver itself writes hyphens: NVIDIA A100-SXM4-40GB, but NVIDIA A100 80GB PCIe."""

PROGRAM: Final = "nvidia-smi"
_BY_RUNTIME, _BY_GKE = "/usr/bin", "/usr/local/nvidia/bin"
_BUILT_ON_CUDA: Final = ("pytorch/pytorch", "rayproject/ray-llm")
_NGC: Final = "nvcr.io/nvidia/"


def is_on_cuda(image: str) -> bool:
    """Say by its name whether an image is built on NVIDIA's, which set NVIDIA_VISIBLE_DEVICES and PATH."""
    repository = image.partition("@")[0].removeprefix("docker.io/")
    return (
        "cuda" in repository
        or repository.startswith(_NGC)
        or repository.endswith("-gpu")
        or repository.partition(":")[0] in _BUILT_ON_CUDA
    )


def can_run(machine: Machine, body: JsonObject, command: str) -> bool:
    """Return whether a container has nvidia-smi where a command looks for it.

    Args:
        machine: Where the container runs.
        body: The container, as the pod has it.
        command: "nvidia-smi", looked up in PATH, or a whole path.
    """
    place, _, _ = command.rpartition("/")
    where = _directory(machine, body)
    if not where:
        return False
    in_path = where == _BY_RUNTIME or is_on_cuda(str(body.get("image", "")))
    return place == where if place else in_path


def _directory(machine: Machine, body: JsonObject) -> str:
    """Return the directory with the driver's programs in a container; "" where it is given none."""
    if not machine.has_driver:
        return ""
    if requested_devices(body):
        return _BY_RUNTIME if machine.runtimes else _BY_GKE  # GKE's plugin mounts it, no runtime does
    # Bottlerocket's runtime does not heed the variable.
    if not machine.runtimes or machine.shape.os_image.startswith("Bottlerocket"):
        return ""
    baked = "all" if is_on_cuda(str(body.get("image", ""))) else ""
    return _BY_RUNTIME if env_of(body).get("NVIDIA_VISIBLE_DEVICES", baked) not in {"", "void"} else ""


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
