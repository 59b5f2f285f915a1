"""ReplicaSets and ReplicationControllers, and helpers for all controllers that create pods.

In scope: creating pods from templates. Out of scope: Deployments, DaemonSets, Jobs, StatefulSets, scheduling or
running pods.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_ready, is_terminal
from gpukube_sandbox.kube.store.objects import (
    annotations_of,
    copied,
    meta,
    name_of,
    namespace_of,
    owner_uids,
    spec,
    status,
)

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_API_VERSIONS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}


_hashes: dict[int, tuple[JsonObject, str]] = {}
_MAX_HASHES = 200


def template_hash(template: JsonObject) -> str:
    """Return a hash of a pod template, cached by object identity because stored objects never change in place."""
    known, found = _hashes.get(id(template), (None, ""))
    if known is not template:
        found = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]
        if len(_hashes) >= _MAX_HASHES:
            _hashes.clear()
        _hashes[id(template)] = template, found
    return found


def owner_reference(kind: str, owner: JsonObject) -> JsonObject:
    """Return the controller reference to an owner."""
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "name": name_of(owner),
        "uid": meta(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def new_pod(kind: str, owner: JsonObject, marks: dict[str, str]) -> JsonObject:
    """Return a pod of the owner's template with additional labels."""
    template = copied(spec(owner)["template"])
    details = template.get("metadata") or {}
    return {
        "metadata": {
            "generateName": f"{name_of(owner)}-",
            "namespace": namespace_of(owner),
            "labels": {**(details.get("labels") or {}), **marks},
            "annotations": details.get("annotations") or {},
            "ownerReferences": [owner_reference(kind, owner)],
        },
        "spec": template["spec"],
    }


async def create_pod(api: ObjectApi, events: Recorder, owner: tuple[str, JsonObject], pod: JsonObject) -> None:
    """Create a pod for its owner (plural and object), and record an event about success or failure."""
    refusals: list[str] = []
    made = await api.create("pods", pod, refusals)
    if made:
        await events.record(*owner, "SuccessfulCreate", f"Created pod: {name_of(made)}")
    for message in refusals:
        await events.record(*owner, "FailedCreate", f"Error creating: {message}", warning=True)


def is_available(pod: JsonObject) -> bool:
    """Return whether a pod is ready and not terminating."""
    return is_ready(pod) and not meta(pod).get("deletionTimestamp")


def owned_by(owner: JsonObject, objects: list[JsonObject]) -> list[JsonObject]:
    """Return the objects that the owner controls."""
    return [obj for obj in objects if meta(owner)["uid"] in owner_uids(obj)]


def _deletion_order(pod: JsonObject) -> tuple[bool, bool, bool, int, float]:
    """Return a pod's deletion order: unassigned, not running, not ready, low-cost, and young pods go first.

    Source: kubernetes pkg/controller/controller_utils.go (ActivePodsWithRanks).
    """
    cost = annotations_of(pod).get("controller.kubernetes.io/pod-deletion-cost", "0")
    runs, created = status(pod).get("phase") == "Running", _seconds(meta(pod).get("creationTimestamp"))
    return bool(spec(pod).get("nodeName")), runs, is_ready(pod), int(cost), -created


def _ready_since(pod: JsonObject) -> float:
    found = [item for item in status(pod).get("conditions") or () if item["type"] == "Ready"]
    return _seconds(found[0].get("lastTransitionTime")) if found else 0.0


def _seconds(moment: str | None) -> float:
    return datetime.fromisoformat(moment).timestamp() if moment else 0.0


class ReplicaSets:
    """Keeps the desired number of pods of each ReplicaSet."""

    watches: tuple[str, ...] = ("replicasets", "pods")
    emulates = "kube-controller-manager"
    kind = "ReplicaSet"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, f"{self.kind.lower()}-controller")

    async def reconcile(self) -> float | None:
        """Reconcile every ReplicaSet; return when the next pod has been ready for minReadySeconds."""
        plural = self.watches[0]
        owners = await self._api.list(plural)
        pods = await self._api.list("pods") if owners else []
        now, due = self._clock.now(), list[float]()
        for owner in owners:
            living = [
                pod for pod in owned_by(owner, pods) if not is_terminal(pod) and not meta(pod).get("deletionTimestamp")
            ]
            missing = int(spec(owner).get("replicas", 1)) - len(living)
            for _ in range(missing):
                await create_pod(self._api, self._events, (plural, owner), new_pod(self.kind, owner, {}))
            for pod in sorted(living, key=_deletion_order)[: max(0, -missing)]:
                await self._api.delete("pods", pod)
                await self._events.record(plural, owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
            ready = sum(map(is_ready, living))
            since = [_ready_since(pod) + int(spec(owner).get("minReadySeconds", 0)) for pod in living if is_ready(pod)]
            due += [moment for moment in since if moment > now]
            numbers = {
                "replicas": len(living),
                "fullyLabeledReplicas": len(living),
                "readyReplicas": ready,
                "availableReplicas": sum(moment <= now for moment in since),
                "observedGeneration": meta(owner).get("generation", 1),
            }
            if any(status(owner).get(key) != value for key, value in numbers.items()):
                await self._api.patch_status(plural, owner, numbers)
        return min(due, default=None)


class ReplicationControllers(ReplicaSets):
    """Does the same for the older type ReplicationController."""

    watches = ("replicationcontrollers", "pods")
    kind = "ReplicationController"
