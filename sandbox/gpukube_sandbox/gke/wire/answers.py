"""Errors of a Google API, in their gRPC and REST forms.

In scope: the exception that a rule raises, and the table between the two forms. Out of scope: rules.

Source: google.rpc.Code (HTTP mapping); the REST body as gcloud and google-api-core parse it.
"""

from __future__ import annotations

Json = dict[str, object]

HTTP_STATUS: dict[str, int] = {
    "OK": 200,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "UNAUTHENTICATED": 401,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
}
"""Canonical code -> HTTP status (google/rpc/code.proto)."""

_FIRST = {400: "INVALID_ARGUMENT", 409: "ABORTED", 500: "INTERNAL"}
_REASONS = {
    "INVALID_ARGUMENT": "badRequest",
    "FAILED_PRECONDITION": "failedPrecondition",
    "NOT_FOUND": "notFound",
    "ALREADY_EXISTS": "alreadyExists",
    "ABORTED": "aborted",
    "PERMISSION_DENIED": "forbidden",
    "UNAUTHENTICATED": "authError",
    "RESOURCE_EXHAUSTED": "rateLimitExceeded",
    "UNAVAILABLE": "backendError",
    "INTERNAL": "backendError",
}


class GoogleError(Exception):
    """An error response.

    Args:
        code: Canonical code, "INVALID_ARGUMENT".
        message: Error message.
        details: Further details as messages of google.rpc; only over REST.
        reason: Reason in the older form of errors; by default the usual one of the code.
    """

    def __init__(self, code: str, message: str, details: list[Json] | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details or []
        self.reason = reason or _REASONS.get(code, "unknown")

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        return HTTP_STATUS[self.code]

    def body(self) -> Json:
        """Return the JSON body over REST."""
        error = {"message": self.message, "domain": "global", "reason": self.reason}
        found: Json = {"code": self.status, "message": self.message, "status": self.code, "errors": [error]}
        return {"error": found | ({"details": self.details} if self.details else {})}


def bad(message: str) -> GoogleError:
    """Return 400 INVALID_ARGUMENT."""
    return GoogleError("INVALID_ARGUMENT", message)


def invalid(message: str) -> GoogleError:
    """Return 400 of Compute Engine, which has its own reason (inspec/inspec-gcp#301)."""
    return GoogleError("INVALID_ARGUMENT", message, reason="invalid")


def blocked(message: str) -> GoogleError:
    """Return 400 FAILED_PRECONDITION."""
    return GoogleError("FAILED_PRECONDITION", message)


def missing(name: str) -> GoogleError:
    """Return 404 NOT_FOUND for a resource."""
    return GoogleError("NOT_FOUND", f"Not found: {name}.")


def code_of_status(status: int) -> str:
    """Return the canonical code of an HTTP status; the usual one if there are several."""
    found = _FIRST.get(status)
    return found or next((code for code, number in HTTP_STATUS.items() if number == status), "UNKNOWN")
