"""Temporary directories go with their run; what a killed run left, the next one removes, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.process.scratch import Scratch, remove_all, sweep

if TYPE_CHECKING:
    from pathlib import Path

KILLED = """
import os, signal
from gpukube.cluster.process.scratch import Scratch
path = Scratch("kube").path
(path / "config").write_text("token")
print(path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def left_by_a_killed_run() -> str:
    ended = subprocess.run([sys.executable, "-c", KILLED], check=False, capture_output=True, text=True)
    assert ended.stdout, ended.stderr
    return ended.stdout.strip()


def test_scratch_when_its_block_ends_then_gone_with_what_is_in_it(temporary: Path) -> None:
    with Scratch("kube") as path:
        (path / "config").write_text("token")
        assert path.stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_scratch_when_the_process_removes_all_then_none_is_left_and_removing_again_does_no_harm(
    temporary: Path,
) -> None:
    made = [Scratch("helm"), Scratch("chart")]
    remove_all()
    assert list(temporary.iterdir()) == []
    for scratch in made:
        scratch.remove()


def test_sweep_when_a_run_was_killed_then_its_directory_goes(temporary: Path) -> None:
    left = left_by_a_killed_run()
    assert [str(path) for path in temporary.iterdir()] == [left]
    sweep()
    assert list(temporary.iterdir()) == []


def test_sweep_when_a_run_lives_or_the_directory_is_not_such_a_one_then_it_stays(temporary: Path) -> None:
    left = left_by_a_killed_run()
    (temporary / "gpukube-kube-linked").symlink_to(left)  # whoever may write here could point elsewhere
    (temporary / "gpukube-kube-other").mkdir()  # no lock of ours: the sandbox keeps control planes under such a name
    (temporary / "gpukube-notes").mkdir()
    with Scratch("kube") as path:
        sweep()
        assert {one.name for one in temporary.iterdir()} == {
            path.name,
            "gpukube-kube-linked",
            "gpukube-kube-other",
            "gpukube-notes",
        }


def test_scratch_when_another_thread_removes_it_then_removing_ends_once_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = Scratch("helm")
    begun, may_go, really = threading.Event(), threading.Event(), shutil.rmtree

    def slowly(path: Path, *, ignore_errors: bool) -> None:
        begun.set()
        may_go.wait()
        really(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    first = threading.Thread(target=remove_all)
    first.start()
    begun.wait()
    seen: list[bool] = []

    def second() -> None:
        scratch.remove()
        seen.append(scratch.path.exists())

    other = threading.Thread(target=second)
    other.start()
    assert seen == []
    may_go.set()
    first.join()
    other.join()
    assert seen == [False]
