"""What a tag must be before it is released, and the workflow that does it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import table
from gpukube import __version__
from tools.release import PLACES, bump, main, notes

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
CHANGES = """# Changes

## Unreleased

- next

## 0.2.0 - 2026-12-01

### Added

- a thing

## 0.1.0 - 2026-11-01

- first

## 0.0.1

- undated
"""


def test_notes_when_the_tag_is_the_version_then_its_part_of_the_changes() -> None:
    assert notes("v0.2.0", "0.2.0", CHANGES) == "### Added\n\n- a thing"
    assert notes("v0.1.0", "0.1.0", CHANGES) == "- first"


@pytest.mark.parametrize(
    ("tag", "version", "said"),
    [
        ("v0.3.0", "0.2.0", 'the tag is v0.3.0 and gpukube/__init__.py has __version__ = "0.2.0"'),
        ("v0.3.0", "0.3.0", 'no text under a heading "## 0.3.0 - YYYY-MM-DD"'),
        ("v0.0.1", "0.0.1", 'no text under a heading "## 0.0.1 - YYYY-MM-DD"'),
        ("release-1", "0.2.0", "is no version"),
        ("v0.2.0; rm", "0.2.0", "is no version"),
        ("0.2.0", "0.2.0", "is no version"),
    ],
)
def test_notes_when_the_tag_must_not_be_released_then_refused(tag: str, version: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        notes(tag, version, CHANGES)


def test_tool_when_the_tag_is_another_version_then_says_so_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("v99.0.0") == 1
    assert f'__version__ = "{__version__}"' in capsys.readouterr().err


def test_workflow_when_read_then_actions_are_pinned_and_only_what_needs_it_may_write() -> None:
    flow = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    assert flow["permissions"] == {}
    steps = [step for job in flow["jobs"].values() for step in job["steps"]]
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    writing = {
        name: {key for key, value in job["permissions"].items() if value == "write"}
        for name, job in flow["jobs"].items()
    }
    assert writing == {
        "build": set(),
        "everything": set(),
        "speed": set(),
        "publish": {"id-token", "attestations", "artifact-metadata"},
        "announce": {"contents"},
    }


def test_workflow_when_it_runs_everything_then_no_test_is_left_out_and_publishing_waits() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    *named, rest = jobs["everything"]["strategy"]["matrix"]["tests"]
    in_tests = [name for name in named if name.startswith("tests/")]
    assert rest.split() == ["tests", *(f"--ignore={name}" for name in in_tests)]
    assert [name for name in named if name not in in_tests] == ["sandbox/sandbox_tests"]
    assert all((ROOT / name).is_dir() for name in named)
    assert " --full " in jobs["everything"]["steps"][-1]["run"]
    assert "everything" in jobs["publish"]["needs"]


def test_compare_when_a_figure_is_worse_by_more_than_a_tenth_then_it_alone_counts(tmp_path: Path) -> None:
    before = {table.YARDSTICK: "0.100 s", "a ratio": "1.00 x", "seconds": "2.00 s", "az": "no az", "gone": "1 MB"}
    before |= {"none": "0.00 s", "short": "0.02 s"}
    table.save(before, str(tmp_path / "table.json"))
    slower_machine = {table.YARDSTICK: "0.200 s", "seconds": "4.30 s"}
    small = {"a ratio": "1.05 x", "az": "1.00 x", "new": "9 s", "short": "0.09 s"}
    figures = [before, small, {"a ratio": "1.11 x"}, slower_machine, {"none": "0.50 s"}]
    found = [table.compare({**before, **changed}, str(tmp_path / "table.json")) for changed in figures]
    assert found == [0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "command",
    [
        ("zizmor", "--offline", "--no-progress", "--quiet"),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
    ],
    ids=lambda command: command[0],
)
def test_workflow_when_checked_by_the_tools_for_it_then_nothing_is_found(command: tuple[str, ...]) -> None:
    program = shutil.which(command[0]) or shutil.which(command[0], path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip(f"pip install {command[0]}")
    done = subprocess.run(
        [program, *command[1:], str(WORKFLOW)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_bump_when_run_then_each_place_has_the_version(tmp_path: Path) -> None:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    bump("7.8.9", tmp_path)
    assert all("7.8.9" in (tmp_path / name).read_text("utf-8") for name in PLACES)
    assert all(__version__ not in (tmp_path / name).read_text("utf-8") for name in PLACES if name[-3:] == ".py")
    with pytest.raises(ValueError, match="no version"):
        bump("7.8", tmp_path)


def test_tool_when_told_to_bump_to_no_version_then_says_so_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("--bump", "7.8") == 1
    assert capsys.readouterr().err == 'release: "7.8" is no version: write 1.2.3, or 1.2.3rc1 for a candidate\n'
