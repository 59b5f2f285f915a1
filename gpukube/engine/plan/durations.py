"""Estimates how long a plan takes, from the clouds' own limits. Pure.

In scope: the parts for each pool, and their sum over a cluster whose pools wait for each other. Out of scope: the
seconds of each cloud (providers).
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

_LEAVING: Final = Span(30, 3600, "docs/replace.md: --drain-timeout is 60 minutes by default")


@dataclass(frozen=True, slots=True)
class Term:
    """One part of a duration.

    Attributes:
        name: What happens.
        span: How long it takes.
        is_proof: Whether it is the verification at the end, during which the cloud may change another pool.
    """

    name: str
    span: Span
    is_proof: bool = False


@dataclass(frozen=True, slots=True)
class Duration:
    """Duration of a change.

    Attributes:
        terms: Its parts, in sequence; for a cluster those on the critical path.
    """

    terms: tuple[Term, ...]

    @property
    def least_s(self) -> float:
        """Shortest duration, if nothing has to wait."""
        return sum(term.span.least_s for term in self.terms)

    @property
    def most_s(self) -> float:
        """Longest duration, if everything takes its maximum without failing."""
        return sum(term.span.most_s for term in self.terms)

    @property
    def longest(self) -> Term:
        """The longest part."""
        return max(self.terms, key=lambda term: term.span.least_s + term.span.most_s)


def pool_duration(plan: PoolPlan, known: CloudDurations) -> Duration | None:
    """Estimate one pool; None if nothing happens to it, or if it does not end on its own."""
    if plan.action == "create":
        return Duration(tuple(_creation_terms(plan, known)))
    if plan.action == "delete":
        return Duration((Term("pool being deleted", known.delete),))
    if plan.action == "replace" and not never_ends(plan):
        gone = [Term("pool being deleted", known.delete)]
        leaving = [Term("pods leaving", _LEAVING)] if plan.loss is None or plan.loss.pods != () else []
        made = list(_creation_terms(plan, known))
        surge = plan.replacement is not None and plan.replacement.requests == plan.requests
        if surge:  # the old pool is deleted once the new one is verified
            return Duration((*(replace(term, is_proof=False) for term in made), *leaving, *gone))
        return Duration((*leaving, *gone, *made))
    if plan.action in ("update", "adopt") and plan.requests:
        return Duration(tuple(_update_terms(plan, known)))
    return None


def never_ends(plan: PoolPlan) -> bool:
    """Return whether a pool's drain waits for pods that never leave on their own."""
    return plan.action == "replace" and plan.leaving is not None and bool(plan.leaving.blocked)


def _creation_terms(plan: PoolPlan, known: CloudDurations) -> Iterable[Term]:
    """Yield the parts of a creation; a pool without initial nodes takes one call."""
    target = plan.desired.target if plan.desired else None
    if target is None or not max(target.nodes.count, target.nodes.minimum):
        yield Term("pool being created without nodes", known.change)
        return
    yield Term("nodes starting", known.create)
    if plan.desired and plan.desired.managed:
        yield Term("GPUs becoming allocatable", known.gpus, is_proof=True)
        if target.sharing.mig and known.reboot:
            yield Term("nodes restarting to configure MIG", known.reboot, is_proof=True)


def _update_terms(plan: PoolPlan, known: CloudDurations) -> Iterable[Term]:
    calls = len(plan.requests)
    rolls = any(c.row.renews_nodes for c in plan.changes)
    if calls - rolls > 0:
        each = known.change
        yield Term(
            "calls to the cloud", Span(each.least_s * (calls - rolls), each.most_s * (calls - rolls), each.source)
        )
    if rolls:
        nodes = max(1, plan.observed.nodes or 1) if plan.observed else 1
        # In parallel or one by one: how a surge does it depends on the cloud.
        yield Term("nodes being replaced", Span(known.roll.least_s, known.roll.most_s * nodes, known.roll.source))
    labels = [c.change.field for c in plan.changes if c.row.kind == "disruptive" and c.change.field[0] == "labels"]
    grows = any(c.change.field in (COUNT, LEAST) and _grows(c.change.old, c.change.new) for c in plan.changes)
    if grows:
        yield Term("nodes starting", known.create)
    if grows or labels:  # labels select a node's plugin and its configuration: the plugin restarts
        yield Term("GPUs becoming allocatable", known.gpus, is_proof=True)
    if label(MIG_CONFIG_LABEL) in labels and known.reboot:
        yield Term("nodes restarting to configure MIG", known.reboot, is_proof=True)


def _grows(old: object, new: object) -> bool:
    return isinstance(new, int) and (not isinstance(old, int) or new > old)


def cluster_duration(pools: Sequence[tuple[str, Duration]], at_once: int) -> Duration | None:
    """Estimate a cluster that changes `at_once` pools at a time; None if nothing happens.

    The result is the longest chain of pools that wait for each other, started in order as the engine does. If one pool
    changes at a time, the next does not wait for the previous one's verification.
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
