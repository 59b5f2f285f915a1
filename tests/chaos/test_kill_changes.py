"""Killed at any change of the cloud and run again, `pool apply`, `pool delete` and `pool scale` converge.

A story is killed at its first change, not processed; then at the same change, processed and not answered; then at
the next one; and so on, until a run ends by itself.
"""

from __future__ import annotations

import itertools
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube.sandbox import daemon
from tests.chaos.changes import CHANGES, CLOUDS, prepare, require_changed, start_change

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
        "sharing": 1,
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

    def __init__(self, stage: Stage, cloud: Cloud, change: Change) -> None:
        self._stage, self._cloud, self._change = stage, cloud, change
        self._vain = dict.fromkeys(cloud.writes, 0)

    def strike(self, action: Action) -> bool:
        """Start the story and kill it at its next change of the cloud; False when it ended without one."""
        stage, cloud = self._stage, self._cloud
        for method, path in cloud.writes:
            nth = 1 + self._vain[method, path]
            daemon.add_fault(stage.info, action, service=cloud.service, method=method, path=path, nth=nth)
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
        """What asks for nothing new (the group is gone, the template is there) is asked again by each further run."""
        struck = [one for one in daemon.requests_since(self._stage.info) if one["fault"]][-1]
        if int(str(struck["status"])) >= HTTPStatus.BAD_REQUEST:
            body = struck["body"]
            action = f"?Action={body.get('Action')}" if isinstance(body, dict) else ""
            target = f"{struck['path']}{action}"
            self._vain[
                next(
                    (method, path)
                    for method, path in self._cloud.writes
                    if method == struck["method"] and re.search(path, target)
                )
            ] += 1


@pytest.mark.turns(27)
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


@pytest.mark.turns(6)
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


@pytest.mark.turns(12)
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
