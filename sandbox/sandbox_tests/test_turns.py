"""Which part of the tests is run: every case comes, wrong marks are refused, reruns count, a record spares a part."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from sandbox_tests import full_run, repository
from sandbox_tests.plugin import SWEEPS
from sandbox_tests.turns import COUNT, MOST, THIN, is_chosen, parts_of, turn_of_tree

HASHES = [Random(24 + number).getrandbits(160) % COUNT for number in range(100)]  # noqa: S311 - no secret
"""The turns of a hundred trees."""
PROJECT = {
    "pyproject.toml": """
        [tool.pytest.ini_options]
        addopts = ["--import-mode=importlib", "--strict-markers", "-m", "not slow"]
        markers = ["turns(count): x", "clients: x", "kube: x", "slow: x"]
        testpaths = ["tests", "sandbox/sandbox_tests"]
    """,
    "conftest.py": 'pytest_plugins = ["sandbox_tests.plugin"]',
    "constraints.txt": "pytest==9\n",
    ".gitignore": "__pycache__\n.pytest_cache\n.hypothesis\n",
    "sandbox/sandbox_tests/test_own.py": """
        import pytest
        @pytest.mark.parametrize("case", range(30))
        def test_own(case): assert True
    """,
    "tests/test_sweep.py": """
        import pytest
        @pytest.mark.turns(3)
        @pytest.mark.parametrize("case", range(9))
        def test_sweep(case): assert True
    """,
}
FLAKY = """
    import pathlib, pytest
    @pytest.mark.clients()
    def test_flaky(tmp_path_factory):
        been = pathlib.Path("been")
        if not been.exists():
            been.touch()
            raise AssertionError
"""
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTEST_"))}


def test_case_when_a_hundred_trees_were_run_then_each_has_had_its_turn(request: pytest.FixtureRequest) -> None:
    made = {(f"test_{cases}", parts): cases for cases in (1, 2, 5, 9, 200) for parts in range(2, MOST + 1)}
    collected = request.config.stash[SWEEPS]
    tests = {**made, **collected}
    chosen = {
        test: [{case for case in range(cases) if is_chosen(test[0], case, cases, test[1], turn)} for turn in HASHES]
        for test, cases in tests.items()
    }
    assert {test for test, cases in tests.items() if set.union(*chosen[test]) != set(range(cases))} == set()
    assert {test for test, runs in chosen.items() if not all(runs)} == set(), "each test has a case in each run"


def test_turns_when_counted_from_zero_then_the_first_nine_have_every_case() -> None:
    for parts in range(2, MOST + 1):
        for cases in (1, parts - 1, parts, parts + 1, 50):
            had = {case for turn in range(MOST) for case in range(cases) if is_chosen("t", case, cases, parts, turn)}
            assert had == set(range(cases))


def test_thirds_when_turns_go_round_then_independent_of_the_cases_that_have_their_turn() -> None:
    both = {(turn % MOST, turn // (COUNT // THIN) % THIN) for turn in range(COUNT)}
    assert len(both) == MOST * THIN


@pytest.mark.parametrize(
    ("mark", "given"),
    [
        (pytest.mark.turns(27), "27"),
        (pytest.mark.turns(1), "1"),
        (pytest.mark.turns(3.0), "3.0"),
        (pytest.mark.turns(), ""),
        (pytest.mark.turns(2, 3), "2, 3"),
        (pytest.mark.turns(count=3), "count=3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mark_when_it_is_no_number_of_turns_then_refused(mark: pytest.MarkDecorator, given: str) -> None:
    with pytest.raises(ValueError, match=rf"turns\({given}\): expected one whole number from 2 to 9"):
        parts_of(mark.mark)


def git(root: Path, *words: str) -> str:
    """Run git in a scratch repository."""
    person = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    command = ["git", *person, *words]
    return subprocess.run(command, cwd=root, env=CLEAN, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project with tests, committed."""
    root = tmp_path / "project"
    for name, text in PROJECT.items():
        write(root / name, text)
    git(root, "init", "-q")
    commit(root)
    return root


def write(path: Path, text: str) -> None:
    """Write a file, without the indentation of its text here."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    path.write_text("\n".join(line[margin:] for line in lines) + "\n")


def commit(root: Path) -> None:
    """Commit all there is."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


def run(root: Path, *words: str) -> tuple[int, str]:
    """Run the tests of a scratch project with the plugin; give the exit code and the output."""
    command = [sys.executable, "-m", "pytest", "-q", *words]
    environ = {**CLEAN, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr


def test_turn_when_the_tree_changes_then_it_follows_and_not_the_day_nor_the_message(project: Path) -> None:
    tree = git(project, "rev-parse", "HEAD^{tree}")
    first = turn_of_tree(project)
    git(project, "commit", "-q", "--amend", "--date=2001-01-01T00:00:00", "-m", "other")
    assert turn_of_tree(project) == first == (int(tree, 16) % COUNT, "from the hash of the committed tree")
    write(project / "constraints.txt", "pytest==8")
    assert turn_of_tree(project) == first
    commit(project)
    assert turn_of_tree(project) != first


def test_turn_when_the_project_is_unpacked_in_another_repository_then_zero(project: Path) -> None:
    git(project.parent, "init", "-q")
    (project / ".git").rename(project.parent / "elsewhere")
    commit(project.parent)
    assert turn_of_tree(project) == (0, "this directory is not the top of a git repository")
    assert full_run.missing(project) == "this directory is not the top of a git repository"


def test_turn_when_there_is_no_git_then_zero(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert turn_of_tree(project)[0] == 0


def test_tree_when_a_hook_of_another_repository_runs_the_tests_then_this_ones(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(project.parent / "other.git"))
    assert repository.tree(project) is not None


def test_record_when_the_sandbox_or_the_constraints_differ_then_it_does_not_hold(project: Path) -> None:
    assert full_run.missing(project) == "there is no tests/sandbox-full-run"
    passed = full_run.state(project)
    assert passed is not None
    constraints = hashlib.sha256((project / "constraints.txt").read_bytes()).hexdigest()
    assert passed == f"sandbox {git(project, 'rev-parse', 'HEAD:sandbox')}\nconstraints.txt {constraints}\n"
    full_run.record(project, passed)
    assert full_run.missing(project) == ""
    commit(project)
    assert full_run.missing(project) == "", "the record is no part of what it records"
    write(project / "constraints.txt", "pytest==8")
    assert full_run.missing(project) == "constraints.txt has changed since tests/sandbox-full-run"
    git(project, "checkout", "-q", ".")
    write(project / "sandbox" / "new.py", "pass")
    assert full_run.missing(project) == "changes under sandbox/ are not committed"
    assert full_run.state(project) is None
    commit(project)
    assert full_run.missing(project) == "sandbox/ has changed since tests/sandbox-full-run"


def test_full_when_it_passed_then_recorded_and_the_next_run_has_a_third_of_the_sandboxs_tests(project: Path) -> None:
    code, output = run(project)
    assert (code, "33 passed, 6 deselected" in output) == (0, True), output
    assert "turn: " in output
    assert "sandbox's own tests: the whole turn (there is no tests/sandbox-full-run)" in output
    assert "reruns: 0" in output

    code, output = run(project, "--full", "tests")
    assert (code, "9 passed" in output, full_run.missing(project)) == (0, True, "there is no tests/sandbox-full-run")

    code, output = run(project, "--full")
    assert (code, "39 passed" in output, full_run.missing(project)) == (0, True, ""), output

    code, output = run(project)
    assert "sandbox's own tests: a third of the turn (tests/sandbox-full-run holds)" in output
    assert int(output.rpartition(" passed")[0].split()[-1]) < 33


def test_full_when_a_test_passes_only_when_repeated_then_it_fails_and_nothing_is_recorded(project: Path) -> None:
    write(project / "tests" / "test_flaky.py", FLAKY)
    code, output = run(project, "-n", "2", "--full")
    assert (code, "40 passed" in output) == (7, True), output
    assert "reruns: 1\n  tests/test_flaky.py::test_flaky" in output
    assert full_run.missing(project) == "there is no tests/sandbox-full-run"


def test_mark_when_it_is_too_high_then_nothing_is_run(project: Path) -> None:
    write(project / "tests" / "test_sweep.py", PROJECT["tests/test_sweep.py"].replace("turns(3)", "turns(10)"))
    code, output = run(project)
    assert (code, "turns(10): expected one whole number from 2 to 9" in output) == (4, True), output
