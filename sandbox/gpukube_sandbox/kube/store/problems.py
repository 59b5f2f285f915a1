"""Kubernetes API errors: a Status object and its HTTP code.

In scope: the exception for all errors, and one constructor per reason. Out of scope: when to raise them.

Source: k8s.io/apimachinery pkg/api/errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.rbac import Access


class ApiProblem(Exception):
    """An error, worded like the API server's.

    Attributes:
        code: HTTP status.
        reason: Machine-readable reason ("NotFound"); "" for internal errors.
        details: Details of the Status; {} if it has none.
    """

    def __init__(self, code: int, reason: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self._has_details = details is not None

    def as_status(self) -> JsonObject:
        """Return the Status object."""
        found: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            found["reason"] = self.reason
        if self._has_details:
            found["details"] = self.details
        return found


def refusal_message(message: str, details: JsonObject | None) -> str:
    """Return an error message with its causes, such as the budget that forbids an eviction."""
    return " ".join([message, *(str(cause.get("message", "")) for cause in (details or {}).get("causes") or ())])


def _resource(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, name: str, group: str = "") -> ApiProblem:
    """404: no such object."""
    details: JsonObject = {"name": name, "kind": plural} | ({"group": group} if group else {})
    return ApiProblem(404, "NotFound", f'{_resource(plural, group)} "{name}" not found', details)


def no_such_path() -> ApiProblem:
    """404: no such resource type."""
    # With empty details: kubectl debug reads them without checking whether they exist.
    return ApiProblem(404, "NotFound", "the server could not find the requested resource", {})


def not_emulated(plural: str, group: str = "", why: str = "") -> ApiProblem:
    """501: a real cluster has it, the sandbox does not."""
    message = f"the sandbox does not emulate {_resource(plural, group)}{why and ': '}{why}"
    return ApiProblem(501, "NotImplemented", message, {"kind": plural} | ({"group": group} if group else {}))


def unavailable(message: str) -> ApiProblem:
    """Return 503 ServiceUnavailable: what the API server asks for the response does not answer."""
    return ApiProblem(503, "ServiceUnavailable", message)


def not_allowed() -> ApiProblem:
    """405: the resource does not allow this method."""
    message = "the server does not allow this method on the requested resource"
    return ApiProblem(405, "MethodNotAllowed", message, {})


def already_exists(plural: str, name: str, group: str = "") -> ApiProblem:
    """409: the name exists already."""
    details: JsonObject = {"name": name, "kind": plural} | ({"group": group} if group else {})
    return ApiProblem(409, "AlreadyExists", f'{_resource(plural, group)} "{name}" already exists', details)


def version_conflict(plural: str, name: str, group: str = "") -> ApiProblem:
    """409: the resourceVersion sent is not the current one."""
    message = (
        f'Operation cannot be fulfilled on {_resource(plural, group)} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return ApiProblem(409, "Conflict", message, {"name": name, "kind": plural})


def eviction_precondition_failed(name: str, sent: str, found: str) -> ApiProblem:
    """409: the pod's uid does not match the precondition of an eviction.

    Source: kubernetes pkg/registry/core/pod/storage/eviction.go, addConditionAndDeletePod.
    """
    message = (
        f'Operation cannot be fulfilled on Pod "{name}": the UID in the precondition ({sent}) does not match the UID '
        f"in record ({found}). The object might have been deleted and then recreated"
    )
    return ApiProblem(409, "Conflict", message, {"name": name, "kind": "Pod"})


def precondition_failed(kind: str, name: str, key: str, sent: str, found: str) -> ApiProblem:
    """409: the object does not match the preconditions of a delete.

    Source: k8s.io/apiserver pkg/storage/interfaces.go, Preconditions.Check.
    """
    word, since = ("UID", "deleted and then recreated") if key == "uid" else ("ResourceVersion", "modified")
    message = (
        f'Operation cannot be fulfilled on {kind} "{name}": the {word} in the precondition ({sent}) does not match the '
        f"{word} in record ({found}). The object might have been {since}"
    )
    return ApiProblem(409, "Conflict", message, {"name": name, "kind": kind})


def field_conflict(causes: Sequence[tuple[str, str]]) -> ApiProblem:
    """409: other managers own fields of a server-side apply.

    Args:
        causes: Manager, as described in messages, and field path of each conflict.

    Source: k8s.io/apimachinery managedfields/internal/conflict.go.
    """
    listed = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in causes
    ]
    by_manager: dict[str, list[str]] = {}
    for cause in listed:
        by_manager.setdefault(cause["message"], []).append(cause["field"])
    if len(listed) == 1:
        summary = f"{listed[0]['message']}: {listed[0]['field']}"
    else:
        parts = [
            message.replace("conflict with", "conflicts with", 1) + ":\n" + "\n".join(f"- {field}" for field in fields)
            for message, fields in by_manager.items()
        ]
        summary = "\n".join(parts)
    noun = "conflict" if len(listed) == 1 else "conflicts"
    return ApiProblem(409, "Conflict", f"Apply failed with {len(listed)} {noun}: {summary}", {"causes": listed})


def forbidden(user: str, access: Access) -> ApiProblem:
    """403: RBAC denies a user's access."""
    if access.path:
        return ApiProblem(403, "Forbidden", f'forbidden: User "{user}" cannot {access.verb} path "{access.path}"')
    plural = access.resource.partition("/")[0]
    shown = _resource(plural, access.group)
    named = f'{shown} "{access.name}"' if access.name else shown
    place = f' in the namespace "{access.namespace}"' if access.namespace else " at the cluster scope"
    message = (
        f'{named} is forbidden: User "{user}" cannot {access.verb} resource "{access.resource}" in API group '
        f'"{access.group}"{place}'
    )
    details: JsonObject = {"kind": plural} | {
        key: value for key, value in (("name", access.name), ("group", access.group)) if value
    }
    return ApiProblem(403, "Forbidden", message, details)


def escalation(plural: str, name: str, group: str, why: str) -> ApiProblem:
    """403: a role or binding grants permissions that its writer lacks."""
    details: JsonObject = {"name": name, "group": group, "kind": plural}
    return ApiProblem(403, "Forbidden", f'{_resource(plural, group)} "{name}" is forbidden: {why}', details)


def unauthorized() -> ApiProblem:
    """401: no token, or an unknown one."""
    return ApiProblem(401, "Unauthorized", "Unauthorized")


_CAUSES = {
    "Required": "FieldValueRequired",
    "Invalid": "FieldValueInvalid",
    "Forbidden:": "FieldValueForbidden",
    "Duplicate": "FieldValueDuplicate",
    "Unsupported": "FieldValueNotSupported",
}
"""First word of a message after its field -> reason; kubectl prints the causes, not the message."""


def invalid(kind: str, name: str, message: str, group: str = "") -> ApiProblem:
    """422: a value is not allowed; the message is "field: reason"."""
    shown = f"{kind}.{group}" if group else kind
    field, _, fault = message.partition(": ")
    reason = _CAUSES.get(fault.partition(" ")[0], "FieldValueInvalid")
    details: JsonObject = {"name": name, "kind": kind} | ({"group": group} if group else {})
    details["causes"] = [{"reason": reason, "message": fault, "field": field}]
    return ApiProblem(422, "Invalid", f'{shown} "{name}" is invalid: {message}', details)


def bad_request(message: str) -> ApiProblem:
    """400: the request cannot be parsed."""
    return ApiProblem(400, "BadRequest", message)


def unsupported_body(content_type: str) -> ApiProblem:
    """415: the encoding is unknown."""
    return ApiProblem(415, "UnsupportedMediaType", f"the body of the request was in an unknown format - {content_type}")


def expired(version: str) -> ApiProblem:
    """410: the watch starts before the oldest version in the log."""
    return ApiProblem(410, "Expired", f"too old resource version: {version}")
