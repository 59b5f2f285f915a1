"""The rules of the solver as rows: facts and request -> the owner, or a refusal with two ways to resolve it.

In scope: data, each row with its source. Out of scope: the lookup (solver), and what one cloud's nodes include
(`Provider.stack`). The first matching row of a table applies; docs/device-plugin.md shows them.

In texts, {asked} is the devicePlugin.owner of the spec, {driver} its driver.owner, {image} the nodes' image, and
{because} why the cluster has the GPU Operator; {claimed_by} is the pool for which the operator's plugin is off;
{no_operator}, {no_driver}, {no_dra}, {with_dra}, and {without_plugin} come from the nodes' cloud
(core.values.NodeStack).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from gpukube.core.values import Advertiser

OPERATOR_KUBERNETES: Final = ((1, 33), (1, 36))
"""Oldest and newest Kubernetes version that the GPU Operator v26.7 supports (NVIDIA/cloud-native-docs, gpu-operator
platform-support)."""

Cut = Literal["none", "cloud", "operator", "nobody"]
"""Who creates the MIG instances of a pool: "none" if it does not use MIG, "nobody" if it does and nothing can."""


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """Why a cluster's one release is the chart or the operator.

    Attributes:
        name: Stable name.
        release: The release.
        message: Human-readable reason; {pool} is the deciding pool.
        source: Public source.
    """

    name: Literal["driver-by-operator", "cut-by-operator", "operator-asked", "helm-asked", "operator-live", "chart"]
    release: Literal["chart", "operator"]
    message: str
    source: str


RELEASE_ROWS: Final = (
    ReleaseRow(
        "driver-by-operator",
        "operator",
        "pool {pool} gets its driver from the GPU Operator",
        "docs: aks/nvidia-gpu-operator",
    ),
    ReleaseRow(
        "cut-by-operator",
        "operator",
        "only the GPU Operator's MIG manager can do MIG on pool {pool}",
        "docs: eks/ml-eks-optimized-ami: no MIG manager in AL2023; NVIDIA/cloud-native-docs gpu-operator-mig",
    ),
    ReleaseRow(
        "operator-asked",
        "operator",
        "pool {pool} requests the GPU Operator",
        "NVIDIA/k8s-device-plugin#255: one plugin on a node, so one release on a cluster",
    ),
    ReleaseRow(
        "helm-asked",
        "chart",
        "pool {pool} requests the device-plugin chart",
        "NVIDIA/k8s-device-plugin#255: one plugin on a node, so one release on a cluster",
    ),
    ReleaseRow(
        "operator-live",
        "operator",
        "gpukube's GPU Operator is already on the cluster",
        "NVIDIA/k8s-device-plugin#255: one plugin on a node, so one release on a cluster",
    ),
    ReleaseRow(
        "chart",
        "chart",
        "nothing on the cluster needs the GPU Operator",
        "NVIDIA/k8s-device-plugin README",
    ),
)
"""In order of precedence: what a pool requires, what pools request, what is installed."""


@dataclass(frozen=True, slots=True)
class DriverRow:
    """Who owns the driver.

    Attributes:
        name: Stable name.
        requested: driver.owner is one of these.
        brings: Whether the image or the cloud installs a driver, or "any".
        operable: Whether the GPU Operator has a driver for the nodes, or "any".
        answer: The owner; None is a refusal.
        message: The situation, or the problem.
        fixes: Two ways to resolve a refusal.
        source: Public source.
    """

    name: str
    requested: tuple[str, ...]
    brings: Literal["cloud", "none", "any"]
    answer: Literal["cloud", "operator", "none"] | None
    message: str
    source: str
    fixes: tuple[str, str] | None = None
    operable: Literal["yes", "no", "any"] = "any"


DRIVER_ROWS: Final = (
    DriverRow(
        "driver-unable",
        ("operator",),
        "any",
        None,
        'driver.owner is "operator", and the GPU Operator has no driver for {image}: {no_driver}',
        "NVIDIA/gpu-operator#686 (no driver container for Amazon Linux), #1623 (none for Container-Optimized OS)",
        ("write driver.owner: auto", "choose an image that the GPU Operator has a driver for"),
        operable="no",
    ),
    DriverRow(
        "driver-operator",
        ("operator",),
        "none",
        "operator",
        "the GPU Operator installs driver and container toolkit on {image}",
        "docs: aks/nvidia-gpu-operator",
    ),
    DriverRow(
        "driver-brought", ("auto", "cloud"), "cloud", "cloud", "{image} has the driver",
        "docs: eks/ml-eks-optimized-ami; docs: aks/use-nvidia-gpu; docs: kubernetes-engine/how-to/gpus",
    ),
    DriverRow(
        "driver-left-out", ("auto", "none"), "none", "none", "you install the driver on {image}",
        "docs: kubernetes-engine/how-to/gpus (gpuDriverVersion INSTALLATION_DISABLED)",
    ),
    DriverRow(
        "driver-missing",
        ("cloud",),
        "none",
        None,
        'driver.owner is "cloud", and the cloud installs no driver on {image} with these settings',
        "NVIDIA/aicr#2047 (on GKE the managed plugin finishes the driver's installation)",
        ("write driver.owner: none and install the driver", "write devicePlugin.owner: auto"),
    ),
    DriverRow(
        "driver-fixed",
        ("none", "operator"),
        "cloud",
        None,
        'driver.owner is "{driver}", and {image} always has the driver',
        "docs: eks/ml-eks-optimized-ami; docs: aks/use-nvidia-gpu",
        ("write driver.owner: auto", "use another image, without the driver"),
    ),
)  # fmt: skip
"""In order: the first matching row applies."""


@dataclass(frozen=True, slots=True)
class PluginRow:
    """Who advertises nvidia.com/*.

    Attributes:
        name: Stable name.
        requested: devicePlugin.owner is one of these.
        brings: Whether the cloud runs its own plugin on these nodes, or "any".
        driver: Owner of the driver, by the driver's row, or "any".
        release: The cluster's one release, or "any".
        mixed: Whether the cluster's operator installs a driver on its nodes and these have another, or vice versa, or
            "any".
        cut: Who creates the pool's MIG instances; empty for any.
        operable: Whether the GPU Operator can serve the nodes, or "any".
        claimable: Whether NVIDIA's DRA driver can serve the nodes, or "any".
        plugin: Whether the cluster's GPU Operator runs its device plugin, or "any".
        answer: The advertiser; None is a refusal.
        kept_off: Whether node labels exclude the nodes from the GPU Operator.
        operated: Whether the GPU Operator serves the nodes although it is not the advertiser.
        message: The situation, or the problem.
        fixes: Two ways to resolve a refusal.
        source: Public source.
    """

    name: str
    requested: tuple[str, ...]
    answer: Advertiser | None
    message: str
    source: str
    brings: Literal["cloud", "none", "any"] = "any"
    driver: Literal["cloud", "operator", "none", "any"] = "any"
    release: Literal["chart", "operator", "any"] = "any"
    cut: tuple[Cut, ...] = ()
    operable: Literal["yes", "no", "any"] = "any"
    mixed: Literal["yes", "no", "any"] = "any"
    claimable: Literal["yes", "no", "any"] = "any"
    plugin: Literal["on", "off", "any"] = "any"
    kept_off: bool = False
    operated: bool = False
    fixes: tuple[str, str] | None = None


_AUTO: Final = "write devicePlugin.owner: auto"
_ELSEWHERE: Final = "put the pool on another cluster"
_ONE: Final = "NVIDIA/k8s-device-plugin#255, #455: of two plugins on a node the kubelet keeps the last"
_OPERATOR_DOCS: Final = "NVIDIA/gpu-operator v26.7.0, controllers/state_manager.go"
_DRA_CHART: Final = (
    "kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 README; docs: eks/device-management-nvidia-dra-device-plugin"
)
_DRA_ONE: Final = "docs: eks/device-management-nvidia-dra-device-plugin (one whole-GPU advertiser on a node)"
_DRA_OPERATOR: Final = "NVIDIA/cloud-native-docs gpu-operator/dra-intro-install (devicePlugin.enabled=false)"

PLUGIN_ROWS: Final = (
    PluginRow(
        "dra-unable", ("dra",), None,
        'devicePlugin.owner is "dra", and NVIDIA\'s DRA driver cannot serve {image}: {no_dra}',
        _DRA_CHART, claimable="no",
        fixes=(_AUTO, "{with_dra}"),
    ),
    PluginRow(
        "dra-second", ("dra",), None,
        'devicePlugin.owner is "dra", and {image} runs the cloud\'s plugin: two pods would get the same GPU',
        _DRA_ONE, brings="cloud",
        fixes=("write devicePlugin.owner: cloud", "{without_plugin}"),
    ),
    PluginRow(
        "dra-brings", ("dra",), "dra",
        "the GPU Operator installs driver and container toolkit on {image}, and NVIDIA's DRA driver publishes the GPUs",
        _DRA_OPERATOR, driver="operator", release="operator", cut=("none", "operator"), operated=True,
    ),
    PluginRow(
        "dra-without-driver", ("dra",), None,
        'driver.owner is "operator", and the GPU Operator cannot serve {image}: its MIG manager would undo the MIG '
        "layout of the cloud",
        "NVIDIA/gpu-operator v26.7.0 (migManager.config.default is all-disabled)", driver="operator",
        fixes=("write driver.owner: auto", "remove sharing.mig"),
    ),
    PluginRow(
        "dra-cuts", ("dra",), "dra",
        "the GPU Operator does MIG on {image}, and NVIDIA's DRA driver publishes the MIG devices",
        _DRA_OPERATOR, driver="cloud", release="operator", cut=("operator",), mixed="no", operable="yes",
        operated=True,
    ),
    PluginRow(
        "dra-kept-off", ("dra",), "dra",
        "NVIDIA's DRA driver publishes the GPUs of {image}, and gpukube's GPU Operator is excluded: {because}",
        _OPERATOR_DOCS, release="operator", cut=("none", "cloud"), kept_off=True,
    ),
    PluginRow(
        "dra", ("dra",), "dra", "NVIDIA's DRA driver publishes the GPUs of {image}",
        _DRA_CHART, release="chart", cut=("none", "cloud"),
    ),
    PluginRow(
        "cloud-always", ("none",), None,
        'devicePlugin.owner is "none", and {image} always runs the cloud\'s plugin',
        "docs: eks/ml-eks-optimized-ami (Bottlerocket); bottlerocket-os/bottlerocket#4309", brings="cloud",
        fixes=(_AUTO, "{without_plugin}"),
    ),
    PluginRow(
        "none-without-driver", ("none",), None,
        'driver.owner is "operator", but devicePlugin.owner "none" excludes the GPU Operator, which installs both',
        _OPERATOR_DOCS, driver="operator",
        fixes=(_AUTO, "write driver.owner: none too, and run driver and plugin of your own"),
    ),
    PluginRow(
        "none-kept-off", ("none",), "none",
        "gpukube runs no plugin here, as requested, and its GPU Operator is excluded: {because}",
        _OPERATOR_DOCS, release="operator", kept_off=True,
    ),
    PluginRow(
        "none", ("none",), "none", "gpukube runs no plugin here, as requested; yours must advertise",
        _ONE,
    ),
    PluginRow(
        "second-plugin", ("helm", "operator"), None,
        'devicePlugin.owner is "{asked}", and {image} runs the cloud\'s plugin: this would be a second one',
        _ONE, brings="cloud",
        fixes=("write devicePlugin.owner: cloud", "{without_plugin}"),
    ),
    PluginRow(
        "cloud-without-driver", ("auto", "cloud"), None,
        'driver.owner is "operator", and {image} runs the cloud\'s plugin, so the GPU Operator is excluded',
        _ONE, brings="cloud", driver="operator",
        fixes=("write driver.owner: auto", "write devicePlugin.owner: operator where the cloud's can be turned off"),
    ),
    PluginRow(
        "cloud-kept-off", ("auto", "cloud"), "cloud",
        "{image} runs the cloud's plugin, and gpukube's GPU Operator is excluded: {because}",
        _OPERATOR_DOCS, brings="cloud", release="operator", kept_off=True,
    ),
    PluginRow(
        "cloud", ("auto", "cloud"), "cloud", "{image} runs the cloud's plugin",
        "docs: eks/ml-eks-optimized-ami (Bottlerocket); docs: aks/aks-managed-gpu-nodes; docs: "
        "kubernetes-engine/how-to/gpus", brings="cloud",
    ),
    PluginRow(
        "no-cloud-plugin", ("cloud",), None,
        'devicePlugin.owner is "cloud", and no plugin of the cloud runs on {image}',
        "docs: eks/ml-eks-optimized-ami (AL2023)", brings="none",
        fixes=(_AUTO, "choose an image with one (on EKS image: bottlerocket)"),
    ),
    PluginRow(
        "no-driver", ("auto", "helm", "operator"), None,
        "a plugin finds no GPUs on {image} without a driver, and none is installed",
        "NVIDIA/k8s-device-plugin README (prerequisites), #1011", driver="none",
        fixes=("write driver.owner: auto", "install driver and plugin yourself and write devicePlugin.owner: none"),
    ),
    PluginRow(
        "helm-beside-operator", ("helm",), None,
        'devicePlugin.owner is "helm", and the cluster\'s one release is the GPU Operator: {because}',
        _ONE, release="operator",
        fixes=(f"{_AUTO}, and the operator serves this pool too", _ELSEWHERE),
    ),
    PluginRow(
        "operator-unable", ("auto", "operator"), None,
        "the cluster's one release is the GPU Operator ({because}), which cannot serve {image}: {no_operator}",
        "NVIDIA/cloud-native-docs gpu-operator/platform-support", release="operator", operable="no",
        fixes=("write devicePlugin.owner: helm for all pools of the cluster", _ELSEWHERE),
    ),
    PluginRow(
        "operator-without-plugin", ("auto", "operator"), None,
        "the device plugin of the cluster's GPU Operator is off on all nodes, because pool {claimed_by} needs the "
        "operator, and NVIDIA's DRA driver publishes its GPUs",
        "NVIDIA/gpu-operator v26.7.0, controllers/nodelabeling_controller.go (it removes the labels that keep single "
        "parts off a node that NFD has not seen yet)",
        release="operator", plugin="off",
        fixes=("write devicePlugin.owner: dra for this pool too", _ELSEWHERE),
    ),
    PluginRow(
        "operator-mixed", ("auto", "operator"), None,
        "the cluster's one release is the GPU Operator ({because}), which installs driver and container toolkit on all "
        "of its nodes or on none",
        "NVIDIA/gpu-operator v26.7.0, controllers/nodelabeling_controller.go (it removes the labels that keep single "
        "parts off a node that NFD has not seen yet); docs: gpu-operator/microsoft-aks (no second toolkit)",
        release="operator", mixed="yes",
        fixes=("write the same driver.owner for all pools of the cluster that it serves", _ELSEWHERE),
    ),
    PluginRow(
        "operator-uncuts", ("auto", "operator"), None,
        "the cluster's one release is the GPU Operator ({because}), whose MIG manager would undo the MIG layout of "
        "the cloud",
        "NVIDIA/gpu-operator v26.7.0 (migManager.config.default is all-disabled); docs: aks/gpu-multi-instance",
        release="operator", cut=("cloud",),
        fixes=("write devicePlugin.owner: helm for all pools of the cluster", _ELSEWHERE),
    ),
    PluginRow(
        "operator-cuts", ("auto", "operator"), "operator",
        "{image} has the driver only: the GPU Operator does MIG and advertises",
        "NVIDIA/cloud-native-docs gpu-operator-mig; docs: eks/ml-eks-optimized-ami",
        brings="none", driver="cloud", release="operator", cut=("operator",),
    ),
    PluginRow(
        "operator-brings", ("auto", "operator"), "operator",
        "the GPU Operator installs driver, container toolkit and plugin on {image}",
        "docs: aks/nvidia-gpu-operator; NVIDIA/cloud-native-docs gpu-operator-mig",
        brings="none", driver="operator", release="operator", cut=("none", "operator"),
    ),
    PluginRow(
        "nobody-cuts", ("auto", "helm", "operator", "dra"), None,
        "sharing.mig is set, but nothing does MIG on {image}",
        "NVIDIA/k8s-device-plugin README (the plugin advertises MIG devices, it makes none)",
        cut=("nobody", "operator"),
        fixes=("remove sharing.mig", "choose a cloud or an image with MIG"),
    ),
    PluginRow(
        "operator", ("auto", "operator"), "operator",
        "{image} has the driver and no plugin; the cluster's one release is the GPU Operator: {because}",
        _ONE, brings="none", driver="cloud", release="operator", cut=("none",),
    ),
    PluginRow(
        "chart", ("auto", "helm"), "chart",
        "{image} has the driver and no plugin: the device-plugin chart advertises",
        "NVIDIA/k8s-device-plugin README; docs: eks/ml-eks-optimized-ami (AL2023); docs: aks/use-nvidia-gpu",
        brings="none", driver="cloud", release="chart", cut=("none", "cloud"),
    ),
)  # fmt: skip
"""In order: the first matching row applies. A test ensures that one always matches."""
