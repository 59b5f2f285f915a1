"""What stopped runs have left: attempts go on, and the pool that won gets the mark against deletion all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.prices import PriceBook
from gpukube.engine.change import family_run
from gpukube.errors import ExitCode
from tests.alternatives.generator import REGIONS
from tests.alternatives.stage import NODES, RANKS, killed, made_requests, ranked
from tests.changes.world import prepare, spec

if TYPE_CHECKING:
    from tests.alternatives.stage import Families

CLOUDS = ("eks", "aks", "gke")
BEGUN = {"eks": "m1 requesting 2 x", "aks": "m1 InProgress", "gke": "m1 requesting 2 x"}
"""What a run says once the pool of its second attempt exists."""


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_apply_when_an_attempt_has_left_a_pool_without_nodes_then_it_goes_on_without_consent(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    document = spec("team", world.there, [ranked(cloud)])
    world.ran(document, run=world.run_until(f"requesting {NODES} x", stop=True))
    assert world.sizes() == {f"{cloud}/m0": 0}
    code, report = world.applied(document)
    assert (code, report.name) == (0, "m0"), report.error
    assert world.sizes() == {f"{cloud}/m0": NODES}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_stopped_before_the_mark_against_deletion_then_the_next_run_writes_it(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    document = spec("team", world.there, [ranked(cloud, deletionProtection=True)])
    world.ran(document, run=world.run_until("requesting deletionProtection", stop=True))
    assert world.sizes() == {f"{cloud}/m0": NODES}
    assert world.pools(document)["m0"].action == "update"
    code, report = world.ran(document)
    assert (code, report.outcome) == (0, "done"), report
    assert world.pools(document)["m0"].action == "no-op"


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_stopped_in_the_second_attempt_then_it_goes_on_there(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    world.ran(document, run=world.run_until(BEGUN[cloud], stop=True))
    assert f"{cloud}/m1" in world.sizes()
    mark = world.last_request()
    world.stock(cloud, 0, NODES)
    code, report = world.ran(document)
    assert (code, report.name) == (0, "m1"), report
    assert {name.partition(" ")[2] for name, _ in made_requests(world.info, mark)} <= {f"{cloud}/m1"}
    assert world.sizes() == {f"{cloud}/m1": NODES}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_nodes_are_missing_then_it_gets_them_and_reports_no_difference(world: Families, cloud: str) -> None:
    world.begin(cloud)
    document = spec("team", world.there, [ranked(cloud)])
    world.ran(document)
    api.scale(prepare(document), world.run(), "m0", api.Size(count=NODES - 1))
    assert world.sizes() == {f"{cloud}/m0": NODES - 1}
    code, report = world.ran(document)
    assert (code, report.outcome, report.message) == (0, "done", "has all its nodes now"), report
    assert world.sizes() == {f"{cloud}/m0": NODES}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_a_killed_attempt_costs_too_much_by_now_then_it_is_given_up(
    world: Families, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(family_run, "fence", killed)
        world.ran(spec("team", world.there, [ranked(cloud)]))
    assert world.sizes() == {f"{cloud}/m0": 0}
    live = [LivePrice(machine, 10.0, spot=kind == "spot") for machine, kind in RANKS[cloud]]
    prices = PriceBook(live={(cloud, REGIONS[cloud]): tuple(live)}, day="2026-11-28")
    ended = world.ran(spec("team", world.there, [ranked(cloud, maxHourlyPrice=19.99)]), prices)
    assert (ended.code, world.sizes()) == (ExitCode.ERROR, {}), ended


def test_create_when_all_have_just_refused_then_it_says_when_they_are_asked_again(world: Families) -> None:
    world.begin("gke")
    for rank in range(3):
        world.stock("gke", rank, 0)
    document = spec("team", world.there, [ranked("gke")])
    said: list[str] = []
    assert world.ran(document).code == ExitCode.CAPACITY
    mark = world.last_request()
    for rank in range(3):
        world.stock("gke", rank, NODES)

    def run() -> api.Run:
        made = world.run(listen=lambda event: said.append(f"{event.pool} {event.message}"))
        return replace(made, pace=replace(made.pace, speed=1.0))

    again = world.ran(document, run=run())
    assert (again.code, made_requests(world.info, mark)) == (ExitCode.CAPACITY, []), again
    assert again.report.error is not None
    moments = r"after \d\d:\d\d:\d\d UTC \(apply --rebalance asks at once\), or add alternatives"
    assert re.fullmatch(f"run the same command again {moments}", again.report.error.diagnostics[-1].fix)
    assert sum("not asked again before" in one for one in said) == 3
    forced = world.applied(document, run=run(), rebalance=True)
    assert (forced.code, forced.report.name, world.sizes()) == (0, "m0", {"gke/m0": NODES}), forced
