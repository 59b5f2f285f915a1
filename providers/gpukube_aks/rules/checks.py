"""Reports what AKS rejects, before any call: names, limits, combinations.

In scope: pure checks from a target to findings, one function per subject, listed in `_CHECKS`; larger subjects have a
module each (`labels`, `facts.images`, `capacity`, `upgrades`, `combinations`). Out of scope: rules of every cloud
(`gpukube.spec.rules`, `gpukube.gpu`), the shapes of native properties (`pool.native`).

If the service accepts something that cannot work (mixed MIG scaled from zero), the rule is gpukube's, and its `why`
gives the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding, Where
from gpukube.gpu.capacity import node_capacity
from gpukube.visible import spell_out_lookalikes
from gpukube_aks.facts.images import DEFAULT_IMAGE, check_image, check_version, minor_of
from gpukube_aks.facts.partitions import CUTS, can_cut, cut_value
from gpukube_aks.pool.fields import cut_by_operator, leaves_driver_out
from gpukube_aks.pool.native import check_native
from gpukube_aks.rules.capacity import check_reservation, check_series, check_spot
from gpukube_aks.rules.combinations import check_combinations
from gpukube_aks.rules.fabric import check_encryption, check_fabric, check_local_storage, check_placement
from gpukube_aks.rules.labels import check_labels, check_tags, check_taints
from gpukube_aks.rules.settings import check_kubelet, check_sysctls
from gpukube_aks.rules.upgrades import MAX_NODES, check_upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Nodes, Target

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")  # docs: aks/create-node-pools
_NAME_WITH_SUFFIX = 10
_MAX_DISK_GIB = 2048  # Azure/bicep-types-az, microsoft.containerservice types.md: osDiskSizeGB
_MIN_DISK_GIB = 30  # azure-cli: az aks nodepool add --node-osdisk-size
_MIN_PODS, _MAX_PODS = 10, 250  # docs: aks/concepts-network-ip-address-planning
_PODS_OF_A_POOL = 30  # the same page: room for system pods that AKS requires in every pool
_ZONES = ("1", "2", "3")
_DISK_TYPES = ("Managed", "Ephemeral")


def check_target(target: Target) -> list[Finding]:
    """Return a finding for everything that AKS would reject, or accept although it cannot work."""
    return [finding for check in _CHECKS for finding in check(target)] + check_native(target)


def _name(target: Target) -> Iterator[Finding]:
    own = target.name != target.pool
    where = target.locator.at("names.aks" if own else "name")
    if not _NAME.fullmatch(target.name):
        yield Finding(
            "aks-name",
            where,
            f'"{target.name}" is not an AKS pool name',
            fix="write 1 to 12 lower-case letters and digits, starting with a letter"
            + ("" if own else ", or add names: {aks: NAME}"),
        )
    elif len(target.name) > _NAME_WITH_SUFFIX:
        yield Finding(
            "aks-name-length",
            where,
            f'"{target.name}" has {len(target.name)} of 12 characters',
            fix="write at most 10 characters",
            why="a replacement pool has the same name with a suffix",
            severity="warning",
        )


def check_scale(nodes: Nodes, source: str) -> list[Finding]:
    """Check the new size of a live pool; `source` is the pool as a resource."""
    return [_too_many(Where(source), path, count) for path, count in _largest(nodes) if count > MAX_NODES]


def _nodes(target: Target) -> Iterator[Finding]:
    for path, count in _largest(target.nodes):
        if count > MAX_NODES:
            yield _too_many(target.locator.at(path), path, count)


def _largest(nodes: Nodes) -> tuple[tuple[str, int], ...]:
    return (("nodes.autoscaling.max", nodes.maximum),) if nodes.autoscaled else (("nodes.count", nodes.count),)


def _too_many(where: Where, path: str, count: int) -> Finding:
    fix = f"write at most {MAX_NODES}, or split the pool"
    return Finding("aks-node-count", where, f"{path} is {count}, more than a pool can have", fix=fix)


def _zones(target: Target) -> Iterator[Finding]:
    for index, zone in enumerate(target.zones):
        if zone not in _ZONES:
            message = f'"{spell_out_lookalikes(zone)}" is not a zone of Azure'
            fix = 'write zones as "1", "2" or "3", without the region'
            yield Finding("aks-zone", target.locator.at(f"zones[{index}]"), message, fix=fix)


def _disk(target: Target) -> Iterator[Finding]:
    size, kind = target.disk.size_gib, target.disk.type
    if size is not None and size < _MIN_DISK_GIB:
        fix = f"write {_MIN_DISK_GIB} or more"
        message = f"disk.sizeGiB is {size}, less than AKS allows"
        yield Finding("aks-disk-size", target.locator.at("disk.sizeGiB"), message, fix=fix)
    elif size is not None and size > _MAX_DISK_GIB:
        message = f"disk.sizeGiB is {size}, more than AKS allows"
        fix = f"write {_MAX_DISK_GIB} or less"
        yield Finding("aks-disk-size", target.locator.at("disk.sizeGiB"), message, fix=fix)
    if kind is not None and kind not in _DISK_TYPES:
        fix = f"write {' or '.join(_DISK_TYPES)}"
        message = f'disk.type is "{spell_out_lookalikes(kind)}", which AKS does not have'
        yield Finding("aks-disk-type", target.locator.at("disk.type"), message, fix=fix)


def _ephemeral(target: Target) -> Iterator[Finding]:
    """Report an ephemeral disk that is larger than the machine's cache or local disk, which store it."""
    size, room = target.disk.size_gib, target.machine.local_ssd_gib
    if target.disk.type == "Ephemeral" and size is not None and room is not None and size > room:
        yield Finding(
            "aks-disk-ephemeral",
            target.locator.at("disk.sizeGiB"),
            f"disk.sizeGiB is {size}, but {target.machine.name} has {room:g} GiB for an ephemeral disk",
            fix=f"write {int(room)} or less, or type: Managed",
            why="learn.microsoft.com/azure/aks/concepts-storage",
            severity="warning",
        )


def _pods(target: Target) -> Iterator[Finding]:
    pods, where = target.max_pods, target.locator.at("maxPodsPerNode")
    if pods is None:
        return
    if not _MIN_PODS <= pods <= _MAX_PODS:
        message = f"maxPodsPerNode is {pods}, which AKS does not accept"
        fix = f"write a number from {_MIN_PODS} to {_MAX_PODS}"
        why = "learn.microsoft.com/azure/aks/concepts-network-ip-address-planning"
        yield Finding("aks-pods", where, message, fix=fix, why=why)
        return
    devices = sum(node_capacity(target.machine, target.sharing).values())
    if devices >= pods:
        yield Finding(
            "aks-few-pods",
            where,
            f"maxPodsPerNode is {pods}, but a node has {devices} devices: some of them will never get a pod",
            fix=f"write {min(devices + _PODS_OF_A_POOL, _MAX_PODS)}, or fewer replicas",
            why="system pods count too",
            severity="warning",
        )
    elif pods * max(target.nodes.minimum, 1) < _PODS_OF_A_POOL:
        yield Finding(
            "aks-few-pods",
            where,
            f"maxPodsPerNode is {pods}: the pool's nodes have room for fewer than {_PODS_OF_A_POOL} pods",
            fix=f"write {_PODS_OF_A_POOL} or more",
            why="AKS requires that room in every pool "
            "(learn.microsoft.com/azure/aks/concepts-network-ip-address-planning)",
            severity="warning",
        )


def _mig(target: Target) -> Iterator[Finding]:
    cut, machine, model = target.sharing.mig, target.machine, str(target.machine.model)
    if cut is None or cut_by_operator(target):
        return
    where = target.locator.at("sharing.mig.profile")
    if not can_cut(machine):
        yield Finding(
            "aks-mig-size",
            where,
            f"AKS has no MIG on {machine.name} ({model})",
            fix=f"choose a size with {', '.join(CUTS)}, or remove sharing.mig",
            why="AKS supports MIG on A100, H100 and H200 sizes only",
        )
    elif not cut.layout and cut_value(model, cut.profile) is None:  # a layout is reported as a missing ability
        yield Finding(
            "aks-mig-profile",
            where,
            f'AKS does not support the MIG profile "{cut.profile}" on {model}',
            fix=f"write one of {', '.join(CUTS[model].values())}",
            why="AKS supports only the plain 1g, 2g, 3g, 4g and 7g profiles, without double memory or media engines",
        )


def _autoscaling(target: Target) -> Iterator[Finding]:
    if not target.nodes.autoscaled or target.nodes.minimum > 0:
        return
    where, cut, slicing = target.locator.at("nodes.autoscaling.min"), target.sharing.mig, target.sharing.slicing
    if target.plugin_owner == "dra":
        yield Finding(
            "aks-dra-from-zero",
            where,
            "nodes.autoscaling.min is 0 with devicePlugin.owner: dra: the pool would never scale up from zero",
            fix="write min: 1 or more, or devicePlugin.owner: auto",
            why="at zero nodes the autoscaler knows no ResourceSlices, so pods with claims do not trigger it "
            "(kubernetes/autoscaler, cloudprovider/azure)",
        )
    elif cut is not None and cut.strategy == "mixed":
        yield Finding(
            "aks-mixed-from-zero",
            where,
            "nodes.autoscaling.min is 0 with strategy mixed: the pool would never scale up from zero",
            fix="write min: 1 or more, or strategy: single",
            why="at zero nodes the autoscaler knows nvidia.com/gpu only; pods that request nvidia.com/mig-* do not "
            "trigger it (Azure/AKS#4216)",
        )
    elif slicing is not None and slicing.rename:
        yield Finding(
            "aks-renamed-from-zero",
            where,
            "nodes.autoscaling.min is 0 with a renamed resource: the pool would never scale up from zero",
            fix="write min: 1 or more, or renameByDefault: false",
            why="at zero nodes the autoscaler knows nvidia.com/gpu only (kubernetes/autoscaler#8095)",
        )
    elif cut is not None or slicing is not None:
        yield Finding(
            "aks-shared-from-zero",
            where,
            f"the autoscaler counts {target.machine.devices} nvidia.com/gpu on a node that does not exist yet, "
            "not the shared devices: from zero it starts too many nodes",
            fix=f"write min: 1, or keep max low (now {target.nodes.maximum})",
            why="at zero nodes it expects what the VM size has (Azure/AKS#3427, Azure/AKS#4216)",
            severity="warning",
        )


def _unready(target: Target) -> Iterator[Finding]:
    """Report pools scaled from one node or more that lack `nvidia.com/gpu`; `_autoscaling` checks those from zero."""
    if not target.nodes.autoscaled or target.nodes.minimum == 0:
        return
    cut, slicing = target.sharing.mig, target.sharing.slicing
    mixed, renamed = cut is not None and cut.strategy == "mixed", slicing is not None and slicing.rename
    claimed = target.plugin_owner == "dra"
    if mixed or renamed or claimed:
        ways = ["strategy: single"] * mixed + ["renameByDefault: false"] * renamed
        other = "devicePlugin.owner: auto" if claimed else " and ".join(ways)
        yield Finding(
            "aks-autoscaler-unready",
            target.locator.at("nodes.autoscaling"),
            "the autoscaler counts GPU nodes without nvidia.com/gpu as unready, and stops scaling after three of them",
            fix=f"write {other}, or a fixed nodes.count",
            why="it knows GPUs by that name only (kubernetes/autoscaler#7050, kubernetes/autoscaler#8095)",
            severity="warning",
        )


def _driver(target: Target) -> Iterator[Finding]:
    where = target.locator.at("driver.owner")
    if target.driver_owner == "operator":
        if (target.image or DEFAULT_IMAGE).startswith("AzureLinux"):
            yield Finding(
                "aks-driver-owner",
                where,
                "driver.owner is operator, but NVIDIA has no driver container for Azure Linux",
                fix=f"write image: {DEFAULT_IMAGE}, or driver.owner: auto",
                why="docs: gpu-operator/platform-support; AKS does not rule it out (docs: aks/nvidia-gpu-operator)",
                severity="warning",
            )
    elif target.driver_owner == "none" and target.sharing.mig is not None:
        yield Finding(
            "aks-driver-mig",
            where,
            "driver.owner is none, but AKS needs its own driver for MIG",
            fix="write driver.owner: auto, or remove sharing.mig and configure MIG yourself",
            why="nvidia-smi configures MIG when a node boots (Azure/AgentBaker, mig-partition.sh)",
        )
    elif leaves_driver_out(target):
        yield Finding(
            "aks-own-driver",
            where,
            "neither AKS nor gpukube installs a driver on these nodes",
            fix="install one, for example with a GPU Operator of your own, or write owner: auto",
            why="learn.microsoft.com/azure/aks/use-nvidia-gpu",
            severity="warning",
        )


_MANAGED_FROM: Final = 34
"""Oldest Kubernetes minor version for which AKS is known to manage GPUs."""


def _managed(target: Target) -> Iterator[Finding]:
    """Report features that exclude AKS-managed GPU nodes, whose systemd runs the plugin with fixed flags."""
    if target.plugin_owner != "cloud":
        return
    where, sharing, slicing = target.locator.at("devicePlugin.owner"), target.sharing, target.sharing.slicing
    minor = minor_of(target.kubernetes_version)
    excluded = {
        "driver.owner: none": target.driver_owner == "none",
        "driver.owner: operator": target.driver_owner == "operator",
        "nodes.autoscaling": target.nodes.autoscaled,
        "sharing.timeSlicing": slicing is not None and slicing.mode == "time-slicing",
        "sharing.mps": slicing is not None and slicing.mode == "mps",
        "sharing.mig": sharing.mig is not None,
    }
    for feature, used in excluded.items():
        if used:
            yield Finding(
                "aks-managed",
                where,
                f"devicePlugin.owner is cloud, which excludes {feature}",
                fix=f"write devicePlugin.owner: auto, or remove {feature}",
                why="AKS runs its plugin with fixed flags, without the autoscaler, and its MIG strategy can be set in "
                "preview versions of the API only (learn.microsoft.com/azure/aks/aks-managed-gpu-nodes)",
            )
    if minor is not None and minor < _MANAGED_FROM:
        yield Finding(
            "aks-managed",
            where,
            f"devicePlugin.owner is cloud, but AKS may not manage GPUs before Kubernetes 1.{_MANAGED_FROM}",
            fix=f"write devicePlugin.owner: auto, or kubernetesVersion 1.{_MANAGED_FROM} or newer",
            why="unconfirmed: the page gives no version (learn.microsoft.com/azure/aks/aks-managed-gpu-nodes)",
            severity="warning",
        )
    yield Finding(
        "aks-managed-preview",
        where,
        "AKS-managed GPU nodes may need the preview feature ManagedGPUExperiencePreview on the subscription",
        fix="write devicePlugin.owner: auto, or run az feature register --namespace Microsoft.ContainerService "
        "--name ManagedGPUExperiencePreview",
        why="see Azure/AKS#5035",
        severity="warning",
    )


def _claims(target: Target) -> Iterator[Finding]:
    """Report pools of the DRA driver for which no source confirms that it works."""
    if target.plugin_owner != "dra":
        return
    if target.sharing.mig is not None and not cut_by_operator(target):
        yield Finding(
            "aks-dra-mig",
            target.locator.at("sharing.mig"),
            "whether NVIDIA's DRA driver publishes the MIG instances of gpuInstanceProfile is unconfirmed",
            fix="check the first node with gpukube pool verify, or write driver.owner: operator, whose MIG manager is "
            "documented",
            why="AKS makes them when a node boots, before the driver starts (Azure/AgentBaker mig-partition.sh); its "
            "blog uses the GPU Operator (Azure/AKS blog 2026-03-03)",
            severity="warning",
        )
    if target.machine.name.endswith("_A10_v5"):
        yield Finding(
            "aks-dra-vgpu",
            target.locator.at("devicePlugin.owner"),
            f"{target.machine.name} has a GRID driver that is older than NVIDIA's DRA driver requires",
            fix="check the first node with gpukube pool verify, or write devicePlugin.owner: auto",
            why="AKS installs driver 550, and NVIDIA requires 565 for GPUs; AKS's blog runs it there without "
            "ComputeDomains (Azure/AKS blog 2026-03-06)",
            severity="warning",
        )


_CHECKS: tuple[Callable[[Target], Iterator[Finding]], ...] = (
    _name,
    _nodes,
    _zones,
    check_image,
    check_version,
    _disk,
    _ephemeral,
    _pods,
    _mig,
    _autoscaling,
    _unready,
    check_series,
    check_spot,
    check_reservation,
    check_upgrade,
    check_labels,
    check_taints,
    check_tags,
    _driver,
    _managed,
    _claims,
    check_fabric,
    check_placement,
    check_local_storage,
    check_encryption,
    check_kubelet,
    check_sysctls,
    check_combinations,
)
