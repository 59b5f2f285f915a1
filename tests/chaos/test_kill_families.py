"""Killed at any request while the alternatives of a pool are tried and run again, `pool create` ends with one of them.

The first two alternatives have no machines, the third has: a run that nothing disturbs makes and deletes two pools. A
boundary is a request of any service, those for the lock included, not processed ("hang") or not answered
("hang-after").
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from tests.alternatives.stage import NODES, Families, made_requests, ranked
from tests.changes.world import spec
from tests.chaos.clouds import templates

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.stage import Ended, Stage, Started

ACTIONS = ("hang", "hang-after")
PATIENCE = ("--capacity-wait", "0.03")
"""Minutes after which a pool on EKS has no machines; the other clouds say so at once."""
MOST_CALLS = {"eks": 340, "aks": 140, "gke": 170}
"""More requests than an undisturbed run has on each cloud."""
PLAIN_CALL = 90
"""Each run has this boundary on one cloud, a full one all that there are."""
OUTCOME_S = {"eks": 3.0, "aks": 60.0, "gke": 10.0}
"""For how long a run relies on what an attempt ended with, at the sandbox's speed."""
LATER = 13
"""Each further kill strikes so many requests later than the one before it."""


def begin(stage: Stage, cloud: str) -> Path:
    """Have a cluster, no machines for the first two alternatives, and the spec."""
    world = Families(stage.info)
    world.begin(cloud)
    for rank in range(2):
        world.stock(cloud, rank, 0)
    path = stage.home / "family.yaml"
    path.write_text(yaml.safe_dump(spec("team", world.there, [ranked(cloud, deletionProtection=True)])))
    return path


def create(stage: Stage, path: Path) -> Started:
    """Start `pool create`."""
    return stage.start("pool", "create", "-f", str(path), "-o", "json", *PATIENCE)


def require_third(stage: Stage, cloud: str, path: Path, ended: Ended) -> None:
    """The third alternative has the nodes, nothing else is left, and one more run changes nothing."""
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    world = Families(stage.info)
    assert world.sizes() == {f"{cloud}/m2": NODES}, ended.said
    assert world.taken() == 0
    if cloud == "eks":
        assert list(templates(stage)) == ["gpukube/eks/m2"]
    mark = world.last_request()
    again = create(stage, path).wait()
    assert again.code == 0, again.said
    (outcome,) = (pool["outcome"] for one in json.loads(again.out)["clusters"] for pool in one["pools"])
    assert outcome == "unchanged", again.said
    assert made_requests(stage.info, mark) == []
    stage.require_private()


def _killed(stage: Stage, path: Path, action: str, nth: int) -> Ended | None:
    """Kill a creation at a request; return how it ended if it did before."""
    daemon.add_fault(stage.info, action, nth=nth)
    started = create(stage, path)
    if stage.kill_at_fault(started, with_children=True):
        return None
    daemon.clear_faults(stage.info)
    return started.wait()


def _pool(made: tuple[str, float]) -> str:
    return made[0].rpartition("/")[2]


@pytest.mark.turns(9)
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize(
    ("cloud", "nth"),
    [
        pytest.param(cloud, at, marks=[] if at == PLAIN_CALL else [pytest.mark.slow])
        for cloud, most in MOST_CALLS.items()
        for at in range(1, most)
    ],
)
def test_create_when_killed_at_a_request_of_three_attempts_then_one_alternative_is_left(
    stage: Stage, cloud: str, nth: int, action: str
) -> None:
    path = begin(stage, cloud)
    world = Families(stage.info)
    mark = world.last_request()
    with world.watched() as seen:
        if _killed(stage, path, action, nth):
            pytest.skip("an undisturbed run has fewer requests")
        had = made_requests(stage.info, mark)
        between = world.last_request()
        require_third(stage, cloud, path, create(stage, path).wait())
    assert max(map(len, seen)) <= 1, seen
    went_on = made_requests(stage.info, between)
    if (
        had and went_on and _pool(went_on[0]) == "m0" != _pool(had[-1])
    ):  # it is asked again once its outcome has expired
        assert went_on[0][1] - had[0][1] > OUTCOME_S[cloud], (had, went_on)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cloud", MOST_CALLS)
def test_create_when_killed_again_and_again_ever_later_then_one_alternative_is_left(stage: Stage, cloud: str) -> None:
    path = begin(stage, cloud)
    world = Families(stage.info)
    with world.watched() as seen:
        kills = (_killed(stage, path, ACTIONS[times % 2], times * LATER) for times in itertools.count(2))
        last = next(ended for ended in kills if ended)
        require_third(stage, cloud, path, last)
    assert max(map(len, seen)) <= 1, seen
