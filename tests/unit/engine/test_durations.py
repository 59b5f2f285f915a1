"""How long plans would take, by the terms of a cloud."""

from __future__ import annotations

from dataclasses import replace

from gpukube.cli.rendering.plan import endless_drains
from gpukube.cli.rendering.plan_parts import duration_words
from gpukube.core.drain_forecast import DrainForecast, KeptPod
from gpukube.core.durations import CloudDurations, Span
from gpukube.core.fields import COUNT, DISK_SIZE, label
from gpukube.core.owners.labels import CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.plan import plan_pool
from gpukube.core.values import Change, ClassifiedChange, Loss, Nodes, PoolPlan, UpdateRow
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.plan.durations import Duration, Term, cluster_duration, pool_duration
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import FROM_ZERO, SINGLE, desire
from tests.unit.engine.worlds import FACTS

KNOWN = CloudDurations(
    create=Span(300, 900, "a"),
    change=Span(30, 120, "b"),
    roll=Span(100, 1000, "c"),
    delete=Span(60, 600, "d"),
    gpus=Span(60, 300, "e"),
    reboot=Span(10, 20, "f"),
)
NEW = plan_pool(FakeProvider(), desire(), ())


def terms(plan: PoolPlan) -> list[str]:
    found = pool_duration(plan, KNOWN)
    return [term.name for term in found.terms] if found else []


def changed(*changes: Change) -> PoolPlan:
    rows = tuple(ClassifiedChange(change, FakeProvider().update_row(change)) for change in changes)
    live = make_observed(desire(nodes=Nodes(3, 3, 3, autoscaled=False)))
    return replace(NEW, action="update", observed=live, changes=rows, requests=NEW.requests * len(changes))


def test_pool_when_created_then_nodes_and_their_gpus() -> None:
    assert terms(NEW) == ["nodes starting", "GPUs becoming allocatable"]
    assert terms(plan_pool(FakeProvider(), desire(sharing=SINGLE), ())) == [
        "nodes starting", "GPUs becoming allocatable", "nodes restarting to configure MIG"
    ]  # fmt: skip
    assert terms(plan_pool(FakeProvider(), desire(nodes=FROM_ZERO), ())) == ["pool being created without nodes"]


def test_pool_when_changed_then_what_its_calls_do() -> None:
    found = pool_duration(changed(Change(COUNT, 3, 5), Change(DISK_SIZE, 1, 2)), KNOWN)
    assert found is not None
    assert [(term.name, term.span.most_s) for term in found.terms] == [
        ("calls to the cloud", 120),
        ("nodes being replaced", 3000),
        ("nodes starting", 900),
        ("GPUs becoming allocatable", 300),
    ]
    assert terms(changed(Change(COUNT, 5, 3))) == ["calls to the cloud"]
    assert terms(replace(NEW, action="no-op", requests=())) == []


def test_pool_when_its_labels_move_the_plugin_then_devices_come_again_and_no_node_does() -> None:
    rows = [
        UpdateRow(label(key), "disruptive", "restarts the plugin", "update", "")
        for key in (CONFIG_LABEL, MIG_CONFIG_LABEL)
    ]
    config, cut = (ClassifiedChange(Change(row.field, None, "x"), row) for row in rows)
    assert terms(replace(changed(), changes=(config,), requests=NEW.requests)) == [
        "calls to the cloud", "GPUs becoming allocatable"
    ]  # fmt: skip
    assert terms(replace(changed(), changes=(config, cut), requests=NEW.requests)) == [
        "calls to the cloud", "GPUs becoming allocatable", "nodes restarting to configure MIG"
    ]  # fmt: skip


def test_pool_when_replaced_then_pods_leave_before_anything_is_deleted() -> None:
    replaced = replace(NEW, action="replace")
    assert terms(replaced)[:2] == ["pods leaving", "pool being deleted"]
    assert "pods leaving" not in terms(replace(replaced, loss=Loss(1, 8, ())))


def test_plan_when_a_drain_has_no_end_then_no_estimate_but_what_would_end_it_and_what_it_costs() -> None:
    kept = KeptPod("ml/web-1", "n1", "budget ml/keep: minAvailable is 100%", "lower it: kubectl -n ml edit pdb keep")
    endless = replace(NEW, action="replace", leaving=DrainForecast(2, blocked=(kept,)))
    document = plan_document([ClusterPlan(CLUSTER, FACTS, pools=(NEW, endless))], ())
    new, old = document["clusters"][0]["pools"]
    assert (new["duration"] is not None, old["duration"], document["summary"]["duration"]) == (True, None, None)
    assert old["price"] is not None
    old["price"]["whileBothRun"] = {"min": 2.56, "max": 2.56}
    words = f"the drain of {NEW.name} will not end on its own; to end it, lower it: kubectl -n ml edit pdb keep"
    assert list(endless_drains(document)) == [f"{words}; meanwhile both pools cost 2.56 USD/h"]


def test_cluster_when_pools_wait_for_each_other_then_the_longest_chain() -> None:
    one = Duration((Term("x", Span(60, 600, "")),))
    two = Duration((Term("y", Span(30, 300, "")), Term("z", Span(10, 20, ""))))
    pools = [("a", one), ("b", two), ("c", two)]
    serial, parallel = cluster_duration(pools, 1), cluster_duration(pools, 2)
    assert serial is not None
    assert (serial.least_s, serial.most_s, serial.longest.name) == (140, 1240, "a: x")
    assert parallel is not None
    assert (parallel.least_s, parallel.most_s) == (80, 640)
    assert cluster_duration([], 1) is None


def test_cluster_when_one_pool_changes_at_a_time_then_proofs_run_beside_the_next_change() -> None:
    proven = Duration((Term("made", Span(10, 100, "")), Term("proof", Span(10, 150, ""), is_proof=True)))
    quick = Duration((Term("made", Span(1, 10, "")),))
    (one, two) = (cluster_duration([("a", proven), ("b", quick), ("c", proven)], at_once) for at_once in (1, 2))
    assert one is not None
    assert [term.name for term in one.terms] == ["a: made", "b: made", "c: made", "c: proof"]
    assert one.most_s == 360
    assert two is not None
    assert two.most_s == 260
    last = cluster_duration([("a", proven), ("b", quick)], 1)
    assert last is not None
    assert [term.name for term in last.terms] == ["a: made", "a: proof"]


def test_document_when_a_diff_then_no_durations() -> None:
    plans = [ClusterPlan(CLUSTER, FACTS, pools=(NEW,))]
    document = plan_document(plans, ())
    (pool,) = document["clusters"][0]["pools"]
    assert pool["duration"] is not None
    assert document["summary"]["duration"] == document["clusters"][0]["duration"]
    assert duration_words(pool["duration"]) == "about 13 min (6 to 20 min); most of it: nodes starting"
    diff = plan_document(plans, (), kind="Diff")
    assert (diff["summary"]["duration"], diff["clusters"][0]["pools"][0]["duration"]) == (None, None)
