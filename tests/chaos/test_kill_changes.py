"""Killed at any change of the cloud or the cluster and run again, commands that change pools and releases converge.

A story is killed at its first change, not processed; then at the same change, processed and not answered; then at
the next one; and so on, until a run ends by itself.
"""

from __future__ import annotations

import itertools
import re
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube_sandbox import daemon
from tests.chaos.changes import (
    CHANGES,
    CLOUDS,
    COMMANDS,
    STORIES,
    begin,
    cloud_of,
    prepare,
    require_changed,
    require_done,
    start_change,
)
from tests.chaos.test_lost_answers import Call, calls_since

if TYPE_CHECKING:
    from tests.chaos.changes import Change, Cloud
    from tests.chaos.stage import Stage

Action = Literal["hang", "hang-after"]
BOTH: tuple[Action, ...] = ("hang", "hang-after")
MOST_CHANGES = 8
WRITES = {
    "aks": {
        "update": 1,
        "sharing": 1,
        "roll": 1,
        "recreate": 2,
        "surge": 2,
        "upgrade": 1,
        "prune": 1,
        "delete": 1,
        "scale": 1,
    },
    "eks": {
        "update": 1,
        "sharing": 2,
        "roll": 2,
        "recreate": 3,
        "surge": 6,
        "upgrade": 1,
        "prune": 3,
        "delete": 3,
        "scale": 1,
    },
    "gke": {
        "update": 3,
        "sharing": 1,
        "roll": 1,
        "recreate": 2,
        "surge": 2,
        "upgrade": 1,
        "prune": 1,
        "delete": 1,
        "scale": 1,
    },
}
"""How many changes each story asks its cloud for; on EKS some are vain, the next run makes or deletes it again."""


class Killer:
    """Kills a story at its changes, one after the other."""

    def __init__(self, stage: Stage, cloud: Cloud, change: Change, *inside: tuple[str, str]) -> None:
        """Take the changes of the cloud, and those of the cluster that are given as method and path."""
        self._stage, self._cloud, self._change = stage, cloud, change
        writes = [(cloud.service, *write) for write in cloud.writes] + [("kube", *write) for write in inside]
        self._vain = dict.fromkeys(writes, 0)
        self._done: set[tuple[str, str, str]] = set()

    def strike(self, action: Action) -> bool:
        """Start the story and kill it at its next change; False when it ended without one."""
        stage, cloud = self._stage, self._cloud
        for (service, method, path), vain in self._vain.items():
            daemon.add_fault(stage.info, action, service=service, method=method, path=path, nth=1 + vain)
        started = start_change(stage, cloud, self._change)
        killed = stage.kill_at_fault(started, with_children=True)
        daemon.clear_faults(stage.info)
        stage.require_private()
        if killed:
            self._note_vain()
        else:
            stage.require_polite(started.wait())
        return killed

    def _note_vain(self) -> None:
        """What asks for nothing new (the group is gone, the tags are) is asked again by each further run."""
        struck = [one for one in daemon.requests_since(self._stage.info) if one["fault"]][-1]
        body = struck["body"]
        action = f"?Action={body.get('Action')}" if isinstance(body, dict) else ""
        target = f"{struck['path']}{action}"
        done = (str(struck["method"]), target, str(body))
        if int(str(struck["status"])) >= HTTPStatus.BAD_REQUEST or (done in self._done and struck["fault"] != "hang"):
            self._vain[
                next(
                    (service, method, path)
                    for service, method, path in self._vain
                    if (service, method) == (struck["service"], struck["method"]) and re.search(path, target)
                )
            ] += 1
        if struck["fault"] != "hang":
            self._done.add(done)


@pytest.mark.turns(9)
@pytest.mark.parametrize(("name", "what"), CHANGES)
def test_change_when_killed_at_each_change_of_the_cloud_in_turn_then_converges(
    stage: Stage, name: str, what: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, what]
    prepare(stage, cloud, change)
    killer = Killer(stage, cloud, change)
    struck = 0
    while killer.strike(BOTH[struck % 2]):
        struck += 1
        assert struck <= 2 * MOST_CHANGES
    assert struck == 2 * WRITES[name][what]
    require_changed(stage, cloud, change, start_change(stage, cloud, change).wait())


DRAIN_CALLS = (("PATCH", "/nodes/"), ("POST", "/eviction"))
DRAIN_WRITES = 4
"""Two nodes are cordoned, and a pod on each is evicted."""
KILLED = {
    "release": {"aks": 1, "eks": 4, "gke": 1},
    "adopt": {"aks": 1, "eks": 2, "gke": 1},
    "drain": dict.fromkeys(CLOUDS, DRAIN_WRITES),
    "undo": dict.fromkeys(CLOUDS, 2),
    "surge": {name: WRITES[name]["surge"] + DRAIN_WRITES for name in CLOUDS},
}
"""How many changes each asks its cloud and its cluster for, at most; the pool has pods, which are evicted at once.

On EKS tags that are gone are taken off again by the next run.
"""


@pytest.mark.turns(9)
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "what"), [(name, what) for what in KILLED for name in CLOUDS])
def test_command_when_killed_at_each_change_of_cloud_and_cluster_in_turn_then_converges(
    stage: Stage, name: str, what: str
) -> None:
    cloud, change = CLOUDS[name], STORIES[name, what]
    begin(stage, name, what, occupied=True)
    foreign, mark = stage.foreign(), len(daemon.requests_since(stage.info))
    killer = Killer(stage, cloud, change, *DRAIN_CALLS)
    struck = 0
    while killer.strike(BOTH[struck % 2]):
        struck += 1
        assert struck <= 2 * (MOST_CHANGES + DRAIN_WRITES)
    require_done(stage, name, what, start_change(stage, cloud, change).wait())
    assert stage.foreign() == foreign
    assert list(stage.evictions(mark).values()) == ([1, 1] if what in ("drain", "surge") else [])
    assert list(stage.tmp.iterdir()) == []
    sys.stdout.write(f"kills: {name} {what}: {struck}\n")
    at_once = 1 if what in ("drain", "surge") else 0
    assert 0 <= 2 * KILLED[what][name] - struck <= 2 * at_once


# The release: what Helm asks for comes again in each run, so each request is struck in a run of its own

REMOVALS = {
    "record is opened": Call("kube", "PUT", "/secrets/"),
    "first object": Call("kube", "DELETE", "/(deploy|daemonset)"),
    "another object": Call("kube", "DELETE", "/serviceaccounts/", 2),
    "hook is made": Call("kube", "PATCH", "/jobs/"),
    "hook is dropped": Call("kube", "DELETE", "/jobs/", 2),
    "first record": Call("kube", "DELETE", "/secrets/"),
    "last record": Call("kube", "DELETE", "/secrets/", 2),
}
"""A spread of what a removal changes."""
STUCK = "the GPU Operator's clean-up job is run again, and fails where its ServiceAccount has gone already"


def removal(stage: Stage, name: str) -> list[Call]:
    """List what a removal changes that nothing disturbs."""
    begin(stage, name, "remove")
    cloud, mark = cloud_of(name, "remove"), len(daemon.requests_since(stage.info))
    require_done(stage, name, "remove", start_change(stage, cloud, COMMANDS["remove"]).wait())
    return [call for call in calls_since(stage, mark, cloud.service) if not call.is_read and call.service == "kube"]


def kill_removal(stage: Stage, name: str, call: Call, action: Action) -> None:
    """Kill a removal at a request, and repeat it."""
    cloud, change = cloud_of(name, "remove"), COMMANDS["remove"]
    begin(stage, name, "remove")
    foreign = stage.foreign()
    daemon.add_fault(stage.info, action, service="kube", method=call.method, path=call.path, nth=call.nth)
    assert stage.kill_at_fault(start_change(stage, cloud, change), with_children=True), call
    stage.require_private()
    require_done(stage, name, "remove", start_change(stage, cloud, change).wait())
    assert stage.foreign() == foreign, call
    assert list(stage.tmp.iterdir()) == [], call


@pytest.mark.turns(9)
@pytest.mark.parametrize(("name", "case", "action"), list(itertools.product(CLOUDS, REMOVALS, BOTH)))
def test_release_remove_when_the_machine_dies_while_helm_runs_then_the_same_command_ends_it(
    stage: Stage, name: str, case: str, action: Action
) -> None:
    if (name, case) == ("gke", "another object"):
        pytest.xfail(STUCK)
    kill_removal(stage, name, REMOVALS[case], action)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "action", "part"), list(itertools.product(CLOUDS, BOTH, range(4))))
def test_release_remove_when_killed_at_any_change_then_the_same_command_ends_it(
    stage: Stage, name: str, action: Action, part: int
) -> None:
    if name == "gke":
        pytest.xfail(STUCK)
    calls = removal(stage, name)[part::4]
    for call in calls:
        kill_removal(stage, name, call, action)
    sys.stdout.write(f"kills: {name} remove {action}: {len(calls)}\n")


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_recreate_when_killed_in_its_drain_then_the_next_run_drains_the_rest_and_converges(
    stage: Stage, name: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "recreate"]
    prepare(stage, cloud, change)
    stage.occupy(cloud.pool)
    for method, path in DRAIN_CALLS:
        daemon.add_fault(stage.info, "hang-after", service="kube", method=method, path=path)
        assert stage.kill_at_fault(start_change(stage, cloud, change), with_children=True), path
        assert stage.pools()[cloud.pool] == 2, "nothing is deleted before the pods have left"
    require_changed(stage, cloud, change, start_change(stage, cloud, change).wait())


# Requests that change nothing in the cloud, and those of Helm: a change of sharing runs Helm twice

HELM_CALLS = {
    "dry run": ("GET", "/serviceaccounts/", 1),
    "entry is added": ("PATCH", r"/configmaps/gpukube-nvidia-device-plugin-configs\?(?!.*dryRun)", 1),
    "first run is closed": ("PUT", "/secrets/.*v2", 1),
    "second record": ("POST", r"/secrets\?", 2),
    "entry is dropped": ("PATCH", r"/configmaps/gpukube-nvidia-device-plugin-configs\?(?!.*dryRun)", 2),
    "second run is closed": ("PUT", "/secrets/.*v3", 1),
}
"""A spread of the requests of the two runs of Helm: method, path, which of those."""


@pytest.mark.turns(9)
@pytest.mark.parametrize(("call", "action"), [(call, action) for call in HELM_CALLS for action in BOTH])
def test_sharing_when_the_machine_dies_while_helm_runs_then_converges(stage: Stage, call: str, action: Action) -> None:
    cloud, change = CLOUDS["aks"], CHANGES["aks", "sharing"]
    prepare(stage, cloud, change)
    method, path, nth = HELM_CALLS[call]
    daemon.add_fault(stage.info, action, service="kube", method=method, path=path, nth=nth)
    assert stage.kill_at_fault(start_change(stage, cloud, change), with_children=True)
    require_changed(stage, cloud, change, start_change(stage, cloud, change).wait())


READS = {"aks": (1, 2, 3, 4, 5, 7), "eks": (1, 5, 9, 12, 14), "gke": (1, 2, 3, 4, 5, 7)}
"""A spread of the calls to each cloud of an update: identity, lists, credentials, looks, polls."""


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_update_when_killed_at_reads_of_the_cloud_and_the_cluster_in_a_row_then_converges(
    stage: Stage, name: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "update"]
    prepare(stage, cloud, change)
    for service, numbers in ((cloud.service, READS[name]), ("kube", (1, 9))):
        for nth in numbers:
            daemon.add_fault(stage.info, "hang", service=service, nth=nth)
            assert stage.kill_at_fault(start_change(stage, cloud, change), with_children=True), (service, nth)
    require_changed(stage, cloud, change, start_change(stage, cloud, change).wait())


MOST_CALLS = {"cloud": 40, "kube": 260}
"""More than any story asks for."""
BLOCK = 5
BLOCKS = [(service, first) for service, most in MOST_CALLS.items() for first in range(1, most, BLOCK)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("service", "first"), BLOCKS)
@pytest.mark.parametrize(("name", "what"), CHANGES)
def test_change_when_killed_at_any_call_then_converges(
    stage: Stage, name: str, what: str, service: str, first: int
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, what]
    for nth, action in itertools.product(range(first, first + BLOCK), BOTH):
        daemon.reset(stage.info)
        prepare(stage, cloud, change)
        daemon.add_fault(stage.info, action, service=cloud.service if service == "cloud" else service, nth=nth)
        if not stage.kill_at_fault(start_change(stage, cloud, change), with_children=True):
            return  # the story has fewer such calls
        require_changed(stage, cloud, change, start_change(stage, cloud, change).wait())
