"""A live node pool as GKE answers it -> `Observed`, without what the service added by itself.

Lives here: reading one wire object. Must not live here: the call that fetches it (`client`).

Dropped because GKE writes it: the GPU taint and the taints of arm64 and of queued pools (magic-modules#12027 shows the
first in a GET), the default driver (GoogleCloudPlatform/magic-modules#11152), resource labels goog-*, and everything
that no spec names (management, scopes, metadata). The resource labels of the second copy of our marks are no fields
either. The count of an autoscaled pool is the autoscaler's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

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
_STRATEGIES: Final = {"TIME_SHARING": "sharing.timeSlicing.replicas", "MPS": "sharing.mps.replicas"}


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
        written=frozenset(f"tags[{key}]" for key in FORM.written(tags, place)),
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


def _fields(native: Mapping[str, object], config: Mapping[str, object], labels: Mapping[str, str]) -> dict[str, object]:
    taints = (taint for taint in _taints(config) if taint != GPU_TAINT and taint.key not in SYSTEM_TAINTS)
    tags = tree(config, "resourceLabels")
    fields: dict[str, object] = {
        "instanceType": config.get("machineType"),
        **observe_buying(native, config),
        "zones": tuple(sorted(zones_of(native))) or None,
        "disk.sizeGiB": config.get("diskSizeGb"),
        "disk.type": config.get("diskType"),
        "image": str(config.get("imageType") or "").upper() or None,
        "kubernetesVersion": native.get("version"),
        "maxPodsPerNode": number(native, "maxPodsConstraint", "maxPodsPerNode") or None,
        **_upgrade_fields(native),
        "taints": tuple(sorted(str(taint) for taint in taints)),
        "deletionProtection": labels.get(PROTECT_LABEL) == "true",
        "devicePlugin": "none" if labels.get(OPT_OUT_LABEL) == "true" else "cloud",
        **_gpu_fields(config),
        **_node_fields(native),
        **{f"labels[{key}]": value for key, value in labels.items() if key not in (PROTECT_LABEL, OPT_OUT_LABEL)},
        **{f"tags[{key}]": value for key, value in tags.items() if not (key.startswith("goog-") or FORM.is_own(key))},
        **flatten_native(native, live=True),
    }
    return {name: value for name, value in sorted(fields.items()) if value is not None}


def _upgrade_fields(native: Mapping[str, object]) -> dict[str, object]:
    """proto3 leaves zeros out."""
    settings = tree(native, "upgradeSettings")
    return {f"upgrade.{name}": number(settings, name) for name in ("maxSurge", "maxUnavailable")}


def _gpu_fields(config: Mapping[str, object]) -> dict[str, object]:
    accelerator = tree(config, "accelerators", 0)
    driver = at(accelerator, "gpuDriverInstallationConfig", "gpuDriverVersion")
    fields: dict[str, object] = {
        "gpu": f"{number(accelerator, 'acceleratorCount')} x {accelerator.get('acceleratorType', 'no GPU')}",
        "sharing.mig.profile": accelerator.get("gpuPartitionSize") or None,
        "driver": "none" if driver == NO_DRIVER else "cloud",
        "driver.version": LATEST if driver == "LATEST" else None,
    }
    sharing = tree(accelerator, "gpuSharingConfig")
    field = _STRATEGIES.get(str(sharing.get("gpuSharingStrategy")))
    return {**fields, **({field: number(sharing, "maxSharedClientsPerGpu")} if field else {})}


def _node_fields(native: Mapping[str, object]) -> dict[str, object]:
    """Pool totals, and whether the autoscaler keeps them for the pool or for each zone."""
    scaling = tree(native, "autoscaling")
    if not scaling.get("enabled"):
        return {"nodes.count": _total(native, native.get("initialNodeCount"))}
    if scaling.get("totalMaxNodeCount"):
        low, high = number(scaling, "totalMinNodeCount"), number(scaling, "totalMaxNodeCount")
        scope = "pool"
    else:
        low, high = _total(native, scaling.get("minNodeCount")), _total(native, scaling.get("maxNodeCount"))
        scope = "zone"
    return {"nodes.autoscaling.min": low, "nodes.autoscaling.max": high, "nodes.autoscaling.scope": scope}


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
