"""What a change of a field does to a live AKS pool: one row per field, with its sentence and source.

Lives here: the table and the look-up in it. Must not live here: how an update is sent.

AKS has no general PATCH: what is changed in place is changed by a PUT of the whole pool as read (azure-cli,
`az aks nodepool update`). Sources named "azurerm" are the resource kubernetes_cluster_node_pool of
hashicorp/terraform-provider-azurerm (its ForceNew and rotation lists).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.fields import (
    CAPACITY_TYPE,
    COUNT,
    DISK_SIZE,
    DISK_TYPE,
    DRIVER,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    LEAST,
    MAX_PODS,
    MAX_SURGE,
    MAX_UNAVAILABLE,
    MIG_PROFILE,
    MOST,
    PLUGIN,
    PROTECTION,
    TAINTS,
    ZONES,
    FieldPath,
    label,
    tag,
)
from gpukube.core.jsontree import tree
from gpukube.core.values import UpdateRow
from gpukube_aks.native import RESERVATION_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Change, Observed, UpdateKind

__all__ = ["BY_VALUE", "INTENT_ROWS", "NATIVE_ROWS", "ROLLING", "find_row"]

_PUT = "agent_pools.begin_create_or_update"
_CONFIG_LABEL = label("nvidia.com/device-plugin.config")
_CUT_LABEL = label("nvidia.com/mig.config")
_ADVERTISER_LABEL = label("gpukube.io/advertiser")

ROLLING = (IMAGE, FieldPath("aks", "enableFIPS"), KUBERNETES_VERSION)
"""Fields whose change rolls the nodes, in the order in which they are sent, one call each.

The commands of az change one of them at a time too (nodepool update --os-sku, nodepool upgrade). The system goes first:
an old one holds a pool back from a new version (docs: aks/upgrade-os-version).
"""


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str]) -> dict[FieldPath, UpdateRow]:
    return {
        field: UpdateRow(field, kind, sentence, _PUT if kind in ("in-place", "disruptive") else "", source)
        for field, kind, sentence, source in rows
    }


INTENT_ROWS: Mapping[FieldPath, UpdateRow] = _rows(
    (
        INSTANCE_TYPE,
        "replace",
        "the VM size of a scale set pool is set at creation only",
        "Azure/bicep-registry-modules#7130, docs: aks/resize-node-pool",
    ),
    (COUNT, "in-place", "AKS adds nodes", "docs: aks/scale-node-pools"),
    (LEAST, "in-place", "the cluster autoscaler keeps the new bound", "docs: aks/cluster-autoscaler"),
    (MOST, "in-place", "the cluster autoscaler keeps the new bound", "docs: aks/cluster-autoscaler"),
    (
        CAPACITY_TYPE,
        "replace",
        "how the machines are bought is set at creation only",
        "docs: aks/spot-node-pool, azurerm",
    ),
    (
        FieldPath("capacity", "maxPrice"),
        "replace",
        "the Spot price is set at creation only",
        "docs: aks/spot-node-pool, azurerm",
    ),
    (
        RESERVATION_FIELD,
        "replace",
        "a reservation group is set at creation only, outside preview versions of the API",
        "docs: aks/use-capacity-reservation-groups",
    ),
    (ZONES, "replace", "zones are set at creation only", "azurerm"),
    (DISK_SIZE, "replace", "the node disk is set at creation only", "azurerm"),
    (DISK_TYPE, "replace", "the node disk is set at creation only", "azurerm"),
    (
        IMAGE,
        "disruptive",
        "AKS makes the nodes anew with the other system, one surge at a time, draining each",
        "docs: aks/upgrade-os-version, hashicorp/terraform-provider-azurerm#26139",
    ),
    (
        KUBERNETES_VERSION,
        "disruptive",
        "AKS upgrades the nodes one surge at a time, draining each",
        "docs: aks/upgrade-aks-node-pools-rolling",
    ),
    (
        MAX_PODS,
        "replace",
        "the number of pods of a node is set at creation only",
        "docs: aks/create-node-pools",
    ),
    (MAX_SURGE, "in-place", "holds from the next upgrade on", "docs: aks/upgrade-aks-node-pools-rolling"),
    (
        MAX_UNAVAILABLE,
        "in-place",
        "holds from the next upgrade on",
        "docs: aks/upgrade-aks-node-pools-rolling",
    ),
    (
        MIG_PROFILE,
        "replace",
        "AKS sets gpuInstanceProfile at creation only",
        "docs: aks/gpu-multi-instance, pulumi/pulumi-azure-native#2462",
    ),
    (label("*"), "in-place", "AKS relabels the nodes", "docs: aks/use-labels"),
    (
        _CONFIG_LABEL,
        "disruptive",
        "the device plugin restarts with another configuration: the number of devices changes under running pods",
        "NVIDIA/k8s-device-plugin README, config-manager",
    ),
    (
        _CUT_LABEL,
        "disruptive",
        "the MIG manager stops the GPU clients of each node and may reboot it",
        "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
    ),
    (
        _ADVERTISER_LABEL,
        "in-place",
        "AKS relabels the nodes, and the device plugin comes to them",
        "docs: aks/use-labels, NVIDIA/k8s-device-plugin v0.20.0 values.yaml (affinity)",
    ),
    (TAINTS, "in-place", "AKS changes the taints of the nodes", "docs: aks/use-node-taints"),
    (tag("*"), "in-place", "AKS changes the tags of the scale set", "docs: aks/use-tags"),
    (PROTECTION, "in-place", "a label of the pool", "docs: aks/use-labels"),
    (
        DRIVER,
        "replace",
        "gpuProfile.driver is set at creation only; the update switch moves retired pools to none and nothing else",
        "Azure/azure-cli#32531",
    ),
    (
        PLUGIN,
        "replace",
        "AKS-managed GPU nodes cannot be migrated to or from in place",
        "docs: aks/aks-managed-gpu-nodes",
    ),
)
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Mapping[FieldPath, UpdateRow] = _rows(
    (FieldPath("aks", "kubeletDiskType"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "vnetSubnetID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "podSubnetID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "scaleDownMode"), "in-place", "holds from the next scale-down on", "docs: aks/scale-down-mode"),
    (
        FieldPath("aks", "upgradeSettings"),
        "in-place",
        "holds from the next upgrade on",
        "docs: aks/upgrade-aks-cluster",
    ),
    (FieldPath("aks", "enableNodePublicIP"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "nodePublicIPPrefixID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "scaleSetEvictionPolicy"), "replace", "set at creation only", "docs: aks/spot-node-pool"),
    (FieldPath("aks", "proximityPlacementGroupID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "kubeletConfig"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "linuxOSConfig"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "enableEncryptionAtHost"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "enableUltraSSD"), "replace", "set at creation only", "azurerm"),
    (
        FieldPath("aks", "enableFIPS"),
        "disruptive",
        "AKS makes the nodes anew from the other image of the same system",
        "docs: aks/enable-fips-nodes",
    ),
    (
        FieldPath("aks", "creationData"),
        "replace",
        "AKS upgrades a pool to a newer snapshot by az aks nodepool upgrade --snapshot-id, which gpukube does not do",
        "docs: aks/node-pool-snapshot",
    ),
    (FieldPath("aks", "hostGroupID"), "replace", "set at creation only", "azurerm"),
    (
        FieldPath("aks", "securityProfile"),
        "disruptive",
        "AKS makes the nodes anew from a Trusted Launch image; sshAccess holds for nodes that boot anew",
        "azure-cli: az aks nodepool update, docs: aks/use-trusted-launch",
    ),
)
"""Rows of the native properties, one per property of `native.NATIVE`."""

_LINUX = ("Ubuntu", "AzureLinux", "AzureContainerLinux", "CBLMariner", "Mariner")
"""Beginnings of the systems that AKS changes into each other (docs: aks/upgrade-os-version; Azure/AKS#4592)."""
_MIGRATION = "docs: azure-linux/tutorial-azure-linux-migration"


def find_row(change: Change, live: Observed | None = None) -> UpdateRow:
    """Say what this change does; a field that no row covers is refused, never guessed.

    Args:
        change: The change.
        live: The pool as it is, where that decides as well.
    """
    row = _row_of(change.field)
    if row.field == IMAGE and live and (reason := _stuck_reason(change, live)):
        return replace(row, kind="replace", sentence=reason, call="", source=_MIGRATION)
    adjust = BY_VALUE.get(row.field)
    return adjust(change, row) if adjust else row


def _row_of(field: FieldPath) -> UpdateRow:
    if field in INTENT_ROWS:
        return INTENT_ROWS[field]
    if field[0] in ("labels", "tags"):
        return replace(INTENT_ROWS[FieldPath(field[0], "*")], field=field)
    native = FieldPath(*field[:2])
    if native in NATIVE_ROWS:
        return replace(NATIVE_ROWS[native], field=field)
    return UpdateRow(field, "refused", "what a change of this property does is not documented", "", "")


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = change.old, change.new
    if old is None:  # the live number is the autoscaler's and no field: it may be the larger one
        sentence = "the autoscaler is switched off, and AKS removes the nodes beyond this count with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    if new is None:
        return replace(row, sentence="the cluster autoscaler takes over from the present count")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="AKS removes nodes with the pods on them")
    return row


def _advertiser(change: Change, row: UpdateRow) -> UpdateRow:
    if change.old is None:
        return row
    return replace(row, kind="disruptive", sentence="the device plugin leaves the nodes, and their devices with it")


def _version(change: Change, row: UpdateRow) -> UpdateRow:
    """A step back is none that AKS takes; a minor version alone, "1.34", is no step back from a patch of it."""
    old, new = _numbers(change.old), _numbers(change.new)
    if new < old[: len(new)]:
        sentence = "AKS takes no node back to an older version; a new pool can have one"
        return replace(row, kind="replace", sentence=sentence, call="")
    return row


def _numbers(version: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version or "").split(".") if part.isdecimal())


def _taints(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = _items(change.old), _items(change.new)
    if any(taint.endswith(":NoExecute") for taint in new - old):
        return replace(row, kind="disruptive", sentence="a new NoExecute taint evicts the pods that do not tolerate it")
    return row


def _os(change: Change, row: UpdateRow) -> UpdateRow:
    if all(str(sku).startswith(_LINUX) for sku in (change.old, change.new)):
        return row
    return replace(row, kind="replace", sentence="AKS changes Linux into another Linux only", call="")


def _stuck_reason(change: Change, live: Observed) -> str:
    """Say why AKS would refuse to change the system of this very pool; "" where it would not.

    The GPU image and its name: Azure/AKS#4472, Azure/AgentBaker pkg/agent/datamodel/sig_config.go.
    """
    read = tree(live.native, "properties")
    image = str(read.get("nodeImageVersion", ""))
    if "gpucontainerd" in image:
        return "the pool runs the retired GPU image (UseGPUDedicatedVHD), whose system AKS does not change"
    if str(read.get("workloadRuntime", "")).startswith("Kata"):
        return "the pool runs pods in Kata, and AKS does not change the system of such a pool"
    if "2004" in image and "cvm" in image and not str(change.new).startswith("Ubuntu"):
        return "the pool runs Ubuntu 20.04 on confidential machines, which AKS changes to another Ubuntu only"
    return ""


def _items(value: object) -> set[str]:
    return {str(item) for item in value} if isinstance(value, tuple) else set()


BY_VALUE: Mapping[FieldPath, Callable[[Change, UpdateRow], UpdateRow]] = {
    COUNT: _count,
    TAINTS: _taints,
    _ADVERTISER_LABEL: _advertiser,
    IMAGE: _os,
    KUBERNETES_VERSION: _version,
}
"""Rows where the old and the new value decide as well -> how."""
