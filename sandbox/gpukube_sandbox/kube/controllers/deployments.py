"""Deployments: a ReplicaSet per template, and the rollout from older ones to the current one.

In scope: strategies, proportional scaling, revisions, status. Out of scope: pods (`replicas`).

Source: kubernetes pkg/controller/deployment/{sync,rolling,recreate,progress}.go, util/deployment_util.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.replicas import owned_by, owner_reference, template_hash
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_terminal
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
    from collections.abc import Sequence

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_POD_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_HISTORY = "deployment.kubernetes.io/revision-history"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {_REVISION, _HISTORY, _DESIRED, _MAX_REPLICAS, "kubectl.kubernetes.io/last-applied-configuration"}
    | {"deprecated.deployment.rollback.to"}
)
_POLL_S = 1.0
"""Sandbox seconds between checks while Recreate waits for the last old pod: its deletion changes no ReplicaSet."""
_ENDLESS = 2**31 - 1


@dataclass(slots=True)
class _Roll:
    """One Deployment during one reconciliation.

    Attributes:
        current: ReplicaSet of the template; None before it is created.
        older: The other ReplicaSets, oldest first.
        sizes: uid of a ReplicaSet -> its desired replicas, including changes of this reconciliation.
        conditions: The Deployment's conditions, including changes of this reconciliation.
    """

    deployment: JsonObject
    current: JsonObject | None
    older: list[JsonObject]
    sizes: dict[str, int]
    conditions: list[JsonObject] = field(default_factory=list)

    @property
    def replicas(self) -> int:
        return int(spec(self.deployment).get("replicas", 1))

    @property
    def rolls(self) -> bool:
        return bool(_strategy(self.deployment).get("type", "RollingUpdate") == "RollingUpdate")

    @property
    def sets(self) -> list[JsonObject]:
        return [*self.older, *([self.current] if self.current else [])]

    @property
    def active(self) -> list[JsonObject]:
        return [item for item in self.sets if self.size(item)]

    @property
    def surge(self) -> int:
        return rollout_bounds(self.deployment)[0] if self.rolls else 0

    @property
    def max_unavailable(self) -> int:
        """Return the maximum number of unavailable pods."""
        return min(rollout_bounds(self.deployment)[1], self.replicas) if self.rolls else 0

    def size(self, of: JsonObject) -> int:
        return self.sizes[meta(of)["uid"]]

    def condition(self, name: str) -> JsonObject:
        return next((item for item in self.conditions if item["type"] == name), {})

    def total(self, key: str) -> int:
        """Return the sum of a status field over all ReplicaSets."""
        return sum(int(status(item).get(key) or 0) for item in self.sets)


def _strategy(deployment: JsonObject) -> JsonObject:
    return spec(deployment).get("strategy") or {}


def rollout_bounds(deployment: JsonObject) -> tuple[int, int]:
    """Return maximum surge and maximum unavailable pods; at least one is above 0, or the rollout would be stuck.

    Percentages are rounded up for surge and down for unavailable.
    """
    rolling, replicas = _strategy(deployment).get("rollingUpdate") or {}, int(spec(deployment).get("replicas", 1))
    surge = -(-_hundredths(rolling.get("maxSurge", 0), replicas) // 100)
    unavailable = _hundredths(rolling.get("maxUnavailable", 0), replicas) // 100
    return surge, unavailable if surge or unavailable else 1


def _hundredths(value: int | str, of: int) -> int:
    return value * 100 if isinstance(value, int) else int(value.rstrip("%")) * of


class Deployments:
    """Scales up the ReplicaSet of each Deployment's current template, and scales down older ones by its strategy."""

    watches = ("deployments", "replicasets")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "deployment-controller")

    async def reconcile(self) -> float | None:
        """Reconcile every Deployment; return the time of the next check."""
        sets = await self._api.list("replicasets")
        due: list[float] = []
        for deployment in await self._api.list("deployments"):
            if not meta(deployment).get("deletionTimestamp"):
                due += await self._reconcile_one(deployment, owned_by(deployment, sets))
        return min(due, default=None)

    async def _reconcile_one(self, deployment: JsonObject, sets: list[JsonObject]) -> list[float]:
        current = _current(deployment, sets)
        older = sorted((item for item in sets if item is not current), key=_age)
        sizes = {meta(item)["uid"]: int(spec(item).get("replicas", 1)) for item in sets}
        roll = _Roll(deployment, current, older, sizes, copied(status(deployment).get("conditions") or []))
        paused = bool(spec(deployment).get("paused"))
        self._pause(roll, paused=paused)
        if current:
            await self._number(roll, current)
        due: list[float] = []
        if paused or any(_desired(item) not in {None, roll.replicas} for item in roll.active):
            await self._resize(roll)
            return await self._report(roll, checks_progress=False)
        if roll.rolls:
            await self._roll(roll)
        elif not await self._recreate(roll):
            due.append(self._clock.now() + _POLL_S)
        return [*due, *await self._report(roll, checks_progress=True)]

    # -- strategies

    async def _recreate(self, roll: _Roll) -> bool:
        """Delete all old pods, then create the new ones; return whether the old ones are gone."""
        scaled = [await self._scale(roll, item, 0) for item in roll.older]
        if any(scaled) or any(status(item).get("replicas") for item in roll.older) or await self._has_old_pods(roll):
            return False
        made = roll.current or await self._make(roll)
        if made:
            await self._scale(roll, made, roll.replicas)
        await self._delete_history(roll)
        return True

    async def _has_old_pods(self, roll: _Roll) -> bool:
        uids = {meta(item)["uid"] for item in roll.older}
        if not uids:
            return False
        pods = await self._api.list("pods", namespace_of(roll.deployment))
        return any(uids & owner_uids(pod) and not is_terminal(pod) for pod in pods)

    async def _roll(self, roll: _Roll) -> None:
        made = roll.current or await self._make(roll)
        if made is None:
            return
        room = roll.replicas + roll.surge - sum(roll.sizes.values())
        desired = min(roll.replicas, roll.size(made) + max(0, room))
        if await self._scale(roll, made, desired) or await self._scale_down_old(roll, made):
            return
        await self._delete_history(roll)

    async def _scale_down_old(self, roll: _Roll, current: JsonObject) -> bool:
        """Delete old pods: first those that are unavailable, then as many as the strategy allows."""
        minimum = roll.replicas - roll.max_unavailable
        coming = roll.size(current) - _available(current)
        unneeded = sum(roll.sizes.values()) - minimum - coming
        if unneeded <= 0 or not any(map(roll.size, roll.older)):
            return False
        gone = 0
        for item in roll.older:
            down = min(unneeded - gone, roll.size(item) - _available(item))
            if down > 0:
                await self._scale(roll, item, roll.size(item) - down)
                gone += down
        spare = roll.total("availableReplicas") - minimum
        for item in roll.older:
            down = min(spare, roll.size(item))
            if down > 0:
                await self._scale(roll, item, roll.size(item) - down)
                spare, gone = spare - down, gone + down
        return gone > 0

    async def _resize(self, roll: _Roll) -> None:
        """Scale all ReplicaSets proportionally to changed or paused replicas, so that the rollout does not speed up."""
        active = roll.active
        if len(active) <= 1:
            newest = active or ([roll.current] if roll.current else roll.older[-1:])
            for item in newest:
                await self._scale(roll, item, roll.replicas, always=True)
            return
        current = roll.current
        if current and roll.size(current) == _desired(current) == roll.replicas == _available(current):
            for item in roll.older:
                await self._scale(roll, item, 0)
        elif roll.rolls:
            allowed = roll.replicas + roll.surge if roll.replicas else 0
            for item, size in _proportions(roll, active, allowed):
                await self._scale(roll, item, size, always=True)

    # -- ReplicaSets

    async def _make(self, roll: _Roll) -> JsonObject | None:
        deployment = roll.deployment
        room = roll.replicas + roll.surge - sum(roll.sizes.values())
        size = max(0, min(roll.replicas, room)) if roll.rolls else roll.replicas
        refusals: list[str] = []
        made = await self._api.create("replicasets", _replica_set(roll, size), refusals)
        for message in refusals if made is None else ():
            text = f"Failed to create new replica set: {message}"
            self._set(roll, "Progressing", "False", "ReplicaSetCreateError", text)
            await self._events.record("deployments", deployment, "ReplicaSetCreateError", text, warning=True)
        if made is None:
            return None
        roll.current, roll.sizes[meta(made)["uid"]] = made, size
        if size:
            await self._record_scaled(roll, made, 0, size)
        await self._mark(deployment, annotations_of(made)[_REVISION])
        self._set(roll, "Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name_of(made)}"')
        return made

    async def _number(self, roll: _Roll, current: JsonObject) -> None:
        """Give the current ReplicaSet the highest revision, so that a rollback target becomes the newest."""
        marks, number = annotations_of(current), _next_revision(roll)
        desired = {key: value for key, value in annotations_of(roll.deployment).items() if key not in _NOT_COPIED}
        known = int(marks.get(_REVISION) or 0)
        if known < number:
            desired[_REVISION] = str(number)
            if known:
                desired[_HISTORY] = ",".join(filter(None, [marks.get(_HISTORY, ""), str(known)]))
        min_ready = spec(roll.deployment).get("minReadySeconds", 0)
        change: JsonObject = {}
        if any(marks.get(key) != value for key, value in desired.items()):
            change["metadata"] = {"annotations": desired}
        if spec(current).get("minReadySeconds", 0) != min_ready:
            change["spec"] = {"minReadySeconds": min_ready}
        if change:
            await self._api.patch("replicasets", current, change)
        await self._mark(roll.deployment, str(max(known, number)))
        if not roll.condition("Progressing"):
            self._set(roll, "Progressing", "True", "FoundNewReplicaSet", f'Found new replica set "{name_of(current)}"')

    async def _mark(self, deployment: JsonObject, revision: str) -> None:
        if annotations_of(deployment).get(_REVISION) != revision:
            await self._api.patch("deployments", deployment, {"metadata": {"annotations": {_REVISION: revision}}})

    async def _scale(self, roll: _Roll, of: JsonObject, size: int, *, always: bool = False) -> bool:
        """Scale a ReplicaSet and return whether its size changed; `always` also updates its annotations."""
        before = roll.size(of)
        noted = _noted(roll)
        if before == size and (not always or noted.items() <= annotations_of(of).items()):
            return False
        await self._api.patch("replicasets", of, {"metadata": {"annotations": noted}, "spec": {"replicas": size}})
        roll.sizes[meta(of)["uid"]] = size
        if before != size:
            await self._record_scaled(roll, of, before, size)
        return before != size

    async def _record_scaled(self, roll: _Roll, of: JsonObject, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {name_of(of)} from {before} to {after}"
        await self._events.record("deployments", roll.deployment, "ScalingReplicaSet", message)

    async def _delete_history(self, roll: _Roll) -> None:
        """Delete the oldest ReplicaSets beyond revisionHistoryLimit once the rollout is complete."""
        kept = int(spec(roll.deployment).get("revisionHistoryLimit", 10))
        if not _is_complete(roll, status(roll.deployment)):
            return
        by_revision = sorted(roll.older, key=_revision)
        for item in by_revision[: max(0, len(by_revision) - kept)]:
            if not roll.size(item) and not status(item).get("replicas"):
                await self._api.delete("replicasets", item)

    # -- status

    def _pause(self, roll: _Roll, *, paused: bool) -> None:
        reason = roll.condition("Progressing").get("reason")
        if reason == "ProgressDeadlineExceeded":
            return
        if paused and reason != "DeploymentPaused":
            self._set(roll, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
        elif not paused and reason == "DeploymentPaused":
            self._set(roll, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")

    async def _report(self, roll: _Roll, *, checks_progress: bool) -> list[float]:
        """Update the status; return when the rollout exceeds its deadline."""
        available, current = roll.total("availableReplicas"), roll.current or {}
        found: JsonObject = {
            "observedGeneration": meta(roll.deployment).get("generation", 1),
            "replicas": roll.total("replicas"),
            "updatedReplicas": int(status(current).get("replicas") or 0),
            "readyReplicas": roll.total("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(roll.sizes.values()) - available),
        }
        if available >= roll.replicas - roll.max_unavailable:
            text = "Deployment has minimum availability."
            self._set(roll, "Available", "True", "MinimumReplicasAvailable", text)
        else:
            text = "Deployment does not have minimum availability."
            self._set(roll, "Available", "False", "MinimumReplicasUnavailable", text)
        due = self._check_progress(roll, found) if checks_progress else []
        found["conditions"] = roll.conditions
        if any(status(roll.deployment).get(key) != value for key, value in found.items()):
            await self._api.patch_status("deployments", roll.deployment, found)
        return due

    def _check_progress(self, roll: _Roll, found: JsonObject) -> list[float]:
        """Update the Progressing condition; return when the rollout exceeds its deadline."""
        deadline = spec(roll.deployment).get("progressDeadlineSeconds", _ENDLESS)
        known = roll.condition("Progressing")
        if deadline == _ENDLESS:
            roll.conditions = [item for item in roll.conditions if item is not known]
            return []
        if found["replicas"] == found["updatedReplicas"] and known.get("reason") == "NewReplicaSetAvailable":
            return []
        named = f'ReplicaSet "{name_of(roll.current)}"' if roll.current else f'Deployment "{name_of(roll.deployment)}"'
        if _is_complete(roll, found):
            text = f"{named} has successfully progressed."
            self._set(roll, "Progressing", "True", "NewReplicaSetAvailable", text)
            return []
        if _progressed(status(roll.deployment), found):
            self._set(roll, "Progressing", "True", "ReplicaSetUpdated", f"{named} is progressing.", renews=True)
            known = roll.condition("Progressing")
        if not known or known["reason"] in {"NewReplicaSetAvailable", "ProgressDeadlineExceeded"}:
            return []
        ends = datetime.fromisoformat(known["lastUpdateTime"]).timestamp() + int(deadline)
        if ends < self._clock.now():
            text = f"{named} has timed out progressing."
            self._set(roll, "Progressing", "False", "ProgressDeadlineExceeded", text)
            return []
        return [ends + 1]

    def _set(self, roll: _Roll, name: str, *state: str, renews: bool = False) -> None:
        """Set a condition's status, reason, and message; keep one with the same status and reason unless renewed."""
        known = roll.condition(name)
        value, reason, message = state
        if (known.get("status"), known.get("reason")) == (value, reason) and not renews:
            return
        now = timestamp(self._clock.now())
        since = known["lastTransitionTime"] if known.get("status") == value else now
        found = {"type": name, "status": value, "reason": reason, "message": message}
        others = [item for item in roll.conditions if item["type"] != name]
        roll.conditions = [*others, {**found, "lastUpdateTime": now, "lastTransitionTime": since}]


def _current(deployment: JsonObject, sets: list[JsonObject]) -> JsonObject | None:
    """Return the ReplicaSet of the Deployment's template; clients that roll back may add empty fields to it."""
    template = spec(deployment)["template"]
    revision = template_hash(template)
    found = next((item for item in sets if labels(item).get(_POD_HASH) == revision), None)
    if found or not sets:
        return found
    desired = _content(template)
    return next((item for item in sorted(sets, key=_age) if _content(spec(item)["template"]) == desired), None)


def _content(template: JsonObject) -> object:
    """Return the part of a template that pods inherit: clients also write other metadata, such as a generation of 0."""
    details = meta(template)
    marks = {key: value for key, value in (details.get("labels") or {}).items() if key != _POD_HASH}
    return _without_empty([marks, details.get("annotations") or {}, spec(template)])


def _without_empty(tree: object) -> object:
    """Return a tree without empty and null values."""
    if isinstance(tree, dict):
        return {key: found for key, value in tree.items() if (found := _without_empty(value)) not in ({}, [], None)}
    return [_without_empty(item) for item in tree] if isinstance(tree, list) else tree


def _is_complete(roll: _Roll, found: JsonObject) -> bool:
    counts = {found.get(key) or 0 for key in ("updatedReplicas", "replicas", "availableReplicas")}
    return counts == {roll.replicas} and found.get("observedGeneration", 0) >= meta(roll.deployment).get(
        "generation", 1
    )


def _progressed(before: JsonObject, now: JsonObject) -> bool:
    def old(of: JsonObject) -> int:
        return int(of.get("replicas") or 0) - int(of.get("updatedReplicas") or 0)

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old(now) < old(before) or any(now[key] > (before.get(key) or 0) for key in grown)


def _proportions(roll: _Roll, active: Sequence[JsonObject], allowed: int) -> list[tuple[JsonObject, int]]:
    """Distribute the allowed number in the previous proportions; the largest ReplicaSet gets the rounding remainder."""
    more = allowed - sum(map(roll.size, active))
    by_age = sorted(active, key=_age, reverse=more > 0)
    by_size = sorted(by_age, key=roll.size, reverse=True)
    added = 0
    found: list[tuple[JsonObject, int]] = []
    for item in by_size:
        share, left = _share(roll, item, allowed) if more else 0, more - added
        share = min(share, left) if more > 0 else max(share, left)
        added += share
        found.append((item, roll.size(item) + share))
    largest, size = found[0]
    return [(largest, max(0, size + more - added)), *found[1:]]


def _share(roll: _Roll, of: JsonObject, allowed: int) -> int:
    """Return the size change that keeps a ReplicaSet's proportion."""
    size = roll.size(of)
    if not roll.replicas:
        return -size
    before = int(annotations_of(of).get(_MAX_REPLICAS) or 0) or int(status(roll.deployment).get("replicas") or 0)
    return int(size * allowed / before + 0.5) - size if before else 0


def _available(item: JsonObject) -> int:
    return int(status(item).get("availableReplicas") or 0)


def _desired(item: JsonObject) -> int | None:
    found = annotations_of(item).get(_DESIRED)
    return int(found) if found else None


def _revision(item: JsonObject) -> int:
    return int(annotations_of(item).get(_REVISION) or 0)


def _age(item: JsonObject) -> tuple[str, str]:
    return str(meta(item).get("creationTimestamp", "")), name_of(item)


def _next_revision(roll: _Roll) -> int:
    return max(map(_revision, roll.older), default=0) + 1


def _noted(roll: _Roll) -> dict[str, str]:
    return {_DESIRED: str(roll.replicas), _MAX_REPLICAS: str(roll.replicas + roll.surge)}


def _replica_set(roll: _Roll, size: int) -> JsonObject:
    deployment = roll.deployment
    revision = template_hash(spec(deployment)["template"])
    template = copied(spec(deployment)["template"])
    details = template.setdefault("metadata", {})
    details["labels"] = {**(details.get("labels") or {}), _POD_HASH: revision}
    selector = copied(spec(deployment)["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _POD_HASH: revision}
    marks = {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}
    min_ready = spec(deployment).get("minReadySeconds")
    return {
        "metadata": {
            "name": f"{name_of(deployment)}-{revision}",
            "namespace": namespace_of(deployment),
            "labels": details["labels"],
            "annotations": {**marks, **_noted(roll), _REVISION: str(_next_revision(roll))},
            "ownerReferences": [owner_reference("Deployment", deployment)],
        },
        "spec": {"replicas": size, "selector": selector, "template": template}
        | ({"minReadySeconds": min_ready} if min_ready else {}),
    }
