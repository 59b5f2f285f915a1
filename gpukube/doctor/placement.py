"""Checks of reach: whether a device plugin goes to every GPU node, and if not, why.

Lives here: the cause for each GPU node without a plugin, one per node, and the checks that tell of each cause. Must not
live here: the scheduler's predicates (cluster.scheduling), pods that do run (plugins).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE
from gpukube.cluster.nodes_drift import nodes_of_pool
from gpukube.cluster.scheduling import daemon_misfits
from gpukube.cluster.stack import publishes_itself
from gpukube.core.faults import LabelNode, Reconcile, fault
from gpukube.core.jsontree import items, text
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL, OPERANDS_LABEL, PRESENT_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.doctor.check import Check
from gpukube.doctor.parts import edits_of, is_part_gone, patch_back
from gpukube.doctor.stack import (
    NFD_LABELS,
    advertisers_on,
    gpu_nodes,
    is_failing,
    lands_on,
    plugins,
    pods_of_deployment,
    workloads_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cluster.scheduling import Misfit
    from gpukube.cluster.views import NodeView, WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

Cause = Literal["no-plugin", "marks", "reset", "class-labels", "nfd", "taint", "opted-out", "told", "labels"]

_MARKS: Final = (OWNER_LABEL, POOL_LABEL, ADVERTISER_LABEL, CONFIG_LABEL, PRESENT_LABEL, MIG_CONFIG_LABEL)
_PCI_LABEL: Final = NFD_LABELS[0]
_DEPLOY: Final = "nvidia.com/gpu.deploy"
_APPLY: Final = "gpukube pool apply -f SPEC"


@dataclass(frozen=True, slots=True)
class Lost:
    """A label of ours that the pool's API declares and a node has lost."""

    node: str
    key: str
    wanted: str
    live: str | None


@dataclass(frozen=True, slots=True)
class _Unreached:
    """A GPU node to which no plugin goes.

    Attributes:
        plugin: The one that comes nearest to it; None when there is none at all.
        reasons: What keeps that one away.
    """

    node: NodeView
    cause: Cause
    plugin: WorkloadView | None
    reasons: tuple[Misfit, ...]


def lost_labels(evidence: Evidence) -> tuple[Lost, ...]:
    """List the labels of ours that nodes of our live pools have lost; the GPU Operator's own are left out."""
    return tuple(
        Lost(node.name, key, wanted, node.labels.get(key))
        for pool in evidence.live
        if pool.owner
        for node in nodes_of_pool(evidence.seen, pool)
        for key, wanted in pool.labels.items()
        if key in _MARKS
        and node.labels.get(key) != wanted
        and not (key == PRESENT_LABEL and pool.labels.get(ADVERTISER_LABEL) == GPU_OPERATOR.advertiser)
    )


def _unreached(evidence: Evidence) -> list[_Unreached]:
    lost = {item.node for item in lost_labels(evidence) if item.key == ADVERTISER_LABEL}
    found = []
    for node in gpu_nodes(evidence):
        if not node.ready or advertisers_on(evidence, node) or _is_served(evidence, node):
            continue
        nearest, reasons = _nearest(plugins(evidence), node)
        cause = "marks" if node.name in lost else _cause(evidence, node, nearest, reasons)
        found.append(_Unreached(node, cause, nearest, reasons))
    return found


def _is_served(evidence: Evidence, node: NodeView) -> bool:
    """Tell a node that shows devices without a plugin's pod: something that is not known here advertises them."""
    shows = any(count > 0 for count in node.devices.values())
    return shows and not any(evidence.pods_on(node.name, item) for item in plugins(evidence))


def _nearest(found: Sequence[WorkloadView], node: NodeView) -> tuple[WorkloadView | None, tuple[Misfit, ...]]:
    judged = [(item, daemon_misfits(item.placement, node.labels, node.taints, name=node.name)) for item in found]
    return min(judged, key=lambda pair: (len(pair[1]), pair[0].name), default=(None, ()))


def _cause(  # noqa: PLR0911 - one return per cause, in the order in which they explain each other
    evidence: Evidence, node: NodeView, plugin: WorkloadView | None, reasons: Sequence[Misfit]
) -> Cause:
    if plugin is None:
        return "no-plugin"
    if all(reason.kind == "taint" for reason in reasons):
        return "taint"
    if node.labels.get(PRESENT_LABEL) == "false" and evidence.seen.cluster_policies:
        return "reset"
    wants_pci = any(_PCI_LABEL in reason.says for reason in reasons)
    if wants_pci and any(node.labels.get(key) == "true" for key in NFD_LABELS[1:]):
        return "class-labels"
    waits_for_operator = any(_DEPLOY in reason.says for reason in reasons)
    if waits_for_operator and node.labels.get(OPERANDS_LABEL) == "false":
        return "opted-out"
    if waits_for_operator and not any(item.ready for item in workloads_of(evidence, "operator")):
        return "told" if workloads_of(evidence, "operator") or evidence.seen.cluster_policies else "labels"
    if waits_for_operator or wants_pci:
        return _of_nfd(evidence, node)
    return "labels"


def _of_nfd(evidence: Evidence, node: NodeView) -> Cause:
    """Say whether it is NFD that keeps a node unknown to a plugin that waits for its label, and who tells of it."""
    workers, masters = workloads_of(evidence, "nfd-worker"), workloads_of(evidence, "nfd-master")
    if workers and not any(lands_on(item, node) for item in workers):
        return "told" if any(map(partial(edits_of, evidence), workers)) else "nfd"
    here = [pod for item in workers for pod in evidence.pods_on(node.name, item)]
    beside = [pod for item in masters for pod in pods_of_deployment(evidence, item)]
    fails = any(is_failing(state) for pod in (*here, *beside) for state in pod.view.containers)
    if fails or is_part_gone(evidence, "nfd-worker", "nfd-master"):
        return "told"
    if workers and (not any(pod.view.ready for pod in here) or not any(item.ready for item in masters)):
        return "nfd"
    return "labels"


def _told(evidence: Evidence, cause: Cause) -> Iterator[Fault]:
    for item in _unreached(evidence):
        if item.cause == cause:  # "told" is told by another check
            yield _MAKERS[cause](evidence, item)


def _no_plugin(_evidence: Evidence, item: _Unreached) -> Fault:
    ours = OWNER_LABEL in item.node.labels
    return fault(
        f"node {item.node.name}",
        "no device plugin is in the cluster for this node: it shows no GPU",
        f"{_APPLY} (it installs one)"
        if ours
        else "put the pool into a spec with devicePlugin.owner: helm, or install "
        "one: helm upgrade --install nvdp nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin "
        "--namespace nvidia-device-plugin --create-namespace",
        mend=Reconcile() if ours else None,
    )


def _by_labels(evidence: Evidence, item: _Unreached) -> Fault:
    says = tuple(reason.says for reason in item.reasons)
    edits = edits_of(evidence, item.plugin) if item.plugin else {}
    if item.plugin and edits:
        ours = item.plugin.namespace == NAMESPACE and bool(evidence.desired)
        return fault(
            f"node {item.node.name}",
            f"{item.plugin} does not go to this node, because its {' and '.join(edits)} were changed by hand",
            patch_back(item.plugin, edits) + (f" ({_APPLY} does it too)" if ours else ""),
            says,
        )
    wanted = _landing_labels(item.plugin, item.node) if item.plugin else {}
    pairs = " ".join(f"{key}={value}" for key, value in wanted.items())
    return fault(
        f"node {item.node.name}",
        f"{item.plugin} wants labels that this node has not",
        f"label the node's pool {pairs} through the cloud's API (one node at once: kubectl label node "
        f"{item.node.name} {pairs} --overwrite)"
        if pairs
        else f"kubectl get daemonset {item.plugin.name if item.plugin else ''} --output yaml names what it asks of "
        "nodes; change that, or the node",
        says,
    )


def _landing_labels(plugin: WorkloadView, node: NodeView) -> dict[str, str]:
    """Find labels with which a plugin would go to a node; those that NFD or the operator writes by itself come last."""
    chosen = dict(plugin.placement.node_selector)
    path = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = items(plugin.placement.affinity, *path, "nodeSelectorTerms") or [{}]
    offers = []
    for term in terms:
        asked = {
            text(item, "key"): text(items(item, "values")[0])
            for item in items(term, "matchExpressions")
            if text(item, "operator") == "In" and items(item, "values")
        }
        labels = {**chosen, **asked}
        missing = {key: value for key, value in labels.items() if node.labels.get(key) != value}
        if not daemon_misfits(plugin.placement, {**node.labels, **missing}, node.taints, name=node.name):
            offers.append(missing)
    by_others = ("feature.node.kubernetes.io/", _DEPLOY)
    return min(offers, key=lambda labels: (any(key.startswith(by_others) for key in labels), len(labels)), default={})


def _by_taint(evidence: Evidence, item: _Unreached) -> Fault:
    ours = OWNER_LABEL in item.node.labels
    missing = [reason.taint for reason in item.reasons if reason.taint]
    taints = ", ".join(map(str, missing))
    declared = {taint for wanted in evidence.desired for taint in wanted.effective_taints}
    return fault(
        f"node {item.node.name}",
        f"{item.plugin} does not tolerate {taints}",
        f"write the taint into the spec and run {_APPLY} (it tolerates what the spec's pools carry), or take it off: "
        f"kubectl taint node {item.node.name} {missing[0]}-"
        if ours
        else f"add tolerations for {taints} to the release of {item.plugin}",
        mend=Reconcile() if ours and declared.issuperset(missing) else None,
    )


def _by_class_labels(_evidence: Evidence, item: _Unreached) -> Fault:
    seen = [key for key in NFD_LABELS[1:] if item.node.labels.get(key) == "true"]
    return fault(
        f"node {item.node.name}",
        f"NFD labels it {seen[0]}, and {item.plugin} asks for {_PCI_LABEL}",
        f"label the node's pool {PRESENT_LABEL}=true, or give that NFD the value "
        "worker.config.sources.pci.deviceLabelFields=[vendor]",
        tuple(reason.says for reason in item.reasons),
    )


def _by_nfd(evidence: Evidence, item: _Unreached) -> Fault:
    worker = workloads_of(evidence, "nfd-worker")[0]
    reasons = daemon_misfits(worker.placement, item.node.labels, item.node.taints, name=item.node.name)
    taints = ", ".join(str(reason.taint) for reason in reasons if reason.taint)
    says = tuple(reason.says for reason in (*reasons, *item.reasons))
    if reasons:
        return fault(
            f"node {item.node.name}",
            f"{worker} does not come here, so the label that {item.plugin} asks for is never set",
            f"add tolerations for {taints} to nfd.worker.tolerations of the chart (the chart's own covers "
            "nvidia.com/gpu=present only)"
            if taints
            else f"let {worker} run on this node: {'; '.join(reason.says for reason in reasons)}",
            says,
        )
    down = next((master for master in workloads_of(evidence, "nfd-master") if not master.ready), None)
    if down is not None and not down.asked:
        fix = f"kubectl scale deployment {down.name} --namespace {down.namespace} --replicas=1"
    elif down is not None:
        fix = f"kubectl describe deployment {down.name} --namespace {down.namespace}"
    else:
        fix = f"kubectl get pods --namespace {worker.namespace} -o wide --field-selector spec.nodeName={item.node.name}"
    return fault(
        f"node {item.node.name}",
        f"{down or worker} is not ready, so the label that {item.plugin} asks for is not set",
        fix,
        says,
    )


def _by_opt_out(_evidence: Evidence, item: _Unreached) -> Fault:
    return fault(
        f"node {item.node.name}",
        f"label {OPERANDS_LABEL}=false keeps the GPU Operator's plugin off, and there is no other",
        f"kubectl label node {item.node.name} {OPERANDS_LABEL}- (and in its pool, where that has it)",
        tuple(reason.says for reason in item.reasons),
    )


def _by_reset(_evidence: Evidence, item: _Unreached) -> Fault:
    return fault(
        f"node {item.node.name}",
        f"the GPU Operator has set {PRESENT_LABEL}=false here, because NFD shows it no NVIDIA device",
        f"let NFD see the device (kubectl get node {item.node.name} --show-labels names {_PCI_LABEL}), or keep "
        f"the operator off: kubectl label node {item.node.name} nvidia.com/gpu.deploy.operands=false",
        tuple(reason.says for reason in item.reasons),
    )


def _lost(evidence: Evidence) -> Iterator[Fault]:
    for item in lost_labels(evidence):
        recuts = item.key == MIG_CONFIG_LABEL
        yield fault(
            f"node {item.node}",
            f"label {item.key} is {item.live or 'gone'}, and its pool declares {item.wanted}",
            f"kubectl label node {item.node} {item.key}={item.wanted} --overwrite",
            why="the MIG manager cuts the GPUs as the node's label says, not as its pool" if recuts else "",
            mend=None if recuts else LabelNode(item.node, item.key, item.live, item.wanted),
        )


def _nfd_misses(evidence: Evidence) -> Iterator[Fault]:
    """Tell of NFD workers that stay away where a plugin is all the same; where it is not, the cause tells of it."""
    workers = workloads_of(evidence, "nfd-worker")
    told = {item.node.name for item in _unreached(evidence)}
    for node in gpu_nodes(evidence) if workers else ():
        reasons = [daemon_misfits(item.placement, node.labels, node.taints, name=node.name) for item in workers]
        taints = sorted({str(miss.taint) for misses in reasons for miss in misses if miss.taint})
        if node.ready and all(reasons) and taints and node.name not in told:
            yield fault(
                f"node {node.name}",
                f"{workers[0]} does not tolerate {', '.join(taints)}",
                f"add tolerations for {', '.join(taints)} to the workers of that NFD",
                severity="warning",
                why=_ALONE if all(map(publishes_itself, workloads_of(evidence, "gfd"))) else _UNHEARD,
            )


_MAKERS: Final = {
    "no-plugin": _no_plugin,
    "labels": _by_labels,
    "taint": _by_taint,
    "class-labels": _by_class_labels,
    "nfd": _by_nfd,
    "reset": _by_reset,
    "opted-out": _by_opt_out,
}
_UNHEARD: Final = "no feature labels (product, memory, MIG) on this node, and no MPS"
_ALONE: Final = (
    "no labels of NFD's own on this node (pci-10de.present); GPU feature discovery publishes its own by itself"
)
"""From 0.19 on GFD makes a NodeFeature of its own; before, an NFD worker on the node read its file (cluster.stack)."""
_ZERO: Final = "no plugin pod runs on the node: it shows no GPU, and pods that ask for one stay Pending"

CHECKS: Final = (
    Check(
        "node-labels-lost",
        "labels of gpukube that a node has lost",
        "the release chooses its nodes and their sharing by these labels",
        "https://github.com/Azure/AKS/issues/2832",
        _lost,
        needs=("nodes", "pools"),
    ),
    Check(
        "no-plugin",
        "GPU nodes in a cluster without a device plugin",
        _ZERO,
        "https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/",
        partial(_told, cause="no-plugin"),
    ),
    Check(
        "plugin-desired-zero",
        "the plugin's DaemonSet wants labels that GPU nodes have not (0 desired)",
        _ZERO,
        "https://github.com/NVIDIA/k8s-device-plugin/issues/315",
        partial(_told, cause="labels"),
    ),
    Check(
        "operands-kept-off",
        "GPU nodes that a label keeps the GPU Operator off, and that have no other plugin",
        _ZERO,
        "https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/getting-started.html",
        partial(_told, cause="opted-out"),
    ),
    Check(
        "plugin-not-tolerating",
        "taints of GPU nodes that the plugin does not tolerate",
        _ZERO,
        "https://github.com/NVIDIA/k8s-device-plugin/issues/607",
        partial(_told, cause="taint"),
    ),
    Check(
        "nfd-worker-not-tolerating",
        "NFD that does not come to GPU nodes or does not run, and a plugin that waits for its labels",
        _ZERO,
        "https://github.com/NVIDIA/k8s-device-plugin/issues/734",
        partial(_told, cause="nfd"),
    ),
    Check(
        "nfd-out-of-reach",
        "NFD workers that the GPU nodes' taints keep away, though the plugin is there",
        "no feature labels on these nodes",
        "https://github.com/NVIDIA/k8s-device-plugin/issues/734",
        _nfd_misses,
    ),
    Check(
        "nfd-class-labels",
        "an NFD whose labels carry the device class, which the plugin's affinity does not know",
        _ZERO,
        "https://github.com/NVIDIA/k8s-device-plugin/issues/1213",
        partial(_told, cause="class-labels"),
    ),
    Check(
        "operator-resets-label",
        "nvidia.com/gpu.present set to false by the GPU Operator",
        _ZERO,
        "https://github.com/NVIDIA/gpu-operator/blob/v26.7.0/controllers/nodelabeling_controller.go",
        partial(_told, cause="reset"),
        needs=("nodes", "daemonsets", "pods", "policies"),
    ),
)
