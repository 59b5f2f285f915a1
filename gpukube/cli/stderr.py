"""Messages for people on stderr: cleaned, and on a terminal broken at words below their beginning.

In scope: every plain line that a command writes beside its result. Out of scope: rows and tables (output,
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
"""Further rows of a message stand below its text, not below its label."""
_COMMAND: Final = re.compile(r"(?:^|[ :])(?:gpukube|kubectl|helm|aws|az|gcloud|pip) \S")
"""A command goes on in the next row behind a backslash: copied from both it is whole, and from one it is not run."""
_WORDS: Final = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+|['\"]")
"""Words as a shell takes them: a quoted one is broken nowhere."""


def write_stderr(text: str) -> None:
    """Write lines of text and flush; in a pipe a line is a record and kept whole."""
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
    # Paths and options are broken nowhere: half of one is another one.
    return textwrap.fill(
        line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _continued(line: str, width: int, hanging: str, begin: int) -> str:
    """Break a line with a command in it at words."""
    room, rows, row = width - len(" \\"), list[str](), line[: len(line) - len(line.lstrip())]
    for word in _WORDS.finditer(line):
        lead = "" if not row.strip() else " "
        if row.strip() and len(row) + len(lead) + len(word[0]) > room:
            rows.append(row + (" \\" if word.start() > begin + 1 else ""))
            row, lead = hanging, ""
        row += lead + word[0]
    return "\n".join([*rows, row])
