"""Identifies the DaemonSets of the NVIDIA stack by program, labels, or name.

In scope: a table of roles and `role_of`; the DaemonSets in a rendered manifest. Out of scope: who owns one, whether two
conflict (advertisers), where its pods run (reach).

Source: charts nvidia-device-plugin 0.20.0, node-feature-discovery 0.19.0 and dra-driver-nvidia-gpu 0.4.1 (25.x:
nvidia-dra-driver-gpu) as rendered; NVIDIA/gpu-operator v26.7.0 assets/state-*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.views import workload_view
from gpukube.core.jsontree import text
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.core.jsontree import Tree

Role = Literal[
    "plugin",
    "gfd",
    "mps",
    "nfd-worker",
    "mig-manager",
    "dcgm",
    "validator",
    "toolkit",
    "driver",
    "dra",
    "cloud-plugin",
    "cloud-driver",
]


@dataclass(frozen=True, slots=True)
class _Row:
    role: Role
    title: str
    programs: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


_ROWS: Final = (
    _Row("cloud-plugin", "the cloud's device plugin"),
    _Row("cloud-driver", "the cloud's driver installer"),
    _Row(
        role="mps",
        title="the MPS daemon",
        programs=("mps-control-daemon",),
        apps=("nvidia-device-plugin-mps-control-daemon",),
        names=("mps-control-daemon",),
    ),
    _Row(
        role="gfd",
        title="GPU feature discovery",
        programs=("gpu-feature-discovery",),
        apps=("gpu-feature-discovery",),
        names=("gpu-feature-discovery",),
    ),
    _Row(
        role="nfd-worker",
        title="the NFD worker",
        programs=("nfd-worker",),
        apps=("nfd-worker",),
        names=("node-feature-discovery-worker", "nfd-worker"),
    ),
    _Row("mig-manager", "the MIG manager", ("nvidia-mig-manager",), ("nvidia-mig-manager",)),
    _Row(
        role="dra",
        title="the DRA driver",
        names=(
            "dra-driver-nvidia-gpu-kubelet-plugin",
            "nvidia-dra-driver-gpu-kubelet-plugin",
            "nvidia-dra-driver-kubelet-plugin",
        ),
    ),
    _Row("dcgm", "DCGM", (), ("nvidia-dcgm", "nvidia-dcgm-exporter")),
    _Row("validator", "the operator's validator", (), ("nvidia-operator-validator",)),
    _Row("toolkit", "the container toolkit", (), ("nvidia-container-toolkit-daemonset",)),
    _Row("driver", "the driver container", (), ("nvidia-driver-daemonset",)),
    _Row(
        role="plugin",
        title="the device plugin",
        programs=("nvidia-device-plugin",),
        apps=("nvidia-device-plugin-daemonset",),
        names=("nvidia-device-plugin", "nvidia-device-plugin-daemonset", "nvidia-device-plugin-ds"),
    ),
)
"""The first row that matches applies. The plugin is last, since GFD and MPS use its image and its labels."""


@cache
def _rows() -> tuple[_Row, ...]:
    """Return the rows, including the clouds' names for their own DaemonSets."""
    apps = {
        "cloud-plugin": tuple(facts.plugin.app for facts in in_cluster_facts() if facts.plugin),
        "cloud-driver": tuple(facts.driver_app for facts in in_cluster_facts() if facts.driver_app),
    }
    return tuple(replace(row, apps=apps.get(row.role, row.apps)) for row in _ROWS)


_TITLES: Final = {row.role: row.title for row in _ROWS}
_PLUGIN_IMAGE: Final = "k8s-device-plugin"
_PLUGIN_IMAGES: Final = (_PLUGIN_IMAGE, "nvidia-gpu-device-plugin")
_OTHERS_IMAGES: Final = ("efa-k8s-device-plugin", "rocm/k8s-device-plugin")
"""Plugins of other devices whose images have a similar name: EFA interfaces, AMD GPUs."""
_PUBLISHES_FROM: Final = (0, 19)
_APP_LABELS: Final = ("app", "k8s-app", "name")


def title_of(role: Role) -> str:
    """Return a role's human-readable name."""
    return _TITLES[role]


def role_of(workload: WorkloadView) -> Role | None:
    """Return a DaemonSet's role in the stack; None if it is not part of it."""
    if workload.kind != "DaemonSet":
        return None
    programs = {word.rsplit("/", 1)[-1] for part in workload.containers for word in part.command[:1]}
    apps = {labels[key] for labels in (workload.pod_labels, workload.labels) for key in _APP_LABELS if key in labels}
    for row in _rows():
        if not (programs.isdisjoint(row.programs) and apps.isdisjoint(row.apps)) or workload.name.endswith(row.names):
            return row.role
    known = any(is_plugin_image(image, _PLUGIN_IMAGE) for image in workload.images)
    return "plugin" if known and not programs else None


def is_plugin_image(image: str, *names: str) -> bool:
    """Return whether an image is a device plugin for NVIDIA GPUs, by default NVIDIA's or GKE's."""
    return any(name in image for name in names or _PLUGIN_IMAGES) and not any(name in image for name in _OTHERS_IMAGES)


def publishes_itself(gfd: WorkloadView) -> bool:
    """Return whether a GPU feature discovery passes its features to NFD's master directly.

    Up to 0.18 it writes a file, which an NFD worker on the node passes on, unless nfd.enableNodeFeatureApi is set;
    since 0.19 it creates NodeFeature objects (NVIDIA/k8s-device-plugin v0.19.0 cmd/gpu-feature-discovery/main.go,
    use-node-feature-api). An image without a version counts as current.
    """
    for container in gfd.containers:
        version = re.search(rf"{_PLUGIN_IMAGE}[^:]*:v?(\d+)\.(\d+)", container.image)
        if version and (int(version[1]), int(version[2])) < _PUBLISHES_FROM:
            return container.env.get("USE_NODE_FEATURE_API") == "true"
    return True


def daemonsets_of(objects: Iterable[Tree], namespace: str = "") -> tuple[WorkloadView, ...]:
    """Return the DaemonSets of a rendered manifest.

    Args:
        objects: The manifest's objects.
        namespace: Namespace of objects that name none.
    """
    found = []
    for obj in objects:
        if text(obj, "kind") != "DaemonSet":
            continue
        meta = obj.get("metadata")
        named = {"namespace": namespace, **meta} if isinstance(meta, dict) else {}
        found.append(workload_view({**obj, "metadata": named}, "DaemonSet"))
    return tuple(found)
