"""Plain fields: those that a cloud takes as they are written, so that nothing between spec and cloud has to know them.

A field of a pool is plain when its annotation says so: `Annotated[int | None, PLAIN]`. Its value goes along with the
target by its path, and a row of that path in a provider's field table is all that brings it to the cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.base import SpecModel

PLAIN: Final = "plain"


def plain_values(model: SpecModel, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the plain fields that are written, with their paths."""
    for name, info in type(model).model_fields.items():
        path, value = (*above, info.alias or name), getattr(model, name)
        if PLAIN in info.metadata:
            if value is not None:
                yield path, value
        elif hasattr(type(value), "model_fields"):  # a model: told without pydantic, which the catalog does not load
            yield from plain_values(value, path)
