"""Rules for EFA and placement groups that need no call.

In scope: pure checks from a target to diagnostics, listed in `NETWORK_CHECKS`. Out of scope: checks against the account
(`pool.connectivity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_eks.facts.fabric import efa_cards, efa_interfaces
from gpukube_eks.pool.placement_groups import COMPACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target


def _efa(target: Target) -> Iterator[Finding]:
    """Check that the type has EFA, and that all types have equal interfaces: they share one launch template."""
    if not target.high_speed:
        return
    where, first = target.locator.at("network.highSpeed"), target.machine
    if without := [machine.name for machine in target.all_machines if not efa_cards(machine)]:
        yield Finding(
            "eks-efa",
            where,
            f"network.highSpeed is true, but {without[0]} has no EFA",
            fix="choose a larger type of the family, p4d, p5 or p6 (gpukube catalog list), or remove network.highSpeed",
            why="EC2 rejects EFA interfaces for it (EC2 DescribeInstanceTypes, NetworkInfo.EfaSupported)",
        )
        return
    different = [one.name for one in target.machines if efa_interfaces(one) != efa_interfaces(first)]
    if different:
        yield Finding(
            "eks-efa-types",
            target.locator.at("instanceTypes"),
            f"{different[0]} has other network cards with EFA than {first.name}",
            fix="keep types with the same cards, or write another pool",
            why="all types of a node group have the interfaces of one launch template",
        )


def _zones(target: Target) -> Iterator[Finding]:
    field = "network.highSpeed" if target.high_speed else "placement: compact" if target.placement == COMPACT else ""
    if not field or len(target.zones) <= 1:
        return
    yield Finding(
        "eks-one-zone",
        target.locator.at("zones"),
        f"zones has {len(target.zones)} zones, but {field} needs one",
        fix=f"write zones: [{target.zones[0]}], and another pool for each other zone",
        why="neither EFA traffic nor a cluster placement group reaches another zone (docs: AWSEC2 UserGuide, efa, "
        "placement-strategies)",
    )


def _reserved(target: Target) -> Iterator[Finding]:
    """Check a group of reservations, which gpukube does not read; a single one is read before the pool is created."""
    reservation = target.capacity.reservation
    if reservation is None or target.placement != COMPACT or reservation.id.startswith("cr-"):
        return
    yield Finding(
        "eks-placement-reserved",
        target.locator.at("placement"),
        "placement is compact, but the machines of a group of reservations are where these are",
        fix="remove placement, or write the name of the reservations' placement group",
        why="EC2 has no capacity in another placement group (terraform-aws-modules/terraform-aws-eks#3730)",
    )


NETWORK_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (_efa, _zones, _reserved)
