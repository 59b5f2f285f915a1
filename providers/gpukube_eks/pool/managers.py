"""Recognizes other managers of a node group by its tags.

Karpenter's and EKS Auto Mode's nodes are in no node group; Terraform and Pulumi set no tag of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import texts
from gpukube.core.managers import CROSSPLANE, YOR, Sign, find_managers

if TYPE_CHECKING:
    from gpukube.core.managers import Manager
    from gpukube.core.values import Observed

SIGNS: Final = (
    Sign("eksctl", "alpha.eksctl.io/nodegroup-name", "eksctl-io/eksctl pkg/apis/eksctl.io/v1alpha5/defaults.go"),
    Sign(
        "CloudFormation",
        "aws:cloudformation:stack-name",
        "docs: AWSCloudFormation/TemplateReference/aws-properties-resource-tags",
    ),
    Sign("ACK", "services.k8s.aws/*", "aws-controllers-k8s/runtime pkg/config/config.go"),
    Sign(
        "Cluster API",
        "kubernetes.io/cluster/*",
        "kubernetes-sigs/cluster-api-provider-aws pkg/cloud/services/eks/nodegroup.go ngTags",
        value="owned",
    ),
    Sign(
        "Cluster API",
        "sigs.k8s.io/cluster-api-provider-aws/*",
        "kubernetes-sigs/cluster-api-provider-aws api/v1beta2/tags.go",
    ),
    Sign(
        "Terraform (EKS Blueprints)",
        "GithubRepo",
        "aws-ia/terraform-aws-eks-blueprints patterns/*/main.tf",
        value="github.com/aws-ia/*",
    ),
    CROSSPLANE,
    YOR,
)


def managers_of(observed: Observed) -> tuple[Manager, ...]:
    """Return the other managers of a live node group."""
    return find_managers("tag", texts(observed.native, "tags"), SIGNS)
