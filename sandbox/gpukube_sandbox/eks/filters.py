"""Filters of EC2's Describe calls.

In scope: parsing and applying them. Out of scope: which filters a call supports (`ec2`).

Source: docs: AWSEC2/latest/UserGuide/Using_Filtering (several values are alternatives, several filters are combined, *
matches any text, ? any character, values are case-sensitive); botocore ec2/2016-11-15, the documentation of each
`Filters`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.eks.wire.answers import AwsError, Json, objects_in
from gpukube_sandbox.eks.wire.query import numbered, structures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAGGED: Final = ("tag:", "tag-key", "tag-value")


def filtered(params: Mapping[str, str], entries: Sequence[Json], known: Mapping[str, str]) -> list[Json]:
    """Return the entries that match all filters of a request.

    Args:
        params: Parameters of the request.
        entries: Entries in the form of the response.
        known: Filter -> member of an entry, nested members with dots; tag filters always work.

    Raises:
        AwsError: 400 for a filter that the call does not support.
    """
    found = list(entries)
    for prefix in structures(params, "Filter"):
        name, values = params.get(f"{prefix}Name", ""), numbered(params, f"{prefix}Value")
        if name not in known and not name.startswith(TAGGED):
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
        found = [entry for entry in found if any(fits(text, values) for text in _texts(entry, name, known))]
    return found


def fits(text: str, patterns: Sequence[str]) -> bool:
    """Return whether any pattern matches a text."""
    return any(re.fullmatch(_expression(pattern), text, re.DOTALL) for pattern in patterns)


def _expression(pattern: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern)


def _texts(entry: Json, name: str, known: Mapping[str, str]) -> list[str]:
    if name.startswith(TAGGED):
        tags = entry.get("tagSet")
        items = objects_in(tags.get("item")) if isinstance(tags, dict) else []
        pairs = {str(tag["key"]): str(tag["value"]) for tag in items}
        if name in {"tag-key", "tag-value"}:
            return list(pairs if name == "tag-key" else pairs.values())
        value = pairs.get(name.removeprefix("tag:"))
        return [] if value is None else [value]
    found: object = entry
    for step in known[name].split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return [] if found is None else [str(found).lower() if isinstance(found, bool) else str(found)]


def tag_set(tags: Mapping[str, str]) -> Json | None:
    """Return tags in EC2's form; None for none."""
    return {"item": [{"key": key, "value": value} for key, value in tags.items()]} if tags else None
