"""Checks the `aks:` fields of a spec against the table of members, and flattens them for comparison.

In scope: names, shapes, and ranges. Out of scope: the table (`members`), the effect of a change (`updates`), adding
fields to a request (`translate`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import at
from gpukube.errors import Finding
from gpukube.spec.wording import choices, did_you_mean, nearest
from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.pool.members import FIELDS, NATIVE, REFUSED, ListOf, MapOf, native_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Locator, Target
    from gpukube_aks.pool.members import Shape

_LEAVES: Final = tuple(tuple(path.split(".")) for path, _ in native_leaves())
_INDEX: Final = re.compile(r"\[\d+\]")
_JSON_TYPES: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "str": (str, "a string"),
    "strings": (list, "a list of strings"),
}


def check_native(target: Target) -> list[Finding]:
    """Check that the `aks:` fields of a pool are known, not set by gpukube, and of the right shape and range."""
    return list(_check_members("aks", target.native, NATIVE, target.locator))


def _check_shape(path: str, value: object, shape: Shape, locator: Locator) -> Iterator[Finding]:
    if isinstance(shape, Mapping):
        yield from _check_members(path, value, shape, locator)
    elif isinstance(shape, ListOf):
        yield from _check_list(path, value, shape, locator)
    elif isinstance(shape, MapOf):
        yield from _check_map(path, value, shape, locator)
    elif isinstance(shape, tuple):
        if value not in shape:
            meant = nearest(str(value), shape)
            fix = did_you_mean(meant) if meant else f"write {choices(shape)}"
            message = f"{path} is {_shown(value)}, which is not one of its values"
            yield Finding("aks-native-value", locator.at(path), message, fix=fix)
    elif not _fits(value, shape):
        message = f"{path} is {_shown(value)}; expected {_JSON_TYPES[shape][1]}"
        yield Finding("aks-native-value", locator.at(path), message, fix=_rewrite(value, shape))
    elif (limit := LIMITS.get(_INDEX.sub("", path.removeprefix("aks.")))) and not limit.allows(value):
        message = f"{path} is {_shown(value)}, which AKS does not accept"
        yield Finding("aks-native-value", locator.at(path), message, fix=f"write {limit.expected}", why=limit.source)


def _check_members(path: str, value: object, shape: Mapping[str, Shape], locator: Locator) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        yield _mistyped(path, value, f"a mapping with {_some(shape, 5)}", locator)
        return
    for name, member in value.items():
        inner = f"{path}.{name}"
        if name in shape:
            yield from _check_shape(inner, member, shape[name], locator)
        else:
            yield _refusal(inner, str(name), shape, locator)


def _check_list(path: str, value: object, shape: ListOf, locator: Locator) -> Iterator[Finding]:
    if not isinstance(value, list):
        yield _mistyped(path, value, f"a list of mappings with {_some(shape.item, 5)}", locator)
        return
    for index, item in enumerate(value):
        yield from _check_members(f"{path}[{index}]", item, shape.item, locator)


def _check_map(path: str, value: object, shape: MapOf, locator: Locator) -> Iterator[Finding]:
    """Check the values of a map; they are reported at the map, since its keys may contain dots."""
    if not isinstance(value, Mapping):
        yield _mistyped(path, value, f"a mapping of names to mappings with {_some(shape.item, 5)}", locator)
        return
    for inner in value.values():
        for found in _check_members(path, inner, shape.item, locator):
            yield replace(found, where=locator.at(path))


def _mistyped(path: str, value: object, expected: str, locator: Locator) -> Finding:
    noun = " ".join(expected.split()[:2])
    message = f"{path} is {_shown(value)}; expected {noun}"
    return Finding("aks-native-value", locator.at(path), message, fix=f"write {expected}")


def _refusal(path: str, name: str, shape: Mapping[str, Shape], locator: Locator) -> Finding:
    """Return why a spec cannot have this member: gpukube sets it, it is refused, or there is no such member."""
    wire, where = path.removeprefix("aks."), locator.at(path)
    if fields := _fields_at(wire):
        message = f"{path} is set by gpukube itself"
        return Finding("aks-native-managed", where, message, fix=f"write {' or '.join(fields)} instead")
    if reasons := [reason for member, reason in REFUSED.items() if f"{member}.".startswith(f"{wire}.")]:
        return Finding("aks-native-refused", where, f"{path} cannot be set", fix="remove it", why=reasons[0])
    above, _, _ = wire.rpartition(".")
    message = (
        f'{path.rpartition(".")[0]} has no property "{name}"' if above else f'an agent pool has no property "{name}"'
    )
    fields_beside = {
        member.removeprefix(f"{above}.") if above else member: field
        for member, field in FIELDS.items()
        if member.rpartition(".")[0] == above
    }
    return Finding("aks-native-unknown", where, message, fix=_nearest(name, shape, fields_beside))


def _fields_at(wire: str) -> tuple[str, ...]:
    """Return the fields of the spec that set a member, or the members below it."""
    found = (field for member, field in FIELDS.items() if f"{member}.".startswith(f"{wire}."))
    return tuple(dict.fromkeys(found))


def _fits(value: object, shape: str) -> bool:
    expected = _JSON_TYPES[shape][0]
    if expected is int and isinstance(value, bool):
        return False
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return False
    return isinstance(value, expected)


def _nearest(name: str, known: Mapping[str, Shape], fields: Mapping[str, str]) -> str:
    """Return a fix with the most similar name, or the field of the spec that replaces it."""
    near = get_close_matches(name, (*known, *fields), n=1, cutoff=0.6)
    return did_you_mean(fields.get(near[0], near[0])) if near else f"write {_some(known, 12)}"


def _some(known: Mapping[str, Shape], most: int) -> str:
    """Return a list of the choices, cut after `most`."""
    names = sorted(known)
    more = f" ({len(names) - most} more in Azure's agentPools reference)" if len(names) > most else ""
    return f"one of {', '.join(names[:most])}{more}" if len(names) > 1 else names[0]


def _rewrite(value: object, shape: str) -> str:
    """Return a fix, with the value itself if only its quotes are wrong."""
    if shape == "str" and isinstance(value, (int, float)):
        return f'write "{json.dumps(value)}", in quotes'
    unquoted = {"int": str.isdecimal, "bool": ("true", "false").__contains__}.get(shape)
    if isinstance(value, str) and unquoted is not None and unquoted(value):
        return f"write {value}, without quotes"
    return f"write {_JSON_TYPES[shape][1]}"


def _shown(value: object) -> str:
    """Return a value in YAML's spelling: true and null, not True and None."""
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, default=str)


def flatten_native(properties: Mapping[str, object]) -> dict[FieldPath, object]:
    """Flatten native properties to comparable fields, aks.upgradeSettings.drainTimeoutInMinutes and the like.

    Lists become tuples, and are compared as a whole, as are maps. ARM ids become lower case, since ARM ignores case.
    """
    found = ((path, at(properties, *path)) for path in _LEAVES if path[0] in properties)
    return {FieldPath("aks", *path): _comparable(value) for path, value in found if value not in (None, {})}


def _comparable(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and value.lower().startswith("/subscriptions/"):
        return value.lower()
    return value
