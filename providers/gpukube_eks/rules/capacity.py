"""Rules for Spot machines, reservations, and Capacity Blocks: what EKS rejects, and what probably never starts.

In scope: pure checks from a target to diagnostics, listed in `CAPACITY_CHECKS`. Out of scope: that a reservation has
one form and needs type reserved (`gpukube.spec.rules`), live reservations (`placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_eks.facts.capacity import BLOCK_FAMILIES, LARGEST_BLOCK, is_ultra
from gpukube_eks.facts.fabric import efa_cards
from gpukube_eks.facts.images import family_of
from gpukube_eks.pool.purchase import is_block
from gpukube_eks.pool.upgrades import has_surge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

_SCARCE: Final = 8
"""GPUs per machine from which a second machine is rarely available."""
_MOST_AT_ONCE: Final = 100  # botocore eks NodegroupUpdateConfig


def _spot(target: Target) -> Iterator[Finding]:
    price = target.capacity.max_price
    if price is not None:
        yield Finding(
            "eks-spot-price",
            target.locator.at("capacity.maxPrice"),
            f"capacity.maxPrice is {price:g}, but EKS has no maximum price",
            fix="remove maxPrice",
            why="a node group buys Spot machines at the current Spot price; its launch template must not request them "
            "(docs: eks/launch-templates)",
        )


def _block_only(target: Target) -> Iterator[Finding]:
    """Check UltraServers; a Capacity Block has a reservation id too, so another reservation may still be one."""
    if not is_ultra(target.machine.name) or is_block(target.capacity):
        return
    reserved = target.capacity.type == "reserved"
    yield Finding(
        "eks-block-only",
        target.locator.at("capacity.reserved.eks" if reserved else "capacity.type"),
        f"AWS offers {target.machine.name} only in Capacity Blocks of UltraServers",
        fix="write capacity: {type: reserved, reserved: {eks: {capacityBlock: cr-...}}}",
        why="docs: AWSEC2 UserGuide, capacity-blocks-how",
        severity="warning" if reserved else "error",
    )


def _scarce_spot(target: Target) -> Iterator[Finding]:
    if target.capacity.type == "spot" and target.machine.gpus >= _SCARCE and len(target.machines) <= 1:
        yield Finding(
            "eks-spot-scarce",
            target.locator.at("capacity.type"),
            f"Spot machines of one scarce type, {target.machine.name}, are often interrupted",
            fix="write instanceTypes with other types of the same GPUs, add a pool of another type, or write "
            "capacity.type: reserved",
            why="AWS recommends several types for Spot (docs: eks/managed-node-groups)",
            severity="hint",
        )


def _types(target: Target) -> Iterator[Finding]:
    reservation, where = target.capacity.reservation, target.locator.at("instanceTypes")
    if len(target.machines) <= 1:
        return
    if target.capacity.type == "spot":
        yield Finding(
            "eks-types-order",
            where,
            "EKS ignores the order of instanceTypes for Spot: it starts the types with the most spare capacity at a "
            "low price",
            fix="accept it, or write one type",
            why="docs: eks/managed-node-groups, allocation strategy; the cluster autoscaler uses the first type",
            severity="hint",
        )
    elif reservation and reservation.id.startswith("cr-"):
        yield Finding(
            "eks-types-reserved",
            where,
            f"instanceTypes has {len(target.machines)} types, but reservation {reservation.id} is for one",
            fix="write instanceType with the reservation's type, or the ARN of a resource group of reservations",
            why="machines of other types cannot start from it (EC2 CapacityReservation.InstanceType)",
        )


def _reserved_region(target: Target) -> Iterator[Finding]:
    """Check an ARN's region, arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE (docs: IAM UserGuide, reference-arns)."""
    reservation, region = target.capacity.reservation, target.cluster.identity["region"]
    named = reservation.id.split(":") if reservation else []
    if reservation is None or named[0] != "arn" or named[3] == region:
        return
    yield Finding(
        "eks-reserved-region",
        target.locator.at(f"capacity.reserved.eks.{reservation.form}"),
        f"{reservation.id} is in {named[3]}, and the cluster in {region}",
        fix=f"write the ARN of a group in {region}",
        why="machines use only reservations in their own region",
    )


def _reserved_zones(target: Target) -> Iterator[Finding]:
    reservation = target.capacity.reservation
    if reservation is None or not reservation.id.startswith("cr-") or len(target.zones) <= 1:
        return
    yield Finding(
        "eks-reserved-zones",
        target.locator.at("zones"),
        f"zones has {len(target.zones)} zones, but reservation {reservation.id} is in one",
        fix="write only that zone, or remove zones: gpukube reads the reservation's zone from AWS",
        why="machines in other zones would not use the reservation (docs: eks/capacity-blocks-mng)",
    )


def _block(target: Target) -> Iterator[Finding]:
    if not is_block(target.capacity):
        return
    where = target.locator.at("capacity.reserved.eks.capacityBlock")
    if family_of(target.machine.name) not in BLOCK_FAMILIES:
        yield Finding(
            "eks-block-type",
            where,
            f"EC2 offers no Capacity Blocks of {target.machine.name}",
            fix="write a type of p4d, p5 or p6, or capacityReservation",
            why="EC2 offers only blocks of these (EC2 DescribeInstanceTypes, supportedUsageClasses)",
        )
    path = "nodes.autoscaling.max" if target.nodes.autoscaled else "nodes.count"
    if target.nodes.maximum > LARGEST_BLOCK:
        yield Finding(
            "eks-block-size",
            target.locator.at(path),
            f"{path} is {target.nodes.maximum}, but a Capacity Block has at most {LARGEST_BLOCK} machines",
            fix=f"write {LARGEST_BLOCK} or less, and another pool for each additional block",
            why="EKS accepts the bound, and EC2 launches no machine beyond the block"
            if target.nodes.autoscaled
            else "",
            severity="warning" if target.nodes.autoscaled else "error",
        )
    if target.nodes.minimum > 0:
        path = "nodes.autoscaling.min" if target.nodes.autoscaled else "nodes.count"
        yield Finding(
            "eks-block-time",
            target.locator.at(path),
            f"{path} is {target.nodes.minimum}, which works only while the Capacity Block is active",
            fix="write autoscaling: {min: 0, max: N}, or create the pool once the block has started",
            why="launches fail before the start, and EKS scales the group down 40 minutes before the end "
            "(docs: eks/capacity-blocks-mng)",
            severity="hint",
        )


def _surge(target: Target) -> Iterator[Finding]:
    scarce = target.machine.gpus >= _SCARCE
    if not has_surge(target) or not (scarce or target.capacity.reservation):
        return
    where = target.locator.at("eks.updateConfig" if "updateConfig" in target.native else "upgrade.maxSurge")
    what = "the reservation" if target.capacity.reservation else f"the region for {target.machine.name}"
    yield Finding(
        "eks-surge",
        where,
        f"an update starts new machines before it stops old ones, and {what} rarely has capacity for both",
        fix="write upgrade: {maxSurge: 0}",
        why="an update fails if no machine is available (aws/containers-roadmap#1866)",
        severity="warning" if target.capacity.reservation else "hint",
    )


def _unavailable(target: Target) -> Iterator[Finding]:
    requested = target.upgrade.max_unavailable
    number = int(requested.rstrip("%")) if requested is not None else 1
    if not 1 <= number <= _MOST_AT_ONCE:
        yield Finding(
            "eks-max-unavailable",
            target.locator.at("upgrade.maxUnavailable"),
            f"upgrade.maxUnavailable is {requested}, but EKS replaces 1 to {_MOST_AT_ONCE} nodes at a time",
            fix=f"write 1 to {_MOST_AT_ONCE}, or 1% to 100%"
            + ("; maxSurge: 1 starts new nodes before old ones stop" if number < 1 else ""),
            why="botocore eks NodegroupUpdateConfig",
        )


def _unused_network(target: Target) -> Iterator[Finding]:
    """Report training machines with several EFA interfaces that would exchange data over TCP."""
    interfaces, shared = len(efa_cards(target.machine)), target.sharing.mig or target.sharing.slicing
    several = interfaces > 1 and target.nodes.maximum > 1 and family_of(target.machine.name).startswith("p")
    if several and not shared and not target.high_speed:
        yield Finding(
            "eks-efa-unused",
            target.locator.at("network"),
            f"each {target.machine.name} has {interfaces} EFA interfaces, and the pool uses none",
            fix="write network: {highSpeed: true}; or silence this rule if no job uses GPUs of several nodes",
            why="NCCL falls back to TCP, a fraction of the bandwidth (docs: eks/node-efa)",
            severity="hint",
        )


CAPACITY_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _spot,
    _block_only,
    _scarce_spot,
    _types,
    _reserved_region,
    _reserved_zones,
    _block,
    _surge,
    _unavailable,
    _unused_network,
)
