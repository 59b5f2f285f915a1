"""The JSON Schema of a spec, for editors and other tools.

In scope: the models' own schema, adapted for people who write specs. Out of scope: a second definition of any field
(all come from the models), suggested values (vocabulary.py).

Pydantic's schema describes a spec after loading. A spec as written differs in three ways, which this module adds:
`defaults` exists; a pool (and every mapping in it) may be incomplete if there are defaults; a text with ${NAME} gets
its final form later. An empty value is not a value: null is allowed only in native fields.

The schema uses only keywords that yaml-language-server supports, in forms that produce short messages: `if` on the
provider selects a cluster's form, because `oneOf` would report errors for an unrelated cloud. `patternErrorMessage` and
`defaultSnippets` are yaml-language-server's own keywords; other tools ignore them.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from gpukube.spec.cloud import PROVIDER_FIELD
from gpukube.spec.model import CLUSTER_MODELS, PROVIDERS, GPUNodePools, Pool, PoolSettings
from gpukube.spec.reference.fields import as_yaml
from gpukube.spec.reference.formats import FORMATS
from gpukube.spec.reference.vocabulary import LISTS, TYPES, WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Schema: TypeAlias = "dict[str, Json]"

SCHEMA_ID: Final = "urn:gpukube:spec:v1alpha1"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE: Final = "#/$defs/"
_WHOLE: Final = frozenset(
    {"Metadata", "Cluster", "Taint", "JsonValue", *(model.__name__ for model in CLUSTER_MODELS.values()), *LISTS}
)
"""Definitions that defaults cannot complete: outside pools, items of lists (lists are replaced), not mappings."""
_PART: Final = "Part"
"""Suffix of definitions that may be incomplete."""

VARIABLE: Final = r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^${}]*)?\}"
_UNWANTED: Final = frozenset({"title", "discriminator"})

# Rules of rules.py that a schema can express; merged into the complete definitions.
_RULES: Final[dict[str, Schema]] = {
    "Pool": {
        "required": ["name", "clusters", "nodes"],
        "anyOf": [{"required": ["gpu"]}, {"required": ["instanceType"]}, {"required": ["instanceTypes"]}],
        "allOf": [{"properties": {"clusters": {"minItems": 1}}}],
    },
    "Nodes": {"oneOf": [{"required": ["count"]}, {"required": ["autoscaling"]}]},
    "Mig": {"anyOf": [{"required": ["profile"]}, {"required": ["layout"], "properties": {"layout": {"minItems": 1}}}]},
    "Capacity": {
        "allOf": [
            {
                "if": {"required": [key]},
                "then": {
                    "required": ["type"],
                    "properties": {"type": {"anyOf": [{"const": kind}, {"pattern": VARIABLE}]}},
                },
            }
            for key, kind in (("maxPrice", "spot"), ("reserved", "reserved"))
        ]
    },
}
# Likewise, but also valid for incomplete definitions.
_ALWAYS: Final[dict[str, Schema]] = {
    "Sharing": {"not": {"required": ["mps", "timeSlicing"]}},
}


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a spec as written, with camelCase keys and closed objects."""
    generated = cast("Schema", GPUNodePools.model_json_schema(by_alias=True))
    settings = cast("Schema", PoolSettings.model_json_schema(by_alias=True))
    definitions = cast("dict[str, Schema]", generated["$defs"]) | {PoolSettings.__name__: _without(settings, "$defs")}
    shaped = {name: _offer_words(name, _ordered(cast("Schema", _shape(body)))) for name, body in definitions.items()}
    complete = {name: body for name, body in shaped.items() if name != PoolSettings.__name__} | {"Cluster": _cluster()}
    parts = {f"{name}{_PART}": _as_part(body, name) for name, body in shaped.items() if name not in _WHOLE}
    lists: dict[str, Schema] = {name: {"enum": list(words())} for name, words in LISTS.items()}
    for name, rule in (*_RULES.items(), *_ALWAYS.items()):
        complete[name].update(copy.deepcopy(rule))
    for name, rule in _ALWAYS.items():
        parts[name + _PART].update(copy.deepcopy(rule))
    head: Schema = {"$schema": _DRAFT, "$id": SCHEMA_ID, "title": "gpukube spec"}
    top = cast("Schema", _shape(_without(generated, "$defs")))
    # The provider decides the form of a cluster, instead of a union of all forms.
    properties = cast("dict[str, Schema]", top["properties"])
    clusters: Schema = {"additionalProperties": {"$ref": f"{_REFERENCE}Cluster"}}
    return (
        head
        | _with_defaults(top | {"properties": {**properties, "clusters": properties["clusters"] | clusters}})
        | {"$defs": {**complete, **parts, **lists}}
    )


def _without(schema: Schema, *keys: str) -> Schema:
    return {name: value for name, value in schema.items() if name not in keys}


def _shape(node: Json) -> Json:
    """Drop titles and nulls, close maps, and allow ${NAME} for texts with a pattern or an enum."""
    if isinstance(node, list):
        return [_shape(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "properties" not in node:
        node = _per_provider(_closed(_without_null(node)))
    shaped: Schema = {
        key: {name: _shape(value) for name, value in inner.items()} if key == "properties" else _shape(inner)
        for key, inner in ((key, cast("Schema", inner)) for key, inner in node.items() if key not in _UNWANTED)
    }
    if "propertyNames" in node:
        shaped["propertyNames"] = node["propertyNames"]  # no variables in keys
    return _with_snippets(_with_variables(shaped))


def _without_null(node: Schema) -> Schema:
    """Convert `anyOf: [X, null]` to X; omit defaults that only mean "not set" or repeat a model's own."""
    choices = node.get("anyOf")
    if isinstance(choices, list) and {"type": "null"} in choices:
        rest = [choice for choice in choices if choice != {"type": "null"}]
        only: Schema = cast("Schema", rest[0]) if len(rest) == 1 else {"anyOf": rest}
        node = only | _without(node, "anyOf")
    return _without(node, "default") if isinstance(node.get("default"), dict | list | None) else node


def _sentence(pattern: str) -> str:
    if pattern not in FORMATS:
        raise KeyError(f"{pattern}: add a sentence to FORMATS in gpukube.spec.reference.formats, or to a cloud's spec")
    return FORMATS[pattern]


def _closed(node: Schema) -> Schema:
    """Rewrite a rule for keys so that it rejects other keys; pydantic's patternProperties allows them."""
    patterns = node.get("patternProperties")
    if not isinstance(patterns, dict):
        return node
    ((pattern, values),) = patterns.items()
    rest = _without(node, "patternProperties")
    names: Schema = {"pattern": pattern, "patternErrorMessage": _sentence(pattern)}
    return rest | {"propertyNames": names, "additionalProperties": values}


def _per_provider(node: Schema) -> Schema:
    """Rewrite a mapping by provider as an object with a key for each, which editors can complete."""
    if node.get("propertyNames") != {"enum": list(PROVIDERS)}:
        return node
    keys: Schema = {
        name: {"description": f"On {name}.", **cast("Schema", copy.deepcopy(node["additionalProperties"]))}
        for name in PROVIDERS
    }
    return _without(node, "propertyNames") | {"properties": keys, "additionalProperties": False}


def _with_snippets(node: Schema) -> Schema:
    """Convert example mappings to snippets: yaml-language-server shows examples as [object Object]."""
    examples = node.get("examples")
    if not isinstance(examples, list) or not any(isinstance(example, dict) for example in examples):
        return node
    plain: list[Json] = [example for example in examples if not isinstance(example, dict)]
    snippets: list[Json] = [{"label": as_yaml(body), "body": body} for body in examples if isinstance(body, dict)]
    return _without(node, "examples") | ({"examples": plain} if plain else {}) | {"defaultSnippets": snippets}


def _with_variables(node: Schema) -> Schema:
    """Allow ${NAME} for a text with a pattern or an enum."""
    if isinstance(pattern := node.get("pattern"), str):
        return node | {"pattern": f"{pattern}|{VARIABLE}", "patternErrorMessage": _sentence(pattern)}
    if isinstance(node.get("enum"), list) and node.get("type") == "string":
        choices: list[Json] = [{"enum": node["enum"]}, {"pattern": VARIABLE}]
        return _without(node, "enum") | {"anyOf": choices}
    return node


def _ordered(body: Schema) -> Schema:
    """Order keys as people write them: a pool's name first, rarely used cluster fields last.

    The models have the reverse order, because both are inherited, and pydantic follows it.
    """
    fields = cast("Schema", body.get("properties", {}))
    if not fields.keys() & {"names", "kubeconfig"}:
        return body
    first: Schema = {key: fields[key] for key in ("name", "names") if "names" in fields}
    last: Schema = {key: fields[key] for key in ("kubeconfig", "context") if key in fields}
    return body | {"properties": first | _without(fields, *last) | last}


def _offer_words(name: str, body: Schema) -> Schema:
    """Add the catalog's values as suggestions for fields that allow any text."""
    model = PoolSettings.__name__ if name == Pool.__name__ else name
    properties = cast("dict[str, Schema]", body.get("properties", {}))
    for key, field in properties.items():
        if lists := WORDS.get((model, key)):
            properties[key] = _offer(field, lists)
    return body


def _offer(field: Schema, lists: Sequence[str]) -> Schema:
    if field.get("type") == "array":
        return field | {"items": _offer(cast("Schema", field["items"]), lists)}
    if forms := field.get("oneOf"):
        text, by_provider = cast("list[Schema]", forms)
        keys = cast("dict[str, Schema]", by_provider["properties"])
        each: Schema = {name: _offer(value, [TYPES[name]]) for name, value in keys.items()}
        # The mapping first: if neither form matches, editors report errors for the first.
        return field | {"oneOf": [by_provider | {"properties": each}, _offer(text, lists)]}
    known: list[Json] = [{"$ref": f"{_REFERENCE}{name}"} for name in lists]
    return field | {"anyOf": [*known, {"minLength": 1}]}


def _cluster() -> Schema:
    """Return the schema of a cluster: its provider selects the form; a variable allows every form."""
    provider: Schema = {
        "type": "string",
        "description": PROVIDER_FIELD,
        "anyOf": [{"enum": list(PROVIDERS)}, {"pattern": VARIABLE}],
    }
    forms: list[Json] = [
        {
            "if": {"properties": {"provider": {"const": name}}, "required": ["provider"]},
            "then": {"$ref": f"{_REFERENCE}{model.__name__}"},
        }
        for name, model in CLUSTER_MODELS.items()
    ]
    return {
        "type": "object",
        "description": "A cluster and its credentials.",
        "properties": {"provider": provider},
        "required": ["provider"],
        "allOf": forms,
    }


def _as_part(body: Schema, name: str) -> Schema:
    """Return a definition whose mappings may be incomplete at all levels; a pool still needs its name."""
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
    """Add `defaults`; only with it may pools be incomplete."""
    properties = cast("dict[str, Schema]", schema["properties"])
    defaults: Schema = {
        "$ref": f"{_REFERENCE}{PoolSettings.__name__}{_PART}",
        "description": "Any pool field except name and names, merged into every pool; the pool's own fields win.",
    }
    part: Schema = {"items": {"$ref": f"{_REFERENCE}{Pool.__name__}{_PART}"}}
    complete: Schema = {"items": {"$ref": f"{_REFERENCE}{Pool.__name__}"}}
    return schema | {
        "properties": {**properties, "defaults": defaults, "pools": _without(properties["pools"], "items")},
        "if": {"required": ["defaults"]},
        "then": {"properties": {"pools": part}},
        "else": {"properties": {"pools": complete}},
    }
