"""The work behind a node group's states, on the sandbox's clock: instances are launched, changed, and terminated.

In scope: everything between the response to a request and the resulting state. Out of scope: HTTP, rules.

Durations are sandbox seconds; nodes have 15 minutes to join (docs: eks/troubleshooting), and that EKS waits as long for
missing capacity is unconfirmed, like how often Auto Scaling tries again.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.bottlerocket import UserDataError, check_form, decoded
from gpukube_sandbox.eks.failures import Failure, eviction_failure, issue, launch_failure, over_quota, unsupported_zone
from gpukube_sandbox.eks.launching import (
    claim_slot,
    free_slots,
    offers_of,
    record_activity,
    return_machine,
    shortage,
    take_slot,
    zones_of,
)
from gpukube_sandbox.eks.machines import cannot_join, node_labels, node_shape, node_taints, retouch_node
from gpukube_sandbox.eks.placement import placement_name, requested_placement
from gpukube_sandbox.eks.quotas import limit_of, quota_of, room_for
from gpukube_sandbox.eks.reservations import launch_error
from gpukube_sandbox.eks.wire.answers import Json, objects_in, whole
from gpukube_sandbox.kube.draining import cordon, drain

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup, Update
    from gpukube_sandbox.eks.launching import Slot
    from gpukube_sandbox.kube.nodes.shapes import Taint


_NEVER_JOINED = Failure("NodeCreationFailure", "Instances failed to join the kubernetes cluster")


@dataclass(slots=True)
class Pace:
    """Durations in sandbox seconds."""

    accept_s: float = 5.0
    launch_s: float = 30.0
    boot_s: float = 60.0
    give_up_s: float = 300.0
    retry_s: float = 60.0
    retry_limit_s: float = 600.0
    join_limit_s: float = 900.0
    settle_s: float = 10.0
    update_s: float = 10.0
    drain_s: float = 20.0
    drain_limit_s: float = 900.0


@dataclass(frozen=True, slots=True)
class Before:
    """A group's settings before an update, as its existing nodes have them."""

    members: Json
    data: Json | None
    labels: dict[str, str]
    taints: tuple[Taint, ...]

    @classmethod
    def of(cls, group: NodeGroup) -> Before:
        """Return the current settings."""
        return cls(dict(group.members), group.data, node_labels(group), node_taints(group.members))


@dataclass(frozen=True, slots=True)
class Job:
    """A running operation and its context."""

    cluster: EksCluster
    group: NodeGroup
    clock: Clock
    pace: Pace
    failure: Failure | None = None
    update: Update | None = None
    before: Before | None = None

    @property
    def fails(self) -> bool:
        """Return whether a failure is planned."""
        return self.failure is not None and bool(self.failure.code)

    async def begin(self) -> None:
        """Wait for the time in which nothing is visible yet."""
        await self.clock.sleep(self.pace.accept_s + (self.failure.delay_s if self.failure else 0))

    def settle(self, status: str, failure: Failure | None = None) -> None:
        """Set the group's state and health."""
        group = self.group
        group.status = status  # type: ignore[assignment] # callers pass states only
        group.issues = [issue(failure, [group.asg])] if failure else []
        if failure and failure.is_retried and status == "CREATE_FAILED":  # eksctl-io/eksctl#4732
            group.issues.append(issue(_NEVER_JOINED, [f"DUMMY_{uuid.uuid4()}"]))
        group.modified = self.clock.now()
        self.cluster.kube.wake_autoscaler()


async def run_create(job: Job) -> None:
    """Launch a new group's instances and wait until they join; a failure stays until the group is deleted."""
    await job.begin()
    group = job.group
    bad = _user_data_error(group)
    if bad:
        job.settle("CREATE_FAILED", Failure("Ec2LaunchTemplateInvalidConfiguration", bad))
        return
    failure = await _launch(job, job.pace.join_limit_s)
    if failure is None:
        await job.clock.sleep(job.pace.settle_s)
    job.settle("CREATE_FAILED" if failure else "ACTIVE", failure)
    if failure and failure.is_retried:  # its Auto Scaling group does not give up
        group.growth = asyncio.create_task(_grow_later(job))


async def run_delete(job: Job) -> None:
    """Drain and terminate every instance, then delete the group; its launch template stays."""
    await job.begin()
    if job.fails:
        job.settle("DELETE_FAILED", job.failure)
        return
    await _shrink(job, 0)
    await job.clock.sleep(job.pace.settle_s)
    job.cluster.groups.pop(job.group.name, None)


async def run_config(job: Job) -> None:
    """Apply a change of labels, taints, sizes, or settings; revert a failed one.

    The update ends once EKS has updated the Auto Scaling group; new instances come up later.
    """
    await job.begin()
    await job.clock.sleep(job.pace.update_s)
    group, update = job.group, job.update
    launches = job.failure is not None and job.failure.code == "AsgInstanceLaunchFailures"
    if job.fails and not launches:
        _revert(job)
        return
    await job.cluster.kube.joined(group.nodes)  # instances that are booting now would miss the change
    await _update_nodes(job)
    await _shrink(job, group.desired, at_once=True)
    if update:
        update.status = "Successful"
    degraded = group.issues and len(group.nodes) >= group.desired
    if degraded:  # stays DEGRADED until a scale-out succeeds (aws/containers-roadmap#2326)
        group.status, group.modified = "DEGRADED", job.clock.now()
        return
    job.settle("ACTIVE")
    if len(group.nodes) < group.desired:
        group.growth = asyncio.create_task(_grow_later(job))


async def run_version(job: Job) -> None:
    """Replace every instance by one of the new version, template, or release; revert a failed update.

    Strategy DEFAULT launches before it terminates, MINIMAL terminates before it launches, as many at a time as
    updateConfig allows to be unavailable (botocore eks NodegroupUpdateConfig; docs: eks/managed-node-update-behavior).
    A node whose pods cannot be evicted in time fails the update, which is reverted; with force, the pods are deleted.
    """
    await job.begin()
    group, pace = job.group, job.pace
    failure = _version_error(job) or (job.failure if job.fails else None)
    if failure is not None:
        await job.clock.sleep(pace.give_up_s)
        _revert(replace(job, failure=failure))
        return
    old = list(group.nodes)
    while old:
        batch, old = old[: _at_once(group)], old[_at_once(group) :]
        added: list[str] = []
        if not _is_minimal(group):
            added = await _replace(job, batch)
        await job.clock.sleep(pace.drain_s)
        left = await drain(job.cluster.kube.api, job.clock, batch, pace.drain_limit_s)
        if left and not (job.update and job.update.is_forced):
            await cordon(job.cluster.kube.api, batch, unschedulable=False)
            await _remove_all(job, added)
            _revert(replace(job, failure=eviction_failure(group.name)), [one.node for one in left])
            return
        await _remove_all(job, batch)
        if _is_minimal(group):
            await _replace(job, batch)
    await job.cluster.kube.joined(group.nodes)
    if job.update:
        job.update.status = "Successful"
    job.settle("ACTIVE")
    if len(group.nodes) < group.desired:
        group.growth = asyncio.create_task(_grow_later(job))


async def stop_work(group: NodeGroup) -> None:
    """Cancel all work on a group at once."""
    tasks = [task for task in (group.task, group.growth) if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def seed(job: Job) -> None:
    """Create the instances of a group that exists from the start, already booted."""
    while len(job.group.nodes) < job.group.desired:
        await _add_node(job, claim_slot(job.cluster, job.group), 0.0)
    job.settle("ACTIVE")


async def _replace(job: Job, batch: list[str]) -> list[str]:
    """Launch as many instances of the new version; return their names."""
    before = len(job.group.nodes)
    await _add(job, len(batch), job.pace.boot_s)
    await job.cluster.kube.joined(job.group.nodes)
    return job.group.nodes[before:]


def _revert(job: Job, resources: list[str] | None = None) -> None:
    if job.before is not None:
        job.group.members, job.group.data = job.before.members, job.before.data
    if job.update and job.failure:
        job.update.status = "Failed"
        job.update.errors = [
            {
                "errorCode": job.failure.code,
                "errorMessage": job.failure.message,
                "resourceIds": list(dict.fromkeys(resources or [job.group.asg])),
            }
        ]
    job.settle("ACTIVE")


def _version_error(job: Job) -> Failure | None:
    """Return why no instance of a new version could launch or join, with an update's code (botocore eks ErrorCode)."""
    group = job.group
    rejected = None
    if group.nodes:
        rejected = _thing_error(job) or launch_error(job.cluster, group) or _over_quota(job, _surge(job))
        rejected = rejected or _out_of_stock(job, _surge(job))
    wrong = rejected.message if rejected else _user_data_error(group) or cannot_join(job.cluster, group)
    return Failure("NodeCreationFailure", wrong) if wrong else None


def _is_minimal(group: NodeGroup) -> bool:
    settings = group.members.get("updateConfig")
    return isinstance(settings, dict) and settings.get("updateStrategy") == "MINIMAL"


def _at_once(group: NodeGroup) -> int:
    """Return how many instances are replaced at a time."""
    settings = group.members.get("updateConfig")
    given = settings if isinstance(settings, dict) else {}
    if "maxUnavailablePercentage" in given:
        return max(1, len(group.nodes) * whole(given["maxUnavailablePercentage"]) // 100)
    return max(1, whole(given.get("maxUnavailable", 1)))


def _surge(job: Job) -> int:
    """Return how many machines an update adds: twice the zones, or as many as are replaced at a time if that is more.

    Source:
        docs: eks/managed-node-update-behavior, scale up phase; strategy MINIMAL launches none.
    """
    return 0 if _is_minimal(job.group) else max(2 * len(zones_of(job.cluster, job.group)), _at_once(job.group))


def _user_data_error(group: NodeGroup) -> str:
    """Return EKS's error about user data that it cannot merge; "" for a custom image, whose data it does not check."""
    if group.image.system == "custom":
        return ""
    try:
        check_form(decoded((group.data or {}).get("UserData")), group.image.system)
    except UserDataError as error:
        return str(error)
    return ""


async def _launch(job: Job, patience_s: float = math.inf) -> Failure | None:
    """Launch instances up to the group's size; return the failure, if any.

    Args:
        job: The operation.
        patience_s: For how long Auto Scaling tries to get machines that are out of stock.
    """
    group, pace = job.group, job.pace
    count = group.desired - len(group.nodes)
    if count <= 0:
        return job.failure if job.fails else None
    await job.clock.sleep(pace.launch_s)
    if not offers_of(job.cluster, group):
        found = unsupported_zone(group.types[0].name, f"{job.cluster.region}{zones_of(job.cluster, group)[0]}")
        _record(job, found.message)
        await job.clock.sleep(pace.give_up_s)
        return found
    rejected = _thing_error(job) or launch_error(job.cluster, group)
    if rejected is not None:
        _record(job, rejected.message)
        await job.clock.sleep(pace.give_up_s)
        return rejected
    unjoinable = cannot_join(job.cluster, group)
    if unjoinable:
        await job.clock.sleep(pace.join_limit_s)
        return _NEVER_JOINED
    if (short := _over_quota(job, count)) is not None:
        _record(job, short.message)
        await _add(job, short.after_nodes, pace.boot_s)
        await job.clock.sleep(pace.give_up_s)
        return short
    if job.failure and job.fails:
        _record(job, job.failure.message)
        await _add(job, min(count, job.failure.after_nodes), pace.boot_s)
        await job.clock.sleep(pace.give_up_s)
        return job.failure
    failure = await _fill(job, patience_s)
    await job.cluster.kube.joined(group.nodes)
    return failure


async def _fill(job: Job, patience_s: float) -> Failure | None:
    """Launch the missing instances; while machines are out of stock, show it and try again, less and less often.

    Returns:
        The failure of the last attempt; None once the group has its size.
    """
    group, pace = job.group, job.pace
    until, wait_s = job.clock.now() + patience_s, pace.retry_s
    while True:
        before = len(group.nodes)
        failure = await _add(job, group.desired - before, pace.boot_s)
        if len(group.nodes) > before:
            _record(job, "", count=len(group.nodes) - before)
        if failure is None:
            return None
        _record(job, failure.message)
        _show(job, failure)
        if job.clock.now() + wait_s > until:
            await job.clock.sleep(until - job.clock.now())
            return failure
        await job.clock.sleep(wait_s)
        wait_s = min(2 * wait_s, pace.retry_limit_s)


def _show(job: Job, failure: Failure) -> None:
    """Let the group's health show a failure that Auto Scaling has not given up on."""
    group = job.group
    if group.status == "CREATING":
        group.issues = [issue(failure, [group.asg])]
    elif group.status in {"ACTIVE", "DEGRADED"}:
        job.settle("DEGRADED", failure)


def _thing_error(job: Job) -> Failure | None:
    """Return the failure if the placement group or a volume's key does not exist, or Auto Scaling cannot use it."""
    near, known = placement_name(job.group.data), job.cluster.known
    if near and requested_placement(job.group.data, known) is None:
        return launch_failure("InvalidPlacementGroup.Unknown", job.group.types[0].name, "")
    for mapping in objects_in((job.group.data or {}).get("BlockDeviceMappings")):
        ebs = mapping.get("Ebs")
        key = str(ebs.get("KmsKeyId") or "") if isinstance(ebs, dict) else ""
        if key and key not in known.kms_keys:
            return launch_failure("Client.InvalidKMSKey.InvalidState", job.group.types[0].name, "")
    return None


def _over_quota(job: Job, count: int) -> Failure | None:
    """Return the failure if machines exceed the quota, and how many fit (that those come up is unconfirmed)."""
    group, known = job.group, job.cluster.known
    kind = group.types[0]
    room = room_for(known, group, kind)
    if room is None or room >= count:
        return None
    market = str(group.members["capacityType"])
    quota = quota_of(kind, market)
    limit = limit_of(known, quota) if quota else 0.0
    return replace(over_quota(kind.name, limit, spot=market == "SPOT"), after_nodes=room)


def _out_of_stock(job: Job, count: int) -> Failure | None:
    """Return the failure if so many more machines are not in stock."""
    free = free_slots(job.cluster, job.group)
    return None if free is None or free >= count else shortage(job.cluster, job.group)


async def _grow_later(job: Job) -> None:
    await scale_out(job)


async def scale_out(job: Job, patience_s: float = math.inf) -> Failure | None:
    """Launch the group's missing instances; return the failure, which its health then shows too.

    Args:
        job: The operation.
        patience_s: For how long Auto Scaling tries to get machines that are out of stock.
    """
    failure = await _launch(job, patience_s)
    group = job.group
    if group.status == "ACTIVE" and failure:
        job.settle("DEGRADED", failure)
    elif group.status == "DEGRADED" and not failure:
        job.settle("ACTIVE")  # a successful scale-out fixes it (aws/containers-roadmap#2326)
    return failure


async def _add(job: Job, count: int, boot_s: float) -> Failure | None:
    """Add instances as far as there are machines in stock; return the failure if there are too few."""
    group, left = job.group, max(0, count)
    group.coming += left
    try:
        while left:
            slot = take_slot(job.cluster, group)
            if slot is None:
                return shortage(job.cluster, group)
            group.coming, left = group.coming - 1, left - 1
            await _add_node(job, slot, boot_s)
    finally:
        group.coming -= left
    return None


async def _add_node(job: Job, slot: Slot, boot_s: float) -> None:
    shape = node_shape(job.cluster, job.group, slot, boot_s)
    job.group.nodes.append(shape.name)
    await job.cluster.kube.add_node(shape)


async def _shrink(job: Job, count: int, *, at_once: bool = False) -> None:
    """Terminate the newest; a lower size does so at once, despite budgets (docs: eks/update-managed-node-group)."""
    while len(job.group.nodes) > count:
        if not at_once:
            await job.clock.sleep(job.pace.drain_s)
        await _remove(job, job.group.nodes[-1])


async def _remove(job: Job, name: str) -> None:
    await asyncio.shield(terminate_instance(job.cluster, job.group, name))


async def terminate_instance(cluster: EksCluster, group: NodeGroup, name: str) -> None:
    """Terminate one instance and delete its node."""
    group.nodes.remove(name)
    return_machine(cluster, group.instances[name])
    await cluster.kube.remove_node(name)


async def _remove_all(job: Job, names: list[str]) -> None:
    for name in names:
        await _remove(job, name)


async def _update_nodes(job: Job) -> None:
    """Apply the group's labels and taints to existing nodes (docs: eks/update-managed-node-group: wording only)."""
    if job.before is None:
        return
    labels = job.before.labels, node_labels(job.group)
    taints = job.before.taints, node_taints(job.group.members)
    for name in job.group.nodes:
        await retouch_node(job.cluster.kube, name, labels, taints)


def _record(job: Job, message: str, *, count: int = 0) -> None:
    record_activity(job.group, job.clock.now(), message, count=count)
