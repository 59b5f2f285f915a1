"""Quotas of Azure: how many vCPUs a subscription may run in a region, and how many it runs.

In scope: limits, sums, the answer of Microsoft.Compute, and what is refused. Out of scope: HTTP (`routes`), the
sentences of failures (`failures`).

Sources: docs: rest/api/compute/usage/list, virtual-machines/quotas, virtual-machines/spot-vms (one for all sizes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.failures import short_early, short_late
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
"""Of every quota that nobody has set: more than any test needs. Real subscriptions often begin with 0."""
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
        clusters: Those of the service, whose machines count.
        limits: Subscription and region in lower case -> name -> vCPUs, where it was set.
    """

    clusters: dict[str, Cluster]
    limits: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)

    def declare(self, entry: Json) -> list[str]:
        """Set limits, `{"subscription", "location", "quotas": {name: vCPUs}}`; gives those that are new, in words.

        Raises:
            WrongEntry: An unknown or missing key, a value that is no whole number, no subscription or no location.
        """
        check_entry(entry, _THINGS)
        check_subscription(entry)
        there = self.limits.setdefault((str(entry["subscription"]).lower(), str(entry["location"]).lower()), {})
        given = entry.get("quotas")
        wanted = {str(name): int(value) for name, value in given.items()} if isinstance(given, dict) else {}
        made = [f"quota {name} of {value}" for name, value in wanted.items() if there.get(name) != value]
        there.update(wanted)
        return made

    def usages(self, subscription: str, location: str) -> Json:
        """What Microsoft.Compute lists of a region."""
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

    def check(self, cluster: Cluster, pool: Pool | None, wanted: Json) -> Failure | None:
        """Refuse at once what the size's family leaves no room for; gives what fails late for the other quotas.

        Args:
            cluster: Where.
            pool: As it is; None when it is new.
            wanted: Its properties after.

        Raises:
            Refusal: 400; machines that an upgrade brings beside the others count too.
        """
        have = len(pool.nodes) if pool else 0
        stopped = wanted.get("powerState") == {"code": "Stopped"}
        more = 0 if stopped else max(0, int(str(wanted.get("count", 0))) - have)
        if pool is not None and is_rolled(pool.properties, wanted):
            more += surge_of(wanted, have).extra
        return self.late(cluster, wanted, more, early=True)

    def late(self, cluster: Cluster, wanted: Json, more: int, *, early: bool = False) -> Failure | None:
        """What the compute service says of so many more machines; None when they fit.

        Args:
            cluster: Where.
            wanted: Properties of their pool.
            more: How many.
            early: AKS itself looks at the family first.

        Raises:
            Refusal: It does, and they do not fit.
        """
        size, place = find_size(str(wanted["vmSize"])), (cluster.subscription.lower(), cluster.location.lower())
        if size is None or more <= 0:
            return None
        needed = more * size.vcpus
        for name in counted(wanted):
            limit, used = self._limit(place, name), self._used(place, name)
            if used + needed > limit:
                if early and name == size.family:
                    raise short_early(size.family, cluster.location, needed, limit - used)
                return short_late(name, cluster.location, limit, used, needed)
        return None

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
    """The quotas that the machines of a pool count against."""
    size = find_size(str(pool["vmSize"]))
    return (SPOT,) if pool.get("scaleSetPriority") == "Spot" else (size.family if size else "", REGIONAL)


def _vcpus(pool: Pool) -> int:
    """Sum the vCPUs of a pool, those of machines on their way too."""
    size, coming = find_size(str(pool.properties["vmSize"])), 0
    if pool.state not in _AT_REST and not pool.is_stopped:
        coming = int(str(pool.properties.get("count", 0)))
    return max(len(pool.nodes), coming) * (size.vcpus if size else 0)
