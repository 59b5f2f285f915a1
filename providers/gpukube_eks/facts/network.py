"""EFA as pods use it: the resource, the DaemonSets that provide it, and what nodes with it have. Data and one function.

Sources: aws/eks-charts stable/aws-efa-k8s-device-plugin and stable/aws-dranet (labels, values, tolerations); docs:
eks/node-efa and eks/device-management-efa; awslabs/awsome-distributed-training (what jobs request).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.core.fabric import Fabric, FabricPart
from gpukube.core.jsontree import text
from gpukube_eks.facts.fabric import efa_cards

if TYPE_CHECKING:
    from gpukube.core.values import Target

RESOURCE: Final = "vpc.amazonaws.com/efa"
_INSTALL: Final = (
    "helm upgrade --install {release} CHART --repo https://aws.github.io/eks-charts --version VERSION "
    "--namespace {namespace} --reset-then-reuse-values --set-json 'tolerations={tolerations}'"
)
EFA_PLUGIN: Final = FabricPart(
    title="the EFA device plugin",
    images=("aws-efa-k8s-device-plugin",),
    install=_INSTALL.replace("CHART", "aws-efa-k8s-device-plugin").replace("VERSION", "v0.5.30"),
    release="aws-efa-k8s-device-plugin",
    namespace="kube-system",
    advertises=True,
)
AWS_DRANET: Final = FabricPart(
    title="aws-dranet",
    apps=("aws-dranet",),
    install=_INSTALL.replace("CHART", "aws-dranet").replace("VERSION", "1.0.0"),
    release="aws-dranet",
    namespace="kube-system",
    driver="dra.net",
)
PARTS: Final = (EFA_PLUGIN, AWS_DRANET)
_TAG: Final = "k8s.io/cluster-autoscaler/node-template/resources/"
"""Tag of a node group by which the Cluster Autoscaler knows a resource of its nodes (aws_manager.go)."""
_HUGEPAGES: Final = 5128 * (2 << 20)
"""Bytes that the EFA software of the images reserves: 5,128 pages of 2 MiB, for the buffers of its endpoints
(bottlerocket-os/bottlerocket-core-kit#141; awslabs/amazon-eks-ami#2367, an image that lost them)."""


def fabric_of(target: Target) -> Fabric | None:
    """Return the fast network of a pool's nodes; None if it has none."""
    interfaces = len(efa_cards(target.machine))
    if not target.high_speed or not interfaces:
        return None
    pages = {} if text(target.native, "imageId") else {"hugepages-2Mi": _HUGEPAGES}  # what else an image has is unknown
    tags = {f"{_TAG}{name}": str(count) for name, count in {RESOURCE: interfaces, **pages}.items()}
    return Fabric(
        title="EFA",
        resource=RESOURCE,
        count=interfaces,
        request=RESOURCE,
        names={RESOURCE: interfaces},
        parts=(PARTS,),
        short="the node group's launch template has fewer EFA interfaces, or the plugin cannot read them",
        hugepages=pages,
        from_zero=f"write tags: {json.dumps(tags)}",
    )
