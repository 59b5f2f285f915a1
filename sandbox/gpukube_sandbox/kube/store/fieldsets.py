"""Sets of fields, and merging, comparing, and pruning objects by field.

In scope: paths as in managedFields, and traversal of values by their structure. Out of scope: owners.

Source: sigs.k8s.io/structured-merge-diff v6, fieldpath and typed (tofieldset.go, compare.go, merge.go, remove.go).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.structure import Structure

FieldPath: TypeAlias = tuple[str, ...]
"""Steps as in fieldsV1: "f:name", 'k:{"name":"x"}' for a list item, 'v:"x"' for a scalar of a set."""

_ABSENT: Any = object()


# paths


def from_fields(tree: JsonObject) -> frozenset[FieldPath]:
    """Parse fieldsV1."""
    found: set[FieldPath] = set()

    def walk(node: JsonObject, path: FieldPath) -> None:
        if not node or "." in node:
            found.add(path)
        for step, below in node.items():
            if step != ".":
                walk(below, (*path, step))

    for step, below in tree.items():
        walk(below, (step,))
    return frozenset(found)


def to_fields(paths: Iterable[FieldPath]) -> JsonObject:
    """Return fieldsV1; a member with other members below it contains a "."."""
    members = set(paths)
    tree: JsonObject = {}
    for path in sorted(members):
        at: JsonObject = tree
        for size, step in enumerate(path, 1):
            if path[:size] in members and size < len(path):
                at = at.setdefault(step, {})
                at.setdefault(".", {})
            else:
                at = at.setdefault(step, {})
    return tree


def format_path(path: FieldPath) -> str:
    """Format a path as in messages: .spec.containers[name="main"].image."""
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = json.loads(step[2:])
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items()) + "]"
        else:
            text += f"[={step[2:]}]"
    return text


def with_named_fields(paths: Iterable[FieldPath], structure: Structure) -> frozenset[FieldPath]:
    """Add parent fields that the type names: an owner of `a.b` owns the struct `a`, but no map and no list item."""
    found = set(paths)
    for path in list(found):
        at = structure
        for size, step in enumerate(path[:-1], 1):
            if step.startswith("f:"):
                if at.declares(step[2:]):
                    found.add(path[:size])
                at = at.field(step[2:])
            else:
                at = at.item()
    return frozenset(found)


# traversal


def _step(item: Any, structure: Structure) -> str:  # noqa: ANN401 -- any JSON value
    if structure.is_set or not isinstance(item, dict):
        return "v:" + json.dumps(item, separators=(",", ":"))
    return "k:" + json.dumps(structure.key_of(item), separators=(",", ":"))


def _by_step(items: list[Any], structure: Structure) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(_step(item, structure), []).append(item)
    return found


def field_set(value: JsonObject, structure: Structure) -> frozenset[FieldPath]:
    """Return the fields of an object: leaves, list items, and fields that the type does not name."""
    found: set[FieldPath] = set()
    _collect(value, structure, (), found)
    return frozenset(found)


def _collect(value: Any, structure: Structure, path: FieldPath, found: set[FieldPath]) -> None:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict) and not structure.is_atomic:
        for key, item in value.items():
            below = (*path, f"f:{key}")
            _collect(item, structure.field(key), below, found)
            if item == {} or not structure.declares(key):
                found.add(below)
    elif isinstance(value, list) and not structure.is_atomic_list:
        for step, items in _by_step(value, structure).items():
            found.add((*path, step))
            if len(items) == 1:  # for items with the same key, only the key is recorded
                _collect(items[0], structure.item(), (*path, step), found)
    else:
        found.add(path)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two objects."""

    removed: frozenset[FieldPath]
    modified: frozenset[FieldPath]
    added: frozenset[FieldPath]


@dataclass(slots=True)
class _Differences:
    removed: set[FieldPath] = field(default_factory=set)
    modified: set[FieldPath] = field(default_factory=set)
    added: set[FieldPath] = field(default_factory=set)


def compare(old: JsonObject, new: JsonObject, structure: Structure) -> Comparison:
    """Return the differences; for a subtree in one object only, its root and all fields below."""
    found = _Differences()
    _compare(old, new, structure, (), found)
    return Comparison(frozenset(found.removed), frozenset(found.modified), frozenset(found.added))


def _compare(old: Any, new: Any, structure: Structure, path: FieldPath, found: _Differences) -> None:  # noqa: ANN401 -- any JSON
    if old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)
    pairs = _pairs(old, new, structure)
    if pairs is None:
        if old is not _ABSENT and new is not _ABSENT and old != new:
            found.modified.add(path)
        return
    for step, before, after, below in pairs:
        _compare(before, after, below, (*path, step), found)


def _pairs(old: Any, new: Any, structure: Structure) -> list[tuple[str, Any, Any, Structure]] | None:  # noqa: ANN401 -- any JSON
    """Pair the parts of two values; None if they are compared and replaced as a whole."""
    values = [value for value in (old, new) if value is not _ABSENT]
    if not any(values):  # both empty: compared as values
        return None
    if all(isinstance(value, dict) for value in values) and not structure.is_atomic:
        before, after = ({} if value is _ABSENT else value for value in (old, new))
        return [
            (f"f:{key}", before.get(key, _ABSENT), after.get(key, _ABSENT), structure.field(key))
            for key in {**before, **after}
        ]
    if all(isinstance(value, list) for value in values) and not structure.is_atomic_list:
        known = [_by_step([] if value is _ABSENT else value, structure) for value in (old, new)]
        return [
            (
                step,
                *(_only(some.get(step), others.get(step)) for some, others in (known, reversed(known))),
                structure.item(),
            )
            for step in {**known[0], **known[1]}
        ]
    return None


def _only(items: list[Any] | None, others: list[Any] | None) -> Any:  # noqa: ANN401 -- any JSON value
    """Return the only item with a key; all items, as one value, if either side has several."""
    if items is None:
        return _ABSENT
    return items[0] if max(len(items), len(others or ())) == 1 else items


def merge(old: Any, new: Any, structure: Structure) -> Any:  # noqa: ANN401 -- any JSON value
    """Return one value merged over another; neither is changed."""
    if old is _ABSENT:
        return new
    if new is _ABSENT:
        return old
    if isinstance(old, dict) and isinstance(new, dict) and not structure.is_atomic:
        return {
            key: merge(old.get(key, _ABSENT), new.get(key, _ABSENT), structure.field(key)) for key in {**old, **new}
        }
    if isinstance(old, list) and isinstance(new, list) and not structure.is_atomic_list:
        return _merge_lists(old, new, structure)
    return new


def _merge_lists(old: list[Any], new: list[Any], structure: Structure) -> list[Any]:
    """Merge by keys: new items keep their order, the others stay before their previous successors."""
    before = [(_step(item, structure), item) for item in old]
    known, after = dict(reversed(before)), {_step(item, structure): item for item in new}
    shared = [step for step in after if step in known]
    ahead = list(after)
    result: list[Any] = []
    done: set[str] = set()

    def take(step: str) -> None:
        result.append(merge(known.get(step, _ABSENT), after[step], structure.item()))
        done.add(step)
        ahead.remove(step)
        if shared and shared[0] == step:
            shared.pop(0)

    at = 0
    while at < len(before) or ahead:
        if at < len(before) and ahead:
            step = before[at][0]
            if step == ahead[0]:
                take(step)
                at += 1
                continue
            if step in after and shared and shared[0] != step:
                at += 1
                continue
        if at < len(before):
            step, item = before[at]
            if step not in after:
                result.append(item)
                at += 1
                continue
            if step in done:
                at += 1
        if ahead:
            take(ahead[0])
    return result


def remove(value: Any, paths: Iterable[FieldPath], structure: Structure) -> Any:  # noqa: ANN401 -- any JSON value
    """Return a value without some fields; containers that become empty stay, and the original is unchanged."""
    ends = {path[0] for path in paths if len(path) == 1}
    below: dict[str, list[FieldPath]] = {}
    for path in paths:
        if len(path) > 1:
            below.setdefault(path[0], []).append(path[1:])
    if isinstance(value, dict) and not structure.is_atomic:
        return {
            key: remove(item, below[f"f:{key}"], structure.field(key)) if f"f:{key}" in below else item
            for key, item in value.items()
            if f"f:{key}" not in ends
        }
    if isinstance(value, list) and not structure.is_atomic_list:
        return [
            remove(item, below[step], structure.item()) if step in below else item
            for step, item in ((_step(item, structure), item) for item in value)
            if step not in ends
        ]
    return value
