"""Nodes with a fast network and huge pages: counted like GPUs, and a missing part is told as what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.slices import SliceView
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.engine.change.proving import _verify_pool, prove, summarise
from gpukube.errors import ClusterError
from tests.unit.cluster.builders import FROM_ZERO, installed, node_of
from tests.unit.cluster.fabrics import (
    EFA,
    GPU_TOLERATED,
    aws_dranet,
    efa_plugin,
    nccl_installer,
    on_aks,
    on_eks,
    on_gke,
    rdma_plugin,
)
from tests.unit.engine.stage import PACE, Stage

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired

EKS, AKS, GKE = on_eks(), on_aks(), on_gke()
PLUGIN, UNTOLERATED = efa_plugin(GPU_TOLERATED), efa_plugin()
TCPXO = nccl_installer("nccl-tcpxo-installer", "nvidia-h100-mega-80gb")
BORN = {
    "eks": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
    "aks": {
        "feature.node.kubernetes.io/pci-15b3.present": "true",
        "network.nvidia.com/operator.mofed.wait": "false",
    },
    "gke": {"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},
}
NETWORKS = {f"networking.gke.io.networks/gpu-nic-{number}": "1" for number in range(8)}
ADDRESSES = {f"{name}.IP": "1" for name in NETWORKS}
PAGES = {"2Mi": 5128}


def node(pool: Desired, name: str = "node-1", **allocatable: str) -> NodeView:
    made = node_of(pool, name)
    amounts = {key.replace("__", "/").replace("_", "-"): value for key, value in allocatable.items()}
    labels = {**made.labels, **BORN[pool.target.cluster.provider]}
    return replace(made, labels=labels, allocatable={**made.allocatable, **amounts})


def with_amounts(one: NodeView, amounts: dict[str, str]) -> NodeView:
    return replace(one, allocatable={**one.allocatable, **amounts})


def cluster(pool: Desired, *parts: WorkloadView, nodes: tuple[NodeView, ...], **changes: object) -> Snapshot:
    seen = installed([pool], *nodes)
    return replace(seen, daemonsets=(*seen.daemonsets, *parts), **changes)  # type: ignore[arg-type]  # test data


def proof_of(pool: Desired, *parts: WorkloadView, amounts: dict[str, str]) -> PoolProof:
    return prove_pool(pool, cluster(pool, *parts, nodes=(with_amounts(node(pool), amounts),)))


PROVEN = {
    "EFA": (EKS, PLUGIN, {EFA: "32"}, {EFA: 32}),
    "one resource per InfiniBand interface": (AKS, rdma_plugin(), {"rdma/ib": "8"}, {"rdma/ib": 8}),
    "slots of a shared plugin": (AKS, rdma_plugin(), {"rdma/shared_ib": "63"}, {"rdma/shared_ib": 63}),
    "GKE's networks, whose addresses do not count": (
        GKE, TCPXO, {**NETWORKS, **ADDRESSES}, {"networking.gke.io.networks/*": 8}
    ),
    "a plugin that nobody knows": (AKS, None, {"rdma/mlnx": "8"}, {"rdma/mlnx": 8}),
}  # fmt: skip


@pytest.mark.parametrize("case", PROVEN)
def test_prove_pool_when_nodes_have_the_fast_network_then_proven_and_counted(case: str) -> None:
    pool, part, amounts, counts = PROVEN[case]
    proof = proof_of(pool, *([part] if part else []), amounts=amounts)
    assert (proof.status, proof.all_findings) == ("proven", ())
    assert proof.total == {"nvidia.com/gpu": 8, **counts}
    assert proof.per_node[0].expected == proof.per_node[0].seen == proof.total


def test_prove_pool_when_nothing_provides_efa_then_gpus_are_proven_and_the_command_is_told() -> None:
    proof = prove_pool(EKS, cluster(EKS, nodes=(node(EKS, "node-1"), node(EKS, "node-2"))))
    assert proof.status == "no-fabric"
    first = proof.fabric_findings[0]
    assert (step_of(first), first.seen) == (
        "fabric", "EFA is not available to pods: the cluster has no EFA device plugin or aws-dranet"
    )  # fmt: skip
    assert first.fix.startswith("helm upgrade --install aws-efa-k8s-device-plugin")
    assert sum(finding.fix != "" for finding in proof.fabric_findings) == 1  # not once per node
    assert [finding.seen for finding in proof.fabric_findings[1:]] == ["vpc.amazonaws.com/efa is 0, not 32"] * 2
    assert proof.expected[EFA] == (32, 32)
    assert summarise(proof) == (
        "nvidia.com/gpu: 16 verified on 2 nodes; not ready: vpc.amazonaws.com/efa 0 of 64; EFA is not available to "
        "pods: the cluster has no EFA device plugin or aws-dranet"
    )


def test_prove_pool_when_the_plugin_does_not_tolerate_the_taint_then_that_is_the_reason() -> None:
    proof = proof_of(EKS, UNTOLERATED, amounts={})
    assert proof.status == "no-fabric"
    assert "taint nvidia.com/gpu=present:NoSchedule is not tolerated" in proof.fabric_findings[0].seen


def test_prove_pool_when_the_plugin_runs_and_some_devices_are_missing_then_it_waits() -> None:
    proof = proof_of(EKS, PLUGIN, amounts={EFA: "31"})
    assert proof.status == "waiting"
    assert proof.missing_step is not None
    assert (step_of(proof.missing_step), proof.missing_step.seen) == ("fabric", "vpc.amazonaws.com/efa is 31, not 32")


def test_prove_pool_when_names_are_the_clusters_and_too_few_then_all_are_named() -> None:
    proof = proof_of(AKS, rdma_plugin(), amounts={"rdma/ib": "7"})
    assert proof.missing_step is not None
    assert proof.missing_step.seen == "rdma/* is 7 (rdma/ib), not 8"
    assert proof.per_node[0].expected["rdma/*"] == 8


def test_prove_pool_when_dra_allocates_the_interfaces_then_slices_are_enough() -> None:
    seen = cluster(EKS, aws_dranet(), nodes=(node(EKS),), slices=(SliceView("s", "dra.net", "node-1", "node-1"),))
    assert prove_pool(EKS, seen).status == "proven"


def test_prove_pool_when_networks_are_there_and_the_installer_is_not_then_it_is_told() -> None:
    proof = proof_of(GKE, amounts=NETWORKS)
    assert proof.status == "no-fabric"
    assert "the cluster has no nccl-tcpxo-installer" in proof.fabric_findings[0].seen


def test_prove_pool_when_two_allocate_the_same_devices_then_broken() -> None:
    proof = proof_of(EKS, PLUGIN, aws_dranet(), amounts={EFA: "32"})
    assert proof.status == "broken"
    assert "both run on these nodes" in proof.all_findings[0].seen


def test_prove_pool_when_gpus_are_missing_too_then_only_they_are_an_error() -> None:
    one = with_amounts(node(EKS), {"nvidia.com/gpu": "7"})
    proof = prove_pool(EKS, cluster(EKS, nodes=(one,)))
    assert proof.status == "broken"
    assert [step_of(finding) for finding in proof.per_node[0].findings] == ["count"]


def test_prove_pool_when_the_plugin_of_gpus_is_others_then_the_network_counts_all_the_same() -> None:
    pool = replace(EKS, target=replace(EKS.target, plugin_owner="none"))
    assert proof_of(pool, amounts={}).status == "no-fabric"
    assert proof_of(pool, PLUGIN, amounts={EFA: "32"}).status == "unmanaged"


def test_prove_pool_when_an_empty_pool_would_have_no_network_then_it_is_told_before_any_node() -> None:
    pool = replace(on_eks(nodes=FROM_ZERO), fabric=EKS.fabric)
    proof = prove_pool(pool, cluster(pool, nodes=()))
    assert (proof.status, summarise(proof)) == (
        "no-fabric",
        "no nodes now; EFA is not available to pods: the cluster has no EFA device plugin or aws-dranet",
    )
    assert prove_pool(pool, cluster(pool, PLUGIN, nodes=())).status == "empty"


@pytest.mark.parametrize(("shown", "status"), [("10256Mi", "proven"), ("20Gi", "proven"), ("10254Mi", "broken")])
def test_prove_pool_when_huge_pages_are_declared_then_they_are_counted(shown: str, status: str) -> None:
    pool = on_eks(hugepages=PAGES)
    proof = proof_of(pool, PLUGIN, amounts={EFA: "32", "hugepages-2Mi": shown})
    assert proof.status == status
    (check,) = [check for check in proof.per_node[0].checks if check.what == "hugepages-2Mi"]
    assert (check.expected, check.holds) == ("10256Mi", status == "proven")
    if status == "broken":
        assert proof.all_findings[0].seen == "hugepages-2Mi is 10254Mi, not 10256Mi"


def test_prove_pool_when_the_image_lost_its_huge_pages_then_a_note() -> None:
    proof = proof_of(EKS, PLUGIN, amounts={EFA: "32", "hugepages-2Mi": "0"})
    assert proof.status == "proven"
    assert [(step_of(finding), finding.severity) for finding in proof.all_findings] == [("hugepages", "hint")]


def test_prove_when_only_the_network_is_missing_then_the_change_is_complete_at_once() -> None:
    stage = Stage([EKS], seen_at=lambda _: cluster(EKS, nodes=(node(EKS),)))
    proof = prove(EKS, stage.session, stage.run)
    assert (proof.status, stage.clock.now()) == ("no-fabric", 0)


def test_prove_when_the_plugin_runs_and_devices_stay_missing_then_an_error_at_the_limit() -> None:
    stage = Stage([EKS], seen_at=lambda _: cluster(EKS, PLUGIN, nodes=(node(EKS),)))
    with pytest.raises(ClusterError) as caught:
        prove(EKS, stage.session, stage.run)
    assert caught.value.diagnostics[0].code == "step-fabric"
    assert stage.clock.now() >= PACE.verify_s


def test_prove_pool_when_the_plugin_waits_for_the_driver_then_so_does_the_proof() -> None:
    booting = node_of(AKS, "node-1")  # neither node feature discovery nor the Network Operator has labeled it
    proof = prove_pool(AKS, cluster(AKS, rdma_plugin(), nodes=(booting,)))
    assert proof.status == "waiting"
    assert proof.missing_step is not None
    assert "network.nvidia.com/operator.mofed.wait=false, the node has no such label" in proof.missing_step.why
    assert "driver of the Network Operator" in proof.missing_step.why
    assert prove_pool(AKS, cluster(AKS, nodes=(booting,))).status == "no-fabric"


def test_prove_pool_when_dranet_allocates_infiniband_then_slices_are_enough() -> None:
    seen = cluster(AKS, nodes=(node(AKS),), slices=(SliceView("s", "dra.net", "node-1", "node-1"),))
    assert prove_pool(AKS, seen).status == "proven"


def test_verify_when_only_the_network_is_missing_then_it_fails_with_the_command_at_the_end_of_its_time() -> None:
    stage = Stage([EKS], seen_at=lambda _: cluster(EKS, nodes=(node(EKS),)))
    report = _verify_pool(EKS, stage.session, stage.run, None)
    assert (report.outcome, report.message) == ("failed", "differs")
    assert report.error is not None
    first = report.error.diagnostics[0]
    assert (first.code, first.severity) == ("step-fabric", "error")
    assert first.fix.startswith("helm upgrade --install aws-efa-k8s-device-plugin")
    assert stage.clock.now() >= PACE.timeout_s  # somebody may install it meanwhile


def test_verify_when_the_plugin_is_installed_meanwhile_then_it_succeeds() -> None:
    late = cluster(EKS, PLUGIN, nodes=(with_amounts(node(EKS), {EFA: "32"}),))
    stage = Stage([EKS], seen_at=lambda now: cluster(EKS, nodes=(node(EKS),)) if now < 60 else late)
    report = _verify_pool(EKS, stage.session, stage.run, None)
    assert (report.outcome, report.proof.status if report.proof else "") == ("unchanged", "proven")
