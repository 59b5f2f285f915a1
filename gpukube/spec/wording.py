"""Building blocks of messages: values as written, the nearest name, lists of choices.

In scope: text from values. Out of scope: rules, fields, positions.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Final

from gpukube.visible import spell_out_lookalikes

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST: Final = 60


def quoted(text: str) -> str:
    """Quote a user's text: control characters escaped, look-alikes spelled out, at most 60 characters."""
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return json.dumps(spell_out_lookalikes(short), ensure_ascii=False)


def shown(value: object, spelling: str | None = None) -> str:
    """Describe a value: "abc", the number 1.3, the boolean true, a list, a mapping, empty.

    Args:
        value: The parsed value.
        spelling: The text as written, if it is known to differ. A text substituted from the environment is shown as
            written (${NAME}), because the variable may contain a secret.
    """
    if isinstance(value, str):
        return quoted(spelling if spelling is not None else value)
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value!r}" if isinstance(value, float) else f"the number {_short(str(value))}"
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list | tuple) else "a mapping"


def _short(digits: str) -> str:
    return digits if len(digits) <= _LONGEST else f"{digits[: _LONGEST - 3]}..."


def fold(key: str) -> str:
    """Normalize a key's case and separators: size_gib, SizeGiB, and size-gib become the same."""
    return key.replace("_", "").replace("-", "").replace(" ", "").casefold()


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the known name that a user most likely meant; None if none is similar."""
    by_fold = {fold(name): name for name in known}
    if fold(written) in by_fold:
        return by_fold[fold(written)]
    found = difflib.get_close_matches(fold(written)[:_LONGEST], by_fold, n=1, cutoff=0.7)
    return by_fold[found[0]] if found else None


def did_you_mean(meant: str) -> str:
    """Return the fix for a typo."""
    return f"did you mean {meant}?"


def nearest_first(written: str, known: Iterable[str]) -> tuple[str, ...]:
    """Sort names by similarity to what was written; equally similar names keep their order."""
    like = fold(written)[:_LONGEST]
    return tuple(sorted(known, key=lambda name: -difflib.SequenceMatcher(None, like, fold(name)).ratio()))


def choices(names: Iterable[str]) -> str:
    """Join names as in a sentence: a, b or c."""
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
