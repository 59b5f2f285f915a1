"""Deletions that are killed or disturbed, and deletions of what a killed creation left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.chaos.boundaries import HELM_CALLS, POOL_API, helm_call
from tests.chaos.stage import MIG

if TYPE_CHECKING:
    from tests.chaos.boundaries import Undisturbed
    from tests.chaos.stage import Ended, Stage, Started

CALLS = ("identify", "list", "credential", "delete", "first poll")
"""Requests to ARM of a deletion, in order; what it asks afterwards is for the config entries."""
FAULTS: dict[str, dict[str, object]] = {
    "429": {"action": "status", "status": 429, "headers": {"Retry-After": "0"}},
    "500": {"action": "status", "status": 500},
    "drop-before": {"action": "drop-before"},
    "drop-after": {"action": "drop-after"},
}


def start_delete(stage: Stage) -> Started:
    """Start `pool delete`."""
    return stage.start("pool", "delete", "a100mig", "--yes", "-f", str(MIG), "-o", "json")


def make_pool(stage: Stage) -> None:
    """Make the pool that is to go."""
    stage.made()


def require_deleted(stage: Stage, ended: Ended) -> None:
    """The pool is gone, others stay, and one more deletion is content."""
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    assert stage.pools() == {"nodepool1": 1}
    again = start_delete(stage).wait()
    assert again.code == 0, again.said


def test_delete_when_killed_at_every_call_in_a_row_then_the_next_one_ends_it(stage: Stage) -> None:
    make_pool(stage)
    for nth in range(1, len(CALLS) + 1):
        daemon.add_fault(stage.info, "hang", service="arm", nth=nth)
        assert stage.kill_at_fault(start_delete(stage), with_children=True), CALLS[nth - 1]
        stage.require_private()
    assert set(stage.pools()) <= {"nodepool1", "a100mig"}
    require_deleted(stage, start_delete(stage).wait())


@pytest.mark.turns(3)
@pytest.mark.parametrize("at", range(len(CALLS)), ids=CALLS)
def test_delete_when_killed_with_its_answer_lost_then_the_next_one_ends_it(stage: Stage, at: int) -> None:
    make_pool(stage)
    daemon.configure(stage.info, pace={"drain_s": 3000.0})  # 0.6 s: the next run meets the pool while it goes
    daemon.add_fault(stage.info, "hang-after", service="arm", nth=at + 1)
    assert stage.kill_at_fault(start_delete(stage), with_children=True)
    require_deleted(stage, start_delete(stage).wait())


@pytest.mark.turns(4)
@pytest.mark.parametrize("kind", FAULTS)
def test_delete_when_each_call_is_disturbed_in_a_row_then_it_gets_over_it(stage: Stage, kind: str) -> None:
    make_pool(stage)
    for nth in range(1, len(CALLS) + 1):
        parts = dict(FAULTS[kind])
        daemon.add_fault(stage.info, str(parts.pop("action")), service="arm", nth=nth, **parts)
        stage.require_polite(start_delete(stage).wait())
        daemon.clear_faults(stage.info)
    require_deleted(stage, start_delete(stage).wait())


@pytest.mark.turns(5)
@pytest.mark.parametrize("case", [None, *POOL_API])
def test_delete_when_the_creation_was_killed_then_deleted_and_made_again(
    stage: Stage, undisturbed: Undisturbed, case: str | None
) -> None:
    daemon.configure(stage.info, pace={"allocate_s": 3000.0})  # 0.6 s: the pool is still being made
    if case is None:
        daemon.add_fault(stage.info, "hang", service="kube", nth=helm_call(undisturbed, HELM_CALLS["config"]))
    else:
        daemon.add_fault(stage.info, "hang-after", **POOL_API[case].parts)
    assert stage.kill_at_fault(stage.start_create(), with_children=True)
    require_deleted(stage, start_delete(stage).wait())
    daemon.configure(stage.info, pace={"allocate_s": 40.0})
    stage.require_converged(stage.create(), undisturbed.objects)


def test_create_when_a_killed_deletion_still_goes_on_then_made_anew(stage: Stage, undisturbed: Undisturbed) -> None:
    make_pool(stage)
    daemon.configure(stage.info, pace={"drain_s": 5000.0})  # 1 s: the creation meets the pool while it goes
    daemon.add_fault(stage.info, "hang-after", service="arm", nth=CALLS.index("delete") + 1)
    assert stage.kill_at_fault(start_delete(stage), with_children=True)
    daemon.configure(stage.info, pace={"drain_s": 20.0})
    stage.require_converged(stage.create(), undisturbed.objects)
