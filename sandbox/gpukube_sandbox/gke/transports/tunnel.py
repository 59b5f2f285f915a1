"""The gRPC port: a listener that is there from the start, and a gRPC server behind it that starts when it is needed.

In scope: passing bytes between the two, and cutting one connection. Out of scope: anything of gRPC.

gRPC has sockets of its own, which nothing can reset from outside; of the connections that pass here, each can be. It
also lets the port be known, and others use the sandbox, before 400 ms of imports are paid for. The host that a call
names is not checked here, as it is on the other ports: no browser speaks HTTP/2 without TLS, and each call needs the
token.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

_CHUNK = 65536


class Tunnel:
    """Connections to a server that is started by the first of them.

    Args:
        backend: Starts the server if it does not run, and gives its port; 0 when it cannot.
    """

    def __init__(self, backend: Callable[[], Awaitable[int]]) -> None:
        self._backend = backend
        self._outside: dict[int, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._pass, sock=listener)

    async def stop(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self, peer: str) -> None:
        """Reset the connection that the server behind knows as "ipv4:127.0.0.1:40000"."""
        writer = self._outside.get(int(peer.rpartition(":")[2]))
        if writer is not None:
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            port = await self._backend()
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            own = inner_writer.get_extra_info("sockname")[1]
            self._outside[own] = writer
            try:
                await _both(_copy(reader, inner_writer), _copy(inner_reader, writer))
            finally:
                self._outside.pop(own, None)
                inner_writer.close()
        writer.close()


async def _both(*ways: Awaitable[None]) -> None:
    """Pass bytes both ways until either side is gone."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
