"""The part of AWS's SDK that gpukube uses, as protocols; a fake takes twenty lines.

In scope: the operations used. Out of scope: importing the SDK at run time.

The operations are those of botocore 1.44.5: eks/2017-11-01, ec2/2016-11-15, sts/2011-06-15, iam/2010-05-08,
ssm/2014-11-06, autoscaling/2011-01-01. Responses are plain dictionaries with the API's names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

Answer = Mapping[str, object]
ServiceName = Literal["eks", "ec2", "sts", "iam", "ssm", "pricing", "service-quotas", "autoscaling"]


class EksSdk(Protocol):
    """`client("eks")`."""

    def describe_cluster(self, *, name: str) -> Answer:
        """GET a cluster."""

    def list_nodegroups(self, *, clusterName: str, nextToken: str = ...) -> Answer:  # noqa: N803 - the API's names
        """GET one page of names, at most 100."""

    def describe_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Answer:  # noqa: N803 - the API's names
        """GET one node group."""

    def create_nodegroup(self, **arguments: object) -> Answer:
        """POST a node group."""

    def delete_nodegroup(self, *, clusterName: str, nodegroupName: str) -> Answer:  # noqa: N803 - the API's names
        """DELETE a node group; ResourceNotFoundException if it does not exist."""

    def update_nodegroup_config(self, **arguments: object) -> Answer:
        """POST a change of labels, taints, sizes or settings."""

    def update_nodegroup_version(self, **arguments: object) -> Answer:
        """POST a change of release or launch template version."""

    def tag_resource(self, **arguments: object) -> Answer:
        """POST tags to a node group, by its ARN."""

    def untag_resource(self, **arguments: object) -> Answer:
        """DELETE tags of a node group, by key; missing ones are ignored."""

    def describe_update(self, *, name: str, nodegroupName: str, updateId: str) -> Answer:  # noqa: N803 - the API's names
        """GET one update."""


class Ec2Sdk(Protocol):
    """`client("ec2")`."""

    def create_launch_template(self, **arguments: object) -> Answer:
        """Create a launch template with version 1."""

    def create_launch_template_version(self, **arguments: object) -> Answer:
        """Add a version."""

    def describe_launch_templates(self, **arguments: object) -> Answer:
        """List launch templates by filters or names."""

    def describe_launch_template_versions(self, **arguments: object) -> Answer:
        """List versions of one launch template."""

    def delete_launch_template(self, *, LaunchTemplateName: str) -> Answer:  # noqa: N803 - the API's names
        """Delete a launch template with all its versions."""

    def delete_tags(self, *, Resources: Sequence[str], Tags: Sequence[Answer]) -> Answer:  # noqa: N803 - as above
        """Delete tags of resources by key."""

    def describe_security_group_rules(self, **arguments: object) -> Answer:
        """List rules of security groups by filters, in pages with a NextToken."""

    def describe_route_tables(self, **arguments: object) -> Answer:
        """List route tables by filters, in pages with a NextToken."""

    def create_placement_group(self, **arguments: object) -> Answer:
        """Create a placement group."""

    def describe_placement_groups(self, **arguments: object) -> Answer:
        """List placement groups by name or id; InvalidPlacementGroup.Unknown if there is none."""

    def delete_placement_group(self, *, GroupName: str) -> Answer:  # noqa: N803 - the API's names
        """Delete a placement group without instances."""

    def describe_subnets(self, **arguments: object) -> Answer:
        """List subnets."""

    def describe_instance_type_offerings(self, **arguments: object) -> Answer:
        """List the zones that offer an instance type."""

    def describe_capacity_reservations(self, **arguments: object) -> Answer:
        """List capacity reservations and Capacity Blocks by id."""

    def describe_instances(self, **arguments: object) -> Answer:
        """List instances by filters, in pages with a NextToken."""


class SpotPrices(Protocol):
    """`client("ec2")`, for Spot prices."""

    def describe_spot_price_history(self, **arguments: object) -> Answer:
        """List spot prices, in pages with a NextToken."""


class Ec2Types(SpotPrices, Protocol):
    """`client("ec2")`, for the catalog."""

    def describe_instance_types(self, **arguments: object) -> Answer:
        """List instance types with their details, in pages with a NextToken."""


class Ec2Capacity(SpotPrices, Protocol):
    """`client("ec2")`, for available machines."""

    def describe_instance_type_offerings(self, **arguments: object) -> Answer:
        """List zones that sell instance types, in pages with a NextToken."""

    def describe_availability_zones(self, **arguments: object) -> Answer:
        """List the region's zones with the account's names of them."""

    def describe_capacity_reservations(self, **arguments: object) -> Answer:
        """List capacity reservations and Capacity Blocks by filters, in pages with a NextToken."""

    def describe_capacity_block_offerings(self, **arguments: object) -> Answer:
        """List Capacity Blocks for sale, in pages with a NextToken."""

    def get_spot_placement_scores(self, **arguments: object) -> Answer:
        """Score Spot requests for regions or zones, in pages with a NextToken."""


class PricingSdk(Protocol):
    """`client("pricing")`: AWS's price list, pricing/2017-10-15."""

    def get_products(self, **arguments: object) -> Answer:
        """List products with their prices, in pages with a NextToken."""


class QuotasSdk(Protocol):
    """`client("service-quotas")`: service-quotas/2019-06-24."""

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - the API's names
        """GET the account's own value of a quota; NoSuchResourceException if it was never set."""

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - as above
        """GET the default of a quota."""


class AutoScalingSdk(Protocol):
    """`client("autoscaling")`: the groups behind node groups."""

    def describe_scaling_activities(self, **arguments: object) -> Answer:
        """List the activities of a group of the last six weeks, newest first, in pages with a NextToken."""


class SsmSdk(Protocol):
    """`client("ssm")`: Systems Manager, where AWS publishes the newest images."""

    def get_parameter(self, *, Name: str) -> Answer:  # noqa: N803 - the API's name
        """Read one parameter; ParameterNotFound if there is none."""


class StsSdk(Protocol):
    """`client("sts")`."""

    def get_caller_identity(self) -> Answer:
        """Return the caller's identity; needs no permission."""


class IamSdk(Protocol):
    """`client("iam")`."""

    def list_roles(self, **arguments: object) -> Answer:
        """List the account's roles, in pages with a Marker."""


class Aws(Protocol):
    """The clients of one identity in one region, created on first use."""

    @property
    def eks(self) -> EksSdk:
        """Clusters and node groups."""

    @property
    def ec2(self) -> Ec2Sdk:
        """Launch templates, subnets, offerings."""

    @property
    def sts(self) -> StsSdk:
        """Identity."""

    @property
    def iam(self) -> IamSdk:
        """Roles."""

    @property
    def quotas(self) -> QuotasSdk:
        """Limits of the account."""

    @property
    def ssm(self) -> SsmSdk:
        """Public parameters."""

    @property
    def autoscaling(self) -> AutoScalingSdk:
        """Auto Scaling groups."""

    def hosts(self) -> dict[str, str]:
        """Return each service's host."""

    def cluster_token(self, cluster: str) -> str:
        """Return a bearer token for a cluster's Kubernetes API; valid for some minutes."""

    def close(self) -> None:
        """Close the connections."""
