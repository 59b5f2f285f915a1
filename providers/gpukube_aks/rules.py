"""What AKS refuses, found before any call: names, limits, combinations.

Lives here: pure checks from a target to diagnostics, one function per subject, listed in `_CHECKS`. Must not live
here: what holds on every cloud (`gpukube.spec.rules`, `gpukube.gpu`), the shapes of native properties (`native`).

Where the service itself would take something that cannot work (mixed MIG scaled from zero), the rule is ours and its
`why` says so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gpukube.errors import Diagnostic, Where
from gpukube_aks.cuts import CUTS, can_cut, cut_value
from gpukube_aks.native import check_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Nodes, Target

__all__ = ["SYSTEM_PREFIX", "check_scale", "check_target"]

SYSTEM_PREFIX = "kubernetes.azure.com"
"""Prefix of the labels and taints that AKS keeps for itself (docs: aks/use-labels)."""

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")  # docs: aks/create-node-pools
_NAME_WITH_SUFFIX = 10
_MOST_NODES = 1000  # docs: aks/upgrade-aks-node-pools-rolling
_LEAST_DISK_GIB = 30  # azure-cli: az aks nodepool add --node-osdisk-size
_MOST_PODS = 250  # docs: aks/quotas-skus-regions
_PRICE_DECIMALS = 5  # docs: aks/spot-node-pool
_DEEPEST_DISCOUNT = 0.9  # docs: virtual-machines/spot-vms, "up to 90 %"
_ZONES = ("1", "2", "3")
_DISK_TYPES = ("Managed", "Ephemeral")
_KUBERNETES_LABELS = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")
_DRIVER_TAGS = {
    "skipgpudriverinstall": "AKS refuses the old skip tag since 2025-08-14 (Azure/AKS#4925)",
    "enablemanagedgpuexperience": "AKS reads it from the machine's tags when a node starts (Azure/AgentBaker)",
}
_RESERVATION = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/capacityReservationGroups/[^/]+",
    re.IGNORECASE,
)


def check_target(target: Target) -> list[Diagnostic]:
    """Find everything that AKS would refuse, or take and never make work; empty when all is well."""
    return [finding for check in _CHECKS for finding in check(target)] + check_native(target)


def _at(target: Target, mapping: str, key: str) -> Where:
    return target.locator.at(f"{mapping}[{json.dumps(key)}]")


def _name(target: Target) -> Iterator[Diagnostic]:
    own = target.name != target.pool
    where = target.locator.at("names.aks" if own else "name")
    if not _NAME.fullmatch(target.name):
        yield Diagnostic(
            "aks-name",
            where,
            f'"{target.name}" is not an AKS pool name',
            fix="write 1 to 12 lower-case letters and digits, a letter first"
            + ("" if own else ", or add names: {aks: NAME}"),
        )
    elif len(target.name) > _NAME_WITH_SUFFIX:
        yield Diagnostic(
            "aks-name-length",
            where,
            f'"{target.name}" has {len(target.name)} of 12 characters',
            fix="write at most 10 characters",
            why="a replacement stands beside the old pool under a name with a suffix",
            severity="warning",
        )


def check_scale(nodes: Nodes, source: str) -> list[Diagnostic]:
    """Check the size that a live pool shall get; `source` is the pool as a resource."""
    return [_too_many(Where(source), path, count) for path, count in _largest(nodes) if count > _MOST_NODES]


def _nodes(target: Target) -> Iterator[Diagnostic]:
    for path, count in _largest(target.nodes):
        if count > _MOST_NODES:
            yield _too_many(target.locator.at(path), path, count)


def _largest(nodes: Nodes) -> tuple[tuple[str, int], ...]:
    return (("nodes.autoscaling.max", nodes.maximum),) if nodes.autoscaled else (("nodes.count", nodes.count),)


def _too_many(where: Where, path: str, count: int) -> Diagnostic:
    fix = f"write at most {_MOST_NODES}, or split the pool"
    return Diagnostic("aks-node-count", where, f"{path} is {count}, more than a pool can have", fix=fix)


def _zones(target: Target) -> Iterator[Diagnostic]:
    for index, zone in enumerate(target.zones):
        if zone not in _ZONES:
            says = f'"{zone}" is not a zone of Azure'
            fix = 'write zones as "1", "2" or "3", without the region'
            yield Diagnostic("aks-zone", target.locator.at(f"zones[{index}]"), says, fix=fix)


def _image(target: Target) -> Iterator[Diagnostic]:
    if target.image:
        yield Diagnostic(
            "aks-image",
            target.locator.at("image"),
            f'AKS has no image families to choose from, and image is "{target.image}"',
            why="a pool's operating system is its property osSKU",
            fix="write aks: {osSKU: AzureLinux}, or leave image out",
        )


def _disk(target: Target) -> Iterator[Diagnostic]:
    size, kind = target.disk.size_gib, target.disk.type
    if size is not None and size < _LEAST_DISK_GIB:
        fix = f"write {_LEAST_DISK_GIB} or more"
        says = f"disk.sizeGiB is {size}, less than AKS takes"
        yield Diagnostic("aks-disk-size", target.locator.at("disk.sizeGiB"), says, fix=fix)
    if kind is not None and kind not in _DISK_TYPES:
        fix = f"write {' or '.join(_DISK_TYPES)}"
        says = f'disk.type is "{kind}", which AKS does not have'
        yield Diagnostic("aks-disk-type", target.locator.at("disk.type"), says, fix=fix)


def _mig(target: Target) -> Iterator[Diagnostic]:
    cut, machine, model = target.sharing.mig, target.machine, str(target.machine.model)
    if cut is None:
        return
    where = target.locator.at("sharing.mig.profile")
    if not can_cut(machine):
        yield Diagnostic(
            "aks-mig-size",
            where,
            f"AKS makes no MIG instances on {machine.name} ({model})",
            fix=f"choose a size with {', '.join(CUTS)}, or take sharing.mig away",
            why="AKS cuts A100, H100 and H200 sizes only",
        )
    elif not cut.layout and cut_value(model, cut.profile) is None:  # a layout is a missing ability
        yield Diagnostic(
            "aks-mig-profile",
            where,
            f'AKS cannot cut {model} to "{cut.profile}"',
            fix=f"write one of {', '.join(CUTS[model].values())}",
            why="AKS makes the plain 1g, 2g, 3g, 4g and 7g instances; none with double memory or media engines (+me)",
        )


def _autoscaling(target: Target) -> Iterator[Diagnostic]:
    if not target.nodes.autoscaled or target.nodes.minimum > 0:
        return
    where, cut, slicing = target.locator.at("nodes.autoscaling.min"), target.sharing.mig, target.sharing.slicing
    if cut is not None and cut.strategy == "mixed":
        yield Diagnostic(
            "aks-mixed-from-zero",
            where,
            "nodes.autoscaling.min is 0 with the mixed strategy: the pool would never leave zero",
            fix="write min: 1 or more, or strategy: single",
            why="at zero nodes the autoscaler knows nvidia.com/gpu only; pods that ask for nvidia.com/mig-* do not "
            "trigger it (Azure/AKS#4216)",
        )
    elif slicing is not None and slicing.rename:
        yield Diagnostic(
            "aks-renamed-from-zero",
            where,
            "nodes.autoscaling.min is 0 with a renamed resource: the pool would never leave zero",
            fix="write min: 1 or more, or renameByDefault: false",
            why="at zero nodes the autoscaler knows nvidia.com/gpu only (kubernetes/autoscaler#8095)",
        )
    elif cut is not None or slicing is not None:
        yield Diagnostic(
            "aks-shared-from-zero",
            where,
            f"the autoscaler counts {target.machine.devices} nvidia.com/gpu on a node that does not exist yet, "
            "not the shared devices: from zero it starts too many nodes",
            fix=f"write min: 1, or keep max low (now {target.nodes.maximum})",
            why="its picture of a node at zero is the VM size (Azure/AKS#3427, Azure/AKS#4216)",
            severity="warning",
        )


def _unready(target: Target) -> Iterator[Diagnostic]:
    """An autoscaled pool without `nvidia.com/gpu` on its nodes: only where min is above zero, else see above."""
    if not target.nodes.autoscaled or target.nodes.minimum == 0:
        return
    cut, slicing = target.sharing.mig, target.sharing.slicing
    mixed, renamed = cut is not None and cut.strategy == "mixed", slicing is not None and slicing.rename
    if mixed or renamed:
        other = " and ".join(["strategy: single"] * mixed + ["renameByDefault: false"] * renamed)
        yield Diagnostic(
            "aks-autoscaler-unready",
            target.locator.at("nodes.autoscaling"),
            "the autoscaler counts GPU nodes without nvidia.com/gpu as unready, and stops scaling after three of them",
            fix=f"write {other}, or a fixed nodes.count",
            why="it knows GPUs by that name only (kubernetes/autoscaler#7050, kubernetes/autoscaler#8095)",
            severity="warning",
        )


def _spot(target: Target) -> Iterator[Diagnostic]:
    price, policy = target.capacity.max_price, target.native.get("scaleSetEvictionPolicy")
    if target.capacity.type != "spot":
        if policy is not None:
            yield Diagnostic(
                "aks-eviction-policy",
                target.locator.at("aks.scaleSetEvictionPolicy"),
                "aks.scaleSetEvictionPolicy is set on a pool that is not Spot",
                fix="take it away, or write capacity: {type: spot}",
            )
        return
    if price is None or price == -1:
        return
    where, on_demand = target.locator.at("capacity.maxPrice"), target.machine.price_usd_h
    if price <= 0 or round(price, _PRICE_DECIMALS) != price:
        fix = f"write a number above 0 with at most {_PRICE_DECIMALS} decimals, or leave it out"
        says = f"capacity.maxPrice is {price}, which is not a price AKS takes"
        yield Diagnostic("aks-spot-price", where, says, fix=fix)
    elif on_demand is not None and price < on_demand * (1 - _DEEPEST_DISCOUNT):
        yield Diagnostic(
            "aks-spot-floor",
            where,
            f"capacity.maxPrice is {price:g}, less than a tenth of the on-demand price ({on_demand:g} USD per hour)",
            fix="leave it out to pay the Spot price of the day, up to the on-demand price",
            why="AKS takes a hopeless price and the pool never gets a node (Azure/AKS#4404)",
            severity="warning",
        )


def _labels(target: Target) -> Iterator[Diagnostic]:
    for key in target.labels:
        prefix, _, name = key.rpartition("/")
        reason = _label_reason(prefix, name)
        if reason:
            fix = f"choose a prefix of your own, such as example.com/{name}"
            where = _at(target, "labels", key)
            yield Diagnostic("aks-label", where, f'AKS refuses the label "{key}"', fix=fix, why=reason)


def _label_reason(prefix: str, name: str) -> str:
    if _within(prefix, SYSTEM_PREFIX):
        return "kubernetes.azure.com/ is kept for the labels of AKS (learn.microsoft.com/azure/aks/use-labels)"
    if (_within(prefix, "kubernetes.io") or _within(prefix, "k8s.io")) and prefix not in _KUBERNETES_LABELS:
        return "of kubernetes.io and k8s.io only kubelet., node. and node-role.kubernetes.io are free (Azure/AKS#2866)"
    if not prefix and name == "agentpool":
        return "AKS writes agentpool itself (hashicorp/terraform-provider-azurerm#28636)"
    return ""


def _within(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")


def _taints(target: Target) -> Iterator[Diagnostic]:
    keys = [taint.key for taint in target.taints]
    for index, taint in enumerate(target.taints):
        # The GPU taint is first and never wrong by itself, so what is written begins one further on.
        where = target.locator.at(f"taints[{index - 1 if target.gpu_taint else index}]")
        if not taint.value:
            yield Diagnostic(
                "aks-taint-value",
                where,
                f'the taint "{taint.key}" has no value',
                fix='add one, such as value: "true"',
                why="az and the cluster autoscaler take key=value:Effect only",
            )
        if _within(taint.key.rpartition("/")[0], SYSTEM_PREFIX):
            says = f'AKS refuses the taint "{taint.key}"'
            why = "kubernetes.azure.com/ is kept for the taints of AKS; a Spot pool gets its own by itself"
            fix = "take it away, or choose a prefix of your own, such as example.com/NAME"
            yield Diagnostic("aks-taint", where, says, fix=fix, why=why)
        if taint.key in keys[:index]:
            says = f'two taints have the key "{taint.key}"'
            fix = "keep one of them" + (
                ", or write gpuTaint: false" if target.gpu_taint and taint.key == keys[0] else ""
            )
            yield Diagnostic("aks-taint-twice", where, says, fix=fix, why="AKS refuses it (Azure/AKS#1412)")


def _tags(target: Target) -> Iterator[Diagnostic]:
    for key in target.tags:
        if why := _DRIVER_TAGS.get(key.lower()):
            yield Diagnostic(
                "aks-tag",
                _at(target, "tags", key),
                f'the tag "{key}" decides on the driver behind the back of the pool',
                fix="take it away; driver.owner and devicePlugin.owner say who installs what",
                why=why,
            )


def _driver(target: Target) -> Iterator[Diagnostic]:
    if target.driver_owner in ("operator", "none"):
        yield Diagnostic(
            "aks-driver-owner",
            target.locator.at("driver.owner"),
            f'driver.owner "{target.driver_owner}" is not supported yet on AKS',
            fix="write driver.owner: auto",
            why="AKS installs the driver; pools without one need the GPU Operator",
        )


def _managed(target: Target) -> Iterator[Diagnostic]:
    """AKS-managed GPU nodes: a plugin with fixed flags, run by the node's service manager."""
    if target.plugin_owner != "cloud":
        return
    where, sharing, slicing = target.locator.at("devicePlugin.owner"), target.sharing, target.sharing.slicing
    excluded = {
        "nodes.autoscaling": target.nodes.autoscaled,
        "sharing.timeSlicing": slicing is not None and slicing.mode == "time-slicing",
        "sharing.mps": slicing is not None and slicing.mode == "mps",
        "sharing.mig": sharing.mig is not None,
    }
    for feature, used in excluded.items():
        if used:
            yield Diagnostic(
                "aks-managed",
                where,
                f"devicePlugin.owner is cloud, which excludes {feature}",
                fix=f"write devicePlugin.owner: auto, or take {feature} away",
                why="AKS runs its plugin with fixed flags, without the autoscaler, and its MIG strategy is settable in "
                "preview versions of the API only (learn.microsoft.com/azure/aks/aks-managed-gpu-nodes)",
            )
    yield Diagnostic(
        "aks-managed-preview",
        where,
        "AKS-managed GPU nodes may need the preview feature ManagedGPUExperiencePreview on the subscription",
        fix="write devicePlugin.owner: auto, or run az feature register --namespace Microsoft.ContainerService "
        "--name ManagedGPUExperiencePreview",
        why="whether the flag is still needed is told in Azure/AKS#5035",
        severity="warning",
    )


def _native_values(target: Target) -> Iterator[Diagnostic]:
    pods, group = target.native.get("maxPods"), target.native.get("capacityReservationGroupID")
    if isinstance(pods, int) and pods > _MOST_PODS:
        where = target.locator.at("aks.maxPods")
        says = f"aks.maxPods is {pods}, more than AKS allows"
        yield Diagnostic("aks-native-value", where, says, fix=f"write at most {_MOST_PODS}")
    if isinstance(group, str) and not _RESERVATION.fullmatch(group):
        yield Diagnostic(
            "aks-native-value",
            target.locator.at("aks.capacityReservationGroupID"),
            f'aks.capacityReservationGroupID is "{group}"; an ARM id is needed',
            fix="write /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Compute/"
            "capacityReservationGroups/NAME",
        )


_CHECKS: tuple[Callable[[Target], Iterator[Diagnostic]], ...] = (
    _name,
    _nodes,
    _zones,
    _image,
    _disk,
    _mig,
    _autoscaling,
    _unready,
    _spot,
    _labels,
    _taints,
    _tags,
    _driver,
    _managed,
    _native_values,
)
