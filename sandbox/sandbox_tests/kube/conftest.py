"""A cluster served on loopback by a thread, for clients that are processes or block."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.repository import VERSIONS, archive_name, chart_archive
from gpukube_sandbox.tls import make_tls
from sandbox_tests.serving import serving
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from starlette.applications import Starlette

T = TypeVar("T")

TOKEN = new_secret()


@dataclass
class Served:
    """A cluster whose API answers at `url`; its event loop runs in another thread."""

    cluster: KubeCluster
    url: str
    ca_pem: str
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def kubeconfig(self) -> str:
        return self.cluster.kubeconfig(self.url, self.ca_pem)


@contextmanager
def serve(cluster: KubeCluster, app: Starlette, directory: Path, *, secure: bool = True) -> Iterator[Served]:
    tls = make_tls(directory)
    with serving(app, tls if secure else None, cluster) as (url, loop):
        yield Served(cluster, url, tls.ca.read_text(), loop)
    assert cluster.failures == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    cluster = KubeCluster("train", ScaledClock(600.0), TOKEN)
    with serve(cluster, make_app(cluster), tmp_path) as running:
        yield running


@pytest.fixture
def kubeconfig(served: Served, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(served.kubeconfig())
    path.chmod(0o600)
    return path


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    path = tmp_path / archive_name(VERSIONS[0])
    path.write_bytes(chart_archive(VERSIONS[0]))
    return path
