"""Allocates devices of extended resources to pods, like the kubelet's device manager with a preferred allocation.

In scope: the devices of a resource, allocating them; pure. Out of scope: what is registered (`plugin`), listing devices
(`smi`).

Source: kubernetes pkg/kubelet/cm/devicemanager (devicesToAllocate, devicesToReuse), pkg/kubelet/lifecycle/predicate.go;
NVIDIA/k8s-device-plugin internal/rm/{rm,allocate}.go (ValidateRequest, distributedAlloc).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.hardware import resource_of
from gpukube_sandbox.kube.nodes.plugin import devices_of
from gpukube_sandbox.kube.store.quantities import is_extended, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import Device, PodRun
    from gpukube_sandbox.kube.store.objects import JsonObject

NVIDIA = "nvidia.com/"
_MIG = "nvidia.com/mig-"
_SHARED = ".shared"
_FAILED = "Allocate failed due to "
_UNEXPECTED = ", which is unexpected"


def uuid_of(node: str, device: Device) -> str:
    """Return the UUID of a GPU, or of a MIG instance, of a node."""
    index, one = device
    return f"GPU-{node}-{index}" if one is None else f"MIG-{node}-{index}-{one}"


def allocate(machine: Machine, run: PodRun, by_claim: Collection[str] = ()) -> None:
    """Allocate a pod's devices, or record why the kubelet rejects the pod.

    Containers reuse the devices of init containers that have finished; a sidecar keeps its own.

    Args:
        machine: The pod's machine.
        run: The pod.
        by_claim: Extended resources that the pod gets by a claim instead.
    """
    taken = in_use(machine)
    passed_on: dict[str, int] = {}
    for item in [*run.inits, *run.mains]:
        for name, count in requested_devices(item.body).items():
            if name in by_claim:
                continue
            missing = max(0, count - passed_on.get(name, 0))
            refusal = _refusal(machine, name, count, missing, taken.get(name, Counter()).total())
            if refusal:
                run.refusal_reason, run.refusal = refusal
                run.held.clear()
                return
            run.held.setdefault(name, []).extend(_choose(machine, name, taken.setdefault(name, Counter()), missing))
            if item in run.inits and item.body.get("restartPolicy") != "Always":
                passed_on[name] = max(count, passed_on.get(name, 0))
            elif item in run.mains:
                passed_on[name] = max(0, passed_on.get(name, 0) - count)


def _refusal(machine: Machine, name: str, count: int, missing: int, used: int) -> tuple[str, str] | None:
    """Return why a container's devices are unavailable, as reason and message; None if they are available."""
    capacity = machine.capacity.get(name)
    if capacity is None:
        numbers = f"requested: {count}, used: {used}, capacity: 0"
        return f"OutOf{name}", f"Node didn't have enough resource: {name}, {numbers}"
    if not machine.allocatable()[name]:
        wrong = f"no healthy devices present; cannot allocate unhealthy devices {name}"
    elif missing > capacity - used:
        numbers = f"Requested: {missing}, Available: {capacity - used}"
        wrong = f"requested number of devices unavailable for {name}. {numbers}"
    elif name in machine.limited and count > 1:
        wrong = (
            f"rpc error: code = Unknown desc = request for '{name}: {count}' too large: maximum request size for "
            "shared resources is 1"
        )
    else:
        return None
    return "UnexpectedAdmissionError", f"{_FAILED}{wrong}{_UNEXPECTED}"


def requested_devices(body: JsonObject) -> dict[str, int]:
    """Return the devices that a container requests."""
    resources = body.get("resources") or {}
    limits = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    counts = {name: int(parse_quantity(value)) for name, value in limits.items() if is_extended(name)}
    return {name: count for name, count in counts.items() if count}


def in_use(machine: Machine) -> dict[str, Counter[Device]]:
    """Return, per resource, how often active pods hold each device."""
    found: dict[str, Counter[Device]] = {}
    for run in machine.pods.values():
        for name, devices in run.held.items() if not run.over else ():
            found.setdefault(name, Counter()).update(devices)
    return found


def held_devices(run: PodRun) -> set[Device]:
    """Return the GPUs and instances that a pod has, from device plugins and from claims, until it is over."""
    if run.over:
        return set()
    return counted_devices(run) | {device for devices in run.claimed.values() for device in devices}


def counted_devices(run: PodRun) -> set[Device]:
    """Return the GPUs and instances that a pod has from device plugins."""
    return {device for name, devices in run.held.items() if name.startswith(NVIDIA) for device in devices}


def _choose(machine: Machine, name: str, taken: Counter[Device], count: int) -> list[Device]:
    """Choose the least-used devices: free ones if exclusive; replicas are spread over all devices."""
    devices = registered_devices(machine, name)
    chosen: list[Device] = []
    for _ in range(count if devices else 0):
        one = min(devices, key=lambda device: taken[device])
        taken[one] += 1
        chosen.append(one)
    return chosen


def registered_devices(machine: Machine, name: str) -> list[Device]:
    """Return the devices that are registered under a resource name.

    Under `nvidia.com/gpu`, strategy single registers MIG instances, none registers whole GPUs, and mixed registers the
    GPUs without MIG; the count distinguishes single from none.
    """
    if not name.startswith(NVIDIA):
        return [(at, None) for at in range(machine.capacity.get(name, 0))]
    if machine.shape.gpu is None:
        return []
    layouts = devices_of(machine.shape.gpu)
    instances = [(at, one) for at, layout in enumerate(layouts) for one in range(len(layout or ()))]
    if name.startswith(_MIG):
        desired = name.removesuffix(_SHARED)
        return [(at, one) for at, one in instances if resource_of((layouts[at] or ())[one]) == desired]
    uncut = [at for at, layout in enumerate(layouts) if layout is None]
    if instances and not uncut and machine.capacity.get(name, 0) % len(instances) == 0:
        return list(instances)
    return [(at, None) for at in uncut or range(len(layouts))]
