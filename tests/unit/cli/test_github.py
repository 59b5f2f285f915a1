"""Workflow commands: escaped as the runner reads them, placed in the spec, and no more than GitHub shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpukube.cli.formats.github import SHOWN, github_lines
from gpukube.cli.kinds import FORMATS
from gpukube.engine.documents.plan import plan_document
from gpukube.errors import Finding, Where
from tests.documents import DOCUMENTS
from tests.screens.scenes import PLANS, SAME

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.plan import PlanDocument

COMMAND = re.compile(r"::(error|warning|notice) ([^:]*)::(.*)")


def warned(*found: Finding) -> PlanDocument:
    return plan_document(SAME, found, kind="Diff")


def test_command_when_texts_hold_special_signs_then_escaped_as_the_runner_reads_them() -> None:
    found = Finding("x", Where("a,b:c.yaml", 3, 4), "50%\nmore::here", severity="warning")
    first, last = github_lines(warned(found))
    assert first == "::warning file=a%2Cb%3Ac.yaml,line=3,col=4,title=spec [x]::50%25%0Amore::here"
    assert last == "gpukube: no differences: 1 unchanged"


def test_command_when_a_text_would_be_a_command_then_it_is_none() -> None:
    found = Finding("x", Where("train-aks"), "fine\n::set-output name=a::b", severity="warning")
    lines = list(github_lines(warned(found)))
    assert all(len(line.splitlines()) == 1 for line in lines)
    assert not [line for line in lines if line.startswith("::set-output")]


def test_place_when_the_spec_came_from_stdin_then_no_file_is_named() -> None:
    found = Finding("x", Where("-", 3, 4), "mind this", severity="warning")
    first, _ = github_lines(warned(found))
    assert first == "::warning title=spec [x]::mind this"


def test_commands_when_more_than_github_shows_then_capped_and_the_rest_is_in_the_log() -> None:
    found = [Finding("x", Where("train-aks"), f"finding {n}", severity="warning") for n in range(25)]
    lines = list(github_lines(warned(*found)))
    commands = [line for line in lines if COMMAND.fullmatch(line)]
    assert len(commands) == SHOWN
    assert commands[-1] == "::warning title=gpukube::16 more of this level are in the log of this step"
    for n in range(25):
        assert any(line.endswith(f"finding {n}") for line in lines)


def test_commands_when_there_are_exactly_as_many_as_github_shows_then_all() -> None:
    found = [Finding("x", Where("train-aks"), f"finding {n}", severity="warning") for n in range(SHOWN)]
    lines = list(github_lines(warned(*found)))
    assert len(lines) == SHOWN + 1
    assert not [line for line in lines if "more of this level" in line]


def test_levels_when_pools_are_destroyed_then_errors_and_first() -> None:
    lines = list(github_lines(plan_document(PLANS, (), kind="Diff")))
    levels = [match.group(1) for line in lines if (match := COMMAND.fullmatch(line))]
    assert levels == sorted(levels, key=("error", "warning", "notice").index)
    level = {line.split("title=")[1].split("::")[0]: line.split()[0] for line in lines if "title=" in line}
    assert level["train-aks/a100cut%3A replace"] == "::error"
    assert level["train-aks/t4old%3A delete"] == "::error"
    assert level["train-aks/t4label%3A update"] == "::warning"
    assert not [title for title in level if "no-op" in title]


def shown(name: str) -> list[str]:
    return list(github_lines(DOCUMENTS[name]))


@pytest.mark.parametrize("name", [name for name, one in DOCUMENTS.items() if "github" in FORMATS[one["kind"]]])
def test_document_when_written_then_commands_first_the_worst_first_and_a_sum(name: str) -> None:
    lines = shown(name)
    levels = [match[1] for line in lines if (match := COMMAND.fullmatch(line))]
    assert levels == sorted(levels, key=("error", "warning", "notice").index)
    assert lines[-1].startswith("gpukube: ")
    assert bool(levels) == (name != "same")


def test_plan_when_written_then_only_what_cannot_be_done_is_an_error_and_what_destroys_a_warning() -> None:
    level = {line.split("title=")[1].split("::")[0]: line.split()[0] for line in shown("Plan") if "title=" in line}
    assert level["train-aks/a100cut%3A replace"] == level["train-aks/t4old%3A delete"] == "::warning"
    assert level["train-aks/a100mig%3A create"] == "::notice"
    assert level["train-aks/found%3A conflict [foreign-pool]"] == "::error"


def test_report_when_pools_failed_then_an_error_each_and_what_was_done_is_no_annotation() -> None:
    titles = [line.split("title=")[1].split("::")[0] for line in shown("Apply") if "title=" in line]
    assert "train-aks/a100big%3A failed [capacity]" in titles
    assert "train-aks/t4lost%3A unknown" in titles
    assert not [title for title in titles if "done" in title or "unchanged" in title]


def test_doctor_when_written_then_its_findings_and_what_to_run() -> None:
    first, second, last = shown("Doctor")
    assert first == (
        "::error title=train-aks [no-plugin]::node n1: labels[team] is gone%0Awhat follows%0A"
        "fix: kubectl label node n1 team=a%0Ahttps://example.org"
    )
    assert second.startswith("::warning title=train-aks [idle-gpus]::")
    assert last == "gpukube: doctor: 1 error, 1 warning, but not everything could be read"


def test_fit_when_a_workload_has_no_place_then_an_error_at_its_template() -> None:
    first, second, last = shown("Fit")
    assert first == (
        "::error file=web.yaml,line=7,col=5,title=Deployment/web on train-aks::2 pods never fit%0A"
        "train-aks/t4: its 1 node is full; its maximum is 1%0Afix: train-aks/t4: write nodes.autoscaling.max: 3"
    )
    assert second.startswith("::warning file=web.yaml,line=30,col=5,")
    assert last == "gpukube: fit: 1 of 2 workloads never fit"
