"""Checks of the cloud's side: those of each provider's package, and those that apply to all clouds.

In scope: the list of these checks. Out of scope: the checks themselves (access, pool_states, pool_marks, machines,
scaling, families, reservations; the providers' diagnosis).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.doctor.check import Check
from gpukube.doctor.checks import access, families, machines, orders, pool_marks, pool_states, reservations, scaling
from gpukube.doctor.cloud_view import view_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.cloud_check import CloudCheck
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence
    from gpukube.provider import Provider

CHECKS: Final[tuple[Check, ...]] = (
    *access.CHECKS,
    *pool_states.CHECKS,
    *pool_marks.CHECKS,
    *machines.CHECKS,
    *scaling.CHECKS,
    *families.CHECKS,
    *reservations.CHECKS,
    *orders.CHECKS,
)
"""Checks that apply to every cloud."""


def cloud_checks(provider: Provider) -> tuple[Check, ...]:
    """Return the checks of this cloud only; empty if its package has no diagnosis."""
    diagnosis = provider.extras.diagnosis
    return tuple(_check(each) for each in diagnosis.checks) if diagnosis else ()


def _check(row: CloudCheck) -> Check:
    def find(evidence: Evidence) -> Iterator[Fault]:
        view = view_of(evidence)
        return row.find(view) if view else iter(())

    return Check(
        id=row.id,
        title=row.title,
        consequence=row.consequence,
        link=row.link,
        find=find,
        needs=("cloud", "pools"),
        severity=row.severity,
    )
