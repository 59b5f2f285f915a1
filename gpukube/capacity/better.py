"""Better alternatives than those that have the nodes: what the clouds report about their machines now.

In scope: for which pools of families the clouds are called, and the hints that follow. Out of scope: the calls
(finding), moving there (engine.change.families).

It changes no plan: what is found is a hint, and what cannot be read is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.capacity.criteria import places_of_pools
from gpukube.capacity.finding import AT_ONCE, read_place
from gpukube.core.capacity_sources import KNOWN, Offers
from gpukube.core.families import family_key
from gpukube.core.permissions import PRINT_CAPACITY_POLICY
from gpukube.engine.plan.regions import region_of
from gpukube.engine.run.fanout import run_all
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.capacity.criteria import Place
    from gpukube.capacity.finding import Line
    from gpukube.core.capacity_sources import Known, SourceLine, Way
    from gpukube.core.values import PoolPlan, Settings, Target
    from gpukube.engine.plan.planning import ClusterPlan

_PROMISING: Final[tuple[Known, ...]] = ("free", "offered", "likely", "possible")


@dataclass(frozen=True, slots=True)
class Better:
    """What was found.

    Attributes:
        plans: The plans, with a hint for each better alternative that may get machines, and for each failed source.
        notes: What the clouds report about the others.
    """

    plans: tuple[ClusterPlan, ...]
    notes: tuple[str, ...]


class _Candidate(NamedTuple):
    """A better alternative than the pool that has the nodes, on the same cluster."""

    holder: PoolPlan
    target: Target
    place: Place

    @property
    def key(self) -> tuple[object, ...]:
        """What the call depends on: alternatives that differ in how they are bought share one."""
        return self.place.where, self.place.machines, self.place.zones, self.target.nodes.count


def with_better(plans: Sequence[ClusterPlan], line: Line, apply: str) -> Better:
    """Read from the clouds, in parallel, whether better alternatives of families with a fixed size have machines.

    Args:
        plans: Plans of the clusters.
        line: How to reach the clouds; its end is that of all calls together.
        apply: Command that applies the spec.

    Raises:
        Stopped: The run was stopped.
    """
    candidates = {plan.cluster.key: list(_candidates(plan, line.settings)) for plan in plans}
    tasks = {
        one.key: partial(read_place, one.place, one.target.nodes.count, None, line)
        for better in candidates.values()
        for one in better
    }
    answers = {key: found for key, found in run_all(tasks, AT_ONCE).items() if isinstance(found, Offers)}
    notes: list[str] = []
    found: dict[str, tuple[Finding, ...]] = {}
    for cluster, better in candidates.items():
        hints: list[Finding] = []
        failed: dict[str, SourceLine] = {}
        for one in better:
            offers = answers[one.key]
            way = best_way(one.target, offers.ways)
            if way is not None and way.known in _PROMISING:
                hints.append(_hint(one, way, apply))
                continue
            notes.append(f"{one.target.where}: {_words(way)}")
            if way is None or way.known == "not told":
                failed |= {source.source: source for source in offers.sources if source.state == "failed"}
        found[cluster] = (*hints, *(_unread(cluster, source) for source in failed.values()))
    shown = tuple(replace(plan, diagnostics=(*plan.diagnostics, *found[plan.cluster.key])) for plan in plans)
    return Better(shown, tuple(notes))


def _candidates(plan: ClusterPlan, settings: Settings) -> Iterator[_Candidate]:
    region = region_of(plan.cluster, plan.facts.location if plan.facts else "")
    for holder in plan.pools:
        if holder.family is None or holder.family.role != "holder" or holder.action == "conflict":
            continue
        better = [pool.desired.target for pool in plan.pools if pool.desired and _is_better(pool, holder)]
        for target, place in zip(better, places_of_pools(better, settings), strict=True):
            yield _Candidate(holder, target, place.at(region))


def _is_better(pool: PoolPlan, holder: PoolPlan) -> bool:
    """Return whether a pool comes before the one with the nodes, and has none: one that has some is being moved to."""
    if pool.family is None or holder.family is None or pool.desired is None or holder.desired is None:
        return False
    same = family_key(pool.desired) == family_key(holder.desired)
    open_to_it = pool.action != "conflict" and pool.family.role in ("standby", "leftover")
    return same and open_to_it and pool.family.turn < holder.family.turn


def best_way(target: Target, ways: Iterable[Way]) -> Way | None:
    """Return the best of the ways that a pool buys its machines by; None if the cloud reports none."""
    fitting = [way for way in ways if _is_of(target, way)]
    return min(fitting, key=lambda way: (KNOWN.index(way.known), way.zone, way.machine), default=None)


def _is_of(target: Target, way: Way) -> bool:
    reservation = target.capacity.reservation
    if reservation is None:
        return way.kind == target.capacity.type
    return bool(way.id) and not way.buy and way.id.lower() == reservation.id.lower()


def _hint(one: _Candidate, way: Way, apply: str) -> Finding:
    family, target = one.target.family, one.target
    return Finding(
        "better-alternative",
        one.holder.where,
        f"{target.pool} ({target.capacity.type}) comes before {one.holder.pool} and may get machines: {_words(way)}",
        fix=f"{apply} --rebalance moves {family} there",
        why="it is no promise: without machines, the nodes stay where they are",
        severity="hint",
    )


def _words(way: Way | None) -> str:
    """Return the class of a way with the cloud's own words, and its place."""
    if way is None:
        return "not told"
    words = way.words or way.why
    return f"{way.known}{f', {words}' if words else ''}{f' in {way.zone}' if way.zone else ''}"


def _unread(cluster: str, source: SourceLine) -> Finding:
    return Finding(
        "alternatives-unread",
        Where(cluster),
        f"{source.source} failed: {source.text}",
        fix=f"check the cause, then run it again; permissions: {PRINT_CAPACITY_POLICY}",
        why="better alternatives that have machines may be missing here",
        severity="hint",
    )
