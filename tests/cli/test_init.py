"""`gpukube init`: what it writes, refuses and asks, with and without a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.__main__ import main
from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

EKS = ("--provider", "eks", "--account", "111122223333", "--region", "us-east-1", "--name", "train")
AKS = (
    "--provider", "aks", "--subscription", "11111111-2222-3333-4444-555555555555", "--resource-group", "ml",
    "--name", "train",
)  # fmt: skip
GKE = ("--provider", "gke", "--project", "ml-prod", "--location", "us-central1", "--name", "train")


class Keyboard:
    """Standard input that is a terminal; pressing on after the last line is Ctrl-C."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        self._lines = list(lines)

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        if not self._lines:
            raise KeyboardInterrupt
        return f"{self._lines.pop(0)}\n"


class Run:
    """Runs `gpukube init` in this process, in a directory of its own."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = directory / "pools.yaml"
        self._capsys, self._monkeypatch = capsys, monkeypatch
        monkeypatch.chdir(directory)
        monkeypatch.setattr("sys.stdin", io.StringIO())

    def __call__(self, *words: str, sandbox: bool = False) -> tuple[int, str, str]:
        code = main([*(["--sandbox"] if sandbox else []), "init", *words])
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def answer(self, *lines: str) -> None:
        self._monkeypatch.setattr("sys.stdin", Keyboard(lines))
        self._monkeypatch.setattr("sys.stderr.isatty", lambda: True)


@pytest.fixture
def init(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, capsys, monkeypatch)


def validates() -> bool:
    return main(["validate", "-f", "pools.yaml"]) == 0


SETS = {
    "eks": (*EKS, "--gpu", "T4"),
    "aks": (*AKS, "--gpu", "A100-80GB", "--count", "4", "--mig", "1g.10gb", "--replicas", "2"),
    "gke": (*GKE, "--gpu", "L4", "--spot", "--nodes", "0", "--owner", "ml"),
    "all": (*EKS, *AKS, *GKE, "--gpu", "A100-40GB", "--mig", "1g.5gb"),
}


@pytest.mark.parametrize("flags", SETS.values(), ids=SETS)
def test_flags_when_complete_then_file_validates_and_next_steps_are_named(flags: tuple[str, ...], init: Run) -> None:
    assert init(*flags) == (
        0,
        "",
        "wrote pools.yaml; next:\n  gpukube validate -f pools.yaml\n  gpukube pool plan -f pools.yaml\n",
    )
    assert validates()


SANDBOXED: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "cloud and GPU": ("--provider", "gke", "--gpu", "L4", "--spot"),
    "shares": ("--replicas", "4", "--owner", "me"),
}


@pytest.mark.parametrize("flags", SANDBOXED.values(), ids=SANDBOXED)
def test_sandbox_when_meant_then_nothing_is_asked_and_the_file_validates(flags: tuple[str, ...], init: Run) -> None:
    assert init(*flags, sandbox=True) == (
        0,
        "",
        "wrote pools.yaml; next:\n  gpukube validate -f pools.yaml\n  gpukube --sandbox pool plan -f pools.yaml\n",
    )
    assert validates()


def test_sandbox_when_nothing_is_given_then_every_cloud_has_the_same_cut_gpus(init: Run) -> None:
    init(sandbox=True)
    spec = yaml.safe_load(init.file.read_text("utf-8"))
    assert {cluster["provider"] for cluster in spec["clusters"].values()} == {"eks", "aks", "gke"}
    (pool,) = spec["pools"]
    assert pool["clusters"] == list(spec["clusters"])
    assert (pool["gpu"], pool["sharing"]["mig"]["profile"]) == ({"model": "A100-40GB", "count": 8}, "1g.5gb")


def test_dash_when_given_then_the_spec_alone_is_on_stdout(init: Run) -> None:
    code, out, err = init(*EKS, "--gpu", "T4", "--out", "-")
    assert (code, err, init.file.exists()) == (0, "", False)
    init.file.write_text(out, "utf-8")
    assert validates()


def test_file_when_it_is_there_then_is_kept_unless_forced(init: Run) -> None:
    init.file.write_text("mine", "utf-8")
    code, _, err = init(*EKS, "--gpu", "T4")
    assert (code, init.file.read_text("utf-8")) == (4, "mine")
    assert err.startswith("--out: error[file-exists]: pools.yaml already exists\n    fix: add --force")
    assert init(*EKS, "--gpu", "T4", "--force")[0] == 0
    assert validates()
    assert [path.name for path in init.file.parent.iterdir()] == ["pools.yaml"]


MISSING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "all": ((), ("--provider, --name, --gpu are missing", "gke: --project --location")),
    "of clouds": (
        ("--provider", "eks", "--provider", "aks", "--name", "x"),
        ("--account, --region, --subscription, --resource-group, --gpu are missing",),
    ),
    "one": (GKE, ("--gpu is missing, and there is no terminal to prompt on", "fix: add --gpu ...")),
}


@pytest.mark.parametrize(("flags", "said"), MISSING.values(), ids=MISSING)
def test_flags_when_some_are_missing_without_a_terminal_then_one_error_names_all(
    flags: tuple[str, ...], said: tuple[str, ...], init: Run
) -> None:
    code, out, err = init(*flags)
    assert (code, out, err.count("error[init-missing]"), init.file.exists()) == (4, "", 1, False)
    assert all(words in err for words in said)


WRONG = {
    "another cloud's": (
        (*EKS, "--gpu", "T4", "--project", "p"),
        "--project: error[init-flag]: --project is not for eks",
    ),
    "account": ((*EKS, "--gpu", "T4", "--account", "1"), "--account: error["),
    "GPU": ((*AKS, "--gpu", "H9"), "--gpu: error["),
    "cloud": (("--provider", "gcp", "--name", "x", "--gpu", "T4"), "--provider: error["),
    "variable": ((*GKE, "--project", "${P}", "--gpu", "T4"), "--project: error["),
    "directory": ((*EKS, "--gpu", "T4", "--out", "no/p.yaml"), "error[system]: no such file or directory: no"),
}


@pytest.mark.parametrize(("flags", "said"), WRONG.values(), ids=WRONG)
def test_flag_when_wrong_then_told_at_the_flag_and_nothing_written(
    flags: tuple[str, ...], said: str, init: Run
) -> None:
    code, _, err = init(*flags)
    assert (code in (1, 4), said in err, list(init.file.parent.iterdir())) == (True, True, []), err


def test_questions_when_answered_then_file_validates(init: Run) -> None:
    init.answer("eks, gke", "111122223333", "us-east-1", "train", "ml-prod", "us-central1", "", "",
                "A100-40GB", "", "2", "mig", "2g.10gb", "yes")  # fmt: skip
    code, _, err = init()
    assert code == 0, err
    assert "GPU model [T4-16GB]: " in err
    assert "Sharing (none, mig, time-slicing) [none]: " in err
    text = init.file.read_text("utf-8")
    assert "profile: 2g.10gb" in text
    assert "type: spot" in text
    assert text.count("name: train\n") == 3, "both clusters, and the owner"
    assert validates()


def test_answer_when_wrong_then_asked_again_with_the_loader_s_own_words(init: Run) -> None:
    init.answer(" ", "gcp", "eks", "1", "111122223333", "us-east-1", "train", "", "H9", "T4", "three", "3", "4",
                "1", "some", "time-slicing", "1", "4", "maybe", "no")  # fmt: skip
    code, _, err = init()
    assert code == 0, err
    err = " ".join(err.split())  # a terminal breaks messages at words
    assert 'is "gcp"; it can be eks, aks or gke' in err
    assert 'is "1"; expected twelve digits' in err
    assert '"H9" is not a GPU model in the catalog' in err
    assert "has no instance type with 3 x T4-16GB" in err
    assert "the minimum is 2" in err
    assert err.count("is not a valid answer") == 3
    assert "replicas: 4" in init.file.read_text("utf-8")
    assert validates()


QUESTIONS = ("Cloud", "eks account", "name of the cluster", "Owner", "GPU model", "GPUs per node", "Nodes", "Sharing",
             "Spot machines")  # fmt: skip


def test_questions_when_flags_answer_some_then_only_the_others_are_asked(init: Run) -> None:
    init.answer("T4", "")
    code, _, err = init(*EKS, "--owner", "ml", "--nodes", "2", "--count", "1", "--replicas", "2")
    assert code == 0, err
    assert [question for question in QUESTIONS if question in err] == ["GPU model", "Spot machines"]


def test_machine_when_it_comes_in_one_number_then_that_is_not_asked(init: Run) -> None:
    init.answer("A100-40GB", "", "", "")
    code, _, err = init(*EKS, "--owner", "ml")
    assert code == 0, err
    assert "GPUs per node" not in err
    assert "count: 8" in init.file.read_text("utf-8")


def test_flag_when_it_is_about_another_cloud_than_the_one_answered_then_is_refused(init: Run) -> None:
    init.answer("gke")
    code, _, err = init("--account", "111122223333")
    assert (code, "--account: error[init-flag]: --account is not for gke" in err) == (4, True)


def test_end_of_input_when_at_a_question_then_is_an_interruption(init: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    init.answer()
    monkeypatch.setattr("sys.stdin.readline", lambda: "")
    assert init()[0] == 130
    assert list(init.file.parent.iterdir()) == []


def test_wrong_flag_when_there_is_a_terminal_then_nothing_is_asked(init: Run) -> None:
    init.answer()
    code, _, err = init("--provider", "eks", "--account", "1")
    assert (code, err.startswith("--account: error[")) == (4, True)


@pytest.mark.parametrize("after", [0, 1, 4, 8])
def test_ctrl_c_when_pressed_at_a_question_then_nothing_is_left(after: int, init: Run) -> None:
    init.answer(*("eks", "111122223333", "us-east-1", "train", "", "T4", "1", "1")[:after])
    code, out, err = init()
    assert (code, out) == (130, "")
    assert err.endswith("gpukube: interrupted\n")
    assert list(init.file.parent.iterdir()) == []


def test_terminal_when_80_columns_wide_then_asks_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    with Terminal(None, "init", "--out", file, "--provider", "eks") as terminal:
        for question, answer in (("eks account", "111122223333\n"), ("eks region", "us-east-1\n"), ("name of", "t\n")):
            terminal.expect(question)
            terminal.type(answer)
        terminal.expect("Owner of the pools [t]: ")
        terminal.type("\n")
        terminal.expect("GPU model [T4-16GB]: ")
        assert max(map(len, terminal.text.splitlines())) <= 80
        terminal.wait_for_reading()
        terminal.type("\x03")
        assert terminal.end() == 130
    assert not file.exists()


def test_help_when_shown_then_fits_and_names_what_is_asked(init: Run) -> None:
    code, out, _ = init("--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for flag in ("--provider", "--name", "--resource-group", "--mig", "--replicas", "--spot", "--out", "--force"):
        assert f"  {flag} " in out
