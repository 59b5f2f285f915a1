"""The work behind an operation, on the sandbox's clock: machines are created, changed, and deleted.

In scope: everything between the response to a request and the end of its operation. Out of scope: wire formats of
requests, rules.

Durations are sandbox seconds. Known values: a creation takes 1 min 45 s to 6 min 35 s and a deletion about 12 s for an
empty pool (terraform-provider-google#1643); a stockout fails after 35 minutes (akka/akka-core#32992), with an attempt
about every 4 minutes (NVIDIA/aicr#2764); afterwards the pool's machines still come when there are some
(NVIDIA/aicr#2065). Unconfirmed: that a changed size waits as long (`resize_stockout_s`), and how long a flex-start
machine is waited for (`flex_s`).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.nodes import next_name, node_shape, retouch_node
from gpukube_sandbox.gke.pools import count_per_zone
from gpukube_sandbox.gke.wire.enums import BLUE_GREEN, Kind, OperationStatus, PoolStatus
from gpukube_sandbox.kube.draining import cordon, drain

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.failures import Failure
    from gpukube_sandbox.gke.operations import Operation
    from gpukube_sandbox.gke.pools import Lot, Pool
    from gpukube_sandbox.gke.wire.names import Place
_SOAK_S = 3600.0
"""Default of node_pool_soak_duration."""


@dataclass(slots=True)
class Pace:
    """Durations in sandbox seconds."""

    accept_s: float = 2.0
    allocate_s: float = 30.0
    boot_s: float = 60.0
    between_nodes_s: float = 2.0
    drain_s: float = 15.0
    drain_limit_s: float = 3600.0
    settle_s: float = 10.0
    note_s: float = 5.0
    cancel_s: float = 10.0
    stockout_s: float = 2100.0
    resize_stockout_s: float = 2100.0
    insert_s: float = 240.0
    flex_s: float = 180.0


class _Failed(Exception):
    """The failure of an operation: the planned one, or one for lack of machines."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Job:
    """A running operation and its context.

    Attributes:
        before: The properties that existing machines were created from, if they changed.
        rolls: Whether every machine is replaced.
        failure: Planned failure, if any.
    """

    cluster: Cluster
    pool: Pool
    place: Place
    operation: Operation
    clock: Clock
    pace: Pace
    failure: Failure | None = None
    before: wire.NodePool | None = None
    rolls: bool = False

    async def begin(self) -> None:
        """Set PENDING, then RUNNING."""
        await self.clock.sleep(self.pace.accept_s)
        self.operation.status = OperationStatus.RUNNING
        await self.clock.sleep(self.failure.delay_s if self.failure else 0)

    def end(self, failure: Failure | None = None) -> None:
        """End operation and pool: a pool without machines is in ERROR, one with some in RUNNING_WITH_ERROR."""
        pool = self.pool
        if failure:
            partly = bool(pool.all_nodes())
            pool.wire.status = PoolStatus.RUNNING_WITH_ERROR if partly else PoolStatus.ERROR
            pool.wire.conditions = [failure.condition()]
            pool.wire.status_message = failure.error()[1]
            self.operation.end(self.clock.now(), failure.error(), (failure.condition(),))
        else:
            pool.wire.status, pool.wire.status_message = PoolStatus.RUNNING, ""
            pool.wire.conditions = []
            self.operation.end(self.clock.now())
        pool.touch()
        self.cluster.kube.wake_autoscaler()

    def broken(self, error: BaseException) -> None:
        """End the operation after a bug of the sandbox, which must not leave it running forever."""
        self.pool.wire.status = PoolStatus.ERROR
        self.operation.end(self.clock.now(), (13, f"The sandbox broke: {error!r}"))

    @property
    def planned(self) -> Failure | None:
        """Return the planned failure; None if there is none, or only a delay."""
        return self.failure if self.failure and self.failure.code else None


async def run_create(job: Job) -> None:
    """Create the machines of a new pool."""
    await _run(job)


async def run_change(job: Job) -> None:
    """Change the machines of a pool to match its properties."""
    await _run(job)


async def run_settings(job: Job) -> None:
    """Change only stored properties, and the autoscaler's size within new limits."""
    await job.clock.sleep(job.pace.note_s)
    await _run(job)


async def _run(job: Job) -> None:
    try:
        await job.begin()
        await job.cluster.kube.joined(job.pool.all_nodes())  # a canceled upgrade's booting machines would miss it
        await _update_nodes(job)
        await _shrink(job)
        await (_roll(job) if job.rolls else _grow(job))
        await job.clock.sleep(job.pace.settle_s)
    except _Failed as failed:
        job.end(failed.failure)
        if failed.failure is not job.failure:
            await _recover(job)
    else:
        job.end()


async def run_delete(job: Job) -> None:
    """Drain and delete every machine, then the pool."""
    await job.begin()
    if job.planned:
        job.end(job.planned)
        return
    for zone, names in job.pool.nodes.items():
        while names:
            await _remove(job, zone, names[-1])
    await job.clock.sleep(job.pace.settle_s)
    job.cluster.pools.pop(job.pool.name, None)
    job.operation.end(job.clock.now())


async def run_cancel(job: Job) -> None:
    """Cancel the running work at once (CancelOperation of an upgrade); completed steps are not rolled back."""
    task = job.operation.task
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    job.operation.status = OperationStatus.ABORTING
    await job.clock.sleep(job.pace.cancel_s)
    job.pool.wire.status = PoolStatus.RUNNING
    job.pool.touch()
    job.operation.end(job.clock.now())


def _target_sizes(pool: Pool) -> dict[str, int]:
    """Return the number of machines per zone: the autoscaler's last size stays, within its limits."""
    declared = dict(zip(pool.wire.locations, count_per_zone(pool.wire), strict=True))
    scaling = pool.wire.autoscaling
    if not pool.made:
        return declared
    sizes = {zone: len(pool.nodes.get(zone, ())) for zone in pool.wire.locations} if pool.moved else declared
    if not scaling.enabled:
        return sizes
    if not scaling.total_max_node_count:
        return {zone: min(max(size, scaling.min_node_count), scaling.max_node_count) for zone, size in sizes.items()}
    while sum(sizes.values()) < scaling.total_min_node_count:
        sizes[min(sizes, key=lambda zone: (sizes[zone], zone))] += 1
    while sum(sizes.values()) > scaling.total_max_node_count:
        sizes[max(sizes, key=lambda zone: (sizes[zone], zone))] -= 1
    return sizes


async def _update_nodes(job: Job) -> None:
    """Apply labels and taints to existing nodes in place (NVIDIA/aicr docs/integrator/gke-gpu-setup.md)."""
    if job.before is None or job.rolls:  # a machine that will be replaced keeps its old ones
        return
    for name in job.pool.all_nodes():
        await retouch_node(job.cluster.kube, name, job.before, job.pool.wire)


async def _shrink(job: Job) -> None:
    sizes = _target_sizes(job.pool)
    for zone in list(job.pool.nodes):
        while len(job.pool.nodes[zone]) > sizes.get(zone, 0):
            await _remove(job, zone, job.pool.nodes[zone][-1])


async def _remove(job: Job, zone: str, name: str) -> None:
    await job.clock.sleep(job.pace.drain_s)
    await delete_machine(job.cluster, job.pool, zone, name)


async def delete_machine(cluster: Cluster, pool: Pool, zone: str, name: str) -> None:
    """Delete a machine; a cancellation in between must not leave a node without its machine."""
    pool.nodes[zone].remove(name)
    cluster.supply.give_back(zone, pool.lots.pop(name))
    await asyncio.shield(cluster.kube.remove_node(name))


async def _grow(job: Job) -> None:
    missing = _missing(job.pool)
    if missing:
        await job.clock.sleep(job.pace.allocate_s)
    left: list[str] = []
    for created, zone in enumerate(missing):
        if job.planned and created >= job.planned.after_nodes:
            break
        if not await add_machine(job.cluster, job.pool, zone, job.pace.boot_s):
            left.append(zone)
            continue
        job.operation.done = (created + 1 - len(left), len(missing))
        await job.clock.sleep(job.pace.between_nodes_s)
    await _fail_if_planned(job)
    await _insert(job, left)
    if missing:
        await job.clock.sleep(job.pace.boot_s)
        await job.cluster.kube.joined(job.pool.all_nodes())  # two parallel sleeps could end in either order


def _missing(pool: Pool) -> list[str]:
    """Return a zone for each machine that a pool lacks."""
    return [zone for zone, count in _target_sizes(pool).items() for _ in range(count - len(_nodes_in(pool, zone)))]


async def _insert(job: Job, zones: list[str]) -> None:
    """Try again and again to create machines that were not available; fail at the limit of the instance group."""
    is_new = job.operation.kind == Kind.CREATE_NODE_POOL
    left, until = list(zones), job.clock.now() + (job.pace.stockout_s if is_new else job.pace.resize_stockout_s)
    while left:
        wait_s = min(job.pace.insert_s, until - job.clock.now())
        if wait_s <= 0:
            raise _Failed(job.cluster.supply.shortage(job.place, job.pool, left[0]))
        await job.clock.sleep(wait_s)
        left = [zone for zone in left if not await add_machine(job.cluster, job.pool, zone, job.pace.boot_s)]


async def _recover(job: Job) -> None:
    """Keep trying after the operation has ended; the pool runs as soon as it has all its machines.

    A later operation on the pool ends this.
    """
    pool, states = job.pool, (PoolStatus.ERROR, PoolStatus.RUNNING_WITH_ERROR)

    def goes_on() -> bool:
        is_there = job.cluster.pools.get(pool.name) is pool
        return is_there and pool.operation == job.operation.name and pool.wire.status in states

    while goes_on():
        await job.clock.sleep(job.pace.insert_s)
        zones = _missing(pool) if goes_on() else []
        came = [await add_machine(job.cluster, pool, zone, job.pace.boot_s) for zone in zones]
        if goes_on() and all(came):
            await job.clock.sleep(job.pace.boot_s)
            await job.cluster.kube.joined(pool.all_nodes())
            if goes_on():
                pool.wire.status, pool.wire.status_message, pool.wire.conditions = PoolStatus.RUNNING, "", []
                pool.touch()
                job.cluster.kube.wake_autoscaler()


async def _fail_if_planned(job: Job) -> None:
    if not job.planned:
        return
    if job.planned.is_stockout:
        await job.clock.sleep(job.pace.stockout_s)
    raise _Failed(job.planned)


async def _roll(job: Job) -> None:
    """Replace the machines one by one; without a surge the old one is deleted first."""
    if job.pool.wire.upgrade_settings.strategy == BLUE_GREEN:
        await _roll_blue_green(job)
        return
    surges = job.pool.wire.upgrade_settings.max_surge > 0
    old = [(zone, name) for zone, names in job.pool.nodes.items() for name in names]
    for at, (zone, name) in enumerate(old):
        if job.planned and at >= job.planned.after_nodes:
            raise _Failed(job.planned)
        if not surges:
            await _drain(job, name)
            await _remove(job, zone, name)
        await _replace(job, [zone])
        if surges:
            await _drain(job, name)
            await _remove(job, zone, name)
        job.operation.done = (at + 1, len(old))
    await _grow(job)


async def _roll_blue_green(job: Job) -> None:
    """Create a second set of machines, drain the first in batches, and delete it after a soak.

    Source: docs: kubernetes-engine/concepts/node-pool-upgrade-strategies; BlueGreenSettings in google.container.v1,
    also for the defaults.
    """
    settings = job.pool.wire.upgrade_settings.blue_green_settings
    policy = settings.standard_rollout_policy
    old = [(zone, name) for zone, names in job.pool.nodes.items() for name in names]
    await _fail_if_planned(job)
    await _replace(job, [zone for zone, _ in old])
    await cordon(job.cluster.kube.api, [name for _, name in old], unschedulable=True)
    size = policy.batch_node_count or max(1, round(len(old) * (policy.batch_percentage or 1.0)))
    for start in range(0, len(old), size):
        for _, name in old[start : start + size]:
            await _drain(job, name)
        await job.clock.sleep(policy.batch_soak_duration.total_seconds())
        job.operation.done = (min(start + size, len(old)), len(old))
    soak = settings.node_pool_soak_duration.total_seconds() if "node_pool_soak_duration" in settings else _SOAK_S
    await job.clock.sleep(soak)
    for zone, name in old:
        await _remove(job, zone, name)
    await _grow(job)


async def _replace(job: Job, zones: list[str]) -> None:
    """Create the machines that replace others, and wait until they are nodes."""
    left = [zone for zone in zones if not await add_machine(job.cluster, job.pool, zone, job.pace.boot_s)]
    await _insert(job, left)
    await job.clock.sleep(job.pace.boot_s)
    await job.cluster.kube.joined(job.pool.all_nodes())


async def _drain(job: Job, name: str) -> None:
    """Evict a machine's pods for an hour or the pool's own limit; remaining pods are deleted with it.

    Source: docs: kubernetes-engine/concepts/node-pool-upgrade-strategies; google.container.v1 NodeDrainConfig.
    """
    own = job.pool.wire.node_drain_config
    limit = own.pdb_timeout_duration.total_seconds() if "pdb_timeout_duration" in own else job.pace.drain_limit_s
    await drain(job.cluster.kube.api, job.clock, [name], limit)


def _nodes_in(pool: Pool, zone: str) -> list[str]:
    return pool.nodes.setdefault(zone, [])


async def seed_pool(cluster: Cluster, pool: Pool) -> None:
    """Create the machines of a pool that exists from the start, already booted."""
    for zone in _missing(pool):
        await _create(cluster, pool, zone, cluster.supply.add(pool, zone), 0.0)


async def add_machine(cluster: Cluster, pool: Pool, zone: str, boot_s: float) -> bool:
    """Create one machine; return whether there was one."""
    lot = cluster.supply.take(_place_of(cluster, pool), pool, zone)
    if lot is not None:
        await _create(cluster, pool, zone, lot, boot_s)
    return lot is not None


async def _create(cluster: Cluster, pool: Pool, zone: str, lot: Lot, boot_s: float) -> None:
    place = _place_of(cluster, pool)
    name = next_name(place, pool, zone)
    _nodes_in(pool, zone).append(name)
    pool.lots[name] = lot
    await cluster.kube.add_node(node_shape(place, pool.wire, name, zone, boot_s))


def _place_of(cluster: Cluster, pool: Pool) -> Place:
    return replace(cluster.place, pool=pool.name)
