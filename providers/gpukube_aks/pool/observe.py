"""A live agent pool as AKS returns it -> `Observed`, without what the service added.

In scope: parsing one wire object. Out of scope: the call that fetches it (`live.client`).

Ignored because AKS writes it: labels and taints under kubernetes.azure.com/ (the Spot pair among them: Azure/AKS#3152,
hashicorp/terraform-provider-azurerm#18237), `agentpool`, the market price -1, and the default driver (absent means
installed: hashicorp/terraform-provider-azurerm#30388). The tags of the second copy of the ownership labels
are not fields either, nor is the count of an autoscaled pool, which the autoscaler manages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.binding import observed_fields
from gpukube.core.fields import known, tag
from gpukube.core.jsontree import at, integer, strings, texts, tree
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Observed, Taint
from gpukube_aks.facts.meanings import canceled, error_of, read_problem
from gpukube_aks.pool.fields import BINDINGS
from gpukube_aks.pool.marks import FORM, live_place
from gpukube_aks.pool.native import flatten_native
from gpukube_aks.pool.renewing import NODE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import PoolState
    from gpukube.errors import GpukubeError

_LATE = 200
"""HTTP status of an operation that failed after its request was accepted."""
STATES: Mapping[str, PoolState] = {
    "Succeeded": "ready",
    "Failed": "failed",
    "Canceled": "failed",
    "Deleting": "deleting",
}
"""provisioningState -> state; any other value means that AKS is working on the pool."""


def state_of(properties: Mapping[str, object]) -> tuple[PoolState, str]:
    """Return the state of a pool and AKS's word for it; an unknown power state means that AKS is working on it."""
    status = str(properties.get("provisioningState") or "Unknown")
    state, power = STATES.get(status, "busy"), str(at(properties, "powerState", "code") or "Running")
    if state != "ready" or power == "Running":
        return state, status
    return "ready" if power == "Stopped" else "busy", power


def observe_pool(native: Mapping[str, object]) -> Observed:
    """Parse one agent pool.

    Args:
        native: The pool in wire names, as `AgentPool.as_dict()` of the SDK returns it.
    """
    properties = tree(native, "properties")
    labels = texts(properties, "nodeLabels")
    state, status = state_of(properties)
    tags, place = texts(properties, "tags"), live_place(native)
    copy = FORM.read(tags, place)
    owner, pool = labels.get(OWNER_LABEL, ""), labels.get(POOL_LABEL, "")
    return Observed(
        name=str(native.get("name", "")),
        owner=owner,
        pool=pool,
        protected=labels.get(PROTECT_LABEL) == "true" or (copy is not None and not (owner and pool)),
        state=state,
        status=status,
        failure=pool_failure(properties),
        fields=known({**observed_fields(BINDINGS, properties, properties), **flatten_native(properties)}),
        nodes=integer(properties, "count"),
        labels=labels,
        effective_taints=tuple(map(Taint.parse, strings(properties, "nodeTaints"))),
        instance_type=str(properties.get("vmSize", "")),
        etag=str(properties.get("eTag") or ""),
        native=native,
        copy=copy,
        copied=FORM.is_copied(tags, place),
        written=frozenset(tag(key) for key in FORM.written(tags, place)),
        moving=known({NODE_IMAGE: properties.get("nodeImageVersion")}),
    )


def pool_error(native: Mapping[str, object], where: str) -> GpukubeError | None:
    """Return the error of a pool whose last operation failed; None if it did not.

    Args:
        native: The pool, as in `observe_pool`.
        where: The pool, for messages.
    """
    properties = tree(native, "properties")
    state, status = state_of(properties)
    if state != "failed":
        return None
    if status == "Canceled":
        return canceled(where)
    return error_of(read_problem(_LATE, tree(properties, "status", "provisioningError")), where)


def pool_failure(properties: Mapping[str, object]) -> str:
    """Return the last failure recorded in the pool, "" if there is none.

    The clean text is in the first detail; the outer one wraps it (Azure/karpenter-provider-azure,
    pkg/fake/aksmachinesapi.go).
    """
    error = tree(properties, "status", "provisioningError")
    inner = tree(error, "error") or error
    first = tree(inner, "details", 0)
    code, message = (str(first.get(key) or inner.get(key) or "") for key in ("code", "message"))
    return f"{code}: {message}" if code and message else code or message
