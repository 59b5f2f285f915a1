"""What pods take of the devices, by node: for lists of live pools. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.views import PodView

_ENDED: Final = ("Succeeded", "Failed")
"""Phases in which a pod has given its devices back (Kubernetes: docs/concepts/workloads/pods/pod-lifecycle)."""


def used_devices(pods: Iterable[PodView]) -> dict[str, dict[str, int]]:
    """Sum the devices that pods request, by node.

    Args:
        pods: All pods of a cluster; those that are not placed, or have ended, take nothing.

    Returns:
        Node -> resource -> devices.
    """
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        if pod.devices and pod.scheduled and pod.phase not in _ENDED:
            node = used.setdefault(pod.node, {})
            for name, count in pod.devices.items():
                node[name] = node.get(name, 0) + count
    return used
