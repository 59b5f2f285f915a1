"""Small pieces of the messages: values as people wrote them, the nearest name, lists of choices.

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
    """Quote a text the user wrote; control characters escaped, look-alikes spelled out, at most 60 characters of it."""
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return json.dumps(spell_out_lookalikes(short), ensure_ascii=False)


def shown(value: object, spelling: str | None = None) -> str:
    """Describe a value: "abc", the number 1.3, the boolean true, a list, a mapping, empty.

    Args:
        value: The value as read.
        spelling: The text as written, when it is known to differ. A text substituted from the environment
            is shown as written (${NAME}), because the variable may hold a secret.
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
    """Reduce a key to what survives other habits of writing: size_gib, SizeGiB and size-gib are one."""
    return key.replace("_", "").replace("-", "").replace(" ", "").casefold()


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Find the known name a user most likely meant; None when nothing is near."""
    by_fold = {fold(name): name for name in known}
    if fold(written) in by_fold:
        return by_fold[fold(written)]
    found = difflib.get_close_matches(fold(written)[:_LONGEST], by_fold, n=1, cutoff=0.7)
    return by_fold[found[0]] if found else None


def did_you_mean(meant: str) -> str:
    """Ask, after a typo, for the name that was probably meant."""
    return f"did you mean {meant}?"


def nearest_first(written: str, known: Iterable[str]) -> tuple[str, ...]:
    """Order names by likeness to what was written; names equally unlike keep their order."""
    like = fold(written)[:_LONGEST]
    return tuple(sorted(known, key=lambda name: -difflib.SequenceMatcher(None, like, fold(name)).ratio()))


def choices(names: Iterable[str]) -> str:
    """Join names as a sentence does: a, b or c."""
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
