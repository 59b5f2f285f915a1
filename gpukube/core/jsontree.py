"""Reads untrusted JSON trees.

In scope: accessors that return an empty value if the tree has an unexpected shape. Out of scope: what a tree means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import TypeAlias

Tree: TypeAlias = Mapping[str, object]
"""A JSON object of unknown content."""


_OBJECT = (dict, Mapping)
"""`dict` comes first: checking only Mapping calls an abstract class, a quarter of the total read time."""
_LEAF = (str, int, float, list, tuple)
"""Types that are not objects, for the same fast check."""


def at(value: object, *path: str | int) -> object:
    """Return the value at a path of keys and list positions; None if any step is missing."""
    for step in path:
        if isinstance(step, str) and isinstance(value, _OBJECT):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list | tuple) and step < len(value):
            value = value[step]
        else:
            return None
        if value is None:
            return None
    return value


def tree(value: object, *path: str | int) -> dict[str, object]:
    """Return a copy of the object at a path, {} if there is none."""
    found = at(value, *path)
    if isinstance(found, dict):
        try:
            return dict(**found)  # a copy in C, four times as fast; rejects keys that are not strings
        except TypeError:
            pass
    return {str(key): item for key, item in found.items()} if isinstance(found, _OBJECT) else {}


def items(value: object, *path: str | int) -> list[object]:
    """Return the list at a path, [] if there is none."""
    found = at(value, *path)
    return list(found) if isinstance(found, list | tuple) else []


def trees(value: object, *path: str | int) -> list[dict[str, object]]:
    """Return the objects in the list at a path, skipping other items."""
    return [tree(item) for item in items(value, *path) if isinstance(item, Mapping)]


def strings(value: object, *path: str | int) -> tuple[str, ...]:
    """Return the list at a path as strings: zones, subnets, taints."""
    return tuple(map(str, items(value, *path)))


def leaves(value: Tree, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every leaf of an object with its path; lists and empty objects are leaves."""
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from leaves(below, (*above, key))
        else:
            yield (*above, key), below


def text(value: object, *path: str | int) -> str:
    """Return the string at a path, "" if there is none; numbers and booleans become text."""
    found = at(value, *path) if path else value
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, int | float) else ""


def texts(value: object, *path: str | int) -> dict[str, str]:
    """Return the object at a path as strings: labels, selectors, quantities."""
    return {key: item if isinstance(item, str) else text(item) for key, item in tree(value, *path).items()}


def number(value: object, *path: str | int) -> int:
    """Return the whole number at a path, also if it is a string; 0 if there is none."""
    found = text(value, *path)
    return int(found) if found.removeprefix("-").isdecimal() else 0


def integer(value: object, *path: str | int) -> int | None:
    """Return the number at a path if it is an integer in the JSON; None otherwise."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def decimal(value: object, *path: str | int) -> float | None:
    """Return the number at a path, which some APIs send as a string; None for anything else, including infinities."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        read = float(found)
    except (ValueError, OverflowError):
        return None
    return read if isfinite(read) else None


def merged(old: Tree, new: Tree) -> dict[str, object]:
    """Return two trees merged; lists of one object are merged like the object, other lists are replaced."""
    found = dict(old)
    for name, value in new.items():
        found[name] = _merged(found.get(name), value)
    return found


def merge_into(found: dict[str, object], new: Tree) -> None:
    """Merge a tree into a tree that the caller owns, as `merged` does; `new` is not modified."""
    for name, value in new.items():
        old = found.get(name)
        if not isinstance(value, _LEAF) and isinstance(value, _OBJECT):
            own = old if isinstance(old, dict) else {}
            found[name] = own
            merge_into(own, value)
        else:
            found[name] = value if old is None else _merged(old, value)


def _merged(old: object, new: object) -> object:
    if isinstance(old, _OBJECT) and isinstance(new, _OBJECT):
        return merged(old, new)
    if isinstance(old, list) and isinstance(new, list) and all(isinstance(item, _OBJECT) for item in (*old, *new)):
        return [_merged(before, after) for before, after in zip(old, new, strict=False)]
    return new


def pointer(*path: str | int) -> str:
    """Return a path as a JSON pointer (RFC 6901): "/metadata/labels/nvidia.com~1gpu.present"."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
