"""Progress lines and rows, drawn on a console without a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from gpukube.cli.progress import LiveRows, PlainLines, progress_on
from gpukube.engine.events import Event


def event(message: str, *, phase: str = "create", pool: str = "a100mig", at: float = 0.0) -> Event:
    return Event(at, "train-aks", pool, phase, message)  # type: ignore[arg-type]  # a table's word


def written(*events: Event) -> list[str]:
    stream = io.StringIO()
    with PlainLines(Console(file=stream, width=200)) as lines:
        for one in events:
            lines(one)
    return stream.getvalue().splitlines()


def test_lines_when_something_happens_then_time_subject_phase_and_message() -> None:
    (line,) = written(event("asks for Standard_ND96asr_v4"))
    assert re.fullmatch(r"\d\d:\d\d:\d\d train-aks/a100mig create: asks for Standard_ND96asr_v4", line)


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
    rows = LiveRows(Console(file=io.StringIO(), width=width))
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


def test_rows_when_a_message_is_long_then_cut_to_the_width() -> None:
    (row,) = screen(rows_of(event("x" * 200, phase="failed"), width=60), width=60)
    assert len(row) == 60
    assert row.endswith("…")


def test_form_when_chosen_then_rows_only_where_they_can_be_redrawn() -> None:
    assert isinstance(progress_on(Console(file=io.StringIO())), PlainLines)
    assert isinstance(
        progress_on(Console(file=io.StringIO(), force_terminal=True, force_interactive=False)), PlainLines
    )
    assert isinstance(progress_on(Console(file=io.StringIO(), force_terminal=True, force_interactive=True)), LiveRows)
