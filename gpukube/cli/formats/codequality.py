"""Findings of a document that have a file position, as GitLab's code quality report: an array of findings.

Source: docs.gitlab.com/ci/testing/code_quality "Code Quality report format". GitLab compares the report of a merge
request with that of its target by fingerprint only. Fingerprints contain no line numbers, so that a finding that moves
is not new. Findings outside files (a cluster that could not be read) cannot be expressed in this format.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from gpukube.cli.formats.data import quoted_json
from gpukube.cli.formats.notes import notes_of
from gpukube.cli.formats.places import repository_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cli.formats.notes import Note

_SEVERITIES: Final = {"error": "critical", "warning": "minor", "notice": "info"}


def codequality_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return the array as JSON."""
    repeated = Counter[str]()
    issues = [
        _issue(note, repository_path(note.position["file"]), max(1, note.position["line"]), repeated)
        for note in notes_of(document)
        if note.position and note.position["file"] != "-"
    ]
    yield from quoted_json(issues, indent=2).splitlines()


def _issue(note: Note, path: str, line: int, repeated: Counter[str]) -> dict[str, object]:
    subject = re.sub(r"\[\d+\]|:\d+:\d+", "", note.subject)
    print_ = hashlib.sha256(f"{note.rule}\n{path}\n{subject}".encode()).hexdigest()[:32]
    repeated[print_] += 1
    return {
        "description": f"{note.title}: {note.text}",
        "check_name": note.rule,
        "fingerprint": print_ if repeated[print_] == 1 else f"{print_}-{repeated[print_]}",
        "severity": _SEVERITIES[note.level],
        "location": {"path": path, "lines": {"begin": line}},
    }
