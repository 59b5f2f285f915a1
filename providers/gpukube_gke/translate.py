"""A target in the terms of GKE: normalised fields, labels, taints and the native requests.

Lives here: the way from the spec to the wire. Must not live here: what GKE refuses (`rules`), reading live pools
(`observe`).

Bodies are in the JSON form of google.container.v1, as gcloud sends them: enums by name, 64-bit numbers as text. Always
sent, because the API's own answer to silence is another one: accelerators (computed, also where the machine type fixes
them), oauthScopes (without devstorage.read_only the driver cannot be fetched), locations (silence means every zone of
the cluster), driver version (silence means none on old control planes), management and upgradeSettings (silence means
no repair; of pools that live for days only, GKE decides how they are upgraded). The GPU taint is never sent at
creation: GKE adds it, and twice is an error (hashicorp/terraform-provider-google#7928); `translate_taint` adds it where
GKE did not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import (
    COUNT,
    DISK_SIZE,
    DISK_TYPE,
    DRIVER,
    DRIVER_VERSION,
    GPU,
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
    SCOPE,
    TAINTS,
    ZONES,
    FieldPath,
    known,
    label,
    tag,
)
from gpukube.core.jsontree import at, tree
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Desired, Request, Taint
from gpukube.gpu.sharing import Sharing
from gpukube_gke.buying import buying_fields, is_queued, is_short_lived, translate_buying
from gpukube_gke.counts import autoscaling_bounds, initial_per_zone
from gpukube_gke.marks import copy_tags, marks_of
from gpukube_gke.native import flatten_native, merge_native
from gpukube_gke.places import cluster_name, is_zone, pool_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target

__all__ = [
    "ARM_TAINT",
    "CREATE",
    "DELETE",
    "EFFECTS",
    "LATEST",
    "NO_DRIVER",
    "OPT_OUT_LABEL",
    "QUEUED_TAINT",
    "UPDATE",
    "accelerator_of",
    "image_of",
    "is_operated",
    "needs_zone",
    "own_taints",
    "runs_own_plugin",
    "translate_delete",
    "translate_pool",
    "translate_taint",
    "upgrade_fields",
    "wire_taint",
    "with_zones",
]

CREATE: Final = "create_node_pool"
DELETE: Final = "delete_node_pool"
UPDATE: Final = "update_node_pool"

OPT_OUT_LABEL: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Node label that keeps GKE's own device plugin away (docs: kubernetes-engine, GPU Operator on GKE)."""
ARM_TAINT: Final = Taint("kubernetes.io/arch", "arm64", "NoSchedule")
"""GKE puts it on arm64 nodes (google.container.v1 TaintConfig)."""
QUEUED_TAINT: Final = Taint("cloud.google.com/gke-queued", "true", "NoSchedule")
"""GKE puts it on the nodes of queued pools (docs: kubernetes-engine/how-to/provisioningrequest)."""
NO_DRIVER: Final = "INSTALLATION_DISABLED"
"""GPUDriverVersion that leaves the driver to somebody else."""
LATEST: Final = "latest"
"""driver.version besides "default", which is GKE's choice and no field."""
EFFECTS: Final[Mapping[str, str]] = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
"""Effect in Kubernetes -> NodeTaint.Effect."""

_AUTH: Final = "https://www.googleapis.com/auth/"
_SCOPES: Final = tuple(
    _AUTH + scope
    for scope in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
)
_SCOPES_OF_ACCOUNT: Final = (f"{_AUTH}cloud-platform", f"{_AUTH}userinfo.email")
"""What gcloud sends without and with a service account."""
_STRATEGIES: Final = {"time-slicing": "TIME_SHARING", "mps": "MPS"}


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call carries our marks, and fails where a pool of that name is."""
    labels = {**target.labels, **ownership.labels, OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    labels |= {OPT_OUT_LABEL: "true"} if runs_own_plugin(target) else {}
    params = {"parent": cluster_name(target.cluster), "nodePool": _body(target, labels)}
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=_fields(target, labels),
        labels=labels,
        effective_taints=tuple(dict.fromkeys((GPU_TAINT, *own_taints(target), *_added_taints(target)))),
        create=Request("gke", CREATE, params),
        copy=marks_of(target),
        copy_is_fixed=True,
    )


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Delete a pool; the call takes no etag."""
    return Request("gke", DELETE, {"name": pool_name(cluster, observed.name)})


def translate_taint(desired: Desired, observed: Observed) -> Request | None:
    """Add the GPU taint to a pool that GKE made without it: in a cluster that had no other pool at that moment.

    An update replaces the whole list, so the live one is sent again (google.container.v1 UpdateNodePoolRequest.taints).
    """
    is_there = any((t.key, t.effect) == (GPU_TAINT.key, GPU_TAINT.effect) for t in observed.effective_taints)
    if GPU_TAINT not in desired.target.taints or is_there or observed.state != "ready":
        return None
    taints = [wire_taint(taint) for taint in (*observed.effective_taints, GPU_TAINT)]
    name = pool_name(desired.target.cluster, observed.name)
    guard = {"etag": observed.etag} if observed.etag else {}
    return Request("gke", UPDATE, {"name": name, "taints": {"taints": taints}, **guard})


def needs_zone(desired: Desired) -> bool:
    """Say whether the zone was left open and the cluster, a regional one, has several."""
    return "locations" not in _pool_of(desired)


def with_zones(desired: Desired, zones: Sequence[str]) -> Desired:
    """Put the zones that were left open into the request, and into the target, to be shown.

    The fields stay as they are: a zone that no spec names is no drift.
    """
    pool = {**_pool_of(desired), "locations": list(zones)}
    params = {**desired.create.params, "nodePool": pool}
    target = replace(desired.target, zones=tuple(zones))
    return replace(desired, target=target, create=replace(desired.create, params=params))


def own_taints(target: Target) -> tuple[Taint, ...]:
    """Give the taints of a target without the one that is GKE's to add."""
    return tuple(taint for taint in target.taints if taint != GPU_TAINT)


def _added_taints(target: Target) -> tuple[Taint, ...]:
    """Taints that GKE puts on the nodes for what they are, the GPU taint aside."""
    return (
        *((ARM_TAINT,) if target.machine.arch == "arm64" else ()),
        *((QUEUED_TAINT,) if is_queued(target) else ()),
    )


def runs_own_plugin(target: Target) -> bool:
    """Say whether GKE's plugin is to be kept away, for our operator's or one that somebody else runs."""
    return target.plugin_owner == "none" or is_operated(target)


def is_operated(target: Target) -> bool:
    """Say whether plugin and sharing, and the cut of the GPUs, are the GPU Operator's: GKE is not told of them then.

    Source:
        GoogleCloudPlatform/container-engine-accelerators: sharing is done by GKE's plugin, which is kept away.
    """
    return target.plugin_owner == "operator" or (target.driver_owner == "operator" and target.plugin_owner == "auto")


def image_of(target: Target) -> str:
    """Name the node image as GKE answers it: gcloud and Terraform write cos_containerd too (google.container.v1)."""
    return target.image.upper()


def accelerator_of(target: Target) -> str:
    """Name the GPUs of a node as they are compared: "8 x nvidia-tesla-a100"."""
    return f"{target.machine.devices} x {target.machine.accelerator}"


def _pool_of(desired: Desired) -> Mapping[str, object]:
    return tree(desired.create.params, "nodePool")


def _body(target: Target, labels: Mapping[str, str]) -> dict[str, object]:
    zones = sorted(target.zones) or _only_zone(target)
    parts = max(1, len(zones))  # a zone that is left open is one zone
    pool: dict[str, object] = {
        "name": target.name,
        "initialNodeCount": initial_per_zone(target.nodes, parts),
        **({"locations": zones} if zones else {}),
        **({"version": target.kubernetes_version} if target.kubernetes_version else {}),
        "config": _config(target, labels),
        "management": {"autoRepair": not is_short_lived(target), "autoUpgrade": True},
        **_pace(target),
        **({"maxPodsConstraint": {"maxPodsPerNode": str(target.max_pods)}} if target.max_pods is not None else {}),
    }
    if target.nodes.autoscaled:
        pool["autoscaling"] = {
            "enabled": True,
            **autoscaling_bounds(target.nodes, parts),
            **({"locationPolicy": "ANY"} if is_short_lived(target) else {}),
        }
    return merge_native(merge_native(pool, translate_buying(target)), target.native)


def _pace(target: Target) -> dict[str, object]:
    """How nodes are upgraded: gcloud's own default where the spec is silent on a part."""
    asked = upgrade_fields(target)
    if is_short_lived(target) and not asked:
        return {}
    return {"upgradeSettings": {"maxSurge": 1, **{path.key: number for path, number in asked.items()}}}


def upgrade_fields(target: Target) -> dict[FieldPath, int]:
    """Give how many nodes an upgrade may add and take away, as far as the spec says; shares of nodes are refused."""
    asked = {MAX_SURGE: target.upgrade.max_surge, MAX_UNAVAILABLE: target.upgrade.max_unavailable}
    return {path: int(number) for path, number in asked.items() if number and number.isdecimal()}


def _only_zone(target: Target) -> list[str]:
    location = target.cluster.identity["location"]
    return [location] if is_zone(location) else []


def _config(target: Target, labels: Mapping[str, str]) -> dict[str, object]:
    taints = [wire_taint(taint) for taint in sorted(own_taints(target))]
    has_account = bool(at(target.native, "config", "serviceAccount"))
    return {
        "machineType": target.machine.name,
        "accelerators": [_accelerator(target)],
        "oauthScopes": list(_SCOPES_OF_ACCOUNT if has_account else _SCOPES),
        "labels": dict(sorted(labels.items())),
        **({"taints": taints} if taints else {}),
        **({"diskSizeGb": target.disk.size_gib} if target.disk.size_gib is not None else {}),
        **({"diskType": target.disk.type} if target.disk.type is not None else {}),
        **({"imageType": image_of(target)} if target.image else {}),
        "resourceLabels": dict(sorted({**target.tags, **copy_tags(target)}.items())),
    }


def _accelerator(target: Target) -> dict[str, object]:
    sharing = Sharing() if is_operated(target) else target.sharing
    found: dict[str, object] = {
        "acceleratorType": target.machine.accelerator,
        "acceleratorCount": str(target.machine.devices),
        "gpuDriverInstallationConfig": {"gpuDriverVersion": _driver_version(target)},
    }
    if sharing.mig is not None:
        found["gpuPartitionSize"] = sharing.mig.profile
    if sharing.slicing is not None:
        found["gpuSharingConfig"] = {
            "gpuSharingStrategy": _STRATEGIES[sharing.slicing.mode],
            "maxSharedClientsPerGpu": str(sharing.slicing.replicas),
        }
    return found


def _driver_version(target: Target) -> str:
    if _driver(target) == "none":
        return NO_DRIVER
    return "LATEST" if target.driver_version == LATEST else "DEFAULT"


def _driver(target: Target) -> str:
    """The managed driver is finished by the plugin that the opt-out label keeps away (NVIDIA/aicr#2047)."""
    return "none" if target.driver_owner in ("none", "operator") or runs_own_plugin(target) else "cloud"


def wire_taint(taint: Taint) -> dict[str, object]:
    """Give a taint in the form of the wire, whose effects are words of its own."""
    return {"key": taint.key, "value": taint.value, "effect": EFFECTS[taint.effect]}


def _fields(target: Target, labels: Mapping[str, str]) -> dict[FieldPath, object]:
    sharing = Sharing() if is_operated(target) else target.sharing
    slicing = sharing.slicing
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: target.machine.name,
        GPU: accelerator_of(target),
        **buying_fields(target),
        ZONES: tuple(sorted(target.zones)) or None,
        DISK_SIZE: target.disk.size_gib,
        DISK_TYPE: target.disk.type,
        IMAGE: image_of(target) or None,
        KUBERNETES_VERSION: target.kubernetes_version or None,
        **upgrade_fields(target),
        MAX_PODS: target.max_pods,
        MIG_PROFILE: sharing.mig.profile if sharing.mig else None,
        FieldPath("sharing", "timeSlicing", "replicas"): slicing.replicas
        if slicing and slicing.mode == "time-slicing"
        else None,
        FieldPath("sharing", "mps", "replicas"): slicing.replicas if slicing and slicing.mode == "mps" else None,
        TAINTS: tuple(sorted(str(taint) for taint in own_taints(target))),
        PROTECTION: target.protect,
        DRIVER: _driver(target),
        DRIVER_VERSION: LATEST if _driver_version(target) == "LATEST" else None,
        PLUGIN: "none" if runs_own_plugin(target) else "cloud",
        **_node_fields(target),
        **{label(key): value for key, value in labels.items() if key not in (PROTECT_LABEL, OPT_OUT_LABEL)},
        **{tag(key): value for key, value in target.tags.items()},
        **flatten_native(target.native),
    }
    return known(fields)


def _node_fields(target: Target) -> dict[FieldPath, object]:
    nodes = target.nodes
    if nodes.autoscaled:
        return {
            LEAST: nodes.minimum,
            MOST: nodes.maximum,
            SCOPE: nodes.scope,
        }
    return {COUNT: nodes.count}
