"""Commands that are imported and built when they are looked up by name.

typer builds a whole command line before it reads the first word: 45 ms, of which a run needs a tenth. Help,
completion, and "did you mean" iterate over all names and so build what they need.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

import typer
from typer.core import TyperOption

from gpukube.cli.kinds import FORMATS, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typer._click.core import Command
    from typer.core import TyperGroup


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
    group = typer.main.get_group(app)
    group.name = name
    command = group.commands.get(name, group)
    _name_formats(command, name)
    return command


def _name_formats(command: Command, path: str) -> None:
    """Add each command's formats to its help, from the shared table."""
    for parameter in command.params if path in KINDS else ():
        if isinstance(parameter, TyperOption) and parameter.name == "output":
            first, *others = FORMATS[KINDS[path]]
            parameter.help = f"{first} (default), {', '.join(others)}."
    for name, below in getattr(command, "commands", {}).items():
        _name_formats(below, f"{path} {name}")
