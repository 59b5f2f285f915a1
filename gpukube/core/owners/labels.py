"""The node labels that make an answer of the solver so. Lives here: their keys. Must not live here: who gets which."""

from __future__ import annotations

from typing import Final

__all__ = ["ADVERTISER_LABEL", "CONFIG_LABEL", "LABEL_REASONS", "MIG_CONFIG_LABEL", "OPERANDS_LABEL", "PRESENT_LABEL"]

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
    ADVERTISER_LABEL: "our release goes to nodes with this label and to no others",
    CONFIG_LABEL: "names the entry of the plugin's configuration for this sharing",
    PRESENT_LABEL: "marks a GPU node as NVIDIA's charts know it, for others: our own release does not ask for it",
    MIG_CONFIG_LABEL: "tells the GPU Operator's MIG manager how to cut",
    OPERANDS_LABEL: "keeps the GPU Operator, which goes to every NVIDIA node by itself, off these",
}
"""What each is for, for people."""
