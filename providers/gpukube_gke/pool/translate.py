"""Translates a target to GKE: normalized fields, labels, taints, and native requests.

In scope: from the spec to the wire. Out of scope: what GKE refuses (`rules.checks`), reading live pools (`observe`).

Bodies are in the JSON form of google.container.v1, as gcloud sends them: enums by name, 64-bit numbers as strings.
Always sent, because the API's defaults differ: accelerators (computed, also if the machine type fixes them),
oauthScopes (without devstorage.read_only the driver cannot be downloaded), locations (default: every zone of the
cluster), driver version (default: none on old control planes), management and upgradeSettings (default: no repair; for
short-lived pools GKE decides how they are upgraded). The GPU taint is never sent at creation: GKE adds it, and adding
it twice is an error (hashicorp/terraform-provider-google#7928); `translate_taint` adds it if GKE did not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.binding import Draft, body, desired_fields
from gpukube.core.fields import known
from gpukube.core.jsontree import at, merged, tree
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import PROTECT_LABEL, Desired, Request
from gpukube_gke.facts.network import fabric_of
from gpukube_gke.facts.places import cluster_name, pool_name
from gpukube_gke.pool.effects import UPDATE
from gpukube_gke.pool.fields import (
    ARM_TAINT,
    BINDINGS,
    OPT_OUT_LABEL,
    QUEUED_TAINT,
    own_taints,
    runs_own_plugin,
    wire_taint,
)  # fmt: skip
from gpukube_gke.pool.marks import marks_of
from gpukube_gke.pool.native import flatten_native
from gpukube_gke.pool.purchase import is_queued, is_short_lived
from gpukube_gke.pool.taints import in_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target

CREATE: Final = "create_node_pool"
DELETE: Final = "delete_node_pool"

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
"""The scopes that gcloud sends with a service account."""


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call carries gpukube's marks, and fails if the pool exists."""
    sent = in_class(target)
    labels = {**sent.labels, **ownership.labels, **target.marks}
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    labels |= {OPT_OUT_LABEL: "true"} if runs_own_plugin(target) else {}
    draft = Draft(sent, labels)
    params = {"parent": cluster_name(target.cluster), "nodePool": _body(draft)}
    # Taints that GKE adds because of the kind of node, except the GPU taint.
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=known({**desired_fields(BINDINGS, draft), **flatten_native(target.native)}),
        labels=labels,
        effective_taints=tuple(
            dict.fromkeys(
                (
                    GPU_TAINT,
                    *own_taints(sent),
                    *(
                        *((ARM_TAINT,) if target.machine.arch == "arm64" else ()),
                        *((QUEUED_TAINT,) if is_queued(target) else ()),
                    ),
                )
            )
        ),
        create=Request("gke", CREATE, params),
        copy=marks_of(target),
        copy_is_fixed=True,
        fabric=fabric_of(target),
    )


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Return the call that deletes a pool; it accepts no etag."""
    return Request("gke", DELETE, {"name": pool_name(cluster, observed.name)})


def translate_taint(desired: Desired, observed: Observed) -> Request | None:
    """Return the call that adds the GPU taint if GKE created the pool without it, as in a cluster with no other pool.

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
    """Return whether the spec names no zone and the cluster is regional, with several zones."""
    return "locations" not in _pool_of(desired)


def with_zones(desired: Desired, zones: Sequence[str]) -> Desired:
    """Add the chosen zones to the request, and to the target for display.

    Fields do not change: a zone that the spec does not name is never drift.
    """
    pool = {**_pool_of(desired), "locations": list(zones)}
    params = {**desired.create.params, "nodePool": pool}
    target = replace(desired.target, zones=tuple(zones))
    return replace(desired, target=target, create=replace(desired.create, params=params))


def _pool_of(desired: Desired) -> Mapping[str, object]:
    return tree(desired.create.params, "nodePool")


def _body(draft: Draft) -> dict[str, object]:
    target = draft.target
    has_account = bool(at(target.native, "config", "serviceAccount"))
    config: dict[str, object] = {"oauthScopes": list(_SCOPES_OF_ACCOUNT if has_account else _SCOPES)}
    if at(target.native, "config", "shieldedInstanceConfig"):
        # GKE has it on in pools made without the message; in the message, an absent switch is off (proto3).
        config["shieldedInstanceConfig"] = {"enableIntegrityMonitoring": True}
    fixed = {
        "config": config,
        "management": {"autoRepair": not is_short_lived(target), "autoUpgrade": True},
    }
    return merged(merged({"name": target.name, **body(BINDINGS, draft)}, fixed), target.native)
