"""Reports families as one pool each: the one that has the nodes stands for all pools of the family.

In scope: finding that pool by the nodes of the clusters, and lists in which a family is one line. Out of scope: roles
by what the clouds show (engine.plan.families), getting nodes (families).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gpukube.core.families import family_key
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, FamilyPlace
from gpukube.engine.run.fanout import run_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Desired, FamilyRole, PoolPlan, Target
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.report import PoolReport
    from gpukube.engine.run.session import Session


class Holder(NamedTuple):
    """The pool that stands for a family.

    Attributes:
        target: The pool.
        place: Its place in the family: "holder", or "next" if no pool of the family has nodes.
    """

    target: Target
    place: FamilyPlace


def find_holders(prepared: Prepared, sessions: Mapping[str, Session], run: Run) -> Mapping[FamilyKey, Holder]:
    """Return the pool of each declared family with most nodes; the first one if none has any.

    If none has any and a cluster cannot be read, it is the first one there: reading it again reports the error.
    """
    members: dict[FamilyKey, list[Target]] = {}
    for pools in prepared.desired.values():
        for desired in pools:
            if key := family_key(desired):
                members.setdefault(key, []).append(desired.target)
    clusters = dict.fromkeys(target.cluster.key for targets in members.values() for target in targets)
    tasks = {key: partial(_count_nodes, sessions[key]) for key in clusters}
    counts = {key: count for key, count in run_all(tasks, run.parallelism).items() if isinstance(count, Counter)}

    def nodes(target: Target) -> int:
        return counts.get(target.cluster.key, Counter())[target.owner, target.pool]

    found = {}
    for key, targets in members.items():
        targets.sort(key=lambda target: (target.turn, target.rank))
        most = max(targets, key=nodes)
        if not nodes(most):
            most = next((target for target in targets if target.cluster.key not in counts), most)
        role: FamilyRole = "holder" if nodes(most) else "next"
        found[key] = Holder(most, FamilyPlace(most.family, targets.index(most), role, of=len(targets)))
    return found


def _count_nodes(session: Session) -> Counter[tuple[str | None, str | None]]:
    """Count the nodes of a cluster by the owner and pool in their labels."""
    return Counter((node.labels.get(OWNER_LABEL), node.labels.get(POOL_LABEL)) for node in session.kube().nodes())


def as_family(report: PoolReport, place: FamilyPlace) -> PoolReport:
    """Report a pool as its family: under the family's name, with the pool that has the nodes."""
    which = f"{report.pool} has the nodes ({place_words(place)})" if place.turn else ""
    if place.role == "next":
        which = "no alternative has nodes"
    return replace(report, pool=place.name, message="; ".join(filter(None, (report.message, which))))


def place_words(place: FamilyPlace) -> str:
    """Return the place of a pool in its family: "alternative 2 of 3"."""
    return f"alternative {place.turn + 1} of {place.of}"


def declared_lines(pools: Iterable[Desired], listed: set[FamilyKey] | None = None) -> Iterator[tuple[str, str]]:
    """List the declared pools of a cluster, name and cloud name, each family with a fixed size once.

    Args:
        pools: The pools.
        listed: Families on any of several clusters that another cluster of this list has; gets those of this one. None
            omits these families, as they are no pools of a single cluster.
    """
    seen = set() if listed is None else listed
    for desired in pools:
        target, key = desired.target, family_key(desired)
        if key is None:
            yield target.pool, target.name
        elif key not in seen and (key[2] or listed is not None):
            seen.add(key)
            yield target.family, target.name


def planned_lines(pools: Iterable[PoolPlan]) -> Iterator[tuple[str, str]]:
    """List planned pools, name and cloud name, like `declared_lines`."""
    seen = set()
    for plan in pools:
        key = family_key(plan.desired) if plan.family and plan.desired else None
        if key is None:
            yield plan.pool, plan.name
        elif key[2] and key not in seen:
            seen.add(key)
            yield key[1], plan.name
