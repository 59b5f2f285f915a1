"""A cluster served on loopback by a thread, for clients that are processes or block."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest
import uvicorn

from gpukube.sandbox.clock import ScaledClock
from gpukube.sandbox.kube.api import make_app
from gpukube.sandbox.kube.cluster import KubeCluster
from gpukube.sandbox.kube.repository import VERSIONS, archive_name, chart_archive
from gpukube.sandbox.tls import make_tls
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

    from starlette.applications import Starlette

T = TypeVar("T")

TOKEN = "sandbox-token"


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


async def hang_up() -> None:
    """Cut every connection of the running loop, before it closes.

    One that is left, because a client had not hung up or TLS was still saying goodbye, would warn when it is collected,
    and so fail whichever test runs then.
    """
    loop = asyncio.get_running_loop()
    for transport in list(loop._transports.values()):  # type: ignore[attr-defined]  # nothing public lists them
        transport.abort()
    for _ in range(5):
        await asyncio.sleep(0)


@contextmanager
def serve(cluster: KubeCluster, app: Starlette, directory: Path, *, secure: bool = True) -> Iterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    # Accepted sockets inherit it; head and body of an answer are written apart, which costs 40 ms each otherwise.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = make_tls(directory)
    config = uvicorn.Config(
        app,
        log_level="critical",
        lifespan="off",
        timeout_graceful_shutdown=0,
        timeout_keep_alive=600,  # longer than any client's pool keeps a connection: none is closed under its hands
        ws="none",
        ssl_certfile=tls.certificate if secure else None,
        ssl_keyfile=str(tls.key) if secure else None,
    )
    server = uvicorn.Server(config)
    ready = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await cluster.start()
        ready.set()
        await server.serve(sockets=[listener])
        await cluster.stop()
        await hang_up()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield Served(
            cluster, f"http{'s' * secure}://127.0.0.1:{listener.getsockname()[1]}", tls.ca.read_text(), loops[0]
        )
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listener.close()
    assert not thread.is_alive()
    assert cluster.failures == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    cluster = KubeCluster("train", ScaledClock(200.0), TOKEN)
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
