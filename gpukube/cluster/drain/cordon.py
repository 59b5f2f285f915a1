"""Cordons nodes, and uncordons those that gpukube cordoned.

In scope: the drain annotation on a node, and the calls. Out of scope: evicting (engine.change.draining).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.drain.pods import SCALE_DOWN_DISABLED
from gpukube.cluster.kube.api_types import NODES
from gpukube.cluster.kube.views import node_view, timestamp
from gpukube.cluster.state.node_drift import belongs_to_pool
from gpukube.core.jsontree import at, pointer, text, texts, trees
from gpukube.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed

DRAIN: Final = "gpukube.io/drain"
"""Annotation on a node that gpukube cordoned: owner/pool. Nodes cordoned by anyone else lack it."""
_ATTEMPTS: Final = 5
"""Maximum attempts to patch a node while others write to it."""


def pool_nodes(kube: Kube, pool: Observed, pool_label: str, *, thorough: bool = True) -> tuple[Tree, ...]:
    """List the nodes of a live pool (rule: `belongs_to_pool`), as the objects that a cordon changes.

    Args:
        kube: The pool's cluster.
        pool: The live pool.
        pool_label: Node label with the cloud's name of the pool; "" if the cloud sets none.
        thorough: Read all nodes of the cluster, to include those that only gpukube's labels identify.
    """
    labels = {pool_label: pool.name} if pool_label and not thorough else None
    nodes = kube.objects(NODES, labels=labels) or ()
    return tuple(node for node in nodes if belongs_to_pool(node_view(node), pool, pool_label))


def staying_nodes(nodes: Iterable[Tree]) -> frozenset[str]:
    """Return the names of nodes annotated so that no autoscaler may remove them."""
    return frozenset(
        text(node, "metadata", "name")
        for node in nodes
        if texts(node, "metadata", "annotations").get(SCALE_DOWN_DISABLED) == "true"
    )


def is_cordoned(node: Tree) -> bool:
    """Return whether a node is closed to new pods."""
    return at(node, "spec", "unschedulable") is True


def cordoned_at(node: Tree) -> float | None:
    """Return when a node was cordoned, in seconds since the epoch by the cluster's clock; None if not recorded.

    Source: metadata.managedFields, which has the time of the last change by the manager that cordoned the node.
    """
    entries = trees(node, "metadata", "managedFields")
    found = [text(item, "time") for item in entries if at(item, "fieldsV1", "f:spec", "f:unschedulable") is not None]
    return max((moment for time in found if (moment := timestamp(time)) is not None), default=None)


def is_marked(node: Tree, pool: Observed) -> bool:
    """Return whether gpukube cordoned a node to drain this pool."""
    return texts(node, "metadata", "annotations").get(DRAIN) == drain_mark(pool)


def drain_mark(pool: Observed) -> str:
    """Return the value of the drain annotation for a pool."""
    return f"{pool.owner}/{pool.pool}"


def cordon(kube: Kube, node: Tree, pool: Observed) -> bool:
    """Cordon a node and annotate it as cordoned by gpukube; skip a node that is already cordoned.

    Returns:
        Whether this call cordoned it.

    Raises:
        AccessError: Nodes may not be patched.
        ClusterError: The API did not answer, or the node changed during each attempt.
    """

    def operations(live: Tree) -> list[Tree]:
        if is_cordoned(live):
            return []
        mark: Tree = {"op": "add", "path": pointer("metadata", "annotations", DRAIN), "value": drain_mark(pool)}
        if at(live, "metadata", "annotations") is None:
            mark = {"op": "add", "path": "/metadata/annotations", "value": {DRAIN: drain_mark(pool)}}
        return [mark, {"op": "add", "path": "/spec/unschedulable", "value": True}]

    return _change(kube, node, operations)


def uncordon(kube: Kube, node: Tree, pool: Observed) -> bool:
    """Uncordon a node that gpukube cordoned to drain this pool; skip any other node.

    Returns:
        Whether this call uncordoned it.

    Raises:
        AccessError, ClusterError: See cordon.
    """

    def operations(live: Tree) -> list[Tree]:
        if not is_marked(live, pool):
            return []
        unmark: Tree = {"op": "remove", "path": pointer("metadata", "annotations", DRAIN)}
        return [unmark, *([{"op": "remove", "path": "/spec/unschedulable"}] if is_cordoned(live) else [])]

    return _change(kube, node, operations)


def _change(kube: Kube, node: Tree, operations: Callable[[Tree], list[Tree]]) -> bool:
    name, live = text(node, "metadata", "name"), node
    # The patch applies only to the version that was read (change_object): kubelet and controllers keep writing nodes.
    for _ in range(_ATTEMPTS):
        todo = operations(live)
        if not todo:
            return False
        if kube.change_object(NODES, live, todo):
            return True
        again = kube.find_object(NODES, name)
        if again is None:
            return False
        live = again
    raise ClusterError(
        f"node {name} changed during each attempt to cordon or uncordon it",
        where=kube.server,
        fix="find who writes to it (kubectl get node --output yaml --show-managed-fields), then run again",
        code="cluster-answer",
    )
