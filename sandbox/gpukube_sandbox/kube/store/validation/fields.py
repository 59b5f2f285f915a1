"""Field errors, worded like the API server's.

In scope: types of errors, and rules on names and labels that many objects share. Out of scope: rules of one type.

Source: k8s.io/apimachinery pkg/util/validation/field/errors.go, pkg/util/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Cause(NamedTuple):
    """One cause in a Status."""

    reason: str
    field: str
    text: str


_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_LABEL = 63
_LONGEST_NAME = 253
_LONGEST_PORT = 15
_MAX_PORT = 65535
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_TWO_PARTS_RULE = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def format_value(value: Any) -> str:  # noqa: ANN401 -- any JSON value
    """Format a value for a message."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def invalid(field: str, value: Any, detail: str) -> Cause:  # noqa: ANN401 -- any JSON value
    """Return the cause for a value that is not allowed."""
    return Cause("FieldValueInvalid", field, f"Invalid value: {format_value(value)}: {detail}")


def required(field: str, detail: str = "") -> Cause:
    """Return the cause for a missing field."""
    return Cause("FieldValueRequired", field, f"Required value{': ' if detail else ''}{detail}")


def forbidden(field: str, detail: str) -> Cause:
    """Return the cause for a field that must not be set or changed."""
    return Cause("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> Cause:  # noqa: ANN401 -- any JSON value
    """Return the cause for a duplicate value."""
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {format_value(value)}")


def unsupported(field: str, value: Any, choices: Iterable[str]) -> Cause:  # noqa: ANN401 -- any JSON value
    """Return the cause for a value that is not one of the choices."""
    known = ", ".join(f'"{choice}"' for choice in sorted(choices))
    return Cause(
        "FieldValueNotSupported", field, f"Unsupported value: {format_value(value)}: supported values: {known}"
    )


def too_long(field: str, most: int) -> Cause:
    """Return the cause for a value of too many bytes."""
    return Cause("FieldValueTooLong", field, f"Too long: may not be more than {most} bytes")


def too_many(field: str, count: int, most: int) -> Cause:
    """Return the cause for a list or map of too many items."""
    return Cause("FieldValueTooMany", field, f"Too many: {count}: must have at most {most} items")


def not_found(field: str, value: str) -> Cause:
    """Return the cause for a name that does not exist."""
    return Cause("FieldValueNotFound", field, f"Not found: {format_value(value)}")


def one_of(field: str, value: Any, choices: Iterable[str]) -> Iterator[Cause]:  # noqa: ANN401 -- any JSON value
    """Reject a value that is set but not one of the choices."""
    if value is not None and value not in choices:
        yield unsupported(field, value, choices)


def positive(field: str, value: Any, *, minimum: int = 0) -> Iterator[Cause]:  # noqa: ANN401 -- a number or nothing
    """Reject a number that is set but too small."""
    if isinstance(value, int) and value < minimum:
        yield invalid(field, value, "must be greater than zero" if minimum else "must be greater than or equal to 0")


def dns_label(field: str, value: str) -> Iterator[Cause]:
    """Reject a value that is not an RFC 1123 label."""
    if len(value) > _LONGEST_LABEL:
        yield invalid(field, value, f"must be no more than {_LONGEST_LABEL} bytes")
    if not _DNS_LABEL.fullmatch(value):
        yield invalid(field, value, "must not contain dots" if _SUBDOMAIN.fullmatch(value) else _DNS_LABEL_RULE)


def subdomain(field: str, value: str) -> Iterator[Cause]:
    """Reject a value that is not an RFC 1123 subdomain."""
    if len(value) > _LONGEST_NAME:
        yield invalid(field, value, f"must be no more than {_LONGEST_NAME} bytes")
    if not _SUBDOMAIN.fullmatch(value):
        yield invalid(field, value, _SUBDOMAIN_RULE)


def port(field: str, value: Any) -> Iterator[Cause]:  # noqa: ANN401 -- a number or a name
    """Reject a value that is neither a port number nor a valid port name."""
    if isinstance(value, int):
        if not 0 < value <= _MAX_PORT:
            yield invalid(field, value, f"must be between 1 and {_MAX_PORT}, inclusive")
        return
    name = str(value)
    if len(name) > _LONGEST_PORT:
        yield invalid(field, name, f"must be no more than {_LONGEST_PORT} characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        yield invalid(field, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        yield invalid(field, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid(field, name, "must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        yield invalid(field, name, "must not begin or end with a hyphen")


def address(field: str, text: str) -> Iterator[Cause]:
    """Reject a value that is not an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        yield invalid(field, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def no_parent_steps(field: str, path: str) -> Iterator[Cause]:
    """Reject a path that contains ".."."""
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def relative_path(field: str, path: str) -> Iterator[Cause]:
    """Reject a path that is absolute or leaves its base directory."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    yield from no_parent_steps(field, path)


def qualified_name(field: str, value: str) -> Iterator[Cause]:
    """Reject a value that is not a key of a label, annotation, or taint."""
    parts = value.split("/")
    if len(parts) > 2:  # noqa: PLR2004 - prefix and name
        yield invalid(field, value, _TWO_PARTS_RULE)
        return
    if len(parts) > 1:
        if not parts[0]:
            yield invalid(field, value, "prefix part must be non-empty")
        elif not _SUBDOMAIN.fullmatch(parts[0]) or len(parts[0]) > _LONGEST_NAME:
            yield invalid(field, value, f"prefix part {_SUBDOMAIN_RULE}")
    name = parts[-1]
    if not name:
        yield invalid(field, value, "name part must be non-empty")
    elif len(name) > _LONGEST_LABEL:
        yield invalid(field, value, f"name part must be no more than {_LONGEST_LABEL} bytes")
    if not _NAME_PART.fullmatch(name):
        yield invalid(field, value, _NAME_PART_RULE)


def label_value(field: str, value: str) -> Iterator[Cause]:
    """Reject a value that is not a value of a label or taint."""
    if len(value) > _LONGEST_LABEL:
        yield invalid(field, value, f"must be no more than {_LONGEST_LABEL} bytes")
    if not _LABEL_VALUE.fullmatch(value):
        yield invalid(field, value, _LABEL_VALUE_RULE)


def label_selector(field: str, selector: Any) -> Iterator[Cause]:  # noqa: ANN401 -- an object or nothing
    """Reject an invalid label selector.

    Source: k8s.io/apimachinery pkg/apis/meta/v1/validation, ValidateLabelSelectorRequirement.
    """
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        yield from qualified_name(f"{field}.matchLabels", key)
        yield from label_value(f"{field}.matchLabels", str(value))
    for at, requested in enumerate((selector or {}).get("matchExpressions") or ()):
        place = f"{field}.matchExpressions[{at}]"
        operator, values = requested.get("operator", ""), requested.get("values") or []
        if operator in {"In", "NotIn"}:
            if not values:
                yield required(f"{place}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in {"Exists", "DoesNotExist"}:
            if values:
                yield forbidden(f"{place}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{place}.operator", operator, "not a valid selector operator")
        yield from qualified_name(f"{place}.key", requested.get("key", ""))
