"""A pool is replaced by a second one beside it, on each cloud: never fewer GPUs, from wherever a run died.

Each test has one cloud in each run, another each day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lightkube.resources.core_v1 import Node

from gpukube import api
from gpukube.core.plan import plan_releasing
from gpukube.engine.change import surge
from gpukube.engine.change.live_pool import release_pool
from gpukube.errors import Conflict, DrainTimeout, ExitCode
from sandbox_tests.waiting import wait_for
from tests.changes.world import SMALL, spec
from tests.surge.stage import (
    CLOUDS,
    NODES,
    OTHER,
    POOL,
    SECOND,
    SURGE,
    Killer,
    begin,
    block,
    running,
    serve,
    serve_alone,
    unblock,
    watched,
)

if TYPE_CHECKING:
    from gpukube.engine.run.session import Session
    from tests.changes.world import World

MOST_STRIKES = 40


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_undisturbed_then_pods_move_and_no_gpu_is_missing_at_any_moment(world: World, cloud: str) -> None:
    story = begin(world, cloud, f"main-{cloud}")
    with story.inside() as cluster:
        serve(cluster)
        with watched(story) as gpus:
            report = story.apply(story.after)
        assert (report.outcome, report.name, report.error) == ("done", SECOND, None), report
        assert report.proof is not None
        assert (report.proof.status, report.proof.nodes_seen) == ("proven", NODES)
        assert (min(gpus), gpus[-1]) == (NODES, NODES), gpus
        assert max(gpus) == 2 * NODES
        assert story.pools() == {SECOND: NODES}
        wait_for(lambda: sorted(running(cluster)) == sorted(world.nodes(story.cluster)[SECOND]))
    same = world.pools(story.after)[POOL]
    assert (same.action, same.name) == ("no-op", SECOND)
    back = story.apply(story.before)
    assert (back.outcome, back.name, story.pools()) == ("done", POOL, {POOL: NODES})


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_killed_at_each_change_in_turn_then_the_same_command_ends_it(
    world: World, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = begin(world, cloud, f"killed-{cloud}")
    with story.inside() as cluster:
        serve(cluster)
        killer = Killer(monkeypatch)
        with watched(story) as gpus:
            report = story.apply(story.after)
            while report.outcome in ("started", "unknown", "not-attempted"):
                assert len(killer.struck) < MOST_STRIKES, killer.struck
                assert POOL in story.pools() or set(story.pools()) == {SECOND}
                report = story.apply(story.after)
        # A run that died as the old pool was gone has left nothing to do but to prove the new one.
        assert (report.outcome in ("done", "unchanged"), report.name, report.error) == (True, SECOND, None), report
        assert (min(gpus), gpus[-1]) == (NODES, NODES), gpus
        assert story.pools() == {SECOND: NODES}
        assert len(killer.struck) >= 2 * (2 + NODES + NODES), killer.struck
        wait_for(lambda: sorted(running(cluster)) == sorted(world.nodes(story.cluster)[SECOND]))
    assert world.pools(story.after)[POOL].action == "no-op"


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_a_budget_blocks_then_both_pools_stay_and_the_same_command_resumes(world: World, cloud: str) -> None:
    story = begin(world, cloud, f"blocked-{cloud}")
    with story.inside() as cluster:
        serve(cluster)
        block(cluster)
        consent = api.Consent(replace="surge", drain_timeout_s=1.0)
        report = story.apply(story.after, consent)
        assert isinstance(report.error, DrainTimeout)
        assert (report.outcome, report.error.exit_code) == ("failed", ExitCode.TIMED_OUT)
        assert all(node in str(report.error) for node in world.nodes(story.cluster)[POOL]), str(report.error)
        assert story.pools() == {POOL: NODES, SECOND: NODES}
        plan = world.pools(story.after)[POOL]
        assert plan.replacement is not None
        assert (plan.action, plan.name, plan.replacement.step) == ("replace", POOL, "drain")
        unblock(cluster)
        report = story.apply(story.after)
        assert (report.outcome, story.pools()) == ("done", {SECOND: NODES}), report


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_a_pod_runs_that_nothing_makes_again_then_no_second_pool_is_made(world: World, cloud: str) -> None:
    story = begin(world, cloud, f"alone-{cloud}")
    with story.inside() as cluster:
        serve_alone(cluster)
        before = world.nodes(story.cluster)
        with pytest.raises(Conflict, match=r"pod default/alone .* is not evicted without consent") as refused:
            story.apply(story.after)
        assert [found.code for found in refused.value.diagnostics] == ["drain-consent"]
        assert (world.nodes(story.cluster), len(running(cluster))) == (before, 1)


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_autoscaled_from_zero_then_the_new_pool_has_nodes_for_all_pods_before_they_move(
    world: World, cloud: str
) -> None:
    bounds = {"autoscaling": {"min": 0, "max": 3, "initial": NODES}}
    story = begin(world, cloud, f"scaled-{cloud}", nodes=bounds)
    with story.inside() as cluster:
        serve(cluster)
        report = story.apply(story.after)
        assert (report.outcome, report.error) == ("done", None), report
        assert report.proof is not None
        assert report.proof.nodes_seen >= NODES
        assert set(story.pools()) == {SECOND}
        wait_for(lambda: set(running(cluster)) <= set(world.nodes(story.cluster)[SECOND]))
    same = world.pools(story.after)[POOL]
    assert (same.action, same.name) == ("no-op", SECOND), same.why


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_the_name_is_a_strangers_or_the_pool_protected_then_nothing_is_touched(
    world: World, cloud: str
) -> None:
    story = begin(world, cloud, f"refused-{cloud}")
    kept = {"name": "kept", "deletionProtection": True, "nodes": {"count": 1}, **SMALL[cloud]}
    others = spec("others", story.there, [{"name": SECOND, "nodes": {"count": 1}, **SMALL[cloud]}])
    assert world.create(others)[SECOND].error is None
    assert world.create(spec(story.owner, story.there, [story.pool, kept]))["kept"].error is None
    before = world.nodes(story.cluster)
    after = spec(story.owner, story.there, [{**story.pool, **OTHER[cloud]}, {**kept, **OTHER[cloud]}])
    with pytest.raises(Conflict) as refused:
        world.apply(after, consent=SURGE)
    found = {(d.code, d.where.source): d.seen for d in refused.value.diagnostics}
    assert found.keys() == {("surge-impossible", f"train/{POOL}"), ("protected", "train/kept")}
    assert f'a pool named "{SECOND}" exists and belongs to "others"' in found["surge-impossible", f"train/{POOL}"]
    assert world.nodes(story.cluster) == before


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_recreate_when_autoscaled_then_frozen_drained_and_made_again_in_one_run(world: World, cloud: str) -> None:
    story = begin(world, cloud, f"again-{cloud}", nodes={"autoscaling": {"min": 0, "max": 3, "initial": NODES}})
    with story.inside() as cluster:
        serve(cluster)
        report = story.apply(story.after, api.Consent(replace="recreate"))
        assert (report.outcome, report.name, report.error) == ("done", POOL, None), report.error
        assert set(story.pools()) == {POOL}


@pytest.mark.turns(6)
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("step", ["prove", "drain_pool"])
def test_surge_when_the_old_pool_is_released_meanwhile_then_it_stays_and_no_node_of_it_is_cordoned(
    world: World, cloud: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = begin(world, cloud, f"released-{cloud}")
    original = getattr(surge, step)

    def then_release(plan: object, session: Session, *rest: Any, **more: Any) -> object:  # noqa: ANN401 - passed on
        done = original(plan, session, *rest, **more)
        old = session.cloud.pool(POOL)
        assert old is not None
        (cluster,) = world.plan(story.before)
        release_pool(plan_releasing(session.provider, cluster.cluster, old), session, world.run())
        return done

    monkeypatch.setattr(surge, step, then_release)
    with story.inside() as cluster:
        serve(cluster)
        report = story.apply(story.after)
        assert (report.outcome, str(report.error)) == ("failed", f"{POOL} was released"), report
        assert story.pools() == {POOL: NODES, SECOND: NODES}
        assert not [node for node in cluster.client.list(Node) if node.spec and node.spec.unschedulable]
        if step == "prove":  # no pod had to leave
            assert sorted(running(cluster)) == sorted(world.nodes(story.cluster)[POOL])
