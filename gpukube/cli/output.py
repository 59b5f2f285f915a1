"""Output for people and scripts: the requested format, on the right stream.

Results go to stdout, everything else to stderr; text must be readable at 80 columns. Out of scope: the content of
documents (rendering, formats.markdown, formats.github, formats.junit), color and line breaking (console).

The code for one kind of document or one format is imported when it is needed: a run shows one of them.
"""

from __future__ import annotations

import os
import stat
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, TextIO, cast

from gpukube.cli.formats.data import quoted_json, write_data
from gpukube.cli.kinds import FORMATS
from gpukube.cli.rendering.text import Table, record
from gpukube.cli.rendering.view import View
from gpukube.cli.stderr import write_stderr
from gpukube.errors import SpecError, Where, render_diagnostics
from gpukube.visible import visible_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.parts import Document
    from gpukube.errors import Finding

RENDERERS: Final[Mapping[str, str]] = {
    "Plan": "plan:render_plan",
    "Diff": "plan:render_diff",
    "PoolList": "listing:render_list",
    "Pool": "listing:render_pool",
    "Create": "report:render_report",
    "Apply": "report:render_report",
    "Scale": "report:render_report",
    "Delete": "report:render_report",
    "Release": "report:render_report",
    "ReleaseRemoval": "report:render_report",
    "Drain": "report:render_report",
    "Wait": "report:render_report",
    "Verify": "report:render_report",
    "Doctor": "doctor:render_doctor",
    "Permissions": "permissions:render_permissions",
    "Validation": "validation:render_validation",
    "Lint": "validation:render_validation",
    "Sandbox": "sandbox:render_sandbox",
    "SandboxFaults": "sandbox:render_faults",
    "CatalogList": "catalog:render_types",
    "CatalogFind": "catalog:render_find",
    "CatalogSlices": "catalog:render_slices",
    "CatalogType": "catalog:render_type",
    "CatalogMig": "mig:render_mig",
    "CatalogRefresh": "catalog:render_refresh",
    "Fit": "fit:render_fit",
    "Capacity": "capacity:render_capacity",
    "Map": "map:render_map",
    "Usage": "usage:render_usage",
}
"""Kind of document -> module of `rendering` and function that render it for people."""

TEXTS: Final[Mapping[str, str]] = {
    "name": "rendering.listing:list_names",
    "markdown": "formats.markdown:markdown",
    "comment": "formats.markdown:comment",
    "github": "formats.github:github_lines",
    "html": "formats.html:html_lines",
    "junit": "formats.junit:junit_lines",
    "codequality": "formats.codequality:codequality_lines",
    "gitlab-terraform": "formats.terraform:gitlab_lines",
    "sarif": "formats.sarif:sarif_lines",
    "terraform-json": "formats.terraform:terraform_lines",
    "csv": "formats.usage:csv_lines",
    "openmetrics": "formats.usage:openmetrics_lines",
}
"""Formats that are lines of text on any stream -> module of `cli` and function."""


_QUOTED: Final = ("sarif", "terraform-json", "gitlab-terraform")
"""Formats that are JSON, which needs no further escaping."""
_COLOURED: Final = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables that request color from rich in a pipe; rich interprets their values."""


def renderer(kind: str) -> Callable[[Document, View], Iterable[Line]]:
    """Import the function that renders a kind of document for people."""
    return cast("Callable[[Document, View], Iterable[Line]]", _imported(f"rendering.{RENDERERS[kind]}"))


def text_writer(output: str) -> Callable[[Document], Iterable[str]]:
    """Import the function that writes a format made of lines of text."""
    return cast("Callable[[Document], Iterable[str]]", _imported(TEXTS[output]))


def _imported(place: str) -> object:
    module, _, name = place.partition(":")
    found: object = getattr(import_module(f"gpukube.cli.{module}"), name)
    return found


def require_format(name: str, kind: str) -> None:
    """Check the -o option before anything else runs.

    Args:
        name: Value of -o.
        kind: Kind of the document that the command will show.

    Raises:
        SpecError: This command does not write that format.
    """
    possible = FORMATS[kind]
    if name not in possible:
        raise SpecError(
            f'"{name}" is not an output format of this command',
            where=Where("--output"),
            fix=f"choose one of {', '.join(possible)}",
            code="output-format",
        )


def show(document: Document, output: str, *, verbose: bool = False) -> None:
    """Print a result on stdout.

    Args:
        document: Document to show.
        output: One of the FORMATS of its kind; or "line", JSON on one line, which ends an event log on stdout.
        verbose: Also show causes and exact requests.

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
    elif output in TEXTS:
        if output == "html":
            _keep_private(sys.stdout)
        shown = document if output in _QUOTED else visible_tree(document)
        sys.stdout.writelines(f"{line}\n" for line in text_writer(output)(shown))
    else:
        _show_to_people(document, sys.stdout, verbose=verbose, wide=output == "wide")
    sys.stdout.flush()


def _keep_private(stream: TextIO) -> None:
    """Let only the owner read a file that stdout is written to: a page names all pods and nodes."""
    try:
        file = stream.fileno()
    except OSError:
        return
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
        os.fchmod(file, 0o600)


def show_on_stderr(document: Document, *, verbose: bool = False) -> None:
    """Print a human-readable document on stderr: the subject of a prompt, while stdout is for the result."""
    _show_to_people(document, sys.stderr, verbose=verbose)
    sys.stderr.flush()


def drawn(document: Document, stream: TextIO, *, verbose: bool, wide: bool = False) -> Iterable[Line]:
    """Return a document as lines for a stream: its width and its encoding decide how they look."""
    view = View(verbose, _width(stream), wide=wide, signs=_has_signs(stream))
    return renderer(str(document["kind"]))(visible_tree(document), view)


def _has_signs(stream: TextIO) -> bool:
    """Return whether a stream can write signs beyond ASCII."""
    try:
        "\u25a0\u25a1\u2592\u2717\u2026".encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def _show_to_people(document: Document, stream: TextIO, *, verbose: bool, wide: bool = False) -> None:
    show_lines(drawn(document, stream, verbose=verbose, wide=wide), stream)
    if "shard" in document or "merged" in document:
        from gpukube.engine.documents.shards import part_line

        show_lines(filter(None, [part_line(visible_tree(document))]), stream)


def show_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Write human-readable lines; rich, a tenth of a validation's time, is imported only if it must draw."""
    is_plain = not stream.isatty() and not any(map(os.environ.get, _COLOURED))
    for line in lines:
        if is_plain and not isinstance(line, Table):
            stream.write(f"{record(line)}\n")
            continue
        from gpukube.cli.console import console_on, write_lines

        write_lines([line], console_on(stream), wrap=stream.isatty())


def _width(stream: TextIO) -> int:
    if not stream.isatty():
        return 0
    from gpukube.cli.console import console_on

    return console_on(stream).width


def warn(diagnostics: Iterable[Finding], *, silenced: int = 0) -> None:
    """Print findings on stderr, then the number of findings that the spec silences."""
    text = render_diagnostics(diagnostics)
    if text:
        write_stderr(text)
    if silenced:
        write_stderr(f"{silenced} finding{'' if silenced == 1 else 's'} silenced")
