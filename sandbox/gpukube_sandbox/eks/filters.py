"""Parameters that many of EC2's calls have: filters, pages, tags.

In scope: parsing and applying them. Out of scope: which filters a call supports (`ec2`).

Source: docs: AWSEC2/latest/UserGuide/Using_Filtering (several values are alternatives, several filters are combined, *
matches any text, ? any character, values are case-sensitive); botocore ec2/2016-11-15, the documentation of each
`Filters`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube_sandbox.eks.templatedata import TAG_SPECIFICATIONS
from gpukube_sandbox.eks.wire.answers import AwsError, Json, objects_in
from gpukube_sandbox.eks.wire.query import numbered, read_members, structures
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_T = TypeVar("_T")
TAGGED: Final = ("tag:", "tag-key", "tag-value")


def filtered(params: Mapping[str, str], entries: Sequence[Json], known: Mapping[str, str]) -> list[Json]:
    """Return the entries that match all filters of a request.

    Args:
        params: Parameters of the request.
        entries: Entries in the form of the response.
        known: Filter -> member of an entry, nested members with dots, also of objects in lists; tag filters always
            work.

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
    return any(_expression(pattern).fullmatch(text) for pattern in patterns)


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """Compile a pattern once: a call compares it with every resource of the region."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)


def _texts(entry: Json, name: str, known: Mapping[str, str]) -> list[str]:
    if name.startswith(TAGGED):
        tags = entry.get("tagSet")
        items = objects_in(tags.get("item")) if isinstance(tags, dict) else []
        pairs = {str(tag["key"]): str(tag["value"]) for tag in items}
        if name in {"tag-key", "tag-value"}:
            return list(pairs if name == "tag-key" else pairs.values())
        value = pairs.get(name.removeprefix("tag:"))
        return [] if value is None else [value]
    values: list[object] = [entry]
    for step in known[name].split("."):
        values = [item for value in values for item in _members(value, step)]
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def _members(value: object, name: str) -> list[object]:
    """Return a member of an object, or the items of a list in EC2's form."""
    found = value.get(name) if isinstance(value, dict) else None
    items = found.get("item") if isinstance(found, dict) else None
    return items if isinstance(items, list) else [] if found is None else [found]


def tag_set(tags: Mapping[str, str]) -> Json | None:
    """Return tags in EC2's form; None for none."""
    return {"item": [{"key": key, "value": value} for key, value in tags.items()]} if tags else None


def read_tags(params: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the resource's own tags from TagSpecification; reject other resource types."""
    found: dict[str, str] = {}
    for prefix in structures(params, "TagSpecification"):
        specification = read_members(params, prefix, TAG_SPECIFICATIONS.members)
        if specification.get("ResourceType") != kind:
            message = f"'{specification.get('ResourceType')}' is not a valid taggable resource type for this operation."
            raise AwsError("InvalidParameterValue", message)
        found |= {str(tag["Key"]): str(tag.get("Value", "")) for tag in objects_in(specification.get("Tags"))}
    return found


def page_of(found: Sequence[_T], params: Mapping[str, str], usual: int) -> tuple[Sequence[_T], str | None]:
    """Return a page of results and the token of the next; `usual` is also the maximum (botocore, if documented)."""
    requested = params.get("MaxResults", "")
    if requested and (not requested.isdigit() or not 1 <= int(requested) <= usual):
        raise AwsError("InvalidParameterValue", f"Value ({requested}) for parameter maxResults is invalid.")
    try:
        page, following = cut(params.get("Action", ""), found, params.get("NextToken", ""), int(requested or usual))
    except WrongToken as error:
        raise AwsError("InvalidNextToken", "The token is not valid.") from error
    return page, following or None
