"""Status of objects that count pods: disruption budgets and quotas.

In scope: the counts that `kubectl get pdb` and `kubectl describe quota` show. Out of scope: enforcement (`eviction`,
`admission`).

Source: kubernetes pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.store.admission import usage
from gpukube_sandbox.kube.store.eviction import covers
from gpukube_sandbox.kube.store.objects import conditions, meta, name_of, namespace_of, spec, status
from gpukube_sandbox.kube.store.quantities import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

DELETION_TIMEOUT_S: Final = 120.0
"""Sandbox seconds after which an evicted pod that is not being deleted counts again (DeletionTimeout)."""
_SCALED: Final = ("replicasets", "statefulsets", "replicationcontrollers", "deployments")


class _SyncFailed(Exception):
    """A budget's counts cannot be computed."""


class Disruptions:
    """Keeps the status of budgets and quotas up to date."""

    watches = ("poddisruptionbudgets", "resourcequotas", "pods")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def reconcile(self) -> float | None:
        """Update the status of every budget and quota; return the time when an evicted pod counts again."""
        budgets = await self._api.list("poddisruptionbudgets")
        quotas = await self._api.list("resourcequotas")
        if not budgets and not quotas:
            return None
        pods = await self._api.list("pods")
        owners = {meta(obj)["uid"]: obj for plural in _SCALED for obj in await self._api.list(plural)}
        due = []
        for budget in budgets:
            own = [pod for pod in pods if covers(budget, pod)]
            due += [time for time in [await self._count(budget, own, owners)] if time is not None]
        for quota in quotas:
            hard: dict[str, str] = spec(quota).get("hard") or {}
            used = usage([pod for pod in pods if namespace_of(pod) == namespace_of(quota)], hard)
            amounts = {name: canonical(str(amount)) for name, amount in used.items()}
            await self._write("resourcequotas", quota, {"hard": hard, "used": amounts})
        return min(due, default=None)

    async def _count(
        self, budget: JsonObject, pods: Sequence[JsonObject], owners: Mapping[str, JsonObject]
    ) -> float | None:
        try:
            expected, needed = _expected(spec(budget), pods, owners)
        except _SyncFailed as failed:
            condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": str(failed)}
            await self._write("poddisruptionbudgets", budget, {"disruptionsAllowed": 0, "conditions": [condition]})
            return None
        now, noted = self._clock.now(), status(budget).get("disruptedPods") or {}
        alive = {name_of(pod) for pod in pods if not meta(pod).get("deletionTimestamp")}
        left = {name: _seconds(since) + DELETION_TIMEOUT_S - now for name, since in noted.items() if name in alive}
        left = {name: seconds for name, seconds in left.items() if seconds > 0}
        healthy = sum(name_of(pod) in alive - left.keys() and conditions(pod).get("Ready") == "True" for pod in pods)
        allowed = max(0, healthy - needed) if expected else 0
        numbers: JsonObject = {
            "currentHealthy": healthy,
            "desiredHealthy": needed,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": meta(budget).get("generation", 1),
        }
        condition = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "message": ""}
        condition |= {"reason": "SufficientPods" if allowed else "InsufficientPods"}
        numbers["conditions"] = [condition]
        if gone := [name for name in noted if name not in left]:
            numbers["disruptedPods"] = dict.fromkeys(gone)  # null deletes them in a merge patch
        await self._write("poddisruptionbudgets", budget, numbers)
        return now + min(left.values()) if left else None

    async def _write(self, plural: str, obj: JsonObject, numbers: JsonObject) -> None:
        """Patch the differences; a condition keeps its last transition time."""
        known = status(obj)
        for condition in numbers.get("conditions") or ():
            before: JsonObject = next(iter(known.get("conditions") or ()), {})
            same = before.get("status") == condition["status"]
            condition["lastTransitionTime"] = before["lastTransitionTime"] if same else timestamp(self._clock.now())
        if any(known.get(key) != value for key, value in numbers.items()):
            await self._api.patch_status(plural, obj, numbers)


def _expected(rules: JsonObject, pods: Sequence[JsonObject], owners: Mapping[str, JsonObject]) -> tuple[int, int]:
    """Return the number of expected pods and of those that must be healthy."""
    if "maxUnavailable" in rules:
        expected = _scale(pods, owners)
        return expected, max(0, expected - _share(rules["maxUnavailable"], expected))
    needed = rules.get("minAvailable", 1)
    expected = _scale(pods, owners) if isinstance(needed, str) else len(pods)
    return expected, _share(needed, expected)


def _scale(pods: Sequence[JsonObject], owners: Mapping[str, JsonObject]) -> int:
    """Return the sum of replicas of the pods' controllers; pods without a controller do not count."""
    found: dict[str, int] = {}
    for pod in pods:
        reference = _controller(pod)
        if reference is None:
            continue
        if reference["kind"] not in {"ReplicaSet", "StatefulSet", "ReplicationController"}:
            plural = f"{reference['kind'].lower()}s"
            group = str(reference.get("apiVersion", "")).rpartition("/")[0]
            message = f"{plural}.{group} does not implement the scale subresource"
            raise _SyncFailed(message)
        keeper = owners.get(reference["uid"])
        above = _controller(keeper) if keeper else None
        if above and above["kind"] == "Deployment":
            keeper = owners.get(above["uid"])
        if keeper is None:
            message = f'found no controllers for pod "{name_of(pod)}"'
            raise _SyncFailed(message)
        found[meta(keeper)["uid"]] = int(spec(keeper).get("replicas", 1))
    return sum(found.values())


def _controller(obj: JsonObject) -> JsonObject | None:
    return next((item for item in meta(obj).get("ownerReferences") or () if item.get("controller")), None)


def _share(value: int | str, of: int) -> int:
    return -(-int(value.rstrip("%")) * of // 100) if isinstance(value, str) else int(value)


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
