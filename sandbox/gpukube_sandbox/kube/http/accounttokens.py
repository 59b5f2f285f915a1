"""Issues and verifies service account tokens, as for `kubectl create token`.

Out of scope: the cluster's own token (`app`), rights (`store.rbac`).

A token is a JWT with the claims of a real one, signed with the cluster's own token. The sandbox stores no tokens: a
token becomes invalid when its account is deleted, when it expires, or when the sandbox stops.

Source: kubernetes pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.rbac import user_named

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.http.requests import Target
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.rbac import User

_AUDIENCE = "https://kubernetes.default.svc"
_MIN_S, _MAX_S, _DEFAULT_S = 600, 1 << 32, 3600
_GROUP = "authentication.k8s.io"


def issue(cluster: KubeCluster, target: Target, body: JsonObject) -> JsonObject:
    """Answer a TokenRequest.

    Args:
        cluster: The cluster of the account.
        target: The account.
        body: The request.

    Raises:
        ApiProblem: 404 if the account does not exist, 422 for a duration that is too short or too long, 501 for a token
            bound to a pod, a node, or a secret.
    """
    account = cluster.store.get(target.kind, target.namespace, target.name)["metadata"]
    requested = body.get("spec") or {}
    if requested.get("boundObjectRef"):
        raise problems.not_emulated("tokens", _GROUP, "bound to an object")
    seconds = requested.get("expirationSeconds") or _DEFAULT_S
    if not _MIN_S <= seconds <= _MAX_S:
        bound = "less than 10 minutes" if seconds < _MIN_S else "larger than 2^32 seconds"
        text = f"spec.expirationSeconds: Invalid value: {seconds}: may not specify a duration {bound}"
        raise problems.invalid("TokenRequest", "", text, _GROUP)
    now, audiences = int(cluster.clock.now()), requested.get("audiences") or [_AUDIENCE]
    claims = {
        "aud": audiences,
        "exp": now + seconds,
        "iat": now,
        "iss": _AUDIENCE,
        "kubernetes.io": {
            "namespace": target.namespace,
            "serviceaccount": {"name": target.name, "uid": account["uid"]},
        },
        "nbf": now,
        "sub": f"system:serviceaccount:{target.namespace}:{target.name}",
    }
    ends = datetime.fromtimestamp(now + seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = {"alg": "HS256", "typ": "JWT"}
    signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {key: account[key] for key in ("name", "namespace", "uid")},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
        "status": {"token": f"{signed}.{_signature(cluster, signed)}", "expirationTimestamp": ends},
    }


def user_of(cluster: KubeCluster, token: str) -> User | None:
    """Return the token's user; None if it was not issued here, has expired, or its account is deleted."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(_signature(cluster, signed).encode(), signature.encode()):
        return None
    claims = json.loads(urlsafe_b64decode(signed.partition(".")[2] + "=="))
    named = claims["kubernetes.io"]
    account = cluster.store.find(CORE["serviceaccounts"], named["namespace"], named["serviceaccount"]["name"])
    lives = account is not None and account["metadata"]["uid"] == named["serviceaccount"]["uid"]
    is_valid = _AUDIENCE in claims["aud"] and cluster.clock.now() < claims["exp"]
    return user_named(claims["sub"]) if lives and is_valid else None


def _signature(cluster: KubeCluster, signed: str) -> str:
    return _text(hmac.digest(cluster.token.encode(), signed.encode(), hashlib.sha256))


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")
