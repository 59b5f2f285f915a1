"""Edits of --fix as values; an edit identifies the key or value that it changes by its position in the file.

In scope: the edits. Out of scope: applying them to text (`fixing`), deciding on them (the rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from gpukube.errors import Where


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Replace the scalar, key or value, at a position; `text` is YAML, including quotes."""

    where: Where
    text: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert an entry at the start of the mapping at a position; `text` is YAML on one line."""

    mapping: Where
    text: str


@dataclass(frozen=True, slots=True)
class Append:
    """Append an item to the list at a position; `text` is YAML on one line."""

    sequence: Where
    text: str


@dataclass(frozen=True, slots=True)
class Move:
    """Move the entry with its key at a position into the mapping `under` inside the mapping at `into`.

    Attributes:
        key: Position of the key of the entry.
        into: Start of the mapping that has, or gets, a mapping named `under`.
        under: "" for the mapping at `into` itself.
    """

    key: Where
    into: Where
    under: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove the entry with its key at a position."""

    key: Where


Edit: TypeAlias = Rewrite | Insert | Append | Move | Drop
