"""ClusterManager over HTTP, in protobuf's JSON form.

In scope: mapping paths, queries, and bodies to calls of the service, and results to responses. Out of scope: rules and
state.

gcloud requests enums by name, the Python client (`$alt=json;enum-encoding=int`) as numbers; a body may contain either.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from google.protobuf import json_format  # type: ignore[import-untyped] # ships no types
from starlette.requests import Request
from starlette.responses import Response

from gpukube_sandbox.gke.transports.calling import answer_call
from gpukube_sandbox.gke.wire.answers import GoogleError, Json, bad
from gpukube_sandbox.gke.wire.calls import Call, find_call
from gpukube_sandbox.gke.wire.tokens import check_authorization
from gpukube_sandbox.gke.wire.violations import check_fields, check_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.types import Receive, Scope, Send

    from gpukube_sandbox.gke.service import GkeService


class RestApp:
    """The ASGI application.

    Args:
        service: Returns the current service, which a reset may replace.
    """

    def __init__(self, service: Callable[[], GkeService]) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except GoogleError as error:
            response = _json(error.body(), error.status)
        else:
            response = _json(answer, 200)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Json:
        check_authorization(request.headers.get("authorization"), self._service().secret)
        call, name = find_call(request.method, request.url.path)
        message = _read(call, name, request.query_params, await request.body())
        try:
            answer = answer_call(call, self._service(), message)
        except GoogleError as error:
            # GKE adds this to each of its errors (pulumi/pulumi-gcp#1510).
            error.details.append(
                {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": f"0x{secrets.token_hex(8)}"}
            )
            raise
        return _as_json(answer, numbers="enum-encoding=int" in request.query_params.get("$alt", ""))


def _read(call: Call, name: str, query: Iterable[str], body: bytes) -> object:
    """Return the request of a call; a name in the path takes precedence over one in the body.

    Raises:
        GoogleError: 400 for an unknown parameter, invalid JSON, an unknown field, or an invalid value.
    """
    message = call.request.pb()()  # type: ignore[attr-defined] # proto-plus classes have no common typed base
    check_query(query, None if call.body else message.DESCRIPTOR)
    if call.body and body:
        sent = _object(body)
        check_fields(sent, message.DESCRIPTOR)
        try:
            json_format.ParseDict(sent, message)
        except json_format.ParseError as error:
            raise bad(f"Invalid JSON payload received. {error}") from error
    setattr(message, call.field, name)
    request: object = call.request.wrap(message)  # type: ignore[attr-defined] # as above
    return request


def _object(body: bytes) -> Json:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise bad(f"Invalid JSON payload received. {error}") from error
    if not isinstance(found, dict):
        raise bad("Invalid JSON payload received. Root element must be a message.")
    return found


def request_json(message: object) -> Json:
    """Return a message in the form of the log."""
    return _as_json(message, numbers=False)


def _as_json(message: object, *, numbers: bool) -> Json:
    pb = getattr(type(message), "pb", None)  # an Empty is a bare message
    raw = pb(message) if pb else message
    found: Json = json_format.MessageToDict(raw, use_integers_for_enums=numbers)
    return found


def _json(body: Json, status: int) -> Response:
    return Response(json.dumps(body), status, media_type="application/json; charset=UTF-8")
