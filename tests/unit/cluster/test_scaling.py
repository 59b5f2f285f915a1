"""Autoscaled pools in a cluster where nothing starts nodes: told by plan, proof and probe, once and with a command."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.kube.views import WorkloadView, workload_view
from gpukube.cluster.proof.probe import Attempt, judge_attempt
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.scaling import scaler_warnings
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Nodes
from gpukube.engine.change.proving import summarise
from tests.unit.doctor.live_pools import CLUSTERS, SCALER
from tests.unit.gpukube_eks.samples import desired_of, eks_target

FROM_ZERO = desired_of(eks_target("g4dn.xlarge", nodes=Nodes(0, 0, 5, autoscaled=True)))
FIXED = desired_of(eks_target("g4dn.xlarge", nodes=Nodes(1, 1, 1, autoscaled=False)))
ON_AKS = replace(FROM_ZERO, target=replace(FROM_ZERO.target, cluster=CLUSTERS["aks"]))


def deployment(name: str, image: str, *command: str, replicas: int = 1) -> WorkloadView:
    container = {"name": "main", "image": image, "command": list(command)}
    body = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }
    return workload_view(body, "Deployment")


@pytest.mark.parametrize(
    ("found", "warned"),
    [
        pytest.param(None, True, id="nothing"),
        pytest.param(SCALER, False, id="as its chart makes it"),
        pytest.param(deployment("ca", "mirror.example/ops/ca:1", "./cluster-autoscaler"), False, id="by its command"),
        pytest.param(deployment("ca", "mirror.example/cluster-autoscaler:v1.34.1"), False, id="by its image"),
        pytest.param(replace(SCALER, replicas=0), True, id="stopped"),
        pytest.param(deployment("karpenter", "public.ecr.aws/karpenter/controller:1.8.1"), True, id="Karpenter"),
        pytest.param(deployment("cluster-autoscaler-docs", "nginx:1"), True, id="something of that name"),
    ],
)
def test_scaler_when_a_deployment_is_there_or_not_then_a_warning_with_the_command(
    found: WorkloadView | None, *, warned: bool
) -> None:
    seen = Snapshot(deployments=(found,) if found else ())
    warnings = scaler_warnings(seen, [FIXED, FROM_ZERO])
    assert [(item.code, item.severity) for item in warnings] == [("nothing-scales", "warning")] * warned
    for item in warnings:
        assert "--set autoDiscovery.clusterName=train --set awsRegion=" in item.fix


def test_scaler_when_pools_are_of_a_fixed_size_or_the_cloud_scales_then_nothing_is_said() -> None:
    assert scaler_warnings(Snapshot(), [FIXED]) == []
    assert scaler_warnings(Snapshot(), []) == []
    assert scaler_warnings(Snapshot(), [ON_AKS]) == []


def test_proof_when_nothing_scales_then_the_cluster_is_not_called_ready() -> None:
    proof = replace(prove_pool(FROM_ZERO, Snapshot()), status="empty")
    assert "nothing in cluster" in summarise(proof)
    assert "ready for them" in summarise(
        replace(prove_pool(FROM_ZERO, Snapshot(deployments=(SCALER,))), status="empty")
    )
    assert {found.severity for found in proof.findings if found.code == "step-node"} == {"hint"}


@pytest.mark.parametrize(
    ("seen", "fix"),
    [
        (Snapshot(), "helm upgrade --install cluster-autoscaler"),
        (
            Snapshot(deployments=(SCALER,)),
            "kubectl get events --all-namespaces --field-selector reason=NotTriggerScaleUp",
        ),
    ],
)
def test_probe_when_no_node_came_then_not_the_nodes_are_to_be_looked_at(seen: Snapshot, fix: str) -> None:
    attempt = Attempt(pod="probe", phase="Pending", reason="Unschedulable")
    found = judge_attempt(FROM_ZERO, attempt, "default", prove_pool(FROM_ZERO, seen))
    assert fix in found.fix
    assert "kubectl describe nodes" not in found.fix
