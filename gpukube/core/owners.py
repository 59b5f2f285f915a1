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

__all__ = [
    "ADVERTISER_LABEL",
    "CONFIG_LABEL",
    "MIG_CONFIG_LABEL",
    "PRESENT_LABEL",
    "needs_operator",
    "solve_ownership",
]

ADVERTISER_LABEL = "gpukube.io/advertiser"
"""Constant node label that our release's affinity asks for, so that no foreign node is ever touched."""
CONFIG_LABEL = "nvidia.com/device-plugin.config"
"""Node label that chooses an entry of the plugin's configuration (NVIDIA/k8s-device-plugin README)."""
PRESENT_LABEL = "nvidia.com/gpu.present"
"""Node label that satisfies the default affinity of the chart without NFD (chart templates, v0.20.0)."""


MIG_CONFIG_LABEL = "nvidia.com/mig.config"
"""Node label that the GPU Operator's MIG manager cuts by (NVIDIA GPU Operator documentation, gpu-operator-mig)."""


@dataclass(frozen=True, slots=True)
class _Row:
    driver: Literal["cloud", "none", "any"]
    plugin: Literal["cloud", "none", "any"]
    operator: Literal["needed", "not needed", "any"]
    asked: tuple[str, ...]
    answer: Advertiser | None
    says: str
    fix: str = ""
    why: str = ""


_TABLE: tuple[_Row, ...] = (
    _Row("any", "any", "any", ("none",), "none", "devicePlugin.owner is none: gpukube installs no plugin here"),
    _Row("any", "cloud", "any", ("auto", "cloud"), "cloud", "the cloud runs its own device plugin on these nodes"),
    _Row(
        "cloud",
        "none",
        "needed",
        ("auto", "operator"),
        "operator",
        "a pool of this cluster needs the GPU Operator to cut its GPUs, so the operator serves every pool",
    ),
    _Row(
        "any",
        "any",
        "any",
        ("operator", "dra"),
        None,
        'devicePlugin.owner "{asked}" is not supported here',
        fix="write devicePlugin.owner: auto",
    ),
    _Row(
        "any",
        "cloud",
        "any",
        ("helm",),
        None,
        "the cloud runs its own device plugin on these nodes; the chart would be a second one",
        fix="write devicePlugin.owner: cloud, or take the field away that makes the cloud run its own",
        why="exactly one component may register nvidia.com/* on a node",
    ),
    _Row(
        "none",
        "none",
        "any",
        ("auto", "helm"),
        None,
        "nothing installs the NVIDIA driver on these nodes",
        fix="write driver.owner: auto",
    ),
    _Row(
        "cloud",
        "none",
        "needed",
        ("helm",),
        None,
        "a pool of this cluster needs the GPU Operator, which is then the cluster's only release",
        fix="write devicePlugin.owner: auto",
    ),
    _Row(
        "cloud",
        "none",
        "not needed",
        ("auto", "helm"),
        "chart",
        "the cloud installs the driver and no plugin: the device-plugin chart advertises",
    ),
    _Row(
        "any",
        "none",
        "any",
        ("cloud",),
        None,
        "this cloud runs no device plugin of its own on these nodes",
        fix="write devicePlugin.owner: auto",
    ),
)
"""In order: the first row that matches answers."""


def needs_operator(target: Target, stack: NodeStack) -> bool:
    """Say whether a pool's MIG instances can only be made by the GPU Operator's MIG manager."""
    return target.sharing.mig is not None and stack.cut_by == "operator"


def solve_ownership(target: Target, stack: NodeStack, *, operator: bool = False) -> Ownership | Diagnostic:
    """Decide who owns driver and plugin for one pool.

    Args:
        target: The pool; its driver, devicePlugin and sharing are read.
        stack: What its nodes bring, from the provider.
        operator: Whether some pool of the cluster needs the GPU Operator: there is one release per cluster, so
            the operator then serves all pools that the cloud does not.

    Returns:
        The ownership with the node labels to set at birth, or the refusal with its way out.
    """
    row = next(row for row in _TABLE if _matches(row, stack, target.plugin_owner, operator=operator))
    if row.answer is None:
        return Diagnostic(
            "owner",
            target.locator.at("devicePlugin.owner"),
            f"{target.where}: {row.says.format(asked=target.plugin_owner)}",
            fix=row.fix,
            why=row.why,
        )
    if row.answer not in ("chart", "operator"):
        return Ownership(stack.driver, row.answer, "", {}, row.says)
    key = config_key(plugin_config(target.sharing))
    labels = {ADVERTISER_LABEL: row.answer, CONFIG_LABEL: key, PRESENT_LABEL: "true"}
    if row.answer == "operator" and target.sharing.mig:
        labels[MIG_CONFIG_LABEL] = f"all-{target.sharing.mig.profile.replace('+', '.')}"
    return Ownership(stack.driver, row.answer, key, labels, row.says)


def _matches(row: _Row, stack: NodeStack, asked: str, *, operator: bool) -> bool:
    return (
        row.driver in ("any", stack.driver)
        and row.plugin in ("any", stack.advertiser)
        and row.operator in ("any", "needed" if operator else "not needed")
        and asked in row.asked
    )
