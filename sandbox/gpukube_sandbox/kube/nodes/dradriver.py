"""NVIDIA's DRA driver on a node: its init container, and the devices that its plugin finds when it starts.

In scope: waiting for the driver's directory, gates, names and attributes of devices. Out of scope: ResourceSlices
(`draslices`), pods with claims (`preparing`), compute domains, MIG devices made on demand.

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 cmd/gpu-kubelet-plugin (deviceinfo, mig, driver), pkg/featuregates,
hack/kubelet-plugin-prestart.sh; NVIDIA/go-nvlib pkg/nvlib/device (architecture, brand). PCI addresses, numbers of
profiles, and engines of instances are the sandbox's own: the driver's documentation tells users to read attributes
instead of names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.containers import env_of
from gpukube_sandbox.kube.nodes.devices import uuid_of
from gpukube_sandbox.kube.nodes.gfd import CUDA, DRIVER
from gpukube_sandbox.kube.nodes.hardware import find_model, memory_of, placements
from gpukube_sandbox.kube.nodes.plugin import devices_of
from gpukube_sandbox.kube.nodes.pluginconfig import Crash
from gpukube_sandbox.kube.nodes.podruns import GpuDevice, Offer
from gpukube_sandbox.kube.nodes.smi import product_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.containers import Role
    from gpukube_sandbox.kube.nodes.hardware import GpuModel, MigProfile
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.processes import Process
    from gpukube_sandbox.kube.store.objects import JsonObject

DRIVER_NAME: Final = "gpu.nvidia.com"
DRA_ROLES: Final[frozenset[Role]] = frozenset({"dra-prestart", "dra-plugin"})
_POLL_S: Final = 10.0
_GATES: Final = {
    "TimeSlicingSettings": False, "MPSSupport": False, "PassthroughSupport": False, "DynamicMIG": False,
    "NVMLDeviceHealthCheck": False, "DeviceMetadata": False, "IMEXDaemonsWithDNSNames": True,
    "ComputeDomainCliques": True, "CrashOnNVLinkFabricErrors": True,
}  # fmt: skip
"""Gate -> default."""
_EXCLUDED: Final = (
    ("DynamicMIG", "PassthroughSupport"),
    ("DynamicMIG", "NVMLDeviceHealthCheck"),
    ("DynamicMIG", "MPSSupport"),
    ("PassthroughSupport", "NVMLDeviceHealthCheck"),
)
_NEEDS: Final = (("ComputeDomainCliques", "IMEXDaemonsWithDNSNames"), ("DeviceMetadata", "PassthroughSupport"))
_NOT_EMULATED: Final = ("DynamicMIG", "PassthroughSupport")
_TAINT: Final = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
"""What the gate NVMLDeviceHealthCheck adds to a GPU that reported an XID error."""
_DECODERS: Final = {1: 0, 2: 1, 3: 2, 4: 2, 7: 5}
"""Compute slices -> decoders of an instance (MIG User Guide, A100)."""


def start_dra_part(process: Process) -> None:
    """Start one of the driver's containers.

    Raises:
        Crash: The program exits with an error.
    """
    if process.container.role == "dra-prestart":
        _wait_for_driver(process)
        return
    process.run.offer = None
    gates = read_gates(env_of(process.container.body).get("FEATURE_GATES", ""))
    found = [] if process.is_struck("late-driver") else discover(process.machine)
    if found and process.is_struck("tainted-device"):
        found[0].body["taints"] = [dict(_TAINT)]
    missing = int(process.is_struck("incomplete-pool"))
    process.run.offer = Offer(found, gates, missing=missing, is_lost=process.is_struck("slices-lost"))
    process.log.extend(f"About to announce device {device.name}" for device in found)


def _wait_for_driver(process: Process) -> None:
    """Hold the pod until the driver's files are below the directory that the chart names.

    A directory that does not exist is created empty for the pod, so that nothing else looks wrong.
    """
    root = env_of(process.container.body).get("NVIDIA_DRIVER_ROOT", "").rstrip("/") or "/"
    found = process.machine.driver_location == root
    process.container.holds = not found
    there = "found" if found else "not found"
    process.log.append(f"/driver-root ({root} on host): nvidia-smi: {there}, libnvidia-ml.so.1: {there}")
    if not found:
        process.log.append(
            f"Check failed: the host has no NVIDIA driver under NVIDIA_DRIVER_ROOT ({root}). Review the DRA driver's "
            "Helm value nvidiaDriverRoot, or whether the driver is installed."
        )
        process.container.retry_at = process.now + _POLL_S


def read_gates(text: str) -> dict[str, bool]:
    """Parse FEATURE_GATES, "Name=true,".

    Raises:
        Crash: An unknown gate, a combination that the driver excludes, or a gate that the sandbox does not emulate.
    """
    gates = dict(_GATES)
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if name not in _GATES:
            raise Crash(f"failed to set feature gates: unrecognized feature gate: {name}")
        gates[name] = value == "true"
    failed = "feature gate validation failed: feature gate"
    for one, other in _NEEDS:
        if gates[one] and not gates[other]:
            raise Crash(f"{failed} {one} requires {other} to also be enabled")
    for one, other in _EXCLUDED:
        if gates[one] and gates[other]:
            raise Crash(f"{failed} {one} is currently mutually exclusive with {other}")
    for name in _NOT_EMULATED:
        if gates[name]:
            raise Crash(f"the gpukube sandbox does not emulate the feature gate {name}")
    return gates


def discover(machine: Machine) -> list[GpuDevice]:
    """Return the devices of a machine: whole GPUs, and MIG instances instead of a GPU in MIG mode."""
    gpu = machine.shape.gpu
    if gpu is None or not gpu.driver:
        return []
    model = find_model(gpu.model)
    adapters = max(sum(machine.shape.fabric.values()) // gpu.count, 1)
    found: list[GpuDevice] = []
    for index, layout in enumerate(devices_of(gpu)):
        root = f"pci0000:{0x10 + index * adapters:02x}"
        common = _common(model) | {
            "resource.kubernetes.io/pciBusID": {"string": f"{root.removeprefix('pci')}:01.0"},
            "resource.kubernetes.io/pcieRoot": {"string": root},
        }
        name, uuid = f"gpu-{index}", uuid_of(machine.shape.name, (index, None))
        if layout is None:
            body = {"name": name, "attributes": _strings(type="gpu", uuid=uuid) | common}
            found.append(GpuDevice((index, None), body | {"capacity": _capacity(memory=_binary(model.memory_mib))}))
            continue
        for one, (profile, start) in enumerate(zip(layout, placements(model, layout) or (), strict=True)):
            own = _strings(type="mig", uuid=uuid_of(machine.shape.name, (index, one)), parentUUID=uuid, profile=profile)
            number = list(model.profiles).index(profile)
            compact = profile.replace(".", "").replace("+", "-")
            body = {
                "name": f"{name}-mig-{compact}-{number}-{start}",
                "attributes": own | common,
                "capacity": _instance(model, model.profiles[profile], start),
            }
            found.append(GpuDevice((index, one), body))
    return found


def _strings(**values: str) -> JsonObject:
    return {key: {"string": value} for key, value in values.items()}


def _capacity(**values: str) -> JsonObject:
    return {key: {"value": value} for key, value in values.items()}


def _binary(mib: int) -> str:
    """Format an amount of memory like the API server."""
    return f"{mib}Mi" if mib % 1024 else f"{mib // 1024}Gi"


def _common(model: GpuModel) -> JsonObject:
    """Return the attributes that a GPU and its instances share."""
    versions = {
        "cudaComputeCapability": (*map(str, model.compute), "0"),
        "driverVersion": DRIVER,
        "cudaDriverVersion": (*CUDA, "0"),
    }
    product = product_of(model)
    named = _strings(
        productName=product,
        brand="Tesla" if product.startswith("Tesla") else "Nvidia",
        architecture=model.family.replace("-", " ").title(),
    )
    return named | {key: {"version": ".".join(str(int(part)) for part in parts)} for key, parts in versions.items()}


def _instance(model: GpuModel, profile: MigProfile, start: int) -> JsonObject:
    media = profile.slices == max(_DECODERS) or "+me" in profile.name
    engines = {
        "multiprocessors": profile.multiprocessors,
        "copyEngines": profile.slices,
        "decoders": max(_DECODERS[profile.slices], int(media)),
        "encoders": 0,
        "jpegEngines": int(media),
        "ofaEngines": int(media),
        **{f"memorySlice{at}": 1 for at in range(start, start + profile.size)},
    }
    counts = {key: str(count) for key, count in engines.items()}
    return _capacity(memory=_binary(memory_of(model, profile)), **counts)
