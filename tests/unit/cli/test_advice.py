"""A command line with the habits of another tool is answered with ours."""

from __future__ import annotations

import shlex

import pytest

from gpukube.cli.advice import suggest_command
from gpukube.cli.app import run

POOL = {"create", "apply", "plan", "list", "scale"}


@pytest.mark.parametrize(
    ("line", "ours"),
    [
        ("create", "gpukube pool create"),
        ("--sandbox plan diff a.yaml", "gpukube --sandbox pool plan diff -f a.yaml"),
        ("apply x.yaml", "gpukube pool apply -f x.yaml"),
        ("pool create a.yaml b.yml", "gpukube pool create -f a.yaml -f b.yml"),
        ("pool create -f a.yaml --dry-run", "gpukube pool plan -f a.yaml"),
        ("validate 'my pools.yaml'", "gpukube validate -f 'my pools.yaml'"),
        ("version", "gpukube --version"),
        ("pool upgrade -f a.yaml", "gpukube pool apply --upgrade -f a.yaml"),
        ("--sandbox upgrade", "gpukube --sandbox pool apply --upgrade"),
        ("pool scale t4 3", "gpukube pool scale t4 --nodes 3"),
        ("pool scale t4 --count 3 -f a.yaml", "gpukube pool scale t4 --nodes 3 -f a.yaml"),
        ("scale t4 3", "gpukube pool scale t4 --nodes 3"),
        ("pool lst", ""),
        ("pool create -f a.yaml --frobnicate", ""),
        ("", ""),
    ],
)
def test_line_when_of_another_tool_then_ours(line: str, ours: str) -> None:
    assert suggest_command(shlex.split(line), POOL) == ours


def test_usage_when_a_pool_command_stands_at_the_top_then_the_right_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["create", "pools.yaml"]) == 4
    shown = capsys.readouterr().err
    assert shown.endswith("Error: No such command 'create'.\nDid you mean: gpukube pool create -f pools.yaml\n")
