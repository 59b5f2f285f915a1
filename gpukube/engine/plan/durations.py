"""How long a plan would take: an estimate from the clouds' own limits. Pure.

In scope: the terms of each pool, and their sum over a cluster whose pools wait for each other. Out of scope:
the seconds of a cloud (providers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.core.durations import Span
from gpukube.core.fields import COUNT, LEAST, label
from gpukube.core.owners.labels import MIG_CONFIG_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.core.durations import CloudDurations
    from gpukube.core.values import PoolPlan

_LEAVING: Final = Span(30, 3600, "docs/replace.md: --drain-timeout is 60 minutes unless given")


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a duration.

    Attributes:
        name: What happens.
        span: How long it takes.
        is_proof: Whether it is what the nodes do at the end, while the cloud may change another pool.
    """

    name: str
    span: Span
    is_proof: bool = False


@dataclass(frozen=True, slots=True)
class Duration:
    """How long something takes.

    Attributes:
        terms: Its parts, one after the other; of a cluster those that are on the way to its end.
    """

    terms: tuple[Term, ...]

    @property
    def least_s(self) -> float:
        """When nothing waits."""
        return sum(term.span.least_s for term in self.terms)

    @property
    def most_s(self) -> float:
        """When everything takes as long as it may without failing."""
        return sum(term.span.most_s for term in self.terms)

    @property
    def longest(self) -> Term:
        """The part that most of it goes to."""
        return max(self.terms, key=lambda term: term.span.least_s + term.span.most_s)


def pool_duration(plan: PoolPlan, known: CloudDurations) -> Duration | None:
    """Estimate one pool; None where nothing happens to it, and where it does not end by itself."""
    if plan.action == "create":
        return Duration(tuple(_made(plan, known)))
    if plan.action == "delete":
        return Duration((Term("pool being deleted", known.delete),))
    if plan.action == "replace" and not never_ends(plan):
        gone = [Term("pool being deleted", known.delete)]
        leaving = [Term("pods leaving", _LEAVING)] if plan.loss is None or plan.loss.pods != () else []
        made = list(_made(plan, known))
        surge = plan.replacement is not None and plan.replacement.requests == plan.requests
        if surge:  # the first pool goes once the second one is proven
            return Duration((*(replace(term, is_proof=False) for term in made), *leaving, *gone))
        return Duration((*leaving, *gone, *made))
    if plan.action in ("update", "adopt") and plan.requests:
        return Duration(tuple(_changed(plan, known)))
    return None


def never_ends(plan: PoolPlan) -> bool:
    """Return whether a pool's drain waits for what nothing brings about by itself."""
    return plan.action == "replace" and plan.leaving is not None and bool(plan.leaving.blocked)


def _made(plan: PoolPlan, known: CloudDurations) -> Iterable[Term]:
    """A pool that begins without nodes is made by a call alone."""
    target = plan.desired.target if plan.desired else None
    if target is None or not max(target.nodes.count, target.nodes.minimum):
        yield Term("pool being created without nodes", known.change)
        return
    yield Term("nodes starting", known.create)
    if plan.desired and plan.desired.managed:
        yield Term("GPUs becoming allocatable", known.gpus, is_proof=True)
        if target.sharing.mig and known.reboot:
            yield Term("nodes restarting to cut their GPUs", known.reboot, is_proof=True)


def _changed(plan: PoolPlan, known: CloudDurations) -> Iterable[Term]:
    calls = len(plan.requests)
    rolls = any(c.row.renews_nodes for c in plan.changes)
    if calls - rolls > 0:
        each = known.change
        yield Term(
            "calls to the cloud", Span(each.least_s * (calls - rolls), each.most_s * (calls - rolls), each.source)
        )
    if rolls:
        nodes = max(1, plan.observed.nodes or 1) if plan.observed else 1
        # All at once, or one by one: what a surge makes of it is the cloud's.
        yield Term("nodes being replaced", Span(known.roll.least_s, known.roll.most_s * nodes, known.roll.source))
    labels = [c.change.field for c in plan.changes if c.row.kind == "disruptive" and c.change.field[0] == "labels"]
    grows = any(c.change.field in (COUNT, LEAST) and _grows(c.change.old, c.change.new) for c in plan.changes)
    if grows:
        yield Term("nodes starting", known.create)
    if grows or labels:  # a label decides which plugin a node has, and by which configuration: it begins again
        yield Term("GPUs becoming allocatable", known.gpus, is_proof=True)
    if label(MIG_CONFIG_LABEL) in labels and known.reboot:
        yield Term("nodes restarting to cut their GPUs", known.reboot, is_proof=True)


def _grows(old: object, new: object) -> bool:
    return isinstance(new, int) and (not isinstance(old, int) or new > old)


def cluster_duration(pools: Sequence[tuple[str, Duration]], at_once: int) -> Duration | None:
    """Estimate a cluster, so many of whose pools change at the same time; None where nothing happens.

    The longest chain of pools that wait for each other, begun in their order as the engine does. Where one changes at a
    time, it does not wait for the proof of the one before.
    """
    if not pools:
        return None
    chains: list[list[Term]] = [[] for _ in range(min(at_once, len(pools)))]
    ends = []
    for name, duration in pools:
        first = min(chains, key=_most)
        terms = [replace(term, name=f"{name}: {term.name}") for term in duration.terms]
        ends.append([*first, *terms])
        first += terms if at_once > 1 else [term for term in terms if not term.is_proof]
    return Duration(tuple(max(ends, key=_most)))


def _most(chain: Iterable[Term]) -> float:
    return sum(term.span.most_s for term in chain)
