"""What commands do with two pools of one mark, of which one takes the place of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.engine.change.scale import Size
from gpukube.errors import Conflict
from tests.changes.world import SMALL, prepare
from tests.surge.stage import CLOUDS, NODES, POOL, SECOND, Killer, begin, serve

if TYPE_CHECKING:
    from tests.changes.world import World


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_commands_when_a_replacement_is_under_way_then_they_say_so_and_going_back_ends_it(
    world: World, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = begin(world, cloud, f"pair-{cloud}")
    with story.inside() as cluster:
        serve(cluster, 1)
        killer = Killer(monkeypatch)
        while not any("evicting" in doing for doing in killer.struck):
            story.apply(story.after)
        monkeypatch.undo()
        assert story.pools() == {POOL: NODES, SECOND: NODES}
        plan = world.pools(story.after)[POOL]
        assert plan.replacement is not None
        assert (plan.action, plan.replacement.step) == ("replace", "drain")
        with pytest.raises(Conflict, match="a replacement is under way"):
            world.apply(story.after)
        prepared, run = prepare(story.after), world.run()
        with pytest.raises(Conflict, match="a replacement is under way"):
            api.delete(prepared, run, [POOL])
        with pytest.raises(Conflict, match="a replacement is under way"):
            api.scale(prepared, run, POOL, Size(count=1))
        with pytest.raises(Conflict, match="cannot be recreated meanwhile"):
            world.apply(story.after, consent=api.Consent(replace="recreate"))
        (verified,) = api.verify(prepared, world.run())[0].pools
        assert (verified.outcome, verified.proof and verified.proof.nodes_seen) == ("unchanged", NODES)
        assert POOL in verified.message
        (waited,) = api.wait(prepared, world.run())[0].pools
        assert (waited.outcome, waited.name) == ("differs", SECOND)
        # The old values again: what was the old pool is the new one, and takes pods again.
        back = story.apply(story.before)
        assert (back.outcome, back.name, story.pools()) == ("done", POOL, {POOL: NODES})
        assert not [node for node in cluster.nodes(POOL) if node.spec and node.spec.unschedulable]


def test_delete_when_both_pools_of_a_replacement_are_named_then_both_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = begin(world, "aks", "both")
    killer = Killer(monkeypatch)
    while SECOND not in story.pools():
        story.apply(story.after)
    monkeypatch.undo()
    assert killer.struck
    reports = api.delete(prepare(story.after), world.run(), [POOL, SECOND])
    assert [pool.outcome for report in reports for pool in report.pools] == ["done", "done"]
    assert story.pools() == {}


def test_plan_when_the_name_leaves_no_room_for_the_suffix_then_surge_is_impossible(world: World) -> None:
    story = begin(world, "aks", "names", name="t4t4t4t4t4t4", **SMALL["aks"])
    found = world.pools(story.after)["t4t4t4t4t4t4"].replacement
    assert found is not None
    assert ["is not an AKS pool name" in one.seen for one in found.obstacles] == [True]
