"""Entry point of the emulated GKE, which loads the service at the first use.

In scope: loading it, and both transports. Out of scope: the service itself. This module imports no Google library:
google-cloud-container is needed only if GKE is used, and takes 400 ms to load.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse

from gpukube_sandbox.gke.advice import ADVICE, answer_advice
from gpukube_sandbox.gke.market import answer_market, is_market, is_quota
from gpukube_sandbox.gke.transports.contexts import add_context
from gpukube_sandbox.gke.transports.tunnel import Tunnel
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.tokens import check_authorization, is_asserted, write_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from starlette.types import ASGIApp, Receive, Scope, Send

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.faults import FaultBook
    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.service import GkeService
    from gpukube_sandbox.gke.transports.rpc import RpcServer
    from gpukube_sandbox.gke.wire.answers import Json
    from gpukube_sandbox.permits import PermitBook
    from gpukube_sandbox.stock import Stock
    from gpukube_sandbox.traffic import RequestLog

_TOKEN_PATH = "/token"  # noqa: S105 - a path
_LIFETIME_S = 3600
_COMPUTE = re.compile(r"/compute/v1/projects/([^/]+)")


class GkeDoor:
    """GKE of one sandbox.

    Args:
        clock: The sandbox's time.
        faults: Injected faults.
        stock: Available machines.
        log: Log of requests.
        permits: Allowed permissions, for gRPC calls.
        secret: Access token.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of one sandbox
        self, clock: Clock, faults: FaultBook, stock: Stock, log: RequestLog, permits: PermitBook, secret: str
    ) -> None:
        self._permits = permits
        self._secret = secret
        self._key: RSAPublicKey | None = None
        self._clock = clock
        self._faults = faults
        self._stock = stock
        self._log = log
        self._service: GkeService | None = None
        self._rest: ASGIApp | None = None
        self._rpc: RpcServer | None = None
        self._rpc_port = 0
        self._starting = asyncio.Lock()
        self._credentials: tuple[Path, str] | None = None
        self.tunnel = Tunnel(self._start_rpc)

    def service(self) -> GkeService:
        """Return the service, loading it if needed.

        Raises:
            ModuleNotFoundError: google-cloud-container is not installed.
        """
        if self._service is None:
            try:
                from gpukube_sandbox.gke.service import GkeService  # noqa: PLC0415 - loads google-cloud-container
            except ImportError as error:
                message = f"{error.name} is not installed; GKE in the sandbox needs google-cloud-container"
                raise ModuleNotFoundError(message, name=error.name) from error
            self._service = GkeService(self._clock, self._faults, self._stock, self._secret)
            if self._credentials:
                self._key = write_credentials(*self._credentials, self._secret)
        return self._service

    @property
    def is_loaded(self) -> bool:
        """Return whether the service is loaded."""
        return self._service is not None

    @property
    def clusters(self) -> dict[str, Cluster]:
        """Return the existing clusters by key, without loading the service if there are none."""
        return self._service.clusters if self._service else {}

    async def status(self) -> list[Json]:
        """Return all clusters in the form of the control API."""
        if not self.clusters:
            return []
        from gpukube_sandbox.gke.steering import cluster_status  # noqa: PLC0415 - loads google-cloud-container

        return [await cluster_status(cluster) for cluster in self.clusters.values()]

    def named(self, name: str) -> list[Cluster]:
        """Return clusters by name, full resource name, or gpukube's address; all for ""."""
        return [one for one in self.clusters.values() if name in {"", one.name, one.id, one.address}]

    def projects(self) -> list[str]:
        """Return the projects with resources here."""
        return sorted(self._service.projects()) if self._service else []

    def add_contexts(self, document: Json) -> None:
        """Add a context per cluster to a kubeconfig, named as by `gcloud container clusters get-credentials`."""
        for cluster in self.clusters.values():
            add_context(document, cluster)

    async def tamper(self, cluster: Cluster, pool: str, changes: Json, *, delete: bool) -> None:
        """Change a pool from outside GKE (`steering.tamper_pool`)."""
        from gpukube_sandbox.gke.steering import tamper_pool  # noqa: PLC0415 - loads google-cloud-container

        await tamper_pool(self.service(), cluster, pool, changes, delete=delete)

    def set_pace(self, pace: Mapping[str, float]) -> None:
        """Set durations of `lifecycle.Pace`, in sandbox seconds.

        Raises:
            ValueError: Unknown duration.
        """
        for name, seconds in pace.items():
            if not hasattr(self.service().pace, name):
                message = f"no pace {name!r}"
                raise ValueError(message)
            setattr(self.service().pace, name, seconds)

    async def reset(self) -> None:
        """Delete clusters and operations."""
        if self._service is not None:
            await self._service.reset()

    async def stop(self) -> None:
        """Close the gRPC port."""
        await self.tunnel.stop()
        if self._rpc is not None:
            await self._rpc.stop()

    async def _start_rpc(self) -> int:
        async with self._starting:
            if self._rpc is None:
                try:
                    self.service()
                except ModuleNotFoundError as error:
                    raise ConnectionRefusedError(str(error)) from error
                from gpukube_sandbox.gke.transports.rpc import RpcServer  # noqa: PLC0415 - loads grpc

                self._rpc = RpcServer(self.service, self._log, self._faults, self._permits, self.tunnel.cut)
                self._rpc_port = await self._rpc.start()
        return self._rpc_port

    async def rest(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle REST calls (ASGI), and the endpoint that exchanges an assertion for the token."""
        if scope["path"] == _TOKEN_PATH:
            await self._answer_token(scope, receive, send)
            return
        if is_quota(scope["path"]):
            await self._answer_quotas(scope, receive, send)
            return
        if is_market(scope["path"]):
            await self._answer_market(scope, receive, send)
            return
        if self._rest is None:
            try:
                self.service()
            except ModuleNotFoundError as error:
                response = GoogleError("UNIMPLEMENTED", str(error))
                await JSONResponse(response.body(), response.status)(scope, receive, send)
                return
            from gpukube_sandbox.gke.transports.rest import RestApp  # noqa: PLC0415 - loads google-cloud-container

            self._rest = RestApp(self.service)
        await self._rest(scope, receive, send)

    async def _answer_quotas(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer requests to other services for quotas."""
        await self._answer(scope, receive, send, self._quotas)

    def _quotas(self, request: Request, _: bytes) -> Json:
        return self.service().quotas.answer(request.url.path, request.query_params, self._clock.now())

    async def _answer_market(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer requests to other services for machines, reservations, advice, and prices."""
        await self._answer(scope, receive, send, self._market)

    def _market(self, request: Request, body: bytes) -> Json:
        path = request.url.path
        if request.method == "POST" and ADVICE.fullmatch(path):
            return answer_advice(path, body, functools.partial(self._stock.free, "gke"), self._clock.now())
        reserved: Mapping[str, list[Json]] = {}
        found = _COMPUTE.match(path)
        if found and self._service is not None and "reservations" in path:
            from gpukube_sandbox.gke.reservations import reservations_of  # noqa: PLC0415 - loads google-cloud-container

            reserved = reservations_of(found[1], self._service.things, self._service.clusters, self._stock)
        return answer_market(request.method, path, request.query_params, reserved)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, answer: Callable[[Request, bytes], Json]
    ) -> None:
        request = Request(scope, receive)
        sent = await request.body()
        try:
            check_authorization(request.headers.get("authorization"), self._secret)
            found = _COMPUTE.match(request.url.path)
            if found and self._service is not None and not self._service.has_project(found[1]):
                raise GoogleError("NOT_FOUND", f"The resource 'projects/{found[1]}' was not found")  # noqa: TRY301
            body, status = answer(request, sent), 200
        except GoogleError as error:
            body, status = error.body(), error.status
        await JSONResponse(body, status)(scope, receive, send)

    def prepare(self, directory: Path, url: str) -> None:
        """Prepare the credentials file, which is written at the first use: creating its key takes time."""
        self._credentials = (directory, url + _TOKEN_PATH)

    async def _answer_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Exchange an assertion signed with the file's own key for the token."""
        form = parse_qs((await Request(scope, receive).body()).decode("latin-1"))
        assertion = form.get("assertion", [""])[0]
        if self._key is None or not is_asserted(assertion, self._key):
            invalid: Json = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            await JSONResponse(invalid, 400)(scope, receive, send)
            return
        body: Json = {"access_token": self._secret, "expires_in": _LIFETIME_S, "token_type": "Bearer"}
        await JSONResponse(body)(scope, receive, send)
