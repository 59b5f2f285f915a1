"""Explains a wrong number of devices on a node.

In scope: promised and allocatable resources of one node whose plugin serves, gpukube's or the cloud's; pure. Out of
scope: pods.

Source: names and formulas in NVIDIA/k8s-device-plugin v0.20.0 (internal/rm), labels of its GPU feature discovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import NAMESPACE, kind_of
from gpukube.cluster.proof.outcome import missing
from gpukube.gpu.capacity import GPU_RESOURCE

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_MIG_PREFIX: Final = "nvidia.com/mig-"
_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
_PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
_CLOUDS: Final = "gpukube pool plan diff (the cloud's own plugin follows the pool's fields); then replace the node"


def _restart(desired: Desired) -> str:
    """Return the command that makes the plugin re-read the node; "" if the plugin is the cloud's."""
    kind = kind_of(desired.ownership.advertiser)
    return f"kubectl -n {NAMESPACE} rollout restart daemonset {kind.plugin}" if kind else ""


def _log(desired: Desired) -> str:
    kind = kind_of(desired.ownership.advertiser)
    return f"kubectl -n {NAMESPACE} logs daemonset/{kind.plugin} -c {kind.container}" if kind else ""


def count_findings(desired: Desired, node: NodeView) -> list[Finding]:
    """Compare a node's devices with the promise; empty if they match and no other GPU resource is advertised."""
    expected = desired.promise.per_node
    wrong = {name: node.devices.get(name, 0) for name, count in expected.items() if node.devices.get(name, 0) != count}
    if wrong:
        return [_explain(desired, node, name, shown) for name, shown in sorted(wrong.items())]
    return _stale(desired, node)


def _stale(desired: Desired, node: NodeView) -> list[Finding]:
    found = []
    for name, count in node.devices.items():
        if name in desired.promise.per_node or not _is_gpu_resource(name):
            continue
        seen = f"{name}: {count} is advertised too"
        means = "the kubelet keeps the names of an earlier sharing until it restarts"
        fix = f"drain and replace node {node.name}, or restart its kubelet" if count else ""
        found.append(missing(node.name, "stale-name", "error" if count else "hint", seen, means, fix))
    return found


def _is_gpu_resource(name: str) -> bool:
    return name == GPU_RESOURCE or name.startswith((f"{GPU_RESOURCE}.", _MIG_PREFIX))


def _explain(desired: Desired, node: NodeView, name: str, shown: int) -> Finding:
    expected = desired.promise.per_node[name]
    others = {key: count for key, count in node.devices.items() if key != name and count and _is_gpu_resource(key)}
    seen = f"{name} is {shown}, not {expected}" + "".join(f"; {key} is {count}" for key, count in others.items())
    if node.labels.get(_PRODUCT_LABEL, "").endswith("-MIG-INVALID"):
        means = "the GPUs of this node have different MIG layouts, which strategy single does not allow"
        return missing(node.name, "geometry", "error", seen, means, "write strategy: mixed, or replace the node")
    if not shown and not others:
        return _nothing_shown(desired, node, seen)
    if desired.target.sharing.mig is not None:
        return _mig(desired, node, seen, {**others, **({name: shown} if shown else {})})
    return _shared(desired, node, seen, shown)


def _nothing_shown(desired: Desired, node: NodeView, seen: str) -> Finding:
    owner = desired.ownership.advertiser
    if kind_of(owner):
        means = "the plugin is ready but has registered nothing: it just started, or finds no GPU (check its log)"
    elif owner == "cloud":
        means = "the cloud's own plugin has registered nothing: it waits for the driver, or for MIG"
    else:
        means = f"devicePlugin.owner is {owner}: the other plugin has registered nothing"
    return missing(node.name, "count", "warning", seen, means, _log(desired))


def _mig(desired: Desired, node: NodeView, seen: str, shown: dict[str, int]) -> Finding:
    """Distinguish a missing MIG layout from a strategy that is not in effect."""
    mig = desired.target.sharing.mig
    strategy = mig.strategy if mig else ""
    devices = desired.target.machine.devices
    in_force = node.labels.get(_STRATEGY_LABEL, "none")
    slices = {key for key in shown if key.startswith(_MIG_PREFIX)}
    if strategy == "single" and slices:
        return _not_in_force(desired, node, seen, f"mig-* names mean strategy mixed, but {strategy} is declared")
    if strategy == "mixed" and not slices and shown.get(GPU_RESOURCE, 0) > devices:
        return _not_in_force(desired, node, seen, f"MIG instances named {GPU_RESOURCE} mean strategy single")
    managed = kind_of(desired.ownership.advertiser) is not None
    if shown.get(GPU_RESOURCE) == devices and in_force != strategy and managed:
        means = f"whole GPUs and label {_STRATEGY_LABEL}={in_force}: the plugin runs under another config entry"
        return _not_in_force(desired, node, seen, means)
    if shown.get(GPU_RESOURCE) == devices:
        means = "whole GPUs: MIG is not applied yet; the node reboots once, and the plugin reads the layout at start"
        return missing(node.name, "geometry", "warning", seen, means, _restart(desired))
    means = "the GPUs do not all have the declared MIG layout"
    return missing(node.name, "geometry", "error", seen, means, "gpukube pool plan diff; then replace the node")


def _not_in_force(desired: Desired, node: NodeView, seen: str, means: str) -> Finding:
    restart = _restart(desired)
    fix = f"gpukube pool plan diff (config entry and labels), then {restart}" if restart else _CLOUDS
    return missing(node.name, "count", "error", seen, means, fix)


def _shared(desired: Desired, node: NodeView, seen: str, shown: int) -> Finding:
    slicing, devices = desired.target.sharing.slicing, desired.target.machine.devices
    if slicing and shown == devices:
        return _not_in_force(desired, node, seen, f"each GPU is advertised once: {slicing.mode} is not in effect")
    if slicing and not shown:
        return _not_in_force(desired, node, seen, "the devices have another name: renaming differs from the spec")
    if shown < devices:
        means = "some GPUs are missing or unhealthy"
        fix = _log(desired) or f"kubectl describe node {node.name}, and the cloud's health events of the machine"
        return missing(node.name, "count", "error", seen, means, fix)
    return _not_in_force(desired, node, seen, "other sharing is in effect, or the machine type is different")
