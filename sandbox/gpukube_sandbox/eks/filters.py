"""Filters of EC2's Describe calls.

In scope: reading them, and which entries they leave. Out of scope: which filters a call has (`ec2`).

Source: docs: AWSEC2/latest/UserGuide/Using_Filtering (several values are alternatives, several filters all count, * is
any text, ? any character, values are case-sensitive); botocore ec2/2016-11-15, the documentation of each `Filters`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.eks.wire.answers import Json, Refusal, objects_in
from gpukube_sandbox.eks.wire.query import numbered, structures

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAGGED: Final = ("tag:", "tag-key", "tag-value")


def filtered(params: Mapping[str, str], entries: Sequence[Json], known: Mapping[str, str]) -> list[Json]:
    """Return the entries that all filters of a request leave.

    Args:
        params: Of the request.
        entries: As the answer has them.
        known: Filter -> member of an entry, below others after dots; tags are known without.

    Raises:
        Refusal: 400 for a filter that the call has not.
    """
    found = list(entries)
    for prefix in structures(params, "Filter"):
        name, values = params.get(f"{prefix}Name", ""), numbered(params, f"{prefix}Value")
        if name not in known and not name.startswith(TAGGED):
            raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
        found = [entry for entry in found if any(fits(text, values) for text in _texts(entry, name, known))]
    return found


def fits(text: str, patterns: Sequence[str]) -> bool:
    """Whether any pattern fits a text."""
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
    """Write tags as EC2 does; None for none."""
    return {"item": [{"key": key, "value": value} for key, value in tags.items()]} if tags else None
