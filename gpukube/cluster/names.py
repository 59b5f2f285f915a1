"""The names of our release and of what its chart makes.

Lives here: constants. Must not live here: values of the chart.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CHART_NAME",
    "CHART_REPO",
    "CHART_VERSION",
    "CONFIG_MAP_NAME",
    "FEATURES_NAME",
    "NAMESPACE",
    "NAMESPACE_LABELS",
    "PLUGIN_NAME",
    "RELEASE_NAME",
    "RUN_LABEL",
]

CHART_NAME: Final = "nvidia-device-plugin"
CHART_REPO: Final = "https://nvidia.github.io/k8s-device-plugin"
CHART_VERSION: Final = "0.20.0"
"""2026-08-19; matches MIG names exactly and carries NFD 0.19.0 (NVIDIA/k8s-device-plugin CHANGELOG)."""

RELEASE_NAME: Final = "gpukube-nvidia-device-plugin"
"""Contains the chart's name, so that the chart names its objects after the release alone (templates/_helpers.tpl)."""
RUN_LABEL: Final = "gpukube.io/run"
"""On the record of a revision: which run of ours wrote it."""
NAMESPACE: Final = "gpukube-system"
"""Our own: the chart refuses `default`, and kube-system is the cloud's."""
NAMESPACE_LABELS: Final = {"pod-security.kubernetes.io/enforce": "privileged"}
"""The plugin mounts hostPath and needs SYS_ADMIN, GFD is privileged (rendered chart 0.20.0)."""

PLUGIN_NAME: Final = RELEASE_NAME
"""DaemonSet of the plugin. All DaemonSets of the chart share their pod labels, so only the name tells them apart
(NVIDIA/k8s-device-plugin#982)."""
FEATURES_NAME: Final = f"{RELEASE_NAME}-gpu-feature-discovery"
CONFIG_MAP_NAME: Final = f"{RELEASE_NAME}-configs"
