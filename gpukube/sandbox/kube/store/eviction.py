"""The eviction API: a pod goes unless a disruption budget says it may not.

Lives here: what a budget allows now, evicting. Must not live here: HTTP, the status of budgets (`disruptions`).

Source: kubernetes pkg/registry/core/pod/storage/eviction.go, pkg/controller/disruption.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.sandbox.kube.store.kinds import CORE
from gpukube.sandbox.kube.store.objects import conditions, labels, meta, name_of, namespace_of, spec, status
from gpukube.sandbox.kube.store.problems import ApiProblem, another_pod
from gpukube.sandbox.kube.store.selectors import matches_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.sandbox.kube.store.objects import JsonObject
    from gpukube.sandbox.kube.store.store import Store

_SCALED = {
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "ReplicationController": "replicationcontrollers",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """What a budget makes of its pods now.

    Attributes:
        expected: Pods that there should be.
        healthy: Pods that are ready and stay.
        needed: Pods that must be.
    """

    expected: int
    healthy: int
    needed: int

    @property
    def spare(self) -> int:
        """Pods that may go."""
        return max(0, self.healthy - self.needed) if self.expected else 0


def covers(budget: JsonObject, pod: JsonObject) -> bool:
    """Say whether a budget is about a pod; one with an empty selector is about all of its namespace."""
    selector = spec(budget).get("selector")
    if namespace_of(budget) != namespace_of(pod) or selector is None:
        return False
    return not any(selector.values()) or matches_selector(labels(pod), selector)


def weigh(budget: JsonObject, pods: Iterable[JsonObject], scale: dict[str, int]) -> Budget:
    """Work out what a budget allows.

    Args:
        budget: The PodDisruptionBudget.
        pods: Those it covers.
        scale: Uid of a controller -> pods that it keeps.
    """
    own = [pod for pod in pods if status(pod).get("phase") not in {"Succeeded", "Failed"}]
    healthy = sum(conditions(pod).get("Ready") == "True" and not meta(pod).get("deletionTimestamp") for pod in own)
    keepers = {_keeper(pod) for pod in own}
    loose = sum(not _keeper(pod) for pod in own)
    expected = sum(scale.get(uid, 0) for uid in keepers if uid) + loose if scale else len(own)
    rules = spec(budget)
    if "minAvailable" in rules:
        least = rules["minAvailable"]
        expected = expected if isinstance(least, str) else len(own)
        return Budget(expected, healthy, _share(least, expected))
    return Budget(expected, healthy, max(0, expected - _share(rules.get("maxUnavailable", 0), expected)))


def _keeper(pod: JsonObject) -> str:
    references = meta(pod).get("ownerReferences") or ()
    return next((str(item["uid"]) for item in references if item.get("controller") and item["kind"] in _SCALED), "")


def _share(value: int | str, of: int) -> int:
    return -(-int(value.rstrip("%")) * of // 100) if isinstance(value, str) else int(value)


def evict(  # noqa: PLR0913 -- the options of the API's eviction, by name
    store: Store, namespace: str, name: str, *, uid: str = "", grace_s: int | None = None, dry_run: bool = False
) -> None:
    """Delete a pod if its budget allows it.

    Raises:
        ApiProblem: 404; 409 where the pod has another uid than the precondition; 429 where a budget would be violated;
            500 where two budgets cover the pod.
    """
    pod = store.get(CORE["pods"], namespace, name)
    if uid and uid != meta(pod)["uid"]:
        raise another_pod(name, uid, meta(pod)["uid"])
    if status(pod).get("phase") in {"Pending", "Succeeded", "Failed"} or meta(pod).get("deletionTimestamp"):
        store.delete(CORE["pods"], namespace, name, grace_s=grace_s, dry_run=dry_run)
        return
    budgets = [item for item in store.all_of(CORE["poddisruptionbudgets"], namespace) if covers(item, pod)]
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiProblem(500, "InternalError", message)
    for budget in budgets:
        _require_spare(store, budget, pod)
    store.delete(CORE["pods"], namespace, name, grace_s=grace_s, dry_run=dry_run)


def _require_spare(store: Store, budget: JsonObject, pod: JsonObject) -> None:
    pods = [item for item in store.all_of(CORE["pods"], namespace_of(pod)) if covers(budget, item)]
    keepers = [obj for plural in _SCALED.values() for obj in store.all_of(CORE[plural], namespace_of(pod))]
    scale = {meta(obj)["uid"]: int(spec(obj).get("replicas", 1)) for obj in keepers}
    found = weigh(budget, pods, scale)
    if conditions(pod).get("Ready") != "True":
        always = spec(budget).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or (found.healthy >= found.needed > 0):
            return
    if found.spare < 1:
        needs = f"needs {found.needed} healthy pods and has {found.healthy} currently"
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {name_of(budget)} {needs}"}
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        raise ApiProblem(429, "TooManyRequests", message, {"causes": [cause]})
