"""Live pools of the three clouds as the services answer them, healthy, for tests that make them ill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.kube.views import workload_view
from gpukube.core.values import ClusterFacts, ClusterRef
from gpukube.doctor.evidence import Evidence
from gpukube.provider import load_provider
from gpukube_aks.pool.observe import observe_pool as observe_aks
from gpukube_eks.pool.observe import observe_group as observe_eks
from gpukube_gke.pool.observe import observe_pool as observe_gke

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Observed

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
CLUSTERS = {
    "eks": ClusterRef("train-eks", "eks", "train", {"account": "111122223333", "region": "us-east-1"}),
    "aks": ClusterRef("train-aks", "aks", "train", {"subscription": SUBSCRIPTION, "resourceGroup": "ml"}),
    "gke": ClusterRef("train-gke", "gke", "train", {"project": "ml-prod", "location": "us-central1-a"}),
}
LABELS = {"gpukube.io/owner": "ml-platform", "gpukube.io/pool": "t4"}
Json = dict[str, object]


def eks_pool(data: Mapping[str, object] | None = None, **members: object) -> Observed:
    """Make a node group of one T4 machine; `members` are EKS's own, None takes one away."""
    group: Json = {
        "nodegroupName": "t4",
        "nodegroupArn": "arn:aws:eks:us-east-1:111122223333:nodegroup/train/t4/1",
        "status": "ACTIVE",
        "version": "1.34",
        "releaseVersion": "1.34.2-20260714",
        "amiType": "AL2023_x86_64_NVIDIA",
        "instanceTypes": ["g4dn.xlarge"],
        "capacityType": "ON_DEMAND",
        "diskSize": 100,
        "scalingConfig": {"minSize": 0, "maxSize": 3, "desiredSize": 0},
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"},
        "labels": {**LABELS, "k8s.amazonaws.com/accelerator": "nvidia-tesla-t4"},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        "health": {"issues": []},
        **members,
    }
    return observe_eks({key: value for key, value in group.items() if value is not None}, data or {}, {})


def aks_pool(**properties: object) -> Observed:
    """Make an agent pool of one T4 machine; `properties` are AKS's own, None takes one away."""
    live: Json = {
        "vmSize": "Standard_NC4as_T4_v3",
        "provisioningState": "Succeeded",
        "powerState": {"code": "Running"},
        "currentOrchestratorVersion": "1.34.2",
        "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202608.01.0",
        "osSKU": "Ubuntu",
        "mode": "User",
        "count": 0,
        "scaleDownMode": "Delete",
        "scaleSetPriority": "Regular",
        "gpuProfile": {"driver": "Install"},
        "nodeLabels": dict(LABELS),
        "nodeTaints": ["nvidia.com/gpu=present:NoSchedule"],
        **properties,
    }
    return observe_aks({"name": "t4", "properties": {key: value for key, value in live.items() if value is not None}})


def gke_pool(accelerator: Mapping[str, object] | None = None, **config: object) -> Observed:
    """Make a node pool of one T4 machine.

    Args:
        accelerator: Members of its accelerator, None takes one away; "pool" holds members of the pool itself.
        config: Members of NodeConfig, None takes one away.
    """
    changes = dict(accelerator or {})
    pool = changes.pop("pool", {})
    gpu: Json = {
        "acceleratorType": "nvidia-tesla-t4",
        "acceleratorCount": "1",
        "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
        **changes,
    }
    members: Json = {
        "machineType": "n1-standard-8",
        "accelerators": [{key: value for key, value in gpu.items() if value is not None}],
        "oauthScopes": ["https://www.googleapis.com/auth/devstorage.read_only"],
        "imageType": "COS_CONTAINERD",
        "labels": dict(LABELS),
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        **config,
    }
    native: Json = {
        "name": "t4",
        "status": "RUNNING",
        "version": "1.34.1-gke.1829001",
        "locations": ["us-central1-a"],
        "config": {key: value for key, value in members.items() if value is not None},
        **(pool if isinstance(pool, dict) else {}),
    }
    return observe_gke(native)


SCALER = workload_view(
    {
        "metadata": {"name": "autoscaler-aws-cluster-autoscaler", "namespace": "kube-system"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "aws-cluster-autoscaler",
                            "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.1",
                            "command": ["./cluster-autoscaler"],
                        }
                    ]
                }
            }
        },
    },
    "Deployment",
)
"""As its chart makes it (kubernetes/autoscaler charts/cluster-autoscaler)."""


def evidence_of(provider: str, *pools: Observed, scaled: bool = True, **changes: object) -> Evidence:
    """Make what was read of a cluster with these pools and an autoscaler; `changes` are fields of Evidence."""
    facts = ClusterFacts("here", "1.34.2", ready=True, status="fine")
    made = Evidence(CLUSTERS[provider], load_provider(provider), facts=facts, live=pools, version="1.34.2")
    made = replace(made, **changes)  # type: ignore[arg-type]  # test data
    deployments = (*made.seen.deployments, SCALER) if scaled else made.seen.deployments
    return replace(made, seen=replace(made.seen, deployments=deployments))
