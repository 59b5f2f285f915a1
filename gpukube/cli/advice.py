"""Suggestions for command lines that do not parse because they follow another tool's habits.

Imports the standard library only: it runs on a mistyped word.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DRY_RUN: Final = "--dry-run"
_PLANNED: Final = ("create", "apply")
_SPECS: Final = (".yaml", ".yml")


def suggest_command(arguments: Sequence[str], pool_commands: Collection[str]) -> str:
    """Return the command line that was probably meant; "" if nothing is close.

    Args:
        arguments: Words of the command line, without the program.
        pool_commands: Names of the commands below `gpukube pool`.
    """
    words = list(arguments)
    first = next((place for place, word in enumerate(words) if not word.startswith("-")), None)
    if first is not None and words[first] in pool_commands:  # gpukube create, the form that eksctl and terraform use
        words.insert(first, "pool")
    if first is not None and words[first:] == ["version"]:  # kubectl's and terraform's
        return shlex.join(["gpukube", *words[:first], "--version"])
    _adapt(words, first)
    if _DRY_RUN in words:  # kubectl's; gpukube has a separate command for it
        words = ["plan" if word in _PLANNED else word for word in words if word != _DRY_RUN]
    for place in reversed(range(1, len(words))):  # terraform plan FILE
        if words[place].endswith(_SPECS) and not words[place - 1].startswith("-"):
            words.insert(place, "-f")
    return "" if words == list(arguments) else shlex.join(["gpukube", *words])


def _adapt(words: list[str], first: int | None) -> None:
    """Rewrite commands and words of eksctl, az and gcloud as gpukube options."""
    for place, long in ((first, ["upgrade"]), (first, ["pool", "upgrade"])):
        if place is not None and words[place : place + len(long)] == long:
            words[place : place + len(long)] = ["pool", "apply", "--upgrade"]
    if "scale" not in words:
        return
    scale = words.index("scale")
    words[scale:] = ["--nodes" if word == "--count" else word for word in words[scale:]]
    for place in range(scale + 2, len(words)):
        if words[place].isdecimal() and not words[place - 1].startswith("-"):
            words.insert(place, "--nodes")
            break
