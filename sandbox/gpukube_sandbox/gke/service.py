"""google.container.v1.ClusterManager: the calls.

In scope: the calls, as methods from request to response that may raise a `GoogleError`. Out of scope: transports
(`transports.rest`, `transports.rpc`), rules, the work behind an operation (`lifecycle`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire
from google.protobuf import empty_pb2  # type: ignore[import-untyped] # ships no types

from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.gke.failures import planned_failure
from gpukube_sandbox.gke.lifecycle import Job, Pace, run_cancel, run_change, run_create, run_delete, run_settings
from gpukube_sandbox.gke.nodes import group_name
from gpukube_sandbox.gke.operations import Operation, require_room
from gpukube_sandbox.gke.pools import GPU_TAINT, Pool, clone, count_per_zone, fill_defaults, has_gpu
from gpukube_sandbox.gke.provisioning import check_repair, check_reservation
from gpukube_sandbox.gke.quotas import Quotas
from gpukube_sandbox.gke.references import Known, check_account, check_resources, owner_of
from gpukube_sandbox.gke.rules.pool import check_autoscaling, check_management, check_pool, check_size
from gpukube_sandbox.gke.supply import RESERVED, Supply
from gpukube_sandbox.gke.updates import ROLLING, apply_update, changed_group
from gpukube_sandbox.gke.wire.answers import GoogleError, bad, blocked, missing
from gpukube_sandbox.gke.wire.enums import BLUE_GREEN, Kind, OperationStatus, PoolStatus
from gpukube_sandbox.gke.wire.names import Place, is_location, parse_name
from gpukube_sandbox.throttle import Buckets, Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.faults import FaultBook
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.failures import Failure
    from gpukube_sandbox.stock import Stock

BASE = "https://container.googleapis.com/v1/"
"""Prefix of the links in resources; clients do not connect to it."""
_GROUPS = "https://www.googleapis.com/compute/v1/"
_REQUESTS = Limit(5000, 50.0)
"""3,000 requests per minute and project, measured over 100 seconds (docs: kubernetes-engine/quotas)."""
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class GkeService:
    """All clusters of all projects.

    Attributes:
        faults: Planned failures of operations.
        stock: Available machines.
        secret: The access token, for the Kubernetes APIs too.
        things: Declared resources by project.
    """

    clock: Clock
    faults: FaultBook
    stock: Stock
    secret: str = field(default_factory=new_secret, repr=False)
    pace: Pace = field(default_factory=Pace)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    things: dict[str, Known] = field(default_factory=dict)
    throttle: Buckets = field(init=False)
    quotas: Quotas = field(init=False)
    supply: Supply = field(init=False)

    def __post_init__(self) -> None:
        """Create the token buckets, and let quotas and reservations count the machines of all clusters."""
        self.quotas = Quotas(self.clusters)
        self.supply = Supply(self.stock, self.clusters, self.things)
        self.throttle = Buckets(self.clock, {"gke-requests": _REQUESTS})

    async def reset(self) -> None:
        """Cancel running operations and delete all state."""
        tasks = [operation.task for operation in self.operations.values() if operation.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clusters.clear()
        self.operations.clear()
        self.things.clear()
        self.quotas.limits.clear()
        self.throttle.reset()
        self.pace = Pace()

    def known(self, project: str) -> Known:
        """Return the declared resources of a project."""
        return self.things.get(project) or Known()

    def has_project(self, name: str) -> bool:
        """Return whether a project exists, which is one with resources here; if no project has any, all exist."""
        projects = self.projects()
        return not projects or name in projects

    def projects(self) -> set[str]:
        """Return the projects with a cluster, a declared resource, or a quota."""
        return {
            *(cluster.place.project for cluster in self.clusters.values()),
            *self.things,
            *(project for project, _, _ in self.quotas.limits),
        }

    def admit(self, request: object) -> None:
        """Reject a location that does not exist, and count a request against its project's limit.

        Raises:
            GoogleError: 403 PERMISSION_DENIED (GoogleCloudPlatform/healthcare#475); 429 RESOURCE_EXHAUSTED (the names
                of metric and limit are unconfirmed).
        """
        place = _place(request)
        anywhere = place.location == "-" and not place.cluster and not place.operation
        if not anywhere and not is_location(place.location):
            raise GoogleError(
                "PERMISSION_DENIED", f"Permission denied on 'locations/{place.location}' (or it may not exist)."
            )
        if self.throttle.wait_s("gke-requests", place.project):
            raise GoogleError(
                "RESOURCE_EXHAUSTED",
                "Quota exceeded for quota metric 'API requests' and limit 'API requests per minute' of service "
                f"'container.googleapis.com' for consumer 'project:{place.project}'.",
            )

    # Clusters

    def get_cluster(self, request: wire.GetClusterRequest) -> wire.Cluster:
        """Return one cluster."""
        return self._cluster(_place(request)).message(self.clock.now(), BASE)

    def list_clusters(self, request: wire.ListClustersRequest) -> wire.ListClustersResponse:
        """Return the clusters of a project, in one location or in all ("-")."""
        place = _place(request)
        found = [cluster.message(self.clock.now(), BASE) for cluster in self._clusters_at(place)]
        return wire.ListClustersResponse(clusters=found)

    def update_cluster(self, request: wire.UpdateClusterRequest) -> wire.Operation:
        """Update a node pool as gcloud does here: its autoscaling, or the version and image of its nodes."""
        place, update = _place(request), request.update
        cluster = self._cluster(place)
        name = update.desired_node_pool_id
        # desired_node_pool_id is required if there are several pools (its comment).
        if not name and len(cluster.pools) == 1:
            name = next(iter(cluster.pools))
        pool = Place(place.project, place.location, place.cluster, name)
        if "desired_node_pool_autoscaling" in update:
            return self._scale(cluster, pool, update.desired_node_pool_autoscaling)
        if update.desired_node_version or update.desired_image_type:
            if not name:
                raise bad("Desired_node_pool_id must be specified: the cluster has more than one node pool.")
            converted = wire.UpdateNodePoolRequest(
                name=pool.pool_name, node_version=update.desired_node_version, image_type=update.desired_image_type
            )
            return self.update_node_pool(converted)
        raise GoogleError("UNIMPLEMENTED", "The sandbox updates only the node pools of a cluster.")

    def get_server_config(self, request: wire.GetServerConfigRequest) -> wire.ServerConfig:
        """Return versions and images."""
        versions = sorted({cluster.version for cluster in self._clusters_at(_place(request))}, reverse=True)
        return wire.ServerConfig(
            default_cluster_version=versions[0] if versions else "",
            valid_node_versions=versions,
            valid_master_versions=versions,
            default_image_type="COS_CONTAINERD",
            valid_image_types=["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
        )

    def _clusters_at(self, place: Place) -> list[Cluster]:
        return [
            cluster
            for cluster in self.clusters.values()
            if cluster.place.project == place.project and place.location in {"-", cluster.place.location}
        ]

    def _cluster(self, place: Place) -> Cluster:
        found = self.clusters.get(cluster_key(place.project, place.location, place.cluster))
        if found is None or not place.cluster:
            raise missing(place.cluster_name)
        return found

    # Pools

    def list_node_pools(self, request: wire.ListNodePoolsRequest) -> wire.ListNodePoolsResponse:
        """Return all pools of a cluster; there is no paging."""
        return wire.ListNodePoolsResponse(node_pools=self._cluster(_place(request)).listed(self.clock.now()))

    def get_node_pool(self, request: wire.GetNodePoolRequest) -> wire.NodePool:
        """Return one pool."""
        place = _place(request)
        return self._pool(self._cluster(place), place).wire

    def create_node_pool(self, request: wire.CreateNodePoolRequest) -> wire.Operation:
        """Create a pool."""
        parent = _place(request)
        cluster, sent = self._cluster(parent), clone(request.node_pool)
        place = Place(parent.project, parent.location, parent.cluster, sent.name)
        if cluster.options.autopilot:
            raise bad("Autopilot clusters do not support mutating node pools.")
        if sent.name in cluster.pools:
            raise GoogleError("ALREADY_EXISTS", f"Already exists: {place.pool_name}.")
        self._prepare(cluster, place, sent)
        require_room(self._running(cluster), place, Kind.CREATE_NODE_POOL, cluster.blocker(self.clock.now()))
        failure = self._plan(cluster, place, Kind.CREATE_NODE_POOL, sent)
        sent.status = PoolStatus.PROVISIONING
        pool = cluster.pools[sent.name] = Pool(sent)
        pool.listed_from = self.clock.now() + self.faults.lag("gke", cluster.name, sent.name)
        pool.touch()
        return self._start(cluster, pool, Kind.CREATE_NODE_POOL, run_create, failure)

    def _prepare(self, cluster: Cluster, place: Place, pool: wire.NodePool) -> None:
        """Set defaults, check the pool, and add what GKE adds."""
        fill_defaults(pool, cluster.version, cluster.zones, cluster.options.release_channel)
        check_pool(pool, cluster.facts)
        check_account(pool.config, {name for known in self.things.values() for name in known.accounts})
        check_resources(pool, place, self.known)
        self._check_supply(cluster, place, pool)
        self.complete(cluster, place, pool)

    @staticmethod
    def complete(cluster: Cluster, place: Place, pool: wire.NodePool) -> None:
        """Add the taint of a GPU pool and the links.

        GKE adds the taint at creation, and only if the cluster then has a pool without GPUs (docs: how-to/gpus); a
        taint in the request is not duplicated.
        """
        others = any(not has_gpu(other.wire) for other in cluster.pools.values())
        key, value, effect = GPU_TAINT
        if has_gpu(pool) and others and not any(taint.key == key for taint in pool.config.taints):
            pool.config.taints.append(wire.NodeTaint(key=key, value=value, effect=effect))
        pool.self_link = BASE + place.pool_name
        pool.instance_group_urls = [
            f"{_GROUPS}projects/{place.project}/zones/{zone}/instanceGroupManagers/{group_name(place, zone)}-grp"
            for zone in pool.locations
        ]

    def _check_supply(self, cluster: Cluster, place: Place, pool: wire.NodePool) -> None:
        others = [other.wire for other in cluster.pools.values() if other.name != pool.name]
        declared = self.known(owner_of(pool, place.project)).reservations
        own = cluster.pools.get(pool.name)

        def room(zone: str) -> int | None:
            free = self.stock.free("gke", zone, pool.config.machine_type, RESERVED)
            return None if free is None else free + len(own.nodes.get(zone, ()) if own else ())

        check_reservation(pool, others, declared | cluster.options.reservations, room)
        self.quotas.check(place, cluster.pools.get(pool.name), pool)

    def update_node_pool(self, request: wire.UpdateNodePoolRequest) -> wire.Operation:
        """Update one group of attributes."""
        place = _place(request)
        cluster = self._cluster(place)
        pool = self._pool(cluster, place)
        group = changed_group(request)
        after = clone(pool.wire)
        apply_update(after, request, group, cluster.facts)
        self._check_supply(cluster, place, after)
        return self._change(cluster, pool, after, Kind.UPGRADE_NODES, rolls=group in ROLLING)

    def set_node_pool_size(self, request: wire.SetNodePoolSizeRequest) -> wire.Operation:
        """Set the nodes per zone; an autoscaler continues from there, within its bounds.

        Source: hashicorp/terraform-provider-google#2901 and kubernetes-sigs/cluster-api-provider-gcp#1134, whose users
        resize such pools.
        """
        place = _place(request)
        cluster = self._cluster(place)
        pool = self._pool(cluster, place)
        check_size(request.node_count)
        after = clone(pool.wire)
        after.initial_node_count = request.node_count
        pool.moved = False
        self._check_supply(cluster, place, after)
        return self._change(cluster, pool, after, Kind.SET_NODE_POOL_SIZE)

    def set_node_pool_autoscaling(self, request: wire.SetNodePoolAutoscalingRequest) -> wire.Operation:
        """Replace the autoscaling as a whole."""
        place = _place(request)
        return self._scale(self._cluster(place), place, request.autoscaling)

    def _scale(self, cluster: Cluster, place: Place, scaling: wire.NodePoolAutoscaling) -> wire.Operation:
        pool = self._pool(cluster, place)
        check_autoscaling(scaling)
        after = clone(pool.wire)
        after.autoscaling = scaling
        return self._change(cluster, pool, after, Kind.UPDATE_CLUSTER, work=run_settings)

    def set_node_pool_management(self, request: wire.SetNodePoolManagementRequest) -> wire.Operation:
        """Replace the management as a whole; may run alongside other operations."""
        place = _place(request)
        cluster = self._cluster(place)
        pool = self._pool(cluster, place)
        check_management(request.management, cluster.options.release_channel)
        check_repair(pool.wire, request.management)
        kind = Kind.SET_NODE_POOL_MANAGEMENT
        require_room(self._running(cluster), place, kind, cluster.blocker(self.clock.now()))
        pool.wire.management = request.management
        pool.touch()
        operation = self._record(Operation.begin(pool_place(cluster, pool), kind, self.clock.now()))
        operation.task = asyncio.create_task(self._settle(operation))
        return operation.message(BASE)

    async def _settle(self, operation: Operation) -> None:
        await self.clock.sleep(self.pace.note_s)
        operation.end(self.clock.now())

    def delete_node_pool(self, request: wire.DeleteNodePoolRequest) -> wire.Operation:
        """Delete a pool."""
        place = _place(request)
        cluster = self._cluster(place)
        pool = self._pool(cluster, place)
        require_room(self._running(cluster), place, Kind.DELETE_NODE_POOL, cluster.blocker(self.clock.now()))
        failure = self._plan(cluster, place, Kind.DELETE_NODE_POOL, pool.wire)
        pool.wire.status = PoolStatus.STOPPING
        return self._start(cluster, pool, Kind.DELETE_NODE_POOL, run_delete, failure)

    @staticmethod
    def _pool(cluster: Cluster, place: Place) -> Pool:
        found = cluster.pools.get(place.pool)
        if found is None:
            raise missing(place.pool_name)
        return found

    # Operations

    def get_operation(self, request: wire.GetOperationRequest) -> wire.Operation:
        """Return one operation."""
        return self._operation(_place(request)).message(BASE)

    def list_operations(self, request: wire.ListOperationsRequest) -> wire.ListOperationsResponse:
        """Return the operations of a project, in one location or in all ("-")."""
        place = _place(request)
        found = [
            operation.message(BASE)
            for operation in self.operations.values()
            if operation.place.project == place.project and place.location in {"-", operation.place.location}
        ]
        return wire.ListOperationsResponse(operations=found)

    def cancel_operation(self, request: wire.CancelOperationRequest) -> empty_pb2.Empty:
        """Cancel an upgrade; other operations cannot be canceled (the proto's comment on Operation.Type)."""
        operation = self._operation(_place(request))
        if operation.kind != Kind.UPGRADE_NODES or operation.status == OperationStatus.ABORTING:
            raise blocked(f"Operation {operation.name} of type {operation.kind.name} cannot be cancelled.")
        cluster = self._cluster(operation.place)
        if operation.is_running:
            job = Job(cluster, self._pool(cluster, operation.place), operation.place, operation, self.clock, self.pace)
            operation.status = OperationStatus.ABORTING
            task = asyncio.create_task(run_cancel(job))
            task.add_done_callback(functools.partial(_end_if_broken, job))
        return empty_pb2.Empty()

    def _operation(self, place: Place) -> Operation:
        found = self.operations.get(place.operation)
        if found is None or (found.place.project, found.place.location) != (place.project, place.location):
            raise missing(f"{place.parent}/operations/{place.operation}")
        return found

    def _running(self, cluster: Cluster) -> list[Operation]:
        cluster_place = cluster.place
        return [
            operation
            for operation in self.operations.values()
            if operation.is_running
            and (operation.place.project, operation.place.location, operation.place.cluster)
            == (cluster_place.project, cluster_place.location, cluster_place.cluster)
        ]

    def _plan(self, cluster: Cluster, place: Place, kind: wire.Operation.Type, pool: wire.NodePool) -> Failure | None:
        return planned_failure(self.faults.operation("gke", cluster.name, pool.name, kind.name), place, pool)

    def _change(  # noqa: PLR0913 - the parts of one operation
        self,
        cluster: Cluster,
        pool: Pool,
        after: wire.NodePool,
        kind: wire.Operation.Type,
        *,
        work: Callable[[Job], Coroutine[object, object, None]] = run_change,
        rolls: bool = False,
    ) -> wire.Operation:
        place = pool_place(cluster, pool)
        require_room(self._running(cluster), place, kind, cluster.blocker(self.clock.now()))
        failure = self._plan(cluster, place, kind, after)
        if rolls:
            settings = after.upgrade_settings
            # A blue-green upgrade doubles the number of machines.
            added = sum(count_per_zone(after)) if settings.strategy == BLUE_GREEN else settings.max_surge
            surge = min(added, len(pool.all_nodes()))
            failure = failure or self.quotas.late(place, after, surge)
        before, pool.wire = pool.wire, after
        after.status = PoolStatus.RECONCILING
        self.complete_links(place, after)
        pool.touch()
        return self._start(cluster, pool, kind, work, failure, before=before, rolls=rolls)

    @staticmethod
    def complete_links(place: Place, pool: wire.NodePool) -> None:
        """Set the instance groups of the pool's zones."""
        pool.instance_group_urls = [
            f"{_GROUPS}projects/{place.project}/zones/{zone}/instanceGroupManagers/{group_name(place, zone)}-grp"
            for zone in pool.locations
        ]

    def _record(self, operation: Operation) -> Operation:
        self.operations[operation.name] = operation
        return operation

    def _start(  # noqa: PLR0913 - the parts of one operation
        self,
        cluster: Cluster,
        pool: Pool,
        kind: wire.Operation.Type,
        work: Callable[[Job], Coroutine[object, object, None]],
        failure: Failure | None,
        *,
        before: wire.NodePool | None = None,
        rolls: bool = False,
    ) -> wire.Operation:
        place = pool_place(cluster, pool)
        operation = self._record(Operation.begin(place, kind, self.clock.now()))
        pool.operation = operation.name
        job = Job(cluster, pool, place, operation, self.clock, self.pace, failure, before, rolls)
        operation.task = asyncio.create_task(work(job))
        operation.task.add_done_callback(functools.partial(_end_if_broken, job))
        return operation.message(BASE)


def cluster_key(project: str, location: str, name: str) -> str:
    """Return a cluster's key in the service, which is its path on the Kubernetes port."""
    return f"{project}/{location}/{name}".lower()


def pool_place(cluster: Cluster, pool: Pool) -> Place:
    """Return the name of a pool."""
    return Place(cluster.place.project, cluster.place.location, cluster.place.cluster, pool.name)


def _place(request: object) -> Place:
    """Return the name in a request, from `name` or `parent`, or from the old separate fields."""
    given = str(getattr(request, "name", "") or getattr(request, "parent", ""))
    if given:
        return parse_name(given)
    old = {key: str(getattr(request, field, "")) for key, field in _OLD_FIELDS.items()}
    if not old["project"] or not old["location"]:
        raise bad("Name or parent must be specified.")
    return Place(**old)


_OLD_FIELDS = {
    "project": "project_id",
    "location": "zone",
    "cluster": "cluster_id",
    "pool": "node_pool_id",
    "operation": "operation_id",
}


def _end_if_broken(job: Job, task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("operation on %s broke", job.pool.name, exc_info=error)
        job.broken(error)
