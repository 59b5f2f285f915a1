"""Options: what is given nearest to the command holds, even where it equals the default."""

from __future__ import annotations

from dataclasses import Field, fields

import pytest
import typer

from gpukube import api
from gpukube.cli.app import run
from gpukube.cli.bodies import pool_views as viewing
from gpukube.cli.options import Choices, takes

OPTIONS = {option.name: option for option in fields(Choices) if option.metadata}
OTHER: dict[type, str] = {str: "other", int: "3", float: "5"}
VALUED = {name: option for name, option in OPTIONS.items() if type(option.default) in OTHER}
SWITCHES = [name for name, option in OPTIONS.items() if option.default is False]
PLACES = ("command", "group", "environment")
"""Nearest first."""


def variable(option: Field[object]) -> str:
    """Name the option's environment variable; "" where it has none."""
    return option.metadata["option"].envvar or ""


def flag(option: Field[object]) -> str:
    return str(option.metadata["option"].param_decls[0])


def chosen(name: str, group: list[str], command: list[str]) -> Choices:
    """Run a command with this option, in a group that has it too."""
    app, found = typer.Typer(), list[Choices]()

    @app.callback()
    @takes(name)
    def before(choices: Choices) -> None:
        assert choices.given <= {name}

    @app.command("do")
    @takes(name)
    def do(choices: Choices) -> None:
        found.append(choices)

    typer.main.get_command(app).main(args=[*group, "do", *command], standalone_mode=False)
    (choices,) = found
    return choices


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name, option in VALUED.items()
        for place in PLACES
        if place != "environment" or variable(option)
    ],
)
def test_option_when_given_at_its_default_then_what_is_farther_away_does_not_count(
    name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = VALUED[name]
    default = str(option.default)
    said = {place: default} | dict.fromkeys(PLACES[PLACES.index(place) + 1 :], OTHER[type(option.default)])
    if variable(option) and "environment" in said:
        monkeypatch.setenv(variable(option), said["environment"])
    words = {at: [flag(option), said[at]] if at in said else [] for at in ("group", "command")}

    choices = chosen(name, words["group"], words["command"])

    assert getattr(choices, name) == option.default
    # click takes an empty variable for none at all
    assert choices.given == (frozenset([name]) if default or place != "environment" else frozenset())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", VALUED)
def test_option_when_given_in_one_place_then_it_counts(name: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    option = VALUED[name]
    other = OTHER[type(option.default)]
    if place == "environment" and variable(option):
        monkeypatch.setenv(variable(option), other)
    words = [flag(option), other]

    choices = chosen(name, words if place == "group" else [], words if place == "command" else [])

    counts = place != "environment" or variable(option)
    assert str(getattr(choices, name)).removesuffix(".0") == (
        other if counts else str(option.default).removesuffix(".0")
    )


@pytest.mark.parametrize("name", SWITCHES)
def test_switch_when_on_before_the_command_or_after_it_then_it_is_on_whatever_the_environment_holds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = OPTIONS[name]
    if variable(option):
        monkeypatch.setenv(variable(option), "0")
    assert getattr(chosen(name, [flag(option)], []), name) is True
    assert getattr(chosen(name, [], [flag(option)]), name) is True
    assert getattr(chosen(name, [], []), name) is False


def test_plan_diff_when_the_command_asks_for_the_default_then_not_what_the_group_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[Choices] = []
    monkeypatch.setattr(viewing, "diff", found.append)
    assert run(["-v", "pool", "plan", "-f", "a.yaml", "-o", "json", "--parallelism", "2", "diff", "-o", "table"]) == 0
    (choices,) = found
    assert (choices.output, choices.parallelism, choices.files, choices.verbose) == ("table", 2, ("a.yaml",), True)
    assert choices.command.startswith("gpukube -v pool plan ")


def test_choices_when_a_plan_is_shaped_then_there_is_one_for_each_of_its_options() -> None:
    known = {choice.name for choice in fields(Choices)}
    assert {option.name for option in fields(api.PlanOptions)} <= known
    assert {option.name for option in fields(api.Scope)} - {"retire", "pin", "check_chart", "quotas"} <= known
