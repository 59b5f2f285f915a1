"""Converts exceptions of the Azure SDK, all of them here, and keeps them as `__cause__`.

In scope: the meaning of each exception. Out of scope: codes and fixes (`facts.meanings`), calls.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ServiceRequestError,
    ServiceResponseError,
)

from gpukube.errors import AccessError, CloudError
from gpukube_aks.facts.meanings import LOGIN, error_of, exists, quote, read_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.errors import GpukubeError


def explain(error: AzureError | ValueError, where: str) -> GpukubeError:
    """Convert an SDK exception to gpukube's error; the caller keeps it as the cause."""
    if isinstance(error, HttpResponseError) and error.response is not None:
        return _explain_answer(error, where)
    if isinstance(error, ClientAuthenticationError):
        return _explain_login(error, where)
    if isinstance(error, ServiceRequestError):
        fix = "check the network, the proxy and the endpoint"
        return CloudError(
            "the Azure API cannot be reached", where=where, fix=fix, why=_reason(error), code="unreachable"
        )
    if isinstance(error, ServiceResponseError):
        fix = "run the same command again: it reads the live state first"
        return CloudError("Azure's response was lost", where=where, fix=fix, why=_reason(error), code="no-answer")
    return CloudError(
        "the response is not from Azure's API",
        where=where,
        fix="check the endpoint and the proxy",
        why=_reason(error),
        code="bad-answer",
    )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Convert SDK exceptions of the block to gpukube's errors.

    The SDK raises a ValueError for a malformed response, such as the HTML of a proxy.
    """
    try:
        yield
    except (AzureError, ValueError) as error:
        raise explain(error, where) from error


def _explain_login(error: ClientAuthenticationError, where: str) -> GpukubeError:
    """Distinguish a rejected login from missing credentials: Entra's messages contain a number such as AADSTS50034.

    Without any credentials, azure-identity prints a paragraph per kind of credential; -v shows it.
    """
    text = str(error)
    refusal = next((line for line in text.splitlines() if "AADSTS" in line or "Invalid tenant" in line), "")
    from azure.identity import CredentialUnavailableError  # noqa: PLC0415 - takes 60 ms, and only such an error needs it

    is_missing = isinstance(error, CredentialUnavailableError) or "failed to retrieve a token" in text
    if is_missing and not refusal:
        return AccessError("no Azure credentials were found", where=where, fix=LOGIN, code="no-credentials")
    return AccessError("Azure could not log in", where=where, fix=LOGIN, why=quote(refusal or text))


def _explain_answer(error: HttpResponseError, where: str) -> GpukubeError:
    status = error.status_code or 0
    if status == 412 and isinstance(error, ResourceExistsError):  # noqa: PLR2004 - If-None-Match: * failed
        return exists(where)
    headers = getattr(error.response, "headers", {})  # no copy: this mapping ignores the case of names
    return error_of(read_problem(status, _body(error), str(headers.get("x-ms-request-id", ""))), where)


def _body(error: HttpResponseError) -> object:
    try:
        return json.loads(error.response.text()) if error.response is not None else None
    except ValueError:
        return {"message": error.reason or ""}


def _reason(error: AzureError | ValueError) -> str:
    return " ".join(str(error).split())[:200]
