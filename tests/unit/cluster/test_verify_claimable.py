"""Pools of NVIDIA's DRA driver: what its slices prove, and which step is missing if they do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cluster.names import DRA_DRIVER
from gpukube.cluster.proof.logs import Source, explain_by_log, log_sources
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import find_missing, prove_pool
from gpukube.cluster.state.published import published
from gpukube.engine.change.proving import summarise
from gpukube.engine.documents.parts import WEIGHTS
from tests.unit.cluster.builders import (
    FROM_ZERO,
    VISION_TAINT,
    claimed,
    daemonset,
    desire,
    installed,
    node_of,
    plugin_daemonset,
    state,
)
from tests.unit.cluster.claiming import (
    BAD,
    CUT,
    LAYOUT,
    claimed_node,
    claiming,
    cut_gpus,
    driver_pod,
    gpu,
    gpus,
    mig,
    slice_of,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.slices import DeviceView, SliceView
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.values import Desired

WHOLE = claimed()
MIG = claimed(cut_by="operator", sharing=CUT)
MIXED = claimed(cut_by="operator", sharing=LAYOUT)
NODE = claimed_node(WHOLE)
CUT_NODE = claimed_node(MIG)
INIT = driver_pod(
    ready=False, containers=(state("init-container", init=True), state("gpus", waiting="PodInitializing"))
)
H100 = gpu(7, attributes={**gpu(7).attributes, "gpu.nvidia.com/productName": "NVIDIA H100"})


def with_label(node: NodeView, key: str, value: str) -> NodeView:
    return replace(node, labels={**node.labels, key: value})


def unmade(device: DeviceView) -> DeviceView:
    """Make a device that the driver would make for a claim."""
    return replace(device, attributes={**device.attributes, "gpu.nvidia.com/uuid": ""})


PROVEN = {
    "whole": (WHOLE, gpus(), {"gpu.nvidia.com": 8}, "8 devices of gpu.nvidia.com verified on 1 node"),
    "one profile": (
        MIG,
        cut_gpus(),
        {"mig.nvidia.com/1g.5gb": 56},
        "56 devices of mig.nvidia.com/1g.5gb verified on 1 node",
    ),
    "layout": (
        MIXED,
        cut_gpus("3g.20gb", "2g.10gb", "2g.10gb"),
        {"mig.nvidia.com/2g.10gb": 16, "mig.nvidia.com/3g.20gb": 8},
        "16 devices of mig.nvidia.com/2g.10gb, 8 devices of mig.nvidia.com/3g.20gb verified on 1 node",
    ),
    "another board rounds the memory of a profile up": (
        MIG,
        cut_gpus(*["1g.6gb"] * 7),
        {"mig.nvidia.com/1g.5gb": 56},
        "56 devices of mig.nvidia.com/1g.5gb verified on 1 node",
    ),
}


@pytest.mark.parametrize("case", PROVEN)
def test_prove_when_the_slices_have_what_is_promised_then_proven(case: str) -> None:
    pool, devices, total, summary = PROVEN[case]
    proof = prove_pool(pool, claiming([pool], claimed_node(pool), slices=(slice_of(devices),)))
    assert (proof.status, proof.total, proof.all_findings) == ("proven", total, ())
    assert proof.per_node[0].seen == total
    assert summarise(proof) == summary


def test_prove_when_a_plugin_left_a_resource_of_zero_then_proven() -> None:
    node = replace(NODE, allocatable={"cpu": "96", "nvidia.com/gpu": "0"})
    assert prove_pool(WHOLE, claiming([WHOLE], node)).status == "proven"


def test_prove_when_there_is_no_node_then_only_release_and_classes_count() -> None:
    pool = claimed(nodes=FROM_ZERO)
    assert prove_pool(pool, claiming([pool])).status == "empty"


STEPS: dict[str, tuple[Desired, NodeView, dict[str, object], str, str, str]] = {
    "no daemonset": (WHOLE, NODE, {"daemonsets": ()}, "placement", "broken", "NVIDIA's DRA driver has no DaemonSet"),
    "no class": (WHOLE, NODE, {"device_classes": ()}, "device-class", "broken", "no DeviceClass gpu.nvidia.com"),
    "no class of mig": (
        MIG,
        CUT_NODE,
        {"device_classes": ("gpu.nvidia.com",), "slices": (slice_of(cut_gpus()),)},
        "device-class",
        "broken",
        "no DeviceClass mig.nvidia.com",
    ),
    "label lost": (
        WHOLE,
        with_label(NODE, "gpukube.io/advertiser", ""),
        {},
        "advertiser-label",
        "broken",
        "is absent, not dra",
    ),
    "label changed": (
        WHOLE,
        with_label(NODE, "gpukube.io/advertiser", "chart"),
        {},
        "advertiser",
        "broken",
        "is chart, not dra",
    ),
    "two advertisers": (
        WHOLE,
        replace(NODE, allocatable={"nvidia.com/gpu": "8"}),
        {},
        "advertiser",
        "broken",
        "nvidia.com/gpu: 8 is allocatable, and ResourceSlices of gpu.nvidia.com have gpu.nvidia.com: 8",
    ),
    "taint": (
        WHOLE,
        replace(NODE, taints=(VISION_TAINT,)),
        {},
        "placement",
        "broken",
        "taint dedicated=vision:NoSchedule is not",
    ),
    "operator gone": (
        MIG,
        CUT_NODE,
        {"deployments": (), "slices": (slice_of(cut_gpus()),)},
        "placement",
        "broken",
        "no Deployment",
    ),
    "mig not done": (
        MIG,
        with_label(CUT_NODE, "nvidia.com/mig.config.state", "pending"),
        {"pods": ()},
        "geometry",
        "waiting",
        "pending",
    ),
    "mig not begun": (
        MIG,
        with_label(CUT_NODE, "nvidia.com/mig.config.state", ""),
        {"pods": ()},
        "features",
        "waiting",
        "absent",
    ),
    "paused": (
        MIG,
        with_label(CUT_NODE, "nvidia.com/gpu.deploy.client", "paused-for-driver-upgrade"),
        {"pods": ()},
        "geometry",
        "waiting",
        "paused-for-driver-upgrade",
    ),
    "kept off by hand": (
        MIG,
        with_label(CUT_NODE, "nvidia.com/gpu.deploy.client", "false"),
        {"pods": ()},
        "placement",
        "broken",
        "is false",
    ),
    "no pod": (WHOLE, NODE, {"pods": ()}, "plugin-pod", "waiting", "no plugin pod on this node yet"),
    "waits for the driver": (
        WHOLE,
        NODE,
        {"pods": (INIT,)},
        "plugin-pod",
        "waiting",
        "waits in init container init-container for the NVIDIA driver",
    ),
    "crashes": (
        WHOLE,
        NODE,
        {"pods": (driver_pod(ready=False, containers=(state("gpus", waiting="CrashLoopBackOff"),)),)},
        "plugin-pod",
        "broken",
        "container gpus: CrashLoopBackOff",
    ),
    "no slice": (WHOLE, NODE, {"slices": ()}, "slices", "waiting", "no ResourceSlice of gpu.nvidia.com for this node"),
    "slice of another driver": (
        WHOLE,
        NODE,
        {"slices": (slice_of(gpus(), driver="dra.net"),)},
        "slices",
        "waiting",
        "no Resou",
    ),
    "slice of another node": (
        WHOLE,
        NODE,
        {"slices": (slice_of(gpus(), "node-2"),)},
        "slices",
        "waiting",
        "no ResourceSlice",
    ),
    "incomplete": (
        WHOLE,
        NODE,
        {"slices": (slice_of(gpus(), expected=2),)},
        "slices",
        "waiting",
        "1 of 2 ResourceSlices",
    ),
    "no devices": (WHOLE, NODE, {"slices": (slice_of(()),)}, "slices", "broken", "have no devices"),
    "only devices that would be made": (
        WHOLE,
        NODE,
        {"slices": (slice_of(map(unmade, cut_gpus())),)},
        "slices",
        "broken",
        "have no devices",
    ),
    "older driver": (
        WHOLE,
        with_label(NODE, "nvidia.com/cuda.driver-version.full", "590.10.1"),
        {},
        "slices",
        "broken",
        "driver 590.10.1 is",
    ),
    "tainted": (
        WHOLE,
        NODE,
        {"slices": (slice_of([*gpus(7), gpu(7, taints=(BAD,))]),)},
        "count",
        "broken",
        "gpu.nvidia.com is 7, not 8; gpu-7 has taint gpu.nvidia.com/xid=79:NoExecute",
    ),
    "fewer": (WHOLE, NODE, {"slices": (slice_of(gpus(7)),)}, "count", "broken", "gpu.nvidia.com is 7, not 8"),
    "more": (WHOLE, NODE, {"slices": (slice_of(gpus(16)),)}, "count", "broken", "gpu.nvidia.com is 16, not 8"),
    "mig on a pool of whole GPUs": (
        WHOLE,
        NODE,
        {"slices": (slice_of(cut_gpus()),)},
        "geometry",
        "broken",
        "mig.nvidia.com/1g.5gb is 56",
    ),
    "whole GPUs on a pool with mig": (MIG, CUT_NODE, {}, "geometry", "waiting", "gpu.nvidia.com is 8"),
    "another layout": (
        MIG,
        CUT_NODE,
        {"slices": (slice_of(cut_gpus("3g.20gb", "2g.10gb", "2g.10gb")),)},
        "geometry",
        "broken",
        "is 0, not 56",
    ),
    "the right sum of uneven GPUs": (
        MIXED,
        claimed_node(MIXED),
        {
            "slices": (
                slice_of(
                    [
                        *cut_gpus("3g.20gb", "2g.10gb", "2g.10gb", count=6),
                        mig(6, "3g.20gb", 0),
                        mig(6, "3g.20gb", 1),
                        *(mig(7, "2g.10gb", index) for index in range(3)),
                        mig(6, "2g.10gb", 4),
                    ]
                ),
            )
        },
        "geometry",
        "broken",
        "GPU-6 has mig.nvidia.com/2g.10gb: 1, mig.nvidia.com/3g.20gb: 2, not",
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_prove_when_a_step_is_missing_then_it_is_named_with_a_command(case: str) -> None:
    pool, node, changes, step, weight, words = STEPS[case]
    seen = claiming([pool], node, **changes)
    proof = prove_pool(pool, seen)
    first = proof.missing_step
    assert first is not None
    assert (step_of(first), WEIGHTS[first.severity]) == (step, weight)
    assert words in first.seen
    assert first.fix or weight == "waiting"
    assert first in find_missing(pool, seen)


def test_prove_when_a_device_has_a_taint_then_it_is_reported_apart() -> None:
    proof = prove_pool(WHOLE, claiming([WHOLE], NODE, slices=(slice_of([*gpus(7), gpu(7, taints=(BAD,))]),)))
    (node,) = proof.per_node
    assert node.seen == {"gpu.nvidia.com": 7}
    assert [(c.what, c.seen) for c in node.checks if not c.holds] == [
        ("device gpu-7", "taint gpu.nvidia.com/xid=79:NoExecute")
    ]


def test_prove_when_the_driver_is_gone_and_its_slices_remain_then_both_are_told() -> None:
    first = prove_pool(WHOLE, claiming([WHOLE], NODE, pods=())).missing_step
    assert first is not None
    assert first.seen == (
        "no plugin pod on this node yet; its ResourceSlices remain (gpu.nvidia.com: 8), and pods that get these "
        "devices do not start"
    )
    gone = prove_pool(WHOLE, claiming([WHOLE], NODE, pods=(), slices=())).missing_step
    assert gone is not None
    assert gone.seen == "no plugin pod on this node yet"


NOTES = {
    "product": ([*gpus(7), H100], "NVIDIA H100"),
    "memory": ([gpu(index, capacity={"gpu.nvidia.com/memory": "80Gi"}) for index in range(8)], "has 80 GiB"),
}


@pytest.mark.parametrize("case", NOTES)
def test_prove_when_the_driver_words_a_device_otherwise_then_it_is_only_a_note(case: str) -> None:
    devices, words = NOTES[case]
    proof = prove_pool(WHOLE, claiming([WHOLE], NODE, slices=(slice_of(devices),)))
    (note,) = proof.all_findings
    assert (proof.status, note.severity, words in note.seen) == ("proven", "hint", True)


def test_prove_when_slices_of_an_earlier_generation_remain_then_it_is_a_note() -> None:
    old = slice_of(gpus(3), name="old")
    proof = prove_pool(WHOLE, claiming([WHOLE], NODE, slices=(old, slice_of(gpus(), generation=2))))
    assert (proof.status, [found.seen for found in proof.all_findings]) == (
        "proven",
        ["1 ResourceSlices of gpu.nvidia.com are of an earlier generation"],
    )


def test_prove_when_the_dra_driver_serves_a_node_of_the_plugin_too_then_two_advertisers() -> None:
    pool = desire()
    theirs = daemonset("nvidia-dra-driver-gpu-kubelet-plugin", "nvidia")
    seen = installed([pool], node_of(pool), slices=(slice_of(gpus()),))
    seen = replace(seen, daemonsets=(*seen.daemonsets, replace(theirs, placement=plugin_daemonset({}).placement)))
    tolerant = replace(pool, effective_taints=())
    first = prove_pool(pool, replace(seen, nodes=(node_of(tolerant),))).missing_step
    assert first is not None
    assert (step_of(first), first.severity) == ("advertiser", "error")
    assert "resources.gpus.enabled=false" in first.fix


LOGS = {
    "wrong root": ("Check failed. (currently) NVIDIA_DRIVER_ROOT (currently set to '/run/nvidia/driver')", "driver"),
    "gates": ("feature gate validation failed: feature gate A is currently mutually exclusive with B", "plugin-pod"),
    "checkpoint": ("unable to get checkpoint: checkpoint is corrupted", "plugin-pod"),
    "mig without instances": ("Physical GPU gpu-0 has MIG mode enabled but no configured MIG devices", "geometry"),
}


@pytest.mark.parametrize("case", LOGS)
def test_explain_when_the_log_of_the_driver_says_why_then_its_words(case: str) -> None:
    line, step = LOGS[case]
    pod = driver_pod(ready=False, containers=(state("gpus", waiting="CrashLoopBackOff"),))
    proof = prove_pool(WHOLE, claiming([WHOLE], NODE, pods=(pod,)))
    (found,) = explain_by_log(proof, Source("node-1", "plugin-x7", "gpus"), [line, "exiting"]).per_node[0].findings
    assert (step_of(found), line in found.seen, bool(found.fix)) == (step, True, True)


def test_log_sources_when_the_pod_waits_or_publishes_nothing_then_its_container() -> None:
    for seen, container in (
        (claiming([WHOLE], NODE, pods=(INIT,)), "init-container"),
        (claiming([WHOLE], NODE, slices=(slice_of(()),)), DRA_DRIVER.container),
    ):
        assert log_sources(WHOLE, prove_pool(WHOLE, seen), seen) == (Source("node-1", "plugin-x7", container),)


DEVICES = st.lists(
    st.builds(
        lambda index, is_mig, taints: mig(index, "1g.5gb", 0, taints=taints) if is_mig else gpu(index, taints=taints),
        st.integers(0, 9),
        st.booleans(),
        st.sampled_from([(), (BAD,)]),
    ),
    max_size=6,
)
SLICES = st.lists(
    st.builds(
        slice_of,
        DEVICES,
        st.sampled_from(["node-1", "node-2"]),
        generation=st.integers(1, 3),
        expected=st.integers(1, 2),
    ),
    max_size=8,
)


@given(SLICES)
def test_only_complete_pools_of_the_highest_generation_count_and_no_tainted_device(slices: list[SliceView]) -> None:
    found = published(slices, {"node-1", "node-2"})
    for node in ("node-1", "node-2"):
        own = [item for item in slices if item.node == node]
        if not own:
            assert node not in found
            continue
        newest = [item for item in own if item.generation == max(other.generation for other in own)]
        complete = len(newest) == max(item.expected for item in newest)
        devices = [d for item in newest for d in item.devices if complete and not d.kept_off]
        assert sum(found[node].counts.values()) == len(devices)
        assert found[node].outdated == len(own) - len(newest)
        assert Counter(d.name for d in found[node].usable) == Counter(d.name for d in devices)
