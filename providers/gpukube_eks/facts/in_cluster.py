"""Components that EKS installs in clusters, for code that reads nodes and DaemonSets. Data only.

Sources: docs: eks/managed-node-groups, eks/autoscaling; kubernetes/autoscaler charts/cluster-autoscaler/README.md;
bottlerocket-os/bottlerocket#4309 (the plugin of its NVIDIA variants).
"""

from __future__ import annotations

from typing import Final

from gpukube.core.in_cluster import InClusterFacts, KubeSubject, NodePlugin, Scaler
from gpukube_eks.facts.network import PARTS

_ENTRY: Final = (
    "aws eks create-access-entry --cluster-name {name} --region {region} --principal-arn IDENTITY "
    "--kubernetes-groups gpukube-{level}"
)
IN_CLUSTER: Final = InClusterFacts(
    fabric_parts=PARTS,
    pool_label="eks.amazonaws.com/nodegroup",
    label_domains=("eks.amazonaws.com/", "alpha.eksctl.io/"),
    node_plugins=(
        NodePlugin(
            kind="bottlerocket",
            title="the built-in plugin of Bottlerocket",
            os_image="Bottlerocket",
            keep="let Bottlerocket advertise: write devicePlugin.owner: cloud",
            remove="create a new pool with another node image",
        ),
    ),
    scaler=Scaler(
        program="cluster-autoscaler",
        why="neither EKS itself nor Karpenter scales node groups: from zero nodes, the first pod stays Pending",
        advice="install the Cluster Autoscaler with the IAM role from docs/eks.md",
        install="helm upgrade --install cluster-autoscaler cluster-autoscaler --repo "
        "https://kubernetes.github.io/autoscaler --namespace kube-system --set autoDiscovery.clusterName={name} "
        "--set awsRegion={region} --set rbac.serviceAccount.name=cluster-autoscaler",
    ),
    subject=KubeSubject(
        kind="Group",
        name="gpukube-{level}",
        note="IDENTITY is the ARN of the role or user; if access entries are off, map it to the group in aws-auth",
        commands=(_ENTRY,),
    ),
)
