"""The gRPC port: a listener that exists from the start, and a gRPC server behind it that starts at the first use.

In scope: forwarding bytes between the two, and cutting one connection. Out of scope: gRPC itself.

gRPC owns its sockets, and nothing outside can reset them; connections through this tunnel can be reset one by one. The
port is also known, and the rest of the sandbox usable, before the 400 ms of imports. Unlike on the other ports, the
host in a call is not checked: no browser supports HTTP/2 without TLS, and each call needs the token.
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
    """Forwards connections to a server that the first connection starts.

    Args:
        backend: Starts the server if it is not running, and returns its port; 0 if it cannot start.
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
        """Reset the connection that the server behind the tunnel sees as "ipv4:127.0.0.1:40000"."""
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
    """Forward bytes in both directions until either side closes."""
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
