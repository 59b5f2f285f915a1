"""Failures of Kubernetes API calls as gpukube's errors.

In scope: mapping exceptions of lightkube and its transport to AccessError or ClusterError. Out of scope: calls.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

import httpx2
import msgspec
from lightkube import ApiError
from lightkube.core.exceptions import ConfigError

from gpukube.core.clocks import SET_CLOCK, wrong_clock
from gpukube.core.permissions import PRINT_POLICY
from gpukube.errors import MISREAD, AccessError, ClusterError

if TYPE_CHECKING:
    from gpukube.errors import Where

FAILURES: Final = (httpx2.HTTPError, msgspec.MsgspecError, ConfigError, OSError, *MISREAD)
"""Exceptions that a call may raise: refusals, lost connections, and responses that no Kubernetes API sends."""
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_RIGHT: Final = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[\w/]+)" in API group "(?P<group>[\w.-]*)"'
    r'(?: in the namespace "(?P<namespace>[\w-]+)")?'
)
"""The API server's message for a missing permission.

Source: kubernetes/apiserver pkg/endpoints/handlers/responsewriters/errors.go.
"""

_UNREACHED: Final = "check that the cluster is running and this address is reachable from here; then run again"
_CAUSES: Final = (
    (
        re.compile(r"certificate is not yet valid|certificate has expired"),
        "check this machine's clock; if it is right, renew the certificate of the API server",
    ),
    (
        re.compile(r"CERTIFICATE_VERIFY_FAILED"),
        "check certificate-authority-data and server in the kubeconfig, and whether a proxy replaces certificates",
    ),
    (
        re.compile(r"\[SSL|SSLError|UNEXPECTED_EOF|WRONG_VERSION_NUMBER"),
        "check server in the kubeconfig, and any proxy in between: the address answers, but not with valid TLS",
    ),
    (
        re.compile(r"Name or service not known|name resolution|nodename nor servname|No address associated"),
        "check DNS: a private cluster's name resolves only inside its network (VPN, peering), a deleted one's never",
    ),
)
"""Messages of OpenSSL and getaddrinfo (glibc, macOS) -> what to do."""


def explain(where: Where, doing: str, error: Exception) -> AccessError | ClusterError:
    """Turn an exception of lightkube or its transport into a gpukube error."""
    if isinstance(error, httpx2.HTTPStatusError):
        return _refused(where, doing, error)
    if isinstance(error, httpx2.TimeoutException):
        return ClusterError(
            f"no answer in time while {doing}",
            where=where,
            fix="check that this address is reachable from here (private cluster, VPN, authorized ranges)",
            code="cluster-timeout",
        )
    if isinstance(error, ConfigError):
        return AccessError(
            f"the kubeconfig's credentials are not available while {doing}",
            where=where,
            why=brief(error),
            fix="run the kubeconfig's exec command by hand, or remove kubeconfig from the spec",
            code="kube-credentials",
        )
    if isinstance(error, (msgspec.MsgspecError, *MISREAD)) and not isinstance(error, OSError):
        return ClusterError(
            f"the answer is not from a Kubernetes API while {doing}",
            where=where,
            why=brief(error),
            fix="check the server address in the kubeconfig, and any proxy in between",
            code="not-kubernetes",
        )
    return ClusterError(
        f"the Kubernetes API is unreachable while {doing}",
        where=where,
        why=brief(error),
        fix=next((fix for pattern, fix in _CAUSES if pattern.search(str(error))), _UNREACHED),
        code="cluster-unreachable",
    )


def _refused(where: Where, doing: str, error: httpx2.HTTPStatusError) -> AccessError | ClusterError:
    code = error.response.status_code
    text = brief(error.status.message or "") if isinstance(error, ApiError) else ""
    if code == _UNAUTHORIZED:
        skew = wrong_clock(error.response.headers.get("date", ""), time.time())
        return AccessError(
            f"the Kubernetes API does not accept the credentials (401) while {doing}",
            where=where,
            why=skew or text,
            fix=SET_CLOCK if skew else "log in again, or check which identity the credentials belong to",
            code="kube-unauthorized",
        )
    if code == _FORBIDDEN:
        found = _RIGHT.search(text)
        lacks = f": not allowed to {found['verb']} {found['resource']}" if found else ""
        return AccessError(
            f"denied by the Kubernetes API (403) while {doing}{lacks}",
            where=where,
            why=text,
            fix=_missing(text) or f"get a role in the cluster that allows it; {PRINT_POLICY} prints one",
            code="kube-forbidden",
        )
    return ClusterError(
        f"the Kubernetes API answered {code} while {doing}",
        where=where,
        why=text,
        fix="run again; if it persists, check the API server's health",
        code="cluster-answer",
    )


def _missing(text: str) -> str:
    """Format the missing permission in a refusal as arguments of kubectl auth can-i; "" if it names none."""
    found = _RIGHT.search(text)
    if found is None:
        return ""
    kind = f"{found['resource']}.{found['group']}" if found["group"] else found["resource"]
    where = f" --namespace {found['namespace']}" if found["namespace"] else ""
    return f"allow {found['verb']} {kind}{where}; {PRINT_POLICY} prints a role with all required permissions"


def brief(error: object) -> str:
    """Return the first line of a text, at most 300 characters; for an exception without text its class name."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__ if isinstance(error, Exception) else ""
