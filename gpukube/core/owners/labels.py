"""The node labels that enforce the solver's result, and the limits on them in a spec.

In scope: their keys, and the rule on labels of a spec. Out of scope: which pool gets which label (`solver`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Ownership, Target

ADVERTISER_LABEL: Final = "gpukube.io/advertiser"
"""Constant node label that the affinity of gpukube's release requires, so that it never runs on other nodes."""
CONFIG_LABEL: Final = "nvidia.com/device-plugin.config"
"""Node label that selects an entry of the plugin's config (NVIDIA/k8s-device-plugin README)."""
PRESENT_LABEL: Final = "nvidia.com/gpu.present"
"""Node label by which NVIDIA's charts recognize a GPU node without NFD (default affinity in values.yaml, v0.20.0); the
affinity of gpukube's release requires only ADVERTISER_LABEL."""
MIG_CONFIG_LABEL: Final = "nvidia.com/mig.config"
"""Node label with the layout for the GPU Operator's MIG manager (NVIDIA GPU Operator docs, gpu-operator-mig)."""
MIG_STATE_LABEL: Final = "nvidia.com/mig.config.state"
"""Node label by which the MIG manager reports how far it has applied the layout (NVIDIA/mig-parted v0.15.0)."""
CLIENT_LABEL: Final = "nvidia.com/gpu.deploy.client"
"""Node label of the GPU Operator whose value is not "true" while a MIG layout or the driver changes: clients of the
driver leave the node (NVIDIA/gpu-operator v26.7.0 controllers/state_manager.go; NVIDIA/mig-parted v0.15.0
maybeSetPaused)."""
OPERANDS_LABEL: Final = "nvidia.com/gpu.deploy.operands"
"""Node label whose value "false" excludes all operands of the GPU Operator (gpu-operator
controllers/state_manager.go)."""

LABEL_REASONS: Final = {
    ADVERTISER_LABEL: "gpukube's release runs on nodes with this label only",
    CONFIG_LABEL: "names the entry of the plugin's configuration for this sharing",
    PRESENT_LABEL: "marks a GPU node for NVIDIA's charts; gpukube's release does not need it",
    MIG_CONFIG_LABEL: "the MIG layout for the GPU Operator's MIG manager",
    OPERANDS_LABEL: "excludes these nodes from the GPU Operator, which serves every NVIDIA node by default",
}
"""Human-readable purpose of each label."""

_OURS: Final = {
    PRESENT_LABEL: "it is set where a release of gpukube advertises",
    CONFIG_LABEL: "the plugin's configuration follows from sharing",
    MIG_CONFIG_LABEL: "the MIG layout follows from sharing.mig",
}
_OF_DRA: Final = "it follows from devicePlugin.owner: dra"


def check_own_labels(target: Target, ownership: Ownership) -> Iterator[Finding]:
    """Report labels of a spec that gpukube sets on this pool, or that components installed by gpukube read.

    If no release of gpukube serves the pool, the user may set them: their own operator reads
    nvidia.com/mig.config too.
    """
    if ownership.advertiser not in ("chart", "operator", "dra"):
        return
    ours = dict.fromkeys(ownership.labels, _OF_DRA) if ownership.advertiser == "dra" else {}
    for key, why in (ours | _OURS).items():
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
