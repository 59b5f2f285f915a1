"""The device plugin: what it advertises on a node.

In scope: computing extended resources, or the failure, from devices and settings. Out of scope: pods and their states
(`kubelet`), configuration sources (`pluginconfig`).

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/rm, internal/plugin, cmd/nvidia-device-plugin; README.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.hardware import find_model, fits, resource_of
from gpukube_sandbox.kube.nodes.pluginconfig import Crash

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.nodes.pluginconfig import Settings, Sharing
    from gpukube_sandbox.kube.nodes.shapes import GpuShape

GPU = "nvidia.com/gpu"

_NO_NVML = "error getting plugins: unable to create plugins: failed to construct resource managers: nvml init failed: "
_NO_LIBRARY = (
    "could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
)
_MAX_MPS = 48
_MAX_MPS_OLD = 16
_MPS_CAPABILITY = (7, 5)


@dataclass(frozen=True, slots=True)
class Advertised:
    """The plugin's registration with the kubelet.

    Attributes:
        resources: Resource name -> devices.
        limited: Resources of which a pod may request at most one.
        log: Log lines that the plugin writes.
        retry: The plugin could not start and retries in 30 seconds.
    """

    resources: Mapping[str, int]
    limited: frozenset[str] = frozenset()
    log: tuple[str, ...] = field(default=())
    retry: bool = False


def devices_of(shape: GpuShape) -> list[tuple[str, ...] | None]:
    """Return the node's GPUs: None without MIG, else the instances.

    Raises:
        LookupError: The shape names a model or a layout that does not exist.
    """
    model = find_model(shape.model)
    gpus = list(shape.per_gpu())
    for layout in gpus:
        if layout is not None and not fits(model, layout):
            message = f"{shape.model} cannot be cut into {', '.join(layout)}"
            raise LookupError(message)
    return gpus


def advertise(shape: GpuShape | None, settings: Settings, *, mps_daemon: bool = False) -> Advertised:
    """Return what the plugin registers.

    Args:
        shape: The node's GPUs, if any.
        settings: The plugin's configuration.
        mps_daemon: The MPS control daemon is ready on the node.

    Raises:
        Crash: The plugin exits; the kubelet restarts it with a back-off.
    """
    if shape is None or not shape.driver:
        if settings.fail_on_init_error:
            raise Crash(_NO_NVML + _NO_LIBRARY)
        return Advertised({}, log=(*settings.warnings, _NO_LIBRARY, "No devices found. Waiting indefinitely."))
    gpus = devices_of(shape)
    counted = _count(gpus, settings.mig_strategy)
    sharing = settings.sharing
    log = list(settings.warnings)
    log += [
        f"device {i} has no MIG devices configured"
        for i, g in enumerate(gpus)
        if g == () and settings.mig_strategy == "mixed"
    ]
    if sharing and sharing.strategy == "mps":
        _check_mps(shape, gpus, sharing)
        if not mps_daemon:
            waiting = "Failed to start plugin: error waiting for MPS daemon: error checking MPS daemon health"
            return Advertised(
                {}, log=(*log, waiting, "Failed to start one or more plugins. Retrying in 30s..."), retry=True
            )
    resources, limited = _replicate(counted, sharing)
    log += [f"Registered device plugin for '{name}' with Kubelet" for name in sorted(resources)]
    if not resources:
        log.append("No devices found. Waiting indefinitely.")
    return Advertised(resources, limited, tuple(log))


def _count(gpus: list[tuple[str, ...] | None], strategy: str) -> dict[str, int]:
    if strategy == "none":
        return {GPU: len(gpus)}
    whole = sum(layout is None for layout in gpus)
    profiles = Counter(profile for layout in gpus for profile in layout or ())
    if strategy == "mixed":
        return ({GPU: whole} if whole else {}) | {resource_of(profile): count for profile, count in profiles.items()}
    _require_uniform(gpus, profiles, whole)
    return {GPU: whole or profiles.total()}


def _require_uniform(gpus: list[tuple[str, ...] | None], profiles: Counter[str], whole: int) -> None:
    start = "error getting plugins: unable to create plugins: failed to construct resource managers: "
    start += "error building device map: error building device map from config.resources: "
    empty = next((index for index, layout in enumerate(gpus) if layout == ()), None)
    if empty is not None:
        wrong = "at least one device with migEnabled=true was not configured correctly"
        raise Crash(f"{start}invalid MIG configuration: {wrong}: device {empty} has no MIG devices configured")
    if len(profiles) > 1:
        raise Crash(f"{start}invalid MIG configuration: more than one MIG device type present on node")
    if whole and profiles:
        raise Crash(f"{start}all devices on the node must be configured with the same migEnabled value")


def _check_mps(shape: GpuShape, gpus: list[tuple[str, ...] | None], sharing: Sharing) -> None:
    start = "error getting plugins: unable to create plugins: failed to create plugin: "
    if any(layout is not None for layout in gpus):
        raise Crash(f"{start}sharing using MPS is not supported for MIG devices")
    maximum = _MAX_MPS if find_model(shape.model).compute >= _MPS_CAPABILITY else _MAX_MPS_OLD
    requested = sharing.replicas.get(GPU, 0)
    if requested > maximum:
        raise Crash(f"{start}invalid MPS configuration: {requested} replicas, maximum {maximum}")


def _replicate(counted: dict[str, int], sharing: Sharing | None) -> tuple[dict[str, int], frozenset[str]]:
    if sharing is None:
        return counted, frozenset()
    found: dict[str, int] = {}
    limited = set()
    for name, count in counted.items():
        replicas = sharing.replicas.get(name, 1)
        shared = f"{name}.shared" if sharing.rename and replicas > 1 else name
        found[shared] = count * replicas
        if replicas > 1 and sharing.single_only:
            limited.add(shared)
    return found, frozenset(limited)
