"""What a person or a script sees: tables and text, JSON, YAML, and live progress. All from plain data.

Results go to stdout, everything else to stderr. Colour and live rows only on a terminal (rich honours NO_COLOR and
FORCE_COLOR); texts must be readable at 80 columns, so long facts stand in lines of their own, not in columns.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, TextIO

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpukube.cli.rendering import (
    render_diff,
    render_list,
    render_plan,
    render_pool,
    render_report,
    render_sandbox,
    render_validation,
)
from gpukube.errors import SpecError, Where, render_diagnostics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpukube.cli.rendering import Line
    from gpukube.engine.documents import Document
    from gpukube.errors import Diagnostic

__all__ = [
    "RENDERERS",
    "require_format",
    "show",
    "stderr_console",
    "warn",
]

FORMATS = ("table", "json", "yaml")
PIPE_WIDTH = 200

RENDERERS: dict[str, Callable[[Document, bool], Iterable[Line]]] = {
    "Plan": render_plan,
    "Diff": render_diff,
    "PoolList": render_list,
    "Pool": render_pool,
    "Create": render_report,
    "Delete": render_report,
    "Verify": render_report,
    "Validation": render_validation,
    "Sandbox": render_sandbox,
}
"""How each kind of document is shown to people."""


def require_format(name: str) -> None:
    """Check the -o option.

    Raises:
        SpecError: No such format.
    """
    if name not in FORMATS:
        raise SpecError(
            f'"{name}" is no output format',
            where=Where("--output"),
            fix=f"write one of {', '.join(FORMATS)}",
            code="output-format",
        )


def show(document: Document, output: str, *, verbose: bool = False) -> None:
    """Print a result on stdout in the format asked for."""
    if output == "json":
        sys.stdout.write(json.dumps(document, indent=2, default=str) + "\n")
    elif output == "yaml":
        yaml.safe_dump(json.loads(json.dumps(document, default=str)), sys.stdout, sort_keys=False, allow_unicode=True)
    else:
        _print(RENDERERS[str(document["kind"])](document, verbose), sys.stdout)
    sys.stdout.flush()


def warn(diagnostics: Iterable[Diagnostic]) -> None:
    """Print findings on stderr."""
    text = render_diagnostics(diagnostics)
    if text:
        sys.stderr.write(text + "\n")


def stderr_console() -> Console:
    """Make the console for progress; a terminal only where stderr is one and CI does not say otherwise."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    """Make a console; in a pipe lines are as long as they are, so tables get room.

    FORCE_COLOR asks for colour in a pipe, not for a terminal's width and redrawing, which rich would take it for.
    """
    live = stream.isatty() and not os.environ.get("CI")
    console = Console(file=stream, highlight=False, force_interactive=None if live else False, emoji=False)
    if not stream.isatty():
        console.width = PIPE_WIDTH
    return console


def _print(lines: Iterable[Line], stream: TextIO) -> None:
    """Print; words are wrapped on a terminal only, because in a pipe a line is a record."""
    console = _console(stream)
    for line in lines:
        keep_whole = not stream.isatty() and not isinstance(line, Table)
        console.print(Text(line) if isinstance(line, str) else line, soft_wrap=keep_whole)
