"""Finds other programs that advertise GPUs in a cluster, and whether they could run on gpukube's nodes.

In scope: recognizing foreign advertisers in a snapshot, as a table, and the findings that follow. Out of scope: I/O,
and who should advertise (core.owners).

With two plugins on one node, the kubelet keeps the last registration of a resource name, and removing either plugin
leaves 0 until the other restarts (NVIDIA/k8s-device-plugin#255, #455). A plugin and the DRA driver do not know of each
other: both give away the same GPU (docs: eks/device-management-nvidia-dra-device-plugin).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.state.components import is_plugin_image
from gpukube.cluster.state.dra_drivers import chart_of, is_operated, publishes_gpus
from gpukube.cluster.state.reach import FEATURE_LABELS, coming_place, may_appear
from gpukube.cluster.state.scheduling import daemon_misfits, lands_on
from gpukube.core.owners import ADVERTISER_LABEL, OPERANDS_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding
from gpukube.gpu.claims import DRIVER
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.in_cluster import NodePlugin
    from gpukube.core.values import Desired

_PLUGIN_CHART: Final = "nvidia-device-plugin"
_OPERATOR_DAEMONSET: Final = "nvidia-device-plugin-daemonset"
_NOT_PLUGINS: Final = ("gpu-feature-discovery", "mps-control-daemon", "config-manager")
_DEPLOYS_PLUGIN: Final = "nvidia.com/gpu.deploy.device-plugin"
"""Label that excludes a node from the GPU Operator's plugin (NVIDIA/gpu-operator v26.7.0
controllers/state_manager.go)."""
_TWO_PLUGINS: Final = (
    "two plugins would register nvidia.com/gpu on one node: the kubelet keeps the last one, and the count drops to 0 "
    "when either restarts"
)
PLUGIN_AND_DRIVER: Final = "a device plugin and the DRA driver would give the same GPU to two pods"
_TWO_DRIVERS: Final = (
    "a cluster has one DRA driver for GPUs: its DeviceClasses belong to one release, and on a node two drivers delete "
    "each other's ResourceSlices"
)
_EKSCTL: Final = " (eksctl reinstalls it unless --install-nvidia-plugin=false is set)"
"""Note on the static manifest where eksctl applies it; AKS's guide uses another namespace."""
_DRA_KIND: Final = "dra-driver"
_LET_DRA: Final = "let it publish these GPUs: write devicePlugin.owner: none for these pools"
_OTHERS_DOMAINS: Final = ("feature.node.kubernetes.io/", "nvidia.com/gpu.deploy.")
"""Domains of labels that a foreign NFD or GPU Operator may set on a node that does not exist yet."""


@dataclass(frozen=True, slots=True)
class ForeignAdvertiser:
    """A program outside gpukube's releases that advertises GPUs, as nvidia.com/* or in ResourceSlices.

    Attributes:
        name, namespace: Of the object; namespace is "" for what belongs to nodes or to the cluster.
        kind: Its kind in one word: plugin-release, gpu-operator, ..., or a cloud's own word.
        form: "DaemonSet", "service on the node", "DRA driver", ...
        evidence: What identified it.
        consequence: What would happen next to gpukube's device plugin.
        fixes: Two ways to end up with one advertiser.
        beside_dra: The second way where gpukube's advertiser is the DRA driver; "" if it is the same.
        lands_on: Names of the given pools whose nodes it could run on.
        is_clouds_own: Whether a cloud installs it on its own nodes.
    """

    name: str
    namespace: str
    kind: str
    form: str
    evidence: str
    consequence: str
    fixes: tuple[str, str]
    lands_on: tuple[str, ...]
    is_clouds_own: bool = False
    beside_dra: str = ""

    @property
    def title(self) -> str:
        """Human-readable name."""
        return f"{self.form} {self.namespace}/{self.name}" if self.namespace else f"{self.form} {self.name}"

    def explain(self, pool: Desired) -> tuple[str, str]:
        """Return the consequence for a pool, and the fix."""
        if pool.ownership.advertiser != "dra":
            return self.consequence, "; or ".join(self.fixes)
        consequence = _TWO_DRIVERS if self.kind == _DRA_KIND else PLUGIN_AND_DRIVER
        return consequence, f"{self.fixes[0]}; or {self.beside_dra or self.fixes[1]}"


@dataclass(frozen=True, slots=True)
class _Row:
    kind: str
    matches: Callable[[WorkloadView], str]
    keep: str
    remove: str
    is_clouds_own: bool = False
    beside_dra: str = ""


def _plugin_release(daemonset: WorkloadView) -> str:
    chart = daemonset.labels.get("helm.sh/chart", "")
    named = daemonset.labels.get("app.kubernetes.io/name") == _PLUGIN_CHART or chart.startswith(f"{_PLUGIN_CHART}-")
    return f"labels helm.sh/chart={chart or '?'}, app.kubernetes.io/name={_PLUGIN_CHART}" if named else ""


def _operator(daemonset: WorkloadView) -> str:
    labels = {**daemonset.labels, **daemonset.pod_labels}
    if labels.get("app.kubernetes.io/managed-by") == "gpu-operator" and labels.get("app") == _OPERATOR_DAEMONSET:
        return f"labels app={_OPERATOR_DAEMONSET}, app.kubernetes.io/managed-by=gpu-operator"
    return ""


def _static_manifest(daemonset: WorkloadView) -> str:
    if daemonset.pod_labels.get("name") == "nvidia-device-plugin-ds" and "helm.sh/chart" not in daemonset.labels:
        return "pod label name=nvidia-device-plugin-ds and no Helm labels"
    return ""


def _has_app(app: str, daemonset: WorkloadView) -> str:
    label = {**daemonset.labels, **daemonset.pod_labels}.get("k8s-app", "")
    return f"label k8s-app={label}" if label == app else ""


def _unknown_plugin(daemonset: WorkloadView) -> str:
    images = [image for image in daemonset.images if is_plugin_image(image)]
    return f"image {images[0]}" if images else ""


_OPERATOR_ROW: Final = _Row(
    "gpu-operator",
    _operator,
    keep="let the operator advertise: write devicePlugin.owner: none for these pools",
    remove='exclude these pools: add the label nvidia.com/gpu.deploy.device-plugin: "false" to these pools',
    # The operator rewrites its label of the device plugin on nodes that NFD has not seen; this one it leaves alone.
    beside_dra=f'exclude these pools: add the label {OPERANDS_LABEL}: "false" to these pools',
)
_OTHER_ROWS: Final[tuple[_Row, ...]] = (
    _Row(
        "plugin-release",
        _plugin_release,
        keep="let it advertise: write devicePlugin.owner: none for these pools",
        remove="take it over: --adopt-release; or remove it: helm uninstall {instance} --namespace {namespace}",
        beside_dra="remove it: helm uninstall {instance} --namespace {namespace}",
    ),
    _Row(
        "static-manifest",
        _static_manifest,
        keep="let it advertise: write devicePlugin.owner: none for these pools",
        remove="remove it: kubectl delete daemonset {name} --namespace {namespace}{again}",
    ),
    _Row(
        "unknown-plugin",
        _unknown_plugin,
        keep="let it advertise: write devicePlugin.owner: none for these pools",
        remove="remove it: kubectl delete daemonset {name} --namespace {namespace}",
    ),
)


@cache
def _rows() -> tuple[_Row, ...]:
    """Return the possible owners of DaemonSets, in order: the first row that matches names the DaemonSet.

    The operator's and the static manifest's DaemonSets share a name, so labels decide (NVIDIA/gpu-operator
    assets/state-device-plugin, k8s-device-plugin deployments/static). A cloud's plugin comes before rows that match by
    image, because it may use the same one.
    """
    clouds = [
        _Row(plugin.kind, partial(_has_app, plugin.app), plugin.keep, plugin.remove, is_clouds_own=True)
        for facts in in_cluster_facts()
        if (plugin := facts.plugin)
    ]
    return (_OPERATOR_ROW, *clouds, *_OTHER_ROWS)


def find_advertisers(seen: Snapshot, pools: Sequence[Desired]) -> tuple[ForeignAdvertiser, ...]:
    """Return every foreign advertiser, with the given pools on which it could run.

    Args:
        seen: The cluster.
        pools: Pools of this cluster; those with advertiser "none" are ignored.
    """
    requested = [pool for pool in pools if pool.ownership.advertiser != "none"]
    found = [
        *(
            row
            for daemonset in seen.daemonsets
            if not is_ours(daemonset, seen)
            for row in _daemonset(daemonset, requested)
        ),
        *_cluster_policies(seen, requested),
        *_node_services(seen.nodes, requested),
        *_dra(seen, requested),
    ]
    return tuple(sorted(found, key=lambda item: (item.kind, item.namespace, item.name)))


def check_advertisers(found: Iterable[ForeignAdvertiser], pools: Sequence[Desired]) -> list[Finding]:
    """Report, pool by pool, foreign advertisers that could run on the pool's nodes; others are fine."""
    by_name = {pool.target.where.source: pool for pool in pools}
    return [
        Finding(
            "foreign-advertiser",
            by_name[name].target.where,
            f"{item.title} could advertise GPUs on these nodes too ({item.evidence})",
            why=consequence,
            fix=fix,
        )
        for item in found
        for name in item.lands_on
        if name in by_name
        for consequence, fix in (item.explain(by_name[name]),)
    ]


def check_second_release(seen: Snapshot, pools: Iterable[Desired]) -> list[Finding]:
    """Report releases of the DRA driver's chart without GPUs: beside one of them Helm cannot install gpukube's.

    The chart always has a ClusterRole compute-domain-daemon-role, under both of its names and whatever its values
    (kubernetes-sigs/dra-driver-nvidia-gpu v25.8.1 and v0.4.1 templates/rbac-compute-domain-daemon.yaml). One with GPUs
    is a foreign advertiser.
    """
    others = [item for item in seen.daemonsets if chart_of(item)[0] and not is_ours(item, seen)]
    return [
        Finding(
            "dra-second-release",
            pool.target.where,
            f"{item} is of another release of the DRA driver's chart, so gpukube's cannot be installed",
            why="cluster-wide objects of the chart, such as ClusterRole compute-domain-daemon-role, have fixed names",
            fix="write devicePlugin.owner: auto for these pools: ComputeDomains work beside a device plugin; or "
            f"remove it: {remove_driver(item)}",
        )
        for pool in pools
        for item in others
        if not publishes_gpus(item)
        if pool.ownership.advertiser == DRA_DRIVER.advertiser
    ]


def is_ours(daemonset: WorkloadView, seen: Snapshot) -> bool:
    """Return whether a gpukube release created a DaemonSet; for the operator's operands only the namespace shows it."""
    if daemonset.namespace != NAMESPACE:
        return False
    named = daemonset.labels.get("app.kubernetes.io/instance") in (DEVICE_PLUGIN.name, DRA_DRIVER.name)
    return named or (seen.release_of(GPU_OPERATOR) is not None and bool(_operator(daemonset)))


def keep_one(landing: Sequence[WorkloadView], seen: Snapshot, node: str) -> str:
    """Return the command that leaves one of several plugins on a node and makes it register again.

    gpukube's stays; without one, a Helm release's: a plugin that someone applied manually is easier to restore.

    Args:
        landing: DaemonSets of the two or more plugins that run on the node.
        seen: The cluster.
        node: The node's name.
    """
    kept, *others = sorted(landing, key=lambda item: (not is_ours(item, seen), not _is_managed(item)))
    restart = f"kubectl rollout restart daemonset/{kept.name} --namespace {kept.namespace}"
    clouds = [row for item in others for row in _rows() if row.is_clouds_own and row.matches(item)]
    if clouds:  # its cloud reinstalls it
        return f"{clouds[0].remove}; then make the other register again: {restart}"
    return " && ".join([*dict.fromkeys(remove_plugin(item, node) for item in others), restart])


def remove_plugin(item: WorkloadView, node: str) -> str:
    """Return the command that removes a plugin from a node: the GPU Operator's is disabled, others are deleted."""
    release = item.labels.get("app.kubernetes.io/instance", "")
    if release and "helm.sh/chart" in item.labels:
        return f"helm uninstall {release} --namespace {item.namespace}"
    if _operator(item):
        return f"kubectl label node {node} {_DEPLOYS_PLUGIN}=false --overwrite"
    return f"kubectl delete daemonset {item.name} --namespace {item.namespace}"


def _is_managed(item: WorkloadView) -> bool:
    return "helm.sh/chart" in item.labels or bool(_operator(item))


def _daemonset(daemonset: WorkloadView, pools: Sequence[Desired]) -> list[ForeignAdvertiser]:
    if _is_companion(daemonset):
        return []
    row, evidence = next(((row, sign) for row in _rows() if (sign := row.matches(daemonset))), (None, ""))
    if row is None:
        return []
    words = {
        "name": daemonset.name,
        "namespace": daemonset.namespace,
        "instance": daemonset.labels.get("app.kubernetes.io/instance", daemonset.name),
        "again": _EKSCTL if daemonset.namespace == "kube-system" else "",
    }
    return [
        ForeignAdvertiser(
            daemonset.name,
            daemonset.namespace,
            row.kind,
            "DaemonSet",
            evidence,
            _TWO_PLUGINS,
            (row.keep.format(**words), _remove(row, pools).format(**words)),
            tuple(
                _name(pool)
                for pool in (_without_served(pools) if row.is_clouds_own else list(pools))
                if _could_run(daemonset, pool) and not (row is _OPERATOR_ROW and _is_opted_out(pool))
            ),
            row.is_clouds_own,
            row.beside_dra.format(**words),
        )
    ]


def _remove(row: _Row, pools: Sequence[Desired]) -> str:
    """Return the command that removes an operator: a label to keep it off these pools would block gpukube's too."""
    operated = any(GPU_OPERATOR.serves(pool.ownership) for pool in pools)
    if operated and row is _OPERATOR_ROW:
        return "remove it (helm list --all-namespaces shows its release): a cluster has one GPU Operator"
    return row.remove


def _is_companion(daemonset: WorkloadView) -> bool:
    """Match the DaemonSets of GFD and MPS, which use the plugin's image and labels but advertise nothing."""
    first_words = [container.command[0] for container in daemonset.containers if container.command]
    return daemonset.name.endswith(_NOT_PLUGINS) or (
        bool(first_words) and all(word.rsplit("/")[-1] in _NOT_PLUGINS for word in first_words)
    )


def _is_opted_out(pool: Desired) -> bool:
    """Return whether a label excludes a pool from all operands of a GPU Operator."""
    return pool.labels.get(OPERANDS_LABEL) == "false"


def _without_served(pools: Sequence[Desired]) -> list[Desired]:
    return [pool for pool in pools if pool.ownership.advertiser != "cloud"]


def _could_run(daemonset: WorkloadView, pool: Desired) -> bool:
    labels = {**FEATURE_LABELS, **coming_place(pool).labels}
    return not daemon_misfits(daemonset.placement, labels, pool.effective_taints, unknown=_may_appear)


def _may_appear(key: str) -> bool:
    return may_appear(key) or key.startswith(_OTHERS_DOMAINS)


def _name(pool: Desired) -> str:
    return pool.target.where.source


def _cluster_policies(seen: Snapshot, pools: Sequence[Desired]) -> list[ForeignAdvertiser]:
    """Report an operator whose device plugin DaemonSet does not exist yet: it is created with the first GPU node."""
    if not seen.cluster_policies or any(_operator(daemonset) for daemonset in seen.daemonsets):
        return []
    own = {CLUSTER_POLICY} if seen.release_of(GPU_OPERATOR) else set()
    return [
        ForeignAdvertiser(
            name,
            "",
            "gpu-operator",
            "ClusterPolicy",
            f"ClusterPolicy {name} exists; its device plugin starts with the first GPU node",
            _TWO_PLUGINS,
            (_OPERATOR_ROW.keep, _remove(_OPERATOR_ROW, pools)),
            tuple(
                _name(pool)
                for pool in pools
                if pool.labels.get(_DEPLOYS_PLUGIN, "true") == "true" and not _is_opted_out(pool)
            ),
            beside_dra=_OPERATOR_ROW.beside_dra,
        )
        for name in seen.cluster_policies
        if name not in own
    ]


def _node_services(nodes: Sequence[NodeView], pools: Sequence[Desired]) -> list[ForeignAdvertiser]:
    found = []
    for plugin in (plugin for facts in in_cluster_facts() for plugin in facts.node_plugins):
        carriers = {node.name: sign for node in nodes if (sign := node_plugin_evidence(plugin, node))}
        if not carriers:
            continue
        theirs = [node for node in nodes if node.name in carriers]
        first = theirs[0].name
        found.append(
            ForeignAdvertiser(
                f"on {len(theirs)} nodes" if len(theirs) > 1 else f"on {first}",
                "",
                plugin.kind,
                plugin.title,
                f"node {first}: {carriers[first]}",
                _TWO_PLUGINS,
                (plugin.keep, plugin.remove),
                tuple(_name(pool) for pool in _without_served(pools) if any(_is_of(node, pool) for node in theirs)),
                is_clouds_own=True,
            )
        )
    return found


def node_plugin_evidence(plugin: NodePlugin, node: NodeView) -> str:
    """Return what on a node shows that its cloud's own plugin runs there; "" if nothing does."""
    if plugin.label and node.labels.get(plugin.label[0]) == plugin.label[1]:
        return f"label {'='.join(plugin.label)}"
    if plugin.condition and plugin.condition in node.conditions:
        return f"condition {plugin.condition}"
    if plugin.os_image and node.os_image.startswith(plugin.os_image):
        devices = next((f"{name}={count}" for name, count in sorted(node.devices.items()) if count > 0), "")
        return f"{node.os_image} advertises {devices} on its own" if devices else ""
    return ""


def _is_of(node: NodeView, pool: Desired) -> bool:
    marks: Mapping[str, str] = node.labels
    return (marks.get(OWNER_LABEL), marks.get(POOL_LABEL)) == (pool.target.owner, pool.target.pool)


def _dra(seen: Snapshot, pools: Sequence[Desired]) -> list[ForeignAdvertiser]:
    """Report DRA drivers that publish GPUs; those that serve only ComputeDomains advertise none."""
    drivers = [item for item in seen.daemonsets if publishes_gpus(item) and not is_ours(item, seen)]
    # Nodes of gpukube's DRA pools have slices of its own release, or of one that was just removed.
    others = [node for node in seen.nodes if node.labels.get(ADVERTISER_LABEL) != DRA_DRIVER.advertiser]
    sliced = seen.sliced_by(DRIVER)
    theirs = [node for node in others if node.name in sliced]
    found = [_dra_daemonset(item, theirs, pools) for item in drivers]
    hidden = [node for node in theirs if not any(lands_on(item, node) for item in drivers)]
    if hidden:
        plugin_pools = [pool for pool in pools if pool.ownership.advertiser != "dra"]
        found.append(
            ForeignAdvertiser(
                DRIVER,
                "",
                _DRA_KIND,
                "DRA driver",
                f"ResourceSlices of {hidden[0].name}" + (f" and {len(hidden) - 1} more nodes" if hidden[1:] else ""),
                PLUGIN_AND_DRIVER,
                (_LET_DRA, "turn it off where its cloud, or who created these nodes, turned it on"),
                tuple(_name(pool) for pool in plugin_pools if any(_is_of(node, pool) for node in hidden)),
            )
        )
    return found


def _dra_daemonset(driver: WorkloadView, sliced: Sequence[NodeView], pools: Sequence[Desired]) -> ForeignAdvertiser:
    chart, version = chart_of(driver)
    origin = f"of chart {chart} {version}" if chart else "of a GPUCluster" if is_operated(driver) else ""
    published = sum(lands_on(driver, node) for node in sliced)
    return ForeignAdvertiser(
        driver.name,
        driver.namespace,
        _DRA_KIND,
        "DaemonSet",
        " ".join(filter(None, ("container gpus", origin))) + f", ResourceSlices of {published} nodes",
        PLUGIN_AND_DRIVER,
        (_LET_DRA, without_gpus(driver)),
        # Its DeviceClasses are in the way of gpukube's, wherever its pods run.
        tuple(_name(pool) for pool in pools if pool.ownership.advertiser == "dra" or _could_run(driver, pool)),
        beside_dra=f"remove it: {remove_driver(driver)}",
    )


def without_gpus(driver: WorkloadView) -> str:
    """Return how to turn off the GPUs of a DRA driver of others; its ComputeDomains stay if its chart has them."""
    chart, version = chart_of(driver)
    if not chart:
        return f"remove it: {remove_driver(driver)}"
    return (
        f"turn its GPUs off: helm upgrade {_release_of(driver)} {chart} --repo {GPU_OPERATOR.repository} --version "
        f"{version} --namespace {driver.namespace} --reuse-values --set resources.gpus.enabled=false"
    )


def remove_driver(driver: WorkloadView) -> str:
    """Return the command that removes a DRA driver: its release, its GPUCluster, or its DaemonSet alone."""
    if chart_of(driver)[0]:
        return f"helm uninstall {_release_of(driver)} --namespace {driver.namespace}"
    if is_operated(driver):
        return "kubectl delete gpuclusters.nvidia.com --all"
    return f"kubectl delete daemonset {driver.name} --namespace {driver.namespace}"


def _release_of(driver: WorkloadView) -> str:
    return driver.labels.get("app.kubernetes.io/instance", driver.name)
