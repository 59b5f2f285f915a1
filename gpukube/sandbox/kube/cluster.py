"""One emulated cluster: store, controllers and nodes, tied together.

Lives here: the surface the emulated clouds use. Must not live here: rules of a cloud, HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.sandbox.kube.shapes import GpuShape, NodeShape, Taint

if TYPE_CHECKING:
    from gpukube.sandbox.clock import Clock

__all__ = ["GpuShape", "KubeCluster", "NodeShape", "Taint"]


class KubeCluster:
    """A Kubernetes cluster without machines.

    Args:
        name: Cluster name, used in the kubeconfig.
        clock: The sandbox's time.
        token: Bearer token that every request must carry.
        kubernetes_version: Version told by `/version`, without the "v".
    """

    def __init__(self, name: str, clock: Clock, token: str, kubernetes_version: str = "1.34.2") -> None:
        self.name = name
        self.clock = clock
        self.token = token
        self.kubernetes_version = kubernetes_version
