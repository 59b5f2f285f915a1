"""Refusals of AWS services, and their shapes on the wire.

In scope: the exception that a rule raises, and JSON narrowing. Out of scope: rules.

EKS speaks REST-JSON: the error's type is in the header `x-amzn-ErrorType`, the body has `message` and the names of what
it is about. EC2 answers `<Response><Errors>`, the other query services `<ErrorResponse><Error>` (botocore parsers).
"""

from __future__ import annotations

from http import HTTPStatus

Json = dict[str, object]
"""One JSON object of a wire format; what is inside is narrowed where it is read."""

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
"""Exception -> HTTP status (botocore eks/2017-11-01 `httpStatusCode`; the last four are of every JSON service)."""


class Refusal(Exception):
    """An answer of 400 and above.

    Args:
        code: Error code, such as "InvalidParameterException" or "InvalidLaunchTemplateName.AlreadyExistsException".
        message: Error text.
        status: HTTP status; by the table, else 400.
        about: Further members of an EKS error: clusterName, nodegroupName.
    """

    def __init__(self, code: str, message: str, *, status: int = 0, about: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or EKS_STATUS.get(code, HTTPStatus.BAD_REQUEST)
        self.about = about or {}


def bad_parameter(message: str) -> Refusal:
    """400 InvalidParameterException."""
    return Refusal("InvalidParameterException", message)


def bad_request(message: str) -> Refusal:
    """400 InvalidRequestException."""
    return Refusal("InvalidRequestException", message)


def busy(message: str, **about: str) -> Refusal:
    """409 ResourceInUseException."""
    return Refusal("ResourceInUseException", message, about=about)


def missing(message: str, **about: str) -> Refusal:
    """404 ResourceNotFoundException."""
    return Refusal("ResourceNotFoundException", message, about=about)


def objects_in(value: object) -> list[Json]:
    """The objects of a list; () for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings_in(value: object) -> list[str]:
    """The items of a list as strings; () for anything else."""
    return [str(item) for item in value] if isinstance(value, list) else []


def whole(value: object) -> int:
    """A number of a wire object that was checked to be one."""
    return int(str(value))
