"""Documents as GitHub workflow commands: annotations on lines of files, and a plain-text summary.

Source: docs.github.com "Workflow commands for GitHub Actions"; escapes as in actions/toolkit
packages/core/src/command.ts. GitHub shows 10 errors and 10 warnings per step (docs.github.com/en/rest/checks/runs) and
50 annotations per job (actions/toolkit docs/problem-matchers.md, Limitations) and drops the rest silently, so the
most severe come first; the rest are in the log, and the last annotation counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpukube.cli.formats.notes import LEVELS, Note, notes_of, sum_lines
from gpukube.cli.formats.places import repository_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cli.formats.notes import Level

SHOWN: Final = 10
"""Annotations of one level per step; GitHub drops any beyond that. Three levels stay below the 50 per job."""


def github_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return annotations for what a document reports, most severe first, then the plain-text summary."""
    notes = notes_of(document)
    for level in LEVELS:
        yield from _capped([note for note in notes if note.level == level], level)
    yield from (f"gpukube: {_data(line)}" for line in sum_lines(document))


def _capped(notes: Sequence[Note], level: Level) -> Iterator[str]:
    """Return as many annotations as GitHub shows; the rest go to the log, and the last annotation counts them."""
    fits = notes if len(notes) <= SHOWN else notes[: SHOWN - 1]
    yield from map(_command, fits)
    rest = notes[len(fits) :]
    if rest:
        yield _command(Note(level, "gpukube", f"{len(rest)} more of this level are in the log of this step"))
    for note in rest:
        yield f"{level}: {_data(note.title)}: {_data(note.text)}"


def _command(note: Note) -> str:
    place = note.position
    parts = {"title": note.title}
    if place and place["file"] != "-":
        file = repository_path(place["file"])
        parts = {"file": file, "line": str(place["line"]), "col": str(place["column"]), **parts}
    escaped = {name: _data(value).replace(":", "%3A").replace(",", "%2C") for name, value in parts.items()}
    properties = ",".join(f"{name}={value}" for name, value in escaped.items())
    return f"::{note.level} {properties}::{_data(note.text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
