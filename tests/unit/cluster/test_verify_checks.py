"""What of a node is compared, and with which outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.kube.views import NodeView, Placement, Toleration
from gpukube.cluster.proof.checks import node_checks
from gpukube.cluster.proof.outcome import Check, step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Desired, Taint
from gpukube.engine.documents.parts import WEIGHTS
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MPS,
    NAMESPACE,
    SINGLE,
    VISION_TAINT,
    advertised_by_cloud,
    daemonset,
    desire,
    installed,
    node_of,
    operated,
    operated_node,
    operating,
    plugin_pod,
)

POOL = desire(sharing=SINGLE, taints=(GPU_TAINT, VISION_TAINT))
WORKER = "gpukube-nvidia-device-plugin-node-feature-discovery-worker"


def failing(node: NodeView, pool: Desired = POOL, **changes: object) -> list[Check]:
    seen = installed([pool], node, **changes)
    return [check for check in node_checks(pool, node, seen) if not check.holds]


def test_checks_when_all_is_well_then_each_thing_was_compared() -> None:
    node = node_of(POOL)
    found = node_checks(POOL, node, installed([POOL], node))
    assert all(check.holds and check.expected == check.seen for check in found)
    assert [check.what for check in found] == [
        "condition Ready",
        "label gpukube.io/advertiser",
        "label nvidia.com/device-plugin.config",
        "label nvidia.com/gpu.present",
        "taint dedicated=vision:NoSchedule",
        "taint nvidia.com/gpu=present:NoSchedule",
        "plugin pod",
        "GPU feature discovery",
        "NFD worker",
    ]


CASES: dict[str, tuple[dict[str, object], str, str, str]] = {
    "not ready": ({"conditions": {"Ready": "False"}}, "condition Ready", "True", "False"),
    "no condition": ({"conditions": {}}, "condition Ready", "True", ""),
    "disk pressure": (
        {"conditions": {"Ready": "True", "DiskPressure": "True"}},
        "condition DiskPressure",
        "False",
        "True",
    ),
    "a plugin of the node's own is ill": (
        {"conditions": {"Ready": "True", "UnhealthyNvidiaDevicePlugin": "True"}},
        "condition UnhealthyNvidiaDevicePlugin",
        "False",
        "True",
    ),
    "a label is gone": (
        {"labels": {key: value for key, value in POOL.labels.items() if key != "nvidia.com/gpu.present"}},
        "label nvidia.com/gpu.present",
        "true",
        "",
    ),
    "a taint is gone": ({"taints": (GPU_TAINT,)}, "taint dedicated=vision:NoSchedule", "present", ""),
    "a soft taint is more": (
        {"taints": (GPU_TAINT, VISION_TAINT, Taint("soft", "", "PreferNoSchedule"))},
        "",
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_checks_when_a_node_differs_then_expected_and_seen_are_told(case: str) -> None:
    changes, what, expected, seen = CASES[case]
    found = failing(node_of(POOL, "node-1", **changes))
    assert found == ([Check(what, expected, seen, holds=False)] if what else [])


def test_checks_when_a_taint_is_more_then_told() -> None:
    found = failing(node_of(POOL, taints=(GPU_TAINT, VISION_TAINT, Taint("sku", "gpu", "NoSchedule"))))
    assert Check("taint sku=gpu:NoSchedule", "", "present", holds=False) in found
    assert {check.what for check in found} == {"taint sku=gpu:NoSchedule", "GPU feature discovery", "NFD worker"}


@pytest.mark.parametrize(
    ("pods", "seen"),
    [
        ((), ""),
        ((plugin_pod(ready=False, phase="Pending"),), "Pending"),
        ((plugin_pod(terminating=True),), ""),
        ((plugin_pod("other"),), ""),
    ],
    ids=["none", "pending", "going", "elsewhere"],
)
def test_checks_when_the_plugins_pod_does_not_serve_then_its_state(pods: object, seen: str) -> None:
    assert failing(node_of(POOL), pods=pods) == [Check("plugin pod", "ready", seen, holds=False)]


def test_checks_when_the_cloud_advertises_then_neither_pod_nor_parts() -> None:
    pool = advertised_by_cloud(desire())
    pool = replace(pool, ownership=replace(pool.ownership, labels={}))
    found = node_checks(pool, node_of(pool), Snapshot())
    assert [check.what for check in found] == ["condition Ready", f"taint {GPU_TAINT}"]


@pytest.mark.parametrize(("shown", "step"), [("0", "placement"), ("8", "")], ids=["nothing", "devices"])
def test_prove_when_a_label_keeps_the_clouds_plugin_away_then_broken_unless_devices_are_there(
    shown: str, step: str
) -> None:
    pool = advertised_by_cloud(desire())
    node = node_of(pool, allocatable={"nvidia.com/gpu": shown})
    plugin = daemonset(
        "nvidia-gpu-device-plugin-small-cos",
        pod_labels={"k8s-app": "nvidia-gpu-device-plugin"},
        placement=Placement({"cloud.google.com/gke-accelerator": "x"}, tolerations=(Toleration("", "Exists"),)),
    )
    proof = prove_pool(pool, Snapshot(nodes=(node,), daemonsets=(plugin,)))
    assert (step_of(proof.missing_step) if proof.missing_step else "") == step


def intolerant(pool: Desired, name: str) -> tuple[object, ...]:
    """Take all tolerations from one DaemonSet of the release."""
    seen = installed([pool]).daemonsets
    return tuple(replace(item, placement=Placement()) if item.name == name else item for item in seen)


def test_prove_when_a_taint_keeps_the_worker_away_then_a_note_for_the_chart() -> None:
    node = node_of(POOL)
    proof = prove_pool(POOL, installed([POOL], node, daemonsets=intolerant(POOL, WORKER)))
    (found,) = proof.all_findings
    assert (proof.status, step_of(found), WEIGHTS[found.severity]) == ("proven", "features", "note")
    assert found.seen.startswith("the NFD worker cannot run here: taint nvidia.com/gpu=present:NoSchedule")
    assert found.fix == "gpukube pool create"


@pytest.mark.parametrize("name", ["gpukube-nvidia-device-plugin", WORKER])
def test_prove_when_a_part_does_not_tolerate_taints_then_only_those_of_nobody_are_taken_off(name: str) -> None:
    own = replace(node_of(POOL), taints=(*POOL.effective_taints, Taint("sku", "gpu", "NoSchedule")))
    for node, fix in (
        (node_of(POOL), "gpukube pool create"),
        (own, f"kubectl taint node {own.name} sku=gpu:NoSchedule-"),
    ):
        found = prove_pool(POOL, installed([POOL], node, daemonsets=intolerant(POOL, name))).all_findings
        assert {item.fix for item in found if "cannot run here" in item.seen} == {fix}


def test_prove_when_a_taint_keeps_the_worker_away_then_broken_for_the_operator() -> None:
    pool = operated(taints=(GPU_TAINT,))
    node = replace(operated_node(pool), labels=pool.labels, allocatable={})
    worker = daemonset("gpukube-gpu-operator-node-feature-discovery-worker", NAMESPACE)
    seen = operating([pool], node)
    proof = prove_pool(pool, replace(seen, daemonsets=(*seen.daemonsets, worker)))
    assert proof.missing_step is not None
    assert (proof.status, step_of(proof.missing_step)) == ("broken", "features")
    assert "without it no device is advertised" in proof.missing_step.why
    tolerant = replace(worker, placement=Placement(tolerations=(Toleration("", "Exists"),)))
    waits = prove_pool(pool, replace(seen, daemonsets=(*seen.daemonsets, tolerant)))
    assert (waits.status, step_of(waits.missing_step) if waits.missing_step else "") == ("waiting", "features")


@pytest.mark.parametrize("part", ["mps-control-daemon", "gpu-feature-discovery"])
def test_prove_when_a_part_of_mps_has_no_daemonset_then_broken(part: str) -> None:
    pool = desire(sharing=MPS)
    node = node_of(pool, labels={**pool.labels, "nvidia.com/mps.capable": "true"})
    whole = installed([pool], node)
    assert prove_pool(pool, whole).status == "proven"
    fewer = tuple(item for item in whole.daemonsets if not item.name.endswith(part))
    proof = prove_pool(pool, replace(whole, daemonsets=fewer))
    assert proof.missing_step is not None
    assert (proof.status, step_of(proof.missing_step)) == ("broken", "features")
    assert proof.missing_step.seen.endswith(" has no DaemonSet")
    assert (
        prove_pool(desire(), replace(installed([desire()], node_of(desire())), daemonsets=fewer[:1])).status == "proven"
    )
