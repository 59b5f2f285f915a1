"""The managed cluster autoscaler of AKS, for pools with enableAutoScaling.

In scope: its template of a pool's nodes, and its changes to scale sets. Out of scope: scaling decisions
(`kube.autoscaler`), changes through the ARM API (`lifecycle`).

Source: kubernetes/autoscaler cluster-autoscaler/cloudprovider/azure (azure_template.go); docs: aks/cluster-autoscaler
(scan 10 s, unneeded 10 min, unready 20 min). AKS's managed version may differ.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import ArmError
from gpukube_sandbox.aks.failures import planned_failure
from gpukube_sandbox.aks.lifecycle import Pace, add_machines, delete_machine
from gpukube_sandbox.aks.machines import Place, node_shape, scale_set_name
from gpukube_sandbox.aks.scalerprofile import DEFAULTS
from gpukube_sandbox.aks.supply import zones_in_turn
from gpukube_sandbox.kube.autoscaler.groups import Failure, Group, Profile, duration_s, make_template_node

if TYPE_CHECKING:
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.pools import Pool
    from gpukube_sandbox.aks.quotas import Quotas
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.faults import FaultBook
    from gpukube_sandbox.kube.store.objects import JsonObject

_PODS = 110


@dataclass(slots=True)
class AksGroups:
    """The scale sets of a cluster's autoscaled pools; implements `Groups`.

    Attributes:
        faults: Returns the failure of a scale-up, if one is planned; its operation kind is "autoscale".
        quotas: Quotas that a scale-up is checked against.
    """

    cluster: Cluster
    clock: Clock
    faults: FaultBook
    quotas: Quotas

    async def profile(self) -> Profile:
        """Return the cluster's profile; each pool turns autoscaling on for itself."""
        found = {**DEFAULTS, **self.cluster.auto_scaler}
        return Profile(
            "kubernetes.azure.com/accelerator",
            unneeded_s=duration_s(found["scale-down-unneeded-time"]),
            after_add_s=duration_s(found["scale-down-delay-after-add"]),
            unready_s=duration_s(found["scale-down-unready-time"]),
            provision_s=duration_s(found["max-node-provision-time"]),
            expanders=(found["expander"],),
        )

    def listed(self) -> list[Group]:
        """List the scale sets of autoscaled pools that are running and have no operation in progress."""
        return [
            Group(
                self._scale_set(pool),
                pool.name,
                tuple(pool.nodes),
                _number(pool, "count"),
                _number(pool, "minCount"),
                _number(pool, "maxCount"),
            )
            for pool in self.cluster.pools.values()
            if pool.properties.get("enableAutoScaling")
            and not pool.is_stopped
            and pool.state in {"Succeeded", "Failed"}
        ]

    def template_node(self, name: str) -> JsonObject:
        """Return the node that the autoscaler expects: labels, taints, and whole GPUs even with MIG or sharing."""
        pool = self._pool(name)
        shape = node_shape(self._place(pool), pool.name, pool.properties, pool.next_index, 0.0)
        devices = {"nvidia.com/gpu": shape.gpu.count} if shape.gpu else {}
        return make_template_node(dataclasses.replace(shape, name=f"template-{name}", max_pods=_PODS), devices)

    def template_slices(self, name: str) -> list[JsonObject]:  # noqa: ARG002 -- no pool has any
        """Return nothing: of a pool without nodes, the autoscaler knows no devices of DRA drivers."""
        return []

    async def grow(self, name: str, count: int) -> Failure | None:
        """Raise the capacity of a scale set; lower it again for machines that fail to come up.

        The autoscaler sees at once that a quota is too low. Of an allocation that failed, it only sees that no node
        came in time (kubernetes/autoscaler#8323).
        """
        began, pool = self.clock.now(), self._pool(name)
        short = self.quotas.late(self.cluster, pool.properties, count)
        pool.properties["count"] = _number(pool, "count") + count
        try:
            fault = self.faults.operation("arm", self.cluster.name, pool.name, "autoscale")
            failure = planned_failure(fault, self.cluster, pool.name, str(pool.properties["vmSize"]))
        except ArmError as error:
            pool.properties["count"] = len(pool.nodes)
            return Failure(str(error), count, "refused")
        failure = failure or short
        pace = Pace()
        await self.clock.sleep(pace.allocate_s + (failure.delay_s if failure else 0))
        fails = failure is not None and failure.error is not None
        wanted = min(count, failure.after_nodes) if failure and fails else count
        shortage = await add_machines(self.cluster, pool, wanted, pace)
        await self.cluster.kube.joined(pool.nodes)
        found = failure.error if failure and fails else shortage
        is_quota = found is not None and found.get("code") == "QuotaExceeded"
        if found is not None and not is_quota:
            profile = await self.profile()
            await self.clock.sleep(began + profile.provision_s - self.clock.now())
        missing = max(0, _number(pool, "count") - len(pool.nodes))
        pool.properties["count"] = len(pool.nodes)
        if found is None:
            return None
        return Failure(str(found.get("message", "")), missing, "refused" if is_quota else "time")

    def release(self, name: str) -> None:
        """Do nothing: only an operation requests machines besides the autoscaler, and that lists no group."""

    async def shrink(self, name: str, node: str) -> None:
        """Delete one member of a scale set."""
        pool = self._pool(name)
        if node in pool.nodes:
            await delete_machine(self.cluster, pool, node)
            pool.properties["count"] = len(pool.nodes)

    def _place(self, pool: Pool) -> Place:
        cluster, zone = self.cluster, next(zones_in_turn(pool))
        return Place(cluster.id, cluster.subscription, cluster.node_group, cluster.location, zone=zone)

    def _scale_set(self, pool: Pool) -> str:
        return scale_set_name(self.cluster.id, pool.name)

    def _pool(self, name: str) -> Pool:
        return next(pool for pool in self.cluster.pools.values() if self._scale_set(pool) == name)


def _number(pool: Pool, key: str) -> int:
    return int(str(pool.properties[key]))
