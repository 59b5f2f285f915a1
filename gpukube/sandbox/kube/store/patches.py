"""The three patch formats that change a part of an object.

Lives here: merge patch (RFC 7396), JSON patch (RFC 6902), and strategic merge patch with the merge keys the types use.
Must not live here: server-side apply (`apply`).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from gpukube.sandbox.kube.store.problems import ApiProblem, bad_request, unsupported_body

if TYPE_CHECKING:
    from gpukube.sandbox.kube.store.objects import JsonObject

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
    "ports": ("containerPort", "protocol"),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
"""List field -> the keys its items are matched by (x-kubernetes-patch-merge-key of the OpenAPI document)."""

_SERVICE_PORTS = ("port", "protocol")


def merge_key_of(field: str, items: list[Any]) -> tuple[str, ...]:
    """Say by what the items of a list are matched; empty for a list that is replaced as a whole."""
    keys = MERGE_KEYS.get(field, ())
    if field == "ports" and items and all(isinstance(item, dict) and "containerPort" not in item for item in items):
        keys = _SERVICE_PORTS
    if not keys or not all(isinstance(item, dict) and keys[0] in item for item in items):
        return ()
    return keys


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 -- any JSON value on both sides, by RFC 7396
    """Apply RFC 7396: null removes, objects merge, everything else replaces. The target is left alone."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_merge(target: Any, patch: Any, field: str = "") -> Any:  # noqa: ANN401 -- any JSON value on both sides
    """Apply a strategic merge patch: as merge patch, but lists with a merge key merge item by item.

    Knows `$patch: delete|replace` on objects and list items, `$retainKeys` and `$deleteFromPrimitiveList`; list order
    directives are ignored.
    """
    if isinstance(patch, dict):
        return _merge_objects(target, patch)
    if isinstance(patch, list) and isinstance(target, list):
        return _merge_lists(target, patch, field)
    return copy.deepcopy(patch)


def _merge_objects(target: Any, patch: JsonObject) -> JsonObject:  # noqa: ANN401 -- any JSON value
    if patch.get("$patch") == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    keep = patch.get("$retainKeys")
    if keep is not None:
        merged = {key: value for key, value in merged.items() if key in keep}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            listed = key.split("/", 1)[1]
            merged[listed] = [item for item in merged.get(listed) or [] if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge(merged.get(key), value, key)
    return merged


def _merge_lists(target: list[Any], patch: list[Any], field: str) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [copy.deepcopy(item) for item in patch if item.get("$patch") != "replace"]
    keys = merge_key_of(field, [*target, *patch])
    if not keys:
        return copy.deepcopy(patch)
    merged = list(target)
    for item in patch:
        found = next((i for i, old in enumerate(merged) if old[keys[0]] == item[keys[0]]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old[keys[0]] != item[keys[0]]]
        elif found is None:
            merged.append(copy.deepcopy(item))
        else:
            merged[found] = strategic_merge(merged[found], item)
    return merged


def json_patch(target: JsonObject, operations: list[JsonObject]) -> JsonObject:
    """Apply RFC 6902 (add, remove, replace, move, copy, test).

    Raises:
        ApiProblem: 422 when a path does not exist or a test does not hold; 400 for an unknown operation.
    """
    result: Any = copy.deepcopy(target)
    for operation in operations:
        verb, path = operation.get("op"), _pointer(str(operation.get("path", "")))
        if verb in {"move", "copy"}:
            source = _pointer(str(operation.get("from", "")))
            value = copy.deepcopy(_resolve(result, source))
            if verb == "move":
                _change(result, source, "remove", None)
            _change(result, path, "add", value)
        elif verb == "test":
            if _resolve(result, path) != operation.get("value"):
                raise _unpatchable(f"testing value {operation.get('path')} failed")
        elif verb in {"add", "remove", "replace"}:
            if not path:
                result = copy.deepcopy(operation.get("value"))
            else:
                _change(result, path, str(verb), operation.get("value"))
        else:
            raise bad_request(f"Unexpected kind: {verb}")
    return dict(result)


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _unpatchable(message: str) -> ApiProblem:
    return ApiProblem(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")


def _resolve(value: Any, path: list[str]) -> Any:  # noqa: ANN401 -- any JSON value
    for part in path:
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            raise _unpatchable(f"missing path /{'/'.join(path)}") from None
    return value


def _change(root: Any, path: list[str], verb: str, value: Any) -> None:  # noqa: ANN401 -- any JSON value
    parent, last = _resolve(root, path[:-1]), path[-1]
    if isinstance(parent, list):
        at = len(parent) if last == "-" else int(last)
        if verb == "add":
            parent.insert(at, value)
        elif at >= len(parent):
            raise _unpatchable(f"missing path /{'/'.join(path)}")
        elif verb == "remove":
            parent.pop(at)
        else:
            parent[at] = value
        return
    if verb in {"remove", "replace"} and last not in parent:
        raise _unpatchable(f"missing path /{'/'.join(path)}")
    if verb == "remove":
        del parent[last]
    else:
        parent[last] = value


def patch_object(old: JsonObject, body: object, form: str) -> JsonObject:
    """Apply a patch body of the given content type to an object.

    Raises:
        ApiProblem: 415 for an unknown patch format, 400 and 422 for a patch that does not fit.
    """
    if form == "application/json-patch+json" and isinstance(body, list):
        return json_patch(old, body)
    if form == "application/merge-patch+json" and isinstance(body, dict):
        return dict(merge_patch(old, body))
    if form == "application/strategic-merge-patch+json" and isinstance(body, dict):
        return dict(strategic_merge(old, body))
    raise unsupported_body(form)
