"""Strategic merge patch, which kubectl sends for built-in types.

In scope: merging by the published patch strategies, and the directives `$patch`, `$retainKeys`,
`$deleteFromPrimitiveList` and `$setElementOrder`. Out of scope: which list has which strategy (`structure`).

Source: k8s.io/apimachinery pkg/util/strategicpatch/patch.go; list order follows its mergeSortedSlice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.objects import copied
from gpukube_sandbox.kube.store.problems import bad_request

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.structure import Structure

_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_merge(original: JsonObject, patch: JsonObject, structure: Structure) -> JsonObject:
    """Return an object with a patch merged into it; the original is unchanged.

    Raises:
        ApiProblem: 400 for an unknown directive, or an item without its merge key.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return copied({key: value for key, value in patch.items() if key != "$patch"})
    if directive == "delete":
        return {}
    if directive is not None:
        raise bad_request(f"Unknown patch type found: {directive} in map: {patch}")
    retained = patch.get("$retainKeys")
    merged = {key: value for key, value in original.items() if retained is None or key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE):
            field = key.removeprefix(_DELETE)
            if field in merged:
                merged[field] = [item for item in merged[field] or [] if item not in value]
        elif key.startswith(_ORDER):
            field = key.removeprefix(_ORDER)
            if field not in patch and isinstance(merged.get(field), list):  # else it orders the patch's list
                merged[field] = _in_order(merged[field], value, merged[field], structure.field(field).merge_key)
        elif key.startswith("$"):
            continue
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value, structure.field(key), patch.get(_ORDER + key))
    return merged


def _merge_value(old: Any, value: Any, structure: Structure, order: list[Any] | None) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, dict) and isinstance(old, dict) and "replace" not in structure.strategies:
        return strategic_merge(old, value, structure)
    if isinstance(value, list) and isinstance(old, list) and "merge" in structure.strategies:
        merged = _merge_lists(old, value, structure)
        return _in_order(merged, value if order is None else order, old, structure.merge_key)
    return _without_directives(value)


def _merge_lists(old: list[Any], patch: list[Any], structure: Structure) -> list[Any]:
    key = structure.merge_key
    if not key:
        return [*old, *(item for item in patch if item not in old)]
    missing = next((item for item in patch if key not in item and item.get("$patch") != "replace"), None)
    if missing is not None:
        raise bad_request(f"map: {missing} does not contain declared merge key: {key}")
    if any(item.get("$patch") == "replace" for item in patch):
        return [_without_directives(item) for item in patch if "$patch" not in item]
    gone = [item[key] for item in patch if item.get("$patch") == "delete"]
    merged = [item for item in old if item.get(key) not in gone]
    for item in patch:
        at = next((at for at, known in enumerate(merged) if known.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            continue
        if at is None:
            merged.append(_without_directives(item))
        else:
            merged[at] = strategic_merge(merged[at], item, structure.item())
    return merged


def _in_order(merged: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Sort a merged list: named items in the patch's order, each other item before its live successor."""

    def name(item: Any) -> Any:  # noqa: ANN401 -- any JSON value
        return item.get(key) if key and isinstance(item, dict) else item

    ranks, lived = [name(item) for item in order], [name(item) for item in live]
    named = sorted((item for item in merged if name(item) in ranks), key=lambda item: ranks.index(name(item)))
    others = [item for item in merged if name(item) not in ranks]
    result: list[Any] = []
    while named and others:
        mine, theirs = name(others[0]), name(named[0])
        precedes = mine in lived and theirs in lived and lived.index(mine) < lived.index(theirs)
        result.append(others.pop(0) if precedes else named.pop(0))
    return [*result, *named, *others]


def _without_directives(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    """Copy an added value without directives and null fields, which have nothing to remove."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith("$") and not (isinstance(item, dict) and "$patch" in item)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not (isinstance(item, dict) and "$patch" in item)]
    return value
