"""Threads on one session while its credentials are renewed: nobody's client is closed, and nobody connects twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gpukube.core.values import Settings
from gpukube.engine.run.session import Session
from gpukube.errors import AccessError
from gpukube.testing.fakes import FakeProvider, FakeWorld
from sandbox_tests.waiting import PATIENCE_S
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from gpukube.core.values import KubeAccess
    from gpukube.provider import Cloud
    from tests.wire.cluster.conftest import Live

THREADS = 8
RENEWALS = 40


class Expiring:
    """A cloud whose kubeconfigs are refused after the first call with them: as tokens that have just run out."""

    def __init__(self, cloud: Cloud, live: Live) -> None:
        self._cloud = cloud
        self._live = live
        self.given = 0

    def kube_access(self) -> KubeAccess:
        """Every other kubeconfig is worth nothing."""
        self.given += 1
        return (
            self._live.access(token="expired") if self.given % 2 and self.given < 2 * RENEWALS else self._live.access()
        )

    def close(self) -> None:
        self._cloud.close()


def test_session_when_eight_threads_renew_it_then_no_foreign_exception_and_every_thread_ends_well(live: Live) -> None:
    provider = FakeProvider({CLUSTER.key: FakeWorld()})
    settings = Settings(kube_timeout_s=PATIENCE_S)
    cloud = Expiring(provider.connect(CLUSTER, settings), live)
    session = Session(CLUSTER, provider, cloud, settings)  # type: ignore[arg-type]  # what a session asks of a cloud
    start = threading.Barrier(THREADS)
    renewed = threading.Event()

    def work() -> int:
        looks = 0
        start.wait()
        while not renewed.is_set():
            kube = session.kube()
            try:
                assert kube.version()
                looks += 1
                session.renew(kube)  # as if the token had run out: the siblings are in the middle of their calls
            except AccessError:
                session.renew(kube)
            if cloud.given >= RENEWALS:
                renewed.set()
        return looks

    with ThreadPoolExecutor(THREADS) as threads:
        looks = [future.result() for future in [threads.submit(work) for _ in range(THREADS)]]
    session.close()
    assert sum(looks) > 0
    assert cloud.given >= RENEWALS


def test_session_when_threads_want_a_connection_at_once_then_the_cloud_is_asked_once(live: Live) -> None:
    provider = FakeProvider({CLUSTER.key: FakeWorld()})
    settings = Settings(kube_timeout_s=PATIENCE_S)
    cloud = Expiring(provider.connect(CLUSTER, settings), live)
    session = Session(CLUSTER, provider, cloud, settings)  # type: ignore[arg-type]  # what a session asks of a cloud
    start = threading.Barrier(THREADS)

    def connect() -> object:
        start.wait()
        return session.kube()

    with ThreadPoolExecutor(THREADS) as threads:
        found = {id(future.result()) for future in [threads.submit(connect) for _ in range(THREADS)]}
    session.close()
    assert (len(found), cloud.given) == (1, 1)
