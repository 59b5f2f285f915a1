"""The content of one sandbox: clock, clouds, clusters, faults, stock, log.

In scope: creating clusters, and resetting everything. Out of scope: sockets (`server`), the control API's HTTP.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.addons import SYSTEM, apply_static_plugin
from gpukube_sandbox.aks.autoscaling import AksGroups
from gpukube_sandbox.aks.clusters import Cluster, ClusterOptions
from gpukube_sandbox.aks.failures import planned_failure
from gpukube_sandbox.aks.lifecycle import seed_pool
from gpukube_sandbox.aks.pools import Pool, finish_defaults, with_defaults
from gpukube_sandbox.aks.service import AksService, cluster_key
from gpukube_sandbox.aks.throttle import Throttle
from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.eks.autoscaling import EksGroups
from gpukube_sandbox.eks.ending import BlockEnds
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.eks.making import make_cluster as make_eks_cluster
from gpukube_sandbox.eks.service import EksService
from gpukube_sandbox.faults import FaultBook
from gpukube_sandbox.gke.transports.door import GkeDoor
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.controlplane import find_assets
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.systempods import apply_system_pods
from gpukube_sandbox.pacing import PacedClock
from gpukube_sandbox.permits import PermitBook
from gpukube_sandbox.stock import Stock
from gpukube_sandbox.traffic import RequestLog

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from gpukube_sandbox.aks.lifecycle import Failure
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.gke.clusters import Cluster as GkeCluster
    from gpukube_sandbox.gke.making import GkeRequest
    from gpukube_sandbox.stock import Entry, Place
    from gpukube_sandbox.throttle import Buckets
    from gpukube_sandbox.traffic import LoggedRequest

SYSTEM_POOL = "nodepool1"
_SYSTEM_SIZE = "Standard_D4s_v5"


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """A requested cluster."""

    subscription: str
    group: str
    name: str
    location: str = "eastus"
    kubernetes_version: str = "1.34.2"
    options: ClusterOptions = field(default_factory=ClusterOptions)


@dataclass(frozen=True, slots=True)
class SavedWorld:
    """A saved world.

    Attributes:
        now: Its time.
        services: Name of a service -> its fields.
        stock: Entries of the stock, and the machines that exist.
        requests: Request log.
        origin: Control API calls that created it.
    """

    now: float
    services: dict[str, dict[str, object]]
    stock: tuple[list[Entry], dict[Place, int]]
    requests: list[LoggedRequest]
    origin: list[str]


class World:
    """One sandbox.

    Args:
        speed: Sandbox seconds per wall second.
        ca_pem: Certificate authority of the Kubernetes APIs.
        secret: Secret that clients must send; generated if empty.

    Attributes:
        origin: Control API calls since the last reset.
        saved: Name -> saved world; a reset keeps them.
    """

    def __init__(self, speed: float, ca_pem: bytes, secret: str = "") -> None:
        self.secret = secret or new_secret()
        self.clock = PacedClock(speed)
        self.faults = FaultBook()
        self.stock = Stock(self.clock)
        self.log = RequestLog()
        self.permits = PermitBook()
        self.aks = AksService(
            self.clock, self._plan_aks, Throttle(self.clock), self.stock, lag=partial(self.faults.lag, "arm")
        )
        self.eks = EksService(
            self.clock,
            partial(self.faults.operation, "aws"),
            self.stock,
            lag=partial(self.faults.lag, "aws"),
            secret=self.secret,
        )
        self.gke = GkeDoor(self.clock, self.faults, self.stock, self.log, self.permits, self.secret)
        self.kube_apps: dict[str, Starlette] = {}
        self.kube_base = ""
        self._ca_pem = ca_pem
        self._making = asyncio.Lock()
        self.origin: list[str] = []
        self.saved: dict[str, SavedWorld] = {}

    def _plan_aks(self, cluster: Cluster, pool: str, kind: str, size: str) -> Failure | None:
        return planned_failure(self.faults.operation("arm", cluster.name, pool, kind), cluster, pool, size)

    async def ensure_cluster(self, request: ClusterRequest) -> tuple[Cluster, bool]:
        """Return the cluster, creating it with one system pool if missing, and whether it was created."""
        key = cluster_key(request.subscription, request.group, request.name)
        async with self._making:
            if key in self.aks.clusters:
                return self.aks.clusters[key], False
            cluster = self.aks.clusters[key] = await self._start_cluster(key, request)
            cluster.kube.node_faults = partial(self.faults.node, "arm", cluster.name)
            cluster.kube.autoscale(AksGroups(cluster, self.clock, self.faults, self.aks.quotas))
            sent: dict[str, object] = {"count": 1, "vmSize": _SYSTEM_SIZE, "mode": "System"}
            pool = Pool(SYSTEM_POOL, finish_defaults(with_defaults(sent, cluster.facts)), state="Succeeded")
            cluster.pools[SYSTEM_POOL] = pool
            await seed_pool(cluster, pool)
            await apply_system_pods(cluster.kube, SYSTEM)
            if request.options.foreign_plugin:
                await apply_static_plugin(cluster.kube)
            return cluster, True

    async def _start_cluster(self, key: str, request: ClusterRequest) -> Cluster:
        """Start the Kubernetes API; a real one from KUBEBUILDER_ASSETS has its own version and address."""
        token = secrets.token_urlsafe(24)
        kube = KubeCluster(request.name, self.clock, token, request.kubernetes_version, assets=find_assets())
        kube.admits_anonymous = False
        kube.tolerate_extended_resources()  # docs: azure-aks faq (admission controllers; the list cannot be changed)
        await kube.start()
        self.kube_apps[key] = make_app(kube, self.permits)
        document = json.loads(kube.kubeconfig(f"{self.kube_base}/clusters/{key}", self._ca_pem.decode()))
        reached = document["clusters"][0]["cluster"]
        return Cluster(
            subscription=request.subscription,
            group=request.group,
            name=request.name,
            location=request.location,
            kubernetes_version=kube.kubernetes_version,
            kube=kube,
            kube_url=reached["server"],
            ca_pem=base64.b64decode(reached["certificate-authority-data"]),
            token=token,
            supply=self.aks.supply,
            options=request.options,
        )

    async def ensure_gke_cluster(self, request: GkeRequest) -> tuple[GkeCluster, bool]:
        """Return the GKE cluster, creating it with one CPU pool if missing, and whether it was created.

        Raises:
            ModuleNotFoundError: google-cloud-container is not installed.
        """
        service = self.gke.service()
        from gpukube_sandbox.gke.making import make_cluster  # noqa: PLC0415 - loads google-cloud-container

        async with self._making:
            if request.key in service.clusters:
                return service.clusters[request.key], False
            cluster = await make_cluster(service, request, self.kube_base, self._ca_pem, find_assets())
            cluster.kube.node_faults = partial(self.faults.node, "gke", cluster.name)
            self.kube_apps[request.key] = make_app(cluster.kube, self.permits)
            return cluster, True

    async def ensure_eks_cluster(self, request: EksRequest) -> tuple[EksCluster, bool]:
        """Return the EKS cluster, creating it with one CPU node group if missing, and whether it was created."""
        async with self._making:
            if request.key in self.eks.clusters:
                return self.eks.clusters[request.key], False
            cluster = await make_eks_cluster(self.eks, request, self.kube_base, self._ca_pem, find_assets())
            cluster.kube.node_faults = partial(self.faults.node, "aws", cluster.name)
            cluster.kube.autoscale(EksGroups(cluster, self.clock, self.faults))
            cluster.kube.follow(BlockEnds(cluster, self.clock))
            self.kube_apps[request.key] = make_app(cluster.kube, self.permits)
            return cluster, True

    def buckets(self) -> list[Buckets]:
        """Return the request limits of each loaded cloud."""
        return [self.aks.throttle, self.eks.throttle, *([self.gke.service().throttle] if self.gke.is_loaded else [])]

    async def reset(self) -> None:
        """Delete everything: clusters, operations, faults, stock, the log."""
        self.faults.clear()
        self.permits.reset()
        self.origin.clear()
        kubes = [cluster.kube for cluster in self.aks.clusters.values()]
        kubes += [cluster.kube for cluster in self.eks.clusters.values()]
        kubes += [cluster.kube for cluster in self.gke.clusters.values()]
        await self.aks.reset()
        await self.eks.reset()
        await self.gke.reset()
        self.kube_apps.clear()
        for kube in kubes:
            await kube.stop()
        self.stock.reset()
        self.log.clear()
