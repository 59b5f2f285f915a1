"""Mistakes in a REST request, in the words of Google's frontend and with the field of each mistake.

In scope: unknown parameters and fields, and invalid enum values. Out of scope: rules of GKE.

The forms are seen in router-for-me/CLIProxyAPI#1531 (unknown name below the root), decolua/9router#1876 (at the root,
where the violation has no field), rancher/dashboard#11293 (a value of an enum), and in the common error codes of
https://firebase.google.com/docs/reference/rest/auth (a parameter).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.gke.wire.answers import GoogleError, Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor import Descriptor, FieldDescriptor  # type: ignore[import-untyped] # ships no types

_WELL_KNOWN = "google.protobuf."
_OF_ALL_CALLS = frozenset(
    {
        ".xgafv", "access_token", "alt", "callback", "fields", "key", "oauth_token", "prettyPrint", "quotaUser",
        "trace", "uploadType", "upload_protocol",
    }
)  # fmt: skip
"""Parameters of every call (StandardQueryParameters of the API's discovery document), each with an optional $ prefix
(docs: apis/docs/system-parameters)."""


def check_query(names: Iterable[str], kind: Descriptor | None) -> None:
    """Reject parameters that a call does not have.

    Args:
        names: Names of the parameters.
        kind: The message whose fields can be parameters; None if all are in the body.

    Raises:
        GoogleError: 400 with all mistakes, one per line, and a google.rpc.BadRequest.
    """
    fields = {name for field in (kind.fields if kind else ()) for name in (field.name, field.json_name)}
    _reject(
        _violation(
            "",
            f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter. Field '
            f"'{name}' could not be found in request message.",
        )
        for name in names
        if name not in fields and name.removeprefix("$") not in _OF_ALL_CALLS
    )


def check_fields(body: Json, kind: Descriptor) -> None:
    """Reject a body that does not match its message.

    Raises:
        GoogleError: 400 with all mistakes, one per line, and a google.rpc.BadRequest.
    """
    _reject(_violations(body, kind, ""))


def _reject(violations: Iterable[dict[str, str]]) -> None:
    found = list(violations)
    if found:
        details: Json = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": found}
        raise GoogleError("INVALID_ARGUMENT", "\n".join(entry["description"] for entry in found), [details])


def _violations(value: Json, kind: Descriptor, path: str) -> Iterator[dict[str, str]]:
    fields: dict[str, FieldDescriptor] = {}
    for field in kind.fields:
        fields[field.json_name] = fields[field.name] = field
    for key, item in value.items():
        if key in fields:
            field = fields[key]
            yield from _in_field(item, field, f"{path}.{field.name}" if path else field.name)
        else:
            place = f" at '{path}'" if path else ""
            yield _violation(path, f'Invalid JSON payload received. Unknown name "{key}"{place}: Cannot find field.')


def _in_field(value: object, field: FieldDescriptor, path: str) -> Iterator[dict[str, str]]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _in_field(item, field, f"{path}[{at}]")
    elif field.enum_type is not None and isinstance(value, str) and value not in field.enum_type.values_by_name:
        text = f"Invalid value at '{path}' (type.googleapis.com/{field.enum_type.full_name}), \"{value}\""
        yield _violation(path, text)
    elif isinstance(value, dict) and _has_own_fields(field):
        yield from _violations(value, field.message_type, path)


def _has_own_fields(field: FieldDescriptor) -> bool:
    """Return whether the field is a message with fields, not a map, and not a type with its own JSON form."""
    kind = field.message_type
    return kind is not None and not kind.GetOptions().map_entry and not kind.full_name.startswith(_WELL_KNOWN)


def _violation(path: str, text: str) -> dict[str, str]:
    return {"field": path, "description": text} if path else {"description": text}
