"""A live agent pool as AKS answers it -> `Observed`, without what the service added by itself.

Lives here: reading one wire object. Must not live here: the call that fetches it (`client`).

Dropped because AKS writes it: labels and taints under kubernetes.azure.com/ (the Spot pair among them: Azure/AKS#3152,
hashicorp/terraform-provider-azurerm#18237), `agentpool`, the market price -1, and the default driver (absent means
installed: hashicorp/terraform-provider-azurerm#30388). The tags of the second copy of our marks are no fields either.
The count of an autoscaled pool is the autoscaler's.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

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
from gpukube.core.jsontree import at, integer, strings, tree
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Observed, Taint
from gpukube.gpu.catalogue import machines
from gpukube_aks.cuts import profile_name
from gpukube_aks.marks import FORM, live_place
from gpukube_aks.native import RESERVATION_FIELD, flatten_native

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import PoolState, TaintEffect
    from gpukube.gpu.catalogue import Machine

__all__ = ["STATES", "observe_pool", "pool_failure"]

_SYSTEM = "kubernetes.azure.com/"

STATES: Mapping[str, PoolState] = {
    "Succeeded": "ready",
    "Failed": "failed",
    "Canceled": "failed",
    "Deleting": "deleting",
}
"""provisioningState -> state; any other word means that AKS is working on the pool."""


def observe_pool(native: Mapping[str, object]) -> Observed:
    """Read one agent pool.

    Args:
        native: The pool in wire names, as `AgentPool.as_dict()` of the SDK gives it.
    """
    properties = tree(native, "properties")
    labels = {key: str(value) for key, value in tree(properties, "nodeLabels").items()}
    status = str(properties.get("provisioningState") or "Unknown")
    state = STATES.get(status, "busy")
    tags, place = {key: str(value) for key, value in tree(properties, "tags").items()}, live_place(native)
    copy = FORM.read(tags, place)
    owner, pool = labels.get(OWNER_LABEL, ""), labels.get(POOL_LABEL, "")
    is_stopped = at(properties, "powerState", "code") == "Stopped"
    return Observed(
        name=str(native.get("name", "")),
        owner=owner,
        pool=pool,
        protected=labels.get(PROTECT_LABEL) == "true" or (copy is not None and not (owner and pool)),
        state=state,
        status="Stopped" if is_stopped and state == "ready" else status,
        failure=pool_failure(properties),
        fields=_fields(properties, labels),
        nodes=integer(properties, "count"),
        labels=labels,
        effective_taints=tuple(_taint(text) for text in strings(properties, "nodeTaints")),
        instance_type=str(properties.get("vmSize", "")),
        etag=str(properties.get("eTag") or ""),
        native=native,
        copy=copy,
        written=frozenset(tag(key) for key in FORM.written(tags, place)),
    )


def pool_failure(properties: Mapping[str, object]) -> str:
    """Tell the last failure that the pool keeps, "" when there is none.

    The clean text stands in the first detail; the outer one wraps it (Azure/karpenter-provider-azure,
    pkg/fake/aksmachinesapi.go).
    """
    error = tree(properties, "status", "provisioningError")
    inner = tree(error, "error") or error
    first = tree(inner, "details", 0)
    code, message = (str(first.get(key) or inner.get(key) or "") for key in ("code", "message"))
    return f"{code}: {message}" if code and message else code or message


def _fields(properties: Mapping[str, object], labels: Mapping[str, str]) -> dict[FieldPath, object]:
    spot = properties.get("scaleSetPriority") == "Spot"
    group = str(properties.get("capacityReservationGroupID") or "").lower()
    price = properties.get("spotMaxPrice")
    gpu = tree(properties, "gpuProfile")
    managed = at(gpu, "nvidia", "managementMode") == "Managed"
    taints = strings(properties, "nodeTaints")
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: _size(properties),
        CAPACITY_TYPE: "spot" if spot else "reserved" if group else "on-demand",
        FieldPath("capacity", "maxPrice"): price if spot and price != -1 else None,
        RESERVATION_FIELD: group or None,
        ZONES: tuple(sorted(strings(properties, "availabilityZones"))) or None,
        DISK_SIZE: properties.get("osDiskSizeGB"),
        DISK_TYPE: properties.get("osDiskType"),
        MIG_PROFILE: _profile(properties),
        **_running(properties),
        TAINTS: tuple(sorted(text for text in taints if not text.startswith(_SYSTEM))),
        PROTECTION: labels.get(PROTECT_LABEL) == "true",
        DRIVER: "none" if gpu.get("driver") == "None" and not managed else "cloud",
        PLUGIN: "cloud" if managed else None,
        **_node_fields(properties),
        **{label(key): value for key, value in labels.items() if not _is_system(key)},
        **{tag(key): value for key, value in tree(properties, "tags").items() if not FORM.is_own(key)},
        **flatten_native(properties),
    }
    return known(fields)


def _running(properties: Mapping[str, object]) -> dict[FieldPath, object]:
    """What the nodes run, and how they get something newer; where the version asked for is a minor one, the patch."""
    settings = tree(properties, "upgradeSettings")
    return {
        IMAGE: properties.get("osSKU"),
        KUBERNETES_VERSION: properties.get("currentOrchestratorVersion") or properties.get("orchestratorVersion"),
        MAX_PODS: properties.get("maxPods"),
        MAX_SURGE: settings.get("maxSurge"),
        MAX_UNAVAILABLE: settings.get("maxUnavailable"),
    }


def _is_system(label: str) -> bool:
    return label.startswith(_SYSTEM) or label in (PROTECT_LABEL, "agentpool")


def _node_fields(properties: Mapping[str, object]) -> dict[FieldPath, object]:
    if properties.get("enableAutoScaling"):
        return {
            LEAST: properties.get("minCount"),
            MOST: properties.get("maxCount"),
        }
    return {COUNT: properties.get("count")}


def _size(properties: Mapping[str, object]) -> str:
    """The VM size in the catalogue's spelling: Azure compares sizes without case."""
    written = str(properties.get("vmSize", ""))
    machine = _machines().get(written.casefold())
    return machine.name if machine else written


def _profile(properties: Mapping[str, object]) -> str | None:
    value = properties.get("gpuInstanceProfile")
    if not isinstance(value, str):
        return None
    machine = _machines().get(str(properties.get("vmSize", "")).casefold())
    return (profile_name(str(machine.model), value) if machine else None) or value


@cache
def _machines() -> Mapping[str, Machine]:
    return {machine.name.casefold(): machine for machine in machines("aks")}


def _taint(text: str) -> Taint:
    """Read key=value:Effect; AKS keeps no other form."""
    key_value, _, effect = text.rpartition(":")
    key, _, value = key_value.partition("=")
    return Taint(key, value, cast("TaintEffect", effect))
