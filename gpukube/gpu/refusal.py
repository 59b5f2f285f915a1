"""The refusal of this room: what is wrong without a file position, and the nearest known word.

In scope: `CatalogError` and `nearest`. Out of scope: positions and diagnostics; whoever knows
where the value was written turns the error into a Finding.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class CatalogError(ValueError):
    """A GPU, machine, profile or sharing that does not exist or does not go together.

    Args:
        message: What is wrong, with the value seen; lower case, no full stop.
        fix: What to write instead.
        why: The rule behind it, when it is not plain.
        code: Stable kebab-case code of the diagnostic.
    """

    def __init__(self, message: str, *, fix: str, why: str = "", code: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.why = why
        self.code = code


def nearest(text: str, known: Iterable[str]) -> list[str]:
    """Order known words by likeness to the text, case aside, most alike first; ties by name."""
    requested = text.casefold()
    return sorted(known, key=lambda word: (-SequenceMatcher(None, requested, word.casefold()).ratio(), word))


def one_of(words: Iterable[str]) -> str:
    """Name choices for people: "a", "a or b", "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
