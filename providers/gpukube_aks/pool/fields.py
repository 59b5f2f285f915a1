"""The fields of an AKS agent pool: one row each, from the spec to the wire and back.

In scope: the table, and small functions for unusual rows. Out of scope: what AKS rejects (`rules.checks`), calls
(`change`), native properties (`native`), which a spec sets by the names of the API.

The table does not contain properties that are the same for all pools (mode, osType, type: `translate`).

The source "azurerm" is the resource kubernetes_cluster_node_pool of hashicorp/terraform-provider-azurerm (its
ForceNew and rotation lists).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.binding import Binding, Draft, Effect, abilities, adjust_taints
from gpukube.core.fields import FieldPath, label, tag
from gpukube.core.jsontree import at, strings, text, texts, tree
from gpukube.core.values import PROTECT_LABEL, Ability
from gpukube.gpu.catalog import machines
from gpukube_aks.facts.partitions import cut_value, profile_name
from gpukube_aks.pool.marks import FORM, copy_tags
from gpukube_aks.pool.settings import KUBELET, known_sysctls, live_sysctls, wire_sysctls

if TYPE_CHECKING:
    from gpukube.core.values import Change, Target, UpdateRow
    from gpukube.gpu.catalog import Machine
    from gpukube_aks.pool.settings import KubeletSetting

PUT: Final = "agent_pools.begin_create_or_update"
RESERVATION_FIELD: Final = FieldPath("capacity", "reserved", "aks", "capacityReservationGroup")
"""Normalized field of a pool's reservation group: an ARM id, in lower case."""

_SYSTEM: Final = "kubernetes.azure.com/"


# From the spec


def reservation_of(target: Target) -> str:
    """Return the capacity reservation group of the machines, as in the spec; "" for none."""
    capacity = target.capacity
    return capacity.reservation.id if capacity.type == "reserved" and capacity.reservation else ""


def leaves_driver_out(target: Target) -> bool:
    """Return whether AKS should install no driver; on AKS-managed nodes it always does (docs: aks/use-nvidia-gpu)."""
    return target.driver_owner in ("none", "operator") and target.plugin_owner != "cloud"


def cut_by_operator(target: Target) -> bool:
    """Return whether the GPU Operator's MIG manager creates the MIG instances: AKS needs its own driver to do so.

    Source:
        Azure/AgentBaker, parts/linux/cloud-init/artifacts/mig-partition.sh; docs: aks/nvidia-gpu-operator.
    """
    return target.driver_owner == "operator" and target.plugin_owner != "cloud"


def _price(draft: Draft) -> float | None:
    """Return the maximum Spot price; None for AKS's -1, the market price, which is the default."""
    capacity = draft.target.capacity
    return None if capacity.type != "spot" or capacity.max_price == -1 else capacity.max_price


def _cut_of(draft: Draft) -> str | None:
    """Return the MIG profile that AKS configures; with the operator, a node label names it."""
    target = draft.target
    return target.sharing.mig.profile if target.sharing.mig and not cut_by_operator(target) else None


def placement_group(target: Target) -> str | None:
    """Return the proximity placement group; `compact` is missing on AKS, and `none` needs none."""
    return None if target.placement in ("", "compact", "none") else target.placement


def _placement(draft: Draft) -> str | None:
    group = placement_group(draft.target)
    return group.lower() if group else ("none" if draft.target.placement == "none" else None)


def _cut_on_wire(draft: Draft) -> str | None:
    return cut_value(str(draft.target.machine.model), cut) if (cut := _cut_of(draft)) is not None else None


# From a live pool


Live = Mapping[str, object]
"""Properties of a pool as read."""


def _capacity(live: Live) -> str:
    priority = str(live.get("scaleSetPriority") or "Regular")
    if priority != "Regular":
        return "spot" if priority == "Spot" else priority
    return "reserved" if live.get("capacityReservationGroupID") else "on-demand"


def _live_price(live: Live) -> object:
    price = live.get("spotMaxPrice")
    return price if _capacity(live) == "spot" and price != -1 else None


def _is_managed(live: Live) -> bool:
    return at(live, "gpuProfile", "nvidia", "managementMode") == "Managed"


def _live_plugin(live: Live) -> str | None:
    mode = str(at(live, "gpuProfile", "nvidia", "managementMode") or "Unmanaged")
    return {"Managed": "cloud", "Unmanaged": None}.get(mode, mode)


def _live_driver(live: Live) -> str:
    word = str(at(live, "gpuProfile", "driver") or "Install")
    return "cloud" if _is_managed(live) else {"None": "none", "Install": "cloud"}.get(word, word)


def is_system(key: str) -> bool:
    """Return whether a label or taint is AKS's own, or the mark of gpukube's deletion protection."""
    return key.startswith(_SYSTEM) or key in (PROTECT_LABEL, "agentpool")


def _size(live: Live) -> str:
    """Return the VM size in the catalog's spelling: Azure ignores case in sizes."""
    written = str(live.get("vmSize", ""))
    machine = _machines().get(written.casefold())
    return machine.name if machine else written


def _live_cut(live: Live) -> str | None:
    value = live.get("gpuInstanceProfile")
    if not isinstance(value, str):
        return None
    machine = _machines().get(str(live.get("vmSize", "")).casefold())
    return (profile_name(str(machine.model), value) if machine else None) or value


@cache
def _machines() -> Mapping[str, Machine]:
    return {machine.name.casefold(): machine for machine in machines("aks")}


# Rows that depend on the values of the change


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    old, new = change.old, change.new
    if old is None:  # the autoscaler manages the live count, which is not a field and may be larger
        sentence = "the autoscaler is turned off, and AKS removes the nodes above this count with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    if new is None:
        return replace(row, sentence="the cluster autoscaler starts from the current count")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="AKS removes nodes with the pods on them")
    return row


def _advertiser(change: Change, row: UpdateRow) -> UpdateRow:
    if change.old is None:
        return row
    return replace(row, kind="disruptive", sentence="the device plugin leaves the nodes, and with it their devices")


def _version(change: Change, row: UpdateRow) -> UpdateRow:
    """Reject downgrades, which AKS does not support; "1.34" is not a downgrade from one of its patch versions."""
    old, new = _numbers(change.old), _numbers(change.new)
    if new < old[: len(new)]:
        sentence = "AKS cannot downgrade nodes; a new pool can have an older version"
        return replace(row, kind="replace", sentence=sentence, call="")
    return row


def _numbers(version: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(version or "").split(".") if part.isdecimal())


_LINUX: Final = ("Ubuntu", "AzureLinux", "AzureContainerLinux", "CBLMariner", "Mariner")
"""Name prefixes of systems that AKS can change into each other (docs: aks/upgrade-os-version; Azure/AKS#4592)."""


def _os(change: Change, row: UpdateRow) -> UpdateRow:
    if all(str(sku).startswith(_LINUX) for sku in (change.old, change.new)):
        return row
    return replace(row, kind="replace", sentence="AKS can change a Linux image only to another Linux image", call="")


def _kubelet_binding(name: str, setting: KubeletSetting) -> Binding[Draft, Live]:
    def get(draft: Draft) -> object:
        value = draft.target.kubelet.get(name)
        return None if value is None else setting.from_wire(setting.to_wire(value))

    def write(draft: Draft) -> object:
        value = draft.target.kubelet.get(name)
        return None if value is None else setting.to_wire(value)

    def read(live: Live) -> object:
        value = at(live, "kubeletConfig", setting.wire)
        return None if value is None else setting.from_wire(value)

    wire = ("kubeletConfig", setting.wire)
    effect = Effect("replace", "AKS configures the kubelet at creation only", "azurerm")
    return Binding(path=paths.kubelet(name), wire=wire, get=get, write=write, read=read, effect=effect)


_BOUND: Final = Effect(
    "in-place", "the cluster autoscaler uses the new bound", "docs: aks/cluster-autoscaler", PUT
)  # fmt: skip
_NEXT_UPGRADE: Final = Effect(
    "in-place", "takes effect at the next upgrade", "docs: aks/upgrade-aks-node-pools-rolling", PUT
)  # fmt: skip
_NODE_DISK: Final = Effect("replace", "the node disk is set at creation only", "azurerm")
_EXACT: Final = Ability("exact")
_NO_FIELD: Final = "AKS has no field for it"

BINDINGS: Final[tuple[Binding[Draft, Live], ...]] = (
    Binding(
        path=paths.COUNT,
        wire=("count",),
        get=lambda draft: None if draft.target.nodes.autoscaled else draft.target.nodes.count,
        write=lambda draft: draft.target.nodes.count,
        read=lambda live: None if live.get("enableAutoScaling") else live.get("count"),
        effect=Effect("in-place", "AKS adds nodes", "docs: aks/scale-node-pools", PUT),
        ability=_EXACT,
        adjust=_count,
    ),
    Binding(
        path=paths.INSTANCE_TYPE,
        wire=("vmSize",),
        get=lambda draft: draft.target.machine.name,
        read=_size,
        effect=Effect(
            "replace",
            "the VM size of a scale set pool is set at creation only, outside previews",
            "Azure/bicep-registry-modules#7130; docs: aks/resize-node-pool, whose resize in place is a preview",
        ),
    ),
    Binding(
        path=paths.LEAST,
        wire=("minCount",),
        get=lambda draft: draft.target.nodes.minimum if draft.target.nodes.autoscaled else None,
        read=lambda live: live.get("minCount") if live.get("enableAutoScaling") else None,
        effect=_BOUND,
    ),
    Binding(
        path=paths.MOST,
        wire=("maxCount",),
        get=lambda draft: draft.target.nodes.maximum if draft.target.nodes.autoscaled else None,
        read=lambda live: live.get("maxCount") if live.get("enableAutoScaling") else None,
        effect=_BOUND,
    ),
    Binding(
        path=paths.CAPACITY_TYPE,
        wire=("scaleSetPriority",),
        get=lambda draft: draft.target.capacity.type,
        write=lambda draft: "Spot" if draft.target.capacity.type == "spot" else None,
        read=_capacity,
        words=frozenset({"on-demand", "reserved", "spot"}),
        effect=Effect("replace", "the purchase option is set at creation only", "docs: aks/spot-node-pool, azurerm"),
        ability=_EXACT,
        feature="capacity.spot",
    ),
    Binding(
        path=FieldPath("capacity", "maxPrice"),
        wire=("spotMaxPrice",),
        get=_price,
        read=_live_price,
        effect=Effect("replace", "the Spot price is set at creation only", "docs: aks/spot-node-pool, azurerm"),
    ),
    Binding(
        path=RESERVATION_FIELD,
        wire=("capacityReservationGroupID",),
        get=lambda draft: reservation_of(draft.target).lower() or None,
        write=lambda draft: reservation_of(draft.target) or None,
        read=lambda live: text(live, "capacityReservationGroupID").lower() or None,
        effect=Effect(
            "replace",
            "a reservation group is set at creation only, outside preview versions of the API",
            "docs: aks/use-capacity-reservation-groups",
        ),
        ability=_EXACT,
        feature="capacity.reserved",
    ),
    Binding(
        path=paths.MIG_PROFILE,
        wire=("gpuInstanceProfile",),
        get=_cut_of,
        write=_cut_on_wire,
        read=_live_cut,
        effect=Effect(
            "replace",
            "AKS sets gpuInstanceProfile at creation only",
            "docs: aks/gpu-multi-instance, pulumi/pulumi-azure-native#2462",
        ),
    ),
    Binding(
        path=paths.PLUGIN,
        wire=("gpuProfile", "nvidia", "managementMode"),
        spec="devicePlugin.owner",
        get=lambda draft: "cloud" if draft.target.plugin_owner == "cloud" else None,
        write=lambda draft: "Managed" if draft.target.plugin_owner == "cloud" else None,
        read=_live_plugin,
        words=frozenset({"cloud"}),
        effect=Effect(
            "replace",
            "AKS-managed GPU nodes cannot be migrated to or from in place",
            "docs: aks/aks-managed-gpu-nodes",
        ),
    ),
    Binding(
        path=paths.DRIVER,
        wire=("gpuProfile", "driver"),
        spec="driver.owner",
        get=lambda draft: "none" if leaves_driver_out(draft.target) else "cloud",
        write=lambda draft: "None" if leaves_driver_out(draft.target) else None,
        read=_live_driver,
        words=frozenset({"cloud", "none"}),
        effect=Effect(
            "replace",
            "gpuProfile.driver is set at creation only; the update option only moves retired pools to none",
            "Azure/azure-cli#32531",
        ),
    ),
    Binding(
        path=paths.ZONES,
        wire=("availabilityZones",),
        get=lambda draft: tuple(sorted(draft.target.zones)) or None,
        write=lambda draft: sorted(draft.target.zones) or None,
        read=lambda live: tuple(sorted(strings(live, "availabilityZones"))) or None,
        effect=Effect("replace", "zones are set at creation only", "azurerm"),
        ability=_EXACT,
    ),
    Binding(
        path=paths.DISK_SIZE,
        wire=("osDiskSizeGB",),
        get=lambda draft: draft.target.disk.size_gib,
        effect=_NODE_DISK,
        ability=_EXACT,
        feature="disk.size",
    ),
    Binding(
        path=paths.DISK_TYPE,
        wire=("osDiskType",),
        get=lambda draft: draft.target.disk.type,
        effect=_NODE_DISK,
        ability=_EXACT,
    ),
    Binding(
        path=paths.PLACEMENT,
        wire=("proximityPlacementGroupID",),
        get=_placement,
        write=lambda draft: placement_group(draft.target),
        read=lambda live: text(live, "proximityPlacementGroupID").lower() or "none",
        effect=Effect("replace", "a proximity placement group is set at creation only", "azurerm"),
        ability=_EXACT,
        feature="placement.named",
    ),
    *(_kubelet_binding(name, setting) for name, setting in KUBELET.items()),
    Binding(
        path=paths.sysctl("*"),
        wire=("linuxOSConfig", "sysctls"),
        get=lambda draft: known_sysctls(draft.target.sysctls),
        write=lambda draft: wire_sysctls(draft.target.sysctls) or None,
        read=live_sysctls,
        effect=Effect("replace", "AKS sets kernel parameters at creation only", "azurerm"),
        ability=_EXACT,
        feature="sysctls",
    ),
    Binding(
        path=paths.IMAGE,
        wire=("osSKU",),
        get=lambda draft: draft.target.image or None,
        effect=Effect(
            "disruptive",
            "AKS recreates the nodes with the new image in surge batches, draining each node",
            "docs: aks/upgrade-os-version, hashicorp/terraform-provider-azurerm#26139",
            PUT,
        ),
        ability=_EXACT,
        adjust=_os,
    ),
    Binding(
        path=paths.KUBERNETES_VERSION,
        wire=("orchestratorVersion",),
        get=lambda draft: draft.target.kubernetes_version or None,
        read=lambda live: live.get("currentOrchestratorVersion") or live.get("orchestratorVersion"),
        effect=Effect(
            "disruptive",
            "AKS upgrades the nodes in surge batches, draining each node",
            "docs: aks/upgrade-aks-node-pools-rolling",
            PUT,
        ),
        ability=_EXACT,
        adjust=_version,
    ),
    Binding(
        path=paths.MAX_PODS,
        wire=("maxPods",),
        get=lambda draft: draft.target.max_pods,
        effect=Effect(
            "replace", "the maximum number of pods per node is set at creation only", "docs: aks/create-node-pools"
        ),
        ability=_EXACT,
    ),
    Binding(
        path=paths.MAX_SURGE,
        wire=("upgradeSettings", "maxSurge"),
        get=lambda draft: draft.target.upgrade.max_surge,
        effect=_NEXT_UPGRADE,
        ability=_EXACT,
    ),
    Binding(
        path=paths.MAX_UNAVAILABLE,
        wire=("upgradeSettings", "maxUnavailable"),
        get=lambda draft: draft.target.upgrade.max_unavailable,
        effect=_NEXT_UPGRADE,
        ability=_EXACT,
    ),
    Binding(
        path=label("*"),
        wire=("nodeLabels",),
        get=lambda draft: {key: value for key, value in draft.labels.items() if key != PROTECT_LABEL},
        write=lambda draft: dict(sorted(draft.labels.items())),
        read=lambda live: {key: value for key, value in texts(live, "nodeLabels").items() if not is_system(key)},
        effect=Effect("in-place", "AKS relabels the nodes", "docs: aks/use-labels", PUT),
        ability=_EXACT,
        feature="labels",
    ),
    Binding(
        path=label("nvidia.com/device-plugin.config"),
        effect=Effect(
            "disruptive",
            "the device plugin restarts with another configuration: the number of devices changes while pods run",
            "NVIDIA/k8s-device-plugin README, config-manager",
            PUT,
        ),
    ),
    Binding(
        path=label("nvidia.com/mig.config"),
        effect=Effect(
            "disruptive",
            "the MIG manager stops the GPU clients of each node and may reboot it",
            "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
            PUT,
        ),
    ),
    Binding(
        path=label("gpukube.io/advertiser"),
        effect=Effect(
            "in-place",
            "AKS relabels the nodes, and the device plugin starts on them",
            "docs: aks/use-labels, NVIDIA/k8s-device-plugin v0.20.0 values.yaml (affinity)",
            PUT,
        ),
        adjust=_advertiser,
    ),
    Binding(
        path=paths.TAINTS,
        wire=("nodeTaints",),
        get=lambda draft: tuple(sorted(map(str, draft.target.taints))),
        write=lambda draft: sorted(map(str, draft.target.taints)) or None,
        read=lambda live: tuple(sorted(one for one in strings(live, "nodeTaints") if not one.startswith(_SYSTEM))),
        effect=Effect("in-place", "AKS changes the taints of the nodes", "docs: aks/use-node-taints", PUT),
        ability=_EXACT,
        adjust=adjust_taints,
    ),
    Binding(
        path=tag("*"),
        wire=("tags",),
        get=lambda draft: draft.target.tags,
        write=lambda draft: dict(sorted({**draft.target.tags, **copy_tags(draft.target)}.items())),
        read=lambda live: {key: value for key, value in tree(live, "tags").items() if not FORM.is_own(key)},
        effect=Effect("in-place", "AKS changes the tags of the scale set", "docs: aks/use-tags", PUT),
        ability=_EXACT,
        feature="tags",
    ),
    Binding(
        path=paths.PROTECTION,
        get=lambda draft: draft.target.protect,
        read=lambda live: text(live, "nodeLabels", PROTECT_LABEL) == "true",
        effect=Effect("in-place", "a label of the pool", "docs: aks/use-labels", PUT),
        ability=Ability("emulated", "the node label gpukube.io/protect", _NO_FIELD),
    ),
)
"""The portable fields, in wire order."""

ABILITIES: Final[Mapping[str, Ability]] = MappingProxyType(
    {
        **abilities(BINDINGS),
        "nodes.autoscaling": _EXACT,
        "nodes.autoscaling.scope": Ability(
            "emulated", "bounds of the whole pool: bounds per zone times zones", "AKS has no bounds per zone"
        ),
        "driver.version": Ability(
            "missing",
            "remove driver.version; the node image determines the driver",
            "AKS chooses the driver of Linux nodes by their VM size, and has no field to change it",
        ),
        "sharing.mig.single": Ability(
            "emulated", "AKS (gpuInstanceProfile) and the device plugin (migStrategy single)", _NO_FIELD
        ),
        "sharing.mig.mixed": Ability(
            "emulated", "AKS (gpuInstanceProfile) and the device plugin (migStrategy mixed)", _NO_FIELD
        ),
        "sharing.mig.layout": Ability(
            "missing",
            "write a pool for each profile, or driver.owner: operator, whose MIG manager supports layouts",
            "all GPUs of an AKS pool use the same MIG profile",
        ),
        "sharing.timeSlicing": Ability("emulated", "the device plugin's sharing.timeSlicing", _NO_FIELD),
        "sharing.mps": Ability("emulated", "the device plugin's sharing.mps", _NO_FIELD),
        "gpuTaint": _EXACT,
        "network.highSpeed": _EXACT,
        "placement.compact": Ability(
            "missing",
            "remove it for sizes with InfiniBand, whose scale sets are one placement group anyway; for others write "
            "the resource id of a proximity placement group",
            "AKS creates no placement group for a pool",
        ),
        "localStorage.ephemeral": Ability(
            "missing",
            "write aks.kubeletDiskType: Temporary for sizes with a temporary disk; a DaemonSet can format NVMe disks",
            "AKS has no field that puts images and emptyDir volumes on NVMe disks",
        ),
        "localStorage.raw": _EXACT,
        "kubelet": _EXACT,
        "kubelet.topologyManagerScope": Ability("missing", "remove it", "kubeletConfig has no topology manager scope"),
        "kubelet.memoryManagerPolicy": Ability("missing", "remove it", "kubeletConfig has no memory manager"),
        "hugepages": Ability(
            "missing",
            "reserve them with a DaemonSet that restarts the kubelet, or write aks.linuxOSConfig."
            "transparentHugePageEnabled for transparent ones",
            "linuxOSConfig has no huge pages",
        ),
        "confidential": _EXACT,
        "disk.encrypted": _EXACT,
        "disk.iops": Ability("missing", "write a larger disk.sizeGiB, which is faster", _NO_FIELD),
        "disk.throughput": Ability("missing", "write a larger disk.sizeGiB, which is faster", _NO_FIELD),
        "disk.kmsKey": Ability(
            "missing",
            "create the cluster with a disk encryption set (az aks create --node-osdisk-diskencryptionset-id)",
            "AKS sets the key of node disks per cluster",
        ),
        "instanceTypes": Ability("missing", "write a pool for each type", "a scale set of AKS has one size"),
    }
)
"""Docs: aks/use-nvidia-gpu, aks/gpu-multi-instance, aks/concepts-gpu-partitioning, aks/aks-managed-gpu-nodes, aks/
custom-node-configuration, aks/concepts-storage, aks/azure-disk-customer-managed-keys, aks/reduce-latency-ppg. Managed
disks are always encrypted at rest; InfiniBand and confidential memory are properties of the size (`rules.fabric`)."""
