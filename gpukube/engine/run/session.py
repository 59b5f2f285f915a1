"""One cluster during one run: its provider, its cloud connection, and its Kubernetes API.

A session is opened once per cluster in the starting thread and shared; opening makes no call. Results are kept, so that
plan, checks, and apply of one run see the same state.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube.cluster.helm import servers
from gpukube.cluster.kube.limits import UNLIMITED
from gpukube.engine.run.calls import BoundedCloud
from gpukube.engine.run.shared import Shared
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.limits import Caller
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import ClusterRef, KubeAccess, Settings
    from gpukube.engine.run.context import Run
    from gpukube.errors import GpukubeError
    from gpukube.provider import Cloud, Provider


@dataclass(slots=True)
class Session:
    """A cluster and its connections; safe to share between threads.

    Attributes:
        cluster: The cluster of the spec.
        provider: The provider's part without calls.
        cloud: The provider's part that makes calls.
        settings: How this run reaches clouds.
        calls: Makes the calls to the Kubernetes API.
        looks: Shared reads of the cluster while pools come up; an error of the cluster counts as a result.
    """

    cluster: ClusterRef
    provider: Provider
    cloud: Cloud
    settings: Settings
    _access: KubeAccess | None = field(default=None, repr=False)
    _kube: Kube | None = field(default=None, repr=False)
    calls: Caller = UNLIMITED
    looks: Shared[Snapshot | GpukubeError] = field(default_factory=Shared, init=False, repr=False)
    _retired: list[Kube] = field(default_factory=list, init=False, repr=False)
    # Reentrant: kube() calls access() while it holds the lock.
    _lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def access(self) -> KubeAccess:
        """Get the kubeconfig for this cluster, once.

        Raises:
            AccessError: The cloud denies access.
            CloudError: The cluster does not exist.
        """
        with self._lock:
            if self._access is None:
                self._access = self.cloud.kube_access()
            return self._access

    def kube(self) -> Kube:
        """Connect to the cluster's Kubernetes API, once; only the first call shows whether it can be reached."""
        with self._lock:
            if self._kube is None:
                from gpukube.cluster.kube.client import connect_kube  # noqa: PLC0415 - not loaded to validate a spec

                self._kube = connect_kube(self.access(), self.settings.kube_timeout_s, self.calls, self._renewed)
            return self._kube

    def _renewed(self) -> KubeAccess:
        """Get a new kubeconfig after its token was rejected."""
        access = self.cloud.kube_access()
        with self._lock:
            self._access = access
        return access

    def renew(self, refused: Kube | None) -> None:
        """Discard the kubeconfig, whose token may have expired during a long wait.

        Other threads may be in a call with the same client, or about to make one, so it stays open until the session is
        closed. A thread whose client another thread has already replaced changes nothing.

        Args:
            refused: The client whose credentials were rejected; None if there was none yet.
        """
        with self._lock:
            if refused is None or refused is not self._kube:
                return
            self._retired.append(refused)
            self._access = self._kube = None

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            clients = [*self._retired, *([self._kube] if self._kube else [])]
        for kube in clients:
            kube.close()
        self.cloud.close()


@contextmanager
def open_sessions(clusters: Iterable[ClusterRef], run: Run) -> Iterator[dict[str, Session]]:
    """Open a session per cluster, by key, and close all of them afterwards; their calls and Helm's end with the run.

    Raises:
        MissingExtra: A provider or its SDK is not installed.
    """
    sessions: dict[str, Session] = {}
    try:
        for cluster in clusters:
            provider = load_provider(cluster.provider)
            cloud = BoundedCloud(provider.connect(cluster, run.settings), cluster.key, provider.spec.title, run.calls)
            sessions[cluster.key] = Session(cluster, provider, cloud, run.settings, calls=run.calls)
        with servers.kept():
            yield sessions
    finally:
        for session in sessions.values():  # also if opening a later one failed
            session.close()
