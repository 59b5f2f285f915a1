"""What people see, to the letter: at 80 and at 200 columns, in a pipe, and on GitHub.

`pytest tests/screens --update` writes the screens anew; the review reads the difference.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from rich.console import Console

from gpukube.cli import output
from gpukube.cli.console import PIPE_WIDTH, write_lines
from gpukube.cli.rendering.lines import WIDE
from gpukube.cli.rendering.view import View
from gpukube.engine.documents.listing import list_document, pool_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.report import report_document
from tests.screens.capacity_scene import CAPACITY
from tests.screens.scenes import LIVE, PLANS, REPORTS, SAME, USAGE, WARNINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

SCREENS = Path(__file__).parent / "expected"
WIDTHS = (80, 200)

DOCUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "plan": plan_document(PLANS, WARNINGS),
    "diff": plan_document(PLANS, WARNINGS, kind="Diff"),
    "same": plan_document(SAME, (), kind="Diff"),
    "list": list_document(LIVE, USAGE),
    "pool": pool_document(LIVE, "t4shared", USAGE),
    "report": report_document(REPORTS, kind="Apply"),
    "capacity": CAPACITY,
}
"""Name of the screen -> document."""

SHOWN: Final = [
    *((name, f"{width}", View(width=width)) for name in DOCUMENTS for width in WIDTHS),
    *((name, "pipe", View()) for name in DOCUMENTS),
    *(
        (name, f"verbose-{width}", View(verbose=True, width=width))
        for name in ("plan", "report", "capacity")
        for width in WIDTHS
    ),
    *(("list", f"wide-{width}", View(width=width, wide=True)) for width in WIDTHS),
]
TEXTS: Final = [
    ("plan", "markdown"),
    ("diff", "markdown"),
    ("diff", "github"),
    ("same", "github"),
    ("same", "markdown"),
    ("list", "markdown"),
    ("list", "name"),
    ("pool", "name"),
    ("report", "markdown"),
    ("capacity", "markdown"),
]


def drawn(name: str, view: View) -> str:
    document = DOCUMENTS[name]
    stream = io.StringIO()
    console = Console(file=stream, width=view.width or PIPE_WIDTH, highlight=False, emoji=False)
    write_lines(output.renderer(document["kind"])(document, view), console, wrap=bool(view.width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def compare(screen: str, shown: str, request: pytest.FixtureRequest) -> None:
    record = SCREENS / screen
    if request.config.getoption("--update", default=False):
        record.parent.mkdir(exist_ok=True)
        record.write_text(shown, "utf-8")
    assert shown == record.read_text("utf-8")


@pytest.mark.parametrize(("name", "how", "view"), SHOWN, ids=[f"{name}-{how}" for name, how, _ in SHOWN])
def test_screen_when_drawn_then_the_recorded_one(
    name: str, how: str, view: View, request: pytest.FixtureRequest
) -> None:
    compare(f"{name}.{how}.txt", drawn(name, view), request)


@pytest.mark.parametrize(("name", "how"), TEXTS)
def test_text_when_written_then_the_recorded_one(
    name: str, how: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    output.show(DOCUMENTS[name], how)
    compare(f"{name}.{how}.{'md' if how == 'markdown' else 'txt'}", capsys.readouterr().out, request)


@pytest.mark.parametrize("width", [40, 60, *WIDTHS, WIDE - 1, WIDE])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_screen_when_narrow_or_wide_then_no_line_is_longer(name: str, width: int) -> None:
    for verbose in (False, True):
        shown = drawn(name, View(verbose, width))
        assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("width", [60, *WIDTHS])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_screen_when_lines_are_broken_then_nothing_is_lost(name: str, width: int) -> None:
    """Every name, number and command of the record-like form is in the broken one: none ends in an ellipsis."""
    shown = drawn(name, View(width=width))
    assert "…" not in shown
    letters = "".join(shown.split())
    for word in ("a100cut", "--replacesurge", "nvidia-device-plugin-daemonset") if name == "plan" else ():
        assert word in letters


def test_screens_when_counted_then_all_belong_to_a_case() -> None:
    known = {f"{name}.{how}.txt" for name, how, _ in SHOWN}
    known |= {f"{name}.{how}.{'md' if how == 'markdown' else 'txt'}" for name, how in TEXTS}
    assert {path.name for path in SCREENS.iterdir()} == known


def test_documents_when_read_back_then_json(capsys: pytest.CaptureFixture[str]) -> None:
    for document in DOCUMENTS.values():
        output.show(document, "line")
        (line,) = capsys.readouterr().out.splitlines()
        assert json.loads(line) == document
