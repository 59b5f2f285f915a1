"""Checks of the reservations that live pools name: their end, and machines beyond their size.

In scope: pure checks that apply to every cloud. Out of scope: what a cloud does at the end (its provider).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from gpukube.core.faults import fault
from gpukube.doctor.check import Checks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

_SOON: Final = timedelta(days=7)

CHECKS: Final = Checks(needs=("pools",))


@CHECKS.add(
    "reservation-ends",
    title="reservations and blocks that end within 7 days",
    consequence="its machines are no longer reserved then",
    link="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html",
    severity="warning",
)
def _ends(evidence: Evidence) -> Iterator[Fault]:
    for pool in evidence.live:
        found = evidence.reserved.get(pool.name)
        end = _time(found.end) if found else None
        if found is None or end is None or evidence.now is None or end - evidence.now > _SOON:
            continue
        left = end - evidence.now
        ends = f"ends {_in(left)}" if left > timedelta(0) else "has ended"
        yield fault(
            where=f"pool {evidence.cluster.key}/{pool.pool or pool.name}",
            seen=f"its reservation {found.id} {ends}, at {end.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            fix="extend the reservation, or move the pods to a pool with another one before",
            evidence=(f"{found.used} of {found.total} machines used",),
            why=f"at the end {found.at_end}",
        )


def _time(text: str) -> datetime | None:
    """Parse a time, or the date of an end; None for an open end."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _in(left: timedelta) -> str:
    hours = int(left.total_seconds() // 3600)
    return f"in {hours // 24} days" if hours >= 48 else f"in {hours} hours"  # noqa: PLR2004 - two days


@CHECKS.add(
    "reservation-overdrawn",
    title="reservations with more machines than they hold",
    consequence="the others are billed on demand, and nothing is reserved for them",
    link="https://learn.microsoft.com/azure/virtual-machines/capacity-reservation-overallocate",
    severity="warning",
)
def _overdrawn(evidence: Evidence) -> Iterator[Fault]:
    for found in {each.id: each for each in evidence.reserved.values()}.values():
        if found.used > found.total:
            pools = [pool.pool or pool.name for pool in evidence.live if evidence.reserved.get(pool.name) == found]
            yield fault(
                where=f"reservation {found.id}",
                seen=f"{found.used} machines use it, and it holds {found.total}",
                fix=f"raise it to {found.used}, or remove {found.used - found.total} nodes from its pools",
                evidence=tuple(f"pool {evidence.cluster.key}/{name}" for name in pools),
            )
