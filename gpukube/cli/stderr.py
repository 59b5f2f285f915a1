"""Human-readable messages on stderr: cleaned, and on a terminal wrapped at words with indented continuation rows.

In scope: every plain line that a command writes in addition to its result. Out of scope: rows and tables (output,
progress). Imports the standard library only, because errors of the command line itself come through here.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from typing import Final

from gpukube.visible import visible_lines

_LEAST_WIDTH: Final = 40
_LABEL: Final = "    fix: "
"""Label whose width indents continuation rows: they align with the text, not with the label."""
_COMMAND: Final = re.compile(r"(?:^|[ :])(?:gpukube|kubectl|helm|aws|az|gcloud|pip) \S")
"""Start of a command. A wrapped command continues after a backslash: all rows copied together run, one does not."""
_WORDS: Final = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+|['\"]")
"""Words as a shell parses them: a quoted word is never broken."""


def write_stderr(text: str) -> None:
    """Write lines of text and flush; in a pipe each line is a record, kept whole."""
    text = visible_lines(text)
    if sys.stderr.isatty():
        width = max(_LEAST_WIDTH, shutil.get_terminal_size().columns)
        text = "".join(f"{_wrapped(line, width)}\n" for line in text.splitlines())
    sys.stderr.write(text)
    sys.stderr.flush()


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    hanging = " " * len(_LABEL) if indent else "    "
    if command := _COMMAND.search(line):
        return _continued(line, width, hanging, command.start())
    # Never break paths and options: half of one is a different one.
    return textwrap.fill(
        line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _continued(line: str, width: int, hanging: str, begin: int) -> str:
    """Wrap a line that contains a command, at words."""
    room, rows, row = width - len(" \\"), list[str](), line[: len(line) - len(line.lstrip())]
    for word in _WORDS.finditer(line):
        lead = "" if not row.strip() else " "
        if row.strip() and len(row) + len(lead) + len(word[0]) > room:
            rows.append(row + (" \\" if word.start() > begin + 1 else ""))
            row, lead = hanging, ""
        row += lead + word[0]
    return "\n".join([*rows, row])
