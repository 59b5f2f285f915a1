"""Commands are built when they are looked up: a run needs one of forty."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from typer.main import get_command_from_info

from gpukube.cli import lazy
from gpukube.cli.app import app

if TYPE_CHECKING:
    import pytest
    from typer._click.core import Command
    from typer.core import TyperGroup
    from typer.models import CommandInfo

MODULES = {"pool": "gpukube.cli.commands.pool", "validate": "gpukube.cli.commands.spec"}


def test_group_when_looked_up_then_only_the_named_command_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str | None] = []

    def noted(info: CommandInfo, *, pretty_exceptions_short: bool, rich_markup_mode: None) -> Command:
        command = get_command_from_info(
            info, pretty_exceptions_short=pretty_exceptions_short, rich_markup_mode=rich_markup_mode
        )
        built.append(command.name)
        return command

    monkeypatch.setattr(lazy, "get_command_from_info", noted)
    top = lazy.lazy_group(app, MODULES)
    pool = cast("TyperGroup", top.commands["pool"])
    assert {"create", "plan", "wait"} <= set(pool.commands)
    assert built == []
    assert pool.commands["wait"].name == "wait"
    assert top.commands["validate"].name == "validate"  # the one command of its module
    assert built == ["wait", "validate"]
