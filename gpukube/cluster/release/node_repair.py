"""Restores labels and taints that nodes have lost.

In scope: the order of calls. Out of scope: what a node has lost (state.node_drift).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import NODES
from gpukube.core.jsontree import items, pointer, text, texts
from gpukube.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.node_drift import NodeRepair
    from gpukube.core.jsontree import Tree

_ATTEMPTS: Final = 5
"""Maximum attempts to patch an object while others write to it."""


def repair_nodes(kube: Kube, repairs: Sequence[NodeRepair]) -> tuple[NodeRepair, ...]:
    """Patch each node with what it has lost: one read and one write per node, guarded by the node's version.

    Skips nodes that are gone, and labels and taints that have changed since they were read: that is other drift, which
        the next plan shows. Repeating it changes nothing.

    Returns:
        The repairs that were made.

    Raises:
        AccessError: Nodes may not be patched; on AKS also if the cluster protects what its pool API owns.
        ClusterError: The API did not answer, or a node changed during each attempt.
    """
    done: list[NodeRepair] = []
    for name in sorted({repair.node for repair in repairs}):
        done += _repair(kube, name, [repair for repair in repairs if repair.node == name])
    return tuple(done)


def _repair(kube: Kube, name: str, repairs: Sequence[NodeRepair]) -> list[NodeRepair]:
    # The patch applies only to the version that was read (change_object): kubelet and controllers keep writing nodes.
    for _ in range(_ATTEMPTS):
        node = kube.find_object(NODES, name)
        still = [repair for repair in repairs if node is not None and _seen_on(node, repair) == repair.live]
        if node is None or not still:
            return []
        if kube.change_object(NODES, node, _operations(node, still)):
            return still
    raise ClusterError(
        f"node {name} changed during each attempt to restore its labels",
        where=kube.server,
        fix="find who writes to it (kubectl get node --output yaml --show-managed-fields), then run again",
        code="cluster-answer",
    )


def _seen_on(node: Tree, repair: NodeRepair) -> str | None:
    if repair.kind == "label":
        return texts(node, "metadata", "labels").get(repair.key)
    at = _position(node, repair)
    return None if at is None else text(items(node, "spec", "taints")[at], "value")


def _position(node: Tree, repair: NodeRepair) -> int | None:
    """Return the index of a taint in the node's list: key and effect identify it."""
    named = [(text(item, "key"), text(item, "effect")) for item in items(node, "spec", "taints")]
    desired = (repair.key, repair.effect)
    return named.index(desired) if desired in named else None


def _operations(node: Tree, repairs: Sequence[NodeRepair]) -> list[Tree]:
    """Return the patch: labels one by one, taints at their index or at the end, so that all others stay."""
    found: list[Tree] = []
    missing = []
    for repair in repairs:
        at = _position(node, repair)
        if repair.kind == "label":
            found.append({"op": "add", "path": pointer("metadata", "labels", repair.key), "value": repair.desired})
        elif at is None:
            missing.append({"key": repair.key, "value": repair.desired, "effect": repair.effect})
        else:
            found.append({"op": "add", "path": pointer("spec", "taints", at, "value"), "value": repair.desired})
    if missing and items(node, "spec", "taints"):
        found += [{"op": "add", "path": "/spec/taints/-", "value": taint} for taint in missing]
    elif missing:
        found.append({"op": "add", "path": "/spec/taints", "value": missing})
    return found
