"""A target in the terms of AKS: normalized fields, labels, taints and the native requests.

In scope: the way from the spec to the wire. Out of scope: what AKS refuses (`rules.checks`), reading live
pools (`observe`), changing them (`change`).

The body holds what gpukube means, and nothing that the service fills in by itself: a default that is sent today is
drift when the service changes it tomorrow. Five properties are always sent: count (required in a PUT, also for
autoscaled pools: pulumi/pulumi-azure-native#2943), vmSize (AKS would choose one), and mode, osType and type, whose
other values cannot carry what gpukube promises.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.binding import Draft, body, desired_fields
from gpukube.core.fields import known
from gpukube.core.jsontree import merged
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Desired, Request, Taint
from gpukube_aks.pool.fields import BINDINGS, PUT
from gpukube_aks.pool.marks import FORM
from gpukube_aks.pool.native import flatten_native

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target

CREATE = PUT
DELETE = "agent_pools.begin_delete"
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = Taint(SPOT_KEY, "spot", "NoSchedule")
"""AKS puts this label and this taint on every node of a Spot pool (docs: aks/spot-node-pool)."""


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call carries our marks and only succeeds where no pool is.

    Source:
        If-None-Match takes `*` and answers 412 where the pool exists (docs: aks/use-etags).
    """
    sent = _without_spot_marks(target)
    labels = {**sent.labels, **ownership.labels, OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    draft = Draft(sent, labels)
    scaled = {"enableAutoScaling": True} if draft.target.nodes.autoscaled else {}
    always = {"mode": "User", "osType": "Linux", "type": "VirtualMachineScaleSets"}
    params = {
        **pool_path(target.cluster, target.name),
        "body": {"properties": merged({**always, **scaled, **body(BINDINGS, draft)}, draft.target.native)},
        "match_condition": "if-missing",
    }
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=known({**desired_fields(BINDINGS, draft), **flatten_native(sent.native)}),
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
