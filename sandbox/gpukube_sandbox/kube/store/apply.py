"""Server-side apply, and field ownership.

In scope: managedFields, applying with conflicts and pruning, ownership changes of an update. Out of scope: sets of
fields (`fieldsets`), reading and writing the store.

Source: docs reference/using-api/server-side-apply; sigs.k8s.io/structured-merge-diff v6, merge/update.go (the same
steps); k8s.io/apimachinery pkg/util/managedfields.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.fieldsets import (
    FieldPath,
    compare,
    field_set,
    format_path,
    from_fields,
    merge,
    remove,
    to_fields,
    with_named_fields,
)
from gpukube_sandbox.kube.store.objects import annotations_of, copied, meta
from gpukube_sandbox.kube.store.problems import field_conflict
from gpukube_sandbox.kube.store.structure import without_omitted

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.structure import Structure

_UNTRACKED: frozenset[FieldPath] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    }
)
_ALWAYS_WRITTEN: frozenset[FieldPath] = frozenset(
    {
        ("f:roleRef",),
        ("f:spec",),
        ("f:spec", "f:containers"),
        ("f:spec", "f:strategy"),
        ("f:spec", "f:template"),
        ("f:spec", "f:template", "f:metadata"),
        ("f:spec", "f:template", "f:spec"),
        ("f:spec", "f:template", "f:spec", "f:containers"),
        ("f:spec", "f:updateStrategy"),
    }
)
"""Fields that Go writes even for an empty object, so that setting them does not add them."""
_BEFORE_FIRST_APPLY = "before-first-apply"
"""Owner of fields that existed before tracking started."""
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True)
class _Id:
    manager: str
    operation: str
    api_version: str  # "" for Apply: a manager applies under one name in all versions
    part: str

    def described(self) -> str:
        part = f' with subresource "{self.part}"' if self.part else ""
        return f'"{self.manager}"{part}' + (f" using {self.api_version}" if self.operation == "Update" else "")


@dataclass(frozen=True, slots=True)
class _Owned:
    fields: frozenset[FieldPath]
    api_version: str
    time: str


_Owners = dict[_Id, _Owned]


@dataclass(frozen=True, slots=True)
class Write:
    """One write: its manager, type, and time.

    Attributes:
        manager: Field manager.
        structure: Structure of the object's type.
        time: Timestamp in managedFields.
        part: Subresource; "" for the object.
        has_status: The status is a subresource, so no other write owns it.
    """

    manager: str
    structure: Structure
    time: str
    part: str = ""
    has_status: bool = True

    def tracked(self, fields: frozenset[FieldPath]) -> frozenset[FieldPath]:
        """Return the fields that this write can set."""
        if self.part == "status":
            return frozenset(path for path in fields if path[0] == "f:status")
        return frozenset(path for path in fields if path[0] != "f:status") if self.has_status else fields


def record_update(old: JsonObject | None, new: JsonObject, write: Write) -> None:
    """Set managedFields in `new` after a create, replace, or patch.

    Changed fields belong to this manager only. A write may contain its own managedFields; an empty list stops tracking.
    """
    sent = meta(new).get("managedFields")
    new["metadata"].pop("managedFields", None)
    if sent in ([], [{}]) and old is not None:
        return
    owners = _read_owners(sent if sent and sent != [{}] else meta(old or {}).get("managedFields"))
    mine = _Id(write.manager, "Update", str(new.get("apiVersion", "")), write.part)
    changed = _take(old or {}, new, owners, write)
    if old is None:
        changed = _added_to_nothing(changed, write)
    if changed := changed - _UNTRACKED:
        before = owners.get(mine)
        fields = changed | (before.fields if before else frozenset())
        owners[mine] = _Owned(fields, mine.api_version, write.time)
    _write_owners(new, owners, old)


def _added_to_nothing(added: frozenset[FieldPath], write: Write) -> frozenset[FieldPath]:
    return added - _ALWAYS_WRITTEN if isinstance(write.structure.hint, type) else added


def _take(old: JsonObject, new: JsonObject, owners: _Owners, write: Write) -> frozenset[FieldPath]:
    """Remove the changed fields from all owners, and return them."""
    change = compare(_bare(old), _bare(new), write.structure)
    changed, removed = (write.tracked(paths) for paths in (change.modified | change.added, change.removed))
    for owner, owned in list(owners.items()):
        left = owned.fields - changed - removed
        owners[owner] = replace(owned, fields=left)
        if not left:
            del owners[owner]
    return changed


def apply_config(live: JsonObject | None, config: JsonObject, write: Write, *, force: bool) -> JsonObject:
    """Apply a configuration, creating the object if `live` is None, and return the new object.

    Args:
        live: The stored object.
        config: Fields that the manager applies; must not contain metadata.managedFields.
        write: The manager and its write.
        force: Take over fields from other managers instead of failing.

    Raises:
        ApiProblem: 409 with one cause per field that another manager owns with a different value.
    """
    structure = write.structure
    owners = _read_owners(meta(live or {}).get("managedFields"))
    version = str(config.get("apiVersion", ""))
    if live is not None and not owners:
        first = _Id(_BEFORE_FIRST_APPLY, "Update", version, "")
        added = write.tracked(compare({}, _bare(live), structure).added)
        owners[first] = _Owned(_added_to_nothing(added, write) - _UNTRACKED, version, write.time)
    config = _without_nulls(config)
    bare = _bare(live or {})
    mine = _Id(write.manager, "Apply", "", write.part)
    last = owners.pop(mine, None)
    applied = write.tracked(field_set(config, structure))
    merged: JsonObject = merge(bare, config, structure)
    if last:
        merged = _prune(
            merged, last.fields, frozenset(applied).union(*(owned.fields for owned in owners.values())), structure
        )
    change = compare(bare, merged, structure)
    changed = write.tracked(change.modified | change.added)
    conflicts = {owner: owned.fields & changed for owner, owned in owners.items() if owned.fields & changed}
    if conflicts and not force and not _is_migration(live, write, frozenset().union(*conflicts.values())):
        listed = [(owner.described(), format_path(path)) for owner, paths in conflicts.items() for path in paths]
        raise field_conflict(sorted(listed))
    _take(bare, merged, owners, write)
    owners[mine] = _Owned(applied - _UNTRACKED, version, write.time)
    if write.manager == "kubectl" and annotations_of(merged).get(_LAST_APPLIED):
        merged["metadata"]["annotations"][_LAST_APPLIED] = _last_applied(config)
    result: JsonObject = without_omitted(merged, structure)
    _write_owners(result, owners, live)
    return result


def _prune(
    merged: JsonObject, last: frozenset[FieldPath], claimed: frozenset[FieldPath], structure: Structure
) -> JsonObject:
    """Remove fields that the manager applied before and no manager owns now."""
    before = with_named_fields(last, structure)
    pruned = remove(merged, before, structure)
    everything = with_named_fields(field_set(merged, structure), structure)
    kept = with_named_fields(field_set(pruned, structure), structure)
    pruned = remove(merged, everything - (kept | with_named_fields(claimed, structure)), structure)
    kept = with_named_fields(field_set(pruned, structure), structure)
    result: JsonObject = remove(merged, (everything - kept) & before, structure)
    return result


def _is_migration(live: JsonObject | None, write: Write, conflicts: frozenset[FieldPath]) -> bool:
    """Return whether kubectl migrates from client-side apply: it takes over only fields that it applied itself."""
    text = annotations_of(live or {}).get(_LAST_APPLIED)
    if write.manager != "kubectl" or not text:
        return False
    try:
        return conflicts <= field_set(json.loads(text), write.structure)
    except ValueError:
        return False


def _last_applied(config: JsonObject) -> str:
    config = copied(config)
    annotations_of(config).pop(_LAST_APPLIED, None)
    return json.dumps(config, separators=(",", ":"), sort_keys=True) + "\n"


def _bare(obj: JsonObject) -> JsonObject:
    if "managedFields" not in meta(obj):
        return obj
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}


def _read_owners(entries: list[JsonObject] | None) -> _Owners:
    owners: _Owners = {}
    for entry in entries or ():
        operation, version = entry.get("operation", "Update"), entry.get("apiVersion", "")
        known = _Id(
            entry.get("manager", ""), operation, "" if operation == "Apply" else version, entry.get("subresource", "")
        )
        owners[known] = _Owned(from_fields(entry.get("fieldsV1") or {}), version, entry.get("time", ""))
    return owners


def _write_owners(obj: JsonObject, owners: _Owners, live: JsonObject | None) -> None:
    """Set managedFields; keep the old ones if only a time differs, so that a write without effect changes nothing."""
    entries: list[JsonObject] = [
        {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owned.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields(owned.fields),
        }
        | ({"subresource": owner.part} if owner.part else {})
        for owner, owned in owners.items()
        if owned.fields
    ]
    entries.sort(key=lambda entry: (entry["operation"], entry["time"], entry["manager"], entry["apiVersion"]))
    before = meta(live or {}).get("managedFields") or []
    timeless = [
        sorted(json.dumps({**entry, "time": ""}, sort_keys=True) for entry in some) for some in (before, entries)
    ]
    if timeless[0] == timeless[1]:
        entries = before
    if entries:
        obj["metadata"]["managedFields"] = entries


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
