"""The scheduler: binds pods to nodes, or reports why they fit none.

In scope: the order of pods, binding, preemption, events. Out of scope: filters and scores (`kube.scheduler`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.claims import unbound_volume
from gpukube_sandbox.kube.controllers.deviceclaims import FINALIZER, consumer, read_devices
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_terminal
from gpukube_sandbox.kube.scheduler.claims import claim_names, has_missing_claim
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import CLAIMS, Placing, place, priority
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.scheduler.claims import Grant
    from gpukube_sandbox.kube.scheduler.snapshot import Snapshot
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

NAME = "default-scheduler"
GATED = "Scheduling is blocked due to non-empty scheduling gates"


class Scheduler:
    """Binds each pod to the best node that it fits.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        version: Minor version of Kubernetes, which determines the wording of messages.

    Attributes:
        version: As given; an upgrade changes it.
    """

    watches = ("pods", "nodes", "persistentvolumeclaims", "resourceclaims", "resourceslices", "deviceclasses")
    emulates = "kube-scheduler"

    def __init__(self, api: ObjectApi, clock: Clock, version: tuple[int, int] = (1, 34)) -> None:
        self._api = api
        self._clock = clock
        self.version = version
        self._events = Recorder(api, clock, NAME)

    async def reconcile(self) -> float | None:
        """Try to schedule every pending pod, by priority, then by age."""
        pods = await self._api.list("pods")
        waiting = [pod for pod in pods if is_waiting(pod)]
        if waiting:
            devices = await read_devices(self._api)
            snapshot = take_snapshot(await self._api.list("nodes"), pods, await self._api.list("namespaces"), devices)
            # Identical replicas are evaluated once, until a pod is bound.
            placings: dict[str, Placing] = {}
            for pod in sorted(waiting, key=lambda pod: (-priority(pod), meta(pod).get("creationTimestamp", ""))):
                await self._place(pod, snapshot, placings)
        return None

    async def _place(self, pod: JsonObject, snapshot: Snapshot, placings: dict[str, Placing]) -> None:
        if spec(pod).get("schedulingGates"):
            await self._set_condition(pod, "SchedulingGated", GATED)
            return
        if has_missing_claim(pod, snapshot.devices):
            return
        if refusal := await self._blocked_by(pod, len(snapshot.nodes)):
            await self._refuse(pod, refusal)
            return
        alike = json.dumps([namespace_of(pod), labels(pod), spec(pod)], sort_keys=True)
        found = placings.get(alike) or place(pod, snapshot, self.version)
        if not found.victims and not spec(pod).get("resourceClaims"):
            placings[alike] = found
        if found.nodes:
            placings.clear()
            chosen = found.nodes[0]
            if refusal := await self._bind_claims(pod, snapshot, found.grants.get(chosen)):
                await self._refuse(pod, f'running PreBind plugin "DynamicResources": {refusal}', is_error=True)
                return
            snapshot.nodes[chosen].take(pod)
            await self._api.bind(pod, chosen)
            place_of = f"{namespace_of(pod)}/{name_of(pod)}"
            await self._events.record("pods", pod, "Scheduled", f"Successfully assigned {place_of} to {chosen}")
            return
        await self._refuse(pod, found.message, is_error=found.is_error)
        if found.frees is not None:
            nothing = {"allocation": None, "reservedFor": None, "devices": None}
            await self._api.patch_status("resourceclaims", found.frees, nothing)
        for victim in found.victims:
            if not meta(victim).get("deletionTimestamp"):
                await self._preempt(victim, pod, found.makes_room)

    async def _blocked_by(self, pod: JsonObject, nodes: int) -> str:
        """Return why a pod fits no node, whatever the nodes are like; "" if nothing prevents it."""
        prefix, hopeless = f"0/{nodes} nodes are available:", "Preemption is not helpful for scheduling"
        suffix = f"preemption: 0/{nodes} nodes are available: {nodes} {hopeless}."
        if not nodes:
            return ""
        if volume := await unbound_volume(self._api, pod):
            # If device claims are part of the API, preemption calls their plugin, which has no state for this pod yet.
            return f"{prefix} {volume}. {'not found' if self.version >= CLAIMS else suffix}"
        return ""

    async def _refuse(self, pod: JsonObject, message: str, *, is_error: bool = False) -> None:
        """Report why a pod was not scheduled, unless that is known."""
        if await self._set_condition(pod, "SchedulerError" if is_error else "Unschedulable", message):
            await self._events.record("pods", pod, "FailedScheduling", message, warning=True)

    async def _bind_claims(self, pod: JsonObject, snapshot: Snapshot, grant: Grant | None) -> str:
        """Allocate the pod's claims and reserve all of them for it; return the refusal, or "" on success."""
        pairs = list(grant.allocations) if grant else []
        if grant and grant.extended:
            template, mappings = grant.extended
            refusals: list[str] = []
            made = await self._api.create("resourceclaims", template, refusals)
            if made is None:
                return f"create claim for extended resources: {', '.join(refusals)}"
            pairs[-1] = made, pairs[-1][1]
            used = {"requestMappings": mappings, "resourceClaimName": name_of(made)}
            await self._api.patch_status("pods", pod, {"extendedResourceClaimStatus": used})
        allocations = {name_of(claim): allocation for claim, allocation in pairs}
        for name in dict.fromkeys([*claim_names(pod).values(), *allocations]):
            claim = await self._api.get("resourceclaims", name, namespace_of(pod))
            if claim is not None:
                snapshot.devices.put(await self._reserve(pod, claim, allocations.get(name)))
        return ""

    async def _reserve(self, pod: JsonObject, claim: JsonObject, allocation: JsonObject | None) -> JsonObject:
        """Record a claim's allocation, if it is new, and the pod that uses it; return the claim."""
        change: JsonObject = {"reservedFor": [*(status(claim).get("reservedFor") or ()), consumer(pod)]}
        if allocation:
            finalizers = meta(claim).get("finalizers") or []
            if FINALIZER not in finalizers:
                await self._api.patch("resourceclaims", claim, {"metadata": {"finalizers": [*finalizers, FINALIZER]}})
            change["allocation"] = allocation
        await self._api.patch_status("resourceclaims", claim, change)
        return {**claim, "status": {**status(claim), **change}}

    async def _preempt(self, victim: JsonObject, pod: JsonObject, node: str) -> None:
        message = f"Preempted by pod {meta(pod)['uid']} on node {node}"
        await self._events.record("pods", victim, "Preempted", message)
        await self._api.patch_status("pods", pod, {"nominatedNodeName": node})
        await self._api.delete("pods", victim)

    async def _set_condition(self, pod: JsonObject, reason: str, message: str) -> bool:
        """Set the condition; return whether it changed."""
        condition: JsonObject = next(
            (item for item in status(pod).get("conditions") or () if item["type"] == "PodScheduled"), {}
        )
        if condition.get("message") == message:
            return False
        now = timestamp(self._clock.now())
        condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        await self._api.patch_status("pods", pod, {"conditions": [{**condition, "lastTransitionTime": now}]})
        return True


def is_waiting(pod: JsonObject) -> bool:
    """Return whether a pod is waiting for this scheduler."""
    return (
        not spec(pod).get("nodeName")
        and not is_terminal(pod)
        and not meta(pod).get("deletionTimestamp")
        and spec(pod).get("schedulerName", NAME) == NAME
    )
