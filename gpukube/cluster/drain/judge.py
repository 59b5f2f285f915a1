"""What becomes of each pod when its node is emptied, and why; pure.

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
"""stays: a drain leaves it. leaving: it is being deleted. free: no budget covers it, or none is asked. budget: its
budget lets it go now. waits: its budget lets it go once other pods are ready again. never: nothing that happens by
itself lets it go."""

_STARTUP_S: Final = 60.0
"""Of a replacement where no pod of the budget shows how long it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a pod.

    Attributes:
        way: See Way.
        why: What keeps it, in a line; "" where nothing does.
        fix: What lets it go; "" where it goes by itself.
        budgets: Disruption budgets that cover it, "namespace/name".
        needs: Signs on the pod for which it leaves only with --allow-disruption.
        held: Whether a sign on it asks to wait for a time, or until it has ended by itself.
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
        """Whether the pool is not empty before it has gone."""
        return self.way != "stays"


@dataclass(frozen=True, slots=True)
class Delay:
    """A budget that lets pods go in turns.

    Attributes:
        pods: That it covers and that are to leave.
        allowed: That may go now.
        seconds: About how long all of them take.
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
    """Judge pods of nodes that are to be emptied.

    Args:
        pods: All of the nodes.
        budgets: Of their namespaces.
        now: Seconds since the epoch.
        staying: Names of nodes with the sign that no autoscaler may remove them.
        allow_disruption: Whether pods are evicted against the signs on them and their nodes.
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
    if pod.phase == "Pending" or not budgets:  # the eviction of a pod that does not run yet asks no budget
        return Verdict(pod=pod, way="free", budgets=named)
    if len(budgets) > 1:
        why = f"{len(budgets)} budgets cover it, {' and '.join(named)}; the eviction API refuses such pods"
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
    """Return why a budget never lets a healthy pod go, however long one waits; "" where it may."""
    if budget.failed:
        return f"its controller cannot work it out ({budget.failed})"
    if budget.max_unavailable in ("0", "0%"):
        return f"maxUnavailable is {budget.max_unavailable}"
    if budget.min_available == "100%":
        return "minAvailable is 100%"
    if not budget.current or budget.allowed > 0:
        return ""
    if not budget.expected:
        # A share of pods that no controller keeps is a share of none (pkg/controller/disruption getExpectedScale).
        return "no controller keeps its pods, so it counts none" if _is_share(budget) else ""
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
    return f"run one more replica than it needs, or lower it: {name}"


def _signed(verdict: Verdict, now: float, staying: Collection[str]) -> Verdict:
    """Add the signs on a pod and its node that ask not to disturb it."""
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
        yield "nothing creates it again (no controller)"
    if pod.empty_dirs:
        yield f"the data of emptyDir {', '.join(pod.empty_dirs)} is lost"
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
    """Return until when a sign asks to wait, in words; "" where none does, or its time is over."""
    if pod.labels.get(CAPI_DRAIN) == "wait-completed":
        return f"{CAPI_DRAIN}: wait-completed asks to wait until it has ended"
    keep = pod.annotations.get(DO_NOT_DISRUPT, "")
    # A value that is neither "true" nor a duration is ignored, as Karpenter does.
    if pod.started is None or (seconds := go_duration(keep)) is None or pod.started + seconds <= now:
        return ""
    left = math.ceil((pod.started + seconds - now) / 60)
    return f"{DO_NOT_DISRUPT}: {keep} keeps it for another {left} min"


def blocked_gangs(verdicts: Iterable[Verdict]) -> frozenset[Gang]:
    """Find gangs of which a pod never leaves: evicting the others would only stop the work of all."""
    return frozenset(v.pod.gang for v in verdicts if v.way == "never" and v.pod.gang is not None)


def gangs(verdicts: Iterable[Verdict]) -> dict[Gang, tuple[NodePod, ...]]:
    """Collect the pods that leave by what they work together with; a Job's only pod is no gang."""
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
    """Estimate how long budgets make a drain take: turns of as many pods as may go, until their replacements are ready.

    Args:
        verdicts: Of all pods of the nodes.
        budgets: Of their namespaces.
        min_ready_s: By budget, the largest minReadySeconds of what keeps its pods.
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
