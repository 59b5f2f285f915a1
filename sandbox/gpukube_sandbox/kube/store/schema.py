"""Field validation against the published Kubernetes types.

In scope: finding unknown fields and values of the wrong type. Out of scope: rules about values.

The types are those of lightkube-models, which are generated from the OpenAPI document of Kubernetes.
"""

from __future__ import annotations

import functools
import importlib
import types
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from gpukube_sandbox.kube.store.problems import ApiProblem, bad_request

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

_MODULES: dict[str, str] = {
    "": "core_v1",
    "apps": "apps_v1",
    "batch": "batch_v1",
    "rbac.authorization.k8s.io": "rbac_v1",
    "policy": "policy_v1",
    "networking.k8s.io": "networking_v1",
    "scheduling.k8s.io": "scheduling_v1",
    "node.k8s.io": "node_v1",
    "coordination.k8s.io": "coordination_v1",
    "resource.k8s.io": "resource_v1",
}
"""Group -> module of lightkube.models; groups not listed are not checked."""

STRING_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"})
"""Fields that are maps of strings; for other maps, the models do not declare the content."""


@functools.cache
def model_of(group: str, kind: str) -> type | None:
    """Return the class of a type; None if the type is not checked."""
    module = _MODULES.get(group)
    return getattr(importlib.import_module(f"lightkube.models.{module}"), kind, None) if module else None


@functools.cache
def field_hints(model: type) -> dict[str, Any]:
    """Return JSON field name -> type hint of a class."""
    return {name.rstrip("_"): hint for name, hint in get_type_hints(model).items()}


def required_hint(hint: Any) -> Any:  # noqa: ANN401 -- any type hint in and out
    """Return an optional hint without None; a union of several types stays unchanged."""
    if get_origin(hint) not in {Union, types.UnionType}:
        return hint
    choices = [arg for arg in get_args(hint) if arg is not type(None)]
    return choices[0] if len(choices) == 1 else hint


def is_optional(hint: Any) -> bool:  # noqa: ANN401 -- any type hint
    """Return whether a field is optional."""
    return type(None) in get_args(hint)


def findings(group: str, kind: str, obj: JsonObject) -> list[tuple[str, str]]:
    """Return path and fault ("unknown", or the expected type) of each field that does not match the type."""
    model = model_of(group, kind)
    found: list[tuple[str, str]] = []
    if model:
        _walk(obj, model, "", found)
    return found


def _walk(value: Any, hint: Any, path: str, found: list[tuple[str, str]]) -> None:  # noqa: ANN401 -- any JSON, any type
    if value is None:
        return
    hint = required_hint(hint)
    if get_origin(hint) is list:
        if not isinstance(value, list):
            found.append((path, "list"))
            return
        for index, item in enumerate(value):
            _walk(item, get_args(hint)[0], f"{path}[{index}]", found)
    elif hint is dict:
        _walk_map(value, path, found)
    elif hint in {str, int, bool, float}:
        _check_scalar(value, hint, path, found)
    elif isinstance(hint, type) and hasattr(hint, "from_dict"):
        _walk_object(value, hint, path, found)


def _walk_object(value: Any, model: type, path: str, found: list[tuple[str, str]]) -> None:  # noqa: ANN401 -- any JSON
    if not isinstance(value, dict):
        found.append((path, "map"))
        return
    hints = field_hints(model)
    for key, item in value.items():
        if key in hints:
            _walk(item, hints[key], f"{path}.{key}", found)
        elif not (model.__name__ == "ObjectMeta" and key == "clusterName"):
            found.append((f"{path}.{key}", "unknown"))


def _walk_map(value: Any, path: str, found: list[tuple[str, str]]) -> None:  # noqa: ANN401 -- any JSON
    if not isinstance(value, dict):
        found.append((path, "map"))
    elif path.rsplit(".", 1)[-1] in STRING_MAPS:
        found.extend((f"{path}.{key}", "string") for key, item in value.items() if not isinstance(item, str | None))


def _check_scalar(value: Any, hint: type, path: str, found: list[tuple[str, str]]) -> None:  # noqa: ANN401 -- any JSON
    # Quantities are strings in the models but may be numbers on the wire.
    if hint is str and not isinstance(value, str) and not _may_be_number(path, value):
        found.append((path, "string"))
    elif hint is bool and not isinstance(value, bool):
        found.append((path, "boolean"))
    elif hint is int and (isinstance(value, bool) or not isinstance(value, int | float)):
        found.append((path, "integer"))


def _may_be_number(path: str, value: Any) -> bool:  # noqa: ANN401 -- any JSON
    return not isinstance(value, bool) and isinstance(value, int | float) and path.endswith(("sizeLimit", "divisor"))


def check_applied(group: str, kind: str, obj: JsonObject) -> None:
    """Reject a server-side apply configuration with fields that the type does not have.

    Raises:
        ApiProblem: 500 like the real server, "field not declared in schema" or "expected string".

    Source: k8s.io/apimachinery managedfields/internal/structuredmerge.go; observed on Kubernetes 1.36.
    """
    found = findings(group, kind, obj)
    if not found:
        return
    meta = obj.get("metadata") or {}
    version = obj.get("apiVersion", "")
    details = "; ".join(
        f"{path}: field not declared in schema"
        if fault == "unknown"
        else f"{path}: expected {fault}, got {_got(obj, path)}"
        for path, fault in found[:3]
    )
    name = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    message = f"failed to create typed patch object ({name}; {version}, Kind={kind}): {details}"
    raise ApiProblem(500, "", message)


def _got(obj: JsonObject, path: str) -> str:
    value: Any = obj
    for part in path.replace("[", ".[").split(".")[1:]:
        value = value[int(part[1:-1])] if part.startswith("[") else value.get(part) if isinstance(value, dict) else None
    return f"&value.valueUnstructured{{Value:{str(value).lower() if isinstance(value, bool) else value}}}"


def check_sent(group: str, kind: str, obj: JsonObject, validation: str) -> list[str]:
    """Check a created, replaced, or patched object as `fieldValidation` requests.

    Returns:
        Texts for Warning headers (fieldValidation=Warn).

    Raises:
        ApiProblem: 400 for an unknown field under Strict, or for a value of the wrong type.
    """
    found = findings(group, kind, obj)
    for path, fault in found:
        if fault != "unknown":
            raise bad_request(
                f'{kind} in version "{obj.get("apiVersion", "v1").rpartition("/")[2]}" cannot be handled as a {kind}: '
                f"json: cannot unmarshal into Go struct field {path.lstrip('.')} of type {fault}"
            )
    unknown = [f'unknown field "{path[1:]}"' for path, _ in found]
    if unknown and validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(unknown)}")
    return unknown if validation in {"", "Warn"} else []
