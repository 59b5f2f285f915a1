"""Pools that become quite other ones: the second of two drawn specs, applied over the first, leaves none.

A run has three of 27 pairs of specs, all on one cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from tests.changes.test_generated import KEY, batch
from tests.changes.world import CLOUDS, Document, Pool, World, address, differences, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

ANYTHING = api.Consent(allow_disruption=True, replace="recreate")
LEFT_OUT = ("name", "names", "clusters")
STEP = 4
"""Batches so far apart are of the same kind: with the operator or without, of one strategy."""


def pools_of(documents: list[Document]) -> list[Pool]:
    """Return the pools of specs without what names them."""
    pools = [pool for document in documents for pool in document["pools"]]
    return [{**_without(pool, LEFT_OUT), "deletionProtection": False} for pool in pools]


def _without(value: Pool, names: tuple[str, ...]) -> Pool:
    native = {"eks": {k: v for k, v in value["eks"].items() if k not in names}} if "eks" in value else {}
    return {key: inner for key, inner in value.items() if key not in names} | native


@pytest.mark.turns(9)
@pytest.mark.parametrize(("cloud", "number"), [(cloud, number) for number in range(9) for cloud in CLOUDS])
def test_spec_when_rewritten_then_applied_and_nothing_is_left(cloud: str, number: int, world: World) -> None:
    world.reset()
    world.make(cloud, f"rewritten{number}")
    clusters = {KEY: address(cloud, f"rewritten{number}")}
    pairs = list(zip(pools_of(batch(cloud, number)), pools_of(batch(cloud, number + STEP)), strict=False))
    before, after = (
        spec("writers", clusters, [{"name": f"e{at}", **pair[side]} for at, pair in enumerate(pairs)])
        for side in (0, 1)
    )
    created = world.create(before)
    assert {name: str(report.error) for name, report in created.items() if report.error is not None} == {}
    lost = (f"{pool.pool}:{one.path}" for plan in world.plan(after) for pool in plan.pools for one in pool.lost)
    applied = world.apply(after, consent=ANYTHING, accept_loss=tuple(lost))

    assert {name: str(report.error) for name, report in applied.items() if report.error is not None} == {}
    assert differences(world.plan(after)) == []


ELSEWHERE: Mapping[str, tuple[Pool, Pool]] = {
    "eks": ({"instanceType": "g4dn.xlarge", "zones": ["us-east-1c"]}, {"instanceType": "p5.4xlarge"}),
    "gke": ({"instanceType": "g2-standard-4"}, {"instanceType": "a2-highgpu-1g"}),
}
"""A pool, and one of a machine that the place of the first has not."""


NO_OFFERS = pytest.mark.xfail(strict=True, reason="the emulated Google Cloud does not tell which zone has which GPU")


@pytest.mark.parametrize("cloud", ["eks", pytest.param("gke", marks=NO_OFFERS)])
def test_pool_when_replaced_by_a_machine_that_its_place_has_not_then_made_where_it_is(cloud: str, world: World) -> None:
    world.reset()
    options = {"acceleratorZones": {"nvidia-tesla-a100": ["us-central1-b"]}} if cloud == "gke" else {}
    clusters = {KEY: world.make(cloud, "elsewhere", **options)}
    before, after = (
        spec("movers", clusters, [{"name": "p", "nodes": {"count": 1}, **pool}]) for pool in ELSEWHERE[cloud]
    )
    assert world.create(before)["p"].outcome == "done"
    assert str(world.apply(after, consent=ANYTHING)["p"].error or "") == ""
    assert differences(world.plan(after)) == []
