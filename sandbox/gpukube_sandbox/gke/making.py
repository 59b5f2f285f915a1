"""Creates a cluster that exists before gpukube is used.

In scope: a cluster with its first pool and GKE's own workloads. Out of scope: the API's calls.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.addons import SYSTEM, apply_managed_plugin, apply_static_plugin
from gpukube_sandbox.gke.autoscaling import GkeGroups
from gpukube_sandbox.gke.clusters import Cluster, ClusterOptions
from gpukube_sandbox.gke.computeclasses import apply_compute_classes
from gpukube_sandbox.gke.lifecycle import seed_pool
from gpukube_sandbox.gke.networks import apply_network_types
from gpukube_sandbox.gke.pools import Pool, fill_defaults
from gpukube_sandbox.gke.service import GkeService, cluster_key
from gpukube_sandbox.gke.versions import full_version, parse_version
from gpukube_sandbox.gke.wire.enums import PoolStatus
from gpukube_sandbox.gke.wire.names import Place, is_zone
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.systempods import apply_system_pods

if TYPE_CHECKING:
    from pathlib import Path

CPU_POOL = "default-pool"
_CPU_MACHINE = "e2-standard-4"


@dataclass(frozen=True, slots=True)
class GkeRequest:
    """A request to create a cluster."""

    project: str
    location: str
    name: str
    kubernetes_version: str = ""
    options: ClusterOptions = field(default_factory=ClusterOptions)

    @property
    def key(self) -> str:
        """Return the cluster's key in the service."""
        return cluster_key(self.project, self.location, self.name)


async def make_cluster(
    service: GkeService, request: GkeRequest, kube_base: str, ca_pem: bytes, assets: Path | None
) -> Cluster:
    """Start a cluster and its first pool.

    Args:
        service: Service that gets the cluster.
        request: The cluster to create.
        kube_base: Address of the Kubernetes APIs.
        ca_pem: Their certificate authority.
        assets: Directory of a real control plane's binaries; None for an emulated one.

    Raises:
        GoogleError: The version is invalid.
    """
    version = full_version(request.kubernetes_version)
    parse_version(version)
    kube = KubeCluster(request.name, service.clock, service.secret, version, assets=assets)
    kube.limit_critical_pods()
    kube.tolerate_extended_resources()  # docs: kubernetes-engine/docs/how-to/gpus (the taint nvidia.com/gpu)
    await kube.start()
    document = json.loads(kube.kubeconfig(f"{kube_base}/clusters/{request.key}", ca_pem.decode()))
    reached = document["clusters"][0]["cluster"]
    cluster = Cluster(
        place=Place(request.project, request.location, request.name),
        version=version if kube.kubernetes_version == version else full_version(kube.kubernetes_version),
        kube=kube,
        kube_url=reached["server"],
        ca_pem=base64.b64decode(reached["certificate-authority-data"]),
        created=service.clock.now(),
        supply=service.supply,
        options=request.options,
    )
    kube.autoscale(GkeGroups(cluster, service.clock, service.faults, service.quotas))
    for name, limit in request.options.gpu_quota.items():
        service.quotas.set(request.project, request.location, name, limit)
    service.clusters[request.key] = cluster
    await apply_network_types(kube)
    await apply_compute_classes(kube, version)
    await apply_managed_plugin(kube)
    await apply_system_pods(kube, SYSTEM)
    if request.options.foreign_plugin:
        await apply_static_plugin(kube)
    if request.options.cpu_pool and not request.options.autopilot:
        await _seed_cpu_pool(cluster)
    return cluster


async def _seed_cpu_pool(cluster: Cluster) -> None:
    place = Place(cluster.place.project, cluster.place.location, cluster.name, CPU_POOL)
    zones = cluster.zones if is_zone(cluster.place.location) else cluster.zones[:1]
    sent = wire.NodePool(
        name=CPU_POOL, initial_node_count=1, locations=zones, config=wire.NodeConfig(machine_type=_CPU_MACHINE)
    )
    fill_defaults(sent, cluster.version, cluster.zones, cluster.options.release_channel)
    GkeService.complete(cluster, place, sent)
    sent.status = PoolStatus.RUNNING
    pool = cluster.pools[CPU_POOL] = Pool(sent)
    pool.touch()
    await seed_pool(cluster, pool)
