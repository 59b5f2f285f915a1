"""Reading the corpus: what a file says it is drawn from, and which findings it expects where.

In scope: the form of the files, which README.md explains. Out of scope: assertions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpukube import api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER: Final = Path(__file__).parent
VALID: Final = tuple(sorted((FOLDER / "valid").glob("*.yaml")))
INVALID: Final = tuple(sorted((FOLDER / "invalid").glob("*.yaml")))

_MARK: Final = re.compile(r"(?P<indent> *)#(?P<gap> *)(?P<sign>\^|<|nowhere:) (?P<severity>\w+)\[(?P<code>[\w.-]+)\]")
_SOURCE: Final = re.compile(r"# (?P<source>[\w.-]+/[\w.-]+#\d+|docs: \S+|RFC \d+|[\w.-]+/[\w.-]+ \S+): \S.*")


class Expected(NamedTuple):
    """A finding as a file marks it; line 0 where it is about the file as a whole."""

    line: int
    column: int
    severity: str
    code: str


def source_of(text: str) -> str:
    """Return the thread, or the page, that the first line names; "" when it names none."""
    found = _SOURCE.fullmatch(text.partition("\n")[0])
    return found["source"] if found else ""


def expectations(text: str) -> list[Expected]:
    """Read the marks of a file, in the order of positions."""
    return sorted(_marks(text))


def _marks(text: str) -> Iterator[Expected]:
    above = 0
    for number, line in enumerate(text.split("\n"), start=1):
        found = _MARK.fullmatch(line)
        if found is None:
            above = number
        elif found["sign"] == "nowhere:":
            yield Expected(0, 0, found["severity"], found["code"])
        else:
            hash_column = len(found["indent"]) + 1
            column = hash_column if found["sign"] == "<" else hash_column + 1 + len(found["gap"])
            yield Expected(above, column, found["severity"], found["code"])


def findings(name: str) -> list[Expected]:
    """Validate a file of the working directory, as the command does, and give what is said of it."""
    found = api.validate([name], environ={}).findings
    return sorted(Expected(d.where.line, d.where.column, d.severity, d.code) for d in found)


def without_marks(text: str) -> str:
    """Take the marks out of a file."""
    return "\n".join(line for line in text.split("\n") if not _MARK.fullmatch(line))


def written(text: str, found: Iterable[Expected]) -> str:
    """Put marks for findings, as lines of the text without marks, under their lines."""
    lines = text.split("\n")
    for line, column, severity, code in sorted(found, reverse=True):
        said = f"{severity}[{code}]"
        if line == 0:
            lines.insert(1, f"# nowhere: {said}")
        elif column == 1:
            lines.insert(line, f"#< {said}")
        else:
            # the mark of a comment stands where the text above begins, so that the file stays easy to read
            indent = min(len(lines[line - 1]) - len(lines[line - 1].lstrip(" ")), column - 2)
            lines.insert(line, f"{' ' * indent}#{' ' * (column - 2 - indent)}^ {said}")
    return "\n".join(lines)
