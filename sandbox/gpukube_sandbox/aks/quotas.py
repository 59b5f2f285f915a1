"""Azure's quotas: how many vCPUs a subscription may use in a region, and how many it uses.

In scope: limits, sums, the response of Microsoft.Compute, and the check. Out of scope: HTTP (`routes`), error messages
(`failures`).

Sources: docs: rest/api/compute/usage/list, virtual-machines/quotas, virtual-machines/spot-vms (one for all sizes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.failures import quota_failure, size_quota_error
from gpukube_sandbox.aks.locations import check_subscription
from gpukube_sandbox.aks.sizes import SIZES, find_size
from gpukube_sandbox.aks.upgrades import is_rolled, surge_of
from gpukube_sandbox.shapes import Keys, check_entry

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.aks.lifecycle import Failure
    from gpukube_sandbox.aks.pools import Pool

DEFAULT = 100_000
"""Default of every quota: more than any test needs. Real subscriptions often start with 0."""
REGIONAL, SPOT = "cores", "lowPriorityCores"
NAMES = {
    REGIONAL: "Total Regional vCPUs",
    SPOT: "Total Regional Low-priority vCPUs",
    **{size.family: f"{size.family} vCPUs" for size in SIZES.values()},
}
"""Name of a quota -> its localizedValue."""
_AT_REST = frozenset({"Succeeded", "Failed", "Canceled"})
_THINGS = Keys({"subscription": str, "location": str}, {"quotas": Keys({}, dict.fromkeys(NAMES, int))})


@dataclass(slots=True)
class Quotas:
    """The quotas of all subscriptions and regions.

    Attributes:
        clusters: The service's clusters, whose machines count.
        limits: Subscription and region in lowercase -> name -> vCPUs, for quotas that were set.
    """

    clusters: dict[str, Cluster]
    limits: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def declare(self, entry: Json) -> list[str]:
        """Set limits, `{"subscription", "location", "quotas": {name: vCPUs}}`; return a description of each change.

        Raises:
            WrongEntry: An unknown or missing key, a value that is not a whole number, no subscription, or no location.
        """
        check_entry(entry, _THINGS)
        check_subscription(entry)
        known = self.limits.setdefault((str(entry["subscription"]).lower(), str(entry["location"]).lower()), {})
        given = entry.get("quotas")
        limits = {str(name): int(value) for name, value in given.items()} if isinstance(given, dict) else {}
        changed = [f"quota {name} of {value}" for name, value in limits.items() if known.get(name) != value]
        known.update(limits)
        return changed

    def usages(self, subscription: str, location: str) -> Json:
        """Return Microsoft.Compute's usages of a region."""
        place = (subscription.lower(), location.lower())
        items: list[Json] = [
            {
                "unit": "Count",
                "currentValue": self._used(place, name),
                "limit": self._limit(place, name),
                "name": {"value": name, "localizedValue": title},
            }
            for name, title in NAMES.items()
        ]
        return {"value": items}

    def check(self, cluster: Cluster, pool: Pool | None, after: Json) -> Failure | None:
        """Reject machines that exceed the family's quota; return the later failure if they exceed another quota.

        Args:
            cluster: Cluster of the pool.
            pool: The existing pool; None for a new one.
            after: Its properties after the change.

        Raises:
            ArmError: 400; an upgrade's surge machines count too.
        """
        have = len(pool.nodes) if pool else 0
        stopped = after.get("powerState") == {"code": "Stopped"}
        more = 0 if stopped else max(0, int(str(after.get("count", 0))) - have)
        if pool is not None and is_rolled(pool.properties, after):
            more += surge_of(after, have).extra
        return self.late(cluster, after, more, early=True)

    def late(self, cluster: Cluster, after: Json, more: int, *, early: bool = False) -> Failure | None:
        """Return the compute service's error for additional machines; None if they fit.

        Args:
            cluster: Cluster of the pool.
            after: Properties of the pool.
            more: Number of additional machines.
            early: Whether AKS itself checks the family first.

        Raises:
            ArmError: AKS checks the family, and the machines do not fit.
        """
        size, place = find_size(str(after["vmSize"])), (cluster.subscription.lower(), cluster.location.lower())
        if size is None or more <= 0:
            return None
        needed = more * size.vcpus
        for name in counted(after):
            limit, used = self._limit(place, name), self._used(place, name)
            if used + needed > limit:
                if early and name == size.family:
                    raise size_quota_error(size.family, cluster.location, needed, limit - used)
                return quota_failure(name, cluster.location, limit, used, needed)
        return None

    def has_spot(self, subscription: str, location: str, vcpus: int) -> bool:
        """Return whether the quota of Spot machines has room for so many vCPUs."""
        place = (subscription.lower(), location.lower())
        return self._used(place, SPOT) + vcpus <= self._limit(place, SPOT)

    def _limit(self, place: tuple[str, str], name: str) -> int:
        return self.limits.get(place, {}).get(name, DEFAULT)

    def _used(self, place: tuple[str, str], name: str) -> int:
        return sum(
            _vcpus(pool)
            for cluster in self.clusters.values()
            if (cluster.subscription.lower(), cluster.location.lower()) == place
            for pool in cluster.pools.values()
            if name in counted(pool.properties)
        )


def counted(pool: Json) -> tuple[str, ...]:
    """Return the names of the quotas that a pool's machines count against."""
    size = find_size(str(pool["vmSize"]))
    return (SPOT,) if pool.get("scaleSetPriority") == "Spot" else (size.family if size else "", REGIONAL)


def _vcpus(pool: Pool) -> int:
    """Sum the vCPUs of a pool, including machines that are still coming up."""
    size, coming = find_size(str(pool.properties["vmSize"])), 0
    if pool.state not in _AT_REST and not pool.is_stopped:
        coming = int(str(pool.properties.get("count", 0)))
    return max(len(pool.nodes), coming) * (size.vcpus if size else 0)
