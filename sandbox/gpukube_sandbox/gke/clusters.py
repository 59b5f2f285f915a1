"""One cluster: its facts, its pools, its credentials.

In scope: the state of a cluster and its wire form. Out of scope: lifecycles (`lifecycle`), rules.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.gke.rules.facts import ClusterFacts
from gpukube_sandbox.gke.versions import full_version
from gpukube_sandbox.gke.wire.names import is_zone, zones_of

if TYPE_CHECKING:
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.sources import Source
    from gpukube_sandbox.gke.wire.names import Place
    from gpukube_sandbox.kube.cluster import KubeCluster

_CHANNELS = wire.ReleaseChannel.Channel


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Settings that a cluster was created with.

    Attributes:
        cpu_pool: Whether it has a node pool without GPUs, `default-pool`.
        release_channel: "RAPID", "REGULAR", "STABLE", or "" for none.
        zones: Its zones; for a region its first three by default.
        autopilot: Whether Google manages the nodes; then pools cannot be created.
        gpu_quota: Quotas of the project to set, `quotas.NAMES` -> GPUs in the region of the cluster.
        accelerator_zones: Accelerator type -> zones that have it; a type without an entry is in all zones.
        foreign_plugin: Whether the static device-plugin manifest is already applied.
        reservations: Reservation -> its zone, machineType, and count, in addition to those of its project.
    """

    cpu_pool: bool = True
    release_channel: str = "REGULAR"
    zones: tuple[str, ...] = ()
    autopilot: bool = False
    gpu_quota: dict[str, int] = field(default_factory=dict)
    accelerator_zones: dict[str, list[str]] = field(default_factory=dict)
    foreign_plugin: bool = False
    reservations: dict[str, dict[str, object]] = field(default_factory=dict)


@dataclass(slots=True)
class Cluster:
    """A cluster.

    Attributes:
        place: Its name.
        version: Version of the control plane.
        kube_url: URL of its Kubernetes API.
        supply: Source of its machines.
        background: End, in sandbox time, of an operation by the service itself that blocks the cluster, and its name.
    """

    place: Place
    version: str
    kube: KubeCluster
    kube_url: str
    ca_pem: bytes
    created: float
    supply: Source
    options: ClusterOptions = field(default_factory=ClusterOptions)
    pools: dict[str, Pool] = field(default_factory=dict)
    background: tuple[float, str] = (0.0, "")

    @property
    def id(self) -> str:
        """Return the resource name."""
        return self.place.cluster_name

    @property
    def name(self) -> str:
        """Return the short name."""
        return self.place.cluster

    @property
    def address(self) -> str:
        """Return the address in the form of gpukube's --cluster."""
        return f"gke:{self.place.project}/{self.place.location}/{self.name}"

    @property
    def zones(self) -> list[str]:
        """Return the zones of pools that name no zones."""
        location = self.place.location
        if self.options.zones:
            return list(self.options.zones)
        return [location] if is_zone(location) else zones_of(location)[:3]

    @property
    def facts(self) -> ClusterFacts:
        """Return the facts that rules may use."""
        options = self.options
        return ClusterFacts(self.place.location, self.version, options.release_channel, options.accelerator_zones)

    def upgrade(self, version: str) -> None:
        """Upgrade the control plane to a version, "1.35" or a full one; node pools stay."""
        if version:
            self.version = full_version(version)
            self.kube.kubernetes_version = self.version

    def blocker(self, now: float) -> str:
        """Return the name of the service's own operation that blocks the cluster now; "" for none."""
        return self.background[1] if now < self.background[0] else ""

    def listed(self, now: float) -> list[wire.NodePool]:
        """Return the pools that lists already contain; a new one may be missing for a while."""
        return [pool.wire for pool in self.pools.values() if pool.listed_from <= now]

    def message(self, now: float, base: str) -> wire.Cluster:
        """Return the resource."""
        status = wire.Cluster.Status.RECONCILING if self.blocker(now) else wire.Cluster.Status.RUNNING
        endpoint = self.kube_url.removeprefix("https://")
        location = self.place.location
        return wire.Cluster(
            name=self.name,
            id=base64.b16encode(self.id.encode()).decode().lower()[:32],
            location=location,
            zone=location,
            locations=self.zones,
            self_link=base + self.id,
            endpoint=endpoint,
            master_auth=wire.MasterAuth(cluster_ca_certificate=base64.b64encode(self.ca_pem).decode()),
            control_plane_endpoints_config=wire.ControlPlaneEndpointsConfig(
                ip_endpoints_config={"enabled": True, "enable_public_endpoint": True, "public_endpoint": endpoint}
            ),
            initial_cluster_version=self.version,
            current_master_version=self.version,
            current_node_version=self.version,
            create_time=timestamp(self.created),
            status=status,
            current_node_count=sum(len(pool.all_nodes()) for pool in self.pools.values()),
            node_pools=self.listed(now),
            network="default",
            subnetwork="default",
            release_channel=wire.ReleaseChannel(
                channel=getattr(_CHANNELS, self.options.release_channel or "UNSPECIFIED")
            ),
            autopilot=wire.Autopilot(enabled=self.options.autopilot),
        )
