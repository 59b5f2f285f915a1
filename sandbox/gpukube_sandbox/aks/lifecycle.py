"""The work behind an operation, on the sandbox's clock: machines are created, changed, and deleted.

In scope: everything between the response to a request and the end of its operation. Out of scope: HTTP, rules.

Durations are sandbox seconds within the known limits: bootstrap takes at most 15 minutes, a MIG node reboots once
(Azure/AgentBaker parts/linux/cloud-init/artifacts); the exact values, and how long Azure looks for machines
(`shortage_s`), are unconfirmed.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.machines import (
    Place,
    node_labels,
    node_shape,
    node_taints,
    retouch_node,
    with_image_of,
)
from gpukube_sandbox.aks.upgrades import drain_error, drain_settings, is_rolled, surge_of
from gpukube_sandbox.kube.draining import cordon, drain

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.operations import Operation
    from gpukube_sandbox.aks.pools import Lot, Pool
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.draining import Blocked


@dataclass(slots=True)
class Pace:
    """Durations in sandbox seconds."""

    accept_s: float = 5.0
    allocate_s: float = 40.0
    boot_s: float = 75.0
    between_nodes_s: float = 8.0
    reboot_s: float = 90.0
    settle_s: float = 10.0
    drain_s: float = 20.0
    cancel_s: float = 10.0
    shortage_s: float = 240.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A planned failure or delay of an operation.

    Attributes:
        error: `{code, message, details}`; None if the operation is only delayed.
        after_nodes: Machines that still come up before it fails.
        delay_s: Additional sandbox seconds.
    """

    error: Json | None
    after_nodes: int = 0
    delay_s: float = 0.0


class _Failed(Exception):
    """Failure of an operation: the planned one, or `error`."""

    def __init__(self, error: Json | None = None) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True, slots=True)
class Job:
    """A running operation and its context.

    Attributes:
        failure: Planned failure, if any.
        before: The properties that existing machines were created from, if they changed.
    """

    cluster: Cluster
    pool: Pool
    operation: Operation
    clock: Clock
    pace: Pace
    failure: Failure | None = None
    before: Json | None = None

    async def begin(self) -> None:
        """Wait for the time in which nothing is visible yet."""
        await self.clock.sleep(self.pace.accept_s + (self.failure.delay_s if self.failure else 0))

    def end(self, error: Json | None = None) -> None:
        """Record the result in the pool and the operation."""
        pool = self.pool
        pool.state = "Failed" if error else "Succeeded"
        pool.error = error
        if pool.properties.get("enableAutoScaling") and not error:
            pool.properties["count"] = len(pool.nodes)  # an autoscaled pool reports its actual machines
        pool.touch()
        self.operation.end("Failed" if error else "Succeeded", self.clock.now(), error)
        self.cluster.kube.wake_autoscaler()


async def run_change(job: Job) -> None:
    """Change the machines of a pool to match its properties, then end the operation."""
    try:
        await job.begin()
        await job.cluster.kube.joined(job.pool.nodes)  # an aborted operation's booting machines would miss the change
        await _update_nodes(job)
        # A new image or version replaces every machine; any PUT replaces those that an earlier upgrade left.
        if job.before is not None and is_rolled(job.before, job.pool.properties):
            job.pool.outdated = set(job.pool.nodes)
        await _shrink(job, _target_size(job.pool))
        await (_roll(job) if job.pool.outdated else _grow(job))
        await job.clock.sleep(job.pace.settle_s)
    except _Failed as failed:
        job.end(failed.error or (job.failure.error if job.failure else None))
    else:
        job.end()


async def run_delete(job: Job) -> None:
    """Drain and delete every machine, then the pool."""
    await job.begin()
    if job.failure and job.failure.error:
        job.end(job.failure.error)
        return
    await _shrink(job, 0)
    await job.clock.sleep(job.pace.settle_s)
    job.cluster.pools.pop(job.pool.name, None)
    job.operation.end("Succeeded", job.clock.now())


async def stop_work(operation: Operation) -> None:
    """Cancel the work behind an operation at once; its record stays unchanged."""
    if operation.task is not None:
        operation.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await operation.task


async def run_abort(job: Job, victim: Operation) -> None:
    """Cancel the running operation; completed steps are not rolled back (docs: aks/manage-abort-operations)."""
    await stop_work(victim)
    if victim.is_running:
        victim.end("Canceled", job.clock.now())
    await job.clock.sleep(job.pace.cancel_s)
    job.pool.state = "Canceled"
    job.pool.touch()
    job.operation.end("Succeeded", job.clock.now())


def _target_size(pool: Pool) -> int:
    if pool.is_stopped:
        return 0
    count = int(str(pool.properties["count"]))
    if not pool.properties.get("enableAutoScaling"):
        return count
    low, high = (int(str(pool.properties[key])) for key in ("minCount", "maxCount"))
    return min(max(count, low), high)  # an update may leave it outside; the autoscaler moves it (Azure/AKS#1758)


async def _update_nodes(job: Job) -> None:
    """Apply the pool's labels and taints to existing machines in place (docs: aks/use-labels, aks/use-node-taints)."""
    pool, group = job.pool, job.cluster.node_group
    if job.before is None:
        return
    old = node_labels(pool.name, job.before, group)
    new = node_labels(pool.name, with_image_of(pool.properties, job.before), group)
    taints = node_taints(job.before), node_taints(pool.properties)
    for name in pool.nodes:
        await retouch_node(job.cluster.kube, name, (old, new), taints)


async def _shrink(job: Job, target: int) -> None:
    while len(job.pool.nodes) > target:
        await job.clock.sleep(job.pace.drain_s)
        await _remove(job, job.pool.nodes[-1])  # newest first


async def _remove(job: Job, name: str) -> None:
    """Delete a machine; an abort in between must not leave a node without its machine."""
    await delete_machine(job.cluster, job.pool, name)


async def delete_machine(cluster: Cluster, pool: Pool, name: str) -> None:
    """Delete a machine together with its node."""
    pool.nodes.remove(name)
    pool.outdated.discard(name)
    cluster.supply.give_back(cluster.location, pool, pool.lots.pop(name))
    await asyncio.shield(cluster.kube.remove_node(name))


async def _grow(job: Job) -> None:
    target, created = _target_size(job.pool), 0
    fails = job.failure is not None and job.failure.error is not None
    if len(job.pool.nodes) < target:
        await job.clock.sleep(job.pace.allocate_s)
    while len(job.pool.nodes) < target:
        if fails and job.failure and created >= job.failure.after_nodes:
            break
        await _allocate(job)
        created += 1
        await job.clock.sleep(job.pace.between_nodes_s)
    if fails:
        raise _Failed
    if created:
        await _wait_for_boot(job)


async def _roll(job: Job) -> None:
    """Replace machines in batches: surge, wait, drain; without a surge, drain first.

    An upgrade that fails stops after some machines and leaves old and new ones in the pool. The same happens if
    machines cannot be drained in time: they are uncordoned and not replaced, or, with undrainableNodeBehavior Cordon,
    stay cordoned next to their replacements while the others continue (SDK, UndrainableNodeBehavior).
    """
    fails = job.failure.after_nodes if job.failure and job.failure.error else None
    old = [name for name in job.pool.nodes if name in job.pool.outdated]
    surge, settings = surge_of(job.pool.properties, len(old)), drain_settings(job.pool.properties)
    blocked: list[Blocked] = []
    at_once = surge.extra or surge.missing
    for start in range(0, len(old), at_once):
        if fails is not None and start >= fails:
            raise _Failed
        batch = old[start : start + at_once]
        if surge.extra:
            await _add_machines(job, len(batch))
        await job.clock.sleep(job.pace.drain_s)
        left = await drain(job.cluster.kube.api, job.clock, batch, settings.drain_s)
        stuck = {one.node for one in left}
        if left and not settings.quarantines:
            await cordon(job.cluster.kube.api, batch, unschedulable=False)
            while len(job.pool.nodes) > len(old):  # delete the surge machines
                await _remove(job, job.pool.nodes[-1])
            raise _Failed(drain_error(left))
        blocked += left
        for name in batch:
            if name not in stuck:
                await _remove(job, name)
        if not surge.extra:
            await job.clock.sleep(job.pace.allocate_s)
            await _add_machines(job, len(batch) - len(stuck))
    if blocked:
        raise _Failed(drain_error(blocked))
    await _grow(job)


async def _add_machines(job: Job, count: int) -> None:
    for _ in range(count):
        await _allocate(job)
    await _wait_for_boot(job)


async def _allocate(job: Job) -> None:
    """Create a machine; if there is none, the machines before it stay, and the operation fails after a while."""
    lot = job.cluster.supply.take(job.cluster.location, job.pool)
    if lot is None:
        await job.clock.sleep(job.pace.shortage_s)
        raise _Failed(job.cluster.supply.shortage(job.cluster.location, job.pool))
    await _add_machine(job.cluster, job.pool, lot, job.pace.boot_s)


async def _wait_for_boot(job: Job) -> None:
    """Wait until all machines are nodes; two parallel sleeps could end in either order."""
    reboots = "gpuInstanceProfile" in job.pool.properties
    await job.clock.sleep(job.pace.boot_s + (job.pace.reboot_s if reboots else 0))
    await job.cluster.kube.joined(job.pool.nodes)


async def seed_pool(cluster: Cluster, pool: Pool) -> None:
    """Create the machines of a pool that exists from the start, already booted."""
    while len(pool.nodes) < _target_size(pool):
        await _add_machine(cluster, pool, cluster.supply.add(cluster.location, pool), 0.0)


async def add_machines(cluster: Cluster, pool: Pool, count: int, pace: Pace) -> Json | None:
    """Create machines one after the other; return the error of the first that is not available."""
    for _ in range(count):
        lot = cluster.supply.take(cluster.location, pool)
        if lot is None:
            return cluster.supply.shortage(cluster.location, pool)
        await _add_machine(cluster, pool, lot, pace.boot_s)
    return None


async def _add_machine(cluster: Cluster, pool: Pool, lot: Lot, boot_s: float) -> None:
    index = pool.next_index
    pool.next_index += 1
    has_fabric = cluster.options.infiniband
    place = Place(cluster.id, cluster.subscription, cluster.node_group, cluster.location, has_fabric, lot.zone)
    shape = node_shape(place, pool.name, pool.properties, index, boot_s)
    pool.nodes.append(shape.name)
    pool.lots[shape.name] = lot
    await cluster.kube.add_node(shape)
