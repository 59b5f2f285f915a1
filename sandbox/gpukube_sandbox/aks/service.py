"""Microsoft.ContainerService: the calls on clusters and pools.

In scope: the calls, as methods that return an `Answer` or raise a `ArmError`. Out of scope: HTTP (`routes`), rules, the
work behind an operation (`lifecycle`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import Json, aks_error, arm_error, wire_error
from gpukube_sandbox.aks.capacitygroups import CapacityGroups
from gpukube_sandbox.aks.lifecycle import Job, Pace, run_abort, run_change, run_delete
from gpukube_sandbox.aks.machines import image_version
from gpukube_sandbox.aks.operations import Operation
from gpukube_sandbox.aks.pools import Pool, finish_defaults, merge, with_defaults
from gpukube_sandbox.aks.preconditions import Preconditions, check_preconditions
from gpukube_sandbox.aks.quotas import Quotas
from gpukube_sandbox.aks.references import check_references
from gpukube_sandbox.aks.restrictions import Restrictions
from gpukube_sandbox.aks.rules import check_changes, check_name, check_name_for, check_pool
from gpukube_sandbox.aks.scalerprofile import requested_profile
from gpukube_sandbox.aks.schema import check_shape
from gpukube_sandbox.aks.scores import spot_scores
from gpukube_sandbox.aks.supply import Supply
from gpukube_sandbox.aks.upgrades import check_single_method, check_upgrade
from gpukube_sandbox.faults import no_lag
from gpukube_sandbox.pages import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.lifecycle import Failure
    from gpukube_sandbox.aks.throttle import Throttle
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.stock import Stock

_POLL_EVERY_S = 10.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call.

    Attributes:
        operation: The operation that the call started, for the headers.
        polls_again: Whether this is the status of an operation that is still running.
        next_page: Token of the next page; "" on the last page.
    """

    status: int
    body: object = None
    operation: Operation | None = None
    polls_again: bool = False
    next_page: str = ""


@dataclass(slots=True)
class AksService:
    """All clusters of all subscriptions.

    Attributes:
        plan: Returns the planned failure of an operation from cluster, pool, kind, and size, called at its start; may
            raise a ArmError for failures that the service reports immediately.
        stock: Available machines.
        lag: Returns the seconds for which lists omit a pool, from cluster and pool, called at creation.
        empty_groups: Ids in lowercase of capacity reservation groups without a reservation.
        resources: Ids in lowercase of existing resources other than clusters.
        page_size: Pools per page of a list; 0 = all (the service's own size is unconfirmed).
    """

    clock: Clock
    plan: Callable[[Cluster, str, str, str], Failure | None]
    throttle: Throttle
    stock: Stock
    pace: Pace = field(default_factory=Pace)
    page_size: int = 0
    empty_groups: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    lag: Callable[[str, str], float] = no_lag
    restrictions: Restrictions = field(default_factory=Restrictions)
    quotas: Quotas = field(init=False)
    groups: CapacityGroups = field(init=False)
    supply: Supply = field(init=False)

    def __post_init__(self) -> None:
        """Let quotas and capacity reservation groups count the machines of all clusters."""
        self.quotas = Quotas(self.clusters)
        self.groups = CapacityGroups(self.clusters, self.stock)
        self.supply = Supply(self.stock, self.groups)

    async def reset(self) -> None:
        """Cancel running operations and delete all state."""
        tasks = [operation.task for operation in self.operations.values() if operation.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.clusters.clear()
        self.operations.clear()
        self.throttle.reset()
        self.pace = Pace()
        self.page_size = 0
        self.empty_groups.clear()
        self.resources.clear()
        self.quotas.limits.clear()
        self.groups.groups.clear()
        self.restrictions.known.clear()

    @property
    def poll_after_s(self) -> float:
        """Return the Retry-After of an operation in sandbox seconds (the real value is unconfirmed)."""
        return _POLL_EVERY_S

    def declare(self, resources: Iterable[str]) -> list[str]:
        """Declare resources; return those that are new."""
        new = [given for given in resources if given.lower() not in self.resources]
        self.resources |= {given.lower() for given in new}
        return new

    def declare_groups(self, entry: Json) -> list[str]:
        """Declare capacity reservation groups with their reservations, as in `capacitygroups`; return new ids."""
        new = self.groups.declare(entry)
        self.declare(new)
        return new

    def scores(self, subscription: str, body: object) -> Answer:
        """Return Spot placement scores."""
        self.throttle.take("spot-scores", subscription.lower())
        has_quota = functools.partial(self.quotas.has_spot, subscription)
        free = functools.partial(self.stock.free, "aks")
        return Answer(200, spot_scores(subscription, body, free, has_quota, self.restrictions))

    # Clusters

    def require_subscription(self, subscription: str) -> None:
        """Reject a subscription that has no cluster here (the message is ARM's; its code is unconfirmed for AKS)."""
        if not any(cluster.subscription.lower() == subscription.lower() for cluster in self.clusters.values()):
            message = f"The subscription '{subscription}' could not be found."
            raise arm_error(404, "SubscriptionNotFound", message)

    def require_group(self, subscription: str, group: str) -> None:
        """Reject a resource group that has no cluster here."""
        self.require_subscription(subscription)
        if not self.in_group(subscription, group):
            raise arm_error(404, "ResourceGroupNotFound", f"Resource group '{group}' could not be found.")

    def require_cluster(self, subscription: str, group: str, name: str) -> Cluster:
        """Find a cluster; ARM compares all parts of an id case-insensitively."""
        self.require_group(subscription, group)
        found = self.clusters.get(cluster_key(subscription, group, name))
        if found is None:
            message = (
                f"The Resource 'Microsoft.ContainerService/managedClusters/{name}' under resource group '{group}' was "
                "not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            )
            raise arm_error(404, "ResourceNotFound", message)
        return found

    def list_clusters(self, subscription: str, group: str = "") -> Answer:
        """Return the clusters of a subscription, or of one of its groups."""
        if group:
            self.require_group(subscription, group)
        else:
            self.require_subscription(subscription)
        now = self.clock.now()
        return Answer(200, {"value": [cluster.wire(now) for cluster in self.in_group(subscription, group)]})

    def in_group(self, subscription: str, group: str = "") -> list[Cluster]:
        """Return the clusters of a resource group, or of all groups of a subscription."""
        place = (subscription.lower(), group.lower())
        return [
            cluster
            for cluster in self.clusters.values()
            if cluster.subscription.lower() == place[0] and (not group or cluster.group.lower() == place[1])
        ]

    def put_cluster(self, cluster: Cluster, body: object) -> Answer:
        """Change the cluster's autoScalerProfile, at once; no other part of a cluster."""
        now = self.clock.now()
        cluster.require_idle(now)
        found = requested_profile(body, cluster.wire(now)["properties"])
        cluster.auto_scaler = cluster.auto_scaler if found is None else found
        cluster.kube.wake_autoscaler()
        return Answer(200, cluster.wire(now))

    # Pools

    def list_pools(self, cluster: Cluster, token: str = "") -> Answer:
        """Return the pools of a cluster: all in one page, or `page_size` of them and the next token."""
        pools = [pool.wire(cluster.id) for pool in cluster.listed(self.clock.now())]
        page, following = cut("agentPools", pools, token, self.page_size or len(pools))
        return Answer(200, {"value": list(page)}, next_page=following)

    def get_pool(self, cluster: Cluster, name: str) -> Answer:
        """Return one pool."""
        return Answer(200, self._require_pool(cluster, name).wire(cluster.id))

    def _require_pool(self, cluster: Cluster, name: str) -> Pool:
        pool = cluster.pools.get(name.lower())
        if pool is None:  # the code is known, the message is unconfirmed
            message = f"Could not find the agentpool: {name} in managed cluster {cluster.name}."
            raise aks_error("NotFound", message, status=404)
        return pool

    def put_pool(self, cluster: Cluster, name: str, body: object, api_version: str, given: Preconditions) -> Answer:
        """Create or update a pool: 201 or 200, with the resource in its state during the operation."""
        check_name(name)
        stored = cluster.pools.get(name)
        check_preconditions(given, stored.etag if stored else None)
        sent = check_shape(body, api_version, stored.properties if stored else {})
        if stored is not None:
            return self._update(cluster, stored, sent)
        check_single_method(sent)
        return self._create(cluster, name, sent)

    def _create(self, cluster: Cluster, name: str, sent: Json) -> Answer:
        properties = with_defaults(sent, cluster.facts)
        check_name_for(name, properties)
        check_pool(properties, cluster.facts, creating=True)
        self.restrictions.check(cluster, properties)
        check_references(properties, self.resources | self.empty_groups)
        if str(properties.get("capacityReservationGroupID", "")).lower() in self.empty_groups:
            del properties["capacityReservationGroupID"]  # with a warning (docs: aks/use-capacity-reservation-groups)
        cluster.require_idle(self.clock.now())
        failure = self.plan(cluster, name, "Creating", str(properties["vmSize"]))
        failure = failure or self.quotas.check(cluster, None, properties)
        pool = cluster.pools[name] = Pool(name, finish_defaults(properties, cluster.image_date))
        pool.listed_from = self.clock.now() + self.lag(cluster.name, name)
        operation = self._start(cluster, pool, "Creating", run_change, failure)
        return Answer(201, pool.wire(cluster.id), operation)

    def _update(self, cluster: Cluster, pool: Pool, sent: Json) -> Answer:
        after = merge(pool.properties, sent, cluster.facts)
        check_changes(pool.properties, after, sent)
        check_pool(after, cluster.facts, creating=False)
        check_upgrade(pool.properties, after)
        self._require_system_pool(cluster, pool, stays=after["mode"] == "System")
        cluster.require_idle(self.clock.now())
        kind = _kind_of_change(pool.properties, after)
        failure = self.plan(cluster, pool.name, kind, str(after["vmSize"]))
        failure = failure or self.quotas.check(cluster, pool, after)
        before, pool.properties = pool.properties, after
        operation = self._start(cluster, pool, kind, run_change, failure, before=before)
        return Answer(200, pool.wire(cluster.id), operation)

    def delete_pool(self, cluster: Cluster, name: str, given: Preconditions) -> Answer:
        """Delete a pool: 202, or 204 if it does not exist. It preempts the pool's running operation.

        Source: docs: troubleshoot azure-kubernetes, aksoperationpreempted-error.
        """
        pool = cluster.pools.get(name.lower())
        check_preconditions(given, pool.etag if pool else None)
        if pool is None:
            return Answer(204)
        self._require_system_pool(cluster, pool, stays=False)
        self._preempt(cluster, pool)
        cluster.require_idle(self.clock.now())
        failure = self.plan(cluster, pool.name, "Deleting", str(pool.properties["vmSize"]))
        return Answer(202, None, self._start(cluster, pool, "Deleting", run_delete, failure))

    def _preempt(self, cluster: Cluster, pool: Pool) -> None:
        """End a running operation on a pool that is about to be deleted."""
        victim = cluster.operation
        if victim is None or not victim.is_running or victim.pool != pool.name:
            return
        if victim.task is not None and victim.kind not in {"Deleting", "Canceling"}:
            victim.task.cancel()
            message = f"Agent pool operation ({pool.name} - {victim.kind}) was preempted by a delete operation."
            victim.end("Failed", self.clock.now(), wire_error("AKSOperationPreemptedByDelete", message))

    def abort_pool(self, cluster: Cluster, name: str) -> Answer:
        """Cancel a pool's operation: 202; 204 while that is happening, or 409 if none is running.

        Sources: docs: aks/manage-abort-operations; azure-mgmt-containerservice begin_abort_latest_operation (202, 204).
        """
        pool, victim = self._require_pool(cluster, name), cluster.operation
        if victim is not None and victim.is_running and victim.pool == pool.name and victim.kind == "Canceling":
            return Answer(204)
        if victim is None or not victim.is_running or victim.pool != pool.name:
            message = f"There is no operation in progress on agent pool {name} to be aborted."
            raise aks_error("OperationNotAllowed", message, status=409)
        if victim.task is not None:
            victim.task.cancel()  # now: the operation could end before the abort starts, and hide it
        pool.state = "Canceling"
        pool.touch()
        abort = self._new_operation(cluster, pool, "Canceling")
        job = Job(cluster, pool, abort, self.clock, self.pace)
        abort.task = asyncio.create_task(run_abort(job, victim))
        return Answer(202, None, abort)

    def upgrade_image(self, cluster: Cluster, name: str) -> Answer:
        """Upgrade a pool to the newest node image of its version: 202, even if the pool already has it.

        The effect in that case is unconfirmed; here machines that an earlier upgrade left are replaced, as by a PUT.
        """
        pool = self._require_pool(cluster, name)
        cluster.require_idle(self.clock.now())
        newest = image_version(pool.properties, cluster.image_date)
        failure = self.plan(cluster, pool.name, "UpgradingNodeImageVersion", str(pool.properties["vmSize"]))
        before, pool.properties = pool.properties, {**pool.properties, "nodeImageVersion": newest}
        kind = "UpgradingNodeImageVersion"
        return Answer(202, None, self._start(cluster, pool, kind, run_change, failure, before=before))

    def upgrade_profile(self, cluster: Cluster, name: str) -> Answer:
        """Return the versions that a pool can be upgraded to."""
        pool = self._require_pool(cluster, name)
        version = pool.properties["currentOrchestratorVersion"]
        upgrades = [] if version == cluster.kubernetes_version else [{"kubernetesVersion": cluster.kubernetes_version}]
        properties = {
            "kubernetesVersion": version,
            "osType": pool.properties["osType"],
            "upgrades": upgrades,
            "latestNodeImageVersion": image_version(pool.properties, cluster.image_date),
        }
        body = {
            "id": f"{cluster.id}/agentPools/{pool.name}/upgradeProfiles/default",
            "name": "default",
            "type": "Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles",
            "properties": properties,
        }
        return Answer(200, body)

    def available_versions(self, cluster: Cluster) -> Answer:
        """Return the versions that a new pool can have."""
        version = {"default": True, "kubernetesVersion": cluster.kubernetes_version, "isPreview": None}
        body = {
            "id": f"{cluster.id}/availableAgentPoolVersions",
            "name": "default",
            "type": "Microsoft.ContainerService/managedClusters/availableAgentPoolVersions",
            "properties": {"agentPoolVersions": [version]},
        }
        return Answer(200, body)

    # Operations

    def get_operation(self, identity: str) -> Answer:
        """Return the status of an operation."""
        operation = self._require_operation(identity)
        return Answer(200, operation.wire(), polls_again=operation.is_running)

    def get_operation_result(self, identity: str) -> Answer:
        """Return the result of an operation: 202 while it runs, then 204."""
        operation = self._require_operation(identity)
        return Answer(202, None, operation) if operation.is_running else Answer(204)

    def _require_operation(self, identity: str) -> Operation:
        operation = self.operations.get(identity)
        if operation is None:
            raise aks_error("NotFound", f"The entity was not found. Operation {identity}.", status=404)
        return operation

    def _new_operation(self, cluster: Cluster, pool: Pool, kind: str) -> Operation:
        now = self.clock.now()
        operation = Operation(cluster.subscription, cluster.location, pool.name, kind, now)
        self.operations[operation.id] = operation
        cluster.operation = operation
        return operation

    def _start(  # noqa: PLR0913 - the parts of one operation
        self,
        cluster: Cluster,
        pool: Pool,
        kind: str,
        work: Callable[[Job], Coroutine[object, object, None]],
        failure: Failure | None,
        *,
        before: Json | None = None,
    ) -> Operation:
        pool.state = kind
        pool.touch()
        operation = self._new_operation(cluster, pool, kind)
        job = Job(cluster, pool, operation, self.clock, self.pace, failure, before)
        operation.task = asyncio.create_task(work(job))
        operation.task.add_done_callback(functools.partial(_end_if_broken, job))
        return operation

    @staticmethod
    def _require_system_pool(cluster: Cluster, pool: Pool, *, stays: bool) -> None:
        """Require at least one other System pool (docs: aks/use-system-pools; code and message unconfirmed)."""
        others = [other for other in cluster.pools.values() if other is not pool]
        if (
            not stays
            and pool.properties["mode"] == "System"
            and not any(o.properties["mode"] == "System" for o in others)
        ):
            raise aks_error("OperationNotAllowed", "There has to be at least one system agent pool.", status=400)


def cluster_key(subscription: str, group: str, name: str) -> str:
    """Return a cluster's key in the service."""
    return f"{subscription}/{group}/{name}".lower()


def _end_if_broken(job: Job, task: asyncio.Task[None]) -> None:
    """End the operation if its task failed: a bug of the sandbox must not leave it running forever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("operation on %s broke", job.pool.name, exc_info=error)
        job.end(wire_error("InternalServerError", f"The sandbox broke: {error!r}"))


def _kind_of_change(before: Json, after: Json) -> str:
    """Return the provisioningState during a PUT (states: docs: aks/manage-abort-operations and others)."""
    if before["currentOrchestratorVersion"] != after["currentOrchestratorVersion"]:
        return "Upgrading"
    if before["nodeImageVersion"] != after["nodeImageVersion"]:
        return "UpgradingNodeImageVersion"
    if before["powerState"] != after["powerState"]:
        return "Stopping" if after["powerState"] == {"code": "Stopped"} else "Starting"
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    return "Scaling" if changed == {"count"} else "Updating"
