"""What it takes to write a pool for another tool: the pools, the notes on what is lost, commands for a shell.

In scope: the values that the command and the clouds hand each other, and quoting. Out of scope: what one tool
can hold (the providers' `export`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import leaves
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from gpukube.core.hcl import Block
    from gpukube.core.values import ClusterRef, Desired, Observed

_INDENT: Final = " \\\n  "


@dataclass(frozen=True, slots=True)
class ExportedPool:
    """A pool that is to be written.

    Attributes:
        desired: What is meant; of a live pool, what a spec says of it, with an owner of "" where it has no marks.
        live: The live pool, where live pools are exported (to Terraform alone); None for pools of a spec.
    """

    desired: Desired
    live: Observed | None = None

    @property
    def name(self) -> str:
        """The cloud's name."""
        return self.desired.target.name


@dataclass(slots=True)
class Losses:
    """What is found while pools are written.

    Attributes:
        notes: What the target does not hold, or holds in another way: sentences without a full stop.
        refusals: Errors: pools that the target cannot hold.
    """

    notes: list[str] = field(default_factory=list)
    refusals: list[Finding] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Note a loss, once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_unwritten(
        self, pool: ExportedPool, members: Mapping[str, object], known: Container[str], above: str = ""
    ) -> None:
        """Note members that a live pool has and the target is not told: its tool decides what becomes of them.

        Args:
            pool: Which.
            members: Of the live pool, as its cloud answers.
            known: Names of those that are written, or say only how the pool is.
            above: What stands before their names.
        """
        said = {name: value for name, value in members.items() if name not in known}
        found = sorted({f"{above}{path[0]}" for path, value in leaves(said) if value not in (None, False, "", {}, [])})
        if found:
            self.note(f"{pool.name}: {', '.join(found)} of the live pool: not written; see what a plan makes of it")

    def refuse(self, pool: ExportedPool, path: str, message: str, fix: str) -> None:
        """Refuse a pool for a field that the target cannot hold.

        Args:
            pool: Which.
            path: Of the field in the spec.
            message: What the target cannot hold.
            fix: What to do.
        """
        target = pool.desired.target
        self.refusals.append(
            Finding("export-refused", target.locator.at(path), f"{target.where}: {message}", fix=fix)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exporter:
    """How pools of one cluster are written for one target.

    Attributes:
        write: Pure: the cluster and its pools -> the document without its head; losses are collected in the last
            argument.
        head: First line of the document, above the notes: "#!/bin/sh"; "" for none.
        resource: Of Terraform alone, pure: the block that is the pool; plans are shown in its terms too, and live pools
            are taken over by it.
        is_pool: Whether what the target makes is a pool of the cloud, which gpukube knows again.
        is_open: Pure: whether a pool of a spec leaves open what only the live cluster knows (Cloud.complete).
    """

    write: Callable[[ClusterRef, Sequence[ExportedPool], Losses], str]
    head: str = ""
    resource: Callable[[ClusterRef, ExportedPool], Block] | None = None
    is_pool: bool = True
    is_open: Callable[[Desired], bool] = lambda _: False


def shell_command(*lines: Sequence[str]) -> str:
    """Write one command of a POSIX shell: the words of each line quoted, and the lines joined."""
    return _INDENT.join(shlex.join(line) for line in lines if line) + "\n"
