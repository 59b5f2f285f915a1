"""The cloud's part of the evidence.

In scope: finding and naming pools. Out of scope: checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.cloud_check import CloudView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.cloud_check import Diagnosis
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence


def view_of(evidence: Evidence) -> CloudView | None:
    """Return what the cloud reports; None if it could not be read."""
    if evidence.facts is None:
        return None
    return CloudView(evidence.cluster, evidence.facts, evidence.live)


def diagnosed_pools(evidence: Evidence) -> Iterator[tuple[CloudView, Diagnosis, Observed]]:
    """Yield the live pools with the data that checks need; none if the cloud's package has no diagnosis."""
    view, diagnosis = view_of(evidence), evidence.provider.extras.diagnosis
    if view is not None and diagnosis is not None:
        yield from ((view, diagnosis, pool) for pool in view.pools)


def apply_command(pool: Observed) -> str:
    """Return the command that applies the spec to one of gpukube's pools."""
    return f"gpukube pool apply -f SPEC --pool {pool.pool}"
