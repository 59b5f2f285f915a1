"""Waiting for proof: what may pass by itself gets its time, what stays broken is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.engine.change.proving import prove, summarise
from gpukube.engine.run.clock import Stopped
from gpukube.errors import ClusterError, WaitTimeout
from gpukube.testing.clock import ManualClock
from tests.unit.cluster.builders import SINGLE, desire, installed, node_of
from tests.unit.engine.stage import PACE, RESUME, Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.state.snapshot import Snapshot

CUT = desire(sharing=SINGLE)
WELL = installed([CUT], node_of(CUT))
NO_NODE = installed([CUT])
NO_ENTRY = replace(WELL, config_map={})
NO_ANSWER = ClusterError("the Kubernetes API does not answer", fix="wait")


def until(end: float, first: Snapshot | ClusterError) -> Callable[[float], Snapshot | ClusterError]:
    """See one thing until that second, and that all is well from then on."""
    return lambda now: first if now < end else WELL


@pytest.mark.parametrize("first", [NO_NODE, NO_ENTRY, NO_ANSWER], ids=["waiting", "broken", "no answer"])
def test_prove_when_it_mends_itself_in_time_then_proven(first: Snapshot | ClusterError) -> None:
    stage = Stage([CUT], seen_at=until(PACE.settle_s - 10, first))
    assert prove(CUT, stage.session, stage.run).total == {"nvidia.com/gpu": 56}
    assert stage.messages()


def test_prove_when_broken_for_good_then_told_long_before_the_limit() -> None:
    stage = Stage([CUT], seen_at=until(1e9, NO_ENTRY))
    with pytest.raises(ClusterError) as caught:
        prove(CUT, stage.session, stage.run)
    assert caught.value.diagnostics[0].code == "step-config-entry"
    assert PACE.settle_s <= stage.clock.now() < PACE.settle_s + 2 * PACE.poll_s


def test_prove_when_the_machine_sleeps_between_two_looks_then_that_time_does_not_count() -> None:
    clock, asleep_s = ManualClock(), [2 * PACE.settle_s]

    def seen_at(now: float) -> Snapshot | ClusterError:
        if now and asleep_s:  # it falls asleep while it looks again: it sees what was there before
            clock.wait(asleep_s.pop())
        return NO_ENTRY if now <= PACE.poll_s + 2 * PACE.settle_s else WELL

    stage = Stage([CUT], clock, seen_at=seen_at)
    assert prove(CUT, stage.session, stage.run).total == {"nvidia.com/gpu": 56}


def test_prove_when_it_is_broken_now_and_then_then_the_time_counts_anew() -> None:
    stage = Stage([CUT], seen_at=lambda now: WELL if now > 200 else NO_NODE if 40 < now < 50 else NO_ENTRY)
    with pytest.raises(ClusterError):
        prove(CUT, stage.session, stage.run)
    assert stage.clock.now() > PACE.settle_s + 40


def test_prove_when_no_node_comes_then_given_up_at_the_limit() -> None:
    stage = Stage([CUT], seen_at=until(1e9, NO_NODE))
    with pytest.raises(ClusterError) as caught:
        prove(CUT, stage.session, stage.run)
    assert caught.value.diagnostics[0].code == "step-node"
    assert stage.clock.now() == PACE.verify_s


def test_prove_when_the_runs_timeout_is_shorter_then_it_holds_and_says_how_to_resume() -> None:
    stage = Stage([CUT], seen_at=until(1e9, NO_NODE))
    hurried = replace(stage.run, pace=PACE.with_timeout(40))
    with pytest.raises(WaitTimeout, match=r"timed out: .*0 of 1 nodes are in the cluster") as caught:
        prove(CUT, stage.session, hurried)
    assert stage.clock.now() == 40
    assert caught.value.diagnostics[0].fix.endswith(f"to resume: {RESUME}")


def test_prove_when_the_cluster_never_answers_then_its_own_error() -> None:
    stage = Stage([CUT], seen_at=until(1e9, NO_ANSWER))
    with pytest.raises(ClusterError) as caught:
        prove(CUT, stage.session, stage.run)
    assert caught.value is NO_ANSWER


def test_prove_when_stopped_then_at_once() -> None:
    stage = Stage([CUT], ManualClock(stop_at=12), seen_at=until(1e9, NO_NODE))
    with pytest.raises(Stopped):
        prove(CUT, stage.session, stage.run)
    assert stage.clock.now() == 12


DARK = installed([CUT], node_of(CUT, allocatable={}))


@pytest.mark.parametrize(
    ("log", "step"),
    [
        (("No devices found. Waiting indefinitely.",), "step-driver"),
        (("Starting Plugins.",), "step-count"),
        (ClusterError("not for you"), "step-count"),
    ],
    ids=["it says why", "no message", "it cannot be read"],
)
def test_prove_when_a_node_shows_nothing_then_the_plugins_log_is_asked(
    log: tuple[str, ...] | ClusterError, step: str
) -> None:
    stage = Stage([CUT], seen_at=until(1e9, DARK), log=log)
    with pytest.raises(ClusterError) as caught:
        prove(CUT, stage.session, stage.run)
    assert caught.value.diagnostics[0].code == step


def test_prove_when_somebody_else_runs_the_plugin_then_nodes_are_enough() -> None:
    ownership = replace(CUT.ownership, advertiser="none", config_key="", labels={})
    own = replace(CUT, ownership=ownership, target=replace(CUT.target, plugin_owner="none"))
    bare = replace(node_of(CUT), allocatable={})
    stage = Stage([own], seen_at=lambda _now: installed([CUT], bare))
    proof = prove(own, stage.session, stage.run)
    assert (proof.nodes_seen, dict(proof.expected), dict(proof.total)) == (1, {}, {})
    assert summarise(proof) == "not managed: no GPU is advertised until you install a plugin (1 node)"
    with pytest.raises(ClusterError):
        prove(CUT, stage.session, stage.run)


def test_prove_when_somebody_elses_plugin_shows_something_then_told_and_not_judged() -> None:
    own = replace(CUT, target=replace(CUT.target, plugin_owner="none"))
    shown = replace(node_of(CUT), allocatable={"nvidia.com/gpu": "3"})
    stage = Stage([own], seen_at=lambda _now: installed([CUT], shown))
    proof = prove(own, stage.session, stage.run)
    assert (proof.status, proof.all_findings) == ("unmanaged", ())
    assert summarise(proof) == "not managed: your own plugin advertises nvidia.com/gpu: 3 on 1 node"


def test_prove_when_nothing_is_managed_and_nodes_are_missing_then_not_proven() -> None:
    own = replace(CUT, target=replace(CUT.target, plugin_owner="none"))
    stage = Stage([own], seen_at=lambda _now: installed([CUT]))
    with pytest.raises(ClusterError) as caught:
        prove(own, stage.session, stage.run)
    assert [found.code for found in caught.value.diagnostics] == ["step-node"]


def test_prove_when_the_owner_was_refused_then_still_held_to_the_promise() -> None:
    refused = replace(CUT, ownership=replace(CUT.ownership, advertiser="none", config_key="", labels={}))
    stage = Stage([refused], seen_at=lambda _now: installed([CUT], replace(node_of(CUT), allocatable={})))
    with pytest.raises(ClusterError):
        prove(refused, stage.session, stage.run)
