"""AWS over HTTP: one port for all its services; the signature's scope selects the service.

In scope: the HTTP side of the services. Out of scope: rules and state.

EKS paths are split before they are decoded: names may contain any character, and an ARN contains slashes.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response

from gpukube_sandbox.eks import account, capacity, ec2, market, network, parameters, placementgroups, servicequotas
from gpukube_sandbox.eks.throttle import take_token
from gpukube_sandbox.eks.wire.answers import AwsError, Json
from gpukube_sandbox.eks.wire.identity import Caller, Signed, check_presigned, check_signed, read_caller
from gpukube_sandbox.eks.wire.query import xml_answer, xml_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.faults import Fault

_QUERY = {
    "ec2": {**ec2.ACTIONS, **network.ACTIONS, **placementgroups.ACTIONS, **market.ACTIONS, **capacity.ACTIONS},
    "sts": account.STS,
    "iam": account.IAM,
    "autoscaling": account.AUTOSCALING,
}
_UNKNOWN_KEY = {"ec2": "AuthFailure", "sts": "InvalidClientTokenId", "iam": "InvalidClientTokenId"}
_WRONG_SIGNATURE = {"ec2": "AuthFailure"}
"""Exceptions from the usual code: query services return SignatureDoesNotMatch, JSON services
InvalidSignatureException."""
_REST = "application/json"
_PRICING, _QUOTAS, _SSM = "pricing", "servicequotas", "ssm"
_TARGETS = {_PRICING: market.PRICE_LIST, _QUOTAS: servicequotas.TARGET, _SSM: parameters.TARGET}
"""Services whose operation is in a header, and the operation's prefix there."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A parsed request to EKS."""

    caller: Caller
    parts: tuple[str, ...]
    query: Mapping[str, str]
    lists: Mapping[str, list[str]]
    body: object

    @property
    def page(self) -> tuple[str, str]:
        """Return maxResults and nextToken."""
        return self.query.get("maxResults", ""), self.query.get("nextToken", "")

    @property
    def child(self) -> str:
        """Return the name below a cluster: of a node group, or an update's id."""
        return self.parts[4]

    @property
    def group(self) -> str:
        """Return the node group that a query names."""
        return self.query.get("nodegroupName", "")


class AwsApp:
    """The ASGI application of the emulated AWS.

    Args:
        service: Handles the calls.
    """

    def __init__(self, service: EksService) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        identity, raw = str(uuid.uuid4()), await request.body()
        service = _service_of(request)
        try:
            caller = read_caller(request.headers, request.query_params)
            _check_signature(request, raw, self._service.secret)
            if service in _QUERY:
                params = dict(parse_qsl(raw.decode() or request.url.query, keep_blank_values=True))
                result = self._query(service, caller, params)
                content = xml_answer(service, params["Action"], result, identity)
                return Response(content, 200, {"x-amzn-requestid": identity}, media_type="text/xml")
            call = _read(request, caller, raw)
            answer = self._named(service, request, call) if service in _TARGETS else self._eks(call)
        except AwsError as error:
            return error_response(service, error, identity)
        return Response(json.dumps(answer), 200, {"x-amzn-requestid": identity}, media_type=_REST)

    def _query(self, service: str, caller: Caller, params: Mapping[str, str]) -> Json:
        action = params.get("Action", "")
        handler = _QUERY[service].get(action)
        if handler is None:
            message = f"The gpukube sandbox does not emulate {service} {action}."
            raise AwsError("InvalidAction", message, status=501)
        if service == "ec2":
            take_token(self._service.throttle, caller, action)
        if params.get("DryRun") == "true":
            raise AwsError("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
        return handler(self._service, caller, params)

    def _named(self, service: str, request: Request, call: _Call) -> Json:
        """Handle a call of a service whose operation is in a header (JSON 1.1)."""
        operation = request.headers.get("x-amz-target", "").removeprefix(_TARGETS[service])
        if service == _PRICING and operation == "GetProducts":
            return market.get_products(call.caller, call.body)
        if service == _SSM and operation in parameters.OPERATIONS:
            return parameters.OPERATIONS[operation](self._service, call.caller, call.body)
        handler = servicequotas.OPERATIONS.get(operation) if service == _QUOTAS else None
        if handler is None:
            message = f"The gpukube sandbox does not emulate {service} {operation}."
            raise AwsError("UnknownOperationException", message, status=501)
        return handler(self._service, call.caller, call.body if isinstance(call.body, dict) else {})

    def _eks(self, call: _Call) -> Json:
        service, caller = self._service, call.caller
        match call.parts:
            case ("GET", "clusters"):
                limit, token = call.page
                return service.list_clusters(caller.account, caller.region, limit, token)
            case (method, "tags", arn):
                return _tags(service, call, method, arn)
            case (method, "clusters", name, *rest):
                cluster = service.require_cluster(caller.account, caller.region, name)
                below = "/".join(("*" if at == 1 else part) for at, part in enumerate(rest))
                handler = _CALLS.get((method, below))
                if handler is not None:
                    return handler(service, cluster, call)
        raise _not_emulated(call)


_CALLS: dict[tuple[str, str], Callable[[EksService, EksCluster, _Call], Json]] = {
    ("GET", ""): lambda _, cluster, __: {"cluster": cluster.wire()},
    ("GET", "node-groups"): lambda service, cluster, call: service.list_groups(cluster, *call.page),
    ("POST", "node-groups"): lambda service, cluster, call: service.create_group(cluster, call.body),
    ("GET", "node-groups/*"): lambda service, cluster, call: service.describe_group(cluster, call.child),
    ("DELETE", "node-groups/*"): lambda service, cluster, call: service.delete_group(cluster, call.child),
    ("POST", "node-groups/*/update-config"): lambda service, cluster, call: service.update_config(
        cluster, call.child, call.body
    ),
    ("POST", "node-groups/*/update-version"): lambda service, cluster, call: service.update_version(
        cluster, call.child, call.body
    ),
    ("GET", "updates"): lambda service, cluster, call: service.list_updates(cluster, call.group, *call.page),
    ("GET", "updates/*"): lambda service, cluster, call: service.describe_update(cluster, call.group, call.child),
    ("GET", "addons"): lambda _, __, ___: {"addons": ["coredns", "kube-proxy", "vpc-cni"]},
    ("GET", "access-entries"): lambda _, cluster, call: {
        "accessEntries": [call.caller.arn, cluster.node_role_arn] if cluster.options.mapped else []
    },
}
"""Method and path below a cluster, with `*` for names -> handler."""


def _tags(service: EksService, call: _Call, method: str, arn: str) -> Json:
    account_id, region = call.caller.account, call.caller.region
    by_method: dict[str, Callable[[], Json]] = {
        "GET": lambda: {"tags": dict(service.tags_of(account_id, region, arn))},
        "POST": lambda: service.tag(account_id, region, arn, call.body),
        "DELETE": lambda: service.untag(account_id, region, arn, call.lists.get("tagKeys", [])),
    }
    if method not in by_method:
        raise _not_emulated(call)
    return by_method[method]()


def _service_of(request: Request) -> str:
    """Return the service in a request's signature; without one, the service that fits the request's form."""
    try:
        return read_caller(request.headers, request.query_params).service
    except AwsError:
        scope = request.headers.get("authorization", "").split("/")
        named = scope[3] if len(scope) > 3 else ""  # noqa: PLR2004 - key, date, region, service
        form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        return named or ("sts" if form or request.url.query else "eks")


def _read(request: Request, caller: Caller, raw: bytes) -> _Call:
    body: object = {}
    if raw:
        try:
            body = json.loads(raw)
        except ValueError:
            raise AwsError("SerializationException", "The request body is not JSON") from None
    parts = tuple(unquote(part) for part in _raw_path(request).split("/") if part)
    query = request.query_params
    lists = {key: query.getlist(key) for key in query}
    return _Call(caller, (request.method, *parts), dict(query), lists, body)


def _check_signature(request: Request, raw: bytes, secret: str) -> None:
    headers = dict(request.headers)
    if "X-Amz-Signature" in request.query_params:
        check_presigned(str(request.url), headers, secret)
        return
    check_signed(Signed(request.method, _raw_path(request), request.url.query, headers, raw), secret)


def _raw_path(request: Request) -> str:
    """Return the path as sent, with its escapes."""
    sent: bytes = request.scope.get("raw_path", b"")
    return sent.decode().partition("?")[0] or request.url.path


def _not_emulated(call: _Call) -> AwsError:
    """Return an error for a call that the real service has but the sandbox does not, instead of a made-up response."""
    message = f"The gpukube sandbox does not emulate {call.parts[0]} /{'/'.join(call.parts[1:])}."
    return AwsError("UnknownOperationException", message, status=501)


def error_response(service: str, error: AwsError, identity: str) -> Response:
    """Return an error response in the service's form; `identity` is the request's id."""
    if service in _QUERY:
        code = error.code
        if code == "UnrecognizedClientException":
            code = _UNKNOWN_KEY.get(service, code)
        elif code == "InvalidSignatureException":
            code = _WRONG_SIGNATURE.get(service, "SignatureDoesNotMatch")
        content = xml_error(service, code, error.message, error.status, identity)
        headers = {"x-amzn-requestid": identity}
        return Response(content, error.status, headers, media_type="text/xml")
    headers = {"x-amzn-requestid": identity, "x-amzn-ErrorType": error.code}
    body = {**_json_error(service, error.code, error.message), **error.about}
    return Response(json.dumps(body), error.status, headers, media_type=_REST)


def _json_error(service: str, code: str, message: str) -> dict[str, str]:
    """Return an error of a JSON service; if the operation is in a header, the code is in the body."""
    return {**({"__type": code} if service in _TARGETS else {}), "message": message}


_FAULT_CODES: dict[int, str] = {
    400: "InvalidRequestException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    409: "ResourceInUseException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def worded_fault(fault: Fault, scope: Scope, body: bytes) -> tuple[dict[str, str], bytes]:
    """Return a fault of action "status" in the form of the called service.

    Args:
        fault: Its code, or one that fits the status; its body unchanged, if it has one.
        scope: Scope of the request.
        body: Unused: the service is in the signature.

    Returns:
        Headers and content.
    """
    del body
    service, identity = _service_of(Request(scope)), str(uuid.uuid4())
    code = fault.code or _FAULT_CODES.get(fault.status, "ServerException")
    message = fault.message or f"Injected fault: {HTTPStatus(fault.status).phrase}."
    if service in _QUERY:
        is_ec2 = service == "ec2"
        codes = {
            HTTPStatus.FORBIDDEN: "UnauthorizedOperation" if is_ec2 else "AccessDenied",
            HTTPStatus.TOO_MANY_REQUESTS: "RequestLimitExceeded" if is_ec2 else "Throttling",
        }
        code = fault.code or codes.get(HTTPStatus(fault.status), "InternalError")
        content = xml_error(service, code, message, fault.status, identity)
        return {"content-type": "text/xml", "x-amzn-requestid": identity}, content
    headers = {"content-type": _REST, "x-amzn-requestid": identity, "x-amzn-ErrorType": code}
    return headers, json.dumps(fault.body or _json_error(service, code, message)).encode()
