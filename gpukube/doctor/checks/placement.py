"""Checks of placement: whether a device plugin, or the DRA driver, runs on every GPU node, and if not, why.

In scope: the single cause for each GPU node without a plugin, and the checks that report these causes. Out of scope:
the scheduler's predicates (cluster.scheduling), pods that do run (plugins).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.names import DRA_DRIVER, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.state.components import publishes_itself
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.cluster.state.scheduling import daemon_misfits, lands_on
from gpukube.core.faults import LabelNode, Reconcile, fault
from gpukube.core.jsontree import items, text
from gpukube.core.owners import (
    ADVERTISER_LABEL,
    CLIENT_LABEL,
    CONFIG_LABEL,
    MIG_CONFIG_LABEL,
    OPERANDS_LABEL,
    PRESENT_LABEL,
)
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.doctor.check import APPLY, Checks
from gpukube.doctor.checks.components import edits_of, is_operator_down, is_part_gone, patch_back
from gpukube.doctor.gpu_stack import (
    NFD_LABELS,
    advertisers_on,
    candidates,
    gpu_nodes,
    is_failing,
    part_of,
    plugins,
    pods_of_deployment,
    workloads_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.state.scheduling import Misfit
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

Cause = Literal["no-plugin", "marks", "reset", "class-labels", "nfd", "taint", "opted-out", "reported", "labels"]

_MARKS: Final = (OWNER_LABEL, POOL_LABEL, ADVERTISER_LABEL, CONFIG_LABEL, PRESENT_LABEL, MIG_CONFIG_LABEL)
_PCI_LABEL: Final = NFD_LABELS[0]
_DEPLOY: Final = "nvidia.com/gpu.deploy"

_ZERO: Final = "no plugin pod runs on the node: it advertises no GPU, and pods that request one stay Pending"

CHECKS: Final = Checks()


@dataclass(frozen=True, slots=True)
class Lost:
    """A gpukube label that the live pool has and a node has lost."""

    node: str
    key: str
    desired: str
    live: str | None


@dataclass(frozen=True, slots=True)
class _Unreached:
    """A GPU node on which no plugin runs.

    Attributes:
        plugin: The plugin or DRA driver with the fewest misfits; None if there is none.
        reasons: The misfits of that plugin.
    """

    node: NodeView
    cause: Cause
    plugin: WorkloadView | None
    reasons: tuple[Misfit, ...]


def lost_labels(evidence: Evidence) -> tuple[Lost, ...]:
    """Return the gpukube labels that nodes of gpukube's pools have lost, except those that the GPU Operator manages."""
    return tuple(
        Lost(node.name, key, value, node.labels.get(key))
        for pool in evidence.live
        if pool.owner
        for node in nodes_of_pool(evidence.seen, pool)
        for key, value in pool.labels.items()
        if key in _MARKS
        and node.labels.get(key) != value
        and not (key == PRESENT_LABEL and _is_operated(evidence, pool.labels))
    )


def _is_operated(evidence: Evidence, labels: Mapping[str, str]) -> bool:
    beside_dra = GPU_OPERATOR.carries(labels) and bool(evidence.seen.cluster_policies)
    return labels.get(ADVERTISER_LABEL) == GPU_OPERATOR.advertiser or beside_dra


def _unreached(evidence: Evidence, cause: Cause | None = None) -> list[_Unreached]:
    """Return the GPU nodes without a plugin, for one cause ("reported": another check reports it) or for all."""
    lost = {item.node for item in lost_labels(evidence) if item.key == ADVERTISER_LABEL}
    found = []
    for node in gpu_nodes(evidence):
        if not node.ready or advertisers_on(evidence, node) or _is_served(evidence, node):
            continue
        if node.labels.get(CLIENT_LABEL, "").startswith("paused"):
            continue  # the operator changes MIG or the driver meanwhile; mig-config-stuck finds changes that hang
        nearest, reasons = _closest_plugin(candidates(evidence, node), node)
        why = "marks" if node.name in lost else _cause(evidence, node, nearest, reasons)
        if cause in (None, why):
            found.append(_Unreached(node, why, nearest, reasons))
    return found


def _is_served(evidence: Evidence, node: NodeView) -> bool:
    """Return whether a node has devices but no plugin pod: an unknown component advertises them."""
    shows = any(count > 0 for count in node.devices.values())
    return shows and not any(evidence.pods_on(node.name, item) for item in plugins(evidence))


def _closest_plugin(found: Sequence[WorkloadView], node: NodeView) -> tuple[WorkloadView | None, tuple[Misfit, ...]]:
    judged = [(item, daemon_misfits(item.placement, node.labels, node.taints, name=node.name)) for item in found]
    return min(judged, key=lambda pair: (len(pair[1]), pair[0].name), default=(None, ()))


def _cause(evidence: Evidence, node: NodeView, plugin: WorkloadView | None, reasons: Sequence[Misfit]) -> Cause:
    if plugin is None:
        others = node.labels.get(ADVERTISER_LABEL, GPU_OPERATOR.advertiser) != GPU_OPERATOR.advertiser
        return "reported" if is_operator_down(evidence) and not others else "no-plugin"
    if all(reason.kind == "taint" for reason in reasons):
        return "taint"
    operated = bool(evidence.seen.cluster_policies) and part_of(plugin) != "dra"
    if node.labels.get(PRESENT_LABEL) == "false" and operated:
        return "reset"
    wants_pci = any(_PCI_LABEL in reason.message for reason in reasons)
    if wants_pci and any(node.labels.get(key) == "true" for key in NFD_LABELS[1:]):
        return "class-labels"
    waits_for_operator = any(_DEPLOY in reason.message for reason in reasons)
    if waits_for_operator and node.labels.get(OPERANDS_LABEL) == "false":
        return "opted-out"
    if waits_for_operator and not any(item.ready for item in workloads_of(evidence, "operator")):
        return "reported" if workloads_of(evidence, "operator") or evidence.seen.cluster_policies else "labels"
    if waits_for_operator or wants_pci:
        return _of_nfd(evidence, node)
    return "labels"


def _of_nfd(evidence: Evidence, node: NodeView) -> Cause:
    """Return whether NFD is why a plugin that selects its label does not run, or another check reports the cause."""
    workers, masters = workloads_of(evidence, "nfd-worker"), workloads_of(evidence, "nfd-master")
    if workers and not any(lands_on(item, node) for item in workers):
        return "reported" if any(map(partial(edits_of, evidence), workers)) else "nfd"
    here = [pod for item in workers for pod in evidence.pods_on(node.name, item)]
    master_pods = [pod for item in masters for pod in pods_of_deployment(evidence, item)]
    fails = any(is_failing(state) for pod in (*here, *master_pods) for state in pod.view.containers)
    if fails or is_part_gone(evidence, "nfd-worker", "nfd-master"):
        return "reported"
    if workers and (not any(pod.view.ready for pod in here) or not any(item.ready for item in masters)):
        return "nfd"
    return "labels"


@CHECKS.add(
    "node-labels-lost",
    title="gpukube labels that a node has lost",
    consequence="the release selects its nodes and their sharing by these labels",
    link="https://github.com/Azure/AKS/issues/2832",
    needs=("nodes", "pools"),
)
def _lost(evidence: Evidence) -> Iterator[Fault]:
    for item in lost_labels(evidence):
        recuts = item.key == MIG_CONFIG_LABEL
        yield fault(
            f"node {item.node}",
            f"label {item.key} is {item.live or 'missing'}; its pool has {item.desired}",
            f"kubectl label node {item.node} {item.key}={item.desired} --overwrite",
            why="the MIG manager follows the node's label, not its pool's" if recuts else "",
            safe_fix=None if recuts else LabelNode(item.node, item.key, item.live, item.desired),
        )


@CHECKS.add(
    "no-plugin",
    title="GPU nodes in a cluster without a device plugin",
    consequence=_ZERO,
    link="https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/",
)
def _no_plugin(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "no-plugin"):
        ours = OWNER_LABEL in item.node.labels
        claimed = item.node.labels.get(ADVERTISER_LABEL) == DRA_DRIVER.advertiser
        advertiser = "DRA driver" if claimed else "device plugin"
        yield fault(
            f"node {item.node.name}",
            f"the cluster has no {advertiser} for this node, so it advertises no GPU",
            APPLY
            if ours
            else "declare the pool in a spec with devicePlugin.owner: helm, or install "
            "one: helm upgrade --install nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin "
            "--namespace nvidia-device-plugin --create-namespace",
            safe_fix=Reconcile() if ours else None,
        )


@CHECKS.add(
    "plugin-desired-zero",
    title="a plugin's DaemonSet that selects labels which GPU nodes do not have (0 desired)",
    consequence=_ZERO,
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/315",
)
def _kept_off_by_labels(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "labels"):
        message = tuple(reason.message for reason in item.reasons)
        edits = edits_of(evidence, item.plugin) if item.plugin else {}
        if item.plugin and edits:
            ours = item.plugin.namespace == NAMESPACE and bool(evidence.desired)
            yield fault(
                f"node {item.node.name}",
                f"{item.plugin} does not run on this node, because somebody changed its {' and '.join(edits)}",
                APPLY if ours else patch_back(item.plugin, edits),
                message,
                safe_fix=Reconcile() if ours else None,
            )
            continue
        expected = _landing_labels(item.plugin, item.node) if item.plugin else {}
        pairs = " ".join(f"{key}={value}" for key, value in expected.items())
        yield fault(
            f"node {item.node.name}",
            f"{item.plugin} selects labels that this node does not have",
            f"label the node's pool {pairs} in the cloud; for this node, run: kubectl label node "
            f"{item.node.name} {pairs} --overwrite"
            if pairs
            else "change how it selects nodes, or the node's labels: kubectl edit daemonset "
            + (f"{item.plugin.name} --namespace {item.plugin.namespace}" if item.plugin else ""),
            message,
        )


def _landing_labels(plugin: WorkloadView, node: NodeView) -> dict[str, str]:
    """Return labels with which a plugin would run on a node; those that NFD or the operator manages come last."""
    chosen = dict(plugin.placement.node_selector)
    path = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = items(plugin.placement.affinity, *path, "nodeSelectorTerms") or [{}]
    offers = []
    for term in terms:
        requested = {
            text(item, "key"): text(items(item, "values")[0])
            for item in items(term, "matchExpressions")
            if text(item, "operator") == "In" and items(item, "values")
        }
        labels = {**chosen, **requested}
        missing = {key: value for key, value in labels.items() if node.labels.get(key) != value}
        if not daemon_misfits(plugin.placement, {**node.labels, **missing}, node.taints, name=node.name):
            offers.append(missing)
    by_others = ("feature.node.kubernetes.io/", _DEPLOY)
    return min(offers, key=lambda labels: (any(key.startswith(by_others) for key in labels), len(labels)), default={})


@CHECKS.add(
    "operands-kept-off",
    title="GPU nodes without a plugin because a label excludes the GPU Operator",
    consequence=_ZERO,
    link="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html",
)
def _opted_out(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "opted-out"):
        yield fault(
            f"node {item.node.name}",
            f"label {OPERANDS_LABEL}=false excludes the GPU Operator's plugin, and there is no other",
            f"remove it from the pool; for this node, run: kubectl label node {item.node.name} {OPERANDS_LABEL}-",
            tuple(reason.message for reason in item.reasons),
        )


@CHECKS.add(
    "plugin-not-tolerating",
    title="taints of GPU nodes that the plugin does not tolerate",
    consequence=_ZERO,
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/607",
)
def _kept_off_by_taints(evidence: Evidence) -> Iterator[Fault]:
    # The release should tolerate the taints that the spec or a live pool of gpukube's sets on nodes.
    declared_taints = {taint for pool in evidence.desired for taint in pool.effective_taints}
    declared_taints |= {taint for pool in evidence.live if pool.owner for taint in pool.effective_taints}
    for item in _unreached(evidence, "taint"):
        ours = OWNER_LABEL in item.node.labels
        missing = [reason.taint for reason in item.reasons if reason.taint]
        taints = ", ".join(map(str, missing))
        edits = edits_of(evidence, item.plugin) if item.plugin else {}
        foreign = [taint for taint in missing if taint not in declared_taints]
        declared = ours and not foreign
        if item.plugin and "tolerations" in edits:
            seen = f"{item.plugin} does not tolerate {taints}, because somebody changed its {' and '.join(edits)}"
            fix = APPLY if declared and item.plugin.namespace == NAMESPACE else patch_back(item.plugin, edits)
        else:
            seen = f"{item.plugin} does not tolerate {taints}"
            fix = (
                f"add tolerations for {taints} to the release of {item.plugin}"
                if not ours
                else APPLY
                if declared
                else f"kubectl taint node {item.node.name} {' '.join(f'{taint}-' for taint in foreign)}"
            )
        yield fault(
            f"node {item.node.name}",
            seen,
            fix,
            ("no pool has this taint; one that the spec declares is tolerated",) if ours and foreign else (),
            safe_fix=Reconcile() if declared else None,
        )


@CHECKS.add(
    "nfd-worker-not-tolerating",
    title="plugins that select labels of NFD, which does not run on the node",
    consequence=_ZERO,
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/734",
)
def _nfd_away(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "nfd"):
        worker = workloads_of(evidence, "nfd-worker")[0]
        reasons = daemon_misfits(worker.placement, item.node.labels, item.node.taints, name=item.node.name)
        taints = ", ".join(str(reason.taint) for reason in reasons if reason.taint)
        message = tuple(reason.message for reason in (*reasons, *item.reasons))
        if reasons:
            yield fault(
                f"node {item.node.name}",
                f"{worker} does not run here, so the label that {item.plugin} selects is never set",
                f"add tolerations for {taints} to nfd.worker.tolerations of the chart (its default covers "
                "nvidia.com/gpu=present only)"
                if taints
                else f"let {worker} run on this node: {'; '.join(reason.message for reason in reasons)}",
                message,
            )
            continue
        down = next((master for master in workloads_of(evidence, "nfd-master") if not master.ready), None)
        if down is not None and not down.replicas:
            fix = f"kubectl scale deployment {down.name} --namespace {down.namespace} --replicas=1"
        elif down is not None:
            fix = f"kubectl describe deployment {down.name} --namespace {down.namespace}"
        else:
            fix = (
                f"kubectl get pods --namespace {worker.namespace} -o wide "
                f"--field-selector spec.nodeName={item.node.name}"
            )
        yield fault(
            f"node {item.node.name}",
            f"{down or worker} is not ready, so the label that {item.plugin} selects is not set",
            fix,
            message,
        )


@CHECKS.add(
    "nfd-out-of-reach",
    title="GPU nodes whose taints keep NFD workers away although the plugin runs",
    consequence="no feature labels on these nodes",
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/734",
    severity="warning",
)
def _nfd_misses(evidence: Evidence) -> Iterator[Fault]:
    """Find nodes with a plugin but no NFD worker; without a plugin, its cause is reported instead."""
    workers = workloads_of(evidence, "nfd-worker")
    reported = {item.node.name for item in _unreached(evidence)}
    edited = any(edits_of(evidence, item) for item in workers)  # stack-part-edited reports that
    for node in gpu_nodes(evidence) if workers and not edited else ():
        reasons = [daemon_misfits(item.placement, node.labels, node.taints, name=node.name) for item in workers]
        taints = sorted({str(miss.taint) for misses in reasons for miss in misses if miss.taint})
        if node.ready and all(reasons) and taints and node.name not in reported:
            yield fault(
                f"node {node.name}",
                f"{workers[0]} does not tolerate {', '.join(taints)}",
                f"add tolerations for {', '.join(taints)} to the workers of that NFD",
                why=_ALONE if all(map(publishes_itself, workloads_of(evidence, "gfd"))) else _UNHEARD,
            )


_UNHEARD: Final = "no feature labels (product, memory, MIG) on this node, and no MPS"
_ALONE: Final = (
    "this node has no labels of NFD itself (pci-10de.present); GPU feature discovery publishes its own labels"
)
"""Effect by GFD version: from 0.19 GFD creates a NodeFeature; before, an NFD worker read its file (cluster.stack)."""


@CHECKS.add(
    "nfd-class-labels",
    title="an NFD whose labels contain the device class, which the plugin's affinity does not match",
    consequence=_ZERO,
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/1213",
)
def _class_labels(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "class-labels"):
        seen = [key for key in NFD_LABELS[1:] if item.node.labels.get(key) == "true"]
        yield fault(
            f"node {item.node.name}",
            f"NFD labels it {seen[0]}, but {item.plugin} selects {_PCI_LABEL}",
            f"label the node's pool {PRESENT_LABEL}=true, or set in that NFD's release "
            "worker.config.sources.pci.deviceLabelFields=[vendor]",
            tuple(reason.message for reason in item.reasons),
        )


@CHECKS.add(
    "operator-resets-label",
    title="nvidia.com/gpu.present set to false by the GPU Operator",
    consequence=_ZERO,
    link="https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/controllers/nodelabeling_controller.go",
    needs=("nodes", "daemonsets", "pods", "policies"),
)
def _label_reset(evidence: Evidence) -> Iterator[Fault]:
    for item in _unreached(evidence, "reset"):
        yield fault(
            f"node {item.node.name}",
            f"the GPU Operator set {PRESENT_LABEL}=false here, because NFD found no NVIDIA device",
            f"make NFD detect the device (label {_PCI_LABEL}), or keep the operator off: kubectl label node "
            f"{item.node.name} {OPERANDS_LABEL}=false",
            tuple(reason.message for reason in item.reasons),
        )
