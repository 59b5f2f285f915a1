"""Deployments and ReplicaSets: controllers that keep a number of pods.

Lives here: pods made from templates, roll-outs by a new ReplicaSet. Must not live here: DaemonSets, Jobs, StatefulSets,
placing or running pods.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.events import Recorder
from gpukube_sandbox.kube.controllers.scheduling import is_ready, is_terminal
from gpukube_sandbox.kube.store.objects import (
    annotations_of,
    copied,
    labels,
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

_POD_HASH = "pod-template-hash"
_API_VERSIONS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}


_hashes: dict[int, tuple[JsonObject, str]] = {}
_MOST_HASHES = 200


def template_hash(template: JsonObject) -> str:
    """Name a pod template by its content; known by the object itself, as none that is stored changes in place."""
    known, found = _hashes.get(id(template), (None, ""))
    if known is not template:
        found = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]
        if len(_hashes) >= _MOST_HASHES:
            _hashes.clear()
        _hashes[id(template)] = template, found
    return found


def owner_reference(kind: str, owner: JsonObject) -> JsonObject:
    """Point at the controller of an object."""
    return {
        "apiVersion": _API_VERSIONS[kind],
        "kind": kind,
        "name": name_of(owner),
        "uid": meta(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def new_pod(kind: str, owner: JsonObject, marks: dict[str, str]) -> JsonObject:
    """Make a pod of the owner's template, with more labels."""
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


async def make_pod(api: ObjectApi, events: Recorder, owner: tuple[str, JsonObject], pod: JsonObject) -> None:
    """Create a pod for its owner (plural and object), and tell of it or of why it cannot be."""
    refusals: list[str] = []
    made = await api.create("pods", pod, refusals)
    if made:
        await events.tell(*owner, "SuccessfulCreate", f"Created pod: {name_of(made)}")
    for message in refusals:
        await events.tell(*owner, "FailedCreate", f"Error creating: {message}", warning=True)


def is_available(pod: JsonObject) -> bool:
    """Say whether a pod is ready and not on its way out."""
    return is_ready(pod) and not meta(pod).get("deletionTimestamp")


def owned_by(owner: JsonObject, objects: list[JsonObject]) -> list[JsonObject]:
    """Give those objects that the owner made."""
    return [obj for obj in objects if meta(owner)["uid"] in owner_uids(obj)]


class ReplicaSets:
    """Keeps as many pods of each ReplicaSet as it asks for."""

    watches: tuple[str, ...] = ("replicasets", "pods")
    stands_for = "kube-controller-manager"
    kind = "ReplicaSet"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._events = Recorder(api, clock, f"{self.kind.lower()}-controller")

    async def reconcile(self) -> float | None:
        """Bring every one in line."""
        plural = self.watches[0]
        owners = await self._api.list(plural)
        pods = await self._api.list("pods") if owners else []
        for owner in owners:
            living = [
                pod for pod in owned_by(owner, pods) if not is_terminal(pod) and not meta(pod).get("deletionTimestamp")
            ]
            missing = int(spec(owner).get("replicas", 1)) - len(living)
            for _ in range(missing):
                await make_pod(self._api, self._events, (plural, owner), new_pod(self.kind, owner, {}))
            # The youngest and unready go first.
            for pod in sorted(living, key=is_ready)[: max(0, -missing)]:
                await self._api.delete("pods", pod)
                await self._events.tell(plural, owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
            ready = sum(map(is_ready, living))
            numbers = {
                "replicas": len(living),
                "fullyLabeledReplicas": len(living),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "observedGeneration": meta(owner).get("generation", 1),
            }
            if any(status(owner).get(key) != value for key, value in numbers.items()):
                await self._api.patch_status(plural, owner, numbers)
        return None


class ReplicationControllers(ReplicaSets):
    """As ReplicaSets, for the older type."""

    watches = ("replicationcontrollers", "pods")
    kind = "ReplicationController"


class Deployments:
    """Keeps one ReplicaSet of each Deployment's current template up, and winds down the older ones."""

    watches = ("deployments", "replicasets")
    stands_for = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "deployment-controller")

    async def reconcile(self) -> float | None:
        """Bring every Deployment in line."""
        sets = await self._api.list("replicasets")
        for deployment in await self._api.list("deployments"):
            if not meta(deployment).get("deletionTimestamp"):
                await self._one(deployment, owned_by(deployment, sets))
        return None

    async def _one(self, deployment: JsonObject, sets: list[JsonObject]) -> None:
        revision = template_hash(spec(deployment)["template"])
        current = next((item for item in sets if labels(item).get(_POD_HASH) == revision), None)
        replicas = int(spec(deployment).get("replicas", 1))
        if current is None:
            made = await self._api.create("replicasets", _replica_set(deployment, revision, len(sets) + 1))
            if made:
                await self._scaled(deployment, made, 0, replicas)
        elif spec(current).get("replicas") != replicas:
            await self._api.patch("replicasets", current, {"spec": {"replicas": replicas}})
            await self._scaled(deployment, current, spec(current).get("replicas", 0), replicas)
        ready = status(current or {}).get("readyReplicas", 0)
        older = [item for item in sets if item is not current]
        for item in older:
            if ready >= replicas and spec(item).get("replicas"):
                await self._api.patch("replicasets", item, {"spec": {"replicas": 0}})
                await self._scaled(deployment, item, spec(item)["replicas"], 0)
        await self._report(deployment, current, older, ready, replicas)

    async def _scaled(self, deployment: JsonObject, of: JsonObject, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {name_of(of)} from {before} to {after}"
        await self._events.tell("deployments", deployment, "ScalingReplicaSet", message)

    async def _report(
        self, deployment: JsonObject, current: JsonObject | None, older: list[JsonObject], ready: int, replicas: int
    ) -> None:
        total = sum(int(status(item).get("replicas", 0)) for item in [*older, *([current] if current else [])])
        all_ready = ready + sum(int(status(item).get("readyReplicas", 0)) for item in older)
        done = ready >= replicas
        numbers: JsonObject = {
            "observedGeneration": meta(deployment).get("generation", 1),
            "replicas": total,
            "updatedReplicas": status(current or {}).get("replicas", 0),
            "readyReplicas": all_ready,
            "availableReplicas": all_ready,
            "unavailableReplicas": max(0, replicas - all_ready),
        }
        if all(status(deployment).get(key) == value for key, value in numbers.items()):
            return
        now = timestamp(self._clock.now())
        told = [
            ("Available", str(done), "MinimumReplicasAvailable" if done else "MinimumReplicasUnavailable"),
            ("Progressing", "True", "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"),
        ]
        numbers["conditions"] = [
            {
                "type": name,
                "status": holds,
                "reason": reason,
                "message": "",
                "lastUpdateTime": now,
                "lastTransitionTime": now,
            }
            for name, holds, reason in told
        ]
        await self._api.patch_status("deployments", deployment, numbers)


def _replica_set(deployment: JsonObject, revision: str, number: int) -> JsonObject:
    template = copied(spec(deployment)["template"])
    details = template.setdefault("metadata", {})
    details["labels"] = {**(details.get("labels") or {}), _POD_HASH: revision}
    selector = copied(spec(deployment)["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _POD_HASH: revision}
    return {
        "metadata": {
            "name": f"{name_of(deployment)}-{revision}",
            "namespace": namespace_of(deployment),
            "labels": details["labels"],
            "annotations": {**annotations_of(deployment), "deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [owner_reference("Deployment", deployment)],
        },
        "spec": {"replicas": spec(deployment).get("replicas", 1), "selector": selector, "template": template},
    }
