"""The labels that GPU Feature Discovery sets on a node.

In scope: computing labels from devices and settings. Out of scope: how labels reach the node (`nfd`).

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/lm; docs/gpu-feature-discovery.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.hardware import GpuModel, find_model, memory_of, resource_of
from gpukube_sandbox.kube.nodes.plugin import GPU, devices_of
from gpukube_sandbox.kube.nodes.pluginconfig import Crash

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.pluginconfig import Settings
    from gpukube_sandbox.kube.nodes.shapes import GpuShape

DRIVER = ("580", "159", "04")
"""Driver version of AKS's CUDA sizes (Azure/AgentBaker parts/common/components.json, 2026-08)."""
CUDA = ("13", "0")


def feature_labels(shape: GpuShape | None, settings: Settings, machine: str, started: float) -> dict[str, str]:
    """Return the labels of a node.

    Args:
        shape: The node's GPUs.
        settings: GFD's configuration.
        machine: Instance type.
        started: Sandbox time, for the timestamp label.

    Raises:
        Crash: GFD exits, for example with MPS on MIG devices.
    """
    if shape is None or not shape.driver:
        if settings.fail_on_init_error:
            raise Crash("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND")
        return {}
    model = find_model(shape.model)
    gpus = devices_of(shape)
    mps = settings.sharing is not None and settings.sharing.strategy == "mps"
    if mps and any(layout is not None for layout in gpus):
        raise Crash(
            "error creating sharing labeler: failed to check MPS-capable: MPS sharing is not supported for mig devices"
        )
    found = _versions() | {
        "nvidia.com/gfd.timestamp": str(int(started)),
        f"{GPU}.machine": machine,
        f"{GPU}.mode": "compute",
        "nvidia.com/mig.capable": str(bool(model.profiles)).lower(),
        "nvidia.com/mps.capable": str(mps).lower(),
        "nvidia.com/vgpu.present": "false",
    }
    found |= _whole(model, gpus, settings)
    if settings.mig_strategy != "none":
        found["nvidia.com/mig.strategy"] = settings.mig_strategy
        found |= _single(model, gpus, settings) if settings.mig_strategy == "single" else _mixed(model, gpus, settings)
    return found


def _versions() -> dict[str, str]:
    major, minor, revision = DRIVER
    driver = {"major": major, "minor": minor, "revision": revision, "full": ".".join(DRIVER)}
    runtime = {"major": CUDA[0], "minor": CUDA[1], "full": ".".join(CUDA)}
    found = {f"nvidia.com/cuda.driver-version.{key}": value for key, value in driver.items()}
    found |= {f"nvidia.com/cuda.runtime-version.{key}": value for key, value in runtime.items()}
    found |= {
        f"nvidia.com/cuda.driver.{key}": value for key, value in zip(("major", "minor", "rev"), DRIVER, strict=True)
    }
    return found | {"nvidia.com/cuda.runtime.major": CUDA[0], "nvidia.com/cuda.runtime.minor": CUDA[1]}


def _whole(model: GpuModel, gpus: list[tuple[str, ...] | None], settings: Settings) -> dict[str, str]:
    sharing = _shared(GPU, settings) if any(layout is None for layout in gpus) else ("", "0", "none")
    base = {
        "product": model.product + sharing[0],
        "count": str(len(gpus)),
        "replicas": sharing[1],
        "sharing-strategy": sharing[2],
        "memory": str(model.memory_mib),
        "family": model.family,
        "compute.major": str(model.compute[0]),
        "compute.minor": str(model.compute[1]),
    }
    return {f"{GPU}.{key}": value for key, value in base.items()}


def _shared(resource: str, settings: Settings) -> tuple[str, str, str]:
    """Return product suffix, replicas, and sharing strategy of a resource."""
    sharing = settings.sharing
    replicas = sharing.replicas.get(resource, 1) if sharing else 1
    if sharing is None or replicas == 1:
        return "", "1", "none"
    return ("" if sharing.rename else "-SHARED"), str(replicas), sharing.strategy


def _single(model: GpuModel, gpus: list[tuple[str, ...] | None], settings: Settings) -> dict[str, str]:
    cut = [layout for layout in gpus if layout is not None]
    if not cut:
        return {}
    profiles = Counter(profile for layout in cut for profile in layout)
    if () in cut or len(cut) != len(gpus) or len(profiles) != 1:
        invalid = {"count": "0", "replicas": "0", "sharing-strategy": "", "memory": "0"}
        return {f"{GPU}.{key}": value for key, value in invalid.items()} | {
            f"{GPU}.product": f"{model.product}-MIG-INVALID"
        }
    profile, count = profiles.most_common(1)[0]
    return _instances(GPU, model, profile, count, settings)


def _mixed(model: GpuModel, gpus: list[tuple[str, ...] | None], settings: Settings) -> dict[str, str]:
    found: dict[str, str] = {}
    for profile, count in Counter(profile for layout in gpus for profile in layout or ()).items():
        found |= _instances(resource_of(profile), model, profile, count, settings)
    return found


def _instances(resource: str, model: GpuModel, profile: str, count: int, settings: Settings) -> dict[str, str]:
    suffix, replicas, strategy = _shared(resource, settings)
    cut = model.profiles[profile]
    found = {
        "product": f"{model.product}-MIG-{profile.replace('+', '.')}{suffix}",
        "count": str(count),
        "replicas": replicas,
        "sharing-strategy": strategy,
        "slices.gi": str(cut.slices),
        "slices.ci": str(cut.slices),
    }
    found["memory"] = str(memory_of(model, cut))
    if cut.multiprocessors:
        found["multiprocessors"] = str(cut.multiprocessors)
    return {f"{resource}.{key}": value for key, value in found.items()}
