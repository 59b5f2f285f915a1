"""Patches of objects.

In scope: merge patch (RFC 7396), JSON patch (RFC 6902), and the format of a request. Out of scope: strategic
merge patch (`strategic`), server-side apply (`apply`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.objects import copied
from gpukube_sandbox.kube.store.problems import ApiProblem, bad_request, unsupported_body
from gpukube_sandbox.kube.store.strategic import strategic_merge
from gpukube_sandbox.kube.store.structure import structure_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject


def merge_patch(target: Any, patch: Any) -> Any:  # noqa: ANN401 -- any JSON value on both sides, by RFC 7396
    """Apply RFC 7396: null removes, objects merge, everything else replaces. The target is unchanged."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: JsonObject, operations: list[JsonObject]) -> JsonObject:
    """Apply RFC 6902 (add, remove, replace, move, copy, test).

    Raises:
        ApiProblem: 422 when a path does not exist or a test does not hold; 400 for an unknown operation.
    """
    result: Any = copied(target)
    for operation in operations:
        verb, path = operation.get("op"), _pointer(str(operation.get("path", "")))
        if verb in {"move", "copy"}:
            source = _pointer(str(operation.get("from", "")))
            value = copied(_resolve(result, source))
            if verb == "move":
                _change(result, source, "remove", None)
            _change(result, path, "add", value)
        elif verb == "test":
            if _resolve(result, path) != operation.get("value"):
                raise _unpatchable(f"testing value {operation.get('path')} failed")
        elif verb in {"add", "remove", "replace"}:
            if not path:
                result = copied(operation.get("value"))
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
    if verb == "remove" and last not in parent:
        raise _unpatchable(f"missing path /{'/'.join(path)}")
    if verb == "remove":
        del parent[last]
    else:
        parent[last] = value


def patch_object(old: JsonObject, body: object, form: str, kind: Kind) -> JsonObject:
    """Apply a patch body of the given content type to an object.

    Raises:
        ApiProblem: 415 for a patch format that the type does not take, 400 and 422 for a patch that does not fit.
    """
    if form == "application/json-patch+json" and isinstance(body, list):
        return json_patch(old, body)
    if form == "application/merge-patch+json" and isinstance(body, dict):
        return dict(merge_patch(old, body))
    if form == "application/strategic-merge-patch+json" and isinstance(body, dict) and not kind.custom:
        return strategic_merge(old, body, structure_of(kind))
    raise unsupported_body(form)
