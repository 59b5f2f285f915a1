"""Finds the pods that draining nodes would evict.

In scope: that list. Out of scope: draining itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.client import Kube


def drained_pods(kube: Kube, node_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return node -> its pods that a drain would evict, "namespace/name", sorted, for each given node.

    Like kubectl drain, skips pods of DaemonSets, mirror pods, and pods that have ended (k8s.io/kubectl
    pkg/drain/filters.go). Makes no call without nodes; else one per node if there are few, or the pages of one list.

    Raises:
        AccessError: Pods may not be listed.
        ClusterError: The API did not answer.
    """
    requested = sorted(set(node_names))
    found: dict[str, list[str]] = {name: [] for name in requested}
    for node, pod in kube.pods_on(requested) if requested else ():
        found[node].append(pod)
    return {node: tuple(sorted(pods)) for node, pods in found.items()}
