"""One EKS cluster: its network, options, node groups, and wire form; and other resources of its account.

In scope: the state of a cluster and of an account in a region. Out of scope: HTTP, lifecycles (`lifecycle`).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.images import AL_DATE
from gpukube_sandbox.eks.instances import ZONES

if TYPE_CHECKING:
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.things import PlacementGroup, Reservation, Role
    from gpukube_sandbox.eks.wire.answers import Json
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.stock import Stock

_KEPT_ADDRESSES = 5
LATEST_PATCH = 5
"""Latest patch of minor versions that no cluster has; the service has no rule for which patches exist."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet.

    Attributes:
        zone: Letter of its Availability Zone.
        public: Whether it has a route to an internet gateway and MapPublicIpOnLaunch.
        cidr: Its CIDR block.
        listed: Whether the cluster's resourcesVpcConfig names it.
        taken: Addresses used by anything other than the cluster's nodes.
    """

    id: str
    zone: str
    public: bool
    cidr: str
    listed: bool = True
    taken: int = 0

    @property
    def free(self) -> int:
        """Return the number of free addresses; AWS reserves five (docs: vpc/subnet-sizing), nodes use none here."""
        return max(0, ip_network(self.cidr).num_addresses - _KEPT_ADDRESSES - self.taken)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Settings that a cluster was created with.

    Attributes:
        node_groups: Initial node groups, as bodies of CreateNodegroup in which only the name is required; None for one
            CPU group called "system".
        subnets: Subnets as `{"id"?, "zone", "public"?, "listed"?}`; None for a private and a public one per zone.
        foreign_plugin: Whether the static device-plugin manifest is already applied, as by eksctl.
        autoscaler: Expanders of an installed Cluster Autoscaler, such as "priority,least-waste"; "" for no autoscaler.
        public_endpoint: endpointPublicAccess.
        status: Cluster status.
        authentication_mode: accessConfig.authenticationMode.
        auto_mode: Whether EKS Auto Mode is on.
        mapped: Whether the caller has an access entry; without one the Kubernetes API returns 401.
        group_quota: Maximum number of node groups; None for the account's quota (L-6D54EA21).
        node_quota: Maximum number of nodes per group (quota L-BD136A63).
        extended_tolerations: Whether the admission plugin ExtendedResourceToleration is on (docs:
            eks/platform-versions, for 1.29 to 1.31; unconfirmed for later versions).
        roles: Names of additional IAM roles in the account.
        tags: Tags of the cluster.
        reservations: Additional capacity reservations of the account, in the form of `reservations.read_reservations`.
    """

    node_groups: list[Json] | None = None
    subnets: list[Json] | None = None
    foreign_plugin: bool = False
    autoscaler: str = ""
    public_endpoint: bool = True
    status: str = "ACTIVE"
    authentication_mode: str = "API_AND_CONFIG_MAP"
    auto_mode: bool = False
    mapped: bool = True
    group_quota: int | None = None
    node_quota: int = 450
    extended_tolerations: bool = True
    roles: tuple[str, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    reservations: list[Json] = field(default_factory=list)


@dataclass(slots=True)
class Known:
    """Existing resources of an account, seen from one region.

    Attributes:
        roles: Roles by name; the same object in all regions of the account.
        keys: Names of key pairs in this region; the attributes below are regional too.
        groups: Ids of security groups.
        efa_groups: Those whose members may send each other anything, as EFA needs.
        kms_keys: Ids, aliases, or ARNs of keys that volumes can be encrypted with.
        placement_groups: Placement groups by name.
        reservations: Capacity reservations and Capacity Blocks by id.
        clusters: Clusters, whose nodes use reservations and quotas.
        quotas: Code of a quota -> vCPUs, for quotas that were set.
    """

    roles: dict[str, Role] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    efa_groups: set[str] = field(default_factory=set)
    kms_keys: set[str] = field(default_factory=set)
    placement_groups: dict[str, PlacementGroup] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    clusters: list[EksCluster] = field(default_factory=list)
    quotas: dict[str, float] = field(default_factory=dict)

    def add_role(self, role: Role) -> bool:
        """Add a role unless one with that name exists; return whether it was added."""
        return self.roles.setdefault(role.name, role) is role

    def has_role(self, arn: str) -> bool:
        """Return whether a role has this ARN, including its path."""
        found = self.roles.get(arn.rpartition("/")[2])
        return found is not None and found.arn == arn


@dataclass(slots=True)
class EksCluster:
    """A managed cluster.

    Attributes:
        kubernetes_version: Version with patch; the EKS API shows only major and minor.
        status: Cluster status; a test may change it.
        stock: The machines that its groups can launch.
        groups: Node groups by name.
        known: Other existing resources of its account and region.
        image_date: Release date of the newest images.
    """

    account: str
    region: str
    name: str
    kubernetes_version: str
    kube: KubeCluster
    stock: Stock
    kube_url: str
    ca_pem: bytes
    token: str
    created: float
    options: ClusterOptions = field(default_factory=ClusterOptions)
    subnets: list[Subnet] = field(default_factory=list)
    status: str = "ACTIVE"
    groups: dict[str, NodeGroup] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    known: Known = field(default_factory=Known)
    image_date: str = AL_DATE

    @property
    def address(self) -> str:
        """Return the address in the form of gpukube's --cluster."""
        return f"eks:{self.account}/{self.region}/{self.name}"

    @property
    def arn(self) -> str:
        """Return the ARN of the cluster."""
        return f"arn:aws:eks:{self.region}:{self.account}:cluster/{self.name}"

    @property
    def version(self) -> str:
        """Return major and minor version in the EKS API's form: "1.34"."""
        return ".".join(self.kubernetes_version.split(".")[:2])

    def patched(self, version: str) -> str:
        """Return a minor version with its patch."""
        return self.kubernetes_version if version == self.version else f"{version}.{LATEST_PATCH}"

    @property
    def vpc(self) -> str:
        """Return the id of the cluster's VPC."""
        return f"vpc-0{self.digest('vpc')}"

    @property
    def role_arn(self) -> str:
        """Return the ARN of the cluster's own role; nodes must have another one."""
        return f"arn:aws:iam::{self.account}:role/{self.name}-eksClusterRole"

    @property
    def node_role_arn(self) -> str:
        """Return the ARN of the initial node groups' role."""
        return f"arn:aws:iam::{self.account}:role/{self.name}-eksNodeRole"

    @property
    def security_group(self) -> str:
        """ClusterSecurityGroupId."""
        return f"sg-0{self.digest('sg')}"

    def digest(self, what: str) -> str:
        """Return sixteen hex digits, the same in every run."""
        return hashlib.sha256(f"{self.arn}/{what}".encode()).hexdigest()[:16]

    def is_public(self, subnet: str) -> bool:
        """Return whether a subnet is public."""
        return any(entry.public for entry in self.subnets if entry.id == subnet)

    def zone(self, subnet: str) -> str:
        """Return the letter of a subnet's zone; "" for a subnet of another VPC."""
        return next((entry.zone for entry in self.subnets if entry.id == subnet), "")

    def wire(self) -> Json:
        """Return the cluster as DescribeCluster returns it."""
        options = self.options
        network: Json = {
            "subnetIds": [subnet.id for subnet in self.subnets if subnet.listed],
            "securityGroupIds": [],
            "clusterSecurityGroupId": self.security_group,
            "vpcId": self.vpc,
            "endpointPublicAccess": options.public_endpoint,
            "endpointPrivateAccess": True,
            "publicAccessCidrs": ["0.0.0.0/0"] if options.public_endpoint else [],
        }
        issuer = f"https://oidc.eks.{self.region}.amazonaws.com/id/{self.digest('oidc').upper()}"
        found: Json = {
            "name": self.name,
            "arn": self.arn,
            "createdAt": self.created,
            "version": self.version,
            "endpoint": self.kube_url,
            "roleArn": self.role_arn,
            "resourcesVpcConfig": network,
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16", "ipFamily": "ipv4"},
            "logging": {"clusterLogging": [{"types": ["api", "audit"], "enabled": False}]},
            "identity": {"oidc": {"issuer": issuer}},
            "status": self.status,
            "certificateAuthority": {"data": base64.b64encode(self.ca_pem).decode()},
            "platformVersion": "eks.5",
            "tags": dict(self.tags),
            "health": {"issues": []},
            "accessConfig": {"authenticationMode": options.authentication_mode},
            "upgradePolicy": {"supportType": "STANDARD"},
            "computeConfig": {"enabled": options.auto_mode},
            "deletionProtection": False,
        }
        if self.status == "CREATING":  # there is no API server yet; whether the members are absent: unconfirmed
            del found["endpoint"], found["certificateAuthority"]
        return found


def default_subnets(cluster: EksCluster, given: list[Json] | None) -> list[Subnet]:
    """Return the subnets from the cluster's options, or a private and a public one per zone."""
    entries = given
    if entries is None:
        entries = [{"zone": zone, "public": public} for public in (False, True) for zone in ZONES]
    found = []
    for at, entry in enumerate(entries):
        zone, public = str(entry["zone"])[-1:], bool(entry.get("public", False))
        name = str(entry.get("id") or f"subnet-0{cluster.digest(f'{zone}/{public}/{at}')}")
        found.append(Subnet(name, zone, public, f"10.0.{at * 32}.0/19", bool(entry.get("listed", True))))
    return found
