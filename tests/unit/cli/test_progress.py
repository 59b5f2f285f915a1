"""Progress lines and rows, drawn on a console without a terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from gpukube.cli.live_rows import LiveRows
from gpukube.cli.progress import PlainLines, progress_on
from gpukube.engine.run.events import Event


def event(message: str, *, phase: str = "create", pool: str = "a100mig", at: float = 0.0) -> Event:
    return Event(at, "train-aks", pool, phase, message)  # type: ignore[arg-type]  # a table's word


def written(*events: Event) -> list[str]:
    stream = io.StringIO()
    with PlainLines(stream) as lines:
        for one in events:
            lines(one)
    return stream.getvalue().splitlines()


def test_lines_when_something_happens_then_time_subject_phase_and_message() -> None:
    (line,) = written(event("requesting Standard_ND96asr_v4"))
    assert re.fullmatch(r"\d\d:\d\d:\d\d train-aks/a100mig create: requesting Standard_ND96asr_v4", line)


def test_lines_when_the_subject_says_the_same_again_then_once() -> None:
    said = written(event("busy"), event("busy", pool="other"), event("busy"), event("ready"), event("busy"))
    assert [line[9:] for line in said] == [
        "train-aks/a100mig create: busy",
        "train-aks/other create: busy",
        "train-aks/a100mig create: ready",
        "train-aks/a100mig create: busy",
    ]


def test_lines_when_a_message_looks_like_markup_then_it_is_kept() -> None:
    (line,) = written(event("error[capacity]: [red]none[/red]"))
    assert line.endswith("error[capacity]: [red]none[/red]")


def screen(rows: LiveRows, width: int = 80) -> list[str]:
    drawing = Console(file=io.StringIO(), width=width)
    with drawing.capture() as captured:
        drawing.print(rows._draw())
    return captured.get().splitlines()


def rows_of(*events: Event, width: int = 80) -> LiveRows:
    rows = LiveRows(Console(file=io.StringIO(), width=width, height=25))
    for one in events:
        rows(one)
    return rows


def test_rows_when_ended_then_the_time_it_took_stands_still() -> None:
    rows = rows_of(event("asks", at=1000.0), event("created", phase="done", at=1125.0))
    assert screen(rows) == ["train-aks/a100mig  done      2:05  created"]


def test_rows_when_there_are_several_then_aligned_and_the_latest_word_of_each() -> None:
    ended = [event("made", phase="done", pool=pool, at=5.0) for pool in ("a", "longer")]
    rows = rows_of(event("asks", pool="a", at=0.0), *ended, event("release: 1", phase="done", pool="", at=9.0))
    assert screen(rows) == [
        "train-aks/a       done      0:05  made",
        "train-aks/longer  done      0:00  made",
        "train-aks         done      0:00  release: 1",
    ]


WAIT = "node aks-t4-001: 1 pod left; waiting for budget ml/web: minAvailable 2 needs 2 of its 2 pods (since 5 min)"


def test_rows_when_a_message_is_long_then_shown_whole_as_long_as_there_is_room() -> None:
    shown = screen(rows_of(event(WAIT, phase="wait"), event("asks", pool="other")))
    assert WAIT in " ".join(" ".join(shown).split())
    assert max(map(len, shown)) <= 80
    assert shown[1].startswith("    ")
    assert shown[-1].startswith("train-aks/other")


def test_rows_when_there_is_no_room_then_long_ones_are_cut_to_the_width() -> None:
    rows = rows_of(*(event("x" * 200, phase="failed", pool=f"p{number}") for number in range(24)), width=60)
    shown = screen(rows, width=60)
    assert (len(shown), max(map(len, shown))) == (24, 60)
    assert shown[-1].endswith("…")


class Terminal(io.StringIO):
    """Where rows could be drawn."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "form"),
    [
        (io.StringIO(), {}, PlainLines),
        (io.StringIO(), {"FORCE_COLOR": "1"}, PlainLines),
        (Terminal(), {"CI": "true"}, PlainLines),
        (Terminal(), {"TERM": "dumb"}, PlainLines),
        (Terminal(), {}, LiveRows),
    ],
    ids=["pipe", "coloured pipe", "CI", "dumb terminal", "terminal"],
)
def test_form_when_chosen_then_rows_only_where_they_can_be_redrawn(
    stream: io.StringIO, environ: dict[str, str], form: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"CI": "", "FORCE_COLOR": "", "TERM": "xterm", **environ}.items():
        monkeypatch.setenv(name, value)
    if not environ.get("FORCE_COLOR"):
        monkeypatch.delenv("FORCE_COLOR")
    assert isinstance(progress_on(stream), form)


def tall(rows: int, *events: Event, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=rows)
    drawn = LiveRows(console)
    for one in events:
        drawn(one)
    return screen(drawn, width)


def test_rows_when_more_than_the_screen_has_then_what_runs_is_shown_and_the_rest_counted() -> None:
    ended = [event("made", phase="done", pool=f"done{n}", at=5.0) for n in range(30)]
    failed = [event("no room", phase="failed", pool="bad", at=5.0)]
    running = [event("waits", pool=f"run{n}") for n in range(3)]
    rows = tall(8, *ended, *failed, *running)
    assert len(rows) == 7
    assert [row.split()[0] for row in rows[-5:-1]] == [f"train-aks/{name}" for name in ("bad", "run0", "run1", "run2")]
    assert rows[-1] == "and 28 done"


def test_rows_when_even_what_runs_is_too_much_then_counted_too() -> None:
    rows = tall(4, *(event("waits", pool=f"run{n}") for n in range(10)), event("x", phase="failed", pool="bad"))
    assert (len(rows), rows[-1]) == (3, "and 1 failed, 8 in progress")


def test_rows_when_names_are_longer_than_half_the_screen_then_cut_in_the_middle() -> None:
    (row,) = tall(24, event("made", phase="done", pool="a" * 60), width=60)
    assert (len(row) <= 60, "…" in row, "made" in row) == (True, True, True)
    assert row.startswith("train-aks/")


def test_rows_when_hours_pass_then_hours() -> None:
    rows = rows_of(event("asks", at=0.0), event("created", phase="done", at=3725.0))
    assert "1:02:05" in screen(rows)[0]


def test_rows_and_lines_when_a_cloud_answers_in_lines_or_codes_then_one_clean_row() -> None:
    hostile = event("two\nlines \x1b[2J", phase="done")
    for rows in (screen(rows_of(hostile)), written(hostile)):
        assert len(rows) == 1
        assert "\x1b" not in rows[0]


def test_lines_when_longer_than_the_console_then_still_one_record() -> None:
    assert len(written(event("x" * 500))) == 1
