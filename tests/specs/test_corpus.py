"""What people ran into in public, told as specs: each is refused, warned of or let pass as its marks say.

With --update the marks are written anew; the review reads the difference.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gpukube.cli import app
from tests.specs.corpus import FOLDER, INVALID, VALID, expectations, findings, source_of, without_marks, written

if TYPE_CHECKING:
    from pathlib import Path

ALL = (*VALID, *INVALID)
EIGHTH = ALL[::8]
LEAST = 150
CLOUDS = ("eks", "aks", "gke")


def by_name(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.parametrize("file", ALL, ids=by_name)
def test_spec_when_validated_then_all_that_is_marked_is_said_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(file.parent)
    if request.config.getoption("--update", default=False):
        rewrite(file)
    assert findings(file.name) == expectations(file.read_text("utf-8", "replace"))


def rewrite(file: Path) -> None:
    """Write the marks of what is said of the file without marks."""
    bare = without_marks(file.read_bytes().decode("utf-8", "surrogateescape"))
    file.write_bytes(bare.encode("utf-8", "surrogateescape"))
    file.write_bytes(written(bare, findings(file.name)).encode("utf-8", "surrogateescape"))


def test_specs_when_read_then_each_names_the_thread_it_is_drawn_from() -> None:
    assert [file.name for file in ALL if not source_of(file.read_text("utf-8", "replace"))] == []


def test_valid_specs_when_read_then_hints_are_all_that_is_marked() -> None:
    assert [file.name for file in VALID if severities(file) - {"hint"}] == []


def test_invalid_specs_when_read_then_each_is_marked() -> None:
    assert [file.name for file in INVALID if not severities(file)] == []


def severities(file: Path) -> set[str]:
    return {mark.severity for mark in expectations(file.read_text("utf-8", "replace"))}


def test_corpus_when_counted_then_it_is_large_and_no_cloud_is_left_out() -> None:
    assert len(ALL) >= LEAST
    per_cloud = Counter(file.name.partition("-")[0] for file in ALL)
    assert min(per_cloud[cloud] for cloud in CLOUDS) >= LEAST // 5


@pytest.mark.parametrize("part", [EIGHTH, pytest.param(ALL, marks=pytest.mark.slow)], ids=["eighth", "all"])
@pytest.mark.parametrize(("words", "fatal"), [([], {"error"}), (["--strict"], {"error", "warning"})])
def test_command_when_given_each_file_then_ends_as_the_marks_say(
    words: list[str],
    fatal: set[str],
    part: tuple[Path, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(FOLDER)
    codes = {}
    for file in part:
        code = app.run(["validate", "-f", str(file.relative_to(FOLDER)), *words])
        if code != (4 if severities(file) & fatal else 0):
            codes[by_name(file)] = code
    assert codes == {}
    assert "Traceback" not in capsys.readouterr().err
