"""Checks of families with a fixed size: which pool has the nodes, and what attempts to get them have left.

In scope: pure checks. Out of scope: autoscaled families, whose pools may all have nodes (orders).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.faults import fault
from gpukube.core.live import is_autoscaled
from gpukube.doctor.check import Checks
from gpukube.engine.change.family_record import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence
    from gpukube.engine.change.family_record import Record

_KARPENTER: Final = "https://karpenter.sh/docs/concepts/nodepools/#specweight"
_RETRIED: Final = "https://github.com/aws/containers-roadmap/issues/2326"

CHECKS: Final = Checks(needs=("pools", "nodes"))


class _Family(NamedTuple):
    """A family of which a pool has nodes.

    Attributes:
        where: Its place, for findings.
        name: Name of the family, and of its first pool.
        holders: Its live pools with nodes, and how many.
        empty: Its live pools without nodes.
        record: What its runs have left.
    """

    where: str
    name: str
    holders: list[tuple[Observed, int]]
    empty: list[Observed]
    record: Record | None


def _families(evidence: Evidence) -> Iterator[_Family]:
    found: dict[tuple[str, str], list[Observed]] = {}
    for pool in evidence.live:
        if pool.family and pool.state != "deleting":
            found.setdefault((pool.owner, pool.family), []).append(pool)
    for key, pools in found.items():
        counted = [(pool, len(nodes_of_pool(evidence.seen, pool))) for pool in pools]
        holders = [(pool, count) for pool, count in counted if count]
        if any(not is_autoscaled(pool) for pool, _ in holders):
            empty = [pool for pool, count in counted if not count]
            where = f"pool {evidence.cluster.key}/{key[1]}"
            yield _Family(where, key[1], holders, empty, evidence.records.get(key))


@CHECKS.add(
    "family-lower-rank",
    title="pools whose nodes are those of an alternative",
    consequence="the alternatives before it are preferred, and may have machines by now",
    link=_KARPENTER,
    severity="hint",
)
def _lower_rank(evidence: Evidence) -> Iterator[Fault]:
    for family in _families(evidence):
        (holder, count), *others = family.holders
        if others or holder.pool == family.name:
            continue
        yield fault(
            where=family.where,
            seen=f"its alternative {holder.pool} has the nodes ({count}){_since(evidence, family, holder)}",
            fix=f"if the pods may move to a better one: gpukube pool apply -f SPEC --pool {family.name} --rebalance",
            evidence=_refusals(family),
        )


def _since(evidence: Evidence, family: _Family, holder: Observed) -> str:
    won = family.record.won if family.record else None
    is_it = won is not None and (won.cluster, won.member) == (evidence.cluster.key, holder.pool)
    return f" since {_moment(won.at)}" if won and is_it else ""


def _refusals(family: _Family) -> tuple[str, ...]:
    outcomes = family.record.outcomes if family.record else ()
    return tuple(f"{one.cluster}/{one.member}: {KINDS[one.kind]} ({_moment(one.at)})" for one in outcomes)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


@CHECKS.add(
    "family-leftover",
    title="pools that an attempt to get nodes has left",
    consequence="late machines would be billed next to those of the pool that has the nodes; "
    "the next create or apply deletes it",
    link=_RETRIED,
    severity="warning",
)
def _leftover(evidence: Evidence) -> Iterator[Fault]:
    for family in _families(evidence):
        holder, _ = family.holders[0]
        for pool in family.empty:
            asked = f", but still requests {pool.nodes}" if pool.nodes else ""
            yield fault(
                where=f"pool {evidence.cluster.key}/{pool.pool}",
                seen=f"it has no nodes{asked}, and {holder.pool} has those of the family {family.name}",
                fix=f"if no run is trying it now: gpukube pool delete {pool.pool} -f SPEC",
                evidence=(f"{pool.name}: {pool.instance_type}, {pool.status}",),
            )


@CHECKS.add(
    "family-twice",
    title="pools whose nodes are in two alternatives",
    consequence="both are billed, until the pods have left one of them",
    link=_RETRIED,
    severity="warning",
)
def _twice(evidence: Evidence) -> Iterator[Fault]:
    for family in _families(evidence):
        if len(family.holders) > 1:
            yield fault(
                where=family.where,
                seen=", ".join(f"{pool.pool} has {count} nodes" for pool, count in family.holders),
                fix=f"to move the pods to the better one: gpukube pool apply -f SPEC --pool {family.name} --rebalance",
            )
