"""Reflection on the models: which keys exist where, and which field a path leads to.

In scope: reflection on model.py. Out of scope: values, diagnostics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Literal, Union, get_args, get_origin

from gpukube.spec.model import GPUNodePools, Pool, PoolSettings, SpecModel
from gpukube.spec.source.scalars import parse_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from gpukube.spec.source.positions import Path


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model, as found by a path.

    Attributes:
        info: The model's information about it.
        model: The model of its value (or of its value's items); None for plain values.
        is_item: Whether the path leads to an item of its value.
    """

    info: FieldInfo
    model: type[SpecModel] | None
    is_item: bool = False

    @property
    def example(self) -> str | None:
        """An example for messages, as YAML."""
        if self.is_item or not self.info.examples:
            return None  # the examples are whole lists
        return as_yaml(self.info.examples[0])

    @property
    def choices(self) -> tuple[str, ...]:
        """Its allowed texts; empty for any."""
        annotation = self.info.annotation
        forms = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
        return tuple(word for form in forms if get_origin(form) is Literal for word in get_args(form))


def as_yaml(value: object) -> str:
    """Return an example in one line, as in a spec."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {as_yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    looks_other = isinstance(value, str) and not isinstance(parse_plain(value), str)
    return f'"{value}"' if looks_other else str(value)


@cache
def fields_of(model: type[SpecModel]) -> dict[str, Field]:
    """Return a model's fields by key, as written in a spec."""
    return {
        info.alias or name: Field(info, next(_models_in(info.annotation), None))
        for name, info in model.model_fields.items()
    }


def keys_of(model: type[SpecModel]) -> tuple[str, ...]:
    """Return the keys of a model, as written in a spec."""
    return tuple(fields_of(model))


def lookup(model: type[SpecModel], path: Path) -> tuple[type[SpecModel] | None, Field | None]:
    """Follow a path; return the model with its last key (None in free-form mappings), and the field if it exists."""
    holder: type[SpecModel] | None = None
    found: Field | None = None
    below: type[SpecModel] | None = model
    for step in path:
        if isinstance(step, int):
            continue  # an item of a list: its fields are those of the item's model
        holder, found = below, fields_of(below).get(step) if below else None
        below = found.model if found else None
    is_item = bool(path) and isinstance(path[-1], int)
    return holder, replace(found, is_item=True) if found and is_item else found


def is_text(path: Path) -> bool:
    """Return whether the value at a path must be a string; False below native fields and chart values."""
    below: list[object] = [PoolSettings] if path[:1] == ("defaults",) else [GPUNodePools]
    for step in path[1:] if path[:1] == ("defaults",) else path:
        below = [inner for annotation in below for inner in _one_step(annotation, step)]
    scalars = [kind for kind in below if kind is not type(None) and get_origin(kind) not in (dict, tuple)]
    return bool(scalars) and all(_is_text_kind(kind) for kind in scalars)


def _one_step(annotation: object, step: str | int) -> Iterator[object]:
    """Yield the annotations one key or index below an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        found = fields_of(annotation).get(str(step))
        yield from _forms(found.info.annotation) if found else ()
    elif get_origin(annotation) in (dict, tuple):  # a list also accepts the name of an item: pools.a100mig
        yield from _forms(get_args(annotation)[1 if get_origin(annotation) is dict else 0])


def _forms(annotation: object) -> Iterator[object]:
    """Yield the alternatives of an annotation."""
    if get_origin(annotation) is Annotated:
        yield from _forms(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, UnionType):
        for part in get_args(annotation):
            yield from _forms(part)
    else:
        yield annotation


def _is_text_kind(kind: object) -> bool:
    return kind is str or (get_origin(kind) is Literal and all(isinstance(value, str) for value in get_args(kind)))


@cache
def places_in_pool() -> dict[str, tuple[str, ...]]:
    """Return the paths of each key below a pool: "profile" -> ("sharing.mig.profile",)."""
    places: dict[str, tuple[str, ...]] = {}
    for path in _paths(Pool, ""):
        key = path.rpartition(".")[2]
        places[key] = (*places.get(key, ()), path)
    return places


def _paths(model: type[SpecModel], above: str) -> Iterator[str]:
    for key, field in fields_of(model).items():
        yield f"{above}{key}"
        if field.model is not None:
            yield from _paths(field.model, f"{above}{key}.")


def _models_in(annotation: object) -> Iterator[type[SpecModel]]:
    """Yield the models in an annotation such as `Mig | None` or `tuple[Taint, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
