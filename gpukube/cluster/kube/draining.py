"""Which pods a drain of some nodes would move.

In scope: that question. Out of scope: draining itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.client import Kube


def drained_pods(kube: Kube, node_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Name the pods that would go with these nodes, "namespace/name", sorted, for every node asked for.

    Left out, as kubectl drain leaves them: pods of DaemonSets, mirror pods of the kubelet, and pods that have ended
    (k8s.io/kubectl pkg/drain/filters.go). No call without a node; else one for each of a few nodes, or the pages of one
    list.

    Raises:
        AccessError: Pods may not be listed.
        ClusterError: The API did not answer.
    """
    requested = sorted(set(node_names))
    found: dict[str, list[str]] = {name: [] for name in requested}
    for node, pod in kube.pods_on(requested) if requested else ():
        found[node].append(pod)
    return {node: tuple(sorted(pods)) for node, pods in found.items()}
