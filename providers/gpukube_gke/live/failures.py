"""Converts exceptions of Google's SDK, all of them here, and keeps them as `__cause__`.

In scope: the meaning of each exception, and which ones are transient. Out of scope: codes and fixes (`facts.meanings`),
calls.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import requests
from google.api_core.exceptions import (
    GoogleAPICallError,
    GoogleAPIError,
    MethodNotImplemented,
    RetryError,
    ServerError,
    TooManyRequests,
)
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]  # ships no types

from gpukube.core.jsontree import tree
from gpukube.core.meanings import Problem
from gpukube.errors import AccessError, CloudError, NotAllowed
from gpukube_gke.facts.meanings import LOGIN, UNREACHABLE, error_of, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.errors import GpukubeError

PASSING: Final = (GoogleAPIError, GoogleAuthError, requests.RequestException, ParseError)
"""Everything that the SDK raises."""

_LASTING: Final = ("concurrent operations quota", "Too many operations", "Insufficient", "Quota '", "Reservation does")
"""Texts of a RESOURCE_EXHAUSTED other than throttling: a busy cluster, a machine quota, or a reservation in use."""


def is_throttled(error: BaseException) -> bool:
    """Return whether the rate limit rejected a call: it had no effect, so it can be retried."""
    return isinstance(error, TooManyRequests) and not any(word in str(error) for word in _LASTING)


def is_passing(error: BaseException) -> bool:
    """Return whether to retry a repeatable call: like the other clouds' SDKs, after every 5xx except 501."""
    if re.search(UNREACHABLE, str(error)):
        return False
    lost = (ServerError, requests.ConnectionError, requests.Timeout)
    return (isinstance(error, lost) and not isinstance(error, MethodNotImplemented)) or is_throttled(error)


def explain(error: Exception, where: str) -> GpukubeError:
    """Convert an SDK exception to gpukube's error; the caller keeps it as the cause."""
    if isinstance(error, RetryError) and error.cause is not None:
        return explain(error.cause, where)
    if isinstance(error, GoogleAPICallError):
        return error_of(problem_of(error), where)
    if isinstance(error, DefaultCredentialsError):
        return AccessError("no Google Cloud credentials were found", where=where, fix=LOGIN, code="no-credentials")
    if isinstance(error, TransportError | requests.ConnectionError | requests.Timeout):
        fix = "check the network, the proxy and the endpoint"
        message = "the Google Cloud API cannot be reached"
        return CloudError(message, where=where, fix=fix, why=_reason(error), code="unreachable")
    if isinstance(error, GoogleAuthError):
        return _explain_login(error, where)
    return CloudError(
        "the response is not from Google's API",
        where=where,
        fix="check the endpoint and the proxy",
        why=_reason(error),
        code="bad-answer",
    )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Convert SDK exceptions of the block to gpukube's errors."""
    try:
        yield
    except PASSING as error:
        raise explain(error, where) from error


def problem_of(error: GoogleAPICallError) -> Problem:
    """Return code and text of an error; over REST only the body contains the canonical code."""
    if error.grpc_status_code is not None:
        return Problem(str(error.grpc_status_code.name), str(error.message))
    body = _body(error)
    return Problem(str(body.get("status") or ""), str(body.get("message") or error.message))


def _explain_login(error: GoogleAuthError, where: str) -> GpukubeError:
    if "impersonat" in str(error).lower():
        return NotAllowed(
            "the service account cannot be impersonated",
            where=where,
            fix="ask for the role roles/iam.serviceAccountTokenCreator on it, or check clusters.*.impersonate",
            why=quote(str(error)),
            code="impersonation",
        )
    return AccessError("Google Cloud refused the credentials", where=where, fix=LOGIN, why=quote(str(error)))


def _body(error: GoogleAPICallError) -> Mapping[str, object]:
    response = error.response
    if not isinstance(response, requests.Response):
        return {}
    try:
        return tree(response.json(), "error")
    except ValueError:
        return {}


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
