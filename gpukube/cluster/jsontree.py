"""Reading trees of JSON that somebody else wrote, without trusting their shape.

Lives here: accessors that answer "empty" where the tree is not as expected. Must not live here: what a tree means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

__all__ = ["Tree", "at", "items", "leaves", "number", "pointer", "text", "texts", "tree"]

Tree: TypeAlias = Mapping[str, object]
"""A JSON object of unknown content."""


def at(value: object, *path: str) -> object:
    """Walk down a path of keys; None as soon as something is missing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def tree(value: object, *path: str) -> dict[str, object]:
    """Give the object at a path, {} when there is none."""
    found = at(value, *path)
    return {str(key): item for key, item in found.items()} if isinstance(found, Mapping) else {}


def items(value: object, *path: str) -> list[object]:
    """Give the list at a path, [] when there is none."""
    found = at(value, *path)
    return list(found) if isinstance(found, list | tuple) else []


def leaves(value: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Give every leaf of an object with its path; lists and empty objects are leaves."""
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from leaves(below, (*above, key))
        else:
            yield (*above, key), below


def text(value: object, *path: str) -> str:
    """Give the string at a path, "" when there is none; numbers and booleans are written out."""
    found = at(value, *path)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


def texts(value: object, *path: str) -> dict[str, str]:
    """Give the object at a path as strings: labels, selectors, quantities."""
    return {key: text(item) for key, item in tree(value, *path).items()}


def number(value: object, *path: str) -> int:
    """Give the whole number at a path, also when it is written as a string; 0 when there is none."""
    found = text(value, *path)
    return int(found) if found.lstrip("-").isdigit() else 0


def pointer(*path: str | int) -> str:
    """Write a path as a JSON pointer (RFC 6901): "/metadata/labels/nvidia.com~1gpu.present"."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
