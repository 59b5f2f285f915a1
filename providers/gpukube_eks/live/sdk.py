"""The part of AWS's SDK that gpukube uses, as protocols; a fake of it is twenty lines.

In scope: the operations used. Out of scope: any import of the SDK at run time.

The operations are those of botocore 1.44.5: eks/2017-11-01, ec2/2016-11-15, sts/2011-06-15, iam/2010-05-08,
ssm/2014-11-06. Answers are
plain dictionaries in the API's names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

Answer = Mapping[str, object]
ServiceName = Literal["eks", "ec2", "sts", "iam", "ssm", "pricing", "service-quotas"]


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
        """DELETE a node group; ResourceNotFoundException where there is none."""

    def update_nodegroup_config(self, **arguments: object) -> Answer:
        """POST a change of labels, taints, sizes or settings."""

    def update_nodegroup_version(self, **arguments: object) -> Answer:
        """POST a change of release or launch template version."""

    def tag_resource(self, **arguments: object) -> Answer:
        """POST tags to a node group, by its ARN."""

    def untag_resource(self, **arguments: object) -> Answer:
        """DELETE tags of a node group, by their keys; absent ones do not matter."""

    def describe_update(self, *, name: str, nodegroupName: str, updateId: str) -> Answer:  # noqa: N803 - the API's names
        """GET one update."""


class Ec2Sdk(Protocol):
    """`client("ec2")`."""

    def create_launch_template(self, **arguments: object) -> Answer:
        """Make a launch template with its version 1."""

    def create_launch_template_version(self, **arguments: object) -> Answer:
        """Add a version."""

    def describe_launch_templates(self, **arguments: object) -> Answer:
        """List launch templates by filters or names."""

    def describe_launch_template_versions(self, **arguments: object) -> Answer:
        """List versions of one launch template."""

    def delete_launch_template(self, *, LaunchTemplateName: str) -> Answer:  # noqa: N803 - the API's names
        """Delete a launch template with all its versions."""

    def delete_tags(self, *, Resources: Sequence[str], Tags: Sequence[Answer]) -> Answer:  # noqa: N803 - as above
        """Delete tags of resources by their keys."""

    def describe_subnets(self, **arguments: object) -> Answer:
        """List subnets."""

    def describe_instance_type_offerings(self, **arguments: object) -> Answer:
        """List which zones offer an instance type."""

    def describe_capacity_reservations(self, **arguments: object) -> Answer:
        """List capacity reservations and Capacity Blocks by their ids."""

    def describe_instances(self, **arguments: object) -> Answer:
        """List instances by filters, by pages with a NextToken."""


class Ec2Types(Protocol):
    """`client("ec2")`, for the catalog."""

    def describe_instance_types(self, **arguments: object) -> Answer:
        """List instance types with what is in them, by pages with a NextToken."""

    def describe_spot_price_history(self, **arguments: object) -> Answer:
        """List spot prices, by pages with a NextToken."""


class PricingSdk(Protocol):
    """`client("pricing")`: AWS's price list, pricing/2017-10-15."""

    def get_products(self, **arguments: object) -> Answer:
        """List products with their prices, by pages with a NextToken."""


class QuotasSdk(Protocol):
    """`client("service-quotas")`: service-quotas/2019-06-24."""

    def get_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - the API's names
        """GET a quota as it was set for the account; NoSuchResourceException where it never was."""

    def get_aws_default_service_quota(self, *, ServiceCode: str, QuotaCode: str) -> Answer:  # noqa: N803 - as above
        """GET the default of a quota."""


class SsmSdk(Protocol):
    """`client("ssm")`: Systems Manager, where AWS publishes which images are the newest."""

    def get_parameter(self, *, Name: str) -> Answer:  # noqa: N803 - the API's name
        """Read one parameter; ParameterNotFound where there is none."""


class StsSdk(Protocol):
    """`client("sts")`."""

    def get_caller_identity(self) -> Answer:
        """Say who we are; needs no permission."""


class IamSdk(Protocol):
    """`client("iam")`."""

    def list_roles(self, **arguments: object) -> Answer:
        """List roles of the account, by pages with a Marker."""


class Aws(Protocol):
    """The clients of one identity in one region, made when they are first used."""

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

    def hosts(self) -> dict[str, str]:
        """Return the host that each service is reached at."""

    def cluster_token(self, cluster: str) -> str:
        """Make a bearer token for a cluster's Kubernetes API; good for some minutes."""

    def close(self) -> None:
        """Close the connections."""
