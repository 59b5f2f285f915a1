"""One cluster during one run: its provider's two halves, what the cloud says of it, and its Kubernetes API.

A session is opened once per cluster in the starting thread and shared; opening makes no call. What a call finds
is remembered, so that plan, checks and apply of one run look at the same world.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cluster.kube import Kube
    from gpukube.core.values import ClusterRef, KubeAccess, Settings
    from gpukube.provider import Cloud, Provider

__all__ = ["Session", "open_sessions"]


@dataclass(slots=True)
class Session:
    """A cluster and its connections.

    Attributes:
        cluster: The cluster of the spec.
        provider: Pure half.
        cloud: Live half.
        settings: How this run reaches clouds.
    """

    cluster: ClusterRef
    provider: Provider
    cloud: Cloud
    settings: Settings
    _access: KubeAccess | None = field(default=None, repr=False)
    _kube: Kube | None = field(default=None, repr=False)

    def access(self) -> KubeAccess:
        """Get the kubeconfig for this cluster, once.

        Raises:
            AccessError: The cloud refuses it.
            CloudError: The cluster is not there.
        """
        if self._access is None:
            self._access = self.cloud.kube_access()
        return self._access

    def kube(self) -> Kube:
        """Connect to the cluster's Kubernetes API, once; the first call shows whether it can be reached."""
        if self._kube is None:
            from gpukube.cluster.kube import connect_kube  # noqa: PLC0415 - its client is not loaded to validate a spec

            self._kube = connect_kube(self.access(), self.settings.kube_timeout_s)
        return self._kube

    def renew(self) -> None:
        """Forget the kubeconfig, whose token may have run out during a long wait."""
        if self._kube is not None:
            self._kube.close()
        self._access = self._kube = None

    def close(self) -> None:
        """Close all connections."""
        if self._kube is not None:
            self._kube.close()
        self.cloud.close()


@contextmanager
def open_sessions(clusters: Iterable[ClusterRef], settings: Settings) -> Iterator[dict[str, Session]]:
    """Open a session per cluster, by key, and close them all afterwards.

    Raises:
        MissingExtra: A provider or its SDK is not installed.
    """
    sessions: dict[str, Session] = {}
    try:
        for cluster in clusters:
            provider = load_provider(cluster.provider)
            sessions[cluster.key] = Session(cluster, provider, provider.connect(cluster, settings), settings)
        yield sessions
    finally:
        for session in sessions.values():
            session.close()
