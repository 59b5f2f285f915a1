"""Plans and reports as plain data: JSON-like throughout, versioned, and without anything secret."""

from __future__ import annotations

import json

import pytest

from gpukube.core.owners import solve_ownership
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import promise_of
from gpukube.core.values import ClusterFacts, Nodes, Ownership
from gpukube.engine.documents import list_document, plan_document, pool_document, report_document
from gpukube.engine.planning import ClusterPlan
from gpukube.engine.report import ClusterReport, PoolReport
from gpukube.errors import CapacityError, CloudError, ClusterError, Diagnostic, SpecError, Where
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER, make_observed, make_target

PROVIDER = FakeProvider()
TARGET = make_target(nodes=Nodes(1, 1, 3, autoscaled=True))
OWNERSHIP = solve_ownership(TARGET, PROVIDER.stack(TARGET))
assert isinstance(OWNERSHIP, Ownership)
WANTED = PROVIDER.desired(TARGET, OWNERSHIP, promise_of(TARGET))
LIVE = make_observed(WANTED, native={"kubeconfig": "secret-token"})
FACTS = ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")
PLAN = ClusterPlan(CLUSTER, facts=FACTS, pools=(plan_pool(PROVIDER, WANTED, ()),), live=(LIVE,))


def test_plan_document_when_made_then_json_that_says_what_would_be_there() -> None:
    document = plan_document([PLAN], [Diagnostic("some-code", Where("a.yaml", 3, 4), "mind this", severity="warning")])
    read = json.loads(json.dumps(document))
    assert (read["schemaVersion"], read["kind"], read["differs"]) == (0, "Plan", True)
    (pool,) = read["clusters"][0]["pools"]
    assert pool["devices"] == {
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
    changed = make_observed(WANTED, fields={**WANTED.fields, "labels[team]": "vision"})
    plan = ClusterPlan(CLUSTER, facts=FACTS, pools=(plan_pool(PROVIDER, WANTED, (changed,)),), live=(changed,))
    document = json.loads(json.dumps(plan_document([plan], [], kind="Diff")))
    (change,) = document["clusters"][0]["pools"][0]["changes"]
    assert change == {
        "field": "labels[team]",
        "old": "vision",
        "new": None,
        "kind": "in-place",
        "sentence": "changes at once",
    }


def test_plan_document_when_a_cluster_failed_then_its_error_in_full() -> None:
    error = CloudError("no such cluster", where="train-aks", fix="check its name", code="no-cluster")
    document = json.loads(json.dumps(plan_document([ClusterPlan(CLUSTER, error=error)], [])))
    (cluster,) = document["clusters"]
    assert cluster["error"] == [
        {
            "severity": "error",
            "code": "no-cluster",
            "where": "train-aks",
            "message": "no such cluster",
            "why": "",
            "fix": "check its name",
        }
    ]
    assert (cluster["pools"], cluster["release"], cluster["location"]) == ([], None, None)


def test_report_document_when_made_then_the_exit_code_and_every_outcome() -> None:
    failed = PoolReport("b", "b", "failed", "was not proven", error=CapacityError("none", fix="zone 2"), resume="again")
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
