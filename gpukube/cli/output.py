"""What a person or a script gets: the format asked for, on the stream it belongs to.

Results go to stdout, everything else to stderr. Colour and live rows only on a terminal (rich honours NO_COLOR and
FORCE_COLOR); texts must be readable at 80 columns. Must not live here: what a document says (rendering, markdown,
github, junit).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.console import Console
from rich.text import Text

from gpukube.cli.data import quoted_json, write_data
from gpukube.cli.github import github_lines
from gpukube.cli.junit import junit_lines
from gpukube.cli.markdown import markdown
from gpukube.cli.rendering.catalog import render_find, render_refresh, render_slices, render_type, render_types
from gpukube.cli.rendering.doctor import render_doctor
from gpukube.cli.rendering.lines import Hung, View, clean, plural
from gpukube.cli.rendering.listing import list_names, render_list, render_pool
from gpukube.cli.rendering.mig import render_mig
from gpukube.cli.rendering.plan import render_diff, render_plan
from gpukube.cli.rendering.report import render_report, render_validation
from gpukube.cli.rendering.sandbox import render_sandbox
from gpukube.cli.sarif import sarif_lines
from gpukube.cli.stderr import tell
from gpukube.errors import SpecError, Where, render_diagnostics
from gpukube.visible import visible_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.cli.rendering.lines import Line
    from gpukube.engine.documents import Document
    from gpukube.errors import Finding

PIPE_WIDTH: Final = 200
LEAST_WIDTH: Final = 16
"""Columns that the body of a line gets at least, however narrow the terminal."""

_DATA: Final = ("table", "json", "yaml")
_WIDE: Final = ("table", "wide", "json", "yaml")
_LISTED: Final = ("table", "wide", "json", "yaml", "name", "markdown")
_REPORTED: Final = (*_DATA, "markdown")
FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "Plan": (*_DATA, "markdown"),
    "Diff": (*_DATA, "markdown", "github"),
    "PoolList": _LISTED,
    "Pool": ("table", "wide", "json", "yaml", "name"),
    "Create": _REPORTED,
    "Apply": _REPORTED,
    "Scale": _REPORTED,
    "Delete": _REPORTED,
    "Wait": _REPORTED,
    "Verify": (*_REPORTED, "junit"),
    "Doctor": _REPORTED,
    "Validation": ("table", "text", "json", "yaml", "sarif", "github"),
    "OwnerExplanation": _DATA,
    "FieldExplanation": _DATA,
    "Sandbox": _DATA,
    "CatalogList": _WIDE,
    "CatalogFind": _WIDE,
    "CatalogSlices": _WIDE,
    "CatalogType": _WIDE,
    "CatalogMig": _WIDE,
    "CatalogRefresh": _DATA,
}
"""Kind of document -> formats it can be had in, the default first."""

RENDERERS: Final[Mapping[str, Callable[[Any, View], Iterable[Line]]]] = {  # each takes the shape of its own kind
    "Plan": render_plan,
    "Diff": render_diff,
    "PoolList": render_list,
    "Pool": render_pool,
    "Create": render_report,
    "Apply": render_report,
    "Scale": render_report,
    "Delete": render_report,
    "Wait": render_report,
    "Verify": render_report,
    "Doctor": render_doctor,
    "Validation": render_validation,
    "Sandbox": render_sandbox,
    "CatalogList": render_types,
    "CatalogFind": render_find,
    "CatalogSlices": render_slices,
    "CatalogType": render_type,
    "CatalogMig": render_mig,
    "CatalogRefresh": render_refresh,
}
"""How each kind of document is shown to people."""

_TEXTS: Final[Mapping[str, Callable[[Any], Iterable[str]]]] = {
    "name": list_names,
    "markdown": markdown,
    "github": github_lines,
    "junit": junit_lines,
    "sarif": sarif_lines,
}
"""Formats that are lines of text, whatever the stream."""


def require_format(name: str, kind: str) -> None:
    """Check the -o option before anything is done.

    Args:
        name: As given.
        kind: Of the document that the command will show.

    Raises:
        SpecError: This command does not write that format.
    """
    possible = FORMATS[kind]
    if name not in possible:
        raise SpecError(
            f'"{name}" is no output format of this command',
            where=Where("--output"),
            fix=f"write one of {', '.join(possible)}",
            code="output-format",
        )


def show(document: Document, output: str, *, verbose: bool = False) -> None:
    """Print a result on stdout.

    Args:
        document: What to show.
        output: One of the FORMATS of its kind; or "line", JSON on one line, which ends an event log on stdout.
        verbose: Causes and exact requests too.

    Raises:
        SpecError: This kind of document is not written in that format.
    """
    kind = str(document["kind"])
    if output == "line":
        sys.stdout.write(quoted_json(document) + "\n")
        sys.stdout.flush()
        return
    require_format(output, kind)
    if output in ("json", "yaml"):
        write_data(document, output)
    elif output in _TEXTS:
        shown = document if output == "sarif" else visible_tree(document)  # SARIF is JSON, which quotes by itself
        sys.stdout.writelines(f"{line}\n" for line in _TEXTS[output](shown))
    else:
        view = View(verbose, _width(sys.stdout), wide=output == "wide")
        lines = RENDERERS[kind](visible_tree(document), view)
        write_lines(lines, _console(sys.stdout), wrap=sys.stdout.isatty())
    sys.stdout.flush()


def show_on_stderr(document: Document, *, verbose: bool = False) -> None:
    """Print a document for people on stderr: what a question is about, while stdout is for the result."""
    view = View(verbose, _width(sys.stderr))
    lines = RENDERERS[str(document["kind"])](visible_tree(document), view)
    write_lines(lines, _console(sys.stderr), wrap=sys.stderr.isatty())
    sys.stderr.flush()


def warn(diagnostics: Iterable[Finding], *, silenced: int = 0) -> None:
    """Print findings on stderr, and how many others the spec accepts."""
    text = render_diagnostics(diagnostics)
    if text:
        tell(text)
    if silenced:
        tell(f"{plural(silenced, 'finding')} silenced")


def stderr_console() -> Console:
    """Make the console for progress; a terminal only where stderr is one and CI does not say otherwise."""
    return _console(sys.stderr)


def write_lines(lines: Iterable[Line], console: Console, *, wrap: bool) -> None:
    """Write lines for people.

    Args:
        lines: What to write.
        console: Where to.
        wrap: Break long lines at words, below their beginning; otherwise a line is a record and kept whole.
    """
    for line in lines:
        shown = Text(line) if isinstance(line, str) else line
        if isinstance(shown, Text):
            shown = Hung(Text(), shown)
        if isinstance(shown, Hung):
            shown = _hang(shown, console) if wrap else clean(Text.assemble(shown.prefix, shown.body))
        if isinstance(shown, Text) and console.color_system is None:  # ten times faster, for fleets in a pipe
            console.file.write(f"{shown.plain}\n")
            continue
        console.print(shown, soft_wrap=isinstance(shown, Text))


def _hang(line: Hung, console: Console) -> Text:
    """Break a line so that its further rows begin below its body."""
    indent = line.prefix.cell_len
    rows = clean(line.body.copy()).wrap(console, max(LEAST_WIDTH, console.width - indent), overflow="fold")
    for row in rows:
        row.rstrip()
    broken = Text("\n" + " " * indent).join(rows)
    return Text.assemble(clean(line.prefix.copy()), broken)


def _console(stream: TextIO) -> Console:
    """Make a console; in a pipe lines are as long as they are, so tables get room.

    FORCE_COLOR asks for colour in a pipe, not for a terminal's width and redrawing, which rich would take it for.
    """
    live = stream.isatty() and not os.environ.get("CI")
    console = Console(file=stream, highlight=False, force_interactive=None if live else False, emoji=False)
    if not stream.isatty():
        console.width = PIPE_WIDTH
    return console


def _width(stream: TextIO) -> int:
    return _console(stream).width if stream.isatty() else 0
