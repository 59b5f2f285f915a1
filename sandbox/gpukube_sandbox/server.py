"""The background process: ports, applications, event loop, shutdown.

In scope: binding, wiring, serving, stopping. Out of scope: starting the process (`daemon`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import socket
import time
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from gpukube_sandbox import __version__
from gpukube_sandbox.aks import permissions as of_azure
from gpukube_sandbox.aks.identity import identity_routes
from gpukube_sandbox.aks.routes import ArmApp
from gpukube_sandbox.control import control_routes
from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.eks.permissions import AwsPermissions
from gpukube_sandbox.eks.routes import AwsApp, worded_fault
from gpukube_sandbox.gateway import KubeGateway
from gpukube_sandbox.gateway import worded_fault as worded_kube
from gpukube_sandbox.gke import permissions as of_google
from gpukube_sandbox.gke.wire.worded import as_google
from gpukube_sandbox.guard import refuse_non_loopback
from gpukube_sandbox.kube.repository import repository_routes
from gpukube_sandbox.state import (
    CLIENT_FILES,
    SandboxInfo,
    hold_life_lock,
    record_seen,
    remove_credentials,
    remove_info,
    save_clusters,
    save_info,
)
from gpukube_sandbox.tls import TlsFiles, make_tls
from gpukube_sandbox.traffic import Gate, TransportKeeper, Watched, only_for_loopback
from gpukube_sandbox.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HOST = "127.0.0.1"
_KEEP_ALIVE_S = 600  # longer than any client keeps an idle connection, so that none is closed while in use
_IDLE_CHECK_S = 5.0
_FIRST_CALL_S = 60.0
"""Minimum wait for the first request: the starter calls immediately, unless the machine stalls."""


def serve(state_dir: Path, speed: float, idle_timeout_s: float = 0.0) -> int:
    """Serve until stopped.

    Args:
        state_dir: An existing directory, used only by this sandbox.
        speed: Sandbox seconds per wall second.
        idle_timeout_s: Wall seconds without a request after which it stops; 0 = never. It waits at least one minute for
            the first request.

    Returns:
        Exit code: 0, or 1 if another process serves from this directory.
    """
    lock = hold_life_lock(state_dir)
    if lock is None:
        return 1
    refuse_non_loopback()
    try:
        asyncio.run(_serve(state_dir, speed, idle_timeout_s))
    finally:
        remove_info(state_dir)
        remove_credentials(state_dir)
        os.close(lock)
    return 0


async def _serve(state_dir: Path, speed: float, idle_timeout_s: float) -> None:
    tls = make_tls(state_dir)
    arm, arm_tls, kube, aws, gke, gke_grpc = (_listen() for _ in range(6))
    ports = {"arm": arm, "arm_tls": arm_tls, "kube": kube, "aws": aws, "gke": gke, "gke_grpc": gke_grpc}
    info = replace(_describe(state_dir, speed, tls, ports), idle_timeout_s=idle_timeout_s)
    world = World(speed, tls.ca.read_bytes(), info.secret)
    world.kube_base = info.kube_url
    stopping = asyncio.Event()
    charts = urlsplit(info.charts_url).path
    own = control_routes(world, info.control_token, stopping.set, partial(save_clusters, state_dir))
    plain = _front(world, own, charts)
    secure = _front(world, [], charts)
    gateway = Watched(KubeGateway(world), "kube", world.log, world.faults, worded_kube)
    needs = AwsPermissions(world.eks)
    gate = Gate(world.permits, needs.needs, needs.answer)
    amazon = Watched(AwsApp(world.eks), "aws", world.log, world.faults, worded_fault, gate=gate)
    gate = Gate(world.permits, of_google.needs, of_google.answer)
    google = Watched(world.gke.rest, "gke", world.log, world.faults, as_google, gate=gate)
    servers = [
        _Server(plain, None),
        _Server(secure, tls),
        _Server(gateway, tls, ws="wsproto"),
        _Server(amazon, None),
        _Server(google, None),
    ]
    tasks = [
        asyncio.create_task(server.serve(sockets=[listener]))
        for server, listener in zip(servers, (arm, arm_tls, kube, aws, gke), strict=True)
    ]
    world.gke.prepare(state_dir / CLIENT_FILES, info.gke_url)
    await world.gke.tunnel.start(gke_grpc)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    gc.freeze()  # imported objects stay, so exclude them from garbage collection
    save_info(info)  # the sockets already listen: a connection before uvicorn runs waits a moment
    await _wait_for_end(stopping, world, idle_timeout_s, partial(record_seen, state_dir))
    remove_info(state_dir)
    world.faults.clear()
    await world.gke.stop()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)
    await world.reset()


def _front(world: World, own: list[Route], charts_path: str) -> ASGIApp:
    """Return the application of the ARM port: ARM, token endpoints, charts, and over http the control API."""
    gate = Gate(world.permits, of_azure.needs, of_azure.answer)
    arm = Watched(ArmApp(world.aks, world.secret), "arm", world.log, world.faults, gate=gate)
    charts = Watched(Starlette(routes=[repository_routes("")]), "charts", world.log, world.faults)
    return Starlette(routes=[*own, Mount(charts_path, charts), *identity_routes(world.secret), Mount("/", arm)])


def _listen() -> socket.socket:
    # asyncio disables Nagle's algorithm (40 ms per response) only if the protocol is specified.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((_HOST, 0))
    listener.listen(512)
    listener.setblocking(False)  # noqa: FBT003 - positional-only in the standard library
    return listener


def _describe(state_dir: Path, speed: float, tls: TlsFiles, ports: dict[str, socket.socket]) -> SandboxInfo:
    port = {name: listener.getsockname()[1] for name, listener in ports.items()}
    plain = f"http://{_HOST}:{port['arm']}"
    return SandboxInfo(
        pid=os.getpid(),
        state_dir=str(state_dir),
        arm_url=plain,
        arm_tls_url=f"https://{_HOST}:{port['arm_tls']}",
        kube_url=f"https://{_HOST}:{port['kube']}",
        charts_url=f"{plain}/charts/{secrets.token_hex(8)}",  # Helm sends no token
        ca_path=str(tls.ca),
        control_url=f"{plain}/_sandbox",
        control_token=secrets.token_urlsafe(32),
        speed=speed,
        started=time.time(),
        sandbox_id=secrets.token_hex(8),
        aws_url=f"http://{_HOST}:{port['aws']}",
        gke_url=f"http://{_HOST}:{port['gke']}",
        gke_grpc=f"{_HOST}:{port['gke_grpc']}",
        version=__version__,
        secret=new_secret(),
    )


async def _wait_for_end(
    stopping: asyncio.Event, world: World, idle_timeout_s: float, record_seen: Callable[[], None]
) -> None:
    began = world.log.last_seen = time.monotonic()
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), min(idle_timeout_s or _IDLE_CHECK_S, _IDLE_CHECK_S))
        record_seen()
        seen = world.log.last_seen
        patience_s = max(idle_timeout_s, _FIRST_CALL_S) if seen == began else idle_timeout_s
        if idle_timeout_s and time.monotonic() - seen > patience_s:
            return


def _dated(app: ASGIApp) -> ASGIApp:
    """Set the Date header to wall-clock time, unless the response has the sandbox's date."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if all(name.lower() != b"date" for name, _ in headers):
                    message = {**message, "headers": [*headers, (b"date", formatdate(usegmt=True).encode())]}
            await send(message)

        await app(scope, receive, dated)

    return serve


class _Server(uvicorn.Server):
    """A uvicorn server that does not handle signals: several share this loop."""

    def __init__(self, app: ASGIApp, tls: TlsFiles | None, ws: Literal["none", "wsproto"] = "none") -> None:
        config = uvicorn.Config(
            _dated(only_for_loopback(app)),
            http=TransportKeeper,
            ws=ws,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
        )
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture no signals."""
        yield
