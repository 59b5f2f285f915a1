"""A saved plan against the world: what moved is named, what changes by nature is not, and nothing slips through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cluster.state.node_drift import NodeRepair
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import COUNT, INSTANCE_TYPE, PROTECTION, label, tag
from gpukube.core.order_plans import plan_map
from gpukube.core.scaling_order import FamilyOrder, GroupOrder
from gpukube.core.values import ClusterFacts, Nodes, Taint
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.saved import PlanOptions, read_plan, require_fresh, require_place, saved_plan, write_plan
from gpukube.errors import AccessError, ClusterError, ExitCode, SpecError, StalePlan
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import FROM_ZERO, claimed, desire, dra_release, installed, release_of
from tests.unit.engine.worlds import MADE, World, loaded, require_same

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.values import Desired, Observed

WANTED = desire(labels={"team": "vision"}, nodes=Nodes(2, 2, 2, autoscaled=False))
AUTOSCALED = desire(labels={"team": "vision"}, nodes=FROM_ZERO)
MATCHING = make_observed(WANTED)
STRAY = make_observed(WANTED, name="old", pool="old")


def relabelled(desired: Desired, **changes: object) -> Observed:
    """Make a live pool that an update is due for."""
    fields = {**desired.fields, label("team"): "audio"}
    labels = {**desired.labels, "team": "audio"}
    return make_observed(desired, fields=fields, labels=labels, **changes)


LOST = NodeRepair("node-1", "a100mig", "label", "team", "vision", None)
CREATING = World((WANTED,))
BARE = World((WANTED,), (replace(relabelled(WANTED), fields={label("team"): "audio"}),))
IDLE = World((WANTED,), (MATCHING,))
UPDATING = World((WANTED,), (relabelled(WANTED),))
UPDATING_AUTOSCALED = World((AUTOSCALED,), (relabelled(AUTOSCALED),))
REPLACING = World((WANTED,), (make_observed(WANTED, fields={**WANTED.fields, INSTANCE_TYPE: "Standard_NC6s_v3"}),))
PRUNING = World((WANTED,), (MATCHING, STRAY), PlanOptions(prune=True))
LEAVING = World((WANTED,), (MATCHING, STRAY))
FAILED = World((WANTED,), (make_observed(WANTED, state="failed", status="Failed"),))
DELETING = World((WANTED,), (make_observed(WANTED, state="deleting", status="Deleting"),))
CLAIMS = claimed(pool="claims")
CLAIMING = World((CLAIMS,), (make_observed(CLAIMS),), seen=Snapshot())
CLAIMED = replace(CLAIMING, seen=Snapshot(dra_history=(dra_release(CLAIMS),)))
BESIDE = replace(installed([WANTED]), dra_history=(dra_release(CLAIMS),))
VALUES = installed([WANTED]).history[0].values
OTHER_VALUES = {**VALUES, "gfd": {"enabled": False}}
UPGRADING = replace(IDLE, seen=replace(installed([WANTED]), history=(release_of(OTHER_VALUES, revision=4),)))


def upgraded(world: World, revision: int, values: object = OTHER_VALUES) -> World:
    assert world.seen is not None
    return replace(world, seen=replace(world.seen, history=(release_of(values, revision=revision),)))  # type: ignore[arg-type]  # test data


def ordered(*names: str) -> OrderPlan:
    how = GroupOrder(group=lambda name: f"^{name}$")
    return plan_map(None, "x", [FamilyOrder("team", "h100", tuple((name,) for name in names))], how)


MOVES: dict[str, tuple[World, World, list[str]]] = {
    "a field": (UPDATING, UPDATING.with_fields(nodes__count=3), ["train-aks/a100mig: nodes.count 2 -> 3"]),
    "a label that is no field": (
        UPDATING,
        UPDATING.with_live(labels={**UPDATING.live[0].labels, "x": "y"}),
        ["train-aks/a100mig: labels[x] none -> y"],
    ),
    "a taint that is no field": (
        BARE,
        BARE.with_live(effective_taints=(Taint("a", "b", "NoExecute"),)),
        ['train-aks/a100mig: taints ["nvidia.com/gpu=present:NoSchedule"] -> ["a=b:NoExecute"]'],
    ),
    "a pool to create is there": (
        CREATING,
        IDLE,
        ["train-aks/a100mig: live pool a100mig exists now", "train-aks/a100mig: action create -> no-op"],
    ),
    "a pool to update is gone": (
        UPDATING,
        replace(UPDATING, live=()),
        ["train-aks/a100mig: the live pool a100mig is gone", "train-aks/a100mig: action update -> create"],
    ),
    "a pool that matched does not": (
        IDLE,
        IDLE.with_fields(nodes__count=5),
        ["train-aks/a100mig: nodes.count 2 -> 5", "train-aks/a100mig: action no-op -> update"],
    ),
    "a pool that differed matches": (
        UPDATING,
        IDLE,
        ["train-aks/a100mig: labels[team] audio -> vision", "train-aks/a100mig: action update -> no-op"],
    ),
    "a pool to replace is as asked": (
        REPLACING,
        IDLE,
        [
            "train-aks/a100mig: instanceType Standard_NC6s_v3 -> Standard_ND96asr_v4",
            "train-aks/a100mig: action replace -> no-op",
        ],
    ),
    "a pool to update is busy": (
        UPDATING,
        UPDATING.with_live(state="busy", etag="2"),
        ["train-aks/a100mig: state ready -> busy"],
    ),
    "a pool to make again recovered": (
        FAILED,
        IDLE,
        ["train-aks/a100mig: state failed -> ready", "train-aks/a100mig: action create -> no-op"],
    ),
    "a pool to delete changed": (
        PRUNING,
        PRUNING.with_live(1, etag="7", labels={**STRAY.labels, "x": "y"}),
        ["train-aks/old: labels[x] none -> y"],
    ),
    "a pool to delete is gone": (
        PRUNING,
        replace(PRUNING, live=(MATCHING,)),
        ["train-aks/old: the pool is gone"],
    ),
    "one of two pools to delete that carry one mark": (
        replace(PRUNING, live=(MATCHING, replace(STRAY, name="old2"), STRAY)),
        PRUNING,
        ["train-aks/old: the pool is gone"],
    ),
    "another pool to delete": (
        replace(PRUNING, live=(MATCHING,)),
        PRUNING,
        ["train-aks/old: pool old is new: it would be deleted"],
    ),
    "an undeclared pool": (IDLE, LEAVING, ['train-aks/old: live pool old of "ml-platform" is new']),
    "a declared pool": (
        IDLE,
        replace(IDLE, desired=(WANTED, desire(pool="b", name="b"))),
        ["train-aks/b: the pool is new"],
    ),
    "the control plane": (
        IDLE,
        replace(IDLE, facts=ClusterFacts("nowhere-1", "1.35.0", ready=True, status="Running")),
        ["train-aks: Kubernetes 1.34 -> 1.35"],
    ),
    "the account": (
        IDLE,
        replace(IDLE, cluster=replace(CLUSTER, identity={**CLUSTER.identity, "subscription": "another"})),
        ["train-aks: subscription 11111111-2222-3333-4444-555555555555 -> another"],
    ),
    "the revision of a release to upgrade": (
        UPGRADING,
        upgraded(UPGRADING, 5),
        ["train-aks: release revision 4 -> 5"],
    ),
    "a release that served": (
        IDLE,
        UPGRADING,
        ["train-aks: release action none -> upgrade", "train-aks: release revision 1 -> 4"],
    ),
    "values of a release to upgrade": (
        UPGRADING,
        upgraded(UPGRADING, 4, {**OTHER_VALUES, "mine": 1}),
        ["train-aks: release values differ"],
    ),
    "the release of the DRA driver is no longer to be installed": (
        CLAIMING,
        CLAIMED,
        ["train-aks: release action install -> none", "train-aks: release revision 0 -> 1"],
    ),
    "a label of a node": (
        IDLE,
        replace(IDLE, repairs=(LOST,)),
        ["train-aks/a100mig: node node-1: labels[team] vision -> none"],
    ),
    "a label of another node": (
        replace(IDLE, repairs=(LOST,)),
        replace(IDLE, repairs=(LOST, replace(LOST, node="node-2", live="x"))),
        ["train-aks/a100mig: node node-2: labels[team] vision -> x"],
    ),
    "an order of alternatives": (
        replace(IDLE, orders=(ordered("h100", "h200"),)),
        replace(IDLE, orders=(ordered("h200", "h100"),)),
        ["train-aks: ConfigMap x/cluster-autoscaler-priority-expander would get another order of alternatives"],
    ),
    "the chart": (
        replace(IDLE, provenance=replace(MADE, chart_digest="sha256:a")),
        replace(IDLE, provenance=replace(MADE, chart_digest="sha256:b")),
        ["{file}: the chart differs from the one that the plan was made with"],
    ),
}


@pytest.mark.parametrize("case", MOVES)
def test_saved_plan_when_something_moved_then_stale_and_named(case: str, tmp_path: Path) -> None:
    before, after, expected = MOVES[case]
    saved = before.save(tmp_path)
    with pytest.raises(StalePlan) as caught:
        require_same(saved, after)
    said = [f"{d.where}: {d.seen}" for d in caught.value.diagnostics]
    assert said == [line.replace("{file}", saved.source) for line in expected]
    assert all("plan again" in d.fix and d.code == "stale-plan" for d in caught.value.diagnostics)


BY_NATURE: dict[str, tuple[World, World]] = {
    "nothing": (UPDATING, UPDATING),
    "the cloud's word": (UPDATING, UPDATING.with_live(status="Succeeded, and how")),
    "nodes of an autoscaled pool": (UPDATING_AUTOSCALED, UPDATING_AUTOSCALED.with_live(nodes=4, etag="9")),
    "the etag alone, as after a change that was taken back": (UPDATING, UPDATING.with_live(etag="2")),
    "the etag alone of a pool to delete": (PRUNING, PRUNING.with_live(1, etag="7")),
    "an operation ended": (UPDATING.with_live(state="busy"), UPDATING.with_live(state="ready", etag="2")),
    "a busy pool that matches": (IDLE, IDLE.with_live(state="busy", etag="2")),
    "the etag of a pool that matches": (IDLE, IDLE.with_live(etag="2")),
    "an open field of a pool that matches": (IDLE, IDLE.with_live(fields={**MATCHING.fields, tag("policy"): "added"})),
    "a deletion ended": (DELETING, CREATING),
    "a pruned pool's deletion ended": (
        PRUNING.with_live(1, state="deleting"),
        replace(PRUNING, live=(MATCHING,)),
    ),
    "an undeclared pool that stays is gone": (LEAVING, IDLE),
    "the words of a failure": (FAILED, FAILED.with_live(status="Failed again", failure="no quota")),
    "a patch of the control plane": (
        IDLE,
        replace(IDLE, facts=ClusterFacts("nowhere-1", "1.34.7", ready=True, status="Updating")),
    ),
    "the revision of a release that serves": (
        replace(IDLE, seen=installed([WANTED])),
        replace(IDLE, seen=replace(installed([WANTED]), history=(release_of(VALUES, revision=9),))),
    ),
    "another spec's release of the DRA driver": (IDLE, replace(IDLE, seen=BESIDE)),
    "an order that was written": (replace(IDLE, orders=(ordered("h100", "h200"),)), IDLE),
    "a node to repair is gone": (replace(IDLE, repairs=(LOST,)), IDLE),
    "when it is applied": (IDLE, replace(IDLE, provenance=replace(MADE, created="2027-01-01T00:00:00Z"))),
}


@pytest.mark.parametrize("case", BY_NATURE)
def test_saved_plan_when_only_nature_moved_then_fresh(case: str, tmp_path: Path) -> None:
    before, after = BY_NATURE[case]
    require_same(before.save(tmp_path), after)


def test_saved_plan_when_the_request_alone_differs_then_stale(tmp_path: Path) -> None:
    saved = CREATING.save(tmp_path)
    other = replace(WANTED, create=replace(WANTED.create, params={**WANTED.create.params, "subnet": "b"}))
    with pytest.raises(StalePlan, match="request create: subnet none -> b"):
        require_same(saved, replace(CREATING, desired=(other,)))


def test_saved_plan_when_the_plan_takes_other_calls_then_stale(tmp_path: Path) -> None:
    plan = CREATING.plan()
    saved = CREATING.save(tmp_path)
    (pool,) = plan.pools
    changed = replace(plan, pools=(replace(pool, requests=(*pool.requests, *pool.requests)),))
    with pytest.raises(StalePlan, match="requests create -> create, create"):
        require_fresh(saved, [changed], MADE)


def test_saved_plan_when_a_whole_pool_is_sent_then_what_the_service_writes_does_not_count(tmp_path: Path) -> None:
    plan = UPDATING_AUTOSCALED.plan()
    (pool,) = plan.pools

    def put(**properties: object) -> ClusterPlan:
        request = replace(pool.requests[0], params={"body": {"properties": properties}})
        return replace(plan, pools=(replace(pool, requests=(request,)),))

    document = saved_plan(
        [put(count=1, provisioningState="Updating", vmSize="a")], loaded(tmp_path), PlanOptions(), MADE
    )
    write_plan(document, str(tmp_path / "plan.json"))
    saved = read_plan(str(tmp_path / "plan.json"))
    require_fresh(saved, [put(count=3, provisioningState="Succeeded", vmSize="a")], MADE)
    with pytest.raises(StalePlan, match=r"body\.properties\.vmSize a -> b"):
        require_fresh(saved, [put(count=1, provisioningState="Succeeded", vmSize="b")], MADE)


def test_saved_plan_when_another_account_is_logged_in_then_the_clouds_own_refusal(tmp_path: Path) -> None:
    error = AccessError("logged in to another subscription", where="train-aks", fix="az login", code="subscription")
    with pytest.raises(AccessError) as caught:
        require_fresh(UPDATING.save(tmp_path), [ClusterPlan(CLUSTER, error=error)], MADE)
    assert (caught.value.exit_code, caught.value.diagnostics) == (ExitCode.ACCESS, error.diagnostics)


def test_saved_plan_when_the_inside_cannot_be_seen_then_that_error(tmp_path: Path) -> None:
    silent = ClusterError("no answer", where="train-aks", fix="wait")
    plan = replace(UPDATING.plan(), unreachable=silent, unknown="no answer")
    with pytest.raises(ClusterError, match="no answer"):
        require_fresh(UPDATING.save(tmp_path), [plan], MADE)


def test_saved_plan_when_a_cluster_is_missing_then_stale(tmp_path: Path) -> None:
    with pytest.raises(StalePlan, match="the cluster is only in the saved plan"):
        require_fresh(UPDATING.save(tmp_path), [], MADE)


PLACES: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "the sandbox's, outside": ({"sandbox": True}, {}, "made in the sandbox, but this run is not in it"),
    "a cloud's, in the sandbox": ({}, {"sandbox": True}, "made outside the sandbox, but this run is in it"),
    "another endpoint": ({"endpoints": {"eks": "a:1"}}, {"endpoints": {"eks": "b:1"}}, "endpoint a:1 for eks, .* b:1"),
    "no endpoint": ({"endpoints": {"eks": "a"}}, {}, "endpoint a for eks, .* the cloud's own"),
}


@pytest.mark.parametrize("case", PLACES)
def test_place_when_it_is_another_then_refused_before_any_call(case: str, tmp_path: Path) -> None:
    made, now, expected = PLACES[case]
    saved = replace(IDLE, provenance=replace(MADE, **made)).save(tmp_path)  # type: ignore[arg-type]  # test data
    with pytest.raises(SpecError, match=expected) as caught:
        require_place(saved, replace(MADE, **now))  # type: ignore[arg-type]  # test data
    assert caught.value.diagnostics[0].code == "saved-plan-place"
    require_place(saved, replace(MADE, **made))  # type: ignore[arg-type]  # test data


def _shift_count(pool: Observed) -> Observed:
    count = pool.fields.get(COUNT)
    return replace(pool, fields={**pool.fields, COUNT: count + 1}) if isinstance(count, int) else pool


def _bump_etag(pool: Observed) -> Observed:
    return replace(pool, etag=f"{pool.etag}0")


def _set_team(pool: Observed) -> Observed:
    labels, fields = {**pool.labels, "team": "music"}, {**pool.fields, label("team"): "music"}
    return replace(pool, labels=labels, fields=fields)


CHANGES: dict[str, Callable[[Observed], Observed]] = {
    "label": _set_team,
    "count": _shift_count,
    "type": lambda pool: replace(pool, fields={**pool.fields, INSTANCE_TYPE: "Standard_NC6s_v3"}),
    "failed": lambda pool: replace(pool, state="failed", status="Failed"),
    "busy": lambda pool: replace(pool, state="busy", status="Updating"),
    "deleting": lambda pool: replace(pool, state="deleting", status="Deleting"),
    "etag": _bump_etag,
    "tag": lambda pool: replace(pool, fields={**pool.fields, tag("policy"): "x"}),
    "nodes": lambda pool: replace(pool, nodes=7),
    "word": lambda pool: replace(pool, status="Fine"),
    "protected": lambda pool: replace(pool, fields={**pool.fields, PROTECTION: True}),
    "renamed": lambda pool: replace(pool, owner="others"),
}
"""What may happen to a live pool, of whichever kind."""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a world whose plan can be saved."""
    desired = [
        desire(
            pool=name,
            name=name,
            labels=draw(st.sampled_from([{}, {"team": "vision"}])),
            nodes=draw(st.sampled_from([Nodes(2, 2, 2, autoscaled=False), FROM_ZERO])),
        )
        for name in draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True))
    ]
    live = []
    for pool in [*desired, desire(pool="stray", name="stray"), desire(pool="theirs", name="theirs", owner="others")]:
        if draw(st.booleans()):
            found = make_observed(pool)
            for change in draw(st.lists(st.sampled_from(sorted(CHANGES)), max_size=2)):
                found = CHANGES[change](found) if change != "renamed" else found
            live.append(found)
    return World(tuple(desired), tuple(live), PlanOptions(prune=draw(st.booleans())))


def done(world: World) -> dict[str, object]:
    """Describe what applying a world's plan would do, without the guards of its writes and without unchanged pools."""
    plan = world.plan()
    pools = {
        f"{CLUSTER.key}/{pool.pool}": (pool.action, [(r.operation, _unguarded(r.params)) for r in pool.requests])
        for pool in plan.pools
        if pool.requests
    }
    assert plan.release is not None
    release = (plan.release.action, plan.release.values if plan.release.action != "none" else None)
    return {**pools, CLUSTER.key: release}


def _unguarded(params: object) -> object:
    return {k: v for k, v in params.items() if k != "etag"} if isinstance(params, dict) else params


MANY = settings(max_examples=120)


@MANY
@given(worlds())
def test_any_plan_when_nothing_moved_then_fresh(world: World) -> None:
    with TemporaryDirectory() as directory:
        require_same(world.save(Path(directory)), world)


@MANY
@given(worlds(), st.sampled_from(sorted(CHANGES)), st.data())
def test_any_plan_when_one_thing_moved_that_changes_what_is_done_then_stale_and_named(
    world: World, change: str, data: st.DataObject
) -> None:
    moved = _moved(world, change, data)
    before, after = done(world), done(moved)
    differing = {where for where in {*before, *after} if before.get(where) != after.get(where)}
    with TemporaryDirectory() as directory:
        saved = world.save(Path(directory))
        if not differing:
            return
        with pytest.raises(StalePlan) as caught:
            require_same(saved, moved)
        assert differing <= {str(d.where) for d in caught.value.diagnostics}


def _moved(world: World, change: str, data: st.DataObject) -> World:
    """Let one thing happen: to a live pool, or one comes, or one goes."""
    kinds = ["comes", *(["changes", "goes"] if world.live else [])]
    kind = data.draw(st.sampled_from(kinds))
    if kind == "comes":
        absent = [w for w in (*world.desired, desire(pool="z", name="z")) if w.target.name not in _names(world)]
        return replace(world, live=(*world.live, make_observed(data.draw(st.sampled_from(absent)))))
    number = data.draw(st.integers(0, len(world.live) - 1))
    if kind == "goes":
        return replace(world, live=world.live[:number] + world.live[number + 1 :])
    live = list(world.live)
    live[number] = CHANGES[change](live[number])
    return replace(world, live=tuple(live))


def _names(world: World) -> set[str]:
    return {pool.name for pool in world.live}
