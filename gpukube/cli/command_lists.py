"""How help lists commands: whole sentences, by task, and with examples. typer would cut a sentence that is too long.

Imports typer only: `gpukube --help` builds these lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typer.core import TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typer._click import HelpFormatter
    from typer._click.core import Context

_WHOLE = 10_000
"""Characters of a sentence in a list: it is wrapped, never cut."""


class Group(TyperGroup):
    """A group of commands, each with the first sentence of its help.

    Attributes:
        tasks: Heading -> the commands below it, in the order of use; others follow at the end.
        examples: Command -> a command line that shows its use.
        summaries: Command -> the first sentence of its help, for a list that does not import the command.
    """

    tasks: ClassVar[Mapping[str, Sequence[str]]] = {}
    examples: ClassVar[Mapping[str, str]] = {}
    summaries: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - as typer calls it
        """List the commands in the order of the tasks."""
        placed = [name for names in self.tasks.values() for name in names]
        found = list(self.commands)  # by name: their values are built when they are read
        return [*(name for name in placed if name in found), *(name for name in found if name not in placed)]

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the lists."""
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        headings = {name: heading for heading, below in self.tasks.items() for name in below}
        parts: dict[str, list[str]] = {}
        for name in names:
            parts.setdefault(headings.get(name, "Commands"), []).append(name)
        for heading, below in parts.items():
            with formatter.section(heading):
                for name in below:
                    text = self.summaries.get(name) or self.commands[name].get_short_help_str(_WHOLE)
                    formatter.write_dl([(name.ljust(width), text)])
                    if name in self.examples:
                        formatter.write(f"{'':{formatter.current_indent + width + 2}}$ {self.examples[name]}\n")
