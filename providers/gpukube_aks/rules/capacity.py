"""Checks Spot and reserved machines: what AKS and Azure reject, and what cannot work.

In scope: pure checks of capacity. Out of scope: rules of every cloud (`gpukube.spec.rules`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_aks.rules.upgrades import is_zero, surge_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target

_PRICE_DECIMALS: Final = 5  # docs: aks/spot-node-pool
_DEEPEST_DISCOUNT: Final = 0.9  # docs: virtual-machines/spot-vms, "up to 90 %"
_UNRESERVABLE: Final = re.compile(r"Standard_(ND|NC\d+a(ds|dis)_H100)")
"""Series without capacity reservations (docs: virtual-machines/capacity-reservation-overview, of 2026-02-17:
"ND-series, NCads H100 v5-series")."""

_FROZEN: Final = re.compile(r"Standard_NC\d+ads_A100_v4")
"""Series for which Azure adds no capacity (docs: virtual-machines/sizes/gpu-accelerated/nca100v4-series)."""


def check_series(target: Target) -> Iterator[Finding]:
    """Report a series whose machines are getting scarcer."""
    if _FROZEN.fullmatch(target.machine.name):
        yield Finding(
            "aks-series-frozen",
            target.locator.at("instanceType"),
            f"Azure adds no capacity for the series of {target.machine.name}: machines may be hard to get",
            fix="use an NCads_H100_v5 size for a new pool, or reserve capacity",
            why="learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated/nca100v4-series",
            severity="hint",
        )


def check_spot(target: Target) -> Iterator[Finding]:
    """Report Spot prices that AKS rejects or that never get a machine, and eviction policies without Spot."""
    price, policy = target.capacity.max_price, target.native.get("scaleSetEvictionPolicy")
    if target.capacity.type != "spot":
        if policy is not None:
            yield Finding(
                "aks-eviction-policy",
                target.locator.at("aks.scaleSetEvictionPolicy"),
                "aks.scaleSetEvictionPolicy is set on a pool that is not Spot",
                fix="remove it, or write capacity: {type: spot}",
            )
        return
    if price is not None and price != -1:
        where, on_demand = target.locator.at("capacity.maxPrice"), target.machine.price_usd_h
        if price <= 0 or round(price, _PRICE_DECIMALS) != price:
            fix = f"write a number above 0 with at most {_PRICE_DECIMALS} decimals, or remove it"
            message = f"capacity.maxPrice is {price}, which AKS does not accept"
            yield Finding("aks-spot-price", where, message, fix=fix)
        elif on_demand is not None and price < on_demand * (1 - _DEEPEST_DISCOUNT):
            yield Finding(
                "aks-spot-floor",
                where,
                f"capacity.maxPrice is {price:g}, less than a tenth of the on-demand price ({on_demand:g} USD per "
                "hour)",
                fix="remove it to pay the current Spot price, up to the on-demand price",
                why="AKS accepts such a price, but the pool never gets a node (Azure/AKS#4404)",
                severity="warning",
            )
    if not target.nodes.autoscaled and target.nodes.count:
        yield Finding(
            "aks-spot-fixed",
            target.locator.at("nodes.count"),
            "nodes.count is fixed, so evicted Spot nodes are not replaced",
            fix="write nodes.autoscaling, with the same number as max",
            why="on AKS only the autoscaler adds new Spot nodes (learn.microsoft.com/azure/aks/spot-node-pool)",
            severity="hint",
        )


def check_reservation(target: Target) -> Iterator[Finding]:
    """Report sizes without reservations, and upgrades that need more machines than the pool has."""
    capacity = target.capacity
    if capacity.type != "reserved" or capacity.reservation is None:
        return
    if _UNRESERVABLE.match(target.machine.name):
        yield Finding(
            "aks-reservation-size",
            target.locator.at("capacity.reserved.aks.capacityReservationGroup"),
            f"Azure has no capacity reservations for {target.machine.name}",
            fix="write capacity.type: on-demand, or use another series: NCasT4_v3, NC_A100_v4, NVadsA10_v5",
            why="the ND and NCads_H100_v5 series have none "
            "(learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview)",
            severity="warning",
        )
    if not is_zero(target.upgrade.max_surge):
        yield Finding(
            "aks-reservation-surge",
            target.locator.at("upgrade" if target.upgrade.max_surge else "capacity.type"),
            f"an upgrade adds {surge_text(target.upgrade)} for a while, and the reservation must include those too",
            fix="write upgrade: {maxSurge: 0, maxUnavailable: 1}, or reserve that many more",
            why="learn.microsoft.com/azure/aks/use-capacity-reservation-groups",
            severity="hint",
        )
