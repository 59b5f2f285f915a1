"""Explains what is wrong with the devices that NVIDIA's DRA driver publishes on a node.

In scope: the devices of one node, promised and published, and a second advertiser there; pure. Out of scope: which
devices count (state.published), the driver's pod (pods).

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 (cmd/gpu-kubelet-plugin): the driver discovers devices when it
starts, and publishes nothing for a GPU in MIG mode without instances.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DRA_DRIVER, NAMESPACE
from gpukube.cluster.proof.outcome import Check, missing
from gpukube.cluster.state.advertisers import is_ours, remove_plugin
from gpukube.cluster.state.components import role_of
from gpukube.cluster.state.node_drift import changes_claiming
from gpukube.cluster.state.published import (
    LOADED_LABEL,
    MEMORY,
    PARENT,
    PRODUCT,
    counted,
    device_name,
    former_drivers,
)
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.owners import ADVERTISER_LABEL, CLIENT_LABEL
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS
from gpukube.gpu.mig import is_same_profile
from gpukube.gpu.models import is_product
from gpukube.gpu.sharing import cut_instances
from gpukube.workload.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.kube.slices import DeviceView
    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.cluster.state.components import Role
    from gpukube.cluster.state.published import Published
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_COMPONENT: Final = "dra-driver-nvidia-gpu-component=kubelet-plugin"
"""Label of the driver's pods (deployments/helm templates/kubeletplugin.yaml)."""
_TWICE: Final = "two pods get the same GPU, and neither reports an error"
_ROOMY: Final = 0.2
"""Share by which the memory that a driver reports may differ from the nominal one."""


def restart(node: str) -> str:
    """Return the command that makes the driver discover a node's devices again; running pods keep theirs."""
    return f"kubectl -n {NAMESPACE} delete pod -l {_COMPONENT} --field-selector spec.nodeName={node}"


def class_findings(desired: Desired, seen: Snapshot) -> list[Finding]:
    """Find a missing DeviceClass of a pool that the DRA driver serves; claims name it."""
    needed = {name.partition("/")[0] for name in desired.promise.per_node}
    means = "it was deleted: claims that name it stay pending"
    return [
        missing(name, "device-class", "error", f"there is no DeviceClass {name}", means, "gpukube pool apply")
        for name in sorted(needed.difference(seen.device_classes))
    ]


def relabelled_findings(desired: Desired, node: NodeView) -> list[Finding]:
    """Find a node that changed between the DRA driver and another owner while it was running.

    Its label is not restored: the other's pods may hold GPUs, which the pool's owner would give to others.
    """
    expected, label = desired.ownership.advertiser, node.labels.get(ADVERTISER_LABEL, "")
    if not changes_claiming(label, expected):
        return []
    message = f"label {ADVERTISER_LABEL} is {label}, not {expected}"
    means = f"it was changed by hand; if it is changed back while pods use GPUs, {_TWICE}"
    fix = f"kubectl drain {node.name} --ignore-daemonsets --delete-emptydir-data, then delete its machine"
    return [missing(node.name, "advertiser", "error", message, means, fix)]


def twice_findings(desired: Desired, node: NodeView, there: Published, seen: Snapshot) -> list[Finding]:
    """Find a node whose GPUs both a device plugin and the DRA driver advertise."""
    plugins = [f"{name}: {count}" for name, count in node.devices.items() if count]
    if not plugins or not there.devices:
        return []
    claimed = desired.ownership.advertiser == DRA_DRIVER.advertiser
    message = (
        f"{', '.join(plugins)} is allocatable, and ResourceSlices of {DRIVER} have {_text(counted(there.devices))}"
    )
    fix = _without_plugin(node, seen) if claimed else _without_driver(node, seen)
    return [missing(node.name, "advertiser", "error", message, _TWICE, fix)]


def _without_plugin(node: NodeView, seen: Snapshot) -> str:
    plugin = next(_landing(node, seen, "plugin", "cloud-plugin"), None)
    return remove_plugin(plugin, node.name) if plugin else f"drain and replace node {node.name}, then look again"


def _without_driver(node: NodeView, seen: Snapshot) -> str:
    driver = next(_landing(node, seen, "dra"), None)
    if driver is None:
        return f"drain and replace node {node.name}, then look again"
    if is_ours(driver, seen):
        return "gpukube pool apply (it limits the driver to its own pools)"
    release = driver.labels.get("app.kubernetes.io/instance", "RELEASE")
    return (
        f"turn its GPUs off: helm upgrade {release} with resources.gpus.enabled=false in namespace {driver.namespace}"
    )


def _landing(node: NodeView, seen: Snapshot, *roles: Role) -> Iterator[WorkloadView]:
    return (item for item in seen.daemonsets if role_of(item) in roles and lands_on(item, node))


def paused_findings(node: NodeView) -> list[Finding]:
    """Find a node that the GPU Operator has cleared of the driver's pod for a while."""
    value = node.labels.get(CLIENT_LABEL, "true")
    if value == "true":
        return []
    if value == "false":
        fix = f"kubectl label node {node.name} {CLIENT_LABEL}-"
        return [missing(node.name, "placement", "error", f"label {CLIENT_LABEL} is false", "it was set by hand", fix)]
    means = "the GPU Operator changes MIG or the driver; the plugin's pod comes back afterwards"
    return [missing(node.name, "geometry", "warning", f"label {CLIENT_LABEL} is {value}", means)]


def with_stale_devices(finding: Finding, node: NodeView, there: Published, seen: Snapshot) -> Finding:
    """Add to a finding that slices remain on a node without a pod of the driver, so that pods may still get devices."""
    pods = (pod for pod in seen.pods if pod.owner == DRA_DRIVER.plugin and not pod.terminating)
    if not there.counts or any(pod.node == node.name for pod in pods):
        return finding
    stale = f"its ResourceSlices remain ({_text(there.counts)}), and pods that get these devices do not start"
    return replace(finding, seen=f"{finding.seen}; {stale}")


def device_checks(there: Published) -> Iterator[Check]:
    """Report devices that claims do not get because of a taint, apart from those that count."""
    for device in there.kept_off:
        yield Check(f"device {device.name}", "", _taints(device), holds=False)


def published_findings(desired: Desired, node: NodeView, there: Published) -> list[Finding]:
    """Compare what the driver publishes on a node with the promise; hints only if it matches."""
    found = _slice_findings(node, there)
    if found:
        return found
    shown = _as_promised(desired, there.counts)
    if shown != desired.promise.per_node:
        return [_explain(desired, node, there, shown)]
    return [*_uneven(desired, node, there), *_outdated(node, there), *_unlike(desired, node, there)]


def promised_counts(desired: Desired, there: Published) -> dict[str, int]:
    """Return the devices of a node that count, by the names of the pool's promise."""
    return _as_promised(desired, there.counts)


def _slice_findings(node: NodeView, there: Published) -> list[Finding]:
    fix = restart(node.name)
    if not there.pools:
        means = "the driver publishes a few seconds after its pod is ready; a kubelet that restarts removes slices"
        seen = f"no ResourceSlice of {DRIVER} for this node"
        return [missing(node.name, "slices", "warning", seen, means, fix)]
    for pool in there.pools:
        if not pool.complete:
            seen = f"{pool.found} of {pool.expected} ResourceSlices of {DRIVER} exist at generation {pool.generation}"
            means = "the scheduler ignores a pool until all its slices exist"
            return [missing(node.name, "slices", "warning", seen, means, fix)]
    if not there.devices:
        seen = f"the ResourceSlices of {DRIVER} for this node have no devices"
        means = (
            "the NVIDIA driver came after the plugin (kubernetes-sigs/dra-driver-nvidia-gpu#1008), or the GPUs are in "
            "MIG mode without instances"
        )
        return [missing(node.name, "slices", "error", seen, means, fix)]
    return []


def _as_promised(desired: Desired, counts: Mapping[str, int]) -> dict[str, int]:
    """Use the promise's names where they mean the same profile; boards may round its memory differently."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        alike = (promised for promised in desired.promise.per_node if _is_same(promised, name))
        found[next(alike, name)] += count
    return dict(found)


def _is_same(promised: str, name: str) -> bool:
    first, second = promised.removeprefix(f"{MIG_CLASS}/"), name.removeprefix(f"{MIG_CLASS}/")
    return promised == name or (promised != first and name != second and is_same_profile(first, second))


def _explain(desired: Desired, node: NodeView, there: Published, shown: Mapping[str, int]) -> Finding:
    expected = desired.promise.per_node
    wrong = [
        f"{name} is {shown.get(name, 0)}, not {count}"
        for name, count in expected.items()
        if shown.get(name, 0) != count
    ]
    others = [f"{name} is {count}" for name, count in shown.items() if name not in expected]
    seen = "; ".join([*wrong, *others])
    if there.kept_off and _as_promised(desired, counted(there.devices)) == expected:
        seen += "".join(f"; {device.name} has {_taints(device)}" for device in there.kept_off)
        means = "claims get no device with such a taint; the driver keeps it until it restarts"
        fix = f"check the GPU's health; then {restart(node.name)}; or replace the node"
        return missing(node.name, "count", "error", seen, means, fix)
    if desired.target.sharing.mig is None:
        return _whole(desired, node, seen, shown)
    if shown.get(GPU_CLASS) == desired.target.machine.devices and len(shown) == 1:
        means = "whole GPUs: MIG is not applied yet, or was applied after the driver started"
        return missing(node.name, "geometry", "warning", seen, means, restart(node.name))
    means = "the GPUs do not all have the declared MIG layout, or changed it after the driver started"
    fix = f"{restart(node.name)}; if it stays, gpukube pool plan diff, then replace the node"
    return missing(node.name, "geometry", "error", seen, means, fix)


def _whole(desired: Desired, node: NodeView, seen: str, shown: Mapping[str, int]) -> Finding:
    if set(shown) - {GPU_CLASS}:
        means = "MIG is on, but the pool promises whole GPUs"
        return missing(node.name, "geometry", "error", seen, means, "gpukube pool plan diff; then replace the node")
    if shown.get(GPU_CLASS, 0) < desired.target.machine.devices:
        means = "some GPUs are missing, unhealthy, or in MIG mode without instances"
        logs = f"kubectl -n {NAMESPACE} logs -l {_COMPONENT} -c {DRA_DRIVER.container} --tail=-1"
        fix = f"{logs}; then {restart(node.name)}"
        return missing(node.name, "count", "error", seen, means, fix)
    means = "the machine type is different"
    return missing(node.name, "count", "error", seen, means, "gpukube pool plan diff; then replace the node")


def _uneven(desired: Desired, node: NodeView, there: Published) -> list[Finding]:
    """Find a GPU whose instances differ from the layout although the node's sum is right."""
    mig = desired.target.sharing.mig
    if mig is None:
        return []
    layout = {f"{MIG_CLASS}/{p.name}": count for p, count in cut_instances(desired.target.machine.model, mig).items()}
    by_gpu: dict[str, list[DeviceView]] = {}
    for device in there.usable:
        by_gpu.setdefault(str(device.attributes.get(PARENT, "")), []).append(device)
    odd = {
        gpu: counts for gpu, has in by_gpu.items() if gpu and (counts := _as_promised(desired, counted(has))) != layout
    }
    if not odd:
        return []
    gpu, counts = min(odd.items())
    seen = f"{gpu} has {_text(counts)}, not {_text(layout)}"
    fix = "gpukube pool plan diff; then replace the node"
    return [missing(node.name, "geometry", "error", seen, "the GPUs have different MIG layouts", fix)]


def _outdated(node: NodeView, there: Published) -> list[Finding]:
    """Find slices of an earlier state: of another driver version, or of an earlier generation."""
    if former := former_drivers(there, node):
        seen = f"the devices are of driver {', '.join(former)}, and driver {node.labels[LOADED_LABEL]} is loaded"
        means = "the driver was upgraded after the plugin started: its files for containers are outdated"
        return [missing(node.name, "slices", "error", seen, means, restart(node.name))]
    if there.outdated:
        seen = f"{there.outdated} ResourceSlices of {DRIVER} are of an earlier generation"
        return [missing(node.name, "slices", "hint", seen, "the scheduler ignores them; the plugin deletes them")]
    return []


def _unlike(desired: Desired, node: NodeView, there: Published) -> list[Finding]:
    """Compare product and memory with the catalog; the driver's words, so a difference is only a note."""
    model = desired.target.machine.model
    for device in there.usable:
        product = str(device.attributes.get(PRODUCT, ""))
        if product and not is_product(model, product):
            seen = f'{device.name} is "{product}", and the catalog expects {model}'
            return [missing(node.name, "count", "hint", seen, "the driver names the GPU so, or the machine is another")]
        memory = _gigabytes(device) if device_name(device) == GPU_CLASS else None
        if memory is not None and abs(memory / desired.target.machine.gpu_memory_gib - 1) > _ROOMY:
            seen = (
                f"{device.name} has {memory:.0f} GiB, and the catalog expects {desired.target.machine.gpu_memory_gib:g}"
            )
            return [missing(node.name, "count", "hint", seen, "selectors by memory may not match it")]
    return []


def _text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in counts.items())


def _taints(device: DeviceView) -> str:
    return ", ".join(f"taint {taint}" for taint in device.taints if taint.keeps_off)


def _gigabytes(device: DeviceView) -> float | None:
    try:
        return float(parse_quantity(device.capacity[MEMORY])) / 2**30
    except (KeyError, ValueError):
        return None
