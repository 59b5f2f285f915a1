"""The kubelet's part of dynamic resource allocation: it prepares the claims of a pod before its containers start.

In scope: which drivers are registered with a node's kubelet, and why a pod's claims cannot be prepared.
Out of scope: allocation (the scheduler), what a driver publishes.

Source: kubernetes pkg/kubelet/cm/dra/manager.go (prepareResources), kuberuntime/kuberuntime_manager.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.dranet import DRIVER as DRANET
from gpukube_sandbox.kube.scheduler.claims import claim_names
from gpukube_sandbox.kube.scheduler.devices import results_of
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podevents import PodEvent
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject


def registered_drivers(machine: Machine) -> set[str]:
    """Return the drivers whose plugins run on a machine."""
    return {DRANET} if machine.has_slices else set()


def served_by_claim(pod: JsonObject) -> set[str]:
    """Return the extended resources that a pod gets by a claim, not from a device plugin."""
    mappings = (status(pod).get("extendedResourceClaimStatus") or {}).get("requestMappings") or ()
    return {mapping["resourceName"] for mapping in mappings}


async def claims_of(api: ObjectApi, pod: JsonObject) -> list[JsonObject]:
    """Return the claims of a pod that exist, including the one for its extended resources."""
    extended = (status(pod).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    names = [*claim_names(pod).values(), *([extended] if extended else [])]
    found = [await api.get("resourceclaims", name, namespace_of(pod)) for name in names]
    return [claim for claim in found if claim is not None]


async def preparation_problem(api: ObjectApi, machine: Machine, pod: JsonObject) -> PodEvent | None:
    """Return why the kubelet cannot prepare a pod's claims; it retries."""
    if not spec(pod).get("resourceClaims") and not status(pod).get("extendedResourceClaimStatus"):
        return None
    drivers = registered_drivers(machine)
    for claim in await claims_of(api, pod):
        if all(one.get("uid") != meta(pod)["uid"] for one in status(claim).get("reservedFor") or ()):
            users = f"pod {name_of(pod)} ({meta(pod)['uid']})", f"{name_of(claim)} ({meta(claim)['uid']})"
            return _failed(f"{users[0]} is not allowed to use ResourceClaim {users[1]}")
        for result in results_of(claim):
            if result["driver"] not in drivers:
                return _failed(f"DRA driver {result['driver']} is not registered")
    return None


def _failed(problem: str) -> PodEvent:
    text = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
    return "FailedPrepareDynamicResources", text, True
