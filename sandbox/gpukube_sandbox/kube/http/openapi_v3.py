"""The OpenAPI version 3 documents, which `kubectl explain` shows and clients use for validation and patches.

In scope: the documents as plain data, one per group and version. Out of scope: checks (`schema`), version 2.

Fields and descriptions come from lightkube-models, which are generated from the Kubernetes document, or from the
definition of a custom type; this package contains no copy. Format: /openapi/v3 of Kubernetes 1.36.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from typing import TYPE_CHECKING, Any, get_args, get_origin

from gpukube_sandbox.kube.http.discovery import versions_by_group
from gpukube_sandbox.kube.store.schema import STRING_MAPS, field_hints, is_optional, required_hint
from gpukube_sandbox.kube.store.structure import LIST_KEYS, PATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store

_PATCH_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")
_SCALARS: dict[type, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}
_QUANTITIES = frozenset({"allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "requests", "used"})
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_COMMON: dict[str, JsonObject] = {
    _INT_OR_STRING: {
        "description": "IntOrString is a type that can hold an int32 or a string.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    _QUANTITY: {
        "description": "Quantity is a fixed-point representation of a number.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
}
_PARAMETER = re.compile(r"^ +\* \*\*(\w+?)_?\*\* ``[^`]*`` - ", re.MULTILINE)


def encoded(store: Store, place: list[str]) -> bytes | None:
    """Encode the response of a path below /openapi/v3.

    Args:
        store: Provides the types.
        place: Empty, ["api", version] or ["apis", group, version].

    Returns:
        The document; None if it does not exist.
    """
    kinds = tuple(store.kinds.values())
    if not place:
        return json.dumps(_root(kinds)).encode()
    mine = tuple(kind for kind in kinds if _path(kind.group, kind.version) == "/".join(place))
    if not mine:
        return None
    group, version = mine[0].group, mine[0].version
    if not any(kind.custom for kind in mine):
        return _built_in(mine, version)
    schemas = {}
    for kind in mine:
        name = ".".join((*reversed(group.split(".")), version, kind.kind))
        schemas[name] = _custom_schema(kind, store.definition_of(kind)) | _identity(kind)
    return json.dumps(_document(mine, version, schemas)).encode()


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _root(kinds: Iterable[Kind]) -> JsonObject:
    places = [_path(group, version) for group, versions in versions_by_group(kinds).items() for version in versions]
    return {"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}}


@functools.lru_cache(maxsize=8)  # clients read one on every apply; the core group's has half a megabyte
def _built_in(kinds: tuple[Kind, ...], version: str) -> bytes:
    schemas: JsonObject = dict(_COMMON)
    for kind in kinds:
        module = f"lightkube.models.{kind.group.partition('.')[0] or 'core'}_{kind.version}"
        model = getattr(importlib.import_module(module), kind.kind, None)
        name = _name(model) if model else f"io.k8s.{kind.group or 'core'}.{version}.{kind.kind}"
        if model:
            _declare(model, schemas)
        schemas[name] = schemas.get(name, {"type": "object"}) | _identity(kind)
    return json.dumps(_document(kinds, version, schemas)).encode()


def _document(kinds: Iterable[Kind], version: str, schemas: JsonObject) -> JsonObject:
    """Return a document with schemas and each type's patch operation.

    Helm 4 and kubectl look in it for the `fieldValidation` parameter and for `x-kubernetes-group-version-kind`.
    """
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _PATCH_PARAMETERS]
    paths: JsonObject = {}
    for kind in kinds:
        scope = "namespaces/{namespace}/" if kind.namespaced else ""
        operation = {
            "operationId": f"patch{kind.version.capitalize()}{kind.kind}",
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": _gvk(kind),
        }
        paths[f"/{_path(kind.group, kind.version)}/{scope}{kind.plural}/{{name}}"] = {"patch": operation}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _identity(kind: Kind) -> JsonObject:
    return {"x-kubernetes-group-version-kind": [_gvk(kind)]}


def _custom_schema(kind: Kind, definition: JsonObject | None) -> JsonObject:
    versions = ((definition or {}).get("spec") or {}).get("versions") or ()
    found: JsonObject = next((item for item in versions if item["name"] == kind.version), {})
    schema: JsonObject = (found.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    return schema if schema.get("properties") else schema | {"x-kubernetes-preserve-unknown-fields": True}


# built-in types


def _name(model: type) -> str:
    module = model.__module__.rpartition(".")[2].replace("_", ".")
    return f"io.k8s.api.{module}.{model.__name__}"


def _declare(model: type, schemas: JsonObject) -> None:
    waiting = [model]
    while waiting:
        model = waiting.pop()
        if _name(model) in schemas:
            continue
        hints, (about, fields) = field_hints(model), _descriptions(model)
        required = [name for name, hint in hints.items() if not is_optional(hint)]
        properties = {name: _field(model, name, fields.get(name, "")) for name in hints}
        schema = {"description": about, "type": "object", "properties": properties}
        schemas[_name(model)] = schema | ({"required": required} if required else {})
        waiting += [part for hint in hints.values() if (part := _part(hint))]


def _descriptions(model: type) -> tuple[str, dict[str, str]]:
    """Parse the descriptions of a type and its fields from its docstring."""
    about, _, listed = (model.__doc__ or "").partition("**parameters**")
    parts = _PARAMETER.split(listed)
    return _one_line(about), {name: _one_line(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _field(model: type, name: str, about: str) -> JsonObject:
    schema = _schema(field_hints(model)[name], name)
    if "$ref" in schema:  # next to a reference, other keys are ignored
        schema = {"allOf": [schema]}
    strategy, key = PATCHES.get((model.__name__, name), ("", ""))
    marks = {"x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key, "description": about}
    schema |= {mark: value for mark, value in marks.items() if value}
    keys = LIST_KEYS.get((model.__name__, name))
    return schema | ({"x-kubernetes-list-map-keys": list(keys), "x-kubernetes-list-type": "map"} if keys else {})


def _schema(hint: Any, name: str) -> JsonObject:  # noqa: ANN401 -- any type hint
    hint = required_hint(hint)
    if get_origin(hint) is list:
        return {"type": "array", "items": _schema(get_args(hint)[0], "")}
    if hint is dict:
        of = _reference(_QUANTITY) if name in _QUANTITIES else {"type": "string"} if name in STRING_MAPS else None
        return {"type": "object"} | ({"additionalProperties": of} if of else {})
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if part := _part(hint):
        return _reference(_name(part))
    return _reference(_INT_OR_STRING) if set(get_args(hint)) >= {int, str} else {}


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


def _part(hint: Any) -> type | None:  # noqa: ANN401 -- any type hint
    hint = required_hint(hint)
    if get_origin(hint) is list:
        return _part(get_args(hint)[0])
    return hint if isinstance(hint, type) and hasattr(hint, "from_dict") else None
