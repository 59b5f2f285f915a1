"""A live node pool as GKE answers it -> `Observed`, without what the service added by itself.

Lives here: reading one wire object. Must not live here: the call that fetches it (`client`).

Dropped because GKE writes it: the GPU taint and the taints of arm64 and of queued pools (magic-modules#12027 shows the
first in a GET), the default driver (GoogleCloudPlatform/magic-modules#11152), resource labels goog-*, and everything
that no spec names (management, scopes, metadata). The resource labels of the second copy of our marks are no fields
either. The count of an autoscaled pool is the autoscaler's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

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
from gpukube.core.jsontree import at, number, strings, tree, trees
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Observed, Taint
from gpukube_gke.buying import observe_buying
from gpukube_gke.marks import FORM, place_of
from gpukube_gke.native import flatten_native
from gpukube_gke.translate import ARM_TAINT, EFFECTS, LATEST, NO_DRIVER, OPT_OUT_LABEL, QUEUED_TAINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import ClusterRef, PoolState, TaintEffect

__all__ = ["STATES", "SYSTEM_TAINTS", "condition_of", "observe_pool", "zones_of"]

STATES: Final[Mapping[str, PoolState]] = {
    "RUNNING": "ready",
    "RUNNING_WITH_ERROR": "ready",
    "ERROR": "failed",
    "STOPPING": "deleting",
}
"""NodePool.Status -> state; any other word means that GKE is working on the pool.

A pool that is RUNNING_WITH_ERROR has nodes, with pods on them: it is told, never made again.
"""
SYSTEM_TAINTS: Final = frozenset({ARM_TAINT.key, QUEUED_TAINT.key})
"""Keys of taints that GKE puts on nodes by itself, besides the GPU taint."""

_EFFECTS: Final = {word: effect for effect, word in EFFECTS.items()}
_STRATEGIES: Final = {
    "TIME_SHARING": FieldPath("sharing", "timeSlicing", "replicas"),
    "MPS": FieldPath("sharing", "mps", "replicas"),
}


def observe_pool(native: Mapping[str, object], cluster: ClusterRef | None = None) -> Observed:
    """Read one node pool.

    Args:
        native: The pool in the JSON form of google.container.v1, enums by name.
        cluster: Where it is; without it no copy of marks counts as this pool's.
    """
    config = tree(native, "config")
    tags = {key: str(value) for key, value in tree(config, "resourceLabels").items()}
    place = place_of(cluster, str(native.get("name", ""))) if cluster else ""
    copy = FORM.read(tags, place)
    labels = {key: str(value) for key, value in tree(config, "labels").items()}
    owner, pool = labels.get(OWNER_LABEL, ""), labels.get(POOL_LABEL, "")
    status = str(native.get("status") or "STATUS_UNSPECIFIED")
    scaled = bool(at(native, "autoscaling", "enabled"))
    return Observed(
        name=str(native.get("name", "")),
        owner=owner,
        pool=pool,
        protected=labels.get(PROTECT_LABEL) == "true" or (copy is not None and not (owner and pool)),
        state=STATES.get(status, "busy"),
        status=status,
        failure=_failure(native),
        fields=_fields(native, config, labels),
        nodes=None if scaled else _total(native, native.get("initialNodeCount")),
        labels=labels,
        effective_taints=_taints(config),
        instance_type=str(config.get("machineType", "")),
        etag=str(native.get("etag") or ""),
        native=native,
        copy=copy,
        written=frozenset(tag(key) for key in FORM.written(tags, place)),
    )


def zones_of(native: Mapping[str, object]) -> tuple[str, ...]:
    """Give the zones of a pool or cluster."""
    return strings(native, "locations")


def condition_of(native: Mapping[str, object]) -> Mapping[str, object]:
    """Give the first condition of a pool, {code, message}; empty when there is none."""
    return tree(native, "conditions", 0)


def _failure(native: Mapping[str, object]) -> str:
    condition = condition_of(native)
    code, text = str(condition.get("code") or ""), str(condition.get("message") or native.get("statusMessage") or "")
    return f"{code}: {text}" if code and text else code or text


def _fields(
    native: Mapping[str, object], config: Mapping[str, object], labels: Mapping[str, str]
) -> dict[FieldPath, object]:
    taints = (taint for taint in _taints(config) if taint != GPU_TAINT and taint.key not in SYSTEM_TAINTS)
    tags = tree(config, "resourceLabels")
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: config.get("machineType"),
        **observe_buying(native, config),
        ZONES: tuple(sorted(zones_of(native))) or None,
        DISK_SIZE: config.get("diskSizeGb"),
        DISK_TYPE: config.get("diskType"),
        IMAGE: str(config.get("imageType") or "").upper() or None,
        KUBERNETES_VERSION: native.get("version"),
        MAX_PODS: number(native, "maxPodsConstraint", "maxPodsPerNode") or None,
        **_upgrade_fields(native),
        TAINTS: tuple(sorted(str(taint) for taint in taints)),
        PROTECTION: labels.get(PROTECT_LABEL) == "true",
        PLUGIN: "none" if labels.get(OPT_OUT_LABEL) == "true" else "cloud",
        **_gpu_fields(config),
        **_node_fields(native),
        **{label(key): value for key, value in labels.items() if key not in (PROTECT_LABEL, OPT_OUT_LABEL)},
        **{tag(key): value for key, value in tags.items() if not (key.startswith("goog-") or FORM.is_own(key))},
        **flatten_native(native, live=True),
    }
    return known(fields)


def _upgrade_fields(native: Mapping[str, object]) -> dict[FieldPath, object]:
    """proto3 leaves zeros out."""
    return {path: number(native, "upgradeSettings", path.key) for path in (MAX_SURGE, MAX_UNAVAILABLE)}


def _gpu_fields(config: Mapping[str, object]) -> dict[FieldPath, object]:
    accelerator = tree(config, "accelerators", 0)
    driver = at(accelerator, "gpuDriverInstallationConfig", "gpuDriverVersion")
    fields: dict[FieldPath, object] = {
        GPU: f"{number(accelerator, 'acceleratorCount')} x {accelerator.get('acceleratorType', 'no GPU')}",
        MIG_PROFILE: accelerator.get("gpuPartitionSize") or None,
        DRIVER: "none" if driver == NO_DRIVER else "cloud",
        DRIVER_VERSION: LATEST if driver == "LATEST" else None,
    }
    sharing = tree(accelerator, "gpuSharingConfig")
    field = _STRATEGIES.get(str(sharing.get("gpuSharingStrategy")))
    return {**fields, **({field: number(sharing, "maxSharedClientsPerGpu")} if field else {})}


def _node_fields(native: Mapping[str, object]) -> dict[FieldPath, object]:
    """Pool totals, and whether the autoscaler keeps them for the pool or for each zone."""
    scaling = tree(native, "autoscaling")
    if not scaling.get("enabled"):
        return {COUNT: _total(native, native.get("initialNodeCount"))}
    if scaling.get("totalMaxNodeCount"):
        low, high = number(scaling, "totalMinNodeCount"), number(scaling, "totalMaxNodeCount")
        scope = "pool"
    else:
        low, high = _total(native, scaling.get("minNodeCount")), _total(native, scaling.get("maxNodeCount"))
        scope = "zone"
    return {LEAST: low, MOST: high, SCOPE: scope}


def _total(native: Mapping[str, object], count: object) -> int:
    return number(count) * max(1, len(zones_of(native)))


def _taints(config: Mapping[str, object]) -> tuple[Taint, ...]:
    return tuple(
        Taint(
            str(item.get("key", "")),
            str(item.get("value", "")),
            cast("TaintEffect", _EFFECTS.get(str(item.get("effect")), "NoSchedule")),
        )
        for item in trees(config, "taints")
    )
