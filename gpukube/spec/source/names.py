"""Names of clusters and pools in a possibly incomplete text, for completion; without models and messages.

In scope: reading names from YAML events up to the first error. Out of scope: reporting errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

if TYPE_CHECKING:
    from typing import Any

_LIST: Final = object()
"""Placeholder for the position in a list."""


@dataclass(slots=True)
class Names:
    """Keys of `clusters` and names of `pools`, as written and in order."""

    clusters: list[str] = field(default_factory=list)
    pools: list[str] = field(default_factory=list)


def names_in(text: str) -> Names:
    """Return the names in all documents of a text, up to the first YAML error."""
    names = Names()
    place: list[Any] = []  # per open collection: _LIST, or the key whose value is next, or None before a key
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            kind = type(event)
            if kind is DocumentStartEvent:
                place = []
            elif kind is MappingStartEvent:
                place.append(None)
            elif kind is SequenceStartEvent:
                place.append(_LIST)
            elif isinstance(event, CollectionEndEvent):
                place.pop()
                _close(place)
            elif kind is ScalarEvent and place and place[-1] is None:
                place[-1] = value = cast("ScalarEvent", event).value
                if len(place) == 2 and place[0] == "clusters":  # noqa: PLR2004 - clusters, key
                    names.clusters.append(value)
            elif kind is ScalarEvent:
                if place == ["pools", _LIST, "name"]:
                    names.pools.append(cast("ScalarEvent", event).value)
                _close(place)
            elif kind is AliasEvent:
                _close(place)
    except yaml.YAMLError:
        pass  # an incomplete line
    return names


def _close(place: list[Any]) -> None:
    """Mark a value as complete: the next scalar of its mapping is a key."""
    if place and place[-1] is not _LIST:
        place[-1] = None
