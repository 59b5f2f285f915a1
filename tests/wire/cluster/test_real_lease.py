"""The lock of a family on a real control plane: its API server decides who wrote first, and checks every field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.jsontree import text
from gpukube.engine.change.family_lease import FamilyLease
from gpukube_sandbox.kube.controlplane import find_assets
from sandbox_tests.waiting import PATIENCE_S
from tests.wire.cluster.test_family_lease import FULL, THREADS, TURNS, compete, held, new_run, stored
from tests.wire.cluster.test_real_fabric import plane

if TYPE_CHECKING:
    from tests.wire.cluster.test_real_fabric import Plane

__all__ = ["plane"]
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(find_assets() is None, reason="KUBEBUILDER_ASSETS names no directory with a control plane"),
]


def test_lock_when_eight_runs_want_it_on_a_real_api_then_one_has_it_at_a_time_and_the_record_stays(
    plane: Plane,
) -> None:
    with held(plane.kube) as lease:
        lease.end(FULL)

    together = compete(lambda: held(plane.kube, new_run(10 * PATIENCE_S), kind=FamilyLease))

    assert together == [1] * THREADS * TURNS
    with held(plane.kube) as lease:
        assert lease.outcomes == (FULL,)
    assert text(stored(plane.kube), "spec", "holderIdentity") == ""
