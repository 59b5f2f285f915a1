"""Deployments, ReplicaSets and Jobs: controllers that keep a number of pods.

Lives here: pods made from templates, roll-outs by a new ReplicaSet, Jobs that run to their end. Must not live here:
DaemonSets, placing or running pods.
"""

from __future__ import annotations

import copy
import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube.sandbox.clock import timestamp
from gpukube.sandbox.kube.controllers.scheduling import is_ready, is_terminal
from gpukube.sandbox.kube.store.objects import (
    annotations_of,
    labels,
    meta,
    name_of,
    namespace_of,
    owner_uids,
    spec,
    status,
)

if TYPE_CHECKING:
    from gpukube.sandbox.clock import Clock
    from gpukube.sandbox.kube.store.objectapi import ObjectApi
    from gpukube.sandbox.kube.store.objects import JsonObject

_POD_HASH = "pod-template-hash"
_API_VERSIONS = {"DaemonSet": "apps/v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1"}


def template_hash(template: JsonObject) -> str:
    """Name a pod template by its content."""
    return hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:10]


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
    template = copy.deepcopy(spec(owner)["template"])
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


def is_available(pod: JsonObject) -> bool:
    """Say whether a pod is ready and not on its way out."""
    return is_ready(pod) and not meta(pod).get("deletionTimestamp")


def owned_by(owner: JsonObject, objects: list[JsonObject]) -> list[JsonObject]:
    """Give those objects that the owner made."""
    return [obj for obj in objects if meta(owner)["uid"] in owner_uids(obj)]


class ReplicaSets:
    """Keeps as many pods of each ReplicaSet as it asks for."""

    watches = ("replicasets", "pods")
    stands_for = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def reconcile(self) -> float | None:
        """Bring every ReplicaSet in line."""
        pods = await self._api.list("pods")
        for owner in await self._api.list("replicasets"):
            living = [
                pod for pod in owned_by(owner, pods) if not is_terminal(pod) and not meta(pod).get("deletionTimestamp")
            ]
            missing = int(spec(owner).get("replicas", 1)) - len(living)
            for _ in range(missing):
                await self._api.create("pods", new_pod("ReplicaSet", owner, {}))
            # The youngest and unready go first.
            for pod in sorted(living, key=is_ready)[: max(0, -missing)]:
                await self._api.delete("pods", pod)
            ready = sum(map(is_ready, living))
            numbers = {
                "replicas": len(living),
                "fullyLabeledReplicas": len(living),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "observedGeneration": meta(owner).get("generation", 1),
            }
            if any(status(owner).get(key) != value for key, value in numbers.items()):
                await self._api.patch_status("replicasets", owner, numbers)
        return None


class Deployments:
    """Keeps one ReplicaSet of each Deployment's current template up, and winds down the older ones."""

    watches = ("deployments", "replicasets")
    stands_for = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

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
            await self._api.create("replicasets", _replica_set(deployment, revision, len(sets) + 1))
        elif spec(current).get("replicas") != replicas:
            await self._api.patch("replicasets", current, {"spec": {"replicas": replicas}})
        ready = status(current or {}).get("readyReplicas", 0)
        older = [item for item in sets if item is not current]
        for item in older:
            if ready >= replicas and spec(item).get("replicas"):
                await self._api.patch("replicasets", item, {"spec": {"replicas": 0}})
        await self._report(deployment, current, older, ready, replicas)

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
    template = copy.deepcopy(spec(deployment)["template"])
    details = template.setdefault("metadata", {})
    details["labels"] = {**(details.get("labels") or {}), _POD_HASH: revision}
    selector = copy.deepcopy(spec(deployment)["selector"])
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


class Jobs:
    """Runs each Job's pods until enough have succeeded or too many have failed."""

    watches = ("jobs", "pods")
    stands_for = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def reconcile(self) -> float | None:
        """Bring every Job one step on; gives the time at which the next deadline passes."""
        pods = await self._api.list("pods")
        due: list[float] = []
        for job in await self._api.list("jobs"):
            if meta(job).get("deletionTimestamp"):
                continue
            ended = _ended(job)
            if ended is None:
                due += await self._one(job, owned_by(job, pods))
            elif (kept := spec(job).get("ttlSecondsAfterFinished")) is not None:
                due += await self._expire(job, owned_by(job, pods), ended + int(kept))
        return min(due, default=None)

    async def _expire(self, job: JsonObject, pods: list[JsonObject], moment: float) -> list[float]:
        """Remove a finished Job and its pods when their time has come."""
        if self._clock.now() < moment:
            return [moment]
        for pod in pods:
            await self._api.delete("pods", pod)
        await self._api.delete("jobs", job)
        return []

    async def _one(self, job: JsonObject, pods: list[JsonObject]) -> list[float]:
        phases = [status(pod).get("phase") for pod in pods]
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        active = len(pods) - succeeded - failed
        wanted, now = int(spec(job).get("completions") or 1), timestamp(self._clock.now())
        numbers: JsonObject = {"active": active, "succeeded": succeeded, "failed": failed}
        numbers["startTime"] = status(job).get("startTime") or now
        limit = spec(job).get("activeDeadlineSeconds")
        deadline = None if limit is None else _seconds(numbers["startTime"]) + int(limit)
        if succeeded >= wanted:
            numbers["conditions"] = [_finished("Complete", "CompletionsReached", now)]
            numbers["completionTime"] = now
        elif failed > int(spec(job).get("backoffLimit", 6)):
            numbers["conditions"] = [_finished("Failed", "BackoffLimitExceeded", now)]
        elif deadline is not None and self._clock.now() >= deadline:
            numbers["conditions"] = [_finished("Failed", "DeadlineExceeded", now)]
            for pod in pods:
                await self._api.delete("pods", pod)
        elif not spec(job).get("suspend"):
            for _ in range(min(int(spec(job).get("parallelism", 1)), wanted - succeeded) - active):
                await self._api.create("pods", new_pod("Job", job, {}))
        if any(status(job).get(key) != value for key, value in numbers.items()):
            await self._api.patch_status("jobs", job, numbers)
        return [] if deadline is None or "conditions" in numbers else [deadline]


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _ended(job: JsonObject) -> float | None:
    """Give the moment a Job finished; None while it has not."""
    for item in status(job).get("conditions") or ():
        if item["type"] in {"Complete", "Failed"} and item["status"] == "True":
            return _seconds(item["lastTransitionTime"])
    return None


def _finished(kind: str, reason: str, now: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "",
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }
