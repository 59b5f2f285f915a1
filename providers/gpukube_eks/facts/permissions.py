"""The IAM permissions that calls of the live half need.

Lives here: the table. Must not live here: which of them a spec needs and on which resources (`rules.permissions`).

Names, resources and condition keys are those of the Service Authorization Reference (the pages of Amazon EKS, Amazon
EC2, IAM, Systems Manager, Service Quotas and AWS Price List); a further source says what the reference does not.
"""

from __future__ import annotations

from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_EKS: Final = "docs: service-authorization/list_amazonelastickubernetesservice"
_EC2: Final = "docs: service-authorization/list_amazonec2"
_IAM: Final = "docs: service-authorization/list_awsidentityandaccessmanagementiam"
_TEMPLATES: Final = "docs: eks/launch-templates, tagging Amazon EC2 instances"

RESERVED: Final = "for reserved capacity"
OPEN_ROLE: Final = "for pools without eks.nodeRole"
TAGGED: Final = "for pools with tags"

WITHOUT_CALLS: Final = ("GetCallerIdentity",)
"""Operations that need no permission (docs: STS API reference, GetCallerIdentity)."""

PERMISSIONS: Final = (  # a scope is one or several of rules.permissions, separated by blanks
    Permission(
        name="eks:DescribeCluster",
        calls=("DescribeCluster",),
        purpose="to find the cluster, its version and the address of its Kubernetes API",
        source=_EKS,
        scope="cluster",
    ),
    Permission(
        name="eks:ListNodegroups",
        calls=("ListNodegroups",),
        purpose="to find the cluster's node groups",
        source=_EKS,
        scope="cluster",
    ),
    Permission(
        name="eks:DescribeNodegroup",
        calls=("DescribeNodegroup",),
        purpose="to compare node groups with the spec, and to wait for them",
        source=_EKS,
        scope="nodegroup",
    ),
    Permission(
        name="ec2:DescribeLaunchTemplates",
        calls=("DescribeLaunchTemplates",),
        purpose="to find gpukube's launch templates",
        source=_EC2,
        scope="region",
    ),
    Permission(
        name="ec2:DescribeLaunchTemplateVersions",
        calls=("DescribeLaunchTemplateVersions",),
        purpose="to compare disks and node settings with the spec",
        source=_EC2,
        scope="region",
    ),
    Permission(
        name="ec2:DescribeSubnets",
        calls=("DescribeSubnets", "CreateNodegroup"),
        purpose="to learn the zones of subnets, and their free addresses",
        source=f"{_EC2}; aws-controllers-k8s/community#2164 (EKS looks in its caller's name)",
        scope="region",
    ),
    Permission(
        name="ec2:DescribeInstanceTypeOfferings",
        calls=("DescribeInstanceTypeOfferings",),
        purpose="to choose subnets in zones that offer the instance type",
        source=_EC2,
        scope="region",
    ),
    Permission(
        name="ec2:DescribeCapacityReservations",
        calls=("DescribeCapacityReservations",),
        purpose="to check the capacity reservation before instances are requested from it",
        source=_EC2,
        when=RESERVED,
        without="EKS refuses an unusable reservation minutes later",
        scope="region",
    ),
    Permission(
        name="iam:ListRoles",
        calls=("ListRoles",),
        purpose="to find the nodes' role by its documented names, where no node group of the cluster has one",
        source=_IAM,
        when=OPEN_ROLE,
        without="write eks.nodeRole",
        scope="any",
    ),
    Permission(
        name="servicequotas:GetServiceQuota",
        calls=("GetServiceQuota",),
        purpose="to compare the account's quotas with what the plan needs",
        source="docs: service-authorization/list_servicequotas",
        without="these quotas are not checked",
        scope="quota",
    ),
    Permission(
        name="servicequotas:GetAWSDefaultServiceQuota",
        calls=("GetAWSDefaultServiceQuota",),
        purpose="to read quotas that were never raised in the account",
        source="docs: service-authorization/list_servicequotas",
        without="these quotas are not checked",
        scope="region",
    ),
    Permission(
        name="ec2:DescribeInstances",
        calls=("DescribeInstances",),
        purpose="to count the vCPUs that running instances use of a quota",
        source=_EC2,
        without="these quotas are not checked",
        scope="region",
    ),
    Permission(
        name="ssm:GetParameter",
        calls=("GetParameter",),
        purpose="to read the newest AMI release from AWS's public parameters",
        source="docs: service-authorization/list_awssystemsmanager",
        when=EXTRAS["upgrade"],
        without="only the Kubernetes version is followed",
        scope="parameter",
    ),
    Permission(
        name="pricing:GetProducts",
        calls=("GetProducts",),
        purpose="to read on-demand prices",
        source="docs: service-authorization/list_awspricelist",
        when=EXTRAS["live-prices"],
        without="the plan shows the catalog's prices",
        scope="any",
    ),
    Permission(
        name="ec2:DescribeSpotPriceHistory",
        calls=("DescribeSpotPriceHistory",),
        purpose="to read spot prices",
        source=_EC2,
        when=EXTRAS["live-prices"],
        without="the plan shows the catalog's prices",
        scope="region",
    ),
    Permission(
        name="ec2:DescribeInstanceTypes",
        calls=("DescribeInstanceTypes",),
        purpose="to refresh the catalog of instance types",
        source=_EC2,
        when=EXTRAS["catalog"],
        scope="region",
    ),
    Permission(
        name="pricing:GetProducts",
        calls=("GetProducts",),
        purpose="to refresh the catalog's on-demand prices",
        source="docs: service-authorization/list_awspricelist",
        when=EXTRAS["catalog"],
        without="the catalog keeps its prices",
        scope="any",
    ),
    Permission(
        name="ec2:DescribeSpotPriceHistory",
        calls=("DescribeSpotPriceHistory",),
        purpose="to refresh the catalog's spot prices",
        source=_EC2,
        when=EXTRAS["catalog"],
        without="the catalog keeps its prices",
        scope="region",
    ),
    Permission(
        name="eks:CreateNodegroup",
        calls=("CreateNodegroup",),
        purpose="to create node groups",
        source=_EKS,
        level="apply",
        scope="cluster",
    ),
    Permission(
        name="eks:TagResource",
        calls=("CreateNodegroup", "TagResource"),
        purpose="to create node groups with tags, which hold a copy of gpukube's labels, and to change these tags",
        source=f"{_EKS}; aws/karpenter-provider-aws#4434",
        level="apply",
        without="the copy is left out: labels that are lost stay lost",
        scope="nodegroup new-nodegroup",
    ),
    Permission(
        name="eks:UntagResource",
        calls=("UntagResource",),
        purpose="to remove tags that left the spec, and the copy of gpukube's labels",
        source=_EKS,
        level="apply",
        scope="nodegroup",
    ),
    Permission(
        name="eks:UpdateNodegroupConfig",
        calls=("UpdateNodegroupConfig",),
        purpose="to change sizes, labels, taints and update settings",
        source=_EKS,
        level="apply",
        scope="nodegroup",
    ),
    Permission(
        name="eks:UpdateNodegroupVersion",
        calls=("UpdateNodegroupVersion",),
        purpose="to change the Kubernetes version, the AMI release or the launch template's version",
        source=_EKS,
        level="apply",
        scope="nodegroup",
    ),
    Permission(
        name="eks:DescribeUpdate",
        calls=("DescribeUpdate",),
        purpose="to wait for changes, and to see why one failed",
        source=_EKS,
        level="apply",
        scope="cluster nodegroup",
    ),
    Permission(
        name="eks:DeleteNodegroup",
        calls=("DeleteNodegroup",),
        purpose="to delete node groups: pool delete, --replace, --prune",
        source=_EKS,
        level="apply",
        scope="nodegroup",
    ),
    Permission(
        name="ec2:CreateLaunchTemplate",
        calls=("CreateLaunchTemplate",),
        purpose="to create the launch template of a node group",
        source=_EC2,
        level="apply",
        scope="new-template",
    ),
    Permission(
        name="ec2:CreateTags",
        calls=("CreateLaunchTemplate",),
        purpose="to create launch templates with gpukube's tags, by which they are found again",
        source=f"{_EC2}, dependent actions of CreateLaunchTemplate",
        level="apply",
        scope="template-tags",
    ),
    Permission(
        name="ec2:CreateTags",
        calls=("CreateNodegroup", "UpdateNodegroupVersion"),
        purpose="so that EKS starts instances and disks with the pool's tags",
        source=_TEMPLATES,
        level="apply",
        when=TAGGED,
        scope="machine-tags",
    ),
    Permission(
        name="ec2:CreateLaunchTemplateVersion",
        calls=("CreateLaunchTemplateVersion",),
        purpose="to change disks and node settings",
        source=_EC2,
        level="apply",
        scope="template",
    ),
    Permission(
        name="ec2:DeleteLaunchTemplate",
        calls=("DeleteLaunchTemplate",),
        purpose="to delete the launch template of a node group that is gone",
        source=_EC2,
        level="apply",
        scope="own-template",
    ),
    Permission(
        name="ec2:DeleteTags",
        calls=("DeleteTags",),
        purpose="to remove gpukube's tags from the launch template of a released pool",
        source=_EC2,
        level="apply",
        without="the launch template keeps the tags, with a warning",
        scope="own-template",
    ),
    Permission(
        name="ec2:RunInstances",
        calls=("CreateNodegroup", "UpdateNodegroupVersion"),
        purpose="EKS checks that its caller may start instances from the launch template",
        source=_TEMPLATES,
        level="apply",
        scope="launch",
    ),
    Permission(
        name="iam:PassRole",
        calls=("CreateNodegroup",),
        purpose="to give the nodes their role",
        source=f"{_IAM}; docs: eks/security-iam-troubleshoot",
        level="apply",
        scope="role",
    ),
    Permission(
        name="iam:GetRole",
        calls=("CreateNodegroup",),
        purpose="EKS looks in its caller's name for the service-linked role of node groups",
        source=f"{_IAM}; terraform-aws-modules/terraform-aws-eks#823",
        level="apply",
        scope="service-role",
    ),
    Permission(
        name="iam:ListAttachedRolePolicies",
        calls=("CreateNodegroup",),
        purpose="EKS checks in its caller's name that the nodes' role has the policies that nodes need",
        source=f"{_IAM}; aws-controllers-k8s/community#2164",
        level="apply",
        scope="read-role",
    ),
    Permission(
        name="iam:CreateServiceLinkedRole",
        calls=("CreateNodegroup",),
        purpose="EKS creates that role with the account's first managed node group",
        source=f"{_IAM}; eksctl-io/eksctl userdocs, minimum-iam-policies",
        level="apply",
        without="only the account's first managed node group needs it",
        scope="new-service-role",
    ),
)
