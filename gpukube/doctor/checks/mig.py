"""Checks of MIG: what applies a layout, whether that succeeded, and whether the plugin advertises the result.

In scope: pure checks, and whether MIG explains that a node advertises nothing. Out of scope: config entries.

Source: NVIDIA/k8s-device-plugin v0.20.0 internal/lm (labels) and internal/rm, NVIDIA/mig-parted v0.15.0,
NVIDIA/cloud-native-docs gpu-operator-mig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import DEVICE_PREFIX
from gpukube.cluster.names import CLUSTER_POLICY
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import Restart, fault
from gpukube.core.jsontree import number
from gpukube.core.owners import MIG_CONFIG_LABEL, MIG_STATE_LABEL, OPERANDS_LABEL
from gpukube.doctor.check import Checks
from gpukube.doctor.checks.components import is_operator_down
from gpukube.doctor.gpu_stack import (
    advertisers_on,
    environment_of,
    gpu_nodes,
    plugins,
    unhealthy_devices,
    workloads_of,
)
from gpukube.gpu.capacity import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

_PRODUCT: Final = "nvidia.com/gpu.product"
_STRATEGY: Final = "nvidia.com/mig.strategy"
_UNEVEN: Final = "MIG-INVALID"
_UNDER_WAY: Final = ("pending", "rebooting")
_DEPLOYED: Final = "nvidia.com/gpu.deploy.mig-manager"
_CAPABLE: Final = "nvidia.com/mig.capable"
_NO_LAYOUT: Final = "all-disabled"
"""Layout that the operator itself sets on MIG-capable nodes (NVIDIA/gpu-operator v26.7.0
controllers/nodelabeling_controller.go); it remains when the operator is removed."""
_LONGEST_CUT_S: Final = 1800.0

CHECKS: Final = Checks()


def explains_crash(node: NodeView) -> bool:
    """Return whether the MIG state of a node explains that its plugin crashes."""
    return node.labels.get(_PRODUCT, "").endswith(_UNEVEN) or node.labels.get(MIG_STATE_LABEL) in (
        "failed",
        *_UNDER_WAY,
    )


def explains_zero(evidence: Evidence, node: NodeView) -> bool:
    """Return whether a node's MIG layout, or its health, explains that its plugin advertises nothing."""
    return explains_crash(node) or bool(_outdated(node)) or bool(unhealthy_devices(evidence, node))


def _manager_comes(evidence: Evidence, node: NodeView) -> bool:
    if node.labels.get(MIG_CONFIG_LABEL, _NO_LAYOUT) == _NO_LAYOUT:
        return True
    return any(lands_on(item, node) for item in workloads_of(evidence, "mig-manager"))


@CHECKS.add(
    "mig-label-without-manager",
    title="nodes whose label requests a MIG layout that nothing applies",
    consequence="the label has no effect",
    link="https://github.com/NVIDIA/gpu-operator/issues/652",
    needs=("nodes", "daemonsets"),
)
def _no_manager(evidence: Evidence) -> Iterator[Fault]:
    managers = workloads_of(evidence, "mig-manager")
    for node in gpu_nodes(evidence):
        if not node.ready or _manager_comes(evidence, node):
            continue
        if is_operator_down(evidence):  # a separate check reports that
            continue
        layout = node.labels[MIG_CONFIG_LABEL]
        message = f"{managers[0]} does not run on this node" if managers else "the cluster has no MIG manager"
        yield fault(
            f"node {node.name}",
            f"label {MIG_CONFIG_LABEL}={layout} requests a MIG layout, but {message}",
            _bring_manager(evidence, node),
        )


def _bring_manager(evidence: Evidence, node: NodeView) -> str:
    if not workloads_of(evidence, "operator"):
        remove = f"kubectl label node {node.name} {MIG_CONFIG_LABEL}-"
        return f"declare the pool with sharing.mig, which installs the GPU Operator, or remove the label: {remove}"
    for key in (OPERANDS_LABEL, _DEPLOYED):
        if node.labels.get(key) == "false":
            return f"allow the operator's MIG manager on this node: kubectl label node {node.name} {key}-"
    if not workloads_of(evidence, "mig-manager"):
        switch = '{"spec": {"migManager": {"enabled": true}}}'
        return (
            "enable the operator's MIG manager: kubectl patch clusterpolicy "
            f"{CLUSTER_POLICY} --type merge --patch '{switch}'"
        )
    capable = node.labels.get(_CAPABLE, "absent")
    return (
        f"the operator runs its MIG manager on nodes that feature discovery labels {_CAPABLE}=true (here {capable}): "
        f"kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName={node.name}"
    )


@CHECKS.add(
    "mig-config-failed",
    title="MIG layouts that could not be applied",
    consequence="the node keeps its former MIG layout or advertises nothing",
    link="https://github.com/NVIDIA/gpu-operator/issues/668",
)
def _failed(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        if node.labels.get(MIG_STATE_LABEL) != "failed":
            continue
        users = [pod for pod in evidence.pods_on(node.name) if pod.view.devices]
        namespace = next((item.namespace for item in workloads_of(evidence, "mig-manager")), "gpu-operator")
        yield fault(
            f"node {node.name}",
            f"the MIG manager could not apply {node.labels.get(MIG_CONFIG_LABEL, '(no label)')}",
            "no pod may use its GPUs, and virtual machines need WITH_REBOOT=true in migManager.env: kubectl logs "
            f"--namespace {namespace} daemonset/nvidia-mig-manager",
            tuple(f"pod {pod} uses its devices" for pod in users[:5]),
        )


@CHECKS.add(
    "mig-config-stuck",
    title="MIG changes that have been pending or rebooting for half an hour",
    consequence="the plugin does not run on the node meanwhile, so the node advertises no GPU",
    link="https://github.com/NVIDIA/gpu-operator/issues/1606",
    needs=("nodes", "daemonsets"),
)
def _stuck(evidence: Evidence) -> Iterator[Fault]:
    """Find MIG changes that take too long; even a reboot of a large machine takes only ten minutes."""
    for node in gpu_nodes(evidence):
        state, age = node.labels.get(MIG_STATE_LABEL), evidence.age_s(node.layout_changed)
        if state not in _UNDER_WAY or age is None or age < _LONGEST_CUT_S:
            continue
        namespace = next((item.namespace for item in workloads_of(evidence, "mig-manager")), "gpu-operator")
        layout = node.labels.get(MIG_CONFIG_LABEL, "")
        relabel = f"kubectl label --overwrite node {node.name} {MIG_CONFIG_LABEL}="
        shown = ", ".join(f"{name}: {count}" for name, count in sorted(node.devices.items()))
        yield fault(
            f"node {node.name}",
            f"the change to MIG layout {layout or '(no label)'} has been {state} for {int(age // 60)} min",
            f"to start again: {relabel}{_NO_LAYOUT} && {relabel}{layout}",
            (
                f"allocatable: {shown or 'none'}",
                f"its log: kubectl logs --namespace {namespace} daemonset/nvidia-mig-manager",
            ),
        )


@CHECKS.add(
    "mig-single-uneven",
    title="strategy single on GPUs with different MIG layouts",
    consequence="the plugin exits on this node",
    link="https://github.com/NVIDIA/gpu-operator/issues/460",
    needs=("nodes",),
)
def _uneven(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        product = node.labels.get(_PRODUCT, "")
        if product.endswith(_UNEVEN):
            yield fault(
                f"node {node.name}",
                f"its GPUs have different MIG layouts, which strategy single does not allow ({_PRODUCT}={product})",
                "use one MIG profile on all GPUs of the node, or strategy mixed",
            )


def _outdated(node: NodeView) -> dict[str, tuple[int, int]]:
    """Return the resources whose allocatable count differs from feature discovery: name -> (counted, allocatable).

    Unhealthy devices are omitted: they stay in the capacity.
    """
    found = {}
    for name, prefix in _counted(node):
        count = number(node.labels, f"{prefix}.count") * max(1, number(node.labels, f"{prefix}.replicas"))
        shown = node.devices.get(name, 0) + node.devices.get(f"{name}.shared", 0)
        held_back = shown < number(node.capacity, name) + number(node.capacity, f"{name}.shared")
        if count and count != shown and not held_back:
            found[name] = (count, shown)
    return found


def _counted(node: NodeView) -> list[tuple[str, str]]:
    """Return (resource, prefix of its labels) for the GPUs, and under strategy mixed for each profile."""
    if node.labels.get(_STRATEGY) != "mixed":
        return [("nvidia.com/gpu", "nvidia.com/gpu")]
    mixed = f"{DEVICE_PREFIX}mig-"
    cuts = [key.removesuffix(".count") for key in node.labels if key.startswith(mixed) and key.endswith(".count")]
    return [(key, key) for key in sorted(cuts)]


@CHECKS.add(
    "devices-out-of-date",
    title="nodes that advertise a different number of devices than feature discovery counts",
    consequence="the plugin reads the GPUs only when it starts: after a MIG change it advertises the old devices",
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/992",
)
def _out_of_date(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        plugin = _only_plugin(evidence, node)
        if plugin is None or not node.ready or node.labels.get(MIG_STATE_LABEL) in _UNDER_WAY:
            continue
        for name, (count, shown) in _outdated(node).items():
            yield fault(
                f"node {node.name}",
                f"feature discovery counts {count} {name}, but {shown} are allocatable",
                f"kubectl rollout restart daemonset/{plugin.name} --namespace {plugin.namespace}",
                (f"product {node.labels.get(_PRODUCT, '?')}",),
                safe_fix=Restart(plugin.namespace, plugin.name) if shown else None,  # a restart hides unhealthy devices
            )


def _only_plugin(evidence: Evidence, node: NodeView) -> WorkloadView | None:
    """Return the plugin that must agree with feature discovery; None if another check reports why it does not."""
    landing = [item for item in plugins(evidence) if lands_on(item, node)]
    if len(landing) != 1 or len(advertisers_on(evidence, node)) != 1:
        return None
    forced = environment_of(evidence.manifest(landing[0])).get("MIG_STRATEGY", "")
    if forced and forced != node.labels.get(_STRATEGY, "none"):
        return None
    up = any(pod.view.ready for pod in evidence.pods_on(node.name, landing[0]))
    return landing[0] if up else None


@CHECKS.add(
    "stale-resource-names",
    title="resource names of a former MIG layout in a node's status",
    consequence="the kubelet keeps the names until it restarts, and they mislead autoscalers and people",
    link="https://github.com/NVIDIA/k8s-device-plugin/issues/240",
    severity="warning",
    needs=("nodes",),
)
def _stale_names(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        shown = [name for name, count in node.devices.items() if count]
        # Before the manager applies a layout for strategy mixed, every new node has whole GPUs.
        cut = node.labels.get(MIG_CONFIG_LABEL, _NO_LAYOUT) != _NO_LAYOUT
        stale = [name for name, count in node.devices.items() if not count and not (cut and name == GPU_RESOURCE)]
        if shown and stale:
            yield fault(
                f"node {node.name}",
                f"{', '.join(sorted(stale))} is still in its status, with 0 devices",
                f"restart the kubelet of the node, or drain and replace it: kubectl drain {node.name} "
                "--ignore-daemonsets --delete-emptydir-data",
                (f"advertised now: {', '.join(sorted(shown))}",),
            )
