"""The managed cluster autoscaler of GKE, for pools with autoscaling.

In scope: its template of a pool's nodes, and its changes to managed instance groups. Out of scope: scaling decisions
(`kube.autoscaler`), changes through the Container API (`lifecycle`).

Source: GKE cluster-autoscaler, packages labels and machinetypes (the template has type, partition, and clients);
docs: kubernetes-engine/concepts/cluster-autoscaler (limits per zone and in total, location policies).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.failures import planned_failure
from gpukube_sandbox.gke.lifecycle import Pace, add_machine, delete_machine
from gpukube_sandbox.gke.nodes import group_name, node_shape
from gpukube_sandbox.gke.supply import kind_of
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.enums import PoolStatus
from gpukube_sandbox.gke.wire.names import Place
from gpukube_sandbox.kube.autoscaler.groups import Failure, Group, Profile, make_template_node
from gpukube_sandbox.kube.nodes.draslices import expected_slices
from gpukube_sandbox.kube.nodes.gkeplugin import PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.faults import FaultBook
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.quotas import Quotas
    from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
    from gpukube_sandbox.kube.store.objects import JsonObject

_PROFILE = Profile("cloud.google.com/gke-accelerator", notifies_pods=True)
_BY_DRA = "cloud.google.com/gke-nvidia-gpu-dra-driver"
"""Label of pools whose GPUs the autoscaler counts in ResourceSlices (docs: set up dynamic resource allocation)."""
_URL = "https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}/instanceGroups/{group}-grp"
_ANY = wire.NodePoolAutoscaling.LocationPolicy.ANY
_FLEX_TRY_S = 30.0
_STOCKED_OUT = {"GCE_STOCKOUT": "GCE out of resources", "GCE_QUOTA_EXCEEDED": "GCE quota exceeded"}


@dataclass(slots=True)
class GkeGroups:
    """The managed instance groups of a cluster's autoscaled pools, one per zone; implements `Groups`.

    Attributes:
        faults: Returns the failure of a scale-up, if one is planned; its operation kind is "autoscale".
        quotas: Quotas that a scale-up is checked against.
        coming: Group -> number of machines that are coming up and have no name yet.
    """

    cluster: Cluster
    clock: Clock
    faults: FaultBook
    quotas: Quotas
    coming: dict[str, int] = dataclasses.field(default_factory=dict)

    async def profile(self) -> Profile | None:
        """Return the default profile; each pool turns autoscaling on for itself."""
        return _PROFILE

    def listed(self) -> list[Group]:
        """List the groups of autoscaled pools without a running operation; queued ones need a ProvisioningRequest."""
        return [
            group
            for pool in self.cluster.pools.values()
            if pool.wire.autoscaling.enabled
            and not pool.wire.queued_provisioning.enabled
            and pool.wire.status in {PoolStatus.RUNNING, PoolStatus.RUNNING_WITH_ERROR}
            for group in self._groups_of(pool)
        ]

    def _groups_of(self, pool: Pool) -> Iterator[Group]:
        scaling = pool.wire.autoscaling
        sizes = {zone: self._size(pool, zone) for zone in pool.wire.locations}
        total = sum(sizes.values())
        for zone, size in sizes.items():
            low, high = scaling.min_node_count, scaling.max_node_count
            if scaling.total_max_node_count:
                high = size + max(0, scaling.total_max_node_count - total)
                low = max(0, scaling.total_min_node_count - (total - size))
            nodes = tuple(pool.nodes.get(zone, ()))
            balanced = scaling.location_policy != _ANY
            yield Group(self._name(pool, zone), pool.name, nodes, size, low, high, zone, balanced)

    def _size(self, pool: Pool, zone: str) -> int:
        return len(pool.nodes.get(zone, ())) + self.coming.get(self._name(pool, zone), 0)

    def _coming(self, pool: Pool) -> list[int]:
        """Return the numbers of a pool's machines without a name yet, by zone."""
        return [self.coming.get(self._name(pool, zone), 0) for zone in pool.wire.locations]

    def template_node(self, name: str) -> JsonObject:
        """Return the node that the autoscaler expects: all pool settings, partitions and shared clients too."""
        pool, shape = self._template(name)
        by_plugin = shape.gpu if not _expects_slices(pool) else None
        return make_template_node(shape, {"nvidia.com/gpu": _devices(by_plugin)} if by_plugin else {})

    def template_slices(self, name: str) -> list[JsonObject]:
        """Return the slices that the autoscaler expects of pools with the label of NVIDIA's DRA driver."""
        pool, shape = self._template(name)
        return expected_slices(shape) if _expects_slices(pool) else []

    async def grow(self, name: str, count: int) -> Failure | None:
        """Add instances to a group; a stockout is reported early, because no operation waits for it."""
        pool, zone = self._find(name)
        self.coming[name] = self.coming.get(name, 0) + count
        pool.moved = True
        left, pace = count, Pace()
        try:
            try:
                fault = self.faults.operation("gke", self.cluster.name, pool.name, "autoscale")
                failure = planned_failure(fault, self._place(pool), pool.wire)
                failure = failure or self.quotas.late(self._place(pool), pool.wire, sum(self._coming(pool)))
            except GoogleError as error:
                return Failure(error.message, count, "refused")
            await self.clock.sleep(pace.allocate_s + (failure.delay_s if failure else 0))
            failed = _STOCKED_OUT.get(failure.code, failure.code) if failure else ""
            for _ in range(min(count, failure.after_nodes) if failure and failed else count):
                if not await self._launch(pool, zone, pace):
                    failed = self._shortage(pool, zone)
                    break
                self.coming[name] -= 1
                left -= 1
        finally:
            self.coming[name] -= left
        await self.cluster.kube.joined(pool.all_nodes())
        return Failure(failed, left, "machines") if failed else None

    def release(self, name: str) -> None:
        """Do nothing: only an operation requests machines besides the autoscaler, and that lists no group."""

    async def shrink(self, name: str, node: str) -> None:
        """Delete one instance of a group."""
        pool, zone = self._find(name)
        if node in pool.nodes.get(zone, ()):
            pool.moved = True
            await delete_machine(self.cluster, pool, zone, node)

    async def _launch(self, pool: Pool, zone: str, pace: Pace) -> bool:
        """Create an instance, and return whether there was a machine; flex start waits for one for a while."""
        until = self.clock.now() + (pace.flex_s if kind_of(pool.wire) == "flex" else 0)
        while not (came := await add_machine(self.cluster, pool, zone, pace.boot_s)) and self.clock.now() < until:
            await self.clock.sleep(_FLEX_TRY_S)
        return came

    def _shortage(self, pool: Pool, zone: str) -> str:
        failure = self.cluster.supply.shortage(self._place(pool), pool, zone)
        return _STOCKED_OUT.get(failure.code, failure.message)

    def _place(self, pool: Pool) -> Place:
        place = self.cluster.place
        return Place(place.project, place.location, place.cluster, pool.name)

    def _name(self, pool: Pool, zone: str) -> str:
        place = self._place(pool)
        return _URL.format(project=place.project, zone=zone, group=group_name(place, zone))

    def _template(self, name: str) -> tuple[Pool, NodeShape]:
        pool, zone = self._find(name)
        return pool, node_shape(self._place(pool), pool.wire, f"template-{pool.name}-{zone}", zone, 0.0)

    def _find(self, name: str) -> tuple[Pool, str]:
        return next(
            (pool, zone)
            for pool in self.cluster.pools.values()
            for zone in pool.wire.locations
            if self._name(pool, zone) == name
        )


def _expects_slices(pool: Pool) -> bool:
    return dict(pool.wire.config.labels).get(_BY_DRA) == "true"


def _devices(gpu: GpuShape) -> int:
    return gpu.count * (PARTITIONS.get(gpu.partition, 1) if gpu.partition else 1) * (gpu.clients or 1)
