"""Several runs at once for the same family: one alternative has the nodes in the end, and never two at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import sleep
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.alternatives.stage import NODES, made_requests, ranked
from tests.changes.world import spec

if TYPE_CHECKING:
    from gpukube import api
    from tests.alternatives.stage import Families
    from tests.changes.world import Document

COUNT = 60
EACH_RUN = 9


@pytest.mark.turns(9)
@pytest.mark.parametrize(
    "number", [*range(EACH_RUN), *(pytest.param(one, marks=pytest.mark.slow) for one in range(EACH_RUN, COUNT))]
)
def test_runs_when_two_or_three_work_at_once_then_one_alternative_has_the_nodes(world: Families, number: int) -> None:
    random = Random(number)  # noqa: S311 - not cryptography
    cloud = random.choice(["eks", "aks", "gke"])
    world.begin(cloud)
    none = random.randint(0, 2)
    for rank in range(none):
        returns = {float(random.randint(100, 6000)): NODES} if random.random() < 0.3 else None
        world.stock(cloud, rank, 0, returns)
    document = spec("team", world.there, [ranked(cloud)])
    pauses = [random.random() * 1.5 for _ in range(random.randint(2, 3))]
    commands = [random.choice([create, apply]) for _ in pauses]
    with world.watched() as seen, ThreadPoolExecutor() as threads:
        started = [threads.submit(run, world, document, pause) for run, pause in zip(commands, pauses, strict=True)]
        ended = [one.result() for one in started]
    assert max(map(len, seen)) <= 1, seen
    assert [report.error for report in ended] == [None] * len(ended)
    left = world.sizes()
    assert list(left.values()) == [NODES], left
    assert {report.outcome for report in ended} <= {"done", "unchanged"}
    assert {f"{cloud}/{report.name}" for report in ended} == set(left)
    if all(one["then"] == {} for one in daemon.list_stock(world.info)):
        assert left == {f"{cloud}/m{none}": NODES}
        assert [name.rpartition("/")[2] for name, _ in made_requests(world.info, 0)][-1] == f"m{none}"


def create(world: Families, document: Document, pause: float) -> api.PoolReport:
    """Create the one family of a spec, a moment later."""
    sleep(pause)
    return world.ran(document)[1]


def apply(world: Families, document: Document, pause: float) -> api.PoolReport:
    """Apply the spec instead."""
    sleep(pause)
    (report,) = world.apply(document).values()
    return report
