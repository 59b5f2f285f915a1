"""The one place where exceptions of the Azure SDK become ours; they are kept as `__cause__`.

In scope: which exception says what. Out of scope: codes and remedies (`facts.meanings`), calls.
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
    """Make our error of an SDK exception; the caller keeps it as the cause."""
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
        return CloudError("Azure's answer was lost", where=where, fix=fix, why=_reason(error), code="no-answer")
    return CloudError(
        "the answer is not from Azure's API",
        where=where,
        fix="check the endpoint and the proxy",
        why=_reason(error),
        code="bad-answer",
    )


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Let SDK exceptions leave the block as ours.

    A ValueError is what the SDK raises for an answer that is not what it should be: the HTML of a proxy, say.
    """
    try:
        yield
    except (AzureError, ValueError) as error:
        raise explain(error, where) from error


def _explain_login(error: ClientAuthenticationError, where: str) -> GpukubeError:
    """Tell a refused login from none at all: Entra's refusals carry a number, AADSTS50034, the SDK's a few words.

    Where nothing is set up, azure-identity lists a paragraph per kind of credential; -v shows it.
    """
    text = str(error)
    refusal = next((line for line in text.splitlines() if "AADSTS" in line or "Invalid tenant" in line), "")
    from azure.identity import CredentialUnavailableError  # noqa: PLC0415 - 60 ms that only such an error is worth

    is_missing = isinstance(error, CredentialUnavailableError) or "failed to retrieve a token" in text
    if is_missing and not refusal:
        return AccessError("no Azure credentials were found", where=where, fix=LOGIN, code="no-credentials")
    return AccessError("Azure could not log in", where=where, fix=LOGIN, why=quote(refusal or text))


def _explain_answer(error: HttpResponseError, where: str) -> GpukubeError:
    status = error.status_code or 0
    if status == 412 and isinstance(error, ResourceExistsError):  # noqa: PLR2004 - If-None-Match: * was not met
        return exists(where)
    headers = getattr(error.response, "headers", {})  # not copied: its names are compared without case
    return error_of(read_problem(status, _body(error), str(headers.get("x-ms-request-id", ""))), where)


def _body(error: HttpResponseError) -> object:
    try:
        return json.loads(error.response.text()) if error.response is not None else None
    except ValueError:
        return {"message": error.reason or ""}


def _reason(error: AzureError | ValueError) -> str:
    return " ".join(str(error).split())[:200]
