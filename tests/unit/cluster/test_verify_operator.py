"""Pools that the GPU Operator serves, and pools that the cloud's own plugin serves: the missing step is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Taint
from gpukube.engine.documents.parts import WEIGHTS
from tests.unit.cluster.builders import (
    FROM_ZERO,
    MIXED,
    SINGLE,
    SLICED,
    advertised_by_cloud,
    desire,
    node_of,
    operated,
    operated_node,
    operating,
    operator_deployment,
    plugin_pod,
    state,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.values import Desired

CUT = operated(sharing=SINGLE)
SHARED = operated(sharing=SLICED)
NODE = operated_node(CUT)
PLUGIN_LABEL = "nvidia.com/gpu.deploy.device-plugin"
STATE_LABEL = "nvidia.com/mig.config.state"
WHOLE = {"nvidia.com/gpu": "8"}


def without(node: NodeView, *keys: str) -> NodeView:
    return replace(node, labels={key: value for key, value in node.labels.items() if key not in keys})


def labelled(key: str, value: str, **changes: object) -> NodeView:
    return replace(NODE, labels={**NODE.labels, key: value}, **changes)  # type: ignore[arg-type]  # test data


PROVEN = {
    "cut, single": (CUT, {"nvidia.com/gpu": 56}),
    "cut, mixed": (operated(sharing=MIXED), {"nvidia.com/mig-1g.5gb": 56}),
    "not cut, shared": (SHARED, {"nvidia.com/gpu": 32}),
    "whole": (operated(), {"nvidia.com/gpu": 8}),
}


@pytest.mark.parametrize("case", PROVEN)
def test_prove_when_the_operator_has_done_its_part_then_proven_with_totals(case: str) -> None:
    pool, devices = PROVEN[case]
    proof = prove_pool(pool, operating([pool], operated_node(pool)))
    assert (proof.status, proof.total, proof.missing_step) == ("proven", devices, None)


def test_prove_when_a_pool_is_not_cut_then_the_state_of_the_cut_does_not_matter() -> None:
    node = without(operated_node(SHARED), STATE_LABEL)
    assert prove_pool(SHARED, operating([SHARED], node)).status == "proven"


STEPS: dict[str, tuple[Desired, NodeView, dict[str, object], str, str, str]] = {
    "operator gone": (CUT, NODE, {"deployments": ()}, "placement", "broken", "the GPU Operator has no Deployment"),
    "policy gone": (CUT, NODE, {"cluster_policies": ()}, "placement", "broken", "no ClusterPolicy"),
    "operator does not run": (
        CUT,
        NODE,
        {"deployments": (operator_deployment(ready=0),)},
        "placement",
        "waiting",
        "is not running",
    ),
    "entry missing": (CUT, NODE, {"operator_config_map": {}}, "config-entry", "broken", "there is no entry"),
    "label of the other release": (
        CUT,
        labelled("gpukube.io/advertiser", "chart"),
        {},
        "advertiser-label",
        "broken",
        "is chart, not operator",
    ),
    "another cut asked for": (
        CUT,
        labelled("nvidia.com/mig.config", "all-disabled"),
        {},
        "geometry",
        "broken",
        "nvidia.com/mig.config is all-disabled, not all-1g.5gb",
    ),
    "no cut asked for": (
        CUT,
        without(NODE, "nvidia.com/mig.config"),
        {},
        "geometry",
        "broken",
        "nvidia.com/mig.config is absent, not all-1g.5gb",
    ),
    "not taken up yet": (
        CUT,
        without(NODE, PLUGIN_LABEL, STATE_LABEL),
        {"daemonsets": (), "pods": ()},
        "features",
        "waiting",
        f"no label {PLUGIN_LABEL}",
    ),
    "kept off by hand": (CUT, labelled("nvidia.com/gpu.deploy.operands", "false"), {}, "placement", "broken", "false"),
    "plugin kept off by hand": (CUT, labelled(PLUGIN_LABEL, "false"), {"pods": ()}, "placement", "broken", "false"),
    "plugin paused": (
        CUT,
        labelled(PLUGIN_LABEL, "paused-for-mig-change"),
        {"pods": ()},
        "geometry",
        "waiting",
        "paused-for-mig-change",
    ),
    "plugin starting": (CUT, without(NODE, STATE_LABEL), {"pods": ()}, "plugin-pod", "waiting", "no plugin pod"),
    "cut not begun": (
        CUT,
        replace(without(NODE, STATE_LABEL), allocatable=WHOLE),
        {},
        "features",
        "waiting",
        f"{STATE_LABEL} is absent",
    ),
    "cut pending": (CUT, labelled(STATE_LABEL, "pending"), {"pods": ()}, "geometry", "waiting", "is pending"),
    "cut rebooting": (CUT, labelled(STATE_LABEL, "rebooting"), {"pods": ()}, "geometry", "waiting", "is rebooting"),
    "cut failed": (CUT, labelled(STATE_LABEL, "failed"), {"pods": ()}, "geometry", "broken", "is failed"),
    "a state of a newer manager": (CUT, labelled(STATE_LABEL, "draining"), {}, "geometry", "waiting", "is draining"),
    "rebooting, away": (
        CUT,
        labelled(STATE_LABEL, "rebooting", conditions={"Ready": "Unknown"}),
        {"pods": ()},
        "ready",
        "waiting",
        "Unknown",
    ),
    "cut, the plugin has not read it": (
        CUT,
        replace(NODE, allocatable=WHOLE),
        {},
        "geometry",
        "waiting",
        "nvidia.com/gpu is 8, not 56",
    ),
    "a taint of its own": (
        CUT,
        replace(NODE, taints=(Taint("sku", "gpu", "NoSchedule"),)),
        {"pods": ()},
        "placement",
        "broken",
        "sku=gpu:NoSchedule",
    ),
    "nothing registered": (CUT, replace(NODE, allocatable={}), {}, "count", "waiting", "nvidia.com/gpu is 0"),
}


@pytest.mark.parametrize("case", STEPS)
def test_prove_when_a_step_of_the_operator_is_missing_then_it_is_named_with_a_fix(case: str) -> None:
    pool, node, changes, step, weight, seen = STEPS[case]
    proof = prove_pool(pool, operating([pool], node, **changes))
    found = proof.missing_step
    assert found is not None
    assert (step_of(found), WEIGHTS[found.severity], proof.status) == (step, weight, weight)
    assert seen in found.seen
    assert weight == "waiting" or found.fix


MEANS = {
    "pending": "stops GPU clients",
    "rebooting": "the node reboots",
    "failed": "still used a GPU",
}


@pytest.mark.parametrize("value", MEANS)
def test_prove_when_the_manager_reports_then_told_what_it_means(value: str) -> None:
    found = prove_pool(CUT, operating([CUT], labelled(STATE_LABEL, value))).missing_step
    assert found is not None
    assert MEANS[value] in found.why


def test_prove_when_the_cut_failed_then_the_log_and_how_to_cut_again() -> None:
    found = prove_pool(CUT, operating([CUT], labelled(STATE_LABEL, "failed"))).missing_step
    assert found is not None
    assert f"kubectl -n {NAMESPACE} logs daemonset/nvidia-mig-manager" in found.fix
    assert "nvidia.com/mig.config=all-1g.5gb" in found.fix


def test_prove_when_the_node_is_away_for_its_cut_then_said_so() -> None:
    node = labelled(STATE_LABEL, "rebooting", conditions={"Ready": "False"})
    found = prove_pool(CUT, operating([CUT], node)).missing_step
    assert found is not None
    assert found.why == "it reboots to apply MIG"


@pytest.mark.parametrize("name", ["config-manager-init", "config-manager"])
def test_prove_when_the_chooser_of_entries_crashes_then_the_entry_is_meant(name: str) -> None:
    container = state(name, init=name.endswith("init"), waiting="CrashLoopBackOff")
    pod = plugin_pod(owner=GPU_OPERATOR.plugin, ready=False, containers=(container,))
    found = prove_pool(CUT, operating([CUT], NODE, pods=(pod,))).missing_step
    assert found is not None
    assert "names an entry that the ConfigMap lacks" in found.why


def test_prove_when_a_pool_from_zero_has_no_node_then_empty_though_no_operand_is_there() -> None:
    pool = operated(sharing=SINGLE, nodes=FROM_ZERO)
    assert prove_pool(pool, operating([pool], daemonsets=())).status == "empty"
    idle = prove_pool(pool, operating([pool], deployments=(operator_deployment(ready=0),)))
    assert (idle.status, [WEIGHTS[found.severity] for found in idle.all_findings]) == ("empty", ["note"])
    assert prove_pool(pool, operating([pool], deployments=())).status == "broken"


# The cloud's own plugin

CLOUD_CUT = advertised_by_cloud(desire(sharing=SINGLE))
CLOUD_SHARED = advertised_by_cloud(desire(sharing=SLICED))
CLOUD: dict[str, tuple[Desired, dict[str, object], str, str, str]] = {
    "not ready": (CLOUD_CUT, {"conditions": {"Ready": "False"}}, "ready", "waiting", "boots"),
    "nothing registered": (CLOUD_CUT, {"allocatable": {}}, "count", "waiting", "the cloud's own plugin"),
    "not applied yet": (CLOUD_CUT, {"allocatable": WHOLE}, "geometry", "waiting", "not applied yet"),
    "cut another way": (
        CLOUD_CUT,
        {"allocatable": {"nvidia.com/gpu": "24"}},
        "geometry",
        "broken",
        "declared MIG layout",
    ),
    "not shared": (CLOUD_SHARED, {"allocatable": WHOLE}, "count", "broken", "time-slicing is not in effect"),
    "fewer": (CLOUD_SHARED, {"allocatable": {"nvidia.com/gpu": "7"}}, "count", "broken", "missing or unhealthy"),
}


@pytest.mark.parametrize("case", CLOUD)
def test_prove_when_the_cloud_advertises_then_its_steps_in_its_words(case: str) -> None:
    pool, changes, step, weight, means = CLOUD[case]
    proof = prove_pool(pool, Snapshot(nodes=(node_of(pool, "node-1", **changes),)))
    found = proof.missing_step
    assert found is not None
    assert (step_of(found), WEIGHTS[found.severity]) == (step, weight)
    assert means in found.why
    assert "gpukube-system" not in found.fix
    assert "config entry" not in found.fix


def test_prove_when_the_cloud_shows_what_is_promised_then_proven_without_any_label_of_ours() -> None:
    node = node_of(CLOUD_CUT, labels={key: value for key, value in CLOUD_CUT.labels.items() if "nvidia" not in key})
    proof = prove_pool(CLOUD_CUT, Snapshot(nodes=(node,)))
    assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": 56})


DRIVEN = replace(SHARED, ownership=replace(SHARED.ownership, driver="operator"))
DRIVER_POD = "nvidia-driver-daemonset"
DRIVERS = {
    "no pod yet": ((), "waiting", "no driver pod on this node"),
    "it builds": ((plugin_pod("node-1", owner=DRIVER_POD, ready=False),), "waiting", "is not ready"),
    "no image": (
        (plugin_pod("node-1", owner=DRIVER_POD, ready=False, containers=(state("ctr", waiting="ImagePullBackOff"),)),),
        "broken",
        "ImagePullBackOff",
    ),
}


@pytest.mark.parametrize("case", DRIVERS)
def test_prove_when_the_operator_s_driver_is_not_loaded_then_that_is_the_step(case: str) -> None:
    pods, weight, said = DRIVERS[case]
    seen = operating([DRIVEN], operated_node(DRIVEN))
    seen = replace(seen, pods=pods)
    (found,) = prove_pool(DRIVEN, seen).per_node[0].findings
    assert (step_of(found), WEIGHTS[found.severity]) == ("driver", weight)
    assert said in found.seen


def test_prove_when_the_operator_s_driver_is_loaded_then_the_next_step_counts() -> None:
    seen = operating([DRIVEN], replace(operated_node(DRIVEN), allocatable={"nvidia.com/gpu": "32"}))
    loaded = replace(seen, pods=(*seen.pods, plugin_pod("node-1", name="driver-1", owner=DRIVER_POD)))
    assert prove_pool(DRIVEN, loaded).status == "proven"
    assert prove_pool(SHARED, seen).status == "proven", "the driver of the image has no pod"
