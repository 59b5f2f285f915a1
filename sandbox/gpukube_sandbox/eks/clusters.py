"""One EKS cluster: its network, its options, its node groups, its wire form; and what else is in its account.

In scope: the state of a cluster and of an account in a region. Out of scope: HTTP, life cycles (`lifecycle`).
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
    from gpukube_sandbox.eks.things import Reservation, Role
    from gpukube_sandbox.eks.wire.answers import Json
    from gpukube_sandbox.kube.cluster import KubeCluster

_KEPT_ADDRESSES = 5
LATEST_PATCH = 5
"""Of every minor version but those that clusters have; which patches there are is no rule of the service."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """One subnet.

    Attributes:
        zone: Letter of its Availability Zone.
        public: It has a route to an internet gateway and MapPublicIpOnLaunch.
        cidr: Its block.
        listed: The cluster names it in resourcesVpcConfig.
        taken: Addresses that something else than its nodes has.
    """

    id: str
    zone: str
    public: bool
    cidr: str
    listed: bool = True
    taken: int = 0

    @property
    def free(self) -> int:
        """Addresses that are left; AWS keeps five of each subnet (docs: vpc/subnet-sizing), nodes take none here."""
        return max(0, ip_network(self.cidr).num_addresses - _KEPT_ADDRESSES - self.taken)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """How a cluster was set up.

    Attributes:
        node_groups: Node groups that are there from the start, as bodies of CreateNodegroup in which everything but the
            name may be left out; None for one CPU group called "system".
        subnets: Subnets as `{"id"?, "zone", "public"?, "listed"?}`; None for a private and a public one in each zone.
        foreign_plugin: Somebody has applied the static device-plugin manifest already, as eksctl does.
        public_endpoint: endpointPublicAccess.
        status: Cluster status.
        authentication_mode: accessConfig.authenticationMode.
        auto_mode: EKS Auto Mode is on.
        mapped: The caller has an access entry; without one the Kubernetes API answers 401.
        group_quota: Node groups that the cluster may have; None for the account's quota (L-6D54EA21).
        node_quota: Nodes that a group may have (quota L-BD136A63).
        extended_tolerations: The admission plugin ExtendedResourceToleration is on (docs: eks/platform-versions, for
            1.29 to 1.31; unconfirmed for later ones).
        roles: Names of further IAM roles in the account.
        tags: Of the cluster.
        reservations: Further capacity reservations of the account, as `reservations.read_reservations` takes them.
    """

    node_groups: list[Json] | None = None
    subnets: list[Json] | None = None
    foreign_plugin: bool = False
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
    """What exists in an account, seen from one region.

    Attributes:
        roles: By name; the same object in all regions of the account.
        keys: Names of key pairs, of this region alone, as all that follows.
        groups: Ids of security groups.
        reservations: Capacity reservations and Capacity Blocks by id.
        clusters: Clusters, whose nodes fill reservations and quotas.
        quotas: Code of a quota -> vCPUs, where it was set.
    """

    roles: dict[str, Role] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    clusters: list[EksCluster] = field(default_factory=list)
    quotas: dict[str, float] = field(default_factory=dict)

    def add_role(self, role: Role) -> bool:
        """Add a role unless there is one of that name; whether it was added."""
        return self.roles.setdefault(role.name, role) is role

    def has_role(self, arn: str) -> bool:
        """Whether a role has this ARN, its path included."""
        found = self.roles.get(arn.rpartition("/")[2])
        return found is not None and found.arn == arn


@dataclass(slots=True)
class EksCluster:
    """One cluster.

    Attributes:
        kubernetes_version: With its patch; the EKS API shows major and minor only.
        status: Cluster status; a test may change it.
        groups: Node groups by name.
        known: What else exists in its account and region.
        image_date: On which the newest images were published.
    """

    account: str
    region: str
    name: str
    kubernetes_version: str
    kube: KubeCluster
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
    def arn(self) -> str:
        """ARN of the cluster."""
        return f"arn:aws:eks:{self.region}:{self.account}:cluster/{self.name}"

    @property
    def version(self) -> str:
        """Major and minor, as the EKS API writes it: "1.34"."""
        return ".".join(self.kubernetes_version.split(".")[:2])

    def patched(self, version: str) -> str:
        """A minor version with its patch."""
        return self.kubernetes_version if version == self.version else f"{version}.{LATEST_PATCH}"

    @property
    def vpc(self) -> str:
        """Its VPC."""
        return f"vpc-0{self.digest('vpc')}"

    @property
    def role_arn(self) -> str:
        """The cluster's own role; no node may have it."""
        return f"arn:aws:iam::{self.account}:role/{self.name}-eksClusterRole"

    @property
    def node_role_arn(self) -> str:
        """The role of the node groups that were there from the start."""
        return f"arn:aws:iam::{self.account}:role/{self.name}-eksNodeRole"

    @property
    def security_group(self) -> str:
        """ClusterSecurityGroupId."""
        return f"sg-0{self.digest('sg')}"

    def digest(self, what: str) -> str:
        """Sixteen hex digits, the same in every run."""
        return hashlib.sha256(f"{self.arn}/{what}".encode()).hexdigest()[:16]

    def zone(self, subnet: str) -> str:
        """Letter of a subnet's zone; "" for a subnet of another VPC."""
        return next((entry.zone for entry in self.subnets if entry.id == subnet), "")

    def wire(self) -> Json:
        """The cluster as DescribeCluster gives it."""
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
        if (
            self.status == "CREATING"
        ):  # there is no API server to reach yet; whether the members are absent: unconfirmed
            del found["endpoint"], found["certificateAuthority"]
        return found


def default_subnets(cluster: EksCluster, given: list[Json] | None) -> list[Subnet]:
    """The subnets of a cluster: as its options say, else a private and a public one in each zone."""
    entries = given
    if entries is None:
        entries = [{"zone": zone, "public": public} for public in (False, True) for zone in ZONES]
    found = []
    for at, entry in enumerate(entries):
        zone, public = str(entry["zone"])[-1:], bool(entry.get("public", False))
        name = str(entry.get("id") or f"subnet-0{cluster.digest(f'{zone}/{public}/{at}')}")
        found.append(Subnet(name, zone, public, f"10.0.{at * 32}.0/19", bool(entry.get("listed", True))))
    return found
