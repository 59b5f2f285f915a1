"""Errors of AWS services, and their wire shapes.

In scope: the exception that a rule raises, and JSON narrowing. Out of scope: rules.

EKS uses REST-JSON: the error's type is in the header `x-amzn-ErrorType`, the body has `message` and the names of the
affected resources. EC2 returns `<Response><Errors>`, other query services `<ErrorResponse><Error>` (botocore parsers).
"""

from __future__ import annotations

from http import HTTPStatus

Json = dict[str, object]
"""A JSON object of a wire format; its contents are narrowed where they are read."""

EKS_STATUS: dict[str, int] = {
    "AccessDeniedException": 403,
    "BadRequestException": 400,
    "ClientException": 400,
    "InvalidParameterException": 400,
    "InvalidRequestException": 400,
    "NotFoundException": 404,
    "ResourceInUseException": 409,
    "ResourceLimitExceededException": 400,
    "ResourceNotFoundException": 404,
    "ResourcePropagationDelayException": 428,
    "SerializationException": 400,
    "ServerException": 500,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "UnrecognizedClientException": 403,
}
"""Exception -> HTTP status (botocore eks/2017-11-01 `httpStatusCode`; the last four are those of JSON services)."""


class AwsError(Exception):
    """An error response, status 400 or higher.

    Args:
        code: Error code, such as "InvalidParameterException" or "InvalidLaunchTemplateName.AlreadyExistsException".
        message: Error text.
        status: HTTP status; by default that of the table, or 400.
        about: Additional members of an EKS error: clusterName, nodegroupName.
    """

    def __init__(self, code: str, message: str, *, status: int = 0, about: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or EKS_STATUS.get(code, HTTPStatus.BAD_REQUEST)
        self.about = about or {}


def bad_parameter(message: str) -> AwsError:
    """Return 400 InvalidParameterException."""
    return AwsError("InvalidParameterException", message)


def bad_request(message: str) -> AwsError:
    """Return 400 InvalidRequestException."""
    return AwsError("InvalidRequestException", message)


def busy(message: str, **about: str) -> AwsError:
    """Return 409 ResourceInUseException."""
    return AwsError("ResourceInUseException", message, about=about)


def missing(message: str, **about: str) -> AwsError:
    """Return 404 ResourceNotFoundException."""
    return AwsError("ResourceNotFoundException", message, about=about)


def objects_in(value: object) -> list[Json]:
    """Return the objects of a list; [] for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings_in(value: object) -> list[str]:
    """Return the items of a list as strings; [] for anything else."""
    return [str(item) for item in value] if isinstance(value, list) else []


def whole(value: object) -> int:
    """Return a wire object's number, whose type was checked."""
    return int(str(value))
