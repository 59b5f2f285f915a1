"""Applying: what is sent, in which order, what is refused, and what happens when others are at work."""

from __future__ import annotations

from dataclasses import replace
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import COUNT, DISK_SIZE, ZONES, FieldPath, label
from gpukube.core.values import OWNER_LABEL, Change, Loss
from gpukube.engine.change.apply import Consent, require_consent
from gpukube.engine.change.create import create_pools
from gpukube.engine.documents.plan import plan_document
from gpukube.errors import CloudError, Conflict, GpukubeError, Moved, WaitTimeout
from gpukube.testing.clock import ManualClock
from sandbox_tests.waiting import wait_for
from tests.builders import CLUSTER
from tests.unit.cluster.builders import SINGLE, desire, installed, node_of
from tests.unit.engine.stage import RESUME, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Operation, Request

CUT = desire(sharing=SINGLE)
PLAIN = desire(name="plain", pool="plain")
LOST = CloudError("the answer was lost", fix="run it again")
RECREATE = Consent(replace="recreate")


def named(fields: Mapping[str, object]) -> dict[FieldPath, object]:
    return {FieldPath(*name.split("__")): value for name, value in fields.items()}


def live(stage: Stage, name: str = "", **fields: object) -> None:
    """Change fields of a live pool behind gpukube's back; names in Python's spelling."""
    name = name or CUT.target.name
    pool = stage.world.pools[name]
    changed = {**pool.fields, **named(fields)}
    kept = {key: value for key, value in changed.items() if value is not None}
    stage.world.pools[name] = replace(pool, fields=kept, etag=str(int(pool.etag) + 1))


@pytest.fixture
def stage() -> Stage:
    made = Stage([CUT])
    made.make()
    return made


def test_apply_when_nothing_differs_then_nothing_is_sent_and_proven(stage: Stage) -> None:
    (pool,) = stage.apply().pools
    assert (pool.outcome, stage.sent()) == ("unchanged", [])
    assert pool.proof is not None


def test_apply_when_the_pool_is_missing_then_created() -> None:
    stage = Stage([CUT])
    (pool,) = stage.apply().pools
    assert (pool.outcome, pool.message, stage.sent()) == ("done", "created", ["create"])


@pytest.mark.parametrize("order", [["create", "create", "done", "done"], ["create", "done", "create", "done"]])
def test_apply_when_a_cloud_changes_one_pool_at_a_time_then_calls_wait_for_a_proof_with_fail_fast_only(
    order: list[str],
) -> None:
    stage = Stage([CUT, PLAIN])
    stage.provider.extras.pools_at_once = 1  # as AKS and GKE

    def seen_at(_now: float) -> Snapshot:
        if order[1] == "create" and current_thread() is not main_thread():  # a proof, as slow as the next call
            wait_for(lambda: len(stage.sent()) == 2)
        return installed(stage.pools, *(node_of(pool, pool.target.name) for pool in stage.pools))

    stage.seen_at = seen_at
    stage.session, stage.run = stage.open_session(), replace(stage.run, fail_fast=order[1] == "done")
    report = stage.apply()
    assert [pool.message for pool in report.pools] == ["created", "created"]
    said = dict.fromkeys((event.pool, event.phase) for event in stage.said if event.pool)
    assert [phase for _, phase in said if phase in ("create", "done")] == order


def test_apply_when_a_proof_fails_beside_the_next_call_then_only_its_pool_fails() -> None:
    stage = Stage([CUT, PLAIN])
    stage.provider.extras.pools_at_once = 1  # as AKS and GKE
    stage.seen_at = lambda _now: installed(stage.pools, node_of(PLAIN, "node"))
    stage.session = stage.open_session()
    report = stage.apply()
    assert [pool.outcome for pool in report.pools] == ["failed", "done"]
    assert report.pools[0].error is not None
    assert stage.sent() == ["create", "create"]


def test_apply_when_fields_differ_then_one_call_per_group_and_quiet_after(stage: Stage) -> None:
    live(stage, nodes__count=7, taints=())
    (pool,) = stage.apply().pools
    assert (pool.outcome, stage.sent()) == ("done", ["update", "update"])
    assert {str(c.change.field) for c in pool.changes} == {"nodes.count", "taints"}
    assert stage.plan().pools[0].action == "no-op"


def test_apply_when_an_update_is_lost_after_it_was_done_then_not_sent_again(stage: Stage) -> None:
    live(stage, nodes__count=7)
    stage.world.fail_next(LOST, after=True)
    assert stage.apply().pools[0].outcome == "done"
    assert stage.sent() == ["update"]


def test_apply_when_an_update_never_arrived_then_failed_and_the_next_run_does_it(stage: Stage) -> None:
    live(stage, nodes__count=7)
    stage.world.fail_next(LOST)
    (pool,) = stage.apply().pools
    assert (pool.outcome, pool.error, pool.resume) == ("failed", LOST, RESUME)
    assert stage.apply().pools[0].outcome == "done"


def test_apply_when_the_etag_moved_but_not_the_fields_then_sent_again(stage: Stage) -> None:
    live(stage, nodes__count=7)
    stage.world.fail_next(Moved("it changed", fix="look"))
    assert stage.apply().pools[0].outcome == "done"
    assert stage.sent() == ["update", "update"]


def test_apply_when_somebody_changed_the_same_field_meanwhile_then_not_overwritten(stage: Stage) -> None:
    live(stage, nodes__count=7)
    plan = stage.plan()
    live(stage, nodes__count=9)
    stage.plan = lambda **_: plan  # type: ignore[method-assign]  # the plan as it was shown
    (pool,) = stage.apply().pools
    assert pool.error is not None
    assert pool.error.diagnostics[0].code == "moved"
    assert "nodes.count is 9 now" in str(pool.error)
    assert stage.sent() == []


def test_apply_when_somebody_resizes_the_pool_right_before_the_first_call_then_not_overwritten(stage: Stage) -> None:
    live(stage, nodes__count=7)
    send = stage.session.cloud.send

    def too_late(request: Request) -> Operation:
        live(stage, nodes__count=9)
        return send(request)

    stage.session.cloud.send = too_late  # type: ignore[method-assign]  # somebody is quicker
    (pool,) = stage.apply().pools
    assert pool.error is not None
    assert pool.error.diagnostics[0].code == "moved"
    assert (stage.world.pools[CUT.target.name].fields[COUNT], stage.sent()) == (9, ["update"])


def test_apply_when_the_cloud_takes_calls_without_effect_then_said() -> None:
    stage = Stage([CUT])
    stage.make()
    live(stage, nodes__count=7)
    send = stage.session.cloud.send

    def deaf(request: Request) -> Operation:
        operation = send(request)
        live(stage, nodes__count=7)
        return operation

    stage.session.cloud.send = deaf  # type: ignore[method-assign]  # a cloud that forgets
    (pool,) = stage.apply().pools
    assert pool.error is not None
    assert pool.error.diagnostics[0].code == "no-effect"
    assert stage.sent() == ["update"]  # once: each time could cost nodes


def test_apply_when_a_size_passes_through_another_then_gone_on_with(stage: Stage) -> None:
    live(stage, zones=("a",))
    stage.pools = [replace(CUT, fields={**CUT.fields, ZONES: ("a", "b")})]
    send = stage.session.cloud.send

    def per_zone(request: Request) -> Operation:
        operation = send(request)
        if "zones" in str(request.params["fields"]):  # the cloud has as many nodes in the new zone
            live(stage, nodes__count=2 * CUT.target.nodes.count)
        return operation

    stage.session.cloud.send = per_zone  # type: ignore[method-assign]  # a cloud that counts per zone
    assert stage.apply().pools[0].outcome == "done"
    assert stage.sent() == ["update", "update"]
    assert stage.plan().pools[0].action == "no-op"


def objections(stage: Stage, consent: Consent = Consent(), **scope: bool) -> list[str]:
    with pytest.raises(Conflict) as caught:
        stage.apply(consent, **scope)
    assert stage.sent() == []
    return [d.code for d in caught.value.diagnostics]


def test_apply_when_a_replacement_is_not_asked_for_then_refused_before_anything_is_sent(stage: Stage) -> None:
    live(stage, instanceType="other")
    assert objections(stage) == ["needs-replace"]


def test_apply_when_a_replacement_is_asked_for_then_deleted_made_again_and_proven(stage: Stage) -> None:
    live(stage, instanceType="other")
    (pool,) = stage.apply(RECREATE).pools
    assert (pool.outcome, pool.message, stage.sent()) == ("done", "replaced", ["delete", "create"])
    assert pool.proof is not None
    assert stage.plan().pools[0].action == "no-op"


def test_apply_when_killed_between_deletion_and_creation_then_the_next_run_creates(stage: Stage) -> None:
    live(stage, instanceType="other")
    plan = stage.plan()
    stage.session.cloud.send(stage.provider.requests.delete(CLUSTER, stage.world.pools[CUT.target.name]))
    del stage.world.pools[CUT.target.name]
    assert plan.pools[0].action == "replace"
    assert stage.apply().pools[0].message == "created"


def test_apply_when_the_pool_is_protected_then_a_replacement_is_refused_even_if_asked_for(stage: Stage) -> None:
    live(stage, instanceType="other")
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, protected=True)
    assert objections(stage, RECREATE) == ["protected"]


def test_apply_when_a_change_disrupts_then_refused_unless_allowed(stage: Stage) -> None:
    live(stage, disk__sizeGiB=64)
    stage.pools = [replace(CUT, fields={**CUT.fields, DISK_SIZE: 128})]
    assert objections(stage) == ["needs-disruption"]
    assert stage.apply(Consent(allow_disruption=True)).pools[0].outcome == "done"


COSTS: dict[str, tuple[Loss | None, str]] = {
    "unknown": (None, "an unknown number of nodes"),
    "pods unknown": (Loss(2, 16, None), "2 nodes with 16 GPUs and an unknown number of pods"),
    "some nodes": (Loss(1, 8, ("ml/train",), 3), "1 of 3 nodes with 8 GPUs and the pods on them"),
    "none": (Loss(1, 0.5, ()), "1 node with 0.5 GPUs and 0 running pods"),
    "named": (Loss(1, 8, ("ml/train",)), "1 node with 8 GPUs and 1 running pod: ml/train"),
    "many": (Loss(1, 8, tuple(f"ml/p{n:02}" for n in range(12))), "12 running pods: ml/p00, "),
    "many more": (Loss(1, 8, tuple(f"ml/p{n:02}" for n in range(12))), "ml/p09 and 2 more"),
}


@pytest.mark.parametrize("case", COSTS)
def test_consent_when_missing_then_the_cost_is_named(case: str, stage: Stage) -> None:
    loss, words = COSTS[case]
    live(stage, instanceType="other")
    plan = stage.plan()
    plan = replace(plan, pools=(replace(plan.pools[0], loss=loss),))
    with pytest.raises(Conflict) as caught:
        require_consent([plan], Consent())
    assert words in caught.value.diagnostics[0].seen


def test_apply_when_pools_are_no_longer_declared_then_deleted_last_under_prune_only() -> None:
    stage = Stage([CUT, PLAIN])
    stage.make()
    stage.pools = [CUT]
    live(stage, nodes__count=7)
    assert stage.apply().pools[0].outcome == "done"
    assert PLAIN.target.name in stage.world.pools
    live(stage, nodes__count=7)
    report = stage.apply(prune=True)
    assert [(pool.pool, pool.message) for pool in report.pools] == [("a100mig", "updated"), ("plain", "deleted")]
    assert stage.sent()[-2:] == ["update", "delete"]
    assert list(stage.world.pools) == [CUT.target.name]


def test_apply_when_a_pool_to_prune_is_protected_then_refused(stage: Stage) -> None:
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, protected=True)
    stage.pools = []
    assert objections(stage, prune=True) == ["protected"]


def orphan(stage: Stage, **fields: object) -> None:
    """Take our marks, their copy and our labels off the live pool."""
    pool = stage.world.pools[CUT.target.name]
    ours = CUT.labels.keys() - CUT.target.labels.keys()
    kept = {path: value for path, value in pool.fields.items() if not path.is_below("labels") or path.key not in ours}
    labels = {key: value for key, value in pool.labels.items() if key not in ours}
    stage.world.pools[CUT.target.name] = replace(
        pool, owner="", pool="", labels=labels, fields={**kept, **named(fields)}, copy=None
    )


def wipe(stage: Stage, **fields: object) -> None:
    """Replace all labels of the live pool, as `az --labels` does; the copy of the marks stays."""
    pool = stage.world.pools[CUT.target.name]
    kept = {path: value for path, value in pool.fields.items() if not path.is_below("labels")}
    stage.world.pools[CUT.target.name] = replace(
        pool, owner="", pool="", protected=True, labels={}, fields={**kept, **named(fields)}
    )


def test_apply_when_labels_lost_the_marks_then_they_come_back_without_adopt(stage: Stage) -> None:
    wipe(stage)
    plan = stage.plan().pools[0]
    assert (plan.action, label(OWNER_LABEL) in {c.change.field for c in plan.changes}) == ("update", True)
    (pool,) = stage.apply().pools
    assert (pool.outcome, pool.message) == ("done", "updated")
    assert stage.world.pools[CUT.target.name].labels == CUT.labels
    assert stage.plan().pools[0].action == "no-op"


def test_apply_when_labels_lost_the_marks_and_a_field_needs_a_new_pool_then_the_marks_only(stage: Stage) -> None:
    wipe(stage, instanceType="other")
    plan = stage.plan().pools[0]
    assert [(d.code, d.severity, "instanceType" in d.seen) for d in plan.diagnostics] == [
        ("lost-marks", "warning", True)
    ]
    (pool,) = stage.apply(Consent(replace="recreate")).pools
    assert (pool.outcome, pool.message) == ("done", "updated")
    assert stage.sent() == ["update"]
    assert stage.plan().pools[0].action == "replace"


def test_apply_when_an_unowned_pool_matches_then_adopted_on_request_only(stage: Stage) -> None:
    orphan(stage)
    refused = stage.apply().pools[0].error
    assert refused is not None
    assert [d.code for d in refused.diagnostics] == ["foreign-pool"]
    (pool,) = stage.apply(adopt=True).pools
    assert (pool.outcome, pool.message) == ("done", "adopted")
    assert stage.world.pools[CUT.target.name].labels[OWNER_LABEL] == CUT.target.owner
    assert stage.plan().pools[0].action == "no-op"


DIFFERENCES: dict[str, dict[str, object]] = {
    "in place": {"taints": ()},
    "disruptive": {"disk.sizeGiB": 7},
    "replace": {"instanceType": "other"},
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_apply_when_the_pool_to_adopt_differs_then_it_gets_our_marks_alone(stage: Stage, kind: str) -> None:
    orphan(stage, **DIFFERENCES[kind])
    before = stage.world.pools[CUT.target.name].fields
    (field,) = DIFFERENCES[kind]
    stage.pools = [replace(CUT, fields={**CUT.fields, DISK_SIZE: 100})] if kind == "disruptive" else [CUT]
    (plan,) = stage.plan(adopt=True).pools
    assert (plan.action, [d.code for d in plan.diagnostics]) == ("adopt", ["adopt-differs"])
    (pool,) = stage.apply(adopt=True).pools  # no consent to anything
    assert (pool.outcome, field in pool.message, pool.error) == ("done", True, None)
    assert field in [str(c.change.field) for c in pool.changes]
    assert stage.sent() == ["update"]
    after = stage.world.pools[CUT.target.name].fields
    assert {key for key in after if after.get(key) != before.get(key)} == {
        label(OWNER_LABEL),
        label("gpukube.io/pool"),
    }
    assert stage.plan().pools[0].action == ("replace" if kind == "replace" else "update")


@pytest.mark.parametrize("state", ["busy", "failed", "deleting"])
def test_apply_when_the_pool_to_adopt_is_not_ready_then_nothing_is_changed(stage: Stage, state: str) -> None:
    orphan(stage)
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, state=state, status=state)  # type: ignore[arg-type]  # literals
    stage.pools.append(PLAIN)
    with pytest.raises(Conflict) as caught:
        stage.apply(adopt=True)
    assert [d.code for d in caught.value.diagnostics] == ["adopt-not-ready"]
    with pytest.raises(Conflict):
        create_pools([stage.plan(adopt=True)], {CLUSTER.key: stage.session}, stage.run)
    assert stage.sent() == []
    (plan, _) = stage.plan().pools
    assert plan_document([stage.plan()], ())["clusters"][0]["pools"][0]["needs"] == []
    assert "once it is no longer" in plan.diagnostics[0].fix


def test_apply_when_the_cloud_says_a_state_that_nobody_knows_then_waited_for_and_nothing_sent(stage: Stage) -> None:
    live(stage, nodes__count=7)
    pool = stage.world.pools[CUT.target.name]
    stage.world.pools[CUT.target.name] = replace(pool, state="busy", status="SomethingNew")
    stage.world.polls_to_finish = 10**6
    (report,) = stage.apply().pools
    assert isinstance(report.error, WaitTimeout)
    assert "SomethingNew" in report.error.diagnostics[0].seen
    assert stage.sent() == []


def test_apply_when_not_to_wait_then_started_and_the_way_to_go_on(stage: Stage) -> None:
    live(stage, nodes__count=7)
    stage.run = replace(stage.run, no_wait=True)
    (pool,) = stage.apply().pools
    assert (pool.outcome, pool.resume, pool.proof) == ("started", RESUME, None)


def test_apply_when_one_fails_fast_then_the_rest_does_not_begin() -> None:
    stage = Stage([CUT, PLAIN])
    stage.provider.extras.pools_at_once = 1  # one after the other
    stage.run = replace(stage.run, fail_fast=True)
    stage.world.fail_next(LOST)
    pools = stage.apply().pools
    assert [pool.outcome for pool in pools] == ["failed", "not-attempted"]
    assert stage.sent() == ["create"]
    assert "--fail-fast" in pools[1].message


def test_apply_when_stopped_while_the_cloud_works_then_the_way_to_resume() -> None:
    stage = Stage([CUT], ManualClock(stop_at=20))
    stage.world.polls_to_finish = 10_000
    (pool,) = stage.apply().pools
    assert (pool.outcome, pool.resume) == ("started", RESUME)


def test_apply_when_a_config_label_moves_then_its_old_entry_is_what_is_freed(stage: Stage) -> None:
    moved = label("nvidia.com/device-plugin.config")
    pool = stage.world.pools[CUT.target.name]
    old = {**pool.labels, "nvidia.com/device-plugin.config": "c-old"}
    stage.world.pools[CUT.target.name] = replace(pool, fields={**pool.fields, moved: "c-old"}, labels=old)
    plan = stage.plan().pools[0]
    assert [c.change for c in plan.changes] == [Change(moved, "c-old", CUT.ownership.config_key)]
    assert stage.apply(Consent(allow_disruption=True)).pools[0].outcome == "done"


def test_apply_when_the_world_raises_then_only_our_errors_end_a_pool(stage: Stage) -> None:
    stage.world.fail_next(GpukubeError("something else", fix="run it again"))
    live(stage, nodes__count=7)
    assert stage.apply().pools[0].outcome == "failed"
