"""Which labels and taints a node has lost, and which differences are nobody's drift."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.state.node_drift import NodeRepair, node_repairs, nodes_of_pool
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.plan import plan_pool
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, Taint
from gpukube.testing.fakes import FakeProvider
from tests.builders import make_observed
from tests.unit.cluster.builders import (
    GPU_TAINT,
    SINGLE,
    VISION_TAINT,
    claimed,
    desire,
    node_of,
    operated,
    operated_node,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.values import Desired, Observed, PoolPlan

POOL = desire(sharing=SINGLE, taints=(GPU_TAINT, VISION_TAINT), labels={"team": "vision"})
NODE = node_of(POOL)
LIVE = make_observed(POOL)
KEY = "nvidia.com/device-plugin.config"


def plan_of(pool: Desired, live: Observed) -> PoolPlan:
    return plan_pool(FakeProvider(), pool, [live])


def repairs(*nodes: NodeView, pool: Desired = POOL, live: Observed | None = None) -> tuple[NodeRepair, ...]:
    return node_repairs([plan_of(pool, live or make_observed(pool))], Snapshot(nodes=nodes))


def without(labels: dict[str, str] | None = None, *gone: str, taints: tuple[Taint, ...] = NODE.taints) -> NodeView:
    kept = {key: value for key, value in NODE.labels.items() if key not in gone}
    return replace(NODE, labels={**kept, **(labels or {})}, taints=taints)


def test_repairs_when_a_node_has_all_then_none() -> None:
    assert repairs(NODE) == ()


LOST = {
    "a label of the user": (without({}, "team"), ("label", "team", "vision", None)),
    "a label with another value": (without({"team": "audio"}), ("label", "team", "vision", "audio")),
    "the config entry": (without({}, KEY), ("label", KEY, POOL.labels[KEY], None)),
    "a taint": (without(taints=(GPU_TAINT,)), ("taint", "dedicated", "vision", None)),
    "the value of a taint": (
        without(taints=(GPU_TAINT, replace(VISION_TAINT, value="audio"))),
        ("taint", "dedicated", "vision", "audio"),
    ),
    "the effect of a taint": (
        without(taints=(GPU_TAINT, replace(VISION_TAINT, effect="NoExecute"))),
        ("taint", "dedicated", "vision", None),
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_repairs_when_a_node_lost_something_then_that_alone(case: str) -> None:
    node, desired = LOST[case]
    (found,) = repairs(node)
    assert (found.kind, found.key, found.desired, found.live) == desired
    assert (found.node, found.pool) == (NODE.name, "a100mig")


CLAIMED = claimed()
ADVERTISER = "gpukube.io/advertiser"


@pytest.mark.parametrize(("pool", "live"), [(CLAIMED, "chart"), (CLAIMED, "operator"), (POOL, "dra")])
def test_repairs_when_a_node_was_moved_to_or_from_the_dra_driver_then_its_pods_keep_their_gpus(
    pool: Desired, live: str
) -> None:
    node = node_of(pool)
    assert repairs(replace(node, labels={**node.labels, ADVERTISER: live}), pool=pool) == ()
    lost = replace(node, labels={key: value for key, value in node.labels.items() if key != ADVERTISER})
    assert [(found.key, found.desired) for found in repairs(lost, pool=pool)] == [(ADVERTISER, pool.labels[ADVERTISER])]


NOBODYS = {
    "labels of others": without({"topology.kubernetes.io/zone": "1", "nvidia.com/gpu.product": "A100", "x": "y"}),
    "the MIG manager's state": without({"nvidia.com/mig.config.state": "pending"}),
    "taints of others": without(
        taints=(
            *NODE.taints,
            Taint("node.kubernetes.io/not-ready", "", "NoExecute"),
            Taint("ToBeDeletedByClusterAutoscaler", "1", "NoSchedule"),
        )
    ),
    "a node that the cloud has not finished": without(
        {}, "team", taints=(Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"),)
    ),
    "a node of another pool": replace(NODE, labels={"kubernetes.azure.com/agentpool": "system"}),
    "a health condition": replace(NODE, conditions={"Ready": "False"}, allocatable={}),
}


@pytest.mark.parametrize("case", NOBODYS)
def test_repairs_when_a_difference_is_nobodys_drift_then_none(case: str) -> None:
    assert repairs(NOBODYS[case]) == ()


NOT_YET: dict[str, dict[str, object]] = {
    "the pool is busy": {"state": "busy"},
    "the pool failed": {"state": "failed"},
    "the pool is of another owner": {"owner": "another-team"},
    "the pool's API has another value, too": {"labels": {**POOL.labels, "team": "audio"}},
    "the pool's API lacks it": {"labels": {key: text for key, text in POOL.labels.items() if key != "team"}},
}


@pytest.mark.parametrize("case", NOT_YET)
def test_repairs_when_the_pool_itself_is_to_change_then_none(case: str) -> None:
    assert repairs(without({"team": "audio"}), live=make_observed(POOL, **NOT_YET[case])) == ()


def test_repairs_when_the_pools_api_lacks_a_taint_then_its_update_brings_it() -> None:
    bare = make_observed(POOL, effective_taints=(GPU_TAINT,))
    assert repairs(without(taints=(GPU_TAINT,)), live=bare) == ()


CLOUD_LABELS = ["kubernetes.azure.com/agentpool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool"]


@pytest.mark.parametrize("label", CLOUD_LABELS)
def test_repairs_when_a_node_lost_our_marks_then_found_by_the_clouds_label(label: str) -> None:
    found = repairs(without({label: LIVE.name}, OWNER_LABEL, POOL_LABEL))
    assert [repair.key for repair in found] == [OWNER_LABEL, POOL_LABEL]


def test_nodes_when_a_foreign_node_carries_our_marks_then_the_clouds_label_decides() -> None:
    stray = without({"kubernetes.azure.com/agentpool": "other"})
    assert nodes_of_pool(Snapshot(nodes=(NODE, stray)), LIVE) == (NODE,)


def test_repairs_when_the_operator_rules_a_label_then_not_ours_to_mend() -> None:
    pool = operated(sharing=SINGLE)
    pool = replace(pool, labels={**pool.labels, "nvidia.com/gpu.present": "true"})
    node = operated_node(pool, **{"nvidia.com/gpu.present": "false"})
    assert repairs(node, pool=pool) == ()
    charted = desire(sharing=SINGLE)
    charted = replace(charted, labels={**charted.labels, "nvidia.com/gpu.present": "true"})
    lost = replace(node_of(charted), labels={**charted.labels, "nvidia.com/gpu.present": "false"})
    assert [repair.key for repair in repairs(lost, pool=charted)] == ["nvidia.com/gpu.present"]


DISRUPTIVE = {
    "a label": (NodeRepair("n", "p", "label", "team", "a", None), False),
    "the cut": (NodeRepair("n", "p", "label", "nvidia.com/mig.config", "all-1g.5gb", None), True),
    "a taint": (NodeRepair("n", "p", "taint", "team", "a", None, "NoSchedule"), False),
    "a taint that evicts": (NodeRepair("n", "p", "taint", "team", "a", None, "NoExecute"), True),
}


@pytest.mark.parametrize("case", DISRUPTIVE)
def test_repair_when_pods_would_suffer_then_disruptive(case: str) -> None:
    repair, disruptive = DISRUPTIVE[case]
    assert repair.disruptive is disruptive


def test_repair_when_said_then_names_node_field_and_both_values() -> None:
    assert str(NodeRepair("n", "p", "label", "team", "a", "b")) == "node n: labels[team] is b, not a"
    taint = NodeRepair("n", "p", "taint", "team", "a", None, "NoSchedule")
    assert str(taint) == "node n: taints[team:NoSchedule] is gone, not a"


def test_repairs_when_many_then_ordered_by_node_and_key() -> None:
    second = replace(without({}, "team", KEY), name="node-0")
    found = repairs(without({}, "team"), second)
    assert [(repair.node, repair.key) for repair in found] == [
        ("node-0", KEY),
        ("node-0", "team"),
        ("node-1", "team"),
    ]
