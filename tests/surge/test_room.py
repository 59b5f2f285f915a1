"""A cloud's quota has no room for two pools: said by the plan, refused before anything is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.errors import Conflict
from gpukube_sandbox import daemon
from tests.changes.world import ADDRESSES, spec
from tests.surge.stage import CLOUDS, OTHER, POOL, begin

if TYPE_CHECKING:
    from tests.changes.world import Document, World

QUOTAS: dict[str, tuple[str, int, Document]] = {
    "eks": ("L-DB2E81BA", 20, {}),
    "aks": ("Standard NCASv3_T4 Family", 20, {"location": "eastus"}),
    "gke": ("PREEMPTIBLE_NVIDIA_L4_GPUS", 1, {"region": "us-central1"}),
}
"""Enough for the old pool, too little for the new one."""


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_plan_when_the_quota_has_no_room_for_both_then_surge_is_impossible(world: World, cloud: str) -> None:
    story = begin(world, cloud, f"quota-{cloud}")
    name, limit, place = QUOTAS[cloud]
    where = {
        key: ADDRESSES[cloud][key]
        for key in ("account", "region", "subscription", "project")
        if key in ADDRESSES[cloud]
    }
    daemon.declare(world.info, cloud, **where, **place, quotas={name: limit})
    found = world.pools(story.after)[POOL].replacement
    assert found is not None
    assert [one.code for one in found.obstacles] == ["surge-impossible"], (found.obstacles, found.unknown)
    assert name in found.obstacles[0].seen
    before = world.nodes(story.cluster)
    with pytest.raises(Conflict, match="no second pool can be created next to t4"):
        story.apply(story.after)
    assert world.nodes(story.cluster) == before


def test_plan_when_subnets_or_the_cluster_have_no_room_on_eks_then_surge_is_impossible(world: World) -> None:
    story = begin(world, "eks", "full-eks")
    where = {key: ADDRESSES["eks"][key] for key in ("account", "region")}
    subnet = {"cluster": story.cluster, "id": "subnet-0123456789abcdef0", "zone": "a", "taken": 250}
    daemon.declare(world.info, "eks", **where, subnets=[subnet], quotas={"L-6D54EA21": 2})
    moved = {**story.pool, **OTHER["eks"], "eks": {"subnets": [subnet["id"]]}}
    after = spec(story.owner, story.there, [moved])
    ((outside,),) = (plan.pools for plan in world.plan(after, skip_cluster=True))
    assert outside.replacement is not None
    assert outside.replacement.obstacles == ()  # nothing was read of it
    found = world.pools(after)[POOL].replacement
    assert found is not None
    seen = {one.seen: one.fix for one in found.obstacles if "quota L-DB2E81BA" not in one.seen}
    full, small = seen
    assert full == "the cluster has 2 node groups, the maximum (quota L-6D54EA21)"
    assert "--desired-value 3" in seen[full]
    assert small == f"its 2 nodes need an address each, but {subnet['id']} have 1 left"
    daemon.declare(world.info, "eks", **where, quotas={"L-6D54EA21": 30})
