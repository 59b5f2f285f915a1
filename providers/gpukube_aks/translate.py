"""A target in the terms of AKS: normalised fields, labels, taints and the native requests.

Lives here: the way from the spec to the wire. Must not live here: what AKS refuses (`rules`), reading live pools
(`observe`), changing them (`change`).

The body holds what gpukube means, and nothing that the service fills in by itself: a default that is sent today is
drift when the service changes it tomorrow. Five properties are always sent: count (required in a PUT, also for
autoscaled pools: pulumi/pulumi-azure-native#2943), vmSize (AKS would choose one), and mode, osType and type, whose
other values cannot carry what gpukube promises.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    known,
    label,
    tag,
)
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Desired, Request, Taint
from gpukube_aks.cuts import cut_value
from gpukube_aks.marks import FORM, copy_tags
from gpukube_aks.native import RESERVATION_FIELD, flatten_native

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target

__all__ = [
    "CREATE",
    "DELETE",
    "SPOT_KEY",
    "SPOT_TAINT",
    "cut_by_operator",
    "etag_guard",
    "leaves_driver_out",
    "pool_path",
    "reservation_of",
    "translate_delete",
    "translate_pool",
]

CREATE = "agent_pools.begin_create_or_update"
DELETE = "agent_pools.begin_delete"
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = Taint(SPOT_KEY, "spot", "NoSchedule")
"""AKS puts this label and this taint on every node of a Spot pool (docs: aks/spot-node-pool)."""

_SETTINGS = "upgradeSettings"


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call carries our marks and only succeeds where no pool is.

    Source:
        If-None-Match takes `*` and answers 412 where the pool exists (docs: aks/use-etags).
    """
    sent = _without_spot_marks(target)
    labels = {**sent.labels, **ownership.labels, OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    params = {**pool_path(target.cluster, target.name), "body": _body(sent, labels), "match_condition": "if-missing"}
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=_fields(sent, labels),
        labels=labels,
        effective_taints=(*sent.taints, *((SPOT_TAINT,) if target.capacity.type == "spot" else ())),
        create=Request("aks", CREATE, params),
        copy=FORM.copy_of(target.owner, target.pool, protected=target.protect),
    )


def _without_spot_marks(target: Target) -> Target:
    """Leave the label and the taint of Spot nodes to AKS, where a spec writes them too."""
    if target.capacity.type != "spot":
        return target
    labels = {key: value for key, value in target.labels.items() if key != SPOT_KEY}
    return replace(target, labels=labels, taints=tuple(taint for taint in target.taints if taint != SPOT_TAINT))


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Delete this very pool: refused by AKS when somebody changed it since it was read.

    A pool that AKS still works on gets a new etag when that ends, so there the guard would only ever fail.
    """
    guard = etag_guard(observed) if observed.state in ("ready", "failed") else {}
    return Request("aks", DELETE, {**pool_path(cluster, observed.name), **guard})


def pool_path(cluster: ClusterRef, pool: str) -> dict[str, str]:
    """Name a pool the way the SDK's operations take it."""
    return {"resource_group": cluster.identity["resourceGroup"], "cluster": cluster.name, "pool": pool}


def etag_guard(observed: Observed) -> dict[str, str]:
    """Let AKS refuse the call when the pool changed since it was read (docs: aks/use-etags)."""
    return {"etag": observed.etag, "match_condition": "if-not-modified"} if observed.etag else {}


def _body(target: Target, labels: Mapping[str, str]) -> dict[str, object]:
    properties: dict[str, object] = {
        "count": target.nodes.count,
        "vmSize": target.machine.name,
        "mode": "User",
        "osType": "Linux",
        "type": "VirtualMachineScaleSets",
        **_scaling(target),
        **_buying(target),
        **_gpu(target),
        **_placing(target),
        **_running(target),
        "nodeLabels": dict(sorted(labels.items())),
    }
    if target.taints:
        properties["nodeTaints"] = sorted(str(taint) for taint in target.taints)
    properties["tags"] = dict(sorted({**target.tags, **copy_tags(target)}.items()))
    return {"properties": _merged(properties, target.native)}


def _merged(properties: Mapping[str, object], native: Mapping[str, object]) -> dict[str, object]:
    """Add the native properties; upgradeSettings has members of both (see `native.MANAGED_MEMBERS`)."""
    merged = {**properties, **native}
    ours, theirs = properties.get(_SETTINGS), native.get(_SETTINGS)
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        merged[_SETTINGS] = {**ours, **theirs}
    return merged


def _scaling(target: Target) -> dict[str, object]:
    if not target.nodes.autoscaled:
        return {}
    return {"enableAutoScaling": True, "minCount": target.nodes.minimum, "maxCount": target.nodes.maximum}


def _buying(target: Target) -> dict[str, object]:
    if group := reservation_of(target):
        return {"capacityReservationGroupID": group}
    if target.capacity.type != "spot":
        return {}
    price = _price(target.capacity.max_price)
    return {"scaleSetPriority": "Spot", **({} if price is None else {"spotMaxPrice": price})}


def reservation_of(target: Target) -> str:
    """Give the capacity reservation group that the machines come from, as written; "" for none."""
    capacity = target.capacity
    return capacity.reservation.id if capacity.type == "reserved" and capacity.reservation else ""


def _price(price: float | None) -> float | None:
    """-1 is AKS's word for the market price, which is the default."""
    return None if price is None or price == -1 else price


def _gpu(target: Target) -> dict[str, object]:
    found: dict[str, object] = {}
    if target.sharing.mig is not None and not cut_by_operator(target):
        found["gpuInstanceProfile"] = cut_value(str(target.machine.model), target.sharing.mig.profile)
    if target.plugin_owner == "cloud":
        found["gpuProfile"] = {"nvidia": {"managementMode": "Managed"}}
    elif leaves_driver_out(target):
        found["gpuProfile"] = {"driver": "None"}
    return found


def leaves_driver_out(target: Target) -> bool:
    """Say whether AKS shall install no driver; on nodes that it manages it always does (docs: aks/use-nvidia-gpu)."""
    return target.driver_owner in ("none", "operator") and target.plugin_owner != "cloud"


def cut_by_operator(target: Target) -> bool:
    """Say whether MIG instances are made by the GPU Operator's MIG manager: AKS cuts with the driver of its own only.

    Source:
        Azure/AgentBaker, parts/linux/cloud-init/artifacts/mig-partition.sh; docs: aks/nvidia-gpu-operator.
    """
    return target.driver_owner == "operator" and target.plugin_owner != "cloud"


def _placing(target: Target) -> dict[str, object]:
    found: dict[str, object] = {}
    if target.zones:
        found["availabilityZones"] = sorted(target.zones)
    if target.disk.size_gib is not None:
        found["osDiskSizeGB"] = target.disk.size_gib
    if target.disk.type is not None:
        found["osDiskType"] = target.disk.type
    return found


def _running(target: Target) -> dict[str, object]:
    """What the nodes run, and how they get something newer."""
    settings = {"maxSurge": target.upgrade.max_surge, "maxUnavailable": target.upgrade.max_unavailable}
    found: dict[str, object] = {
        "osSKU": target.image or None,
        "orchestratorVersion": target.kubernetes_version or None,
        "maxPods": target.max_pods,
        _SETTINGS: {name: value for name, value in settings.items() if value is not None} or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _fields(target: Target, labels: Mapping[str, str]) -> dict[FieldPath, object]:
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: target.machine.name,
        CAPACITY_TYPE: target.capacity.type,
        FieldPath("capacity", "maxPrice"): _price(target.capacity.max_price)
        if target.capacity.type == "spot"
        else None,
        RESERVATION_FIELD: reservation_of(target).lower() or None,
        ZONES: tuple(sorted(target.zones)) or None,
        DISK_SIZE: target.disk.size_gib,
        DISK_TYPE: target.disk.type,
        IMAGE: target.image or None,
        KUBERNETES_VERSION: target.kubernetes_version or None,
        MAX_PODS: target.max_pods,
        MAX_SURGE: target.upgrade.max_surge,
        MAX_UNAVAILABLE: target.upgrade.max_unavailable,
        MIG_PROFILE: _cut_of(target),
        TAINTS: tuple(sorted(str(taint) for taint in target.taints)),
        PROTECTION: target.protect,
        DRIVER: "none" if leaves_driver_out(target) else "cloud",
        PLUGIN: "cloud" if target.plugin_owner == "cloud" else None,
        **_node_fields(target),
        **{label(key): value for key, value in labels.items() if key != PROTECT_LABEL},
        **{tag(key): value for key, value in target.tags.items()},
        **flatten_native(target.native),
    }
    return known(fields)


def _cut_of(target: Target) -> str | None:
    """The profile that AKS makes; where the operator cuts, the node label says how."""
    return target.sharing.mig.profile if target.sharing.mig and not cut_by_operator(target) else None


def _node_fields(target: Target) -> dict[FieldPath, object]:
    nodes = target.nodes
    if nodes.autoscaled:
        return {LEAST: nodes.minimum, MOST: nodes.maximum}
    return {COUNT: nodes.count}
