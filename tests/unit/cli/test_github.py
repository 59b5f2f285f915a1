"""Workflow commands: escaped as the runner reads them, placed in the spec, and no more than GitHub shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube.cli.formats.github import SHOWN, github_lines
from gpukube.engine.documents.plan import plan_document
from gpukube.errors import Finding, Where
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
