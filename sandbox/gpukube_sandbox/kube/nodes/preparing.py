"""Claims of pods on a node: the kubelet asks the drivers for the devices before it creates containers.

In scope: which devices each container gets, why a pod stays in ContainerCreating. Out of scope: allocation (the
scheduler), devices of extended resources (`devices`).

Source: kubernetes pkg/kubelet/cm/dra/manager.go (prepareResources, GetResources), pkg/kubelet/kubelet.go
(FailedPrepareDynamicResources); kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 cmd/gpu-kubelet-plugin/device_state.go,
api/nvidia.com/resource/v1beta1/validate.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.dradriver import DRIVER_NAME
from gpukube_sandbox.kube.nodes.dranet import DRIVER as NETWORK_DRIVER
from gpukube_sandbox.kube.nodes.draslices import plugin_of
from gpukube_sandbox.kube.nodes.plugin import devices_of
from gpukube_sandbox.kube.scheduler.claims import claim_names
from gpukube_sandbox.kube.scheduler.devices import results_of
from gpukube_sandbox.kube.store.gates import DEVICES, parse_minor
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podevents import PodEvent
    from gpukube_sandbox.kube.nodes.podruns import Device, PodRun
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_STRATEGIES: Final = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}
"""Sharing strategy in a claim's parameters -> gate of the driver."""


class _Unprepared(Exception):
    """A claim that cannot be prepared now; the kubelet retries."""


def extended_by_claim(pod: JsonObject) -> frozenset[str]:
    """Return the extended resources that the scheduler got from DRA instead of a device plugin."""
    mappings = (status(pod).get("extendedResourceClaimStatus") or {}).get("requestMappings") or ()
    return frozenset(str(item["resourceName"]) for item in mappings)


async def prepare_claims(
    api: ObjectApi, machine: Machine, node: JsonObject, pod: JsonObject, run: PodRun
) -> PodEvent | None:
    """Give the containers of a pod the devices of its claims, or return why that is impossible.

    A kubelet before 1.34 has no resource.k8s.io/v1: it ignores claims and starts containers without devices.
    """
    if parse_minor(status(node)["nodeInfo"]["kubeletVersion"].removeprefix("v")) < DEVICES:
        return None
    try:
        prepared = {name: _devices(machine, await _claim(api, pod, name)) for name in _names(pod)}
    except _Unprepared as problem:
        failed = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
        return "FailedPrepareDynamicResources", failed, True
    claimed: dict[str, list[Device]] = {}
    for container, name, request in _uses(pod):
        found = claimed.setdefault(container, [])
        for result, device in prepared[name]:
            if request in {"", result, result.partition("/")[0]} and device not in found:
                found.append(device)
    run.claimed = claimed
    return None


def _names(pod: JsonObject) -> list[str]:
    """Return the names of a pod's claims, each once; that for its extended resources is the last one."""
    extended = (status(pod).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return list(dict.fromkeys([*claim_names(pod).values(), *filter(None, [extended])]))


def _uses(pod: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield container, claim, and request; "" for all requests of the claim."""
    names = claim_names(pod)
    extended = status(pod).get("extendedResourceClaimStatus") or {}
    for body in [*(spec(pod).get("initContainers") or ()), *spec(pod)["containers"]]:
        for item in (body.get("resources") or {}).get("claims") or ():
            if item["name"] in names:
                yield body["name"], names[item["name"]], item.get("request") or ""
    for item in extended.get("requestMappings") or ():
        yield item["containerName"], extended["resourceClaimName"], item["requestName"]


async def _claim(api: ObjectApi, pod: JsonObject, name: str) -> JsonObject:
    """Return a claim that is reserved for a pod."""
    claim = await api.get("resourceclaims", name, namespace_of(pod))
    if claim is None:
        raise _Unprepared(f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found')
    uid = meta(pod)["uid"]
    if all(one.get("uid") != uid for one in status(claim).get("reservedFor") or ()):
        place = f"{name} ({meta(claim)['uid']})"
        raise _Unprepared(f"pod {name_of(pod)} ({uid}) is not allowed to use ResourceClaim {place}")
    return claim


def _devices(machine: Machine, claim: JsonObject) -> list[tuple[str, Device]]:
    """Return a claim's GPUs and instances with their requests; network devices are prepared without a trace."""
    plugin, found = plugin_of(machine), []
    offer = plugin.offer if plugin else None
    for result in results_of(claim):
        if result["driver"] == NETWORK_DRIVER and machine.has_slices:
            continue
        if result["driver"] != DRIVER_NAME or offer is None:
            raise _Unprepared(f"DRA driver {result['driver']} is not registered")
        failed = f"NodePrepareResources failed for ResourceClaim {name_of(claim)}: error preparing devices for claim"
        failed += f" {namespace_of(claim)}/{name_of(claim)}:{meta(claim)['uid']}: prepare devices failed:"
        device = next((one for one in offer.devices if one.name == result["device"]), None)
        if device is None:
            raise _Unprepared(f'{failed} allocatable not found for device "{result["device"]}"')
        if not _exists(machine, device.place):
            uuid = device.body["attributes"]["uuid"]["string"]
            raise _Unprepared(f"{failed} error getting device handle for uuid '{uuid}': Not Found")
        if unknown := _unknown_strategy(claim, offer.gates):
            raise _Unprepared(f"{failed} error validating GPU config: unknown GPU sharing strategy: {unknown}")
        found.append((str(result["request"]), device.place))
    return found


def _exists(machine: Machine, place: Device) -> bool:
    """Return whether a device is still there: MIG may have changed since the plugin started."""
    index, one = place
    layout = devices_of(machine.shape.gpu)[index] if machine.shape.gpu else None
    return layout is None if one is None else one < len(layout or ())


def _unknown_strategy(claim: JsonObject, gates: dict[str, bool]) -> str:
    """Return the sharing strategy in a claim's parameters whose gate is off; "" for none."""
    configs = ((status(claim).get("allocation") or {}).get("devices") or {}).get("config") or ()
    for item in configs:
        opaque = item.get("opaque") or {}
        strategy = ((opaque.get("parameters") or {}).get("sharing") or {}).get("strategy", "")
        if opaque.get("driver") == DRIVER_NAME and strategy and not gates.get(_STRATEGIES.get(strategy, "")):
            return str(strategy)
    return ""
