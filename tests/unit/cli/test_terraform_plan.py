"""Plans as Terraform writes them: the least that readers of `terraform show -json` insist on."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cli.formats.terraform import terraform_lines
from gpukube.core.fields import COUNT, INSTANCE_TYPE, LEAST, MOST, ZONES, label
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.resources import PricedPlan, planned_resources
from gpukube.engine.offline import load
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.plan.prepare import prepare
from gpukube.errors import CloudError
from gpukube.provider import load_provider
from tests.builders import make_observed
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.core.values import Desired, Observed

ACTIONS = (["no-op"], ["create"], ["update"], ["delete"], ["delete", "create"], ["create", "delete"])
PRICED = {"aws_eks_node_group", "azurerm_kubernetes_cluster_node_pool", "google_container_node_pool"}
LIVES = ("nothing", "the same", "another label", "another machine", "nobody's")


def live_of(desired: Desired, kind: str) -> tuple[Observed, ...]:
    live = make_observed(desired)
    if kind == "nothing":
        return ()
    if kind == "another label":
        return (replace(live, fields={**live.fields, label("team"): "others"}),)
    if kind == "another machine":
        return (replace(live, fields={**live.fields, INSTANCE_TYPE: "other"}, instance_type="other"),)
    return (replace(live, owner="", pool="") if kind == "nobody's" else live,)


def written(plans: list[ClusterPlan]) -> dict[str, Any]:
    document = PricedPlan(**plan_document(plans, ()), resources=tuple(planned_resources(plans)))
    read: dict[str, Any] = json.loads("\n".join(terraform_lines(document)))
    return read


def planned(file: Path, kind: str) -> dict[str, Any]:
    plans = []
    for key, pools in prepare(load([str(file)])).desired.items():
        provider = load_provider(pools[0].target.cluster.provider)
        made = tuple(plan_pool(provider, one, live_of(one, kind), adopt=kind == "nobody's") for one in pools)
        plans.append(ClusterPlan(pools[0].target.cluster, pools=made, desired=pools, unknown=f"not read: {key}"))
    return written(plans)


def check(plan: dict[str, Any]) -> None:
    """The documented minimum: what terraform-json, infracost and tfplan2md refuse to be without."""
    assert plan["format_version"] == "1.2"
    assert plan["terraform_version"]
    assert plan["planned_values"]["root_module"]["resources"]
    assert plan["prior_state"]["format_version"] == "1.0"
    addresses = [change["address"] for change in plan["resource_changes"]]
    assert len(addresses) == len(set(addresses)) > 0
    for change in plan["resource_changes"]:
        assert change["address"] == f"{change['type']}.{change['name']}"
        assert change["mode"] == "managed"
        assert change["provider_name"]
        body = change["change"]
        assert body["actions"] in ACTIONS
        assert (body["before"] is None) == (body["actions"] == ["create"])
        assert (body["after"] is None) == (body["actions"] == ["delete"])
    keys = plan["configuration"]["provider_config"].keys()
    for configured, resource in zip(
        plan["configuration"]["root_module"]["resources"],
        plan["planned_values"]["root_module"]["resources"],
        strict=True,
    ):
        assert configured["address"] == resource["address"]
        assert configured["provider_config_key"] in keys
        assert configured["schema_version"] == 0
        assert resource["type"] in PRICED
        assert resource["values"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_plan_when_written_for_terraform_then_what_its_readers_need_is_there(file: Path) -> None:
    for kind in LIVES:
        check(planned(file, kind))


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("nothing", ["create"]),
        ("the same", ["no-op"]),
        ("another label", ["update"]),
        ("another machine", ["delete", "create"]),
        ("nobody's", ["update"]),
    ],
)
def test_pool_when_it_changes_then_terraforms_words_for_it(kind: str, actions: list[str]) -> None:
    (change,) = planned(EXAMPLES / "aks-mig-single.yaml", kind)["resource_changes"]
    assert change["change"]["actions"] == actions
    assert change["change"].get("importing") == ({"id": "a100mig"} if kind == "nobody's" else None)
    assert change.get("action_reason") == ("replace_because_cannot_update" if kind == "another machine" else None)
    if kind == "another machine":
        assert change["change"]["before"]["instance_type"] == "other"
        assert change["change"]["replace_paths"] == [["fields", "instanceType"]]


def test_pool_when_it_is_replaced_by_a_second_one_then_created_before_the_old_one_is_deleted() -> None:
    (desired,) = prepare(load([str(EXAMPLES / "aks-mig-single.yaml")])).desired["train-aks"]
    plan = plan_pool(load_provider("aks"), desired, live_of(desired, "another machine"))
    assert plan.replacement is not None
    surge = replace(plan, requests=plan.replacement.requests)
    (change,) = written([ClusterPlan(plan.cluster, pools=(surge,), unknown="not read")])["resource_changes"]
    assert change["change"]["actions"] == ["create", "delete"]


def test_pool_when_its_size_and_zones_change_then_before_has_the_live_ones() -> None:
    (desired,) = prepare(load([str(EXAMPLES / "aks-mig-single.yaml")])).desired["train-aks"]
    other = "Standard_NC24ads_A100_v4"
    fields = {**desired.fields, COUNT: 5, ZONES: ("1", "2"), INSTANCE_TYPE: other}
    live = make_observed(desired, nodes=5, fields=fields, instance_type=other)
    plan = plan_pool(load_provider("aks"), desired, (live,))
    (change,) = written([ClusterPlan(plan.cluster, pools=(plan,), unknown="not read")])["resource_changes"]
    before, after = change["change"]["before"], change["change"]["after"]
    assert before["nodes"] == {"count": 5, "min": 5, "max": 5, "autoscaled": False}
    assert (before["zones"], before["gpu"]["count"], after["gpu"]["count"]) == (["1", "2"], 1, 8)
    assert before["nodes"]["count"] > after["nodes"]["count"] == desired.target.nodes.count


def test_pool_when_it_is_autoscaled_then_before_has_the_live_bounds() -> None:
    (desired,) = prepare(load([str(EXAMPLES / "aks-mig-single.yaml")])).desired["train-aks"]
    bounds = {key: value for key, value in desired.fields.items() if key != COUNT} | {LEAST: 1, MOST: 9}
    plan = plan_pool(load_provider("aks"), desired, (make_observed(desired, nodes=4, fields=bounds),))
    (change,) = written([ClusterPlan(plan.cluster, pools=(plan,), unknown="not read")])["resource_changes"]
    assert change["change"]["before"]["nodes"] == {"count": 4, "min": 1, "max": 9, "autoscaled": True}


def removal() -> dict[str, Any]:
    (desired,) = prepare(load([str(EXAMPLES / "aks-mig-single.yaml")])).desired["train-aks"]
    cluster = desired.target.cluster
    plan = plan_removal(load_provider("aks"), cluster, make_observed(desired))
    return written([ClusterPlan(cluster, pools=(plan,), unknown="not read")])


def test_pool_when_it_is_deleted_then_nothing_is_planned_of_it() -> None:
    plan = removal()
    (change,) = plan["resource_changes"]
    assert (change["change"]["actions"], change["change"]["after"]) == (["delete"], None)
    assert plan["planned_values"]["root_module"]["resources"] == []


def test_cluster_when_it_could_not_be_read_then_the_plan_is_not_complete() -> None:
    pools = prepare(load([str(EXAMPLES / "aks-mig-single.yaml")])).desired["train-aks"]
    failed = ClusterPlan(pools[0].target.cluster, error=CloudError("no answer"), desired=pools)
    plan = written([failed])
    assert (plan["complete"], plan["errored"], plan["applyable"]) == (False, True, False)


POLICY = """
package main

import rego.v1

deny contains msg if {
  some change in input.resource_changes
  "delete" in change.change.actions
  msg := sprintf("%s would be deleted", [change.address])
}
"""


@pytest.mark.skipif(shutil.which("conftest") is None, reason="no conftest on PATH: https://www.conftest.dev/install")
def test_policy_when_conftest_reads_a_deletion_then_denied(tmp_path: Path) -> None:
    (tmp_path / "deny.rego").write_text(POLICY)
    (tmp_path / "plan.json").write_text(json.dumps(removal()))
    done = subprocess.run(
        ["conftest", "test", "-p", "deny.rego", "plan.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "gpukube_pool.train-aks_a100mig would be deleted" in done.stdout
