"""Middleware for all requests to emulated services: Host check, log, faults, permissions.

In scope: the ASGI wrapper, the request log, and the protocol that allows a fault to cut a connection. Out of scope:
responses of services.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gpukube_sandbox.guard import is_loopback

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.faults import Fault, FaultBook
    from gpukube_sandbox.permits import Need, PermitBook

_BODY_LIMIT = 256 * 1024
_SHOWN_HEADERS = frozenset({"if-match", "if-none-match", "content-type", "user-agent", "x-amz-target"})
_KEPT_REQUESTS = 20_000
_KEPT_BODIES = frozenset({"arm", "aws", "gke"})
_FORM = "application/x-www-form-urlencoded"

_Address = tuple[object, object]
_transports: dict[_Address, asyncio.Transport] = {}


class TransportKeeper(HttpToolsProtocol):
    """uvicorn's protocol, which also records the transport of every connection by its two addresses."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as declared in the base class
        """Record the transport."""
        super().connection_made(transport)
        _transports[_key(self.server, self.client)] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the transport."""
        _transports.pop(_key(self.server, self.client), None)
        super().connection_lost(exc)


def _key(server: object, client: object) -> _Address:
    return (
        tuple(server) if isinstance(server, list | tuple) else server,
        tuple(client) if isinstance(client, list | tuple) else client,
    )


def only_for_loopback(app: ASGIApp) -> ASGIApp:
    """Refuse requests for another host.

    This prevents DNS rebinding: a web page whose name resolves to 127.0.0.1 after loading can send requests to these
    ports and read the responses, but its requests contain the page's host.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or _names_loopback(scope):
            await app(scope, receive, send)
            return
        answer = {"error": "the sandbox only responds to 127.0.0.1 and localhost"}
        await JSONResponse(answer, HTTPStatus.MISDIRECTED_REQUEST)(scope, receive, send)

    return checked


def _names_loopback(scope: Scope) -> bool:
    named = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    try:
        host = urlsplit(f"//{named}").hostname
    except ValueError:
        return False
    return bool(host) and is_loopback(host)


@dataclass(slots=True)
class LoggedRequest:
    """One request in the log, without tokens and response bodies.

    Attributes:
        status: HTTP status; 0 until answered, or if the connection was cut.
        body: Body of a request to ARM, AWS, or GKE (JSON or form); of other bodies, only the digest.
        fault: Actions of the injected faults, joined by "+".
        seconds: Wall seconds until the response, by a monotonic clock; 0 while it is running.
    """

    index: int
    service: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    at: float
    status: int = 0
    body: object = None
    digest: str = ""
    fault: str = ""
    seconds: float = 0.0

    def wire(self) -> Json:
        """Return the request for the control API."""
        return {
            "index": self.index,
            "service": self.service,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": self.headers,
            "at": self.at,
            "seconds": self.seconds,
            "status": self.status,
            "body": self.body,
            "bodyDigest": self.digest,
            "fault": self.fault,
        }


@dataclass(slots=True)
class RequestLog:
    """The newest 20,000 requests since the last reset.

    Attributes:
        last_seen: Wall clock of the last request, including control calls, for the idle shutdown.
    """

    requests: list[LoggedRequest] = field(default_factory=list)
    count: int = 0
    last_seen: float = field(default_factory=time.monotonic)

    def add(self, service: str, scope: Scope) -> LoggedRequest:
        """Add a new request."""
        self.count += 1
        self.touch()
        query = {k: v for k, v in parse_qsl(scope["query_string"].decode(), keep_blank_values=True) if k != "t"}
        headers = {k.decode(): v.decode("latin-1") for k, v in scope["headers"] if k.decode() in _SHOWN_HEADERS}
        entry = LoggedRequest(self.count, service, scope["method"], scope["path"], query, headers, time.time())
        self.requests.append(entry)
        del self.requests[:-_KEPT_REQUESTS]
        return entry

    def touch(self) -> None:
        """Postpone the idle shutdown."""
        self.last_seen = time.monotonic()

    def clear(self) -> None:
        """Remove all requests and restart counting."""
        self.requests.clear()
        self.count = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """The permissions that requests to a service need, and its response if one is missing.

    Attributes:
        needs: Returns what a request needs, from its scope and body.
        answer: Returns the refusal for one need.
    """

    book: PermitBook
    needs: Callable[[Scope, bytes], Sequence[Need]]
    answer: Callable[[Need, Scope], ASGIApp]

    def refusal(self, scope: Scope, body: bytes) -> ASGIApp | None:
        """Record what a request needs; return the refusal if a permission is denied."""
        need = self.book.missing(self.needs(scope, body), scope["headers"])
        return self.answer(need, scope) if need else None


class Watched:
    """An ASGI application with log, faults, and permissions.

    Args:
        app: The service.
        service: Its name in log and faults.
        log: The request log.
        faults: The active faults.
        worded: Formats a fault of action "status" for the service: returns headers and content for the fault, the
            request, and its body.
        gate: Permissions of requests; None for a service that authorizes requests itself or needs no permissions.
    """

    def __init__(  # noqa: PLR0913 - everything in front of a service
        self,
        app: ASGIApp,
        service: str,
        log: RequestLog,
        faults: FaultBook,
        worded: Callable[[Fault, Scope, bytes], tuple[dict[str, str], bytes]] | None = None,
        *,
        gate: Gate | None = None,
    ) -> None:
        self._app = app
        self._gate = gate
        self._service = service
        self._log = log
        self._faults = faults
        self._worded = worded or _as_json

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the service, unless a fault is injected."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        entry, began = self._log.add(self._service, scope), time.monotonic()
        received = await _read_body(receive)
        _note_body(entry, received.body)
        target = f"{scope['path']}?{scope['query_string'].decode()}{_action_of(scope, received.body)}"
        faults = self._faults.for_request(self._service, scope["method"], target)
        answer = _Sender(send, entry)
        entry.fault = "+".join(fault.action for fault in faults)
        refusal = self._gate.refusal(scope, received.body) if self._gate else None
        await asyncio.sleep(sum(fault.seconds for fault in faults if fault.action == "delay"))
        if faults and faults[-1].action != "delay":
            await self._strike(faults[-1], scope, received, answer)
        else:
            await (refusal or self._app)(scope, received, answer.pass_on)
        entry.seconds = time.monotonic() - began

    async def _strike(self, fault: Fault, scope: Scope, received: _Received, answer: _Sender) -> None:
        match fault.action:
            case "status":
                await _send_status(fault, answer, *self._worded(fault, scope, received.body))
            case "drop-before":
                await _cut(scope)
            case "drop-after":
                with contextlib.suppress(_Answered):
                    await self._app(scope, received, answer.stop_at_start)
                await _cut(scope)
            case "hang-after":
                answer.before_start = lambda: _wait_for_release(fault, received)
                await self._app(scope, received, answer.pass_on)
            case "hang":
                await _wait_for_release(fault, received, linger_s=0.01)
                if received.is_connected:
                    await self._app(scope, received, answer.pass_on)
            case "delay" | "operation" | "stock-out" | "quota" | "unlisted":
                message = f"{fault.action} is not a fault of requests"
                raise AssertionError(message)


class _Received:
    """A request body that was read completely and can be read again, followed by the client's disconnect."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self.body = body
        self.is_connected = True
        self._receive = receive
        self._given = False

    async def __call__(self) -> Message:
        """Return the body first, then further messages."""
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        return await self._receive()

    async def wait_for_hang_up(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_connected = False


class _Answered(Exception):
    """The service has started its response, so the work is done; this also ends streams."""


class _Sender:
    """Sends the response and records its status; can delay the response before it starts, or stop it there."""

    def __init__(self, send: Send, entry: LoggedRequest) -> None:
        self._send = send
        self._entry = entry
        self.before_start: Callable[[], Awaitable[None]] | None = None

    async def pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self.before_start is not None:
                await self.before_start()
            self._entry.status = message["status"]
        await self._send(message)

    async def stop_at_start(self, message: Message) -> None:
        del message
        raise _Answered


async def _read_body(receive: Receive) -> _Received:
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return _Received(b"".join(chunks), receive)


def _note_body(entry: LoggedRequest, body: bytes) -> None:
    if not body:
        return
    entry.digest = hashlib.sha256(body).hexdigest()
    if entry.service not in _KEPT_BODIES or len(body) > _BODY_LIMIT:
        return
    if entry.headers.get("content-type", "").startswith(_FORM):
        entry.body = dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
        return
    try:
        entry.body = json.loads(body)
    except ValueError:
        entry.body = None


def _action_of(scope: Scope, body: bytes) -> str:
    """Return the action in a form or header (AWS) as a query, so that patterns can match it."""
    headers = dict(scope["headers"])
    is_form = headers.get(b"content-type", b"").startswith(_FORM.encode())
    action = dict(parse_qsl(body.decode(errors="replace"))).get("Action") if is_form else None
    action = action or headers.get(b"x-amz-target", b"").decode(errors="replace").rpartition(".")[2]
    return f"Action={action}" if action else ""


def _as_json(fault: Fault, scope: Scope, body: bytes) -> tuple[dict[str, str], bytes]:
    del scope, body
    return {"content-type": "application/json"}, json.dumps(fault.answer()).encode()


async def _send_status(fault: Fault, answer: _Sender, worded: dict[str, str], content: bytes) -> None:
    headers = {**worded, "content-length": str(len(content)), **fault.headers}
    raw = [(name.lower().encode(), str(value).encode()) for name, value in headers.items()]
    await answer.pass_on({"type": "http.response.start", "status": fault.status, "headers": raw})
    await answer.pass_on({"type": "http.response.body", "body": content})


async def _cut(scope: Scope) -> None:
    """Reset the connection without a response."""
    transport = _transports.get(_key(scope.get("server"), scope.get("client")))
    if transport is not None:
        transport.abort()
    await asyncio.sleep(0.01)  # let uvicorn notice the disconnect, so that it does not answer 500


async def _wait_for_release(fault: Fault, received: _Received, linger_s: float = 0.0) -> None:
    waits = [asyncio.ensure_future(fault.released.wait()), asyncio.ensure_future(received.wait_for_hang_up())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(linger_s)  # let uvicorn notice clients that gave up before the release
    for task in waits:
        task.cancel()
