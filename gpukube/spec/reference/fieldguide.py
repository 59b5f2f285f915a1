"""Reference pages of fields, from the JSON Schema, and finding a page by a field's path.

In scope: finding a field by the paths that people write, and its page as a value. Out of scope: clouds' support of a
field (engine.field_guide), displaying a page (cli).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from gpukube.errors import SpecError, Where
from gpukube.spec.model import CLUSTER_MODELS, PROVIDERS
from gpukube.spec.reference.other_words import field_for
from gpukube.spec.reference.schema import VARIABLE, Schema, json_schema
from gpukube.spec.wording import did_you_mean, fold, nearest, nearest_first, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.spec.reference.schema import Json

_SHORT: Final = {"pool": "pools", "cluster": "clusters", "default": "defaults"}
_MOST_CHOICES: Final = 6


@dataclass(frozen=True, slots=True)
class FieldPage:
    """One field of the format.

    Attributes:
        path: As in messages, with [] for an item of a list and KEY for a user-defined key: pools[].gpu.model.
        type: string, integer, []Taint as []Object, map[string]string, alternatives with |.
        required: Whether it is required (if its mapping is present).
        default: Default value; None if there is none, or the description names it.
        choices: Allowed values; () for any text.
        known: Values in the catalog; other texts are allowed too.
        limits: Its range, "1 to 64", or its format, "expected twelve digits"; "" if there are none.
        description: Its meaning.
        examples: Values as in JSON.
        providers: Clouds whose cluster form has it; () for all.
        fields: The fields below it.
    """

    path: str
    type: str
    required: bool
    default: Json
    choices: tuple[str, ...]
    known: tuple[str, ...]
    limits: str
    description: str
    examples: tuple[Json, ...]
    providers: tuple[str, ...]
    fields: tuple[FieldPage, ...]

    def below(self) -> Iterator[FieldPage]:
        """Yield this page and all pages below it."""
        yield self
        for field in self.fields:
            yield from field.below()


def explain_field(text: str) -> FieldPage:
    """Return the page of a field.

    Args:
        text: pools.sharing.mig.profile; also as in messages (pools[0].gpu), with pool for pools, or without it:
            sharing.mig, or replicas if that name is unique.

    Raises:
        SpecError: no-field; names the nearest fields, or those that the text can mean.
    """
    steps = [step for step in re.findall(r"[^.\[\]\"]+", text) if not step.isdigit()]
    if not steps:
        return _guide()
    first = _SHORT.get(fold(steps[0]), steps[0])
    for root, way in (
        (_guide(), [first, *steps[1:]]),
        (next(field for field in _guide().fields if field.path == "pools"), steps),
    ):
        if _find(root, way[0]) is not None:
            return _walk(root, way)
    return _by_ending(steps)


def field_names() -> tuple[str, ...]:
    """Return every field in the form for `explain_field`, those of a pool once: pools.gpu.model."""
    return tuple(_plain(page.path) for page in _pages())


def _walk(page: FieldPage, steps: list[str]) -> FieldPage:
    for index, step in enumerate(steps):
        found = _find(page, step)
        if found is not None:
            page = found
        elif page.path == "clusters" and index == 1:
            continue  # a user-defined key
        elif page.type.startswith("map["):
            # An entry of a free-form mapping: a label, a native field.
            kind = page.type.partition("]")[2]
            return replace(page, path=f"{page.path}.{'.'.join(steps[index:])}", type=kind, examples=(), required=False)
        else:
            raise _no_field(page, step)
    return page


def _by_ending(steps: list[str]) -> FieldPage:
    """Return the field whose path ends with these steps; fields of defaults repeat those of pools."""
    expected = [fold(step) for step in steps]
    found = [page for page in _pages() if [fold(s) for s in _plain(page.path).split(".")][-len(expected) :] == expected]
    if len(found) == 1:
        return found[0]
    if not found and (parent := _longest(expected)):
        page, known = parent
        raise _no_field(page, steps[known])
    if not found:
        raise _no_field(_guide(), steps[0], [name.rpartition(".")[2] for name in field_names()])
    names = ", ".join(_plain(page.path) for page in found)
    message = f"{quoted('.'.join(steps))} matches {len(found)} fields"
    raise SpecError(message, where=Where("FIELD"), fix=f"choose one of {names}", code="no-field")


def _longest(expected: list[str]) -> tuple[FieldPage, int] | None:
    """Return the one field whose path ends with the first of these steps, and their number."""
    for known in range(len(expected) - 1, 0, -1):
        ends = expected[:known]
        found = [page for page in _pages() if [fold(s) for s in _plain(page.path).split(".")][-known:] == ends]
        if len(found) == 1:
            return found[0], known
    return None


def _no_field(page: FieldPage, step: str, also: Iterable[str] = ()) -> SpecError:
    place = _plain(page.path).removeprefix("pools").removeprefix("defaults").removeprefix(".")
    meant = field_for(step, place)
    fix = did_you_mean(meant) if meant else _near_fields(page, step, also)
    message = f"{page.path or 'the spec'} has no field {quoted(step)}"
    return SpecError(message, where=Where("FIELD"), fix=fix, code="no-field")


def _near_fields(page: FieldPage, step: str, also: Iterable[str]) -> str:
    names = dict.fromkeys([field.path.rpartition(".")[2] for field in page.fields] + list(also))
    if meant := nearest(step, names):
        return did_you_mean(meant)
    first = nearest_first(step, names)[:_MOST_CHOICES]
    return f"choose one of {', '.join(first)}" if first else f"use {_plain(page.path)}: it has no fields"


def _find(page: FieldPage, name: str) -> FieldPage | None:
    return next((field for field in page.fields if fold(field.path.rpartition(".")[2]) == fold(name)), None)


def _plain(path: str) -> str:
    return path.replace("[]", "").replace(".KEY", "")


def _pages() -> list[FieldPage]:
    return [page for page in _guide().below() if page.path and not page.path.startswith("defaults.")]


@cache
def _guide() -> FieldPage:
    """Return the pages of the whole format."""
    return _page("", json_schema(), required=True)


@cache
def _definitions() -> dict[str, Schema]:
    return cast("dict[str, Schema]", json_schema()["$defs"])


def _page(path: str, field: Schema, *, required: bool, providers: tuple[str, ...] = ()) -> FieldPage:
    node = _resolved(field)
    snippets = cast("list[Schema]", node.get("defaultSnippets", []))
    return FieldPage(
        path=path,
        type=_type(node),
        required=required,
        default=node.get("default"),
        choices=tuple(str(choice) for choice in _choices(node)),
        known=tuple(str(word) for word in _known(node)),
        limits=_limits(node),
        description=str(node.get("description", "")),
        examples=(*cast("list[Json]", node.get("examples", [])), *(snippet["body"] for snippet in snippets)),
        providers=providers,
        fields=tuple(_fields(path, node)),
    )


def _resolved(node: Schema) -> Schema:
    """Resolve a reference; keywords next to it describe the field and take precedence."""
    name = str(node.get("$ref", "")).rpartition("/")[2]
    return {**_definitions()[name], **node} if name else node


def _fields(path: str, node: Schema) -> Iterator[FieldPage]:
    """Yield the pages of a mapping's fields, a list's items, or the values of user-defined keys."""
    if not path:  # without defaults, pools must be complete: the schema has that in an `if`
        node = {**node, "properties": {**_properties(node), "pools": {**_properties(node)["pools"], **_COMPLETE}}}
    inner = node.get("items") or node.get("additionalProperties")
    if "properties" in node:
        for name, field in _properties(node).items():
            yield _page(f"{path}.{name}" if path else name, field, required=name in _required(node))
    elif isinstance(inner, dict) and "items" in node:
        yield from _fields(f"{path}[]", _resolved(inner))
    elif isinstance(inner, dict) and "Cluster" in str(inner.get("$ref")):
        yield from _of_clusters(f"{path}.KEY")
    for form in _forms(node):
        yield from _fields(path, _resolved(form))


def _forms(node: Schema) -> list[Schema]:
    """Return the alternative types of a value; a choice between keys does not count."""
    return [form for form in cast("list[Schema]", node.get("oneOf", [])) if set(form) != {"required"}]


_COMPLETE: Final[Schema] = {"items": {"$ref": "#/$defs/Pool"}}


def _of_clusters(path: str) -> Iterator[FieldPage]:
    """Yield the fields of all cluster forms: each field once, with the clouds that have it."""
    forms = {provider: _definitions()[model.__name__] for provider, model in CLUSTER_MODELS.items()}
    for name in dict.fromkeys(key for form in forms.values() for key in _properties(form)):
        having = {provider: form for provider, form in forms.items() if name in _properties(form)}
        field = _properties(_definitions()["Cluster"]).get(name) or _properties(next(iter(having.values())))[name]
        required = all(name in _required(form) for form in having.values())
        yield _page(f"{path}.{name}", field, required=required, providers=() if having == forms else tuple(having))


def _properties(node: Schema) -> dict[str, Schema]:
    return cast("dict[str, Schema]", node["properties"])


def _required(node: Schema) -> list[Json]:
    return cast("list[Json]", node.get("required", []))


def _type(node: Schema) -> str:
    node = _resolved(node)
    if forms := _forms(node):
        return " | ".join(_type(form) for form in forms)
    if "items" in node:
        return f"[]{_type(cast('Schema', node['items']))}"
    if "properties" in node:
        return "map[provider]string" if _is_text_per_provider(node) else "Object"
    inner = node.get("additionalProperties")
    if isinstance(inner, dict):
        return f"map[string]{_type(inner)}"
    return str(node.get("type", "any"))


def _is_text_per_provider(node: Schema) -> bool:
    fields = _properties(node)
    return list(fields) == list(PROVIDERS) and all(field.get("type") == "string" for field in fields.values())


def _choices(node: Schema) -> list[Json]:
    """Return the allowed values: an enum, in addition to which only variables are allowed."""
    if "const" in node:
        return [node["const"]]
    forms = cast("list[Schema]", node.get("anyOf", []))
    if {"pattern": VARIABLE} not in forms:
        return []
    return [word for form in forms for word in cast("list[Json]", form.get("enum", []))]


def _known(node: Schema) -> list[Json]:
    """Return the values from the catalog, in addition to which any text is allowed."""
    inner = node.get("items")
    if isinstance(inner, dict):
        return _known(inner)
    references = [form for form in cast("list[Schema]", node.get("anyOf", [])) if "$ref" in form]
    found = [word for form in references for word in cast("list[Json]", _resolved(form)["enum"])]
    return found + [word for form in _forms(node) for word in _known(form)]


def _limits(node: Schema) -> str:
    if "pattern" in node:
        return str(node["patternErrorMessage"])
    low, above, high = (node.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    return "" if above is None else f"more than {above}"
