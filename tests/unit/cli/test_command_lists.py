"""Help lists commands by task and in whole sentences, and its examples are command lines that work."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, cast

import pytest
from typer.core import TyperGroup

from gpukube.__main__ import main
from gpukube.cli.app import MODULES, command_line
from gpukube.cli.command_lists import Group

if TYPE_CHECKING:
    from collections.abc import Iterator

POOL = cast("Group", command_line().commands["pool"])


def groups(group: TyperGroup, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield above
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from groups(command, (*above, name))


@pytest.mark.parametrize("words", [*groups(command_line())], ids=" ".join)
def test_help_when_the_terminal_has_80_columns_then_nothing_is_cut(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]  # without the usage: COMMAND [ARGS]...
    assert not [line for line in lines if line.endswith(("...", "…")) or len(line) > 80]


def test_tasks_when_listed_then_every_command_has_one() -> None:
    top = command_line()
    assert isinstance(top, Group)
    assert sorted(name for names in top.tasks.values() for name in names) == sorted(MODULES)
    assert sorted(name for names in POOL.tasks.values() for name in names) == sorted(POOL.commands)


def test_summaries_when_compared_then_are_those_of_the_commands() -> None:
    top = command_line()
    assert isinstance(top, Group)
    assert top.summaries == {name: command.get_short_help_str(1000) for name, command in top.commands.items()}


def test_command_when_it_has_no_task_then_is_listed_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "--help"]) == 0
    assert "\nCommands:\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", [*POOL.commands])
def test_example_of_a_pool_command_when_parsed_then_is_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUKUBE_SANDBOX", raising=False)
    program, group, command, *rest = shlex.split(POOL.examples[name])
    assert (program, group, command) == ("gpukube", "pool", name)
    context = POOL.commands[name].make_context(name, rest)
    assert any(context.params.values()), "it gives something"
