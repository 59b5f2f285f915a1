"""A target in AKS's terms: normalized fields, labels, taints, and native requests.

In scope: translating the spec to the wire. Out of scope: what AKS rejects (`rules.checks`), reading live pools
(`observe`), changing them (`change`).

The body contains no defaults of the service: a default that is sent today becomes drift when the service changes it.
Five properties are always sent: count (required in a PUT, also for autoscaled pools: pulumi/pulumi-azure-native#2943),
vmSize (AKS would choose one), and mode, osType, and type, because gpukube supports only one value of each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.binding import Draft, body, desired_fields
from gpukube.core.fields import known
from gpukube.core.jsontree import merged
from gpukube.core.values import PROTECT_LABEL, Desired, Request, Taint
from gpukube_aks.facts.network import fabric_of
from gpukube_aks.pool.fields import BINDINGS, PUT
from gpukube_aks.pool.marks import FORM
from gpukube_aks.pool.native import flatten_native

if TYPE_CHECKING:
    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target

CREATE = PUT
DELETE = "agent_pools.begin_delete"
SPOT_KEY = "kubernetes.azure.com/scalesetpriority"
SPOT_TAINT = Taint(SPOT_KEY, "spot", "NoSchedule")
"""Taint that AKS puts on every node of a Spot pool, like the label of the same key (docs: aks/spot-node-pool)."""


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call sets the ownership labels and fails if the pool exists.

    Source:
        If-None-Match accepts `*`, and AKS returns 412 if the pool exists (docs: aks/use-etags).
    """
    sent = _without_spot_marks(target)
    labels = {**sent.labels, **ownership.labels, **target.marks}
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
        fabric=fabric_of(target),
    )


def _without_spot_marks(target: Target) -> Target:
    """Remove the label and taint of Spot nodes from a target: AKS adds them."""
    if target.capacity.type != "spot":
        return target
    labels = {key: value for key, value in target.labels.items() if key != SPOT_KEY}
    return replace(target, labels=labels, taints=tuple(taint for taint in target.taints if taint != SPOT_TAINT))


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Return the delete of this pool, which AKS rejects if somebody changed the pool since it was read.

    There is no guard while AKS works on the pool: it gets a new etag at the end, so the guard would always fail.
    """
    guard = etag_guard(observed) if observed.state in ("ready", "failed") else {}
    return Request("aks", DELETE, {**pool_path(cluster, observed.name), **guard})


def pool_path(cluster: ClusterRef, pool: str) -> dict[str, str]:
    """Return the arguments that identify a pool in the SDK's operations."""
    return {"resource_group": cluster.identity["resourceGroup"], "cluster": cluster.name, "pool": pool}


def etag_guard(observed: Observed) -> dict[str, str]:
    """Return arguments that make AKS reject the call if the pool changed since it was read (docs: aks/use-etags)."""
    return {"etag": observed.etag, "match_condition": "if-not-modified"} if observed.etag else {}
