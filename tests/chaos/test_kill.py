"""Killed at any request boundary and run again, `pool create` converges.

A boundary is a request that came in and was not processed ("hang"), or was processed while the answer never left
("hang-after"). A read changes nothing, so there the two are one case. Helm's own requests are those of its child
process, which outlives a gpukube that is killed alone; a machine that dies takes it along.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.boundaries import (
    BEFORE_HELM,
    BEFORE_POLLS,
    BEFORE_PROOF,
    FIRST_LOOK,
    HELM_CALLS,
    LOOK,
    OURS,
    POOL_API,
    helm_call,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.boundaries import Undisturbed
    from tests.chaos.stage import Stage

Action = Literal["hang", "hang-after"]

MOST_HELM = 90


def kill_and_repeat(
    stage: Stage, undisturbed: Undisturbed, boundary: Mapping[str, object], action: Action, *, machine: bool
) -> None:
    """Kill a creation at one boundary, run it again, and look at everything."""
    daemon.add_fault(stage.info, action, **boundary)
    first = stage.start_create()
    assert stage.kill_at_fault(first, with_children=machine), first.wait().said
    stage.require_private()
    stage.require_converged(stage.create(), undisturbed.objects)


def on_kube(nth: int) -> dict[str, object]:
    """Parts of a fault at a request to Kubernetes."""
    return {"service": "kube", "nth": nth}


def actions_at(method: str) -> tuple[Action, ...]:
    """Ways to be cut off at a request; a read not answered and a read not processed are the same."""
    return ("hang",) if method == "GET" else ("hang", "hang-after")


def test_create_when_nothing_disturbs_it_then_proven_and_a_second_run_changes_nothing(
    stage: Stage, undisturbed: Undisturbed
) -> None:
    stage.require_converged(stage.create(), undisturbed.objects)
    revisions = stage.releases()
    stage.require_converged(stage.create(), undisturbed.objects)
    assert stage.releases() == revisions


def test_boundaries_when_compared_with_an_undisturbed_run_then_none_is_left_out(undisturbed: Undisturbed) -> None:
    assert len(undisturbed.ours) == OURS
    assert len([at for at in undisturbed.ours if at < undisturbed.helm[0]]) == BEFORE_HELM
    looks = undisturbed.ours[:FIRST_LOOK] + undisturbed.ours[BEFORE_PROOF:]
    assert {undisturbed.kube[at - 1][0] for at in looks} == {"GET"}
    assert undisturbed.kube[undisturbed.ours[FIRST_LOOK] - 1][0] == "POST"
    assert len(undisturbed.helm) <= MOST_HELM
    cluster, pools, *beside, put = undisturbed.arm[:BEFORE_POLLS]
    assert [cluster[0], pools[0], put[0]] == ["GET", "GET", "PUT"]
    # Access to the cluster and its cloud's quotas, side by side.
    assert sorted((method, path.rpartition("/")[2]) for method, path in beside) == [
        ("GET", "usages"),
        ("POST", "listClusterUserCredential"),
    ]
    assert all("/operations/" in path for _, path in undisturbed.arm[BEFORE_POLLS:-2])
    assert [path.rpartition("/")[2] for _, path in undisturbed.arm[-2:]] == ["a100mig", "a100mig"]


@pytest.mark.turns(3)
@pytest.mark.parametrize("part", range(3))
def test_create_when_killed_at_every_third_call_before_the_first_change_in_a_row_then_converges(
    stage: Stage, undisturbed: Undisturbed, part: int
) -> None:
    boundaries = [("arm", at) for at in range(1, BEFORE_POLLS)] + [("kube", at) for at in range(1, BEFORE_HELM + 1)]
    for service, nth in boundaries[part::3]:
        daemon.add_fault(stage.info, "hang", service=service, nth=nth)
        assert stage.kill_at_fault(stage.start_create(), with_children=True), (service, nth)
        assert stage.pools() == {"nodepool1": 1}
        assert stage.releases() == []
    stage.require_converged(stage.create(), undisturbed.objects)


@pytest.mark.turns(4)
@pytest.mark.parametrize("case", POOL_API)
def test_create_when_killed_at_a_call_of_the_pool_api_then_converges(
    stage: Stage, undisturbed: Undisturbed, case: str
) -> None:
    call = POOL_API[case]
    for action in actions_at(call.method):
        kill_and_repeat(stage, undisturbed, call.parts, action, machine=False)
        daemon.reset(stage.info)


@pytest.mark.turns(3)
@pytest.mark.parametrize("part", range(3))
def test_create_when_killed_at_every_third_call_of_the_proof_in_a_row_then_converges(
    stage: Stage, undisturbed: Undisturbed, part: int
) -> None:
    daemon.add_fault(stage.info, "hang", service="kube", nth=undisturbed.ours[BEFORE_PROOF])
    assert stage.kill_at_fault(stage.start_create(), with_children=True)
    for nth in range(LOOK + 1 + part, 2 * LOOK + 1, 3):  # from now on there is one look to plan, and one to prove
        daemon.add_fault(stage.info, "hang", service="kube", nth=nth)
        assert stage.kill_at_fault(stage.start_create(), with_children=True), nth
    stage.require_converged(stage.create(), undisturbed.objects)


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    "at",
    [
        *range(BEFORE_HELM, BEFORE_PROOF),
        *(pytest.param(at, marks=pytest.mark.slow) for at in range(BEFORE_PROOF, OURS)),
    ],
)
def test_create_when_killed_at_a_call_of_the_cluster_then_converges(
    stage: Stage, undisturbed: Undisturbed, at: int
) -> None:
    nth = undisturbed.ours[at]
    for action in actions_at(undisturbed.kube[nth - 1][0]):
        kill_and_repeat(stage, undisturbed, on_kube(nth), action, machine=False)
        daemon.reset(stage.info)


@pytest.mark.turns(8)
@pytest.mark.parametrize("case", HELM_CALLS)
def test_create_when_the_machine_dies_while_helm_runs_then_converges(
    stage: Stage, undisturbed: Undisturbed, case: str
) -> None:
    for action in actions_at(HELM_CALLS[case].method):
        nth = helm_call(undisturbed, HELM_CALLS[case])
        kill_and_repeat(stage, undisturbed, on_kube(nth), action, machine=True)
        daemon.reset(stage.info)


@pytest.mark.turns(3)
@pytest.mark.parametrize("case", ["dry run", "release record", "config"])
def test_create_when_killed_alone_while_helm_runs_on_then_converges(
    stage: Stage, undisturbed: Undisturbed, case: str
) -> None:
    nth = helm_call(undisturbed, HELM_CALLS[case])
    kill_and_repeat(stage, undisturbed, on_kube(nth), "hang", machine=False)


def test_create_when_a_run_is_killed_alone_then_its_helm_ends_with_it_and_the_next_run_need_not_wait(
    stage: Stage, undisturbed: Undisturbed
) -> None:
    nth = helm_call(undisturbed, HELM_CALLS["release record is closed"])
    daemon.add_fault(stage.info, "hang", service="kube", nth=nth)
    first = stage.start_create()
    wait_for(stage.struck)
    first.kill(with_children=False)
    daemon.clear_faults(stage.info)
    stage.require_converged(stage.create(), undisturbed.objects)


def test_create_when_a_run_elsewhere_may_still_work_then_said_and_ended_by_an_interrupt(
    stage: Stage, undisturbed: Undisturbed
) -> None:
    daemon.add_fault(stage.info, "hang-after", service="kube", nth=helm_call(undisturbed, HELM_CALLS["release record"]))
    assert stage.kill_at_fault(stage.start_create(), with_children=True)
    elsewhere = replace(stage, home=stage.tmp)  # another machine: none of this one's marks
    second = elsewhere.start_create()
    wait_for(
        lambda: re.search(
            r"waiting up to (135|120|105|90) s: another Helm run may be changing the release", second.said
        )
    )
    os.kill(second.pid, signal.SIGINT)
    ended = second.wait()
    assert ended.code == 130, ended.said
    assert "To resume: " in ended.err
    stage.require_converged(stage.create(), undisturbed.objects)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [True, False], ids=["machine", "alone"])
@pytest.mark.parametrize("at", range(MOST_HELM))
def test_create_when_killed_at_any_call_of_helm_then_converges(
    stage: Stage, undisturbed: Undisturbed, at: int, *, machine: bool
) -> None:
    if at >= len(undisturbed.helm):
        pytest.skip(f"an undisturbed run has {len(undisturbed.helm)} such calls")
    nth = undisturbed.helm[at]
    for action in actions_at(undisturbed.kube[nth - 1][0]):
        kill_and_repeat(stage, undisturbed, on_kube(nth), action, machine=machine)
        daemon.reset(stage.info)
