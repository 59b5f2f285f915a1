"""What --fix would do, as values: an edit names the key or value that it changes by its place in the file.

In scope: the edits. Out of scope: applying them to text (`fixing`), deciding on them (the rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from gpukube.errors import Where


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Write another scalar, key or value, at a place; `text` as YAML, quotes included."""

    where: Where
    text: str


@dataclass(frozen=True, slots=True)
class Insert:
    """Add an entry to the mapping at a place, before its first; `text` as YAML on one line."""

    mapping: Where
    text: str


@dataclass(frozen=True, slots=True)
class Append:
    """Add an item to the list at a place; `text` as YAML on one line."""

    sequence: Where
    text: str


@dataclass(frozen=True, slots=True)
class Move:
    """Move the entry whose key is at a place into the mapping `under` that stands in the mapping at `into`.

    Attributes:
        key: Of the entry that moves.
        into: Start of the mapping that has, or gets, a mapping named `under`.
        under: "" for the mapping at `into` itself.
    """

    key: Where
    into: Where
    under: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove the entry whose key is at a place."""

    key: Where


Edit: TypeAlias = Rewrite | Insert | Append | Move | Drop
