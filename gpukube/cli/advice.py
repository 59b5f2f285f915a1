"""What somebody with the habits of another tool meant by a command line that does not parse.

Lives here: the command line that gpukube has for it. Imports the standard library only: it runs on a mistyped word.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DRY_RUN: Final = "--dry-run"
_PLANNED: Final = ("create", "apply")
_SPECS: Final = (".yaml", ".yml")


def meant(arguments: Sequence[str], pool_commands: Collection[str]) -> str:
    """Return the command line that was probably meant; "" where nothing is near.

    Args:
        arguments: As given, without the program.
        pool_commands: Names of the commands below `gpukube pool`.
    """
    words = list(arguments)
    first = next((place for place, word in enumerate(words) if not word.startswith("-")), None)
    if first is not None and words[first] in pool_commands:  # gpukube create, as eksctl and terraform have it
        words.insert(first, "pool")
    if _DRY_RUN in words:  # kubectl's; here that is a command of its own
        words = ["plan" if word in _PLANNED else word for word in words if word != _DRY_RUN]
    for place in reversed(range(1, len(words))):  # terraform plan FILE
        if words[place].endswith(_SPECS) and not words[place - 1].startswith("-"):
            words.insert(place, "-f")
    return "" if words == list(arguments) else shlex.join(["gpukube", *words])
