"""Server-side apply and the book of who owns which field.

Lives here: field sets as managedFields keep them, applying with conflicts, and what an update takes from others.
Must not live here: reading and writing the store.

Source: docs reference/using-api/server-side-apply; sigs.k8s.io/structured-merge-diff.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from gpukube.sandbox.kube.store.patches import merge_key_of, strategic_merge
from gpukube.sandbox.kube.store.problems import field_conflict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.sandbox.kube.store.objects import JsonObject

FieldPath: TypeAlias = tuple[str, ...]
"""Steps as in fieldsV1: "f:name", 'k:{"name":"x"}', "." for the list item itself."""

_UNTRACKED_META = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
        "generateName",
    }
)


@dataclass(frozen=True, slots=True)
class _Owner:
    manager: str
    operation: str
    api_version: str
    time: str
    fields: frozenset[FieldPath]

    def with_fields(self, fields: Iterable[FieldPath]) -> _Owner:
        return _Owner(self.manager, self.operation, self.api_version, self.time, frozenset(fields))


def _leaves(obj: JsonObject) -> dict[FieldPath, Any]:
    found: dict[FieldPath, Any] = {}
    for key, value in obj.items():
        if key in {"apiVersion", "kind", "status"}:
            continue
        if key == "metadata":
            value = {name: item for name, item in value.items() if name not in _UNTRACKED_META}  # noqa: PLW2901 -- narrowed
            if not value:
                continue
        _collect(value, (f"f:{key}",), key, found)
    return found


def _collect(value: Any, path: FieldPath, field: str, found: dict[FieldPath, Any]) -> None:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict) and value:
        for key, item in value.items():
            _collect(item, (*path, f"f:{key}"), key, found)
    elif isinstance(value, list) and value and (keys := merge_key_of(field, value)):
        for item in value:
            step = "k:" + json.dumps({key: item[key] for key in keys if key in item}, separators=(",", ":"))
            found[*path, step, "."] = None
            _collect(item, (*path, step), "", found)
    elif value is not None:
        found[path] = value


def _owners(obj: JsonObject) -> list[_Owner]:
    return [
        _Owner(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("time", ""),
            frozenset(_paths(entry.get("fieldsV1") or {})),
        )
        for entry in (obj.get("metadata") or {}).get("managedFields") or ()
        if not entry.get("subresource")
    ]


def _paths(trie: JsonObject, prefix: FieldPath = ()) -> Iterable[FieldPath]:
    for step, below in trie.items():
        if below:
            yield from _paths(below, (*prefix, step))
        else:
            yield (*prefix, step)


def _write_owners(obj: JsonObject, owners: Iterable[_Owner]) -> None:
    entries: list[JsonObject] = []
    for owner in owners:
        if not owner.fields:
            continue
        trie: JsonObject = {}
        for path in sorted(owner.fields):
            at = trie
            for step in path:
                at = at.setdefault(step, {})
        entries.append(
            {
                "manager": owner.manager,
                "operation": owner.operation,
                "apiVersion": owner.api_version,
                "time": owner.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": trie,
            }
        )
    obj["metadata"]["managedFields"] = entries


def record_update(old: JsonObject | None, new: JsonObject, manager: str, time: str) -> None:
    """Write into `new` who owns what after a create, replace or patch by `manager`.

    What changed belongs to that manager and to nobody else. A write may bring a book of its own; an empty
    one is none.
    """
    before, after = _leaves(old or {}), _leaves(new)
    touched = {path for path, value in after.items() if path not in before or before[path] != value}
    lost = touched | (before.keys() - after.keys())
    owners = _owners(new) or _owners(old or {})
    kept = [
        owner.with_fields(owner.fields - lost)
        for owner in owners
        if owner.manager != manager or owner.operation != "Update"
    ]
    mine = next((owner for owner in owners if owner.manager == manager and owner.operation == "Update"), None)
    fields = ((mine.fields if mine else frozenset()) & after.keys()) | touched
    if touched or mine:
        stamp = time if touched or not mine else mine.time
        kept.append(_Owner(manager, "Update", str(new.get("apiVersion", "")), stamp, frozenset(fields)))
    _write_owners(new, kept)


def apply_config(live: JsonObject | None, config: JsonObject, manager: str, *, force: bool, time: str) -> JsonObject:
    """Apply a configuration, creating the object when `live` is None; gives the new object.

    Args:
        live: The stored object.
        config: What the manager wants to own; metadata.managedFields must not be in it.
        manager: Name of the field manager.
        force: Take fields from other managers instead of refusing.
        time: Written into the book.

    Raises:
        ApiProblem: 409 with one cause per field that another manager owns with another value.
    """
    wanted = _leaves(config)
    version = str(config.get("apiVersion", ""))
    owners = _owners(live or {})
    current = _leaves(live or {})
    others = [owner for owner in owners if owner.manager != manager or owner.operation != "Apply"]
    clashes = {
        (owner.manager, owner.api_version, path)
        for owner in others
        for path in owner.fields & wanted.keys()
        if current.get(path) != wanted[path]
    }
    if clashes and not force:
        raise field_conflict(sorted((who, what, _spell(path)) for who, what, path in clashes))
    taken = {path for _, _, path in clashes}
    others = [owner.with_fields(owner.fields - taken) for owner in others]
    previous = next(
        (o.fields for o in owners if o.manager == manager and o.operation == "Apply"), frozenset[FieldPath]()
    )
    merged: JsonObject = strategic_merge(live or {}, _without_nulls(config))
    merged = copy.deepcopy(merged)
    # metadata always stays: its name is part of every configuration, and not in the book.
    held = _with_structs(frozenset(wanted).union(*(owner.fields for owner in others))) | {("f:metadata",)}
    # Whole list items first: without their key fields they could not be found any more. A struct before its fields.
    for path in sorted(_with_structs(previous) - held, key=lambda path: (path[-1] != ".", len(path))):
        _remove(merged, path)
    _write_owners(merged, [*others, _Owner(manager, "Apply", version, time, frozenset(wanted))])
    if live is not None and _same_but_times(live, merged):
        merged["metadata"]["managedFields"] = live["metadata"]["managedFields"]
    return merged


def _with_structs(paths: Iterable[FieldPath]) -> frozenset[FieldPath]:
    """Add the structs above the fields: one that its manager sends no more, and nobody else has a field of, goes whole.

    What the API server has filled in below it goes with it: livenessProbe.grpc leaves no `{}` when httpGet comes.

    Source:
        sigs.k8s.io/structured-merge-diff merge/update.go, prune; fieldpath/set.go, EnsureNamedFieldsAreMembers.
    """
    given = frozenset(paths)
    above = {path[:size] for path in given for size in range(1, len(path)) if path[size - 1].startswith("f:")}
    return given | above


def _same_but_times(live: JsonObject, merged: JsonObject) -> bool:
    def bare(obj: JsonObject) -> list[JsonObject]:
        return [{**entry, "time": ""} for entry in obj["metadata"].get("managedFields") or ()]

    return sorted(map(json.dumps, bare(live))) == sorted(map(json.dumps, bare(merged)))


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _spell(path: FieldPath) -> str:
    told = ""
    for step in path:
        if step.startswith("f:"):
            told += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = json.loads(step[2:])
            told += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items()) + "]"
    return told


def _remove(obj: JsonObject, path: FieldPath) -> None:
    at: Any = obj
    trail: list[tuple[Any, Any]] = []
    for step in path:
        if step == ".":
            container, item = trail[-1]
            container.remove(item)
            return
        if step.startswith("k:"):
            keys = json.loads(step[2:])
            item = next((i for i in at or () if all(i.get(k) == v for k, v in keys.items())), None)
            if item is None:
                return
            trail.append((at, item))
            at = item
        else:
            key = step[2:]
            if not isinstance(at, dict) or key not in at:
                return
            trail.append((at, key))
            at = at[key]
    container, key = trail[-1]
    if isinstance(container, dict):
        del container[key]
