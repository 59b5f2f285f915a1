"""Validates entries that declare clusters or other resources.

In scope: checking an entry against its keys, and the path of a mistake. Out of scope: the keys, which each cloud
defines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    Path: TypeAlias = tuple[str | int, ...]
    Shape: TypeAlias = "Keys | list[Shape] | type[str | int | bool | dict[str, object]]"

_VERSION: Final = re.compile(r"1\.(\d\d)(\.\d+)?(-gke\.\d+)?")
_OLDEST, _NEWEST = 24, 37
"""Minor versions of Kubernetes that a cluster can have here; a real cloud offers only a few of them at a time."""
_KINDS: Final = {str: "text", int: "a whole number", bool: "true or false", dict: "a mapping"}


@dataclass(frozen=True, slots=True)
class Keys:
    """A mapping with these keys.

    Attributes:
        needed: Required keys, which must not be empty.
        more: Optional keys.
    """

    needed: Mapping[str, Shape] = field(default_factory=dict)
    more: Mapping[str, Shape] = field(default_factory=dict)


class WrongEntry(ValueError):
    """An entry is invalid.

    Args:
        text: The mistake.
        at: Its path: keys and indexes.
    """

    def __init__(self, text: str, *at: str | int) -> None:
        super().__init__(text)
        self.at = at


def check_entry(value: object, shape: Shape, *at: str | int) -> None:
    """Reject a value that does not match a shape.

    Raises:
        WrongEntry: The first mistake.
    """
    if isinstance(shape, Keys):
        _check_keys(value, shape, at)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise WrongEntry(f"{_name(at)} must be a list", *at)
        for index, item in enumerate(value):
            check_entry(item, shape[0], *at, index)
    elif type(value) is not shape:  # True is not a number
        quoted = f': write "{value}"' if shape is str and type(value) is int else ""
        raise WrongEntry(f"{_name(at)} is {_shown(value)}; it must be {_KINDS[shape]}{quoted}", *at)


def check_known(value: object, known: Collection[str], *at: str | int) -> None:
    """Reject a name that is not known, suggesting the nearest.

    Args:
        value: The name; "" if omitted.
        known: The known names.
        at: Its path (keys and indexes); the last key is its description ("region").

    Raises:
        WrongEntry: The name is unknown.
    """
    if value and value not in known:
        near = get_close_matches(str(value), sorted(known), n=1, cutoff=0.0)
        raise WrongEntry(f"there is no {_name(at)} {value}; the nearest is {near[0]}", *at)


def check_cluster(entry: Mapping[str, object], name: re.Pattern[str], rule: str) -> None:
    """Reject a cluster with an invalid name or an unknown Kubernetes version.

    Args:
        entry: An entry with `name` and optionally `kubernetesVersion`.
        name: Pattern for names.
        rule: The pattern in words.

    Raises:
        WrongEntry: The first mistake.
    """
    if not name.fullmatch(str(entry["name"])):
        raise WrongEntry(f"name is {entry['name']}; it must be {rule}", "name")
    version = str(entry.get("kubernetesVersion") or f"1.{_NEWEST}")
    found = _VERSION.fullmatch(version)
    if not (found and _OLDEST <= int(found[1]) <= _NEWEST):
        near = _OLDEST if found and int(found[1]) < _OLDEST else _NEWEST
        message = f"there is no Kubernetes {version}; there are 1.{_OLDEST} to 1.{_NEWEST}, the nearest is 1.{near}"
        raise WrongEntry(message, "kubernetesVersion")


def _check_keys(value: object, shape: Keys, at: Path) -> None:
    if not isinstance(value, dict):
        raise WrongEntry(f"{_name(at)} must be a mapping", *at)
    known = {**shape.needed, **shape.more}
    for key, item in value.items():
        if key not in known:
            raise WrongEntry(f'there is no key "{key}"; there are {", ".join(sorted(known))}', *at, key)
        check_entry(item, known[key], *at, key)
    for key in shape.needed:
        if value.get(key) in (None, ""):
            raise WrongEntry(f"{key} is missing", *at, key)


def _name(at: Path) -> str:
    """Return the last key of a path, including the indexes after it."""
    name = ""
    for step in reversed(at):
        if isinstance(step, str):
            return step + name
        name = f"[{step}]{name}"
    return name or "the entry"


def _shown(value: object) -> str:
    return "empty" if value is None else "a list" if isinstance(value, list) else str(value)
