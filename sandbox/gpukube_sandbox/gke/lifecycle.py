"""The work behind an operation, on the sandbox's clock: machines come, change and go.

In scope: what happens between the answer to a request and the end of its operation. Out of scope: wire formats
of requests, rules.

Durations are sandbox seconds. Known are: a creation of 1 min 45 s to 6 min 35 s and a deletion of about 12 s for an
empty pool (terraform-provider-google#1643), 35 minutes until a stock-out is given up (akka/akka-core#32992).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.nodes import next_name, node_shape, retouch_node
from gpukube_sandbox.gke.pools import count_per_zone
from gpukube_sandbox.gke.wire.enums import OperationStatus, PoolStatus
from gpukube_sandbox.kube.draining import drain

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.failures import Failure
    from gpukube_sandbox.gke.operations import Operation
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.wire.names import Place


@dataclass(slots=True)
class Pace:
    """How long things take, in sandbox seconds."""

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


class _Failed(Exception):
    """The planned failure of an operation."""


@dataclass(frozen=True, slots=True)
class Job:
    """One operation at work.

    Attributes:
        before: What living machines were made from, when that changed.
        rolls: Every machine is replaced by a new one.
        failure: What was planned to go wrong.
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
        """PENDING, then RUNNING."""
        await self.clock.sleep(self.pace.accept_s)
        self.operation.status = OperationStatus.RUNNING
        await self.clock.sleep(self.failure.delay_s if self.failure else 0)

    def end(self, *, failed: bool = False) -> None:
        """Settle pool and operation: a pool without any machine is in ERROR, one with some RUNNING_WITH_ERROR."""
        pool, failure = self.pool, self.failure
        if failed and failure:
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
        """A mistake of the sandbox itself must not leave an operation running for ever."""
        self.pool.wire.status = PoolStatus.ERROR
        self.operation.end(self.clock.now(), (13, f"The sandbox broke: {error!r}"))

    def fails(self) -> bool:
        """Whether it is to fail, and not only to take longer."""
        return self.failure is not None and bool(self.failure.code)


async def run_create(job: Job) -> None:
    """Bring up the machines of a new pool."""
    await _run(job)


async def run_change(job: Job) -> None:
    """Bring the machines of a pool to what it says now."""
    await _run(job)


async def run_note(job: Job) -> None:
    """Change only what is written down, and what an autoscaler makes of it."""
    await job.clock.sleep(job.pace.note_s)
    await _run(job)


async def _run(job: Job) -> None:
    try:
        await job.begin()
        await job.cluster.kube.joined(job.pool.all_nodes())  # what a cancelled upgrade left booting would miss it
        await _retouch(job)
        await _shrink(job)
        await (_roll(job) if job.rolls else _grow(job))
        await job.clock.sleep(job.pace.settle_s)
    except _Failed:
        job.end(failed=True)
    else:
        job.end()


async def run_delete(job: Job) -> None:
    """Drain and remove every machine, then the pool."""
    await job.begin()
    if job.fails():
        job.end(failed=True)
        return
    for zone, names in job.pool.nodes.items():
        while names:
            await _remove(job, zone, names[-1])
    await job.clock.sleep(job.pace.settle_s)
    job.cluster.pools.pop(job.pool.name, None)
    job.operation.end(job.clock.now())


async def run_cancel(job: Job) -> None:
    """Stop what runs where it stands (CancelOperation of an upgrade); nothing is rolled back."""
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
    """Describe how many machines each zone shall have: what an autoscaler has made of it stays, within its limits."""
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


async def _retouch(job: Job) -> None:
    """Labels and taints reach living nodes in place (NVIDIA/aicr docs/integrator/gke-gpu-setup.md)."""
    if job.before is None or job.rolls:  # a machine that is replaced stays as it was made
        return
    for name in job.pool.all_nodes():
        await retouch_node(job.cluster.kube, name, job.before, job.pool.wire)


async def _shrink(job: Job) -> None:
    wanted = _target_sizes(job.pool)
    for zone in list(job.pool.nodes):
        while len(job.pool.nodes[zone]) > wanted.get(zone, 0):
            await _remove(job, zone, job.pool.nodes[zone][-1])


async def _remove(job: Job, zone: str, name: str) -> None:
    """Take a machine away; a cancellation in between must leave no node without its machine."""
    await job.clock.sleep(job.pace.drain_s)
    job.pool.nodes[zone].remove(name)
    await asyncio.shield(job.cluster.kube.remove_node(name))


async def _grow(job: Job) -> None:
    missing = [zone for zone, count in _target_sizes(job.pool).items() for _ in range(count - len(_of(job.pool, zone)))]
    if missing:
        await job.clock.sleep(job.pace.allocate_s)
    for made, zone in enumerate(missing):
        if job.fails() and job.failure and made >= job.failure.after_nodes:
            break
        await add_machine(job.cluster, job.pool, job.place, zone, job.pace.boot_s)
        job.operation.done = (made + 1, len(missing))
        await job.clock.sleep(job.pace.between_nodes_s)
    await _fail_if_planned(job)
    if missing:
        await job.clock.sleep(job.pace.boot_s)
        await job.cluster.kube.joined(job.pool.all_nodes())  # two sleeps side by side could end in any order


async def _fail_if_planned(job: Job) -> None:
    if not job.fails():
        return
    if job.failure and job.failure.is_stockout:
        await job.clock.sleep(job.pace.stockout_s)
    raise _Failed


async def _roll(job: Job) -> None:
    """Replace the machines one by one; without a surge the old one goes before the new one comes."""
    surges = job.pool.wire.upgrade_settings.max_surge > 0
    old = [(zone, name) for zone, names in job.pool.nodes.items() for name in names]
    for at, (zone, name) in enumerate(old):
        if job.fails() and job.failure and at >= job.failure.after_nodes:
            raise _Failed
        if not surges:
            await _drain(job, name)
            await _remove(job, zone, name)
        await add_machine(job.cluster, job.pool, job.place, zone, job.pace.boot_s)
        await job.clock.sleep(job.pace.boot_s)
        await job.cluster.kube.joined(job.pool.all_nodes())
        if surges:
            await _drain(job, name)
            await _remove(job, zone, name)
        job.operation.done = (at + 1, len(old))
    await _grow(job)


async def _drain(job: Job, name: str) -> None:
    """Evict what is on a machine, for an hour or the pool's own limit; what is left goes with it.

    Source: docs: kubernetes-engine/concepts/node-pool-upgrade-strategies; google.container.v1 NodeDrainConfig.
    """
    own = job.pool.wire.node_drain_config
    limit = own.pdb_timeout_duration.total_seconds() if "pdb_timeout_duration" in own else job.pace.drain_limit_s
    await drain(job.cluster.kube.api, job.clock, [name], limit)


def _of(pool: Pool, zone: str) -> list[str]:
    return pool.nodes.setdefault(zone, [])


async def seed_pool(cluster: Cluster, pool: Pool, place: Place) -> None:
    """Give a pool that has always been there its machines, booted already."""
    for zone, count in _target_sizes(pool).items():
        while len(_of(pool, zone)) < count:
            await add_machine(cluster, pool, place, zone, 0.0)


async def add_machine(cluster: Cluster, pool: Pool, place: Place, zone: str, boot_s: float) -> None:
    """Bring up one machine."""
    name = next_name(place, pool, zone)
    _of(pool, zone).append(name)
    await cluster.kube.add_node(node_shape(place, pool.wire, name, zone, boot_s))
