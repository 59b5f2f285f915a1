"""Explains a device plugin pod that fails on a node.

In scope: a table from container states to findings, and the label that MPS requires. Out of scope: counts.

Source: NVIDIA/k8s-device-plugin v0.20.0 (cmd/config-manager, internal/rm, internal/lm) and the linked issues;
kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 (hack/kubelet-plugin-prestart.sh, cmd/gpu-kubelet-plugin).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import GENERATION, NO_IMAGE, NO_MOUNT
from gpukube.cluster.names import DRA_DRIVER, NAMESPACE
from gpukube.cluster.proof.outcome import missing
from gpukube.cluster.state.components import publishes_itself, role_of
from gpukube.core.owners import CONFIG_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.kube.views import ContainerState, NodeView, PodView, WorkloadView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_MPS_LABEL: Final = "nvidia.com/mps.capable"
_CRASHES: Final = ("CrashLoopBackOff", "Error", "RunContainerError", "StartError")


@dataclass(frozen=True, slots=True)
class _Row:
    when: Callable[[Desired, ContainerState], bool]
    means: str
    fix: str


def _of_plugin(state: ContainerState) -> bool:
    return not state.init and not _chooses(state)


def _chooses(state: ContainerState) -> bool:
    """Match the containers that choose the config entry; the chart and the operator name them differently."""
    return "sidecar" in state.name or "config-manager" in state.name


_ANY_POD: Final = (
    _Row(
        lambda _desired, state: state.waiting in NO_IMAGE,
        "the node cannot pull the image",
        "kubectl -n {namespace} describe pod {pod}; set a mirror in the chart's image values",
    ),
    _Row(
        lambda _desired, state: state.waiting in NO_MOUNT,
        "a ConfigMap or a host path of the pod is missing",
        "kubectl -n {namespace} describe pod {pod}",
    ),
)
_ROWS: Final[tuple[_Row, ...]] = (
    *_ANY_POD,
    _Row(
        lambda _desired, state: state.waiting in _CRASHES and (state.init or _chooses(state)),
        "the node's label {label} names an entry that the ConfigMap lacks: config-manager exits",
        "gpukube pool create (it writes the entry), or correct the label: kubectl get node {node} --show-labels",
    ),
    _Row(
        lambda desired, state: (
            state.waiting in _CRASHES
            and _of_plugin(state)
            and desired.target.sharing.mig is not None
            and desired.target.sharing.mig.strategy == "single"
        ),
        "under strategy single all GPUs of the node need the same MIG layout; or the node has no driver",
        "kubectl -n {namespace} logs {pod} -c {container}; for different layouts, write strategy: mixed",
    ),
    _Row(
        lambda _desired, state: state.waiting in _CRASHES and _of_plugin(state),
        "no NVIDIA driver on the node, or nvidia is not its container runtime",
        "kubectl -n {namespace} logs {pod} -c {container}; check the pool's node image and driver",
    ),
)
"""The first row that matches explains a container that does not run (#478, #1011; NVIDIA/gpu-operator#460, #603)."""
_DRA_ROWS: Final = (
    *_ANY_POD,
    _Row(
        lambda _desired, state: state.waiting in _CRASHES,
        "it exits at start: no NVIDIA driver, feature gates that exclude each other, or an unreadable checkpoint",
        "kubectl -n {namespace} logs {pod} -c {container} --previous",
    ),
)


def pod_findings(desired: Desired, node: NodeView, seen: Snapshot, kind: ReleaseKind) -> list[Finding]:
    """Return what keeps the plugin's pod on a node from serving; empty if it serves."""
    here = [
        pod
        for pod in seen.pods
        if pod.node == node.name and (pod.owner_kind, pod.owner) == ("DaemonSet", kind.plugin) and not pod.terminating
    ]
    if not here:
        means = "the events of its DaemonSet show why none is created"
        fix = f"kubectl describe daemonset {kind.plugin} --namespace {NAMESPACE}"
        return [missing(node.name, "plugin-pod", "warning", "no plugin pod on this node yet", means, fix)]
    pod = here[-1]
    if not pod.scheduled:
        message = pod.unschedulable or "the scheduler has not placed it"
        means = "no room on the node for one more pod, or a quota of priority system-node-critical"
        fix = f"kubectl -n {NAMESPACE} describe pod {pod.name}"
        return [
            missing(
                node.name, "plugin-pod", "warning", seen=f"pod {pod.name} is Pending: {message}", means=means, fix=fix
            )
        ]
    troubled = [_trouble(desired, node, pod, state, kind) for state in pod.containers if state.waiting]
    broken = [finding for finding in troubled if finding.severity == "error"]
    if broken:
        return broken[:1]
    waits = next((state for state in pod.containers if state.init and not state.ready and not state.waiting), None)
    if kind is DRA_DRIVER and waits is not None:
        return [_waits_for_driver(node, pod, waits)]
    if not pod.ready:
        reasons = ", ".join(sorted({state.waiting for state in pod.containers if state.waiting})) or pod.phase
        return [missing(node.name, "plugin-pod", "warning", f"pod {pod.name} is not ready: {reasons}")]
    return _former_findings(node, pod, seen.plugin_of(kind)) or _mps_findings(desired, node, seen)


def _waits_for_driver(node: NodeView, pod: PodView, state: ContainerState) -> Finding:
    """Describe the init container of the DRA driver, which waits until it finds the NVIDIA driver (Init:0/1)."""
    message = f"pod {pod.name} waits in init container {state.name} for the NVIDIA driver"
    means = "the driver is not installed yet, or not below the release's nvidiaDriverRoot"
    fix = f"kubectl -n {NAMESPACE} logs {pod.name} -c {state.name}"
    return missing(node.name, "plugin-pod", "warning", message, means, fix)


def _former_findings(node: NodeView, pod: PodView, plugin: WorkloadView | None) -> list[Finding]:
    """Find a pod that will be replaced: its devices go with it, and its replacement may advertise a different count."""
    made_of = pod.labels.get(GENERATION, "")
    if plugin is None or plugin.rolled_out or not made_of or made_of == plugin.generation:
        return []
    message = f"pod {pod.name} has an outdated template of DaemonSet {plugin.name}"
    means = "the release was changed, and the rollout has not reached this node"
    fix = f"kubectl -n {NAMESPACE} rollout status daemonset {plugin.name}"
    return [missing(node.name, "plugin-pod", "warning", seen=message, means=means, fix=fix)]


def _trouble(desired: Desired, node: NodeView, pod: PodView, state: ContainerState, kind: ReleaseKind) -> Finding:
    rows = _DRA_ROWS if kind is DRA_DRIVER else _ROWS
    row = next((row for row in rows if row.when(desired, state)), None)
    if row is None:
        return missing(node.name, "plugin-pod", "warning", f"pod {pod.name} is starting: {state.waiting}")
    words = {
        "namespace": NAMESPACE,
        "pod": pod.name,
        "node": node.name,
        "container": state.name,
        "label": CONFIG_LABEL,
    }
    text = f"pod {pod.name}, container {state.name}: {state.waiting} ({state.restarts} restarts)"
    text += f": {state.message.splitlines()[0]}" if state.message else ""
    return missing(
        node.name, "plugin-pod", "error", seen=text, means=row.means.format(**words), fix=row.fix.format(**words)
    )


def _mps_findings(desired: Desired, node: NodeView, seen: Snapshot) -> list[Finding]:
    """Find a missing label that the MPS daemon's DaemonSet selects nodes by; GFD computes it, NFD's master sets it."""
    slicing = desired.target.sharing.slicing
    if slicing is None or slicing.mode != "mps" or node.labels.get(_MPS_LABEL) == "true":
        return []
    return [
        missing(
            node.name,
            "features",
            "warning",
            seen=f"label {_MPS_LABEL} is {node.labels.get(_MPS_LABEL, 'absent')}, so no MPS daemon runs here",
            means=f"GPU feature discovery writes it, and {_label_setter(seen)} must turn it into a label (#634, #712)",
            fix=f"kubectl -n {NAMESPACE} get pods -o wide --field-selector spec.nodeName={node.name}",
        )
    ]


def _label_setter(seen: Snapshot) -> str:
    """Name the components that turn GFD's result into a label: up to 0.18 a file that a worker on the node reads."""
    found = [item for item in seen.daemonsets if role_of(item) == "gfd"]
    return "NFD's master" if all(map(publishes_itself, found)) else "an NFD worker on this node, and NFD's master,"
