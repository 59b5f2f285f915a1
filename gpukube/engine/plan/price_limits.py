"""Compares what pools cost with the maximum of their spec (maxHourlyPrice).

In scope: the verdict on a pool, and which prices are good enough for one. Out of scope: prices (core.prices), reading
current ones (gpukube.catalog).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from gpukube.core.families import family_key
from gpukube.core.prices import target_side
from gpukube.engine.plan.regions import region_of
from gpukube.errors import Finding, GpukubeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.prices import NodePrice, PriceBook
    from gpukube.core.values import Action, Desired, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan

_OLDEST_DAYS: Final = 30
"""Age at which a stored price is too old to decide about money."""
_FRESH_S: Final = 300.0
"""Age at which a current Spot price is read again before an attempt: those before it may have taken hours."""
_RAISE: Final = "raise maxHourlyPrice, or choose other machines"
_PAYING: Final[tuple[Action, ...]] = ("create", "update", "replace", "standby")


@dataclass(frozen=True, slots=True)
class PriceLimits:
    """Maximum prices of pools, judged with one set of prices.

    Attributes:
        book: The prices.
        now: Seconds since the epoch.
    """

    book: PriceBook
    now: float

    def hourly(self, cluster: ClusterPlan, desired: Desired) -> float:
        """Return the price of all nodes of a pool, USD per hour; 0 if it is unknown, or paid already."""
        if _is_paid(desired):
            return 0.0
        total = target_side(desired).total(self._node(cluster, desired))
        return total.most if total else 0.0

    def over(self, cluster: ClusterPlan, desired: Desired, beside: float = 0.0) -> str:
        """Return why a pool costs more than its maximum, next to others that cost this much; "" if it does not."""
        most = desired.target.max_hourly_price
        if most is None:
            return ""
        cost = self.hourly(cluster, desired) + beside
        both = " while both pools run" if beside else ""
        return f"{cost:.2f} USD/h{both}, more than maxHourlyPrice: {most:g}" if cost > most else ""

    def refused(self, plans: Iterable[ClusterPlan]) -> Mapping[tuple[str, str], GpukubeError]:
        """Return the pools of no family that cost more than their maximum: cluster and pool -> why."""
        return {
            (cluster.cluster.key, pool.pool): GpukubeError(reason, where=pool.where, fix=_RAISE, code="price-limit")
            for cluster in plans
            for pool in cluster.pools
            if pool.desired and pool.family is None and pool.action in _PAYING
            if (reason := self.over(cluster, pool.desired))
        }

    def shown(self, plans: Sequence[ClusterPlan]) -> tuple[ClusterPlan, ...]:
        """Add to each pool with a maximum what a run would do about its price: refuse, or skip it."""
        held = _held(plans)
        return tuple(
            replace(plan, pools=tuple(self._judged(plan, pool, held) for pool in plan.pools))
            if any(pool.desired and pool.desired.target.max_hourly_price is not None for pool in plan.pools)
            else plan
            for plan in plans
        )

    def _judged(self, cluster: ClusterPlan, pool: PoolPlan, held: frozenset[FamilyKey]) -> PoolPlan:
        if pool.desired is None or not _may_pay(pool, held):
            return pool
        if reason := self.doubt(cluster, pool.desired):
            return replace(pool, diagnostics=(*pool.diagnostics, _unknown(pool, pool.desired, reason)))
        if reason := self.over(cluster, pool.desired):
            return replace(pool, diagnostics=(*pool.diagnostics, _over(pool, reason)))
        return pool

    def require_known(self, plans: Sequence[ClusterPlan], *, rebalance: bool = False) -> None:
        """Refuse to decide about money with unknown or old prices.

        Args:
            plans: Plans of all clusters.
            rebalance: Whether alternatives are tried although another one has the nodes.

        Raises:
            SpecError: One diagnostic per pool with a maximum and without a good price.
        """
        held = frozenset() if rebalance else _held(plans)
        found = [
            _unknown(pool, pool.desired, reason)
            for cluster in plans
            for pool in cluster.pools
            if pool.desired and _may_pay(pool, held)
            if (reason := self.doubt(cluster, pool.desired))
        ]
        if found:
            raise SpecError.of(found)

    def doubt(self, cluster: ClusterPlan, desired: Desired) -> str:
        """Return why the price of a pool with a maximum cannot be relied on; "" if it can."""
        if desired.target.max_hourly_price is None or _is_paid(desired):
            return ""
        node = self._node(cluster, desired)
        if node.usd is None:
            return node.unknown or f"the price of {desired.target.machine.name} is unknown"
        if node.rough:
            return f"the only known price of {desired.target.machine.name} is that of {node.place}"
        if node.source == "live":
            return ""
        return (
            f"the price of {desired.target.machine.name} is of {node.as_of or 'an unknown day'}"
            if self._is_old(node)
            else ""
        )

    def _is_old(self, node: NodePrice) -> bool:
        try:
            day = date.fromisoformat(node.as_of)
        except ValueError:
            return True
        return (datetime.fromtimestamp(self.now, UTC).date() - day).days > _OLDEST_DAYS

    def _node(self, cluster: ClusterPlan, desired: Desired) -> NodePrice:
        region = region_of(cluster.cluster, cluster.facts.location if cluster.facts else "")
        return target_side(desired).node(self.book, region)


@dataclass(frozen=True, slots=True)
class CurrentLimits:
    """Maximum prices of pools during a run, in which the Spot prices of the clouds grow old.

    Attributes:
        begun: The limits at the beginning of the run.
        prices: Returns the prices of plans.
        now: Returns seconds since the epoch.
    """

    begun: PriceLimits
    prices: Callable[[Sequence[ClusterPlan]], PriceBook]
    now: Callable[[], float]
    _newer: dict[tuple[str, str], PriceLimits] = field(default_factory=dict, init=False)

    def hourly(self, cluster: ClusterPlan, desired: Desired) -> float:
        """Return the price of all nodes of a pool, as `PriceLimits.hourly`."""
        return self._current(cluster, desired).hourly(cluster, desired)

    def over(self, cluster: ClusterPlan, desired: Desired, beside: float = 0.0) -> str:
        """Return why a pool costs more than its maximum, as `PriceLimits.over`, or why that is unknown by now."""
        limits = self._current(cluster, desired)
        return limits.doubt(cluster, desired) or limits.over(cluster, desired, beside)

    def _current(self, cluster: ClusterPlan, desired: Desired) -> PriceLimits:
        key = cluster.cluster.key, desired.target.pool
        last, now = self._newer.get(key, self.begun), self.now()
        if not last.book.live or desired.target.capacity.type != "spot" or now - last.now < _FRESH_S:
            return last
        alone = replace(cluster, pools=tuple(pool for pool in cluster.pools if pool.pool == desired.target.pool))
        self._newer[key] = PriceLimits(self.prices((alone,)), now)
        return self._newer[key]


def _unknown(pool: PoolPlan, desired: Desired, reason: str) -> Finding:
    return Finding(
        "price-unknown",
        desired.target.locator.at("maxHourlyPrice"),
        f"{pool.where}: {reason}, so maxHourlyPrice cannot be checked",
        fix="add --live-prices, or refresh the prices: gpukube catalog refresh",
        why="an unknown price is not a low one",
    )


def _over(pool: PoolPlan, reason: str) -> Finding:
    skipped = pool.family is not None
    return Finding(
        "price-limit",
        pool.where,
        f"{reason}, so it is skipped" if skipped else reason,
        fix=_RAISE,
        severity="warning" if skipped else "error",
    )


def _held(plans: Iterable[ClusterPlan]) -> frozenset[FamilyKey]:
    """Return the families of which a pool has the nodes: none of their others is tried."""
    pools = (pool for plan in plans for pool in plan.pools if pool.family and pool.family.role == "holder")
    return frozenset(key for pool in pools if pool.desired and (key := family_key(pool.desired)))


def _may_pay(pool: PoolPlan, held: frozenset[FamilyKey]) -> bool:
    """Return whether a run may start nodes of a pool."""
    stands_by = pool.action == "standby" and pool.desired is not None and family_key(pool.desired) in held
    return pool.action in _PAYING and not stands_by


def has_limits(plans: Sequence[ClusterPlan]) -> bool:
    """Return whether a planned pool has a maximum price."""
    return any(
        pool.desired and pool.desired.target.max_hourly_price is not None for plan in plans for pool in plan.pools
    )


def _is_paid(desired: Desired) -> bool:
    """Return whether the machines are paid whether they run or not: those of a reservation or a block."""
    reservation = desired.target.capacity.reservation
    return reservation is not None and bool(reservation.id)
