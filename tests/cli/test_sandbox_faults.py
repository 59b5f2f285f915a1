"""Faults by the command line, and the exercises of docs/sandbox.md as they are written there."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from gpukube.cli.sandbox import _complete_kind, _complete_service
from gpukube_sandbox import daemon
from gpukube_sandbox.faults import KINDS, SERVICES
from tests.cli.harness import EXAMPLES, ROOT

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube

SINGLE = EXAMPLES / "aks-mig-single.yaml"
PAGE = (ROOT / "docs" / "sandbox.md").read_text()
EXERCISES = dict(re.findall(r"\*\*([^*\n]+)\.\*\*[^`]*?```console\n(.*?)```", PAGE, re.DOTALL))


def test_page_when_it_lists_kinds_then_all_of_them() -> None:
    table = PAGE.partition("## Faults")[2].partition("\n\n`--service`")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(KINDS)
    assert list(EXERCISES) == ["A stock-out", "Throttling", "A lost answer", "A missing permission"]


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", EXERCISES)
def test_exercise_when_done_as_written_then_prints_what_is_shown(
    name: str, gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    daemon.configure(gpukube.info, speed=20_000)
    for step in EXERCISES[name].removeprefix("$ ").split("\n$ "):
        line, *shown = step.strip().splitlines()
        if line == "echo $?":
            assert [str(gpukube.log[-1].code)] == shown
            continue
        done = gpukube(*shlex.split(line)[1:], sandbox=False)
        for text in shown:
            assert text in done.out + done.err


def test_deny_when_no_call_needs_the_permission_then_refused_with_the_nearest(gpukube: Gpukube) -> None:
    result = gpukube("sandbox", "deny", "eks:CreateNodegrup", sandbox=False)

    assert result.code == 4
    assert (
        "error[sandbox-permission]: no call in the sandbox needs a permission 'eks:CreateNodegrup'; did you mean"
        in result.err
    )


def test_faults_when_added_listed_and_cleared_then_shown(gpukube: Gpukube) -> None:
    assert gpukube("sandbox", "fault", "list", sandbox=False).out == "no faults\n"
    line = ("status", "--service", "arm", "--method", "get", "--path", "agentPools", "--times", "0", "--status", "503")
    assert gpukube("sandbox", "fault", "add", *line, sandbox=False).code == 0
    assert gpukube("sandbox", "fault", "add", "stock-out", "--pool", "t4", sandbox=False).out.startswith(
        "added fault 1"
    )
    assert gpukube("pool", "list", "-f", SINGLE).code == 1
    document = gpukube("sandbox", "fault", "list", "-o", "json", sandbox=False).json()
    first, second = document["faults"]
    assert (document["kind"], first["action"], first["method"], first["times"]) == ("SandboxFaults", "status", "GET", 0)
    assert first["struck"] == first["seen"] > 1
    assert (second["action"], second["pool"], second["struck"]) == ("stock-out", "t4", 0)
    assert gpukube("sandbox", "fault", "clear", sandbox=False).out == "all faults removed\n"
    assert gpukube("pool", "list", "-f", SINGLE).code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("stok-out",), "there is no fault 'stok-out'; there are status, "),
        (("hang", "--service", "azure"), "there is no service 'azure'; there are any, aws, "),
        (("hang", "--method", "GIT"), "there is no method 'GIT'"),
        (("hang", "--path", "("), "path is not a regular expression"),
        (("hang", "--pool", "x"), "a fault 'hang' takes no 'pool'; it takes method, "),
        (("status", "--status", "99"), "status is 99; it must be 400 to 599"),
        (("status", "--header", "Retry-After"), '"Retry-After" is not a header'),
        (("delay",), "needs seconds"),
        (("hang", "--nth", "0"), "--nth"),
    ],
)
def test_fault_when_it_names_what_is_not_there_then_bad_input(
    gpukube: Gpukube, words: tuple[str, ...], text: str
) -> None:
    refused = gpukube("sandbox", "fault", "add", *words, sandbox=False)
    assert (refused.code, text in refused.err) == (4, True), refused.err
    assert daemon.list_faults(gpukube.info) == []


def test_completion_when_kinds_and_services_are_asked_for_then_all_that_fit() -> None:
    assert _complete_kind("") == list(KINDS)
    assert _complete_kind("drop") == ["drop-before", "drop-after"]
    assert _complete_service("") == list(SERVICES)


def test_help_when_it_names_kinds_then_all_of_them(gpukube: Gpukube) -> None:
    text = gpukube("sandbox", "fault", "add", "--help", sandbox=False).out
    assert [kind for kind in KINDS if kind not in text] == []
