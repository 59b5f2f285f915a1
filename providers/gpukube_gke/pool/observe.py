"""Reads a GKE node pool into `Observed`, without what the service added.

In scope: reading one wire object. Out of scope: the call that fetches it (`live.client`).

Dropped because GKE writes it: the GPU taint and the taints of arm64 and of queued pools (magic-modules#12027 shows the
first in a GET), the default driver (GoogleCloudPlatform/magic-modules#11152), resource labels goog-*, and everything
that a spec cannot set (management, scopes, metadata). The resource labels of the second copy of the marks are not
fields either. The count of an autoscaled pool is the autoscaler's.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from gpukube.core.binding import observed_fields
from gpukube.core.fields import FieldPath, known, tag
from gpukube.core.jsontree import at, texts, tree
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, RELEASED_LABEL, Observed
from gpukube_gke.pool.fields import BINDINGS, read_taints, total_of, unknown_strategy
from gpukube_gke.pool.inheriting import inherited_members
from gpukube_gke.pool.live import Live
from gpukube_gke.pool.marks import FORM, place_of
from gpukube_gke.pool.native import flatten_native

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import ClusterRef, PoolState

STATES: Final[Mapping[str, PoolState]] = {
    "RUNNING": "ready",
    "RUNNING_WITH_ERROR": "ready",
    "ERROR": "failed",
    "STOPPING": "deleting",
}
"""NodePool.Status -> state; any other status means that an operation is running.

A pool in RUNNING_WITH_ERROR has nodes with pods on them: it is reported, never recreated.
"""


def observe_pool(
    native: Mapping[str, object], cluster: ClusterRef | None = None, around: Mapping[str, object] = MappingProxyType({})
) -> Observed:
    """Read one node pool.

    Args:
        native: The pool in the JSON form of google.container.v1, enums by name.
        cluster: Its cluster; without it, no copy of marks counts as this pool's.
        around: Its cluster in the JSON form; empty if it was not read.
    """
    config = tree(native, "config")
    tags = texts(config, "resourceLabels")
    place = place_of(cluster, str(native.get("name", ""))) if cluster else ""
    labels = texts(config, "labels")
    if RELEASED_LABEL in labels:  # the copy of the marks cannot change; a released pool keeps it, but it is void
        tags = {key: value for key, value in tags.items() if not FORM.is_own(key)}
    copy = FORM.read(tags, place)
    owner, pool = labels.get(OWNER_LABEL, ""), labels.get(POOL_LABEL, "")
    status = str(native.get("status") or "STATUS_UNSPECIFIED")
    scaled = bool(at(native, "autoscaling", "enabled"))
    condition = condition_of(native)
    code, text = str(condition.get("code") or ""), str(condition.get("message") or native.get("statusMessage") or "")
    live = Live(native)
    shared = {FieldPath("sharing", "strategy"): unknown_strategy(live)}
    return Observed(
        name=str(native.get("name", "")),
        owner=owner,
        pool=pool,
        protected=labels.get(PROTECT_LABEL) == "true" or (copy is not None and not (owner and pool)),
        state=STATES.get(status, "busy"),
        status=status,
        failure=f"{code}: {text}" if code and text else code or text,
        fields=known({**observed_fields(BINDINGS, live, native), **shared, **flatten_native(native, live=True)}),
        nodes=None if scaled else total_of(native, native.get("initialNodeCount")),
        labels=labels,
        effective_taints=read_taints(config),
        instance_type=str(config.get("machineType", "")),
        etag=str(native.get("etag") or ""),
        native=native,
        copy=copy,
        copied=FORM.is_copied(tags, place),
        written=frozenset(tag(key) for key in FORM.written(tags, place)),
        inherited=inherited_members(native, around),
    )


def condition_of(native: Mapping[str, object]) -> Mapping[str, object]:
    """Return the first condition of a pool, {code, message}; empty if there is none."""
    return tree(native, "conditions", 0)
