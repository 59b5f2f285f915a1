"""Decides what happens to each pod when its node is drained, and why; pure.

In scope: the rules. Out of scope: reading pods and budgets (reading), evicting (engine.change.draining).

Sources: kubernetes pkg/registry/core/pod/storage/eviction.go (order of judgment), pkg/controller/disruption
(numbers of a budget); k8s.io/kubectl pkg/drain/filters.go (which pods); karpenter pkg/utils/pdb (budgets that block).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.drain.pods import CAPI_DRAIN, DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED, go_duration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpukube.cluster.drain.pods import DisruptionBudget, Gang, NodePod

Way = Literal["stays", "leaving", "free", "budget", "waits", "never"]
"""stays: a drain skips it. leaving: it is being deleted. free: no budget covers it, or none applies. budget: its budget
allows the eviction now. waits: its budget will allow it once other pods are ready again. never: its budget will not
allow it without a change by the user."""

_STARTUP_S: Final = 60.0
"""Assumed startup time of a replacement pod if no pod of the budget shows the actual one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a drain does with a pod.

    Attributes:
        way: See Way.
        why: What blocks it, in one line; "" if nothing does.
        fix: What unblocks it; "" if no action is needed.
        budgets: Disruption budgets that cover it, "namespace/name".
        needs: Reasons why it leaves only with --allow-disruption.
        held: Whether an annotation or label requests to wait for a time, or until the pod has ended.
    """

    pod: NodePod
    way: Way
    why: str = ""
    fix: str = ""
    budgets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    held: bool = False

    @property
    def leaves(self) -> bool:
        """Whether the pod must be gone before its pool is empty."""
        return self.way != "stays"


@dataclass(frozen=True, slots=True)
class Delay:
    """A budget that allows evictions only in batches.

    Attributes:
        pods: Number of pods that it covers and that must leave.
        allowed: Number of pods that may be evicted now.
        seconds: Estimated time to evict all of them.
    """

    budget: str
    pods: int
    allowed: int
    seconds: float


def judge(
    pods: Iterable[NodePod],
    budgets: Iterable[DisruptionBudget],
    now: float,
    *,
    staying: Collection[str] = (),
    allow_disruption: bool = False,
) -> tuple[Verdict, ...]:
    """Return a verdict for each pod on nodes that are about to be drained.

    Args:
        pods: All pods of the nodes.
        budgets: Disruption budgets of their namespaces.
        now: Seconds since the epoch.
        staying: Names of nodes annotated so that no autoscaler may remove them.
        allow_disruption: Whether to evict pods regardless of annotations on them and their nodes.
    """
    known = tuple(budgets)
    verdicts = (_judged(pod, [b for b in known if b.covers(pod)]) for pod in pods)
    return tuple(verdict if allow_disruption else _signed(verdict, now, staying) for verdict in verdicts)


def _judged(pod: NodePod, budgets: Sequence[DisruptionBudget]) -> Verdict:
    named = tuple(str(budget) for budget in budgets)
    if pod.stays:
        return Verdict(pod=pod, way="stays")
    if pod.terminating:
        return Verdict(pod=pod, way="leaving", why="it is being deleted")
    if pod.phase == "Pending" or not budgets:  # evicting a pod that is not running yet skips budgets
        return Verdict(pod=pod, way="free", budgets=named)
    if len(budgets) > 1:
        why = f"{len(budgets)} budgets cover it, {' and '.join(named)}; the eviction API rejects such pods"
        return Verdict(pod=pod, way="never", why=why, fix="let one budget select it", budgets=named)
    verdict = _by_budget(pod, budgets[0])
    return replace(verdict, budgets=named)


def _by_budget(pod: NodePod, budget: DisruptionBudget) -> Verdict:
    if not pod.ready and (budget.evicts_unhealthy or budget.healthy >= budget.needed > 0):
        return Verdict(pod=pod, way="free", why="it is not ready")
    if blocked := blocks_for_ever(budget):
        return Verdict(pod=pod, way="never", why=f"budget {budget}: {blocked}", fix=_fix(budget))
    if not budget.current:
        return Verdict(pod=pod, way="waits", why=f"budget {budget}: its status is older than its spec")
    if budget.allowed > 0:
        return Verdict(pod=pod, way="budget")
    has = f"{budget.healthy} of {budget.expected} pods are healthy, {budget.needed} must be"
    return Verdict(pod=pod, way="waits", why=f"budget {budget}: {has}")


def blocks_for_ever(budget: DisruptionBudget) -> str:
    """Return why a budget never allows the eviction of a healthy pod; "" if it may."""
    if budget.failed:
        return f"its controller cannot compute it ({budget.failed})"
    if budget.max_unavailable in ("0", "0%"):
        return f"maxUnavailable is {budget.max_unavailable}"
    if budget.min_available == "100%":
        return "minAvailable is 100%"
    if not budget.current or budget.allowed > 0:
        return ""
    if not budget.expected:
        # A percentage of pods without a controller counts as zero (pkg/controller/disruption getExpectedScale).
        return "its pods have no controller, so it counts none" if _is_share(budget) else ""
    if budget.needed >= budget.expected:
        rule = (
            f"minAvailable {budget.min_available}"
            if budget.min_available
            else f"maxUnavailable {budget.max_unavailable}"
        )
        return f"{rule} needs {budget.needed} of its {budget.expected} pods"
    return ""


def _is_share(budget: DisruptionBudget) -> bool:
    return bool(budget.max_unavailable) or budget.min_available.endswith("%")


def _fix(budget: DisruptionBudget) -> str:
    name = f"kubectl -n {budget.namespace} edit pdb {budget.name}"
    if budget.failed or not budget.expected:
        return f"set an integer minAvailable: {name}"
    return f"run one more replica than it requires, or lower it: {name}"


def _signed(verdict: Verdict, now: float, staying: Collection[str]) -> Verdict:
    """Add the annotations and labels on a pod and its node that request no disruption."""
    if verdict.way in ("stays", "leaving"):
        return verdict
    needs = tuple(_needs(verdict.pod))
    if verdict.pod.node in staying:
        needs += (f"its node has {SCALE_DOWN_DISABLED}: true",)
    held = _held(verdict.pod, now)
    if not held or verdict.way == "never":
        return replace(verdict, needs=needs, held=bool(held))
    return replace(verdict, way="waits", why=held, needs=needs, held=True)


def _needs(pod: NodePod) -> Iterator[str]:
    if not pod.owner.kind:
        yield "nothing recreates it (no controller)"
    if pod.empty_dirs:
        yield f"the data in emptyDir {', '.join(pod.empty_dirs)} is lost"
    if pod.annotations.get(SAFE_TO_EVICT) == "false":
        yield f"{SAFE_TO_EVICT}: false"
    if pod.annotations.get(DO_NOT_DISRUPT) == "true":
        yield f"{DO_NOT_DISRUPT}: true"
    if pod.labels.get(CAPI_DRAIN) == "skip":
        yield f"{CAPI_DRAIN}: skip"
    if pod.ignores:
        yield f"{pod.workload} ignores the cordon ({pod.ignores}): its pods come back, and end with the node"
    if pod.head:
        yield f"it is the head of {pod.gang}, whose jobs end with it"


def _held(pod: NodePod, now: float) -> str:
    """Return why and how long an annotation or label delays the eviction; "" if none does or its time has passed."""
    if pod.labels.get(CAPI_DRAIN) == "wait-completed":
        return f"{CAPI_DRAIN}: wait-completed requests to wait until it has ended"
    keep = pod.annotations.get(DO_NOT_DISRUPT, "")
    # Like Karpenter, ignore a value that is neither "true" nor a duration.
    if pod.started is None or (seconds := go_duration(keep)) is None or pod.started + seconds <= now:
        return ""
    left = math.ceil((pod.started + seconds - now) / 60)
    return f"{DO_NOT_DISRUPT}: {keep} keeps it for another {left} min"


def blocked_gangs(verdicts: Iterable[Verdict]) -> frozenset[Gang]:
    """Return gangs with a pod that never leaves: evicting the others would only stop the whole gang's work."""
    return frozenset(v.pod.gang for v in verdicts if v.way == "never" and v.pod.gang is not None)


def gangs(verdicts: Iterable[Verdict]) -> dict[Gang, tuple[NodePod, ...]]:
    """Group the leaving pods by gang; a Job's only pod is not a gang."""
    found: dict[Gang, list[NodePod]] = {}
    for verdict in verdicts:
        if verdict.leaves and verdict.pod.gang is not None:
            found.setdefault(verdict.pod.gang, []).append(verdict.pod)
    return {gang: tuple(members) for gang, members in sorted(found.items()) if gang.kind != "Job" or len(members) > 1}


def delays(
    verdicts: Sequence[Verdict],
    budgets: Iterable[DisruptionBudget],
    min_ready_s: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Delay, ...]:
    """Estimate how long budgets delay a drain: batches of as many pods as allowed, until their replacements are ready.

    Args:
        verdicts: Verdicts of all pods of the nodes.
        budgets: Disruption budgets of their namespaces.
        min_ready_s: Budget -> the largest minReadySeconds among the controllers of its pods.
    """
    found = []
    counted = Counter(name for v in verdicts if v.way in ("budget", "waits") for name in v.budgets)
    for budget in budgets:
        count = counted[str(budget)]
        if count <= max(0, budget.allowed) or blocks_for_ever(budget):
            continue
        pods = [v.pod for v in verdicts if str(budget) in v.budgets]
        startup = max((pod.startup_s for pod in pods if pod.startup_s is not None), default=_STARTUP_S)
        turn = max(pod.grace_s for pod in pods) + startup + min_ready_s.get(str(budget), 0.0)
        found.append(Delay(str(budget), count, budget.allowed, math.ceil(count / max(1, budget.allowed)) * turn))
    return tuple(found)
