"""The eviction API: deletes a pod unless a disruption budget forbids it.

In scope: evicting, based on the status of budgets. Out of scope: HTTP, computing that status (`disruptions`).

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import conditions, labels, meta, name_of, namespace_of, spec, status
from gpukube_sandbox.kube.store.problems import ApiProblem, eviction_precondition_failed
from gpukube_sandbox.kube.store.selectors import matches_selector

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store

MAX_DISRUPTED: Final = 2000
"""Maximum number of evictions per budget that its controller has not processed yet."""
_LATER_S: Final = 10
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def covers(budget: JsonObject, pod: JsonObject) -> bool:
    """Return whether a budget covers a pod; an empty selector covers all pods of the namespace."""
    selector = spec(budget).get("selector")
    if namespace_of(budget) != namespace_of(pod) or selector is None:
        return False
    return not any(selector.values()) or matches_selector(labels(pod), selector)


def evict(  # noqa: PLR0913 -- the options of the API's eviction, by name
    store: Store, namespace: str, name: str, *, uid: str = "", grace_s: int | None = None, dry_run: bool = False
) -> None:
    """Delete a pod if its budget allows it.

    Raises:
        ApiProblem: 404; 409 if the pod's uid does not match the precondition; 429 if the budget would be violated, or
            its status is older than its spec; 403 if its status rules out evictions; 500 if two budgets cover the pod.
    """
    pod = store.get(CORE["pods"], namespace, name)
    if not _skips_budget(pod):
        budgets = [item for item in store.all_of(CORE["poddisruptionbudgets"], namespace) if covers(item, pod)]
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiProblem(500, "", message)
        for budget in budgets:
            if not _is_unhealthy_and_free(budget, pod):
                _charge(store, budget, pod, dry_run=dry_run)
    if uid and uid != meta(pod)["uid"]:  # the budget has been charged already, as upstream
        raise eviction_precondition_failed(name, uid, meta(pod)["uid"])
    if not dry_run:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        condition |= {"message": "Eviction API: evicting", "lastTransitionTime": store.now()}
        others = [item for item in status(pod).get("conditions") or () if item["type"] != condition["type"]]
        changed = {**pod, "status": {**status(pod), "conditions": [*others, condition]}}
        store.update(CORE["pods"], changed, part="status")
    store.delete(CORE["pods"], namespace, name, grace_s=grace_s, dry_run=dry_run)


def _skips_budget(pod: JsonObject) -> bool:
    return status(pod).get("phase") in {"Pending", "Succeeded", "Failed"} or bool(meta(pod).get("deletionTimestamp"))


def _is_unhealthy_and_free(budget: JsonObject, pod: JsonObject) -> bool:
    if conditions(pod).get("Ready") == "True":
        return False
    if spec(budget).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    needed = status(budget).get("desiredHealthy", 0)
    return bool(status(budget).get("currentHealthy", 0) >= needed > 0)


def _charge(store: Store, budget: JsonObject, pod: JsonObject, *, dry_run: bool) -> None:
    """Use one of the evictions that a budget allows, and record the pod for its controller."""
    name, found = name_of(budget), status(budget)
    allowed, noted = found.get("disruptionsAllowed", 0), found.get("disruptedPods") or {}
    if found.get("observedGeneration", 0) < meta(budget).get("generation", 1):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _LATER_S)
    if allowed < 0:
        raise _stuck(name, "pdb disruptions allowed is negative")
    if len(noted) > MAX_DISRUPTED:
        raise _stuck(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if not allowed:
        has = f"{found.get('desiredHealthy', 0)} healthy pods and has {found.get('currentHealthy', 0)} currently"
        raise _refused(f"The disruption budget {name} needs {has}")
    if not dry_run:
        left = {**found, "disruptionsAllowed": allowed - 1, "disruptedPods": {**noted, name_of(pod): store.now()}}
        store.update(CORE["poddisruptionbudgets"], {**budget, "status": left}, part="status")


def _refused(cause: str, retry_after_s: int = 0) -> ApiProblem:
    details: JsonObject = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    details |= {"retryAfterSeconds": retry_after_s} if retry_after_s else {}
    return ApiProblem(429, "TooManyRequests", _VIOLATES, details)


def _stuck(name: str, why: str) -> ApiProblem:
    message = f'poddisruptionbudgets.policy "{name}" is forbidden: {why}'
    return ApiProblem(403, "Forbidden", message, {"name": name, "group": "policy", "kind": "poddisruptionbudget"})
