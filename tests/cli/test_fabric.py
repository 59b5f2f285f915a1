"""A pool with a fast network that nobody has set up in the cluster: each command tells, and what it tells helps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pytest
from lightkube.codecs import load_all_yaml
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import ConfigMap

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.engine import HelmJob
from gpukube_sandbox import daemon
from sandbox_tests.kube.test_fabric import SRIOV_IMAGE, configured, daemonset
from sandbox_tests.waiting import wait_for
from tests.cli.test_same_pod import CONTEXTS, cluster_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Cluster, Gpukube

SPEC = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters:
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
pools:
  - name: h100
    clusters: [train-aks]
    instanceType: Standard_ND96isr_H100_v5
    network: {highSpeed: true}
    nodes: {count: 1}
"""
MISSING = (
    "InfiniBand is not available to pods: the cluster has no RDMA device plugin of NVIDIA's Network Operator or DRANET"
)
COMMAND = "helm upgrade --install network-operator network-operator --repo https://helm.ngc.nvidia.com/nvidia"
ADAPTERS = [{"vendors": ["15b3"], "isRdma": True}]
RESOURCES = {"resourceList": [{"resourceName": "ib", "resourcePrefix": "rdma", "selectors": ADAPTERS}]}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    return path


def install(cluster: Cluster, *, tolerant: bool) -> None:
    """Install the SR-IOV plugin, as the Network Operator does for its policy."""
    made, config = configured(SRIOV_IMAGE, "/etc/pcidp", RESOURCES)
    made["spec"]["template"]["spec"]["tolerations"] = [TOLERATION] if tolerant else []
    for body in (config, made):
        body["metadata"]["namespace"] = "default"
    operator = "network-operator"
    cluster.client.apply(cast("ConfigMap", ConfigMap.from_dict(config)), field_manager=operator, force=True)
    cluster.client.apply(cast("DaemonSet", DaemonSet.from_dict(made)), field_manager=operator, force=True)


def test_create_when_nothing_provides_the_network_then_done_with_a_note_and_verify_fails(
    gpukube: Gpukube, cluster: Cluster, spec: Path
) -> None:
    planned = gpukube("pool", "plan", "-f", spec)
    assert "warning[fabric-missing]: nothing makes InfiniBand available to pods on these nodes" in planned.out
    made = gpukube("pool", "create", "-f", spec, "-o", "json")
    (pool,) = made.pools()
    assert (made.code, pool["outcome"], pool["proof"]["status"]) == (0, "done", "no-fabric")
    assert pool["proof"]["summary"].endswith(f"not ready: rdma/* 0 of 8; {MISSING}")
    seen = gpukube("pool", "verify", "-f", spec)
    assert seen.code == 1
    assert f"error[step-fabric]: {MISSING}" in seen.out + seen.err
    assert (seen.out + seen.err).count(COMMAND) == 1
    install(cluster, tolerant=False)
    stuck = gpukube("doctor", "-f", spec)
    assert "warning[fabric-missing]" in stuck.out
    assert "taint nvidia.com/gpu=present:NoSchedule is not tolerated" in stuck.out


def test_verify_when_the_plugin_is_installed_then_the_network_counts_and_a_probe_uses_it(
    gpukube: Gpukube, cluster: Cluster, spec: Path
) -> None:
    gpukube.made("-f", spec)
    install(cluster, tolerant=True)
    wait_for(lambda: gpukube("pool", "verify", "-f", spec).code == 0, every_s=1.0)
    daemon.configure(gpukube.info, speed=20.0)
    seen = gpukube("pool", "verify", "--probe", "-f", spec)
    assert seen.code == 0, seen.out
    assert "nvidia.com/gpu: 8, rdma/ib: 8 verified on 1 node" in seen.out
    assert "and with one rdma/ib uverbs0" in seen.out
    assert "| /dev/infiniband: rdma_cm uverbs0" in seen.out


def test_verify_when_dranet_runs_there_then_its_slices_count_as_the_network(
    gpukube: Gpukube, cluster: Cluster, spec: Path
) -> None:
    gpukube.made("-f", spec)
    made = daemonset("dranet", "registry.k8s.io/networking/dranet:stable", tolerations=[TOLERATION])
    for metadata in (made["metadata"], made["spec"]["template"]["metadata"]):
        metadata["labels"] = {**metadata.get("labels", {}), "app": "dranet"}
    made["metadata"]["namespace"] = "kube-system"
    cluster.client.create(cast("DaemonSet", DaemonSet.from_dict(made)))
    wait_for(lambda: gpukube("pool", "verify", "-f", spec).code == 0, every_s=1.0)


EFA = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
pools:
  - name: h100
    clusters: [train-eks]
    instanceType: p5.48xlarge
    zones: [us-east-1a]
    network: {highSpeed: true}
    nodes: {count: 1}
"""


def test_verify_when_the_chart_of_efa_tolerates_the_taint_then_all_interfaces_count(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = tmp_path / "pools.yaml"
    spec.write_text(EFA)
    gpukube.made("-f", spec)
    assert "vpc.amazonaws.com/efa" in gpukube("pool", "verify", "-f", spec).out
    helm, name = HelmSdk(os.environ), "aws-efa-k8s-device-plugin"
    chart = helm.pull(ChartSource(gpukube.info.charts_url, "v0.5.30", name), tmp_path)
    values = {"tolerations": [TOLERATION]}
    job = HelmJob(
        tmp_path / "no-kubeconfig", name, "kube-system", chart, values, installed=False, dry_run=True, offline=True
    )
    with cluster_of(gpukube.info, CONTEXTS["train-eks"]) as client:
        for part in load_all_yaml(helm.upgrade(job).manifest):
            client.create(part)
    wait_for(lambda: gpukube("pool", "verify", "-f", spec).code == 0, every_s=1.0)
    assert (
        "nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 32 verified on 1 node" in gpukube("pool", "verify", "-f", spec).out
    )
