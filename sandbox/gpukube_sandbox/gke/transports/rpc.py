"""ClusterManager over gRPC, with the log and the faults of its requests.

In scope: the handlers, and mapping faults to gRPC. Out of scope: the calls.

The log has the path and method of a call's REST form, so that one fault matches both.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Protocol

import grpc  # type: ignore[import-untyped] # ships no types
from google.protobuf import empty_pb2  # type: ignore[import-untyped] # ships no types

from gpukube_sandbox.gke.permissions import needs_of_call, permission_error
from gpukube_sandbox.gke.transports.calling import answer_call
from gpukube_sandbox.gke.transports.rest import request_json
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.calls import CALLS, SERVICE, Call
from gpukube_sandbox.gke.wire.tokens import check_authorization
from gpukube_sandbox.gke.wire.worded import fault_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gpukube_sandbox.faults import Fault, FaultBook
    from gpukube_sandbox.gke.service import GkeService
    from gpukube_sandbox.permits import PermitBook
    from gpukube_sandbox.traffic import LoggedRequest, RequestLog


class _Context(Protocol):
    """The used part of grpc.aio.ServicerContext."""

    def peer(self) -> str: ...
    def time_remaining(self) -> float | None: ...
    def invocation_metadata(self) -> Sequence[tuple[str, str]]: ...
    async def abort(self, code: grpc.StatusCode, details: str = "") -> None: ...


class RpcServer:
    """A gRPC server in the running event loop.

    Args:
        service: Returns the current service, which a reset may replace.
        log: Log of requests.
        faults: Injected faults.
        permits: Allowed permissions.
        cut: Resets the connection of a peer, "ipv4:127.0.0.1:40000".
    """

    def __init__(
        self,
        service: Callable[[], GkeService],
        log: RequestLog,
        faults: FaultBook,
        permits: PermitBook,
        cut: Callable[[str], None],
    ) -> None:
        self._permits = permits
        self._service = service
        self._log = log
        self._faults = faults
        self._cut = cut
        self._server = grpc.aio.server()
        handlers = {call.name: self._handler(call) for call in CALLS}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

    async def start(self) -> int:
        """Listen on a free loopback port; return the port."""
        port: int = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return port

    async def stop(self) -> None:
        """Stop, canceling running calls."""
        await self._server.stop(None)

    def _handler(self, call: Call) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(
            functools.partial(self._serve, call),
            request_deserializer=call.request.deserialize,  # type: ignore[attr-defined] # no common typed base
            response_serializer=_serialize,
        )

    async def _serve(self, call: Call, request: object, context: _Context) -> object:
        entry = self._note(call, request)
        target = f"{entry.path}?rpc={call.name}"
        faults = self._faults.for_request("gke", call.verb, target)
        entry.fault = "+".join(fault.action for fault in faults)
        try:
            await asyncio.sleep(sum(fault.seconds for fault in faults if fault.action == "delay"))
            answer = functools.partial(self._answer, call, request, context)
            other = next((fault for fault in faults if fault.action != "delay"), None)
            return await (self._strike(other, answer, context) if other else self._logged(entry, answer))
        except GoogleError as error:
            entry.status = error.status
            await context.abort(getattr(grpc.StatusCode, error.code), error.message)
            raise
        finally:
            entry.seconds = time.time() - entry.at

    def _note(self, call: Call, request: object) -> LoggedRequest:
        scope = {
            "query_string": f"rpc={call.name}".encode(),
            "headers": [(b"user-agent", b"grpc")],
            "method": call.verb,
            "path": call.path(request),
        }
        entry = self._log.add("gke", scope)
        entry.body = request_json(request) if call.body else None
        return entry

    @staticmethod
    async def _logged(entry: LoggedRequest, answer: Callable[[], Awaitable[object]]) -> object:
        found = await answer()
        entry.status = 200
        return found

    async def _answer(self, call: Call, request: object, context: _Context) -> object:
        metadata = dict(context.invocation_metadata())
        check_authorization(metadata.get("authorization"), self._service().secret)
        headers = [(name.encode(), str(value).encode()) for name, value in metadata.items()]
        account = request.node_pool.config.service_account if call.name == "CreateNodePool" else ""  # type: ignore[attr-defined] # CreateNodePoolRequest
        missing = self._permits.missing(needs_of_call(call.name, getattr(request, call.field), account), headers)
        if missing:
            raise permission_error(missing)
        return answer_call(call, self._service(), request)

    async def _strike(self, fault: Fault, answer: Callable[[], Awaitable[object]], context: _Context) -> object:
        match fault.action:
            case "status":
                raise fault_error(fault)
            case "drop-before":
                self._cut(context.peer())
            case "drop-after":
                await answer()
                self._cut(context.peer())
            case "hang-after":
                found = await answer()
                await fault.released.wait()
                return found
            case "hang":
                await fault.released.wait()
                left = context.time_remaining()
                if left is not None and left <= 0:
                    raise GoogleError("DEADLINE_EXCEEDED", "The client is gone.")
                return await answer()
            case "delay" | "operation" | "stock-out" | "quota" | "unlisted":
                message = f"{fault.action} is not an action on requests"
                raise AssertionError(message)
        raise GoogleError("UNAVAILABLE", "Connection reset by peer.")


def _serialize(message: object) -> bytes:
    if isinstance(message, empty_pb2.Empty):
        return b""
    kind = type(message)
    return bytes(kind.serialize(message))  # type: ignore[attr-defined] # no common typed base
