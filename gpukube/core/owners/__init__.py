"""The solver: decides who owns the driver and who advertises nvidia.com/* on the nodes of a pool.

Each node has exactly one advertiser. The rules are rows of data (`table`), the lookup is `solver`, and the resulting
node labels are `labels`. With two plugins on one node, the kubelet keeps the last registration, and removing either
leaves 0 GPUs (NVIDIA/k8s-device-plugin#255, #455). docs/device-plugin.md shows the rows and the reasons.
"""

from __future__ import annotations

from gpukube.core.owners.labels import (
    ADVERTISER_LABEL,
    CLIENT_LABEL,
    CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    MIG_STATE_LABEL,
    OPERANDS_LABEL,
    PRESENT_LABEL,
    check_own_labels,
)
from gpukube.core.owners.solver import (
    OWNER_REFUSED,
    Decision,
    ReleaseChoice,
    check_kubernetes,
    choose_release,
    decide_owner,
    needs_operator,
    solve_ownership,
    with_live,
)
from gpukube.core.owners.table import DRIVER_ROWS, PLUGIN_ROWS, RELEASE_ROWS, DriverRow, PluginRow, ReleaseRow

__all__ = [
    "ADVERTISER_LABEL",
    "CLIENT_LABEL",
    "CONFIG_LABEL",
    "DRIVER_ROWS",
    "MIG_CONFIG_LABEL",
    "MIG_STATE_LABEL",
    "OPERANDS_LABEL",
    "OWNER_REFUSED",
    "PLUGIN_ROWS",
    "PRESENT_LABEL",
    "RELEASE_ROWS",
    "Decision",
    "DriverRow",
    "PluginRow",
    "ReleaseChoice",
    "ReleaseRow",
    "check_kubernetes",
    "check_own_labels",
    "choose_release",
    "decide_owner",
    "needs_operator",
    "solve_ownership",
    "with_live",
]
