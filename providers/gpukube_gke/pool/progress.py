"""Converts an operation or a pool as read to `Progress`.

In scope: reading these two in JSON form. Out of scope: the calls that fetch them (`live.client`), the meaning of errors
(`facts.meanings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import tree
from gpukube.core.meanings import Problem
from gpukube.core.values import Progress
from gpukube.errors import CapacityError, CloudError, QuotaError
from gpukube_gke.facts.meanings import error_of
from gpukube_gke.pool.observe import STATES, condition_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Operation
    from gpukube.errors import GpukubeError

_CANONICAL: Final = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""google.rpc.Code by number, as in Operation.error (google/rpc/code.proto)."""
_SETTLED: Final = frozenset({"ready", "failed"})
_BAD: Final = frozenset({"ERROR", "RUNNING_WITH_ERROR"})


def operation_progress(native: Mapping[str, object], where: str) -> Progress:
    """Read an operation: DONE is its only final status; a failed one has an error or a status message."""
    status = str(native.get("status") or "STATUS_UNSPECIFIED")
    if status != "DONE":
        detail = str(native.get("detail") or "").rstrip(".")
        return Progress(done=False, status=f"{status}, {detail}" if detail else status)
    if problem := _problem_of(native):
        return Progress(done=False, status=status, error=error_of(problem, where))
    return Progress(done=True, status=status)


def pool_progress(operation: Operation, native: Mapping[str, object] | None, where: str) -> Progress:
    """Read the pool if the operation's name is unknown or no longer kept; None means that the pool does not exist.

    A pool with an error accepts updates and keeps the error until one succeeds: it does not show how an update ended,
    only that none is running.
    """
    if native is None:
        return _gone(operation, where)
    status = str(native.get("status") or "STATUS_UNSPECIFIED")
    if operation.verb == "update":
        return Progress(done=STATES.get(status) in _SETTLED, status=status)
    if operation.verb != "delete" and status in _BAD:
        return Progress(done=False, status=status, error=pool_error(native, where))
    return Progress(done=STATES.get(status) == "ready" and operation.verb != "delete", status=status)


def pool_error(native: Mapping[str, object], where: str) -> GpukubeError | None:
    """Return the error of a pool as read; None if it has none.

    Args:
        native: The pool.
        where: The pool, for messages.
    """
    condition, status = condition_of(native), str(native.get("status"))
    text = str(condition.get("message") or native.get("statusMessage") or "")
    error = error_of(Problem("", text, str(condition.get("code") or status), is_late=True), where)
    # While the pool still works, only a shortage is one: other conditions are warnings, such as CA_EXPIRING.
    return error if status in _BAD or isinstance(error, CapacityError | QuotaError) else None


def _problem_of(native: Mapping[str, object]) -> Problem | None:
    error, text = tree(native, "error"), str(native.get("statusMessage") or "")
    number = int(str(error.get("code") or 0))
    if not number and not text:
        return None
    first = tree(native.get("nodepoolConditions") or native.get("clusterConditions"), 0)
    code = _CANONICAL[number] if 0 < number < len(_CANONICAL) else ""
    return Problem(code, str(error.get("message") or text), str(first.get("code") or ""), is_late=True)


def _gone(operation: Operation, where: str) -> Progress:
    if operation.verb == "delete":
        return Progress(done=True, status="deleted")
    fix = "run the same command again: it reads the live state first"
    error = CloudError("the pool no longer exists", where=where, fix=fix, code="pool-gone")
    return Progress(done=False, status="NOT_FOUND", error=error)
