"""The solver: who owns the driver and who advertises nvidia.com/* on the nodes of a pool.

Exactly one advertiser per node. The answer is looked up in a table by what the nodes bring (`NodeStack`) and
what the spec asks for; every row names its reason, every refusal the way out. Two plugins on one node make the
kubelet keep the last registration, and removing either leaves 0 GPUs (NVIDIA/k8s-device-plugin#255, #455).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube.core.values import Ownership
from gpukube.errors import Diagnostic
from gpukube.gpu.plugin_config import config_key, plugin_config

if TYPE_CHECKING:
    from gpukube.core.values import Advertiser, NodeStack, Target

__all__ = ["ADVERTISER_LABEL", "CONFIG_LABEL", "PRESENT_LABEL", "solve_ownership"]

ADVERTISER_LABEL = "gpukube.io/advertiser"
"""Constant node label that our release's affinity asks for, so that no foreign node is ever touched."""
CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Node label that chooses an entry of the plugin's configuration (NVIDIA/k8s-device-plugin README)."""
PRESENT_LABEL = "nvidia.com/gpu.present"
"""Node label that satisfies the default affinity of the chart without NFD (chart templates, v0.20.0)."""


@dataclass(frozen=True, slots=True)
class _Row:
    driver: Literal["cloud", "none", "any"]
    plugin: Literal["cloud", "none", "any"]
    asked: tuple[str, ...]
    answer: Advertiser | None
    says: str
    fix: str = ""


_TABLE: tuple[_Row, ...] = (
    _Row("any", "any", ("none",), "none", "devicePlugin.owner is none: gpukube installs no plugin here"),
    _Row(
        "any",
        "any",
        ("operator", "dra"),
        None,
        'devicePlugin.owner "{asked}" is not supported on this cloud yet',
        fix="write devicePlugin.owner: auto",
    ),
    _Row("any", "cloud", ("auto", "cloud"), "cloud", "the cloud runs its own device plugin on these nodes"),
    _Row(
        "any",
        "cloud",
        ("helm",),
        None,
        "the cloud runs its own device plugin on these nodes; the chart would be a second one",
        fix="write devicePlugin.owner: cloud, or take the field away that makes the cloud run its own",
    ),
    _Row(
        "none",
        "none",
        ("auto", "helm"),
        None,
        "nothing installs the NVIDIA driver on these nodes",
        fix="write driver.owner: auto",
    ),
    _Row(
        "cloud",
        "none",
        ("auto", "helm"),
        "chart",
        "the cloud installs the driver and no plugin: the device-plugin chart advertises",
    ),
    _Row(
        "any",
        "none",
        ("cloud",),
        None,
        "this cloud runs no device plugin of its own on these nodes",
        fix="write devicePlugin.owner: auto",
    ),
)


def solve_ownership(target: Target, stack: NodeStack) -> Ownership | Diagnostic:
    """Decide who owns driver and plugin for one pool.

    Args:
        target: The pool; its driver, devicePlugin and sharing are read.
        stack: What its nodes bring, from the provider.

    Returns:
        The ownership with the node labels to set at birth, or the refusal with its way out.
    """
    row = next(row for row in _TABLE if _matches(row, stack, target.plugin_owner))
    if row.answer is None:
        return Diagnostic(
            "owner",
            target.locator.at("devicePlugin.owner"),
            f"{target.where}: {row.says.format(asked=target.plugin_owner)}",
            fix=row.fix,
            why="exactly one component may register nvidia.com/* on a node",
        )
    if row.answer != "chart":
        return Ownership(stack.driver, row.answer, "", {}, row.says)
    key = config_key(plugin_config(target.sharing))
    labels = {ADVERTISER_LABEL: "chart", CONFIG_LABEL: key, PRESENT_LABEL: "true"}
    return Ownership(stack.driver, "chart", key, labels, row.says)


def _matches(row: _Row, stack: NodeStack, asked: str) -> bool:
    return row.driver in ("any", stack.driver) and row.plugin in ("any", stack.advertiser) and asked in row.asked
