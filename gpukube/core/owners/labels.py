"""The node labels that make an answer of the solver so, and what a spec may write of them.

In scope: their keys, and the rule on labels of a spec. Out of scope: which pool gets which (`solver`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Ownership, Target

ADVERTISER_LABEL: Final = "gpukube.io/advertiser"
"""Constant node label that our release's affinity asks for, so that no foreign node is ever touched."""
CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
"""Node label that chooses an entry of the plugin's configuration (NVIDIA/k8s-device-plugin README)."""
PRESENT_LABEL: Final = "nvidia.com/gpu.present"
"""Node label by which NVIDIA's charts know a GPU node without NFD (default affinity in values.yaml, v0.20.0); the
affinity that we give our release asks for ADVERTISER_LABEL alone."""
MIG_CONFIG_LABEL: Final = "nvidia.com/mig.config"
"""Node label that the GPU Operator's MIG manager cuts by (NVIDIA GPU Operator documentation, gpu-operator-mig)."""
OPERANDS_LABEL: Final = "nvidia.com/gpu.deploy.operands"
"""Node label whose "false" keeps all operands of the GPU Operator off (gpu-operator controllers/state_manager.go)."""

LABEL_REASONS: Final = {
    ADVERTISER_LABEL: "gpukube's release runs on nodes with this label only",
    CONFIG_LABEL: "names the entry of the plugin's configuration for this sharing",
    PRESENT_LABEL: "marks a GPU node for NVIDIA's charts; gpukube's release does not need it",
    MIG_CONFIG_LABEL: "the MIG layout for the GPU Operator's MIG manager",
    OPERANDS_LABEL: "excludes these nodes from the GPU Operator, which serves every NVIDIA node by default",
}
"""What each is for, for people."""

_OURS: Final = {
    PRESENT_LABEL: "it is set where gpukube's plugin advertises",
    CONFIG_LABEL: "the plugin's configuration follows from sharing",
    MIG_CONFIG_LABEL: "the MIG layout follows from sharing.mig",
}


def check_own_labels(target: Target, ownership: Ownership) -> Iterator[Finding]:
    """Find labels of a spec that gpukube sets on this pool, or whose readers it installs.

    Where neither the chart nor the operator of gpukube serves the pool, they are the user's: an operator of his own
    cuts by nvidia.com/mig.config too.
    """
    if ownership.advertiser not in ("chart", "operator"):
        return
    for key, why in _OURS.items():
        if key not in target.labels:
            continue
        where = target.locator.at(f"labels[{json.dumps(key)}]")
        if ownership.labels.get(key) == target.labels[key]:
            message = f'the label "{key}" has the value that gpukube sets'
            yield Finding("reserved-key", where, message, fix="remove it: it stays on the nodes", severity="hint")
        else:
            message = f'the label "{key}" is set by gpukube itself on this pool'
            fix = "remove it; or write devicePlugin.owner: none if you run the plugin yourself"
            yield Finding("reserved-key", where, message, fix=fix, why=why)
