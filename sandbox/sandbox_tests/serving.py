"""A server on loopback in a thread, for clients that are processes or that block.

In scope: serving. Out of scope: what is served, and fixtures.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.applications import Starlette

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.tls import TlsFiles


@contextmanager
def serving(
    app: Starlette, tls: TlsFiles | None = None, cluster: KubeCluster | None = None
) -> Iterator[tuple[str, asyncio.AbstractEventLoop]]:
    """Serve an application from a thread, and run the cluster behind it; gives its address and its event loop."""
    listener = socket.create_server(("127.0.0.1", 0))
    # Accepted sockets inherit it; head and body of an answer are written apart, which costs 40 ms each otherwise.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        log_level="critical",
        lifespan="off",
        date_header=False,  # the emulated clusters write their own
        timeout_graceful_shutdown=0,
        timeout_keep_alive=600,  # longer than any client's pool keeps a connection: none is closed under its hands
        ws="wsproto",
    )
    if tls:
        config.ssl_certfile, config.ssl_keyfile = tls.certificate, str(tls.key)
    server = _Prompt(config)
    loops: list[asyncio.AbstractEventLoop] = []
    ready = threading.Event()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        if cluster:
            await cluster.start()
        ready.set()
        await server.serve(sockets=[listener])
        if cluster:
            await cluster.stop()
        await hang_up()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}", loops[0]
    finally:
        loops[0].call_soon_threadsafe(server.over.set)
        thread.join(PATIENCE_S)
        listener.close()
    assert not thread.is_alive()


class _Prompt(uvicorn.Server):
    """Ends when it is told to: uvicorn looks only ten times a second, and waits a tenth more for farewells."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.over = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for task in self.server_state.tasks:
            task.cancel()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)


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
