"""One fault at any call of an update: the run, or the next one, brings the change about; a failure says what to do.

Updates go to and fro between two specs, so that one pool serves many of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.chaos.changes import CHANGES, CLOUDS, prepare, require_changed, start_apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.stage import Ended, Stage

Fault = dict[str, object]

FAULTS: Mapping[str, Fault] = {
    "429": {"action": "status", "status": 429, "headers": {"Retry-After": "0"}},
    "500": {"action": "status", "status": 500},
    "503": {"action": "status", "status": 503},
    "drop-before": {"action": "drop-before"},
    "drop-after": {"action": "drop-after"},
}
BUSY: Mapping[str, Fault] = {
    "aks": {"action": "background", "cluster": "train", "seconds": 2500.0, "state": "Updating"},
    "eks": {"action": "status", "service": "aws", "path": "/update-config", "status": 409, "times": 2},
    "gke": {"action": "background", "cluster": "train", "seconds": 2500.0},
}
"""What keeps each cloud busy for half a second, or for two attempts."""
FAILING: Mapping[tuple[str, str], str] = {
    ("aks", "update"): "AllocationFailed",
    ("aks", "roll"): "NodesNotReady",
    ("eks", "roll"): "PodEvictionFailure",
}
"""How an operation fails after it has begun; a change of an EKS group's configuration does not."""
MOST_CALLS = 30


def add(stage: Stage, fault: Fault) -> None:
    """Let it strike."""
    parts = dict(fault)
    daemon.add_fault(stage.info, str(parts.pop("action")), **parts)


def get_over(stage: Stage, which: str) -> Ended:
    """Apply; when the run does not get over its fault by itself, apply once more."""
    ended = start_apply(stage, which).wait()
    stage.require_polite(ended)
    daemon.clear_faults(stage.info)
    if ended.code != 0:
        ended = start_apply(stage, which).wait()
        stage.require_polite(ended)
    assert ended.code == 0, ended.said
    return ended


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_update_when_its_first_change_meets_each_fault_in_a_row_then_gets_over_it(stage: Stage, name: str) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "update"]
    prepare(stage, cloud, change)
    method, path = cloud.writes[0]
    for at, fault in enumerate(FAULTS.values()):
        add(stage, {**fault, "service": cloud.service, "method": method, "path": path})
        get_over(stage, ("after", "before")[at % 2])
    require_changed(stage, cloud, change, get_over(stage, "after"))


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_update_when_the_cloud_is_busy_then_waited_for(stage: Stage, name: str) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "update"]
    prepare(stage, cloud, change)
    fault = {**BUSY[name], "code": "ResourceInUseException"} if name == "eks" else BUSY[name]
    add(stage, fault)
    ended = start_apply(stage, "after").wait()
    daemon.clear_faults(stage.info)
    require_changed(stage, cloud, change, ended)


@pytest.mark.turns(3)
@pytest.mark.parametrize(("name", "what"), FAILING)
def test_update_when_the_cloud_cannot_do_it_then_said_and_the_next_run_brings_it_about(
    stage: Stage, name: str, what: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, what]
    prepare(stage, cloud, change)
    kind = "" if what == "roll" else "(?i)size|updating"
    add(stage, {"action": "operation", "pool": cloud.pool, "code": FAILING[name, what], "kind": kind})
    first = start_apply(stage, "after").wait()
    stage.require_polite(first)
    assert first.code in (1, 6), first.said
    assert '"resume"' in first.out
    daemon.clear_faults(stage.info)
    require_changed(stage, cloud, change, start_apply(stage, "after").wait())


def test_update_when_gke_cannot_do_the_first_of_its_calls_then_said_and_the_next_run_does_the_rest(
    stage: Stage,
) -> None:
    """GKE keeps what was asked for: RUNNING_WITH_ERROR, which the next change ends."""
    cloud, change = CLOUDS["gke"], CHANGES["gke", "update"]
    prepare(stage, cloud, change)
    add(stage, {"action": "operation", "pool": cloud.pool, "code": "GCE_STOCKOUT", "kind": "SIZE|UPGRADE"})
    first = start_apply(stage, "after").wait()
    daemon.clear_faults(stage.info)
    stage.require_polite(first)
    assert (first.code, "GCE_STOCKOUT" in first.out) == (6, True), first.said
    require_changed(stage, cloud, change, start_apply(stage, "after").wait())


def test_roll_when_gke_cannot_do_it_then_each_run_says_so_and_the_pool_is_left_alone(stage: Stage) -> None:
    """GKE keeps what was asked for and the former machines: there is no difference left to send anything for."""
    cloud, change = CLOUDS["gke"], CHANGES["gke", "roll"]
    prepare(stage, cloud, change)
    add(stage, {"action": "operation", "pool": cloud.pool, "code": "GCE_STOCKOUT", "kind": "SIZE|UPGRADE"})
    first = start_apply(stage, "after").wait()
    daemon.clear_faults(stage.info)
    mark = len(daemon.requests_since(stage.info))
    again = start_apply(stage, "after").wait()
    for ended in (first, again):
        stage.require_polite(ended)
        assert (ended.code, "GCE_STOCKOUT" in ended.out) == (6, True), ended.said
    asked = [one for one in daemon.requests_since(stage.info, mark) if one["service"] == cloud.service]
    assert {str(one["method"]) for one in asked if one["path"] != "/token"} == {"GET"}
    assert stage.pools() == {**cloud.others, cloud.pool: 2}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("what", ["update", "sharing", "roll"])
@pytest.mark.parametrize("name", CLOUDS)
def test_update_when_each_call_to_the_cloud_meets_a_fault_then_converges(
    stage: Stage, name: str, what: str, kind: str
) -> None:
    """A roll is not undone: an older version, a smaller disk; there only the first update is disturbed at each call."""
    cloud, change = CLOUDS[name], CHANGES[name, what]
    prepare(stage, cloud, change)
    which = "after"
    for nth in range(1, MOST_CALLS + 1):
        mark = len(daemon.requests_since(stage.info))
        add(stage, {**FAULTS[kind], "service": cloud.service, "nth": nth})
        get_over(stage, which)
        if not [one for one in daemon.requests_since(stage.info, mark) if one["fault"]]:
            break
        if what != "roll":
            which = "before" if which == "after" else "after"
    require_changed(stage, cloud, change, get_over(stage, "after"))
