"""Plans and reports as plain data: JSON-like throughout, versioned, and without anything secret."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from gpukube.cli.rendering.words import gpu_line, needs_line, stuck_line, unread_line
from gpukube.cluster.kube.views import NodeView, PodView
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import DISK_SIZE, INSTANCE_TYPE, MOST, label
from gpukube.core.owners import solve_ownership
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.resolve import promise_of
from gpukube.core.values import ClusterFacts, Loss, Nodes, Ownership, PoolPlan, Request
from gpukube.engine.documents.event import event_document
from gpukube.engine.documents.listing import list_document, pool_document, used_devices
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.report import report_document
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_schema
from gpukube.engine.documents.summary import plan_summary
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.run.events import Event
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CapacityError, CloudError, ClusterError, Finding, SpecError, Where
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER, make_observed, make_target
from tests.unit.cluster.claiming import cut_gpus, slice_of
from tools.document_schemas import FOLDER, schemas

PROVIDER = FakeProvider()
TARGET = make_target(nodes=Nodes(1, 1, 3, autoscaled=True))
OWNERSHIP = solve_ownership(TARGET, PROVIDER.stack(TARGET))
assert isinstance(OWNERSHIP, Ownership)
WANTED = PROVIDER.desired(TARGET, OWNERSHIP, promise_of(TARGET))
LIVE = make_observed(WANTED, native={"kubeconfig": "secret-token"})
FACTS = ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")
PLAN = ClusterPlan(CLUSTER, facts=FACTS, pools=(plan_pool(PROVIDER, WANTED, ()),), live=(LIVE,))


def test_plan_document_when_made_then_json_that_says_what_would_be_there() -> None:
    document = plan_document([PLAN], [Finding("some-code", Where("a.yaml", 3, 4), "mind this", severity="warning")])
    read = json.loads(json.dumps(document))
    assert (read["schemaVersion"], read["kind"], read["differs"]) == (1, "Plan", True)
    (pool,) = read["clusters"][0]["pools"]
    assert pool["devices"] == {
        "now": {},
        "perNode": {"nvidia.com/gpu": 8},
        "min": {"nvidia.com/gpu": 8},
        "max": {"nvidia.com/gpu": 24},
    }
    assert (pool["action"], pool["requests"][0]["operation"]) == ("create", "create")
    assert read["warnings"][0]["where"] == "a.yaml:3:4"


def test_documents_when_made_then_no_native_answer_is_in_them() -> None:
    for document in (plan_document([PLAN], []), list_document([PLAN]), pool_document([PLAN], "a100mig")):
        assert "secret-token" not in json.dumps(document)


def test_plan_document_when_a_change_is_classified_then_its_sentence_goes_along() -> None:
    changed = make_observed(WANTED, fields={**WANTED.fields, label("team"): "vision"})
    plan = ClusterPlan(CLUSTER, facts=FACTS, pools=(plan_pool(PROVIDER, WANTED, (changed,)),), live=(changed,))
    document = json.loads(json.dumps(plan_document([plan], [], kind="Diff")))
    (change,) = document["clusters"][0]["pools"][0]["changes"]
    assert change == {
        "field": "labels[team]",
        "old": "vision",
        "new": None,
        "kind": "in-place",
        "sentence": "changes at once",
        "declared": None,
    }


def test_plan_document_when_a_cluster_failed_then_its_error_in_full() -> None:
    error = CloudError("no such cluster", where="train-aks", fix="check its name", code="no-cluster")
    document = json.loads(json.dumps(plan_document([ClusterPlan(CLUSTER, error=error)], [])))
    (cluster,) = document["clusters"]
    assert cluster["error"] == [
        {
            "severity": "error",
            "id": "",
            "code": "no-cluster",
            "where": "train-aks",
            "position": None,
            "field": "",
            "message": "no such cluster",
            "why": "",
            "fix": "check its name",
        }
    ]
    assert (cluster["pools"], cluster["release"], cluster["location"]) == ([], None, None)


def test_report_document_when_made_then_the_exit_code_and_every_outcome() -> None:
    failed = PoolReport("b", "b", "failed", "not verified", error=CapacityError("none", fix="zone 2"), resume="again")
    reports = [ClusterReport(CLUSTER, (PoolReport("a", "a", "done", "created"), failed), "release: 1")]
    document = json.loads(json.dumps(report_document(reports, kind="Create")))
    assert (document["exitCode"], document["kind"]) == (3, "Create")
    assert [(p["pool"], p["outcome"], p["resume"]) for p in document["clusters"][0]["pools"]] == [
        ("a", "done", ""),
        ("b", "failed", "again"),
    ]
    assert document["clusters"][0]["pools"][1]["error"][0]["code"] == "capacity"


def test_list_document_when_a_pool_has_no_gpus_and_no_owner_then_left_out() -> None:
    system = make_observed(WANTED, name="nodepool1", owner="", pool="", instance_type="Standard_D4s_v5")
    theirs = make_observed(WANTED, name="theirs", owner="", pool="")
    plan = ClusterPlan(CLUSTER, facts=FACTS, live=(system, theirs, LIVE))
    document = json.loads(json.dumps(list_document([plan])))
    assert [pool["name"] for pool in document["clusters"][0]["pools"]] == ["theirs", "a100mig"]


def test_pool_document_when_found_by_either_name_then_the_same() -> None:
    renamed = make_observed(WANTED, name="a100")
    plan = ClusterPlan(CLUSTER, facts=FACTS, live=(renamed,))
    assert pool_document([plan], "a100") == pool_document([plan], "a100mig")


def test_pool_document_when_nobody_has_it_then_refused_unless_a_cluster_did_not_answer() -> None:
    with pytest.raises(SpecError, match='no pool "h100" is live on train-aks'):
        pool_document([PLAN], "h100")
    document = json.loads(json.dumps(pool_document([ClusterPlan(CLUSTER, error=ClusterError("silent"))], "h100")))
    assert (document["pools"], len(document["errors"])) == ([], 1)


VALIDATORS = {name: Draft202012Validator(document_schema(name)) for name in set(SCHEMA_NAMES.values())}


@pytest.mark.parametrize("name", sorted(VALIDATORS))
def test_schema_when_made_of_the_shapes_then_the_ones_that_are_shipped(name: str) -> None:
    Draft202012Validator.check_schema(document_schema(name))
    assert (FOLDER / f"{name}.schema.json").read_text("utf-8") == schemas()[name], (
        "run: python -m tools.document_schemas"
    )


@pytest.mark.parametrize("name", sorted(VALIDATORS))
def test_schema_when_read_then_every_key_is_described(name: str) -> None:
    schema = json.loads(json.dumps(document_schema(name)))
    for shape in (schema, *schema["$defs"].values()):
        assert all(key["description"] for key in shape["properties"].values())
        assert shape["description"]


def test_schema_when_a_document_is_wrong_then_it_says_so() -> None:
    document = json.loads(json.dumps(plan_document([PLAN], [])))
    pool = document["clusters"][0]["pools"][0]
    assert not list(VALIDATORS["plan"].iter_errors(document))
    for key, value in (("action", "explode"), ("changes", None), ("devices", {})):
        wrong = {**document, "clusters": [{**document["clusters"][0], "pools": [{**pool, key: value}]}]}
        assert list(VALIDATORS["plan"].iter_errors(wrong)), key
    assert list(VALIDATORS["diff"].iter_errors(document))  # a plan is no diff


def test_plan_document_when_something_is_lost_then_what_it_costs_and_the_flags_it_needs() -> None:
    live = make_observed(WANTED, fields={**WANTED.fields, DISK_SIZE: 100})
    declared = replace(WANTED, fields={**WANTED.fields, DISK_SIZE: 200})
    plan = replace(plan_pool(PROVIDER, declared, (live,)), loss=Loss(1, 8.0, ("ml/train-0",)), capacity={"a": 1})
    (pool,) = plan_document([ClusterPlan(CLUSTER, facts=FACTS, pools=(plan,))], [])["clusters"][0]["pools"]
    assert pool["loss"] == {"nodes": 1, "of": None, "gpus": 8.0, "pods": ["ml/train-0"]}
    assert (pool["needs"], pool["devices"]["now"]) == (["--allow-disruption"], {"a": 1})


NEEDS: dict[str, tuple[PoolPlan, list[str]]] = {
    "create": (plan_pool(PROVIDER, WANTED, ()), []),
    "no-op": (plan_pool(PROVIDER, WANTED, (LIVE,)), []),
    "label": (plan_pool(PROVIDER, WANTED, (make_observed(WANTED, fields={**WANTED.fields, label("a"): "b"}),)), []),
    "replace": (
        plan_pool(PROVIDER, WANTED, (make_observed(WANTED, fields={**WANTED.fields, INSTANCE_TYPE: "other"}),)),
        ["--replace surge"],
    ),
    "delete": (plan_removal(PROVIDER, CLUSTER, LIVE), ["--prune"]),
    "not ours": (plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner="", pool=""),)), ["--adopt"]),
    "adopted": (plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner="", pool=""),), adopt=True), ["--adopt"]),
    "another's": (plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner="them", pool="x"),)), []),
}


@pytest.mark.parametrize("name", NEEDS)
def test_plan_document_when_an_action_needs_a_flag_then_it_is_named(name: str) -> None:
    plan, flags = NEEDS[name]
    (pool,) = plan_document([ClusterPlan(CLUSTER, pools=(plan,))], [])["clusters"][0]["pools"]
    assert pool["needs"] == flags


def test_plan_document_when_user_data_is_sent_then_its_digest_only() -> None:
    secret = {
        "launchTemplateData": {"UserData": "password=hunter2", "ImageId": "ami-1"},
        "list": [{"user-data": "hunter2"}],
    }
    plan = replace(plan_pool(PROVIDER, WANTED, ()), requests=(Request("eks", "create", secret),))
    text = json.dumps(plan_document([ClusterPlan(CLUSTER, pools=(plan,))], []))
    assert "hunter2" not in text
    assert '"UserData": "(16 bytes, sha256:' in text
    assert '"ImageId": "ami-1"' in text


def test_plan_document_when_counted_then_actions_and_physical_gpus() -> None:
    gone = make_observed(WANTED, name="old", pool="old", nodes=2)
    pools = (plan_pool(PROVIDER, WANTED, ()), plan_removal(PROVIDER, CLUSTER, gone))
    document = plan_document([ClusterPlan(CLUSTER, pools=pools)], [])
    assert document["summary"]["actions"] == {"create": 1, "delete": 1}
    assert document["summary"]["gpus"] == {"before": 16.0, "min": 8.0, "max": 24.0}
    assert plan_summary(document) == "1 to create, 1 to delete"


def test_plan_document_when_a_cluster_could_not_be_read_then_what_is_declared_and_nothing_counted() -> None:
    lost = ClusterPlan(replace(CLUSTER, key="lost"), error=CloudError("no"), desired=(WANTED,))
    document = plan_document([lost], [])
    (pool,) = document["clusters"][0]["unplanned"]
    assert (pool["name"], pool["devices"]["now"], pool["devices"]["max"]) == (
        WANTED.target.name,
        None,
        WANTED.promise.total(WANTED.target.nodes.maximum),
    )
    assert plan_summary(document) == "1 unknown, 1 cluster could not be read"
    assert gpu_line(document) == "GPUs: unknown"
    read = ClusterPlan(CLUSTER, pools=(plan_pool(PROVIDER, WANTED, ()),), unknown="no answer")
    partly = plan_document([read, lost], [])
    assert plan_summary(partly) == (
        "1 to create, 1 unknown, 1 cluster could not be read, the inside of 1 cluster is unknown"
    )
    assert gpu_line(partly) == "GPUs: unknown now, 8 to 24 after, not counting lost"


def test_plan_document_when_no_flag_applies_a_pool_then_named_beside_the_flags() -> None:
    nobodys = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner="", pool=""),))
    theirs = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, owner="others", pool="x"),))
    assert nobodys.action == theirs.action == "conflict"
    adoptable = plan_document([ClusterPlan(CLUSTER, pools=(nobodys,))], [])
    assert (needs_line(adoptable), stuck_line(adoptable)) == ("to apply all of it, add: --adopt", "")
    stuck = plan_document([ClusterPlan(CLUSTER, pools=(nobodys, theirs))], [])
    assert needs_line(stuck) == "to apply what can be applied, add: --adopt"
    assert stuck_line(stuck) == "no flag applies train-aks/a100mig: see its error"
    sign = Finding("managed-pool", nobodys.where, "eksctl manages it", fix="let it forget the pool")
    managed = replace(nobodys, obstacle="managed", diagnostics=(sign,))
    line = stuck_line(plan_document([ClusterPlan(CLUSTER, pools=(theirs, managed))], []))
    assert line == (
        "no flag applies train-aks/a100mig: see its error; another tool manages train-aks/a100mig: see its error"
    )


def test_plan_document_when_clusters_were_not_read_then_named() -> None:
    assert unread_line(plan_document([PLAN], [])) == ""
    assert unread_line(plan_document([PLAN], [], not_read=["e2"])) == "not read: e2 (no pool of this plan is on it)"


def test_plan_document_when_a_live_count_is_not_known_then_neither_is_the_sum() -> None:
    unsaid = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, nodes=None),))
    document = plan_document([ClusterPlan(CLUSTER, pools=(unsaid,))], [])
    assert document["summary"]["gpus"]["before"] is None


def node(ready: str, gpus: str) -> NodeView:
    labels = {"gpukube.io/owner": TARGET.owner, "gpukube.io/pool": TARGET.pool}
    return NodeView("n1", labels, (), {}, {"nvidia.com/gpu": gpus}, {"Ready": ready}, "", "2026-01-01T00:00:00Z")


def test_plan_document_when_a_node_is_not_ready_then_shown_as_health_and_no_difference() -> None:
    same = plan_pool(PROVIDER, WANTED, (LIVE,))
    plan = ClusterPlan(CLUSTER, facts=FACTS, pools=(same,), seen=Snapshot(nodes=(node("False", "8"),)))
    document = plan_document([plan], [])
    health = document["clusters"][0]["pools"][0]["health"]
    assert health is not None
    assert (document["differs"], health["status"]) == (False, "waiting")
    assert {finding["step"] for finding in health["findings"]} <= {"node", "ready", "count"}


def test_plan_document_when_the_promise_itself_changes_then_live_nodes_are_not_held_to_it() -> None:
    moved = plan_pool(PROVIDER, WANTED, (make_observed(WANTED, fields={**WANTED.fields, MOST: 9}),))
    plan = ClusterPlan(CLUSTER, facts=FACTS, pools=(moved,), seen=Snapshot(nodes=(node("False", "0"),)))
    assert plan_document([plan], [])["clusters"][0]["pools"][0]["health"] is None


class Lines:
    """A locator of a pool in a file."""

    def at(self, path: str) -> Where:
        return Where("pools.yaml", {"name": 7, "labels": 9}.get(path, 8), 3)


def test_plan_document_when_the_spec_is_a_file_then_pools_and_changes_carry_their_lines() -> None:
    written = replace(WANTED, target=replace(TARGET, locator=Lines()))
    live = make_observed(WANTED, fields={**WANTED.fields, label("team"): "vision"})
    (pool,) = plan_document([ClusterPlan(CLUSTER, pools=(plan_pool(PROVIDER, written, (live,)),))], [])["clusters"][0][
        "pools"
    ]
    assert pool["declared"] == {"file": "pools.yaml", "line": 7, "column": 3}
    assert [change["declared"] for change in pool["changes"]] == [{"file": "pools.yaml", "line": 9, "column": 3}]


def test_list_document_when_pods_ask_for_devices_then_used_and_slices() -> None:
    plan = ClusterPlan(CLUSTER, facts=FACTS, live=(LIVE,), seen=Snapshot(nodes=(node("True", "56"),)))
    usage = {CLUSTER.key: {"n1": {"nvidia.com/gpu": 3}, "other": {"nvidia.com/gpu": 9}}}
    (pool,) = list_document([plan], usage)["clusters"][0]["pools"]
    assert (pool["allocatable"], pool["used"], pool["slicesPerGpu"]) == (
        {"nvidia.com/gpu": 56},
        {"nvidia.com/gpu": 3},
        7,
    )
    (unasked,) = list_document([plan])["clusters"][0]["pools"]
    assert unasked["used"] is None


def pod(name: str, gpus: int, *, node: str = "n1", phase: str = "Running", scheduled: bool = True) -> PodView:
    asked = {"nvidia.com/gpu": gpus} if gpus else {}
    return PodView(name, "ml", {}, node, scheduled, phase, True, "", (), "Job", "train", asked)  # noqa: FBT003


def test_used_devices_when_pods_hold_them_then_summed_by_node() -> None:
    pods = [
        pod("a", 1),
        pod("b", 2, phase="Pending"),
        pod("c", 4, node="n2"),
        pod("ended", 8, phase="Succeeded"),
        pod("unplaced", 8, scheduled=False),
        pod("no-gpu", 0, node="n3"),
    ]
    assert used_devices(pods, {}) == {"n1": {"nvidia.com/gpu": 3}, "n2": {"nvidia.com/gpu": 4}}
    held = {"n1": {"gpu.nvidia.com": 1}}
    assert used_devices(pods, held)["n1"] == {"gpu.nvidia.com": 1, "nvidia.com/gpu": 3}
    assert held == {"n1": {"gpu.nvidia.com": 1}}


def test_list_document_when_the_dra_driver_publishes_devices_then_they_are_allocatable() -> None:
    seen = Snapshot(nodes=(replace(node("True", "0"), allocatable={}),), slices=(slice_of(cut_gpus(), "n1"),))
    plan = ClusterPlan(CLUSTER, facts=FACTS, live=(LIVE,), seen=seen)
    (pool,) = list_document([plan], {CLUSTER.key: {"n1": {"mig.nvidia.com/1g.5gb": 3}}})["clusters"][0]["pools"]
    assert (pool["allocatable"], pool["used"], pool["slicesPerGpu"]) == (
        {"mig.nvidia.com/1g.5gb": 56},
        {"mig.nvidia.com/1g.5gb": 3},
        7,
    )
    (found,) = pool_document([plan], LIVE.name)["pools"]
    assert found["nodes"][0]["devices"] == {"mig.nvidia.com/1g.5gb": 56}


def test_event_document_when_made_then_utc_and_valid() -> None:
    document = event_document(Event(1_800_000_000.25, "train-aks", "", "release", "installed"))
    assert document["at"] == "2027-01-15T08:00:00.250Z"
    assert document["pool"] is None
    assert not list(VALIDATORS["event"].iter_errors(document))


def test_documents_when_made_then_valid_by_their_schemas() -> None:
    failed = PoolReport("b", "b", "failed", "not verified", error=CapacityError("none", fix="zone 2"), resume="again")
    started = PoolReport("c", "c", "started", "asked for")
    reports = [ClusterReport(CLUSTER, (PoolReport("a", "a", "done", "created"), failed, started), "release: 1")]
    documents = [
        plan_document([PLAN], []),
        plan_document([PLAN], [], kind="Diff"),
        list_document([PLAN]),
        pool_document([PLAN], "a100mig"),
        *(report_document(reports, kind=kind) for kind, name in SCHEMA_NAMES.items() if name == "report"),
    ]
    for document in documents:
        validator = VALIDATORS[SCHEMA_NAMES[str(document["kind"])]]
        assert not list(validator.iter_errors(json.loads(json.dumps(document))))
