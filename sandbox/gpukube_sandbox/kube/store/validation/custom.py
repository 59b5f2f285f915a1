"""Custom resources: pruning, defaulting, and validation by the schema of their definition.

In scope: that, and what a definition itself must be. Out of scope: rules of built-in types. Rules in CEL
(`x-kubernetes-validations`) are not evaluated.

Source: kubernetes apiextensions-apiserver pkg/apiserver/schema (pruning, defaulting, listtype) and
pkg/apiserver/validation; docs: tasks/extend-kubernetes/custom-resources/custom-resource-definitions.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.validation.fields import (
    Cause,
    duplicate,
    forbidden,
    format_value,
    invalid,
    one_of,
    required,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from jsonschema import Draft4Validator
    from jsonschema.exceptions import ValidationError

    from gpukube_sandbox.kube.store.objects import JsonObject

_ALWAYS = frozenset({"apiVersion", "kind", "metadata"})
_MAX_COMPILED = 100
_compiled: dict[int, tuple[JsonObject, Draft4Validator]] = {}
"""Schema id -> the schema (kept alive, so that the id stays unique) and its compiled form; compiling 1 MB is slow."""


def schema_of(definition: JsonObject, version: str) -> JsonObject:
    """Return the schema of a version; {} if the definition has none."""
    versions = (definition.get("spec") or {}).get("versions") or ()
    found: JsonObject = next((one for one in versions if one.get("name") == version), {})
    schema: JsonObject = (found.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def unknown_fields(obj: Any, schema: JsonObject, path: str = "") -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """Yield the names of fields that are not in the schema, which are pruned."""
    if isinstance(obj, dict):
        known = schema.get("properties") or {}
        rest = schema.get("additionalProperties")
        open_ended = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or not schema
        for key, value in obj.items():
            place = f"{path}.{key}" if path else key
            if key in known:
                yield from unknown_fields(value, known[key], place)
            elif isinstance(rest, dict):
                yield from unknown_fields(value, rest, place)
            elif not (open_ended or rest is True or (not path and key in _ALWAYS) or _is_embedded(schema, key)):
                yield place
    elif isinstance(obj, list):
        items = schema.get("items")
        for at, value in enumerate(obj):
            if isinstance(items, dict):
                yield from unknown_fields(value, items, f"{path}[{at}]")


def _is_embedded(schema: JsonObject, key: str) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource")) and key in _ALWAYS


def shape(obj: JsonObject, schema: JsonObject) -> None:
    """Prune fields that are not in the schema, and set its defaults, in place."""
    if schema:
        _shape(obj, schema, top=True)


def _shape(value: Any, schema: JsonObject, *, top: bool = False) -> None:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        free = schema.get("x-kubernetes-preserve-unknown-fields") or rest is True or not schema
        for key in list(value):
            if key in known:
                if value[key] is None and not known[key].get("nullable") and "default" in known[key]:
                    del value[key]
                else:
                    _shape(value[key], known[key])
            elif isinstance(rest, dict):
                _shape(value[key], rest)
            elif not (free or (top and key in _ALWAYS) or _is_embedded(schema, key)):
                del value[key]
        for key, below in known.items():
            if key not in value and "default" in below:
                value[key] = deepcopy(below["default"])
                _shape(value[key], below)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            _shape(item, schema["items"])


def check_custom(obj: JsonObject, definition: JsonObject, version: str) -> Iterator[Cause]:
    """Reject a custom resource that does not match its schema."""
    schema = schema_of(definition, version)
    if not schema:
        return
    if id(schema) not in _compiled:
        while len(_compiled) >= _MAX_COMPILED:
            del _compiled[next(iter(_compiled))]
        _compiled[id(schema)] = (schema, _library().Draft4Validator(_plain(schema, top=True)))
    for error in _compiled[id(schema)][1].iter_errors(obj):
        yield from _causes(error)
    yield from _lists(obj, schema, "")


def _library() -> ModuleType:
    """Import jsonschema, which takes 50 ms, only when a cluster gets a custom resource definition."""
    import jsonschema  # noqa: PLC0415

    return jsonschema


def _plain(schema: JsonObject, *, top: bool = False) -> JsonObject:
    """Return a structural schema as plain JSON Schema, with Kubernetes' extensions expanded."""
    made = {key: value for key, value in schema.items() if key not in {"default", "format"}}
    if top:  # validated by the API server itself
        made.pop("additionalProperties", None)
    for key in ("properties", "patternProperties"):
        if key in made:
            made[key] = {name: _plain(below) for name, below in made[key].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(made.get(key), dict):
            made[key] = _plain(made[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if key in made:
            made[key] = [_plain(below) for below in made[key]]
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in made:
        kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = [*kinds, "null"]
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
    return made


def _path(error: ValidationError) -> str:
    path = ""
    for step in error.absolute_path:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path


def _type_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the type name of a value in Go's JSON errors."""
    names = {bool: "boolean", int: "integer", float: "float64", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _causes(error: ValidationError) -> Iterator[Cause]:
    path = _path(error)
    value: Any = error.instance
    limit: Any = error.validator_value
    match error.validator:
        case "required":
            name = str(error.message).partition("'")[2].partition("'")[0]
            yield required(f"{path}.{name}" if path else name)
        case "type":
            expected = ",".join(one for one in limit if one != "null") if isinstance(limit, list) else limit
            text = f'{path} in body must be of type {expected}: "{_type_of(value)}"'
            yield invalid(path, _type_of(value), text)
        case "enum":
            yield unsupported(path, value, [str(one) for one in limit if one is not None])
        case "minimum":
            yield invalid(path, value, f"{path} in body should be greater than or equal to {limit}")
        case "maximum":
            yield invalid(path, value, f"{path} in body should be less than or equal to {limit}")
        case "pattern":
            yield invalid(path, value, f"{path} in body should match '{limit}'")
        case "maxLength":
            yield Cause("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")
        case "minLength":
            yield invalid(path, value, f"{path} in body should be at least {limit} chars long")
        case "maxItems":
            yield Cause("FieldValueTooMany", path, f"Too many: {len(value)}: must have at most {limit} items")
        case "anyOf" | "oneOf" | "allOf" | "not":
            yield Cause("FieldValueInvalid", path, f'Invalid value: "": "{path}" must validate the schema')
        case _:
            yield invalid(path, value, f"{path} in body: {error.message}")


def _lists(value: Any, schema: JsonObject, path: str) -> Iterator[Cause]:  # noqa: ANN401 - any JSON value
    """Reject duplicates in a list that is a set or a map."""
    if isinstance(value, dict):
        known, rest = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, below in value.items():
            under = known.get(key, rest)
            if isinstance(under, dict):
                yield from _lists(below, under, f"{path}.{key}" if path else key)
        return
    if not isinstance(value, list) or not isinstance(schema.get("items"), dict):
        return
    form, keys, seen = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or (), set()
    for at, item in enumerate(value):
        place = f"{path}[{at}]"
        if form in {"set", "map"}:
            mine = {key: item.get(key) for key in keys} if form == "map" and isinstance(item, dict) else item
            if format_value(mine) in seen:
                yield duplicate(place, mine)
            seen.add(format_value(mine))
        yield from _lists(item, schema["items"], place)


def _structural(schema: JsonObject, path: str, where: str) -> Iterator[Cause]:
    """Reject a schema without the types that pruning and defaulting need.

    Source: apiextensions-apiserver pkg/apis/apiextensions/validation (ValidateCustomResourceDefinitionOpenAPISchema)
    and pkg/apiserver/schema/validation.go.
    """
    kind = schema.get("type")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind and not free:
        yield required(f"{path}.type", f"must not be empty {where}")
    yield from one_of(f"{path}.type", kind, ("array", "boolean", "integer", "number", "object", "string"))
    if "$ref" in schema:
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    if kind == "array" and not schema.get("items"):
        yield required(f"{path}.items", "must be specified")
    for name, below in (schema.get("properties") or {}).items():
        yield from _structural(below, f"{path}.properties[{name}]", "for specified object fields")
    for key, of in (("items", "for specified array items"), ("additionalProperties", "for specified object fields")):
        if isinstance(schema.get(key), dict):
            yield from _structural(schema[key], f"{path}.{key}", of)


def check_definition(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a definition whose name does not match its type, or without a schema."""
    del old
    _library()
    spec = new.get("spec") or {}
    name = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if (new.get("metadata") or {}).get("name") != name:
        text = 'must be spec.names.plural+"."+spec.group'
        yield invalid("metadata.name", (new.get("metadata") or {}).get("name"), text)
    yield from one_of("spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    versions = spec.get("versions") or ()
    for at, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if not schema:
            yield required(f"spec.versions[{at}].schema.openAPIV3Schema", "schemas are required")
        else:
            yield from _structural(schema, "spec.validation.openAPIV3Schema", "at the root")
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield invalid("spec.preserveUnknownFields", value=True, detail=text)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", list(versions), "must have exactly one version marked as storage version")
