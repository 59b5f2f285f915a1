"""Commands that are imported and built when they are looked up by name.

typer builds a whole command line before it reads the first word: 45 ms, of which a run needs a tenth. Help,
completion, and "did you mean" iterate over all names and so build what they need.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from copy import copy
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

import typer
from typer.core import TyperOption
from typer.main import get_command_from_info, get_command_name, get_group_from_info

from gpukube.cli.command_lists import Group
from gpukube.cli.kinds import FORMATS, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typer._click.core import Command
    from typer.core import TyperGroup
    from typer.models import CommandInfo, TyperInfo


class Commands(MutableMapping[str, "Command"]):
    """Commands by name, in help order; each is built at its first use.

    Args:
        builders: Function that builds each command.
    """

    def __init__(self, builders: Mapping[str, Callable[[], Command]]) -> None:
        self._builders = dict(builders)
        self._built: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        """Return a command.

        Raises:
            KeyError: There is no command of this name.
        """
        if name not in self._built:
            self._built[name] = self._builders[name]()
        return self._built[name]

    def __setitem__(self, name: str, command: Command) -> None:
        """Add a built command."""
        self._builders[name] = lambda: command

    def __delitem__(self, name: str) -> None:
        """Remove a command."""
        del self._builders[name]

    def __contains__(self, name: object) -> bool:
        """Return whether a command exists, without building it."""
        return name in self._builders

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._builders)

    def __len__(self) -> int:
        """Count the commands."""
        return len(self._builders)


def lazy_group(app: typer.Typer, modules: Mapping[str, str]) -> TyperGroup:
    """Build a command line that imports the module of a command when the command is looked up.

    Args:
        app: The top-level group, with its own options and no commands.
        modules: Name of a command or group -> the module that defines it as `app`.
    """
    top = cast("TyperGroup", typer.main.get_command(app))
    top.commands = Commands({name: partial(_imported, name, module) for name, module in modules.items()})
    return top


def _imported(name: str, module: str) -> Command:
    app = cast("typer.Typer", import_module(module).app)
    app.rich_markup_mode = None  # plain help halves the start-up time
    app.info.cls = app.info.cls or Group
    builders = _builders(app, name)
    if name in builders:  # a module of one command
        return builders[name]()
    empty = copy(app)
    empty.registered_commands, empty.registered_groups = [], []
    group = typer.main.get_group(empty)
    group.name = name
    group.commands = Commands(builders)
    return group


def _builders(app: typer.Typer, above: str) -> dict[str, Callable[[], Command]]:
    """Return what builds each command below a name: a run needs one of them, and help of all groups none."""
    builders: dict[str, Callable[[], Command]] = {}
    for command in app.registered_commands:
        if command.callback is not None:
            name = command.name or get_command_name(command.callback.__name__)
            builders[name] = partial(_command, command, name if name == above else f"{above} {name}")
    for group in app.registered_groups:
        builders[str(group.name)] = partial(_group, group, f"{above} {group.name}")
    return builders


def _command(info: CommandInfo, path: str) -> Command:
    command = get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None)
    _name_formats(command, path)
    return command


def _group(info: TyperInfo, path: str) -> Command:
    info.cls = info.cls or Group
    group = get_group_from_info(info, pretty_exceptions_short=True, rich_markup_mode=None, suggest_commands=True)
    _name_formats(group, path)
    return group


def _name_formats(command: Command, path: str) -> None:
    """Add each command's formats to its help, from the shared table."""
    for parameter in command.params if path in KINDS else ():
        if isinstance(parameter, TyperOption) and parameter.name == "output":
            first, *others = FORMATS[KINDS[path]]
            parameter.help = f"{first} (default), {', '.join(others)}."
    for name, below in getattr(command, "commands", {}).items():
        _name_formats(below, f"{path} {name}")
