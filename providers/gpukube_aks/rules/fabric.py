"""Checks what a VM size decides: InfiniBand, local disks, encryption of memory and disks; and placement groups.

In scope: pure checks of these fields. Out of scope: which sizes have what (`facts.fabric`), combinations with other
features (`combinations`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.visible import spell_out_lookalikes
from gpukube_aks.facts.fabric import has_infiniband, is_confidential, nvme_disks
from gpukube_aks.pool.fields import placement_group
from gpukube_aks.pool.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target

_REGISTER: Final = "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport"
_STORAGE: Final = "learn.microsoft.com/azure/aks/concepts-storage"


def check_fabric(target: Target) -> Iterator[Finding]:
    """Report InfiniBand on a size without it, and the feature that connects the nodes."""
    if not target.high_speed:
        return
    where, size = target.locator.at("network.highSpeed"), target.machine.name
    if has_infiniband(size):
        yield Finding(
            "aks-infiniband-feature",
            where,
            "nodes are on one InfiniBand fabric only if the subscription has the feature AKSInfinibandSupport",
            fix=f"before the pool is created, run {_REGISTER}",
            why="Azure/aks-rdma-infiniband website/docs/getting-started/02-prerequisites.md; gpukube does not check it",
            severity="hint",
        )
    else:
        yield Finding(
            "aks-infiniband",
            where,
            f"{size} has no InfiniBand",
            fix="choose a size with an r in its name, such as Standard_ND96isr_H100_v5, or remove network.highSpeed",
            why="the VM size decides (learn.microsoft.com/azure/virtual-machines/vm-naming-conventions)",
        )


def check_placement(target: Target) -> Iterator[Finding]:
    """Report a placement that is not the id of a proximity placement group."""
    group, limit = placement_group(target), LIMITS["proximityPlacementGroupID"]
    if group is not None and not limit.allows(group):
        yield Finding(
            "aks-placement-id",
            target.locator.at("placement"),
            f'placement is "{spell_out_lookalikes(group)}", which is not the id of a proximity placement group',
            fix=f"write none, or {limit.expected}",
            why=limit.source,
        )


def check_local_storage(target: Target) -> Iterator[Finding]:
    """Report local disks that pods would not find raw."""
    if target.local_storage != "raw":
        return
    where, size = target.locator.at("localStorage"), target.machine.name
    if nvme_disks(size) is None:
        yield Finding(
            "aks-local-disk",
            where,
            f"gpukube knows of no NVMe disks in {size}; AKS formats and mounts a temporary disk",
            fix="check the size with gpukube catalog, or remove localStorage",
            why=_STORAGE,
            severity="warning",
        )
    elif target.disk.type != "Managed" and target.disk.size_gib is None:
        yield Finding(
            "aks-local-disk",
            where,
            "without a size, an ephemeral node disk takes all of a local disk",
            fix="write disk: {sizeGiB: 128}, with type: Managed to keep it off the local disks",
            why=_STORAGE,
            severity="warning",
        )


def check_encryption(target: Target) -> Iterator[Finding]:
    """Report confidential computing that does not match the size, and disks that should not be encrypted."""
    size, fits = target.machine.name, is_confidential(target.machine.name)
    if target.confidential and not fits:
        yield Finding(
            "aks-confidential",
            target.locator.at("confidential"),
            f"{size} is not a confidential virtual machine",
            fix="write instanceType: Standard_NCC40ads_H100_v5, or remove confidential",
            why="on AKS the VM size decides (learn.microsoft.com/azure/confidential-computing/virtual-machine-options)",
        )
    elif fits and not target.confidential:
        yield Finding(
            "aks-confidential-size",
            target.locator.at("instanceType"),
            f"{size} is a confidential virtual machine, but the spec does not say confidential",
            fix="add confidential: true, or choose a size without the second C, such as Standard_NC40ads_H100_v5",
            severity="hint",
        )
    if target.disk.encrypted is False:
        yield Finding(
            "aks-disk-encryption",
            target.locator.at("disk.encrypted"),
            "disk.encrypted is false, but Azure encrypts all managed disks",
            fix="remove it, or write true",
            why="learn.microsoft.com/azure/virtual-machines/disk-encryption-overview",
        )
