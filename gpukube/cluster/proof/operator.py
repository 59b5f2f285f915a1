"""What the GPU Operator must have done on a node before its plugin matters: labeled it, and created MIG instances.

In scope: its release and its labels on one node as findings; pure. Out of scope: pods, placement, counts.

Source: NVIDIA/gpu-operator v26.7.0 controllers/state_manager.go (labels), NVIDIA/mig-parted v0.15.0
reconfigure-mig.sh (states), NVIDIA/cloud-native-docs gpu-operator-mig. The chain on a new node: NFD detects the PCI
device, the operator labels the node, its plugin and feature discovery start, the node turns out to be MIG-capable, the
MIG manager starts and applies the layout, perhaps with a reboot, and the plugin starts again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import NO_IMAGE
from gpukube.cluster.names import (
    CLUSTER_POLICY,
    DRIVER_NAME,
    GPU_OPERATOR,
    MIG_MANAGER_NAME,
    NAMESPACE,
    OPERATOR_NAME,
)
from gpukube.cluster.proof.outcome import missing
from gpukube.core.jsontree import items, text
from gpukube.core.owners import MIG_CONFIG_LABEL, MIG_STATE_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.views import NodeView, PodView
    from gpukube.cluster.proof.outcome import Step
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.errors import Finding, Severity

_PLUGIN_LABEL: Final = "nvidia.com/gpu.deploy.device-plugin"
_OPERANDS_LABEL: Final = "nvidia.com/gpu.deploy.operands"
_FAILS: Final = ("CrashLoopBackOff", "Error", *NO_IMAGE)
_APPLY: Final = "gpukube pool create"
_MANAGER_LOG: Final = f"kubectl -n {NAMESPACE} logs daemonset/{MIG_MANAGER_NAME}"


@dataclass(frozen=True, slots=True)
class _State:
    severity: Severity
    step: Step
    means: str
    fix: str = ""


_STATES: Final[dict[str, _State]] = {
    "": _State(
        "warning", "features", "the MIG manager has not started: it starts once the node is known to support MIG"
    ),
    "pending": _State("warning", "geometry", "the MIG manager stops GPU clients and applies the layout"),
    "rebooting": _State("warning", "geometry", "the node reboots to change the MIG mode of its GPUs"),
    "failed": _State(
        "error",
        "geometry",
        "pods still used a GPU, the GPU has no such profile, or its MIG mode could not be changed",
        "{log}; stop the pods that use the node's GPUs, then apply it again: kubectl label --overwrite node {node} "
        "{label}=all-disabled, then the same with {label}={desired}; or replace the node",
    ),
}
"""Values of the state label, except success (which needs no finding) and unknown ones."""
_UNKNOWN_STATE: Final = _State("warning", "geometry", "the MIG manager is working")


def operator_findings(seen: Snapshot, *, nodes: int) -> list[Finding]:
    """Return what is missing of the release itself; the operator creates its DaemonSets with the first GPU node.

    Args:
        seen: The cluster.
        nodes: Number of nodes in the pool. Without any, an operator that does not run is only a hint: the cluster may
            have no node at all.
    """
    where = f"{NAMESPACE}/{OPERATOR_NAME}"
    operator = next(
        (item for item in seen.deployments if (item.namespace, item.name) == (NAMESPACE, OPERATOR_NAME)), None
    )
    if operator is None:
        means = "the release is not installed, or its Deployment was deleted"
        return [missing(where, "placement", "error", "the GPU Operator has no Deployment", means, _APPLY)]
    if CLUSTER_POLICY not in seen.cluster_policies:
        message = f"the cluster has no ClusterPolicy {CLUSTER_POLICY}"
        return [missing(where, "placement", "error", message, "without it the operator does nothing", _APPLY)]
    if operator.ready:
        return []
    means = "it is starting, or no node accepts it"
    fix = f"kubectl -n {NAMESPACE} describe pods -l app={OPERATOR_NAME}"
    severity: Severity = "warning" if nodes else "hint"
    return [missing(where, "placement", severity, "the GPU Operator itself is not running", means, fix)]


def missing_labels(node: NodeView) -> list[Finding]:
    """Return why the operator does not run its plugin on a node yet."""
    if node.labels.get(_OPERANDS_LABEL) == "false":
        means = "the label excludes the node from the GPU Operator"
        fix = f"kubectl label node {node.name} {_OPERANDS_LABEL}-"
        return [missing(node.name, "placement", "error", f"label {_OPERANDS_LABEL} is false", means, fix)]
    value = node.labels.get(_PLUGIN_LABEL, "")
    if value == "true":
        return []
    if value == "false":
        means = "the label excludes the node from the operator's plugin"
        fix = f"kubectl label node {node.name} {_PLUGIN_LABEL}-"
        return [missing(node.name, "placement", "error", f"label {_PLUGIN_LABEL} is false", means, fix)]
    if value:
        means = "the MIG manager has stopped the plugin to apply the layout"
        return [missing(node.name, "geometry", "warning", f"label {_PLUGIN_LABEL} is {value}", means)]
    means = "NFD has not detected the GPU on this node yet, or the operator has not reacted"
    fix = f"kubectl -n {NAMESPACE} get pods -o wide --field-selector spec.nodeName={node.name}"
    return [missing(node.name, "features", "warning", f"no label {_PLUGIN_LABEL}", means, fix)]


def driver_findings(desired: Desired, node: NodeView, pods: Sequence[PodView]) -> list[Finding]:
    """Return the progress of a driver pod on a node; empty if the driver is loaded, or part of the image.

    The pods of toolkit, plugin, and MIG manager wait for it in their init containers.
    """
    installers = _installers(desired)
    if not installers:
        return []
    here = [pod for pod in pods if pod.node == node.name and not pod.terminating]
    pod = next((pod for pod in here if pod.owner in installers), None)
    if pod is None:
        return [missing(node.name, "driver", "warning", "no driver pod on this node yet")]
    if pod.ready:
        return []
    stuck = next((state for state in pod.containers if state.waiting in _FAILS), None)
    if stuck is None:
        return [
            missing(node.name, "driver", "warning", f"pod {pod.name} is not ready", "it builds and loads the driver")
        ]
    message = f"pod {pod.name}, container {stuck.name}: {stuck.waiting}"
    means = "there is no driver image for the node's operating system or kernel, or the driver does not build there"
    fix = (
        f"kubectl -n {NAMESPACE} logs {pod.name} -c {stuck.name}; another driver.version or image of the pool may help"
    )
    return [missing(node.name, "driver", "error", message, means, fix)]


def _installers(desired: Desired) -> frozenset[str]:
    """Return the DaemonSets one of which installs the driver on a pool's nodes: the operator's, or others."""
    if desired.ownership.driver == GPU_OPERATOR.advertiser:
        return frozenset({DRIVER_NAME})
    own = desired.ownership
    objects = items(own.values if own.operator_values is None else own.operator_values, "extraObjects")
    return frozenset(text(item, "metadata", "name") for item in objects if text(item, "kind") == "DaemonSet")


def cut_findings(desired: Desired, node: NodeView) -> list[Finding]:
    """Return the MIG manager's progress on a node; empty if it is done, and for pools without MIG."""
    expected = desired.ownership.labels.get(MIG_CONFIG_LABEL, "")
    if not expected:
        return []
    requested = node.labels.get(MIG_CONFIG_LABEL, "")
    if requested != expected:
        message = f"label {MIG_CONFIG_LABEL} is {requested or 'absent'}, not {expected}"
        means = "the MIG manager reads it; nodes get the pool's labels at creation"
        fix = f"kubectl label node {node.name} {MIG_CONFIG_LABEL}={expected} --overwrite, and gpukube pool plan diff"
        return [missing(node.name, "geometry", "error", message, means, fix)]
    value = node.labels.get(MIG_STATE_LABEL, "")
    if value == "success":
        return []
    state = _STATES.get(value, _UNKNOWN_STATE)
    fix = state.fix.format(log=_MANAGER_LOG, node=node.name, label=MIG_CONFIG_LABEL, desired=expected)
    message = f"label {MIG_STATE_LABEL} is {value or 'absent'}"
    return [missing(node.name, state.step, state.severity, message, state.means, fix)]
