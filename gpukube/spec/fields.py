"""Questions about the models as such: which keys exist where, which field a path leads to.

Lives here: reflection on model.py. Must not live here: values, diagnostics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from gpukube.spec.model import Pool, SpecModel
from gpukube.spec.scalars import parse_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from gpukube.spec.positions import Path

__all__ = ["Field", "as_yaml", "keys_of", "lookup", "places_in_pool"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model, as a path finds it.

    Attributes:
        info: What the model says about it.
        model: The model its value (or the items of its value) must fit; None for plain values.
        is_item: The path leads to an item of its value.
    """

    info: FieldInfo
    model: type[SpecModel] | None
    is_item: bool = False

    @property
    def example(self) -> str | None:
        """A value to show in messages, as YAML writes it."""
        if self.is_item or not self.info.examples:
            return None  # the examples are of the whole list
        return as_yaml(self.info.examples[0])

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts its value is chosen from; empty when any will do."""
        annotation = self.info.annotation
        return get_args(annotation) if get_origin(annotation) is Literal else ()


def as_yaml(value: object) -> str:
    """Write an example in one line, as it would stand in a spec."""
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
    """Map the keys of a model, as written in a spec, to its fields."""
    return {
        info.alias or name: Field(info, next(_models_in(info.annotation), None))
        for name, info in model.model_fields.items()
    }


def keys_of(model: type[SpecModel]) -> tuple[str, ...]:
    """List the keys of a model as written in a spec."""
    return tuple(fields_of(model))


def lookup(model: type[SpecModel], path: Path) -> tuple[type[SpecModel] | None, Field | None]:
    """Follow a path: the model that holds its last key (None inside free mappings), and the field if there is one."""
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


@cache
def places_in_pool() -> dict[str, tuple[str, ...]]:
    """Map each key below a pool to where it may stand: "profile" -> ("sharing.mig.profile",)."""
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
    """Find the models in an annotation such as `Mig | None` or `tuple[Taint, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
