"""Effects of changing fields of a live AKS pool: one row per field, with sentence and source.

In scope: the table and its lookup. Out of scope: sending an update.

AKS has no general PATCH: an in-place change is a PUT of the whole pool as read (azure-cli, `az aks nodepool update`).
The source "azurerm" is the resource kubernetes_cluster_node_pool of hashicorp/terraform-provider-azurerm (its ForceNew
and rotation lists).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core import binding
from gpukube.core.fields import IMAGE, KUBERNETES_VERSION, FieldPath
from gpukube.core.jsontree import tree
from gpukube.core.values import UpdateRow
from gpukube_aks.pool.fields import BINDINGS, PUT
from gpukube_aks.pool.renewing import NODE_IMAGE, UPGRADE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, Observed, UpdateKind

ROLLING = (
    (IMAGE,),
    (FieldPath("aks", "enableFIPS"),),
    (
        FieldPath("aks", "localDNSProfile"),
        FieldPath("aks", "artifactStreamingProfile"),
        FieldPath("aks", "networkProfile", "dranet"),
    ),
    (KUBERNETES_VERSION,),
    (NODE_IMAGE,),
)
"""Fields whose change rolls the nodes, in the order in which they are sent, one call for each group.

az also changes one at a time (nodepool update --os-sku, nodepool upgrade). The image goes first: an old one can prevent
a new version (docs: aks/upgrade-os-version).
"""


def _rows(*rows: tuple[FieldPath, UpdateKind, str, str]) -> dict[FieldPath, UpdateRow]:
    return {
        field: UpdateRow(field, kind, sentence, PUT if kind in ("in-place", "disruptive") else "", source)
        for field, kind, sentence, source in rows
    }


_UNCONFIRMED = "set at creation only (unconfirmed)"
_NO_OPTION = "azure-cli: az aks nodepool update has no option for it; no page describes a change"

INTENT_ROWS: Mapping[FieldPath, UpdateRow] = {row.path: row.row for row in BINDINGS}
"""Rows of the portable fields of `Desired.fields`."""

NATIVE_ROWS: Mapping[FieldPath, UpdateRow] = _rows(
    (FieldPath("aks", "kubeletDiskType"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "vnetSubnetID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "podSubnetID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "scaleDownMode"), "in-place", "takes effect at the next scale-down", "docs: aks/scale-down-mode"),
    (
        FieldPath("aks", "upgradeSettings"),
        "in-place",
        "takes effect at the next upgrade",
        "docs: aks/upgrade-aks-cluster",
    ),
    (FieldPath("aks", "enableNodePublicIP"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "nodePublicIPPrefixID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "scaleSetEvictionPolicy"), "replace", "set at creation only", "docs: aks/spot-node-pool"),
    (FieldPath("aks", "kubeletConfig"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "linuxOSConfig"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "enableEncryptionAtHost"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "enableUltraSSD"), "replace", "set at creation only", "azurerm"),
    (
        FieldPath("aks", "enableFIPS"),
        "disruptive",
        "AKS recreates the nodes from the other image of the same OS",
        "docs: aks/enable-fips-nodes",
    ),
    (
        FieldPath("aks", "creationData"),
        "replace",
        "AKS upgrades a pool to a newer snapshot only by az aks nodepool upgrade --snapshot-id, not by gpukube",
        "docs: aks/node-pool-snapshot",
    ),
    (FieldPath("aks", "hostGroupID"), "replace", "set at creation only", "azurerm"),
    (FieldPath("aks", "messageOfTheDay"), "replace", _UNCONFIRMED, _NO_OPTION),
    (FieldPath("aks", "podIPAllocationMode"), "replace", _UNCONFIRMED, _NO_OPTION),
    (FieldPath("aks", "networkProfile", "nodePublicIPTags"), "replace", _UNCONFIRMED, _NO_OPTION),
    (
        FieldPath("aks", "networkProfile", "allowedHostPorts"),
        "in-place",
        "AKS changes the rules of the cluster's network security group",
        "docs: aks/use-node-public-ips",
    ),
    (
        FieldPath("aks", "networkProfile", "applicationSecurityGroups"),
        "in-place",
        "AKS moves the nodes to the other application security groups",
        "docs: aks/use-node-public-ips",
    ),
    (
        FieldPath("aks", "networkProfile", "dranet"),
        "disruptive",
        "AKS installs or removes RDMA drivers, and may reimage the nodes (unconfirmed)",
        "azure-cli: az aks nodepool update --enable-managed-dranet",
    ),
    (
        FieldPath("aks", "artifactStreamingProfile"),
        "disruptive",
        "AKS drains and reimages the nodes to install or remove artifact streaming",
        "docs: aks/artifact-streaming, aks/node-disruption-policy",
    ),
    (
        FieldPath("aks", "localDNSProfile"),
        "disruptive",
        "AKS drains and reimages the nodes to configure their DNS",
        "docs: aks/localdns-custom, aks/node-disruption-policy",
    ),
    (
        FieldPath("aks", "securityProfile"),
        "disruptive",
        "AKS recreates the nodes from a Trusted Launch image; sshAccess applies to new nodes",
        "azure-cli: az aks nodepool update, docs: aks/use-trusted-launch",
    ),
)
"""Rows of the native members of `members.NATIVE`; a row of a property covers its members without their own row."""

_NEWEST = UpdateRow(
    NODE_IMAGE,
    "disruptive",
    "AKS recreates the nodes from the newest image in surge batches, draining each node",
    UPGRADE_IMAGE,
    "docs: aks/node-image-upgrade",
)
"""Row of the node image, which no spec sets; `pool apply --upgrade` adds it."""
_MIGRATION = "docs: azure-linux/tutorial-azure-linux-migration"


def find_row(change: Change, live: Observed | None = None) -> UpdateRow:
    """Return the effect of this change; a field without a row is rejected, never guessed.

    Args:
        change: The change.
        live: The live pool, if the effect depends on it.
    """
    if change.field == NODE_IMAGE:
        return _NEWEST
    row = binding.find_row(INTENT_ROWS, NATIVE_ROWS, change.field) or _row_above(change.field)
    if row is None:
        return UpdateRow(change.field, "refused", "the effect of changing this property is not documented", "", "")
    if row.field == IMAGE and live and (reason := _stuck_reason(change, live)):
        return replace(row, kind="replace", sentence=reason, call="", source=_MIGRATION)
    return binding.adjusted(BINDINGS, change, row)


def _row_above(field: FieldPath) -> UpdateRow | None:
    """Return the row of the nested native property to which a field belongs."""
    row = NATIVE_ROWS.get(FieldPath(*field[:3]))
    return replace(row, field=field) if row else None


def _stuck_reason(change: Change, live: Observed) -> str:
    """Return why AKS would reject a new OS image for this pool; "" if it would not.

    The GPU image and its name: Azure/AKS#4472, Azure/AgentBaker pkg/agent/datamodel/sig_config.go.
    """
    read = tree(live.native, "properties")
    image = str(read.get("nodeImageVersion", ""))
    if "gpucontainerd" in image:
        return "the pool runs the retired GPU image (UseGPUDedicatedVHD), and AKS does not change the OS of such a pool"
    if str(read.get("workloadRuntime", "")).startswith("Kata"):
        return "the pool runs pods in Kata, and AKS does not change the OS of such a pool"
    if "2004" in image and "cvm" in image and not str(change.new).startswith("Ubuntu"):
        return "the pool runs Ubuntu 20.04 on confidential machines, which AKS can change only to another Ubuntu"
    return ""
