"""Scaling and waiting: live pools by name, whatever else of them differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.fields import COUNT, LEAST, MOST, label
from gpukube.core.values import Nodes, Progress
from gpukube.engine.change.scale import Scaling, Size, plan_scaling, scale_pools
from gpukube.engine.change.waiting import wait_for_pools
from gpukube.errors import CloudError, Conflict, GpukubeError, SpecError
from tests.builders import CLUSTER
from tests.unit.cluster.builders import SINGLE, desire
from tests.unit.engine.stage import Stage

CUT = desire(sharing=SINGLE)
GROWING = desire(name="grow", pool="grow", nodes=Nodes(1, 1, 3, autoscaled=True))
OWNERS = (CUT.target.owner,)
DONE = Progress(done=True, status="Succeeded")


@pytest.fixture
def stage() -> Stage:
    made = Stage([CUT, GROWING])
    made.make()
    return made


def planned(stage: Stage, name: str, size: Size, owners: tuple[str, ...] = OWNERS) -> Scaling:
    return plan_scaling([stage.plan()], {CLUSTER.key: stage.session}, owners, name, size)


def scale(stage: Stage, name: str, size: Size) -> str:
    (report,) = scale_pools(planned(stage, name, size), {CLUSTER.key: stage.session}, stage.run)
    (pool,) = report.pools
    return pool.outcome


def test_scale_when_a_fixed_pool_grows_then_one_call_and_nothing_else_changes(stage: Stage) -> None:
    before = stage.world.pools[CUT.target.name].fields
    stage.run = replace(stage.run, no_wait=True)
    assert scale(stage, CUT.target.pool, Size(count=4)) == "started"
    assert stage.sent() == ["update"]
    assert stage.world.pools[CUT.target.name].fields == {**before, COUNT: 4}


def test_scale_when_it_has_the_size_then_nothing_is_sent(stage: Stage) -> None:
    count = CUT.target.nodes.count
    assert scale(stage, CUT.target.pool, Size(count=count)) == "unchanged"
    assert stage.sent() == []


def test_scale_when_bounds_are_given_then_the_other_one_stays(stage: Stage) -> None:
    stage.run = replace(stage.run, no_wait=True)
    assert scale(stage, "grow", Size(maximum=9)) == "started"
    fields = stage.world.pools["grow"].fields
    assert (fields[LEAST], fields[MOST]) == (1, 9)


def test_scale_when_the_pool_changed_meanwhile_then_only_the_size_is_ours(stage: Stage) -> None:
    scaling = planned(stage, CUT.target.pool, Size(count=4))
    pool = stage.world.pools[CUT.target.name]
    fields = {**pool.fields, label("team"): "speech"}
    stage.world.pools[CUT.target.name] = replace(pool, fields=fields, etag="77")
    scale_pools(scaling, {CLUSTER.key: stage.session}, replace(stage.run, no_wait=True))
    assert stage.world.pools[CUT.target.name].fields == {**fields, COUNT: 4}


REFUSED: dict[str, tuple[str, Size, str]] = {
    "count of an autoscaled one": ("grow", Size(count=3), "autoscaled"),
    "bounds of a fixed one": (CUT.target.pool, Size(maximum=3), "fixed-size"),
    "min above max": ("grow", Size(minimum=5), "autoscaling-range"),
    "nobody knows it": ("h100", Size(count=3), "no-pool"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_scale_when_it_cannot_be_then_refused_and_nothing_is_sent(case: str, stage: Stage) -> None:
    name, size, code = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        planned(stage, name, size)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert stage.sent() == []


def test_scale_when_the_pool_is_not_ours_or_not_there_then_refused(stage: Stage) -> None:
    with pytest.raises(Conflict) as caught:
        planned(stage, CUT.target.pool, Size(count=4), owners=("somebody",))
    assert caught.value.diagnostics[0].code == "not-ours"
    del stage.world.pools[CUT.target.name]
    with pytest.raises(Conflict) as missing:
        planned(stage, CUT.target.pool, Size(count=4))
    assert missing.value.diagnostics[0].code == "not-there"


def test_scale_when_the_pool_is_gone_by_then_then_said(stage: Stage) -> None:
    scaling = planned(stage, CUT.target.pool, Size(count=4))
    stage.session.cloud.poll = lambda _operation: DONE  # type: ignore[method-assign,assignment]  # nothing is under way
    del stage.world.pools[CUT.target.name]
    (report,) = scale_pools(scaling, {CLUSTER.key: stage.session}, stage.run)
    assert isinstance(report.pools[0].error, CloudError)


def waited(stage: Stage) -> dict[str, tuple[str, GpukubeError | None]]:
    (report,) = wait_for_pools([stage.plan()], {CLUSTER.key: stage.session}, stage.run)
    return {pool.pool: (pool.outcome, pool.error) for pool in report.pools}


def test_wait_when_begun_without_waiting_then_followed_to_its_proof() -> None:
    stage = Stage([CUT])
    stage.run = replace(stage.run, no_wait=True)
    (pool,) = stage.apply().pools
    assert (pool.outcome, stage.world.pools[CUT.target.name].state) == ("started", "busy")
    stage.run = replace(stage.run, no_wait=False)
    assert waited(stage) == {CUT.target.pool: ("unchanged", None)}
    assert stage.sent() == ["create"]


def test_wait_when_never_begun_then_failed_and_nothing_is_sent() -> None:
    stage = Stage([CUT])
    outcome, error = waited(stage)[CUT.target.pool]
    assert (outcome, error.diagnostics[0].code if error else "") == ("failed", "not-there")
    assert stage.sent() == []


def test_wait_when_it_differs_then_said(stage: Stage) -> None:
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, fields={**pool.fields, COUNT: 9})
    assert waited(stage)[CUT.target.pool] == ("differs", None)


def test_wait_when_it_is_going_then_until_it_is_gone(stage: Stage) -> None:
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, state="deleting", status="Deleting")
    assert waited(stage)[CUT.target.pool] == ("done", None)
    assert CUT.target.name not in stage.world.pools


def test_wait_when_named_then_only_that_one_whoever_owns_it(stage: Stage) -> None:
    pool = stage.world.pools["grow"]
    stage.world.pools["grow"] = replace(pool, owner="", pool="", state="busy")
    stage.pools = []
    plan = stage.plan()
    (report,) = wait_for_pools([plan], {CLUSTER.key: stage.session}, stage.run, ["grow"])
    assert [(pool.name, pool.outcome, pool.proof) for pool in report.pools] == [("grow", "unchanged", None)]
    with pytest.raises(SpecError):
        wait_for_pools([plan], {CLUSTER.key: stage.session}, stage.run, ["h100"])
