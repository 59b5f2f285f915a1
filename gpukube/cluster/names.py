"""Names of gpukube's releases and of the objects that their charts create.

A cluster has at most one release of a device plugin, and beside it at most one of the DRA driver.

In scope: constants, and which pools and nodes a release serves. Out of scope: chart values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.jsontree import texts
from gpukube.core.owners import ADVERTISER_LABEL, OPERANDS_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Ownership

RUN_LABEL: Final = "gpukube.io/run"
"""Label of a release record: the gpukube run that wrote the revision."""
CHART_LABEL: Final = "gpukube.io/chart"
"""Label of a release record: version and digest of the archive that NVIDIA's repository served, if no digest is pinned
below; truncated to a label's length. Includes the version because Helm copies labels to later revisions."""
FIELD_MANAGER: Final = "gpukube"
"""Manager name in metadata.managedFields of everything that gpukube and its embedded Helm write."""
NAMESPACE: Final = "gpukube-system"
"""Namespace of every release: the plugin's chart rejects `default`, and kube-system belongs to the cloud."""
NAMESPACE_LABELS: Final = {"pod-security.kubernetes.io/enforce": "privileged"}
"""Privileged, because the plugin mounts hostPath and needs SYS_ADMIN, GFD is privileged (rendered chart 0.20.0), and
the operator's operands are privileged (NVIDIA/gpu-operator v26.7.0 assets)."""


@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """A chart that gpukube installs as a release.

    Attributes:
        advertiser: The owner (core.owners) that this chart implements; also the value of the nodes' advertiser label.
        name: Name of the release.
        chart: Name of the chart.
        repository: URL of the repository where it is published, or its own "oci://...".
        version: Pinned version.
        digest: Digest of that version's archive in the repository, "sha256:..."; "" if NVIDIA publishes none.
        title: Human-readable name.
        plugin: Name of the DaemonSet that advertises devices.
        container: Name of the plugin's container in its pods.
        config_map: Name of the ConfigMap with the config entries; "" for a chart without entries.
        entries: Path of the entries in the values; empty for a chart without entries.
        nfd: Path of the bundled NFD's values; "" for a chart that bundles none.
    """

    advertiser: Literal["chart", "operator", "dra"]
    name: str
    chart: str
    repository: str
    version: str
    digest: str
    title: str
    plugin: str
    container: str
    config_map: str
    entries: tuple[str, ...]
    nfd: str

    @property
    def address(self) -> str:
        """Namespace and name of the release, as printed in messages."""
        return f"{NAMESPACE}/{self.name}"

    @property
    def source(self) -> str:
        """The chart as an argument of helm pull and helm show."""
        return self.repository if self.repository.startswith("oci:") else f"{self.chart} --repo {self.repository}"

    def serves(self, ownership: Ownership) -> bool:
        """Return whether the release serves a pool: as its advertiser, or as the operator beside the DRA driver."""
        return ownership.operated if self.advertiser == "operator" else ownership.advertiser == self.advertiser

    def carries(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels of a live pool or node show that the release serves it, if it is installed."""
        advertiser = labels.get(ADVERTISER_LABEL)
        beside = self.advertiser == "operator" and advertiser == "dra" and labels.get(OPERANDS_LABEL) != "false"
        return advertiser == self.advertiser or beside

    def entries_in(self, values: Mapping[str, object]) -> dict[str, str]:
        """Return the config entries in the values of its chart; empty for a chart without entries."""
        return texts(values, *self.entries) if self.entries else {}


DEVICE_PLUGIN: Final = ReleaseKind(
    advertiser="chart",
    name="gpukube-nvidia-device-plugin",
    chart="nvidia-device-plugin",
    repository="https://nvidia.github.io/k8s-device-plugin",
    version="0.20.0",
    digest="sha256:9e5642bcdd3805c6e931f9d3ca542677d1f714d68c14c1364892011e67d9a606",
    title="the device-plugin chart",
    plugin="gpukube-nvidia-device-plugin",
    container="nvidia-device-plugin-ctr",
    config_map="gpukube-nvidia-device-plugin-configs",
    entries=("config", "map"),
    nfd="nfd",
)
"""0.20.0 of 2026-08-19 matches MIG names exactly and bundles NFD 0.19.0 (NVIDIA/k8s-device-plugin CHANGELOG). The
release name contains the chart name, so the chart names its objects after the release alone (templates/_helpers.tpl).
All its DaemonSets share their pod labels, so only the name tells them apart (#982). The digest comes from index.yaml in
NVIDIA/k8s-device-plugin, branch gh-pages (commit bf584288ed8c)."""

GPU_OPERATOR: Final = ReleaseKind(
    advertiser="operator",
    name="gpukube-gpu-operator",
    chart="gpu-operator",
    repository="https://helm.ngc.nvidia.com/nvidia",
    version="v26.7.0",
    digest="",
    title="the GPU Operator",
    plugin="nvidia-device-plugin-daemonset",
    container="nvidia-device-plugin",
    config_map="gpukube-gpu-operator-configs",
    entries=("devicePlugin", "config", "data"),
    nfd="node-feature-discovery",
)
"""v26.7.0 of 2026-08-20. The operator, not the chart, creates the DaemonSets, under fixed names
(NVIDIA/gpu-operator v26.7.0 assets/state-device-plugin/0500_daemonset.yaml). The repository publishes no digest for it:
the one in branch gh-pages of NVIDIA/gpu-operator belongs to an archive served elsewhere."""

DRA_DRIVER: Final = ReleaseKind(
    advertiser="dra",
    name="gpukube-dra-driver-nvidia-gpu",
    chart="dra-driver-nvidia-gpu",
    repository="oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu",
    version="0.4.1",
    digest="sha256:c1c316f6bdcfe5fed3ff649cff1b43be50d27d0cb1aaf9d29e7bdca1eaa331ce",
    title="NVIDIA's DRA driver",
    plugin="dra-driver-nvidia-gpu-kubelet-plugin",
    container="gpus",
    config_map="",
    entries=(),
    nfd="",
)
"""0.4.1 of 2026-06-30, from the project's registry (release notes of kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1). The
chart names its objects after itself, not after the release (deployments/helm templates/_helpers.tpl), so a cluster can
have it once. The registry lists no digest of the archive; this one is recorded by several projects that check it."""

RELEASE_KINDS: Final = (DEVICE_PLUGIN, GPU_OPERATOR)
"""The releases of a device plugin, of which a cluster has at most one."""
DRA_KINDS: Final = (DRA_DRIVER,)
"""The release of the DRA driver, of which a cluster has at most one, too."""
ALL_KINDS: Final = (*RELEASE_KINDS, *DRA_KINDS)

OPERATOR_NAME: Final = "gpu-operator"
"""Name of the operator's Deployment, whatever the release name (templates/operator.yaml)."""
CLUSTER_POLICY: Final = "cluster-policy"
"""Name of the object that configures the operator (templates/clusterpolicy.yaml)."""
DRIVER_NAME: Final = "nvidia-driver-daemonset"
"""DaemonSet that installs the driver if the operator manages it (assets/state-driver/0500_daemonset.yaml)."""
MIG_MANAGER_NAME: Final = "nvidia-mig-manager"
"""DaemonSet that creates MIG instances (assets/state-mig-manager/0600_daemonset.yaml)."""


def kind_of(advertiser: str) -> ReleaseKind | None:
    """Return the release kind for an advertising owner; None for owners that need no gpukube release."""
    return next((kind for kind in ALL_KINDS if kind.advertiser == advertiser), None)
