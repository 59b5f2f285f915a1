"""The screen of --watch: what does not fit is counted at the bottom."""

from __future__ import annotations

import io

import pytest

from gpukube.cli.rendering.text import Hung, Text
from gpukube.cli.watching import Screen


class Window(io.StringIO):
    """A terminal of 40 columns and 6 rows."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "40"), ("LINES", "6"), ("TERM", "xterm"), ("CI", "")):
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [(3, "row 2", "row 2"), (6, "row 5", "row 5"), (9, "row 4", "and 4 more rows: enlarge the window or c")],
)
def test_screen_when_the_picture_is_higher_than_the_window_then_the_rest_is_counted(
    count: int, first: str, last: str
) -> None:
    with Screen(window := Window()) as screen:
        screen.draw(Text(f"row {number}") for number in range(count))
        shown = window.getvalue()
    assert first in shown
    assert last in shown
    assert f"row {count}" not in shown
    assert ("more rows" in shown) == (count > 6)


def test_screen_when_a_line_wraps_then_its_rows_count() -> None:
    with Screen(window := Window()) as screen:
        screen.draw([Hung(Text("node "), Text("pod " * 60))])
        assert "and 2 more rows" in window.getvalue()
