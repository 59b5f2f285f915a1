"""The cloud's part of the evidence, and the diagnosis that a provider's package brings.

Lives here: finding and naming. Must not live here: checks.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gpukube.core.cloud_check import CloudView, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence
    from gpukube.provider import Provider

__all__ = ["apply_command", "diagnosed_pools", "diagnosis_of", "view_of"]


def view_of(evidence: Evidence) -> CloudView | None:
    """Give what the cloud says; None where it could not be asked."""
    if evidence.facts is None:
        return None
    return CloudView(evidence.cluster, evidence.facts, evidence.live)


def diagnosis_of(provider: Provider) -> Diagnosis | None:
    """Give what the provider's package knows; None where it has no module `diagnose`."""
    return _load(type(provider).__module__.partition(".")[0])


@cache
def _load(package: str) -> Diagnosis | None:
    if find_spec(f"{package}.diagnose") is None:
        return None
    found: object = getattr(import_module(f"{package}.diagnose"), "DIAGNOSIS", None)
    return found if isinstance(found, Diagnosis) else None


def diagnosed_pools(evidence: Evidence) -> Iterator[tuple[CloudView, Diagnosis, Observed]]:
    """List the live pools with all that is needed to judge them; none where the cloud's package has no diagnosis."""
    view, diagnosis = view_of(evidence), diagnosis_of(evidence.provider)
    if view is not None and diagnosis is not None:
        yield from ((view, diagnosis, pool) for pool in view.pools)


def apply_command(pool: Observed) -> str:
    """Give the command that brings one of our pools to its spec."""
    return f"gpukube pool apply -f SPEC --pool {pool.pool}"
