"""Commands that are imported and built when they are asked for by name.

typer builds a whole command line before it looks at the first word: 45 ms, of which a run uses a tenth. Help,
completion and "did you mean" go through all names, and so build what they need.
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
    """Commands by name, in the order of the help; each is built at its first use.

    Args:
        builders: What builds each of them.
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
        """Add a command that is built."""
        self._builders[name] = lambda: command

    def __delitem__(self, name: str) -> None:
        """Remove a command."""
        del self._builders[name]

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a command; without building it."""
        return name in self._builders

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._builders)

    def __len__(self) -> int:
        """Count the commands."""
        return len(self._builders)


def lazy_group(app: typer.Typer, modules: Mapping[str, str]) -> TyperGroup:
    """Build a command line that imports the module of a command when that is asked for.

    Args:
        app: The group at the top, with its own options and no commands.
        modules: Name of a command -> the module that has it, or the group of that name, in its `app`.
    """
    top = cast("TyperGroup", typer.main.get_command(app))
    top.commands = Commands({name: partial(_imported, name, module) for name, module in modules.items()})
    return top


def _imported(name: str, module: str) -> Command:
    app = cast("typer.Typer", import_module(module).app)
    app.rich_markup_mode = None  # plain help: half the start-up
    group = typer.main.get_group(app)
    group.name = name
    command = group.commands.get(name, group)
    _name_formats(command, name)
    return command


def _name_formats(command: Command, path: str) -> None:
    """Put the formats of each command into its help, from the one table of them."""
    for parameter in command.params if path in KINDS else ():
        if isinstance(parameter, TyperOption) and parameter.name == "output":
            first, *others = FORMATS[KINDS[path]]
            parameter.help = f"{first} (default), {', '.join(others)}."
    for name, below in getattr(command, "commands", {}).items():
        _name_formats(below, f"{path} {name}")
