"""Marks tell a run that was killed here from one that may live elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.runs import RunLog

if TYPE_CHECKING:
    from pathlib import Path

KEEP_S = 135.0


def test_run_when_it_has_ended_then_it_is_known_to_be_dead(tmp_path: Path) -> None:
    book = RunLog(KEEP_S, tmp_path)
    with book.run() as mark:
        assert mark is not None
        assert not book.is_dead(mark.name)
    assert book.is_dead(mark.name)


def test_run_when_it_ended_badly_then_it_is_known_to_be_dead(tmp_path: Path) -> None:
    book = RunLog(KEEP_S, tmp_path)
    with pytest.raises(KeyError), book.run() as mark:
        raise KeyError
    assert mark is not None
    assert book.is_dead(mark.name)


def test_run_when_the_parent_died_but_the_child_works_then_it_lives(tmp_path: Path) -> None:
    book = RunLog(KEEP_S, tmp_path)
    run = book.run()
    mark = run.__enter__()
    assert mark is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(mark.handle,))
    os.close(mark.handle)  # this process lets go, as a killed one does
    assert not book.is_dead(mark.name)
    child.communicate(b"\n")
    assert book.is_dead(mark.name)
    with pytest.raises(OSError, match="Bad file descriptor"):
        run.__exit__(None, None, None)


@pytest.mark.parametrize("name", ["", "0123456789abcdef", "../0123456789abcdef", "0123456789ABCDEF\n", "/etc/passwd"])
def test_is_dead_when_the_mark_is_of_elsewhere_then_not(tmp_path: Path, name: str) -> None:
    assert not RunLog(KEEP_S, tmp_path).is_dead(name)


def test_run_when_the_directory_cannot_be_written_then_it_goes_on_unmarked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with RunLog(KEEP_S, tmp_path / "file").run() as mark:
        assert mark is None


def test_run_when_old_marks_are_left_then_they_are_swept(tmp_path: Path) -> None:
    (tmp_path / "0123456789abcdef").write_text("")
    os.utime(tmp_path / "0123456789abcdef", (0, 0))
    with RunLog(KEEP_S, tmp_path).run() as mark:
        assert mark is not None
        assert [path.name for path in tmp_path.iterdir()] == [mark.name]


def test_mark_when_made_then_readable_by_us_alone(tmp_path: Path) -> None:
    with RunLog(KEEP_S, tmp_path / "runs").run() as mark:
        assert mark is not None
        assert (tmp_path / "runs").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "runs" / mark.name).stat().st_mode & 0o777 == 0o600
