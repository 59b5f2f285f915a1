"""One https port for the Kubernetes APIs of all clusters, distinguished by a path prefix or else by the token.

In scope: finding the cluster of a request, and cloud tokens. Out of scope: the Kubernetes API (`kube`).
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse

from gpukube_sandbox.aks.clusters import AZURE_KUBERNETES_SERVER_APP
from gpukube_sandbox.aks.identity import is_issued_for
from gpukube_sandbox.eks.wire.identity import is_bearer_for
from gpukube_sandbox.kube.store.problems import ApiProblem, unauthorized

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.faults import Fault
    from gpukube_sandbox.world import World

_PREFIX_PARTS = 4  # clusters, subscription, group, name
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
    504: "Timeout",
}
"""HTTP status -> reason of the Status (k8s.io/apimachinery pkg/api/errors)."""


def worded_fault(fault: Fault, scope: Scope, body: bytes) -> tuple[dict[str, str], bytes]:
    """Format a fault of action "status" like a Kubernetes API; its code, if any, is the reason of the Status."""
    del scope, body
    internal = "InternalError" if fault.status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
    reason = fault.code or _REASONS.get(fault.status, internal)
    problem = ApiProblem(fault.status, reason, fault.message or f"Injected fault: {fault.status}.")
    content = fault.body if fault.body is not None else problem.as_status()
    return {"content-type": "application/json"}, json.dumps(content).encode()


class KubeGateway:
    """The ASGI application behind the Kubernetes port.

    Args:
        world: Contains the clusters.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to its cluster, without the prefix of its path."""
        parts = scope["path"].split("/")
        requested = "/".join(parts[2 : _PREFIX_PARTS + 1])
        if parts[1:2] == ["reviews"]:
            response = await _review(Request(scope, receive), self._world, requested)
            await response(scope, receive, send)
            return
        in_path = parts[1:2] == ["clusters"]
        below = "/" + "/".join(parts[_PREFIX_PARTS + 1 :]) if in_path else scope["path"]
        try:
            key = self._key_in(requested) if in_path else self._key_by_token(scope["headers"])
        except ApiProblem as problem:
            response = JSONResponse(problem.as_status(), problem.code)
            await response(scope, receive, send)
            return
        headers = self._headers_for(key, scope["headers"])
        scope = {**scope, "path": below, "raw_path": below.encode(), "root_path": "", "headers": headers}
        await self._world.kube_apps[key](scope, receive, send)

    def _key_in(self, requested: str) -> str:
        known = self._world.kube_apps
        key = requested if requested in known else requested.lower()  # names of EKS clusters are case-sensitive
        if key not in known:
            raise _no_such_cluster()
        return key

    def _key_by_token(self, headers: list[tuple[bytes, bytes]]) -> str:
        """Return the cluster of a request without a prefix; `kubectl get --raw` uses only the server's host.

        Only the holder of a token learns about clusters, because every user of the machine can reach the port.
        """
        apps = self._world.kube_apps
        if not apps:
            raise _no_such_cluster()
        if len(apps) == 1:
            return next(iter(apps))
        theirs = [
            key for key, app in apps.items() if _bearer(self._headers_for(key, headers)) == app.state.cluster.token
        ]
        if not theirs:
            raise unauthorized()
        if len(theirs) > 1:
            prefixes = ", ".join(f"/clusters/{key}" for key in sorted(theirs))
            message = f"the token is valid for several clusters; start the path with one of {prefixes}"
            raise ApiProblem(404, "NotFound", message)
        return theirs[0]

    def _headers_for(self, key: str, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        world = self._world
        headers = _with_own_token(headers, world.aks.clusters.get(key), world.secret)
        return _with_aws_token(headers, world.eks.clusters.get(key), world.secret)


def _no_such_cluster() -> ApiProblem:
    return ApiProblem(404, "NotFound", "no such cluster in the sandbox")


def _bearer(headers: list[tuple[bytes, bytes]]) -> str:
    return dict(headers).get(b"authorization", b"").decode("latin-1").partition(" ")[2]


def _with_own_token(
    headers: list[tuple[bytes, bytes]], cluster: Cluster | None, secret: str
) -> list[tuple[bytes, bytes]]:
    """Replace a token for the AKS server application, which an Entra cluster accepts, by the cluster's own."""
    if cluster is None or not cluster.options.aad:
        return headers
    return [
        (name, f"Bearer {cluster.token}".encode())
        if name == b"authorization"
        and is_issued_for(value.decode("latin-1").partition(" ")[2], AZURE_KUBERNETES_SERVER_APP, secret)
        else (name, value)
        for name, value in headers
    ]


async def _review(request: Request, world: World, key: str) -> JSONResponse:
    """Answer a real API server's TokenReview like EKS's webhook: a mapped caller is an administrator."""
    cluster = world.eks.clusters.get(key)
    token = str(((await request.json()).get("spec") or {}).get("token", ""))
    known = (
        cluster is not None
        and cluster.options.mapped
        and is_bearer_for(token, cluster.name, cluster.account, world.secret)
    )
    user = {"username": "sandbox", "groups": ["system:masters"]}
    verdict = {"authenticated": True, "user": user} if known else {"authenticated": False}
    return JSONResponse({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": verdict})


def _with_aws_token(
    headers: list[tuple[bytes, bytes]], cluster: EksCluster | None, secret: str
) -> list[tuple[bytes, bytes]]:
    """Replace a presigned GetCallerIdentity of a mapped caller, which EKS accepts, by the cluster's own token."""
    if cluster is None or not cluster.options.mapped:
        return headers
    return [
        (name, f"Bearer {cluster.token}".encode())
        if name == b"authorization"
        and is_bearer_for(value.decode("latin-1").partition(" ")[2], cluster.name, cluster.account, secret)
        else (name, value)
        for name, value in headers
    ]
