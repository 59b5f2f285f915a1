"""The names of our two releases, of which a cluster has at most one, and of what their charts make.

In scope: constants. Out of scope: values of the charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

RUN_LABEL: Final = "gpukube.io/run"
"""On the record of a revision: which run of ours wrote it."""
CHART_LABEL: Final = "gpukube.io/chart"
"""On the record of a revision: version and digest of the archive that NVIDIA's repository served, where no digest is
pinned below; as much of it as a label holds. With the version, because Helm hands labels on to later revisions."""
FIELD_MANAGER: Final = "gpukube"
"""Who has written, in the metadata.managedFields of what gpukube and its embedded Helm write."""
NAMESPACE: Final = "gpukube-system"
"""Our own, for either release: the plugin's chart refuses `default`, and kube-system is the cloud's."""
NAMESPACE_LABELS: Final = {"pod-security.kubernetes.io/enforce": "privileged"}
"""The plugin mounts hostPath and needs SYS_ADMIN, GFD is privileged (rendered chart 0.20.0); the operator's operands
are privileged (NVIDIA/gpu-operator v26.7.0 assets)."""


@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """One of the two charts that can be a cluster's release.

    Attributes:
        advertiser: The owner (core.owners) that this chart stands for; also the value of the nodes' advertiser label.
        name: Of the release.
        chart: Name of the chart.
        repository: Where NVIDIA publishes it.
        version: The one we pin.
        digest: Of that version's archive in that repository, "sha256:..."; "" where NVIDIA publishes none.
        title: For people.
        plugin: DaemonSet that advertises.
        container: Of the plugin in its pods.
        config_map: Holds the config entries.
        entries: Path of the entries in the values.
        nfd: Path of the bundled NFD's values.
    """

    advertiser: Literal["chart", "operator"]
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
        """Where the release is, as messages name it."""
        return f"{NAMESPACE}/{self.name}"


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
"""0.20.0 of 2026-08-19 matches MIG names exactly and carries NFD 0.19.0 (NVIDIA/k8s-device-plugin CHANGELOG). The
release's name contains the chart's, so that the chart names its objects after the release alone
(templates/_helpers.tpl). All its DaemonSets share their pod labels, so only the name tells them apart (#982). The
digest is the one of index.yaml in NVIDIA/k8s-device-plugin, branch gh-pages (commit bf584288ed8c)."""

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
"""v26.7.0 of 2026-08-20. Its operator, not its chart, makes the DaemonSets, under names of their own
(NVIDIA/gpu-operator v26.7.0 assets/state-device-plugin/0500_daemonset.yaml). The repository publishes no digest of it:
that of branch gh-pages of NVIDIA/gpu-operator is of an archive that another place serves."""

RELEASE_KINDS: Final = (DEVICE_PLUGIN, GPU_OPERATOR)

OPERATOR_NAME: Final = "gpu-operator"
"""Deployment of the operator, whatever the release is called (templates/operator.yaml)."""
CLUSTER_POLICY: Final = "cluster-policy"
"""The object that tells the operator what to run (templates/clusterpolicy.yaml)."""
DRIVER_NAME: Final = "nvidia-driver-daemonset"
"""DaemonSet that installs the driver, where the operator does (assets/state-driver/0500_daemonset.yaml)."""
MIG_MANAGER_NAME: Final = "nvidia-mig-manager"
"""DaemonSet that cuts (assets/state-mig-manager/0600_daemonset.yaml)."""


def kind_of(advertiser: str) -> ReleaseKind | None:
    """Return the release that makes an owner advertise; None for owners that need none of ours."""
    return next((kind for kind in RELEASE_KINDS if kind.advertiser == advertiser), None)
