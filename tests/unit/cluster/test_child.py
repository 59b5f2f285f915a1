"""Children with a deadline."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.child import DeadlinePassed, Stop, run_child

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


ENDLESS = python("import time; time.sleep(60)")


def test_run_when_it_ends_then_code_and_both_outputs() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('oh', file=sys.stderr); sys.exit(3)"
    ended = run_child(python(code), stdin="abc", environ={}, deadline_s=20)
    assert (ended.code, ended.out.strip(), ended.err.strip()) == (3, "ABC", "oh")


def test_run_when_it_has_an_environment_then_only_that() -> None:
    code = "import os; print('PATH' in os.environ, os.environ['A'])"
    assert run_child(python(code), stdin="", environ={"A": "b"}, deadline_s=20).out.split() == ["False", "b"]


def test_run_when_the_output_is_no_text_then_read_all_the_same() -> None:
    code = "import os; os.write(1, bytes([0xff, 0x41]))"
    assert run_child(python(code), stdin="", environ={}, deadline_s=20).out.endswith("A")


def test_run_when_the_deadline_passes_then_the_whole_group_is_ended(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    grandchild = f"import time; time.sleep(1.5); open({str(mark)!r}, 'w')"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}]); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        run_child(python(code), stdin="", environ={}, deadline_s=0.5)
    assert time.monotonic() - started < 10
    time.sleep(max(0.0, 2.2 - (time.monotonic() - started)))
    assert not mark.exists()


def test_run_when_it_does_not_listen_to_sigterm_then_killed() -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        run_child(python(code), stdin="", environ={}, deadline_s=0.5)
    assert time.monotonic() - started < 15


def test_run_when_the_program_is_missing_then_oserror() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        run_child(["/no-such-program"], stdin="", environ={}, deadline_s=5)


def test_run_when_asked_to_stop_then_ended_after_the_grace() -> None:
    started = time.monotonic()
    with pytest.raises(DeadlinePassed):
        run_child(ENDLESS, stdin="", environ={}, deadline_s=50, stop=Stop(lambda: True, 0.2))
    assert time.monotonic() - started < 10


def test_run_when_asked_to_stop_and_it_ends_in_time_then_its_answer() -> None:
    code = "import sys, time; said = sys.stdin.read(); time.sleep(0.5); print(said)"
    ended = run_child(python(code), stdin="x" * 200_000, environ={}, deadline_s=50, stop=Stop(lambda: True, 20))
    assert (ended.code, len(ended.out.strip())) == (0, 200_000)


def test_run_when_nobody_asks_to_stop_then_the_deadline_counts() -> None:
    with pytest.raises(DeadlinePassed):
        run_child(ENDLESS, stdin="", environ={}, deadline_s=0.5, stop=Stop(lambda: False, 0))
