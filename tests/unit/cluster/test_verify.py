"""Promised devices against nodes: the missing step is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.views import ConditionView
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import nodes_of, prove_pool
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Nodes, Taint
from gpukube.engine.documents.parts import WEIGHTS
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.unit.cluster.builders import (
    FROM_ZERO,
    GPU_TAINT,
    MIXED,
    MPS,
    NAMESPACE,
    PLUGIN_NAME,
    SINGLE,
    SLICED,
    advertised_by_cloud,
    desire,
    entries_of,
    installed,
    node_of,
    plugin_daemonset,
    plugin_pod,
    state,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import ContainerState, NodeView
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

CUT = desire(sharing=SINGLE)
KEY = CUT.ownership.config_key


def prove(pool: Desired, *nodes: NodeView, **changes: object) -> Finding | None:
    """Prove a pool on nodes of a cluster whose release serves it, and give the finding told first."""
    return prove_pool(pool, installed([pool], *nodes, **changes)).missing_step


PROVEN = {
    "whole": (desire(), {"nvidia.com/gpu": 8}),
    "mig single": (CUT, {"nvidia.com/gpu": 56}),
    "mig mixed": (desire(sharing=MIXED), {"nvidia.com/mig-1g.5gb": 56}),
    "time-slicing": (desire(sharing=SLICED), {"nvidia.com/gpu": 32}),
    "renamed": (
        desire(sharing=Sharing(slicing=Slicing("time-slicing", 2, rename=True))),
        {"nvidia.com/gpu.shared": 16},
    ),
    "mig and time-slicing": (
        desire(sharing=Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2))),
        {"nvidia.com/gpu": 112},
    ),
}


@pytest.mark.parametrize("case", PROVEN)
def test_prove_when_the_node_shows_what_is_promised_then_proven_with_totals(case: str) -> None:
    pool, devices = PROVEN[case]
    proof = prove_pool(pool, installed([pool], node_of(pool)))
    assert (proof.status, proof.total, proof.missing_step) == ("proven", devices, None)
    assert proof.expected == {name: (count, count) for name, count in devices.items()}


def test_prove_when_there_are_two_nodes_then_summed() -> None:
    pool = desire(sharing=SINGLE, nodes=Nodes(2, 2, 2, autoscaled=False))
    proof = prove_pool(pool, installed([pool], node_of(pool, "a"), node_of(pool, "b")))
    assert (proof.status, proof.nodes_seen, proof.total) == ("proven", 2, {"nvidia.com/gpu": 112})
    assert [node.node for node in proof.per_node] == ["a", "b"]


def test_prove_when_other_pools_have_nodes_then_they_do_not_count() -> None:
    others = (node_of(desire(pool="other"), "x"), node_of(desire(owner="somebody"), "y"))
    assert nodes_of(CUT, others) == ()
    proof = prove_pool(CUT, installed([CUT], node_of(CUT), *others))
    assert (proof.nodes_seen, proof.total) == (1, {"nvidia.com/gpu": 56})


# Step by step


def without(node: NodeView, key: str) -> NodeView:
    return replace(node, labels={name: value for name, value in node.labels.items() if name != key})


def relabelled(node: NodeView, **labels: str) -> NodeView:
    return replace(node, labels={**node.labels, **{_KEYS.get(key, key): value for key, value in labels.items()}})


_KEYS = {
    "config": "nvidia.com/device-plugin.config",
    "advertiser": "gpukube.io/advertiser",
    "strategy": "nvidia.com/mig.strategy",
    "product": "nvidia.com/gpu.product",
}


def showing(pool: Desired, **devices: int) -> NodeView:
    names = {"gpu": "nvidia.com/gpu", "slices": "nvidia.com/mig-1g.5gb", "other": "nvidia.com/mig-2g.10gb"}
    return node_of(pool, allocatable={names[key]: str(count) for key, count in devices.items()})


NODE = node_of(CUT)
STEPS: dict[str, tuple[Desired, tuple[NodeView, ...], dict[str, object], str, str, str]] = {
    "no node yet": (CUT, (), {}, "node", "waiting", "0 of 1 nodes"),
    "node not ready": (CUT, (replace(NODE, conditions={"Ready": "False"}),), {}, "ready", "waiting", "is False"),
    "node without a network": (
        CUT,
        (
            replace(
                NODE,
                conditions={"Ready": "False"},
                condition_views={
                    "Ready": ConditionView("KubeletNotReady", "cni plugin not initialized", "2026-11-01T09:00:00Z")
                },
            ),
        ),
        {},
        "ready",
        "waiting",
        "is False since 2026-11-01T09:00:00Z (KubeletNotReady: cni plugin not initialized)",
    ),
    **{
        f"node with {name}": (
            CUT,
            (
                replace(
                    NODE,
                    conditions={"Ready": "True", name: "True"},
                    condition_views={name: ConditionView("Some", "words")},
                ),
            ),
            {},
            "ready",
            "waiting",
            f"it has {name} (Some: words)",
        )
        for name in ("DiskPressure", "NetworkUnavailable")
    },
    "node silent": (CUT, (replace(NODE, conditions={}),), {}, "ready", "waiting", "not reported"),
    "advertiser label missing": (
        CUT,
        (without(NODE, "gpukube.io/advertiser"),),
        {},
        "advertiser-label",
        "broken",
        "gpukube.io/advertiser is absent",
    ),
    "advertiser label of another": (
        CUT,
        (relabelled(NODE, advertiser="operator"),),
        {},
        "advertiser-label",
        "broken",
        "is operator, not chart",
    ),
    "config label missing": (
        CUT,
        (without(NODE, "nvidia.com/device-plugin.config"),),
        {},
        "config-label",
        "broken",
        "no label nvidia.com/device-plugin.config",
    ),
    "config label of no entry": (CUT, (relabelled(NODE, config="c-gone"),), {}, "config-label", "broken", "c-gone"),
    "entry missing": (CUT, (NODE,), {"config_map": {"c-other": ""}}, "config-entry", "broken", "only c-other"),
    "config map missing": (CUT, (NODE,), {"config_map": None}, "config-entry", "broken", f"no entry {KEY}"),
    "entry edited": (CUT, (NODE,), {"config_map": {KEY: "version: v1"}}, "config-entry", "broken", "differs from"),
    "release missing": (CUT, (NODE,), {"daemonsets": (), "pods": ()}, "placement", "broken", "no DaemonSet"),
    "taint of the node's own": (
        CUT,
        (replace(NODE, taints=(GPU_TAINT, Taint("sku", "gpu", "NoSchedule"))),),
        {"pods": ()},
        "placement",
        "broken",
        "taint sku=gpu:NoSchedule is not tolerated",
    ),
    "taint of a young node": (
        CUT,
        (replace(NODE, taints=(GPU_TAINT, Taint("node.kubernetes.io/not-ready", "", "NoSchedule"))),),
        {"pods": ()},
        "ready",
        "waiting",
        "still has node.kubernetes.io/not-ready=:NoSchedule",
    ),
    "taint of a young node and one of its own": (
        CUT,
        (
            replace(
                NODE,
                taints=(
                    Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"),
                    Taint("sku", "gpu", "NoSchedule"),
                ),
            ),
        ),
        {"pods": ()},
        "placement",
        "broken",
        "sku=gpu:NoSchedule",
    ),
    "affinity edited": (
        CUT,
        (NODE,),
        {"daemonsets": (plugin_daemonset({"affinity": {}, "nodeSelector": {"a": "b"}, "tolerations": []}),)},
        "placement",
        "broken",
        "nodeSelector needs a=b",
    ),
    "no pod yet": (CUT, (NODE,), {"pods": ()}, "plugin-pod", "waiting", "no plugin pod"),
    "pod of feature discovery only": (
        CUT,
        (NODE,),
        {"pods": (plugin_pod(owner=f"{PLUGIN_NAME}-gpu-feature-discovery"),)},
        "plugin-pod",
        "waiting",
        "no plugin pod",
    ),
    "only a pod on its way out": (
        CUT,
        (NODE,),
        {"pods": (plugin_pod(terminating=True),)},
        "plugin-pod",
        "waiting",
        "no plugin pod",
    ),
    "pod pending": (
        CUT,
        (NODE,),
        {"pods": (plugin_pod(scheduled=False, ready=False, phase="Pending", unschedulable="Too many pods"),)},
        "plugin-pod",
        "waiting",
        "Pending: Too many pods",
    ),
    "pod starting": (
        CUT,
        (NODE,),
        {"pods": (plugin_pod(ready=False, containers=(state(waiting="PodInitializing"),)),)},
        "plugin-pod",
        "waiting",
        "not ready: PodInitializing",
    ),
    "mps label missing": (
        desire(sharing=MPS),
        (node_of(desire(sharing=MPS)),),
        {},
        "features",
        "waiting",
        "nvidia.com/mps.capable is absent",
    ),
    "nothing registered": (CUT, (showing(CUT, gpu=0),), {}, "count", "waiting", "nvidia.com/gpu is 0, not 56"),
    "single, not cut yet": (
        CUT,
        (relabelled(showing(CUT, gpu=8), strategy="single"),),
        {},
        "geometry",
        "waiting",
        "nvidia.com/gpu is 8, not 56",
    ),
    "single, another entry in force": (CUT, (showing(CUT, gpu=8),), {}, "count", "broken", "is 8, not 56"),
    "single, shown as mixed": (
        CUT,
        (showing(CUT, gpu=0, slices=56),),
        {},
        "count",
        "broken",
        "nvidia.com/mig-1g.5gb is 56",
    ),
    "single, cut another way": (CUT, (showing(CUT, gpu=24),), {}, "geometry", "broken", "is 24, not 56"),
    "single, not cut alike": (
        CUT,
        (relabelled(showing(CUT, gpu=0), product="NVIDIA-A100-SXM4-40GB-MIG-INVALID"),),
        {},
        "geometry",
        "broken",
        "is 0, not 56",
    ),
    "mixed, shown as single": (
        desire(sharing=MIXED),
        (showing(desire(sharing=MIXED), gpu=56),),
        {},
        "count",
        "broken",
        "nvidia.com/gpu is 56",
    ),
    "mixed, not cut yet": (
        desire(sharing=MIXED),
        (relabelled(showing(desire(sharing=MIXED), gpu=8), strategy="mixed"),),
        {},
        "geometry",
        "waiting",
        "nvidia.com/gpu is 8",
    ),
    "mixed, whole GPUs by strategy none": (
        desire(sharing=MIXED),
        (showing(desire(sharing=MIXED), gpu=8),),
        {},
        "count",
        "broken",
        "mig-1g.5gb is 0, not 56; nvidia.com/gpu is 8",
    ),
    "mixed, another profile": (
        desire(sharing=MIXED),
        (showing(desire(sharing=MIXED), other=24),),
        {},
        "geometry",
        "broken",
        "mig-2g.10gb is 24",
    ),
    "not shared": (
        desire(sharing=SLICED),
        (showing(desire(sharing=SLICED), gpu=8),),
        {},
        "count",
        "broken",
        "is 8, not 32",
    ),
    "gpus missing": (desire(), (showing(desire(), gpu=7),), {}, "count", "broken", "is 7, not 8"),
    "more than promised": (desire(), (showing(desire(), gpu=80),), {}, "count", "broken", "is 80, not 8"),
    "a former name still counts": (CUT, (showing(CUT, gpu=56, slices=56),), {}, "stale-name", "broken", "mig-1g.5gb"),
}


@pytest.mark.parametrize("case", STEPS)
def test_prove_when_a_step_is_missing_then_it_is_named(case: str) -> None:
    pool, nodes, changes, step, weight, seen = STEPS[case]
    found = prove(pool, *nodes, **changes)
    assert found is not None
    assert (step_of(found), WEIGHTS[found.severity]) == (step, weight)
    assert seen in found.seen


@pytest.mark.parametrize("case", STEPS)
def test_prove_when_something_is_broken_then_not_proven_and_the_fix_is_told(case: str) -> None:
    pool, nodes, changes, _step, weight, _seen = STEPS[case]
    proof = prove_pool(pool, installed([pool], *nodes, **changes))
    assert proof.status == weight
    assert weight == "waiting" or all(found.fix for found in proof.all_findings if WEIGHTS[found.severity] == "broken")


CRASHED = "CrashLoopBackOff"
TROUBLE: dict[str, tuple[Desired, ContainerState, str]] = {
    "init crashes": (
        CUT,
        state("nvidia-device-plugin-init", init=True, waiting=CRASHED),
        "names an entry that the ConfigMap lacks",
    ),
    "sidecar crashes": (
        CUT,
        state("nvidia-device-plugin-sidecar", waiting=CRASHED),
        "names an entry that the ConfigMap lacks",
    ),
    "plugin crashes under single": (
        CUT,
        state(waiting=CRASHED),
        "all GPUs of the node need the same MIG layout",
    ),
    "plugin crashes": (desire(), state(waiting=CRASHED), "no NVIDIA driver"),
    "no image": (CUT, state(waiting="ImagePullBackOff"), "cannot pull the image"),
    "no config map": (CUT, state(waiting="CreateContainerConfigError"), "ConfigMap or a host path"),
}


@pytest.mark.parametrize("case", TROUBLE)
def test_prove_when_the_pod_is_in_trouble_then_what_it_usually_means(case: str) -> None:
    pool, container, means = TROUBLE[case]
    found = prove(pool, node_of(pool), pods=(plugin_pod(ready=False, containers=(container,)),))
    assert found is not None
    assert (step_of(found), WEIGHTS[found.severity]) == ("plugin-pod", "broken")
    assert means in found.why
    assert found.fix.startswith(("kubectl", "gpukube"))


def test_prove_when_a_crash_has_a_message_then_its_first_line_is_told() -> None:
    container = state(
        "nvidia-device-plugin-init", init=True, waiting=CRASHED, restarts=3, message="no config c-x\nmore"
    )
    found = prove(CUT, NODE, pods=(plugin_pod(ready=False, containers=(container,)),))
    assert found is not None
    assert found.seen.endswith("CrashLoopBackOff (3 restarts): no config c-x")


# Numbers of nodes


def test_prove_when_a_pool_from_zero_has_no_node_then_empty_and_the_cluster_is_ready() -> None:
    pool = desire(sharing=SINGLE, nodes=FROM_ZERO)
    proof = prove_pool(pool, installed([pool]))
    assert (proof.status, proof.nodes_seen, proof.total) == ("empty", 0, {"nvidia.com/gpu": 0})
    assert proof.expected == {"nvidia.com/gpu": (0, 280)}


def test_prove_when_a_pool_from_zero_lacks_its_entry_then_broken_although_no_node_shows_it() -> None:
    pool = desire(sharing=SINGLE, nodes=FROM_ZERO)
    other = installed([desire()])
    assert prove_pool(pool, other).status == "broken"


def test_prove_when_there_is_a_surge_node_then_a_note_only() -> None:
    proof = prove_pool(CUT, installed([CUT], node_of(CUT, "a"), node_of(CUT, "b")))
    assert proof.status == "proven"
    assert [WEIGHTS[found.severity] for found in proof.all_findings] == ["note"]


def test_prove_when_one_of_two_nodes_is_missing_then_waiting() -> None:
    pool = desire(sharing=SINGLE, nodes=Nodes(2, 2, 2, autoscaled=False))
    assert prove_pool(pool, installed([pool], node_of(pool))).status == "waiting"


# Other advertisers, other names


def test_prove_when_a_former_name_is_zero_then_a_note_only() -> None:
    node = node_of(CUT, allocatable={"nvidia.com/gpu": "56", "nvidia.com/mig-1g.5gb": "0"})
    proof = prove_pool(CUT, installed([CUT], node))
    assert (proof.status, proof.missing_step) == ("proven", None)
    assert [(step_of(found), WEIGHTS[found.severity]) for found in proof.all_findings] == [("stale-name", "note")]


def test_prove_when_the_node_has_other_nvidia_resources_then_no_matter() -> None:
    node = node_of(CUT, allocatable={"nvidia.com/gpu": "56", "nvidia.com/rdma_shared": "4"})
    assert prove_pool(CUT, installed([CUT], node)).status == "proven"


def test_prove_when_the_cloud_advertises_then_nothing_of_our_release_is_asked() -> None:
    pool = advertised_by_cloud(desire())
    bare = without(without(node_of(pool), "gpukube.io/advertiser"), "nvidia.com/device-plugin.config")
    assert prove_pool(pool, Snapshot(nodes=(bare,))).status == "proven"
    found = prove_pool(pool, Snapshot(nodes=(replace(bare, allocatable={}),))).missing_step
    assert found is not None
    assert "the cloud's own plugin has registered nothing" in found.why
    assert not found.fix


def test_missing_step_when_several_are_missing_then_broken_first_and_the_earliest() -> None:
    pool = desire(sharing=SINGLE, nodes=Nodes(3, 3, 3, autoscaled=False))
    unlabelled = without(node_of(pool, "b"), "gpukube.io/advertiser")
    found = prove(pool, node_of(pool, "a", allocatable={"nvidia.com/gpu": "24"}), unlabelled)
    assert found is not None
    assert (step_of(found), str(found.where)) == ("advertiser-label", "b")


def test_prove_when_entries_of_others_are_there_then_no_matter() -> None:
    seen = installed([CUT, desire(sharing=SLICED)], NODE)
    assert prove_pool(CUT, seen).status == "proven"
    assert len(entries_of(seen.history[0].values)) == 3
    assert seen.daemonsets[0].namespace == NAMESPACE
