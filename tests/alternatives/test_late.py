"""Machines that come late: one alternative has the nodes all the same, and what came for another is given back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import sleep
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.alternatives.stage import NODES, SPEED, made_requests, ranked
from tests.changes.world import spec

if TYPE_CHECKING:
    from tests.alternatives.stage import Families

CLOUDS = ("eks", "aks", "gke")
NEXT_TRY_S = 2400.0
"""Sandbox seconds after which each cloud has tried again, if it still tries."""


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_the_first_gets_machines_while_the_second_is_tried_then_only_the_second_has_nodes(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    run = world.run_until("m1 requesting", partial(world.stock, cloud, 0, NODES))
    with world.watched() as seen:
        code, report = world.ran(document, run=run)
        sleep(NEXT_TRY_S / SPEED)
    assert (code, report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), report
    assert world.taken() == 0
    assert set(seen) <= {frozenset(), frozenset({f"{cloud}/m1"})}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_one_of_two_machines_starts_then_it_is_given_back_before_the_next_attempt(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 1)
    before: list[tuple[int, dict[str, int]]] = []
    run = world.run_until("m1 requesting", lambda: before.append((world.taken(), world.sizes())))
    with world.watched() as seen:
        code, report = world.ran(spec("team", world.there, [ranked(cloud)]), run=run)
    assert (code, report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), report
    assert before == [(0, {})]
    assert frozenset({f"{cloud}/m0"}) in seen
    assert max(map(len, seen)) == 1


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_create_when_the_nodes_join_before_the_pool_is_given_up_then_it_is_kept(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)

    def return_machines() -> None:
        world.stock(cloud, 0, NODES)
        wait_for(lambda: world.ready(cloud, "m0") == NODES)

    code, report = world.ran(
        spec("team", world.there, [ranked(cloud)]), run=world.run_until("m0 no machines", return_machines)
    )
    assert (code, report.name, world.sizes()) == (0, "m0", {f"{cloud}/m0": NODES}), report
    assert len(made_requests(world.info, 0)) == 2, "that of the test's own first pool, and this one"


@pytest.mark.turns(2)
@pytest.mark.parametrize("lease", ["there", "deleted"])
def test_create_when_a_failed_pool_on_gke_has_recovered_after_a_killed_run_then_it_has_the_nodes(
    world: Families, lease: str
) -> None:
    world.begin("gke")
    world.stock("gke", 0, 0)
    document = spec("team", world.there, [ranked("gke")])
    world.ran(document, run=world.run_until("m0 giving up", stop=True))
    world.stock("gke", 0, NODES)
    wait_for(lambda: world.ready("gke", "m0") == NODES)
    if lease == "deleted":
        world.forget_attempts("gke")
    with world.watched() as seen:
        code, report = world.ran(document)
    assert (code, report.name, world.sizes()) == (0, "m0", {"gke/m0": NODES}), report
    assert set(seen) == {frozenset({"gke/m0"})}


def test_create_when_a_failed_pool_on_gke_recovers_between_two_reads_then_it_is_kept(world: Families) -> None:
    world.begin("gke")
    world.stock("gke", 0, 0)

    def recover() -> None:
        wait_for(lambda: any(one["struck"] for one in daemon.list_faults(world.info)))
        world.stock("gke", 0, NODES)
        wait_for(lambda: world.ready("gke", "m0") == NODES)
        daemon.clear_faults(world.info)

    def hold_the_second_read() -> None:
        daemon.add_fault(world.info, "hang", service="gke", method="GET", path="/nodePools/m0", nth=2)
        threads.submit(recover)

    with ThreadPoolExecutor() as threads:
        run = world.run_until("m0 giving up", hold_the_second_read)
        code, report = world.ran(spec("team", world.there, [ranked("gke")]), run=run)
    assert (code, report.name, world.sizes()) == (0, "m0", {"gke/m0": NODES}), report


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [1.0, 30.0, 300.0])
def test_create_when_a_failed_pool_on_gke_recovers_while_it_is_deleted_then_nothing_of_it_is_billed(
    world: Families, after_s: float
) -> None:
    world.begin("gke")
    world.stock("gke", 0, 0)
    world.stock("gke", 1, 0)
    run = world.run_until("m0 giving up", partial(world.stock, "gke", 0, 0, {after_s: NODES}))
    with world.watched() as seen:
        code, report = world.ran(spec("team", world.there, [ranked("gke")]), run=run)
        sleep(NEXT_TRY_S / SPEED)
    assert (code, report.name, world.sizes()) == (0, "m2", {"gke/m2": NODES}), report
    assert world.taken() == 0
    assert max(map(len, seen)) == 1
