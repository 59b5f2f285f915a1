"""Microsoft.ContainerService: what each call on clusters and pools does.

In scope: the calls, as methods that give an `Answer` or raise a `Refusal`. Out of scope: HTTP (`routes`),
rules, the work behind an operation (`lifecycle`).
"""

from __future__ import annotations

import asyncio
import functools
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import Json, front_door, refuse, wire_error
from gpukube_sandbox.aks.lifecycle import Job, Pace, run_abort, run_change, run_delete
from gpukube_sandbox.aks.machines import image_version
from gpukube_sandbox.aks.operations import Operation
from gpukube_sandbox.aks.pools import Pool, finish_defaults, merge, with_defaults
from gpukube_sandbox.aks.preconditions import Preconditions, check_preconditions
from gpukube_sandbox.aks.quotas import Quotas
from gpukube_sandbox.aks.references import check_references
from gpukube_sandbox.aks.rules import check_changes, check_name, check_name_for, check_pool
from gpukube_sandbox.aks.schema import check_shape
from gpukube_sandbox.aks.upgrades import check_one_of_both, check_upgrade
from gpukube_sandbox.faults import no_lag
from gpukube_sandbox.pages import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.lifecycle import Failure
    from gpukube_sandbox.aks.throttle import Throttle
    from gpukube_sandbox.clock import Clock

_POLL_EVERY_S = 10.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call answers.

    Attributes:
        operation: The operation it started, for the headers.
        polls_again: The status of an operation that still runs.
        next_page: Token of the next page; "" = this was the last.
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
        plan: Asked at the start of each operation (cluster, pool, kind, size) what shall go wrong with it; may raise a
            Refusal for what the service notices at once.
        lag: Asked at each creation (cluster, pool) for how many seconds lists leave the pool out.
        empty_groups: Capacity reservation groups without a reservation, by their ids in lower case.
        resources: What exists beside clusters, by the ids in lower case.
        page_size: Pools per page of a list; 0 = all (what the service's own size is, is unconfirmed).
    """

    clock: Clock
    plan: Callable[[Cluster, str, str, str], Failure | None]
    throttle: Throttle
    pace: Pace = field(default_factory=Pace)
    page_size: int = 0
    empty_groups: set[str] = field(default_factory=set)
    resources: set[str] = field(default_factory=set)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    lag: Callable[[str, str], float] = no_lag
    quotas: Quotas = field(init=False)

    def __post_init__(self) -> None:
        """Let the machines of all clusters count."""
        self.quotas = Quotas(self.clusters)

    async def reset(self) -> None:
        """Forget everything, stopping what runs."""
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

    @property
    def poll_after_s(self) -> float:
        """Retry-After of an operation, in sandbox seconds (the real figure is unconfirmed)."""
        return _POLL_EVERY_S

    def declare(self, resources: Iterable[str]) -> list[str]:
        """Let resources exist; gives those that did not yet."""
        made = [given for given in resources if given.lower() not in self.resources]
        self.resources |= {given.lower() for given in made}
        return made

    # Clusters

    def require_subscription(self, subscription: str) -> None:
        """Refuse a subscription that has no cluster here (the sentence is ARM's; its code is unconfirmed for AKS)."""
        if not any(cluster.subscription.lower() == subscription.lower() for cluster in self.clusters.values()):
            message = f"The subscription '{subscription}' could not be found."
            raise front_door(404, "SubscriptionNotFound", message)

    def require_group(self, subscription: str, group: str) -> None:
        """Refuse a resource group that has no cluster here."""
        self.require_subscription(subscription)
        if not self.in_group(subscription, group):
            raise front_door(404, "ResourceGroupNotFound", f"Resource group '{group}' could not be found.")

    def require_cluster(self, subscription: str, group: str, name: str) -> Cluster:
        """Find a cluster; ARM compares every part of an id without case."""
        self.require_group(subscription, group)
        found = self.clusters.get(cluster_key(subscription, group, name))
        if found is None:
            message = (
                f"The Resource 'Microsoft.ContainerService/managedClusters/{name}' under resource group '{group}' was "
                "not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            )
            raise front_door(404, "ResourceNotFound", message)
        return found

    def list_clusters(self, subscription: str, group: str = "") -> Answer:
        """Clusters of a subscription, or of one of its groups."""
        if group:
            self.require_group(subscription, group)
        else:
            self.require_subscription(subscription)
        now = self.clock.now()
        return Answer(200, {"value": [cluster.wire(now) for cluster in self.in_group(subscription, group)]})

    def in_group(self, subscription: str, group: str = "") -> list[Cluster]:
        """Clusters of a resource group, or of all groups of a subscription."""
        wanted = (subscription.lower(), group.lower())
        return [
            cluster
            for cluster in self.clusters.values()
            if cluster.subscription.lower() == wanted[0] and (not group or cluster.group.lower() == wanted[1])
        ]

    # Pools

    def list_pools(self, cluster: Cluster, token: str = "") -> Answer:
        """Pools of a cluster: all in one page, or `page_size` of them and where to go on."""
        pools = [pool.wire(cluster.id) for pool in cluster.listed(self.clock.now())]
        page, following = cut("agentPools", pools, token, self.page_size or len(pools))
        return Answer(200, {"value": list(page)}, next_page=following)

    def get_pool(self, cluster: Cluster, name: str) -> Answer:
        """One pool."""
        return Answer(200, self._require_pool(cluster, name).wire(cluster.id))

    def _require_pool(self, cluster: Cluster, name: str) -> Pool:
        pool = cluster.pools.get(name.lower())
        if pool is None:  # the code is known, the sentence is unconfirmed
            message = f"Could not find the agentpool: {name} in managed cluster {cluster.name}."
            raise refuse("NotFound", message, status=404)
        return pool

    def put_pool(self, cluster: Cluster, name: str, body: object, api_version: str, given: Preconditions) -> Answer:
        """Create or update a pool: 201 or 200, with the resource as it is while the operation runs."""
        check_name(name)
        stored = cluster.pools.get(name)
        check_preconditions(given, stored.etag if stored else None)
        sent = check_shape(body, api_version, stored.properties if stored else {})
        if stored is not None:
            return self._update(cluster, stored, sent)
        check_one_of_both(sent)
        return self._create(cluster, name, sent)

    def _create(self, cluster: Cluster, name: str, sent: Json) -> Answer:
        properties = with_defaults(sent, cluster.facts)
        check_name_for(name, properties)
        check_pool(properties, cluster.facts, creating=True)
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
        wanted = merge(pool.properties, sent, cluster.facts)
        check_changes(pool.properties, wanted, sent)
        check_pool(wanted, cluster.facts, creating=False)
        check_upgrade(pool.properties, wanted)
        self._require_system_pool(cluster, pool, stays=wanted["mode"] == "System")
        cluster.require_idle(self.clock.now())
        kind = _kind_of_change(pool.properties, wanted)
        failure = self.plan(cluster, pool.name, kind, str(wanted["vmSize"]))
        failure = failure or self.quotas.check(cluster, pool, wanted)
        before, pool.properties = pool.properties, wanted
        operation = self._start(cluster, pool, kind, run_change, failure, before=before)
        return Answer(200, pool.wire(cluster.id), operation)

    def delete_pool(self, cluster: Cluster, name: str, given: Preconditions) -> Answer:
        """Delete a pool: 202, or 204 when there is none."""
        pool = cluster.pools.get(name.lower())
        check_preconditions(given, pool.etag if pool else None)
        if pool is None:
            return Answer(204)
        self._require_system_pool(cluster, pool, stays=False)
        cluster.require_idle(self.clock.now())
        failure = self.plan(cluster, pool.name, "Deleting", str(pool.properties["vmSize"]))
        return Answer(202, None, self._start(cluster, pool, "Deleting", run_delete, failure))

    def abort_pool(self, cluster: Cluster, name: str) -> Answer:
        """Cancel what runs on a pool: 202, or 409 when nothing does (docs: aks/manage-abort-operations)."""
        pool, victim = self._require_pool(cluster, name), cluster.operation
        if victim is None or not victim.is_running or victim.pool != pool.name or victim.kind == "Canceling":
            message = f"There is no operation in progress on agent pool {name} to be aborted."
            raise refuse("OperationNotAllowed", message, status=409)
        if victim.task is not None:
            victim.task.cancel()  # at once: before the abort gets its turn the operation could end, and hide it
        pool.state = "Canceling"
        pool.touch()
        abort = self._new_operation(cluster, pool, "Canceling")
        job = Job(cluster, pool, abort, self.clock, self.pace)
        abort.task = asyncio.create_task(run_abort(job, victim))
        return Answer(202, None, abort)

    def upgrade_image(self, cluster: Cluster, name: str) -> Answer:
        """Bring a pool to the newest node image of its version: 202, and where it has that already too.

        What it does then is unconfirmed; here machines that an earlier upgrade left are replaced, as by a PUT.
        """
        pool = self._require_pool(cluster, name)
        cluster.require_idle(self.clock.now())
        newest = image_version(pool.properties, cluster.image_date)
        failure = self.plan(cluster, pool.name, "UpgradingNodeImageVersion", str(pool.properties["vmSize"]))
        before, pool.properties = pool.properties, {**pool.properties, "nodeImageVersion": newest}
        kind = "UpgradingNodeImageVersion"
        return Answer(202, None, self._start(cluster, pool, kind, run_change, failure, before=before))

    def upgrade_profile(self, cluster: Cluster, name: str) -> Answer:
        """Versions that a pool could go to."""
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
        """Versions that a new pool could have."""
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
        """Status of an operation."""
        operation = self._require_operation(identity)
        return Answer(200, operation.wire(), polls_again=operation.is_running)

    def get_operation_result(self, identity: str) -> Answer:
        """Result of an operation: 202 while it runs, then 204."""
        operation = self._require_operation(identity)
        return Answer(202, None, operation) if operation.is_running else Answer(204)

    def _require_operation(self, identity: str) -> Operation:
        operation = self.operations.get(identity)
        if operation is None:
            raise refuse("NotFound", f"The entity was not found. Operation {identity}.", status=404)
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
        """A cluster keeps at least one System pool (docs: aks/use-system-pools; code and sentence unconfirmed)."""
        others = [other for other in cluster.pools.values() if other is not pool]
        if (
            not stays
            and pool.properties["mode"] == "System"
            and not any(o.properties["mode"] == "System" for o in others)
        ):
            raise refuse("OperationNotAllowed", "There has to be at least one system agent pool.", status=400)


def cluster_key(subscription: str, group: str, name: str) -> str:
    """Key of a cluster in the service."""
    return f"{subscription}/{group}/{name}".lower()


def _end_if_broken(job: Job, task: asyncio.Task[None]) -> None:
    """A mistake of the sandbox itself must not leave an operation running for ever."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("operation on %s broke", job.pool.name, exc_info=error)
        job.end(wire_error("InternalServerError", f"The sandbox broke: {error!r}"))


def _kind_of_change(before: Json, after: Json) -> str:
    """ProvisioningState while a PUT is carried out (states: docs: aks/manage-abort-operations and others)."""
    if before["currentOrchestratorVersion"] != after["currentOrchestratorVersion"]:
        return "Upgrading"
    if before["nodeImageVersion"] != after["nodeImageVersion"]:
        return "UpgradingNodeImageVersion"
    if before["powerState"] != after["powerState"]:
        return "Stopping" if after["powerState"] == {"code": "Stopped"} else "Starting"
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    return "Scaling" if changed == {"count"} else "Updating"
