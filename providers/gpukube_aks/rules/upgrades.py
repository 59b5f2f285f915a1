"""Checks upgrade settings: what AKS does not support, and what cannot work.

In scope: pure checks of `upgrade`, and parsing its numbers. Out of scope: rules of every cloud (`gpukube.spec.rules`:
one of the two numbers must be above 0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.quotas import share_of
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target, Upgrade

MAX_NODES: Final = 1000
"""Maximum nodes of a pool (docs: aks/upgrade-aks-node-pools-rolling)."""

_DEFAULT_SURGE: Final = "10%"
"""Default of AKS (SDK, AgentPoolUpgradeSettings.maxSurge)."""


def check_upgrade(target: Target) -> Iterator[Finding]:
    """Report upgrades that set amounts on a Spot pool, both add and remove nodes, or exceed the pool's limit."""
    upgrade, where = target.upgrade, target.locator.at("upgrade")
    surges = not is_zero(upgrade.max_surge)
    if surges and not is_zero(upgrade.max_unavailable or "0"):
        yield Finding(
            "aks-upgrade-both",
            where,
            f"upgrade.maxUnavailable is {upgrade.max_unavailable}, but an upgrade adds {surge_text(upgrade)} first",
            fix="add upgrade.maxSurge: 0",
            why="both above 0 is a preview feature (learn.microsoft.com/azure/aks/upgrade-aks-node-pools-rolling)",
            severity="warning",
        )
    amounts = (("maxSurge", upgrade.max_surge), ("maxUnavailable", upgrade.max_unavailable))
    for name, amount in amounts if target.capacity.type == "spot" else ():
        if amount is not None and not is_zero(amount):
            yield Finding(
                "aks-spot-surge",
                target.locator.at(f"upgrade.{name}"),
                f"upgrade.{name} is {amount}, which AKS does not accept on Spot pools",
                fix="remove it",
                why="AKS adds no nodes while it upgrades Spot pools (Azure/bicep#14517; docs: aks/spot-node-pool)",
            )
    least = target.nodes.minimum
    if surges and least <= MAX_NODES < least + share_of(upgrade.max_surge or _DEFAULT_SURGE, least):
        yield Finding(
            "aks-surge-limit",
            where if upgrade.max_surge else target.locator.at("nodes"),
            f"an upgrade of {least} nodes adds {surge_text(upgrade)}, more than the {MAX_NODES} that a pool can have",
            fix="write upgrade: {maxSurge: 0, maxUnavailable: 1}, or split the pool",
            why="AKS refuses such an upgrade (Azure/AKS release notes of 2026-08-07)",
            severity="warning",
        )


def is_zero(amount: str | None) -> bool:
    """Return whether an amount, "1" or "33%", is zero; None, the default, is not."""
    return amount in ("0", "0%")


def surge_text(upgrade: Upgrade) -> str:
    """Return human-readable how many nodes an upgrade adds."""
    amount = upgrade.max_surge or _DEFAULT_SURGE
    if amount.endswith("%"):
        return f"{amount} of the nodes"
    return "1 node" if amount == "1" else f"{amount} nodes"
