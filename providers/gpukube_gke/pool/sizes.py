"""The calls that change the size of a live pool, or the bounds of its autoscaler.

In scope: converting pool totals to these two messages. Out of scope: other changes (`change`), checks of a spec
(`counts`).

SetNodePoolSize counts per zone. SetNodePoolAutoscaling has per-zone and whole-pool bounds, which exclude each
other (terraform-google-modules/terraform-google-kubernetes-engine#1554); GKE replaces the whole
message, so the pair that is not sent is cleared. Neither call accepts an etag: the client compares the one given here
and never sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import tree
from gpukube.core.values import Request
from gpukube.errors import SpecError
from gpukube_gke.facts.places import pool_name
from gpukube_gke.pool.counts import MOST_PER_ZONE, autoscaling_bounds
from gpukube_gke.pool.fields import zones_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import ClusterRef, Nodes, Observed

RESIZE: Final = "set_node_pool_size"
AUTOSCALE: Final = "set_node_pool_autoscaling"
_POLICY: Final = "locationPolicy"


def is_autoscaled(observed: Observed) -> bool:
    """Return whether the autoscaler owns the number of nodes of a live pool."""
    return bool(live_message(observed, "autoscaling").get("enabled"))


def live_message(observed: Observed, name: str) -> Mapping[str, object]:
    """Return a message of a pool as read, such as "management"; empty if absent."""
    return tree(observed.native, name)


def size_of(observed: Observed) -> int:
    """Return the nodes per zone of a live pool without autoscaling."""
    count = observed.native.get("initialNodeCount")
    return int(count) if isinstance(count, int | str) and count != "" else 0


def resize_request(cluster: ClusterRef, observed: Observed, total: int, zones: int = 0) -> Request:
    """Return the call that sets the size of a pool.

    Args:
        cluster: Its cluster.
        observed: The pool.
        total: Nodes of the whole pool.
        zones: Number of zones after the change; 0 for the current ones.

    Raises:
        SpecError: The total is not divisible by the zones, or more than GKE allows.
    """
    count = _per_zone(cluster, observed, total, zones)
    return Request("gke", RESIZE, {"name": pool_name(cluster, observed.name), "nodeCount": count, **_guard(observed)})


def autoscale_request(
    cluster: ClusterRef, observed: Observed, nodes: Nodes | None, *, zones: int = 0, policy: object = None
) -> Request:
    """Return the call that sets the autoscaling of a pool; unchanged members are sent again, since GKE replaces all.

    Args:
        cluster: Its cluster.
        observed: The pool.
        nodes: Bounds and their scope; None to turn the autoscaler off, which keeps the current size.
        zones: Number of zones after the change; 0 for the current ones.
        policy: New location policy; None for the current one.

    Raises:
        SpecError: A per-zone bound is not divisible by the zones, or more than GKE allows.
    """
    live = live_message(observed, "autoscaling")
    policy = policy or live.get(_POLICY)
    body: dict[str, object] = {_POLICY: policy} if policy and (nodes or policy != live.get(_POLICY)) else {}
    if nodes is not None:
        if nodes.scope == "zone":
            _per_zone(cluster, observed, nodes.minimum, zones)
        _per_zone(cluster, observed, nodes.maximum, zones, is_shared=nodes.scope == "zone")
        body |= {"enabled": True, **autoscaling_bounds(nodes, _parts(observed, zones))}
    params = {"name": pool_name(cluster, observed.name), "autoscaling": body, **_guard(observed)}
    return Request("gke", AUTOSCALE, params)


def _parts(observed: Observed, zones: int) -> int:
    return zones or len(zones_of(observed.native)) or 1


def _per_zone(cluster: ClusterRef, observed: Observed, total: int, zones: int, *, is_shared: bool = True) -> int:
    parts = _parts(observed, zones)
    if is_shared and total % parts:
        low = total - total % parts
        raise SpecError(
            f"{total} nodes are not divisible by the pool's {parts} zones",
            where=f"{cluster.key}/{observed.pool or observed.name}",
            fix=f"request {f'{low} or ' if low else ''}{low + parts}",
            why="GKE counts nodes per zone, the same number in each",
            code="gke-zones-divide",
        )
    if total > MOST_PER_ZONE * parts:
        raise SpecError(
            f"{total} nodes are more than a pool can have",
            where=f"{cluster.key}/{observed.pool or observed.name}",
            fix=f"request at most {MOST_PER_ZONE * parts}",
            code="gke-node-count",
        )
    return total // parts


def _guard(observed: Observed) -> dict[str, object]:
    return {"etag": observed.etag} if observed.etag else {}
