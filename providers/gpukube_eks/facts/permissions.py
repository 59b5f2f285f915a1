"""The IAM permissions that the live half's calls need.

In scope: the table. Out of scope: which permissions a spec needs, and on which resources (`rules.permissions`).

Names, resources and condition keys are those of the Service Authorization Reference (the pages of Amazon EKS, Amazon
EC2, IAM, Systems Manager, Service Quotas and AWS Price List); a second source covers what the reference omits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_EKS: Final = "docs: service-authorization/list_amazonelastickubernetesservice"
_EC2: Final = "docs: service-authorization/list_amazonec2"
_IAM: Final = "docs: service-authorization/list_awsidentityandaccessmanagementiam"
_PRICES: Final = "docs: service-authorization/list_awspricelist"
_QUOTAS: Final = "docs: service-authorization/list_servicequotas"
_TEMPLATES: Final = "docs: eks/launch-templates, tagging Amazon EC2 instances"

RESERVED: Final = "for reserved capacity"
OPEN_ROLE: Final = "for pools without eks.nodeRole"
TAGGED: Final = "for pools with tags"
FAST: Final = "for pools with network.highSpeed"
PLACED: Final = "for pools with placement"
COMPACT: Final = "for pools with placement: compact"

_NOT_TOLD: Final = "the ways that need it are shown as not told"

WITHOUT_CALLS: Final = ("GetCallerIdentity",)
"""Operations that need no permission (docs: STS API reference, GetCallerIdentity)."""

_plan = partial(Permission, level="plan")
_apply = partial(Permission, level="apply")

_ROWS: Final = (  # name, purpose, source, scopes: one or more of rules.permissions, separated by spaces
    _plan("eks:DescribeCluster", "to find the cluster, its version and the address of its Kubernetes API", _EKS,
        "cluster"),
    _plan("eks:ListNodegroups", "to find the cluster's node groups", _EKS, "cluster"),
    _plan("eks:DescribeNodegroup", "to compare node groups with the spec, and to wait for them", _EKS, "nodegroup"),
    _plan("ec2:DescribeLaunchTemplates", "to find gpukube's launch templates", _EC2, "region"),
    _plan("ec2:DescribeLaunchTemplateVersions", "to compare disks and node settings with the spec", _EC2, "region"),
    _plan("ec2:DescribeSubnets", "to read the zones of subnets, and their free addresses",
        f"{_EC2}; aws-controllers-k8s/community#2164 (EKS reads them as its caller)", "region",
        calls=("DescribeSubnets", "CreateNodegroup")),
    _plan("ec2:DescribeInstanceTypeOfferings", "to choose subnets in zones that offer the instance type", _EC2,
        "region"),
    _plan("ec2:DescribeCapacityReservations",
        "to check the capacity reservation and its free instances before any is requested from it, and when it ends",
        _EC2, "region", when=RESERVED, without="EKS refuses an unusable or full reservation minutes later"),
    _plan("ec2:DescribeSecurityGroupRules", "to check that the nodes' security groups let EFA traffic through", _EC2,
        "region", when=FAST, without="this is not checked, with a warning"),
    _plan("ec2:DescribeRouteTables", "to check that the subnets of nodes with EFA are private", _EC2, "region",
        when=FAST, without="this is not checked, with a warning"),
    _plan("ec2:DescribePlacementGroups", "to check placement groups, and to find gpukube's own", _EC2, "region",
        when=PLACED, without="a named group is not checked, with a warning"),
    _plan("iam:ListRoles",
        "to find the nodes' role by its documented names if no node group of the cluster has one", _IAM, "any",
        when=OPEN_ROLE, without="write eks.nodeRole"),
    _plan("servicequotas:GetServiceQuota", "to compare the account's quotas with the plan's needs", _QUOTAS, "quota",
        without="these quotas are not checked"),
    _plan("servicequotas:GetAWSDefaultServiceQuota", "to read quotas that were never raised in the account", _QUOTAS,
        "region", without="these quotas are not checked"),
    _plan("ec2:DescribeInstances", "to count the vCPUs that running instances use of a quota", _EC2, "region",
        without="these quotas are not checked"),
    _plan("ssm:GetParameter", "to read the newest AMI release from AWS's public parameters",
        "docs: service-authorization/list_awssystemsmanager", "parameter", when=EXTRAS["upgrade"],
        without="upgrades follow only the Kubernetes version"),
    _plan("pricing:GetProducts", "to read on-demand prices", _PRICES, "any", when=EXTRAS["live-prices"],
        without="the plan shows the catalog's prices"),
    _plan("ec2:DescribeSpotPriceHistory", "to read spot prices", _EC2, "region", when=EXTRAS["live-prices"],
        without="the plan shows the catalog's prices"),
    _plan("ec2:DescribeInstanceTypes", "to refresh the catalog of instance types", _EC2, "region",
        when=EXTRAS["catalog"]),
    _plan("pricing:GetProducts", "to refresh the catalog's on-demand prices", _PRICES, "any", when=EXTRAS["catalog"],
        without="the catalog keeps its prices"),
    _plan("ec2:DescribeSpotPriceHistory", "to refresh the catalog's spot prices", _EC2, "region",
        when=EXTRAS["catalog"], without="the catalog keeps its prices"),
    _plan("ec2:DescribeCapacityReservations", "to find reservations and Capacity Blocks with free machines", _EC2,
        "region", when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("ec2:DescribeCapacityBlockOfferings", "to find Capacity Blocks for sale", _EC2, "region",
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("ec2:GetSpotPlacementScores", "to read how likely Spot requests are to succeed", _EC2, "region",
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("ec2:DescribeAvailabilityZones", "to find the names of the zones that Spot scores are for", _EC2, "region",
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("ec2:DescribeSpotPriceHistory", "to show spot prices by zone", _EC2, "region", when=EXTRAS["capacity"],
        without="the catalog's prices are shown"),
    _plan("pricing:GetProducts", "to show on-demand prices", _PRICES, "any", when=EXTRAS["capacity"],
        without="the catalog's prices are shown"),
    _apply("autoscaling:DescribeScalingActivities",
        "to see within minutes that no machine can be started, and try the pool's next alternative",
        "docs: service-authorization/list_amazonec2autoscaling", "region", when=EXTRAS["alternatives"],
        without="a stock-out is noticed later, by the node group's health or the end of --capacity-wait"),
    _apply("eks:CreateNodegroup", "to create node groups", _EKS, "cluster"),
    _apply("eks:TagResource",
        "to create node groups with tags, which contain a copy of gpukube's labels, and to change these tags",
        f"{_EKS}; aws/karpenter-provider-aws#4434", "nodegroup new-nodegroup", calls=("CreateNodegroup", "TagResource"),
        without="the copy is omitted: lost labels cannot be restored"),
    _apply("eks:UntagResource", "to remove tags that are no longer in the spec, and the copy of gpukube's labels", _EKS,
        "nodegroup"),
    _apply("eks:UpdateNodegroupConfig", "to change sizes, labels, taints and update settings", _EKS, "nodegroup"),
    _apply("eks:UpdateNodegroupVersion",
        "to change the Kubernetes version, the AMI release or the launch template's version", _EKS, "nodegroup"),
    _apply("eks:DescribeUpdate", "to wait for changes, and to report why one failed", _EKS, "cluster nodegroup"),
    _apply("eks:DeleteNodegroup", "to delete node groups: pool delete, --replace, --prune", _EKS, "nodegroup"),
    _apply("ec2:CreateLaunchTemplate", "to create the launch template of a node group", _EC2, "new-template"),
    _apply("ec2:CreateTags", "to create launch templates with gpukube's tags, which identify them later",
        f"{_EC2}, dependent actions of CreateLaunchTemplate", "template-tags", calls=("CreateLaunchTemplate",)),
    _apply("ec2:CreateTags", "so that EKS starts instances and disks with the pool's tags", _TEMPLATES, "machine-tags",
        calls=("CreateNodegroup", "UpdateNodegroupVersion"), when=TAGGED),
    _apply("ec2:CreatePlacementGroup", "to create the pool's placement group", _EC2, "new-placement", when=COMPACT),
    _apply("ec2:CreateTags", "to create placement groups with gpukube's tags, which identify them later",
        f"{_EC2}, dependent actions of CreatePlacementGroup", "placement-tags", calls=("CreatePlacementGroup",),
        when=COMPACT),
    _apply("ec2:DeletePlacementGroup", "to delete the placement group of a deleted node group", _EC2, "own-placement",
        when=COMPACT),
    _apply("ec2:CreateLaunchTemplateVersion", "to change disks and node settings", _EC2, "template"),
    _apply("ec2:DeleteLaunchTemplate", "to delete the launch template of a deleted node group", _EC2,
        "own-template"),
    _apply("ec2:DeleteTags", "to remove gpukube's tags from the launch template of a released pool", _EC2,
        "own-template", without="the launch template keeps the tags, with a warning"),
    _apply("ec2:RunInstances", "EKS checks that its caller may launch instances from the launch template", _TEMPLATES,
        "launch", calls=("CreateNodegroup", "UpdateNodegroupVersion")),
    _apply("iam:PassRole", "to give the nodes their role", f"{_IAM}; docs: eks/security-iam-troubleshoot", "role",
        calls=("CreateNodegroup",)),
    _apply("iam:GetRole", "EKS reads the service-linked role of node groups as its caller",
        f"{_IAM}; terraform-aws-modules/terraform-aws-eks#823", "service-role", calls=("CreateNodegroup",)),
    _apply("iam:ListAttachedRolePolicies",
        "EKS checks as its caller that the nodes' role has the policies that nodes need",
        f"{_IAM}; aws-controllers-k8s/community#2164", "read-role", calls=("CreateNodegroup",)),
    _apply("iam:CreateServiceLinkedRole", "EKS creates that role with the account's first managed node group",
        f"{_IAM}; eksctl-io/eksctl userdocs, minimum-iam-policies", "new-service-role", calls=("CreateNodegroup",),
        without="only the account's first managed node group needs it"),
)  # fmt: skip

PERMISSIONS: Final = tuple(row if row.calls else replace(row, calls=(row.name.partition(":")[2],)) for row in _ROWS)
"""All permissions; a row without calls belongs to the operation with the same name."""
