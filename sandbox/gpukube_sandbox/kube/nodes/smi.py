"""nvidia-smi: its location in a container, and its output.

In scope: which containers have the driver, the lines of `nvidia-smi -L`; pure. Out of scope: running the
program (`programs`), allocating devices (`devices`).

Source: NVIDIA/k8s-device-plugin README (a pod without a request whose image asks for all devices sees all of them);
NVIDIA MIG User Guide (the listing); NVIDIA container toolkit, docker-specialized (NVIDIA_VISIBLE_DEVICES, which CUDA
base images set); Bottlerocket, settings.nvidia-container-runtime; GKE docs, how-to/gpus (/usr/local/nvidia).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.containers import env_of
from gpukube_sandbox.kube.nodes.devices import NVIDIA, counted_devices, requested_devices, uuid_of
from gpukube_sandbox.kube.nodes.hardware import find_model
from gpukube_sandbox.kube.nodes.plugin import devices_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.hardware import GpuModel
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import PodRun
    from gpukube_sandbox.kube.store.objects import JsonObject

_BUS: Final = re.compile(r" (SXM\d|PCIE) (?=\d)")
"""The only part in which the driver uses hyphens: NVIDIA A100-SXM4-40GB, but NVIDIA A100 80GB PCIe."""

PROGRAM: Final = "nvidia-smi"
INTERFACES: Final = ("/dev/infiniband", "/sys/class/infiniband")
_BY_RUNTIME, _BY_GKE = "/usr/bin", "/usr/local/nvidia/bin"
_BUILT_ON_CUDA: Final = ("pytorch/pytorch", "rayproject/ray-llm")
_NGC: Final = "nvcr.io/nvidia/"


def is_on_cuda(image: str) -> bool:
    """Return whether an image's name suggests a CUDA base image, which sets NVIDIA_VISIBLE_DEVICES and PATH."""
    repository = image.partition("@")[0].removeprefix("docker.io/")
    return (
        "cuda" in repository
        or repository.startswith(_NGC)
        or repository.endswith("-gpu")
        or repository.partition(":")[0] in _BUILT_ON_CUDA
    )


def product_of(model: GpuModel) -> str:
    """Return a model's name as the driver spells it."""
    return _BUS.sub(r"-\1-", model.product.replace("-", " "))


def can_run(machine: Machine, run: PodRun, body: JsonObject, command: str) -> bool:
    """Return whether a command finds nvidia-smi in a container.

    Args:
        machine: The container's machine.
        run: Its pod.
        body: The container in the pod's spec.
        command: "nvidia-smi", looked up in PATH, or a full path.
    """
    place, _, _ = command.rpartition("/")
    where = _directory(machine, run, body)
    if not where:
        return False
    in_path = where == _BY_RUNTIME or is_on_cuda(str(body.get("image", "")))
    return place == where if place else in_path


def _directory(machine: Machine, run: PodRun, body: JsonObject) -> str:
    """Return the directory of the driver's programs in a container; "" if it has none."""
    if not machine.has_driver:
        return ""
    if run.claimed.get(body["name"]):
        return _BY_RUNTIME  # the DRA driver's CDI specification adds it, whatever the runtime
    if any(name.startswith(NVIDIA) for name in requested_devices(body)):
        return _BY_RUNTIME if machine.runtimes else _BY_GKE  # GKE's plugin mounts it, not a runtime
    # Bottlerocket's runtime ignores the variable.
    if not machine.runtimes or machine.shape.os_image.startswith("Bottlerocket"):
        return ""
    baked = "all" if is_on_cuda(str(body.get("image", ""))) else ""
    return _BY_RUNTIME if env_of(body).get("NVIDIA_VISIBLE_DEVICES", baked) not in {"", "void"} else ""


def listing(machine: Machine, run: PodRun, container: str) -> list[str]:
    """Return the output lines of `nvidia-smi -L` in a container.

    Args:
        machine: Its machine, which has GPUs and a driver.
        run: Its pod.
        container: Its name; without requests of its pod and claims of its own it sees all devices.
    """
    gpu = machine.shape.gpu
    if gpu is None:
        return []
    layouts = devices_of(gpu)
    given = counted_devices(run) | set(run.claimed.get(container, ()))
    if not given:
        given = {(index, None) for index in range(len(layouts))}
    node, product = machine.shape.name, product_of(find_model(gpu.model))
    lines: list[str] = []
    for number, index in enumerate(sorted({device[0] for device in given})):
        lines.append(f"GPU {number}: {product} (UUID: {uuid_of(node, (index, None))})")
        layout = layouts[index] or ()
        whole = (index, None) in given
        shown = range(len(layout)) if whole else sorted({one for at, one in given if at == index and one is not None})
        lines += [
            f"  MIG {layout[one]:<11} Device {place:>2}: (UUID: {uuid_of(node, (index, one))})"
            for place, one in enumerate(shown)
        ]
    return lines


def interfaces(body: JsonObject) -> list[str]:
    """Return the RDMA devices in a container: one per network device that it requests, and that of all of them.

    Source: kernel documentation, infiniband/user_verbs (/dev/infiniband); aws/eks-charts
    stable/aws-efa-k8s-device-plugin, which passes each device's file.
    """
    count = sum(number for name, number in requested_devices(body).items() if not name.startswith(NVIDIA))
    if not count:
        return [f"{path}: ls: cannot access '{path}': No such file or directory" for path in INTERFACES]
    usable = " ".join(f"uverbs{number}" for number in range(count))
    named = " ".join(f"rdmap{number}s0" for number in range(count))
    return [f"{INTERFACES[0]}: rdma_cm {usable}", f"{INTERFACES[1]}: {named}"]
