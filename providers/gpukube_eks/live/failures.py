"""Converts exceptions of AWS's SDK to gpukube's errors; the originals are kept as `__cause__`.

In scope: the meaning of each exception. Out of scope: codes and fixes (`facts.meanings`), calls.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    CredentialRetrievalError,
    HTTPClientError,
    InvalidRegionError,
    LoginError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)
from botocore.parsers import ResponseParserError

from gpukube.core.clocks import SET_CLOCK, wrong_clock
from gpukube.core.meanings import Problem
from gpukube.errors import AccessError, CloudError
from gpukube_eks.facts.meanings import CLOCK, LOGIN, error_of, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from gpukube.errors import GpukubeError

_Out = TypeVar("_Out")
_LOGIN: Final = (CredentialRetrievalError, TokenRetrievalError, SSOError, LoginError)
_MISSING: Final = (NoCredentialsError, PartialCredentialsError)
_UNREACHED: Final = (HTTPClientError, NoConnectionError)
_LOST: Final = (ReadTimeoutError, ConnectionClosedError)


def code_of(error: ClientError) -> str:
    """Return the error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def explain(error: BotoCoreError | ClientError | ResponseParserError, where: str) -> GpukubeError:
    """Return gpukube's error for an SDK exception; the caller sets the cause."""
    if isinstance(error, ClientError):
        text = str(error.response.get("Error", {}).get("Message", ""))
        if error.operation_name == "AssumeRole" and "AssumeRole" not in text:
            text = f"AssumeRole: {text}"
        found = error_of(Problem(code_of(error), text), where)
        skew = wrong_clock(_date_of(error), time.time()) if type(found) is AccessError else ""
        return AccessError(CLOCK, where=where, why=f"{skew}; {quote(text)}", fix=SET_CLOCK) if skew else found
    if isinstance(error, _MISSING):
        return AccessError("no AWS credentials were found", where=where, fix=LOGIN, code="no-credentials")
    if isinstance(error, ProfileNotFound):
        fix = "check clusters.*.profile and AWS_PROFILE (aws configure list-profiles)"
        return AccessError("the AWS profile does not exist", where=where, fix=fix, why=_reason(error), code="profile")
    if isinstance(error, _LOGIN):
        return AccessError("AWS could not log in", where=where, fix=LOGIN, why=quote(_reason(error)))
    return _explain_exchange(error, where)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Convert SDK exceptions raised in the block."""
    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        raise explain(error, where) from error


def unless(codes: Collection[str], call: Callable[[], _Out]) -> _Out | None:
    """Make a call; return None if AWS rejects it with one of these codes, because the object does not exist."""
    try:
        return call()
    except ClientError as error:
        if code_of(error) in codes:
            return None
        raise


def _explain_exchange(error: BotoCoreError | ResponseParserError, where: str) -> GpukubeError:
    why = _reason(error)
    if isinstance(error, _LOST):
        fix = "run the same command again: it reads the live state first"
        return CloudError("AWS's answer was lost", where=where, fix=fix, why=why, code="no-answer")
    if isinstance(error, _UNREACHED):
        fix = "check the network, the proxy, the endpoint and clusters.*.region"
        return CloudError("the AWS API cannot be reached", where=where, fix=fix, why=why, code="unreachable")
    if isinstance(error, InvalidRegionError):
        fix = "write a region such as us-east-1"
        return CloudError("this is not an AWS region", where=where, fix=fix, why=why, code="region")
    if isinstance(error, ParamValidationError):
        return CloudError(
            "the SDK rejected the request", where=where, fix="correct what the message names", why=why, code="refused"
        )
    fix = "check the endpoint, the proxy and the AWS configuration files"
    return CloudError("the answer is not from AWS's API", where=where, fix=fix, why=why, code="bad-answer")


def _date_of(error: ClientError) -> str:
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("date", ""))


def _reason(error: BotoCoreError | ResponseParserError) -> str:
    return " ".join(str(error).split())[:200]
