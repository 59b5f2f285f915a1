"""The error of this package, without a file position, and the nearest known word.

In scope: `CatalogError` and `nearest`. Out of scope: positions and diagnostics; the caller that knows the position
turns the error into a Finding.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class CatalogError(ValueError):
    """A GPU, machine, profile, or sharing config that does not exist, or a combination that does not work.

    Args:
        message: What is wrong, including the value; lower case, no period.
        fix: What to write instead.
        why: The rule behind it, if that is not obvious.
        code: Stable kebab-case code of the diagnostic.
    """

    def __init__(self, message: str, *, fix: str, why: str = "", code: str) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        self.why = why
        self.code = code


def nearest(text: str, known: Iterable[str]) -> list[str]:
    """Sort known words by similarity to the text, ignoring case, most similar first; ties by name."""
    requested = text.casefold()
    return sorted(known, key=lambda word: (-SequenceMatcher(None, requested, word.casefold()).ratio(), word))


def one_of(words: Iterable[str]) -> str:
    """Join choices: "a", "a or b", "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
