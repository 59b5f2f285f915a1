"""The JSON Schema of a spec, for editors and other tools.

Lives here: the models' own schema, shaped for people who write specs. Must not live here: a second definition of
any field; what the schema says of one comes from model.py.

What pydantic generates describes a spec after loading. A spec as written differs in three ways, which are added
here: `defaults` exists; a pool (and every mapping in it) may be incomplete when there are defaults; a text with
${NAME} has its final form only later. An empty value is no value: null is allowed in native fields alone.
"""

from __future__ import annotations

import copy
from typing import Final, TypeAlias, cast

from gpukube.spec.model import GPUNodePools, Pool, PoolSettings

__all__ = ["json_schema"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Schema: TypeAlias = "dict[str, Json]"

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/"
_WHOLE: Final = frozenset({"Metadata", "EksCluster", "AksCluster", "GkeCluster", "Taint"})
"""Definitions that defaults cannot complete: outside pools, or items of a list (lists are replaced, not merged)."""
_PART: Final = "Part"
"""Suffix of the definitions that may be incomplete."""

_VARIABLE: Final = r"|\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_UNWANTED: Final = frozenset({"title", "discriminator"})

# What rules.py refuses and a schema can say; merged into the complete definitions.
_RULES: Final[dict[str, Schema]] = {
    "Pool": {
        "required": ["name", "clusters", "nodes"],
        "anyOf": [{"required": ["gpu"]}, {"required": ["instanceType"]}],
        "allOf": [{"properties": {"clusters": {"minItems": 1}}}],
    },
    "Nodes": {"oneOf": [{"required": ["count"]}, {"required": ["autoscaling"]}]},
}
# As above, true of incomplete definitions too.
_ALWAYS: Final[dict[str, Schema]] = {
    "Sharing": {"allOf": [{"not": {"required": ["mps", other]}} for other in ("mig", "timeSlicing")]},
}


def json_schema() -> Schema:
    """Make the JSON Schema (draft 2020-12) of a spec as written, with camelCase keys and closed objects."""
    generated = cast("Schema", GPUNodePools.model_json_schema(by_alias=True))
    settings = cast("Schema", PoolSettings.model_json_schema(by_alias=True))
    definitions = _definitions(generated) | {PoolSettings.__name__: _without(settings, "$defs")}
    schema = cast("Schema", _shape(_without(generated, "$defs")))
    complete = {name: cast("Schema", _shape(body)) for name, body in definitions.items() if name != "PoolSettings"}
    parts = {
        f"{name}{_PART}": _as_part(cast("Schema", _shape(body)), name)
        for name, body in definitions.items()
        if name not in _WHOLE
    }
    for name, rule in (*_RULES.items(), *_ALWAYS.items()):
        complete[name].update(copy.deepcopy(rule))
    for name, rule in _ALWAYS.items():
        parts[name + _PART].update(copy.deepcopy(rule))
    head: Schema = {"$schema": _DRAFT, "title": "GPUNodePools"}
    return head | _with_defaults(schema) | {"$defs": {**complete, **parts}}


def _definitions(schema: Schema) -> dict[str, Schema]:
    return cast("dict[str, Schema]", schema["$defs"])


def _without(schema: Schema, key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def _shape(node: Json) -> Json:
    """Drop titles and nulls, allow ${NAME} where a pattern is asked for."""
    if isinstance(node, list):
        return [_shape(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "properties" not in node:
        node = _closed(_without_null(node))
    shaped: Schema = {
        key: {name: _shape(value) for name, value in inner.items()} if key == "properties" else _shape(inner)
        for key, inner in ((key, cast("Schema", inner)) for key, inner in node.items() if key not in _UNWANTED)
    }
    if "propertyNames" in node:
        shaped["propertyNames"] = node["propertyNames"]  # no variables in keys
    if isinstance(pattern := shaped.get("pattern"), str):
        shaped["pattern"] = pattern + _VARIABLE
    return shaped


def _without_null(node: Schema) -> Schema:
    """Turn `anyOf: [X, null]` into X; leave out defaults that only say "not given" or repeat a model's own."""
    choices = node.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        only: Schema = cast("Schema", rest[0]) if len(rest) == 1 else {"anyOf": rest}
        node = only | _without(node, "anyOf")
    return _without(node, "default") if isinstance(node.get("default"), dict | None) else node


def _closed(node: Schema) -> Schema:
    """Write a rule for keys so that keys which break it are refused; pydantic's patternProperties lets them pass."""
    patterns = node.get("patternProperties")
    if not isinstance(patterns, dict):
        return node
    ((pattern, values),) = patterns.items()
    rest = _without(node, "patternProperties")
    return rest | {"propertyNames": {"pattern": pattern}, "additionalProperties": values}


def _as_part(body: Schema, name: str) -> Schema:
    """Make a definition whose mappings may be incomplete, all levels; a pool still needs its name."""
    part = cast("Schema", _refer_to_parts(_without(body, "required")))
    return part | {"required": ["name"]} if name == Pool.__name__ else part


def _refer_to_parts(node: Json) -> Json:
    if isinstance(node, list):
        return [_refer_to_parts(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _part_of(str(value)) if key == "$ref" else _refer_to_parts(value) for key, value in node.items()}


def _part_of(reference: str) -> str:
    return reference if reference.removeprefix(_REFERENCE) in _WHOLE else f"{reference}{_PART}"


def _with_defaults(schema: Schema) -> Schema:
    """Add `defaults`; with it pools may be incomplete, without it they may not."""
    properties = cast("dict[str, Schema]", schema["properties"])
    defaults: Schema = {
        "$ref": f"{_REFERENCE}{PoolSettings.__name__}{_PART}",
        "description": "Any pool field but name and names, merged under every pool; what a pool writes wins.",
    }
    part: Schema = {"items": {"$ref": f"{_REFERENCE}{Pool.__name__}{_PART}"}}
    complete: Schema = {"items": {"$ref": f"{_REFERENCE}{Pool.__name__}"}}
    return schema | {
        "properties": {**properties, "defaults": defaults, "pools": properties["pools"] | part},
        "if": {"not": {"required": ["defaults"]}},
        "then": {"properties": {"pools": complete}},
    }
