"""Exports pools to other tools: the pools, notes on what is lost, and shell quoting.

In scope: the values passed between the command and the clouds, and quoting. Out of scope: what one tool can express
(the providers' `export`).
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
    """A pool to export.

    Attributes:
        desired: The declared pool; for a live pool, its description as a spec, with owner "" if it has no marks.
        live: The live pool, if live pools are exported (only to Terraform); None for pools of a spec.
    """

    desired: Desired
    live: Observed | None = None

    @property
    def name(self) -> str:
        """Name in the cloud."""
        return self.desired.target.name


@dataclass(slots=True)
class Losses:
    """Losses found during an export.

    Attributes:
        notes: What the target cannot express, or expresses differently: sentences without a period.
        refusals: Errors for pools that the target cannot express.
    """

    notes: list[str] = field(default_factory=list)
    refusals: list[Finding] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Record a loss once."""
        if text not in self.notes:
            self.notes.append(text)

    def note_unwritten(
        self, pool: ExportedPool, members: Mapping[str, object], known: Container[str], above: str = ""
    ) -> None:
        """Record members of a live pool that are not exported; the target's tool decides what happens to them.

        Args:
            pool: The pool.
            members: Members of the live pool, as its cloud returns them.
            known: Names of members that are exported or that only report status.
            above: Prefix of their names.
        """
        unwritten = {name: value for name, value in members.items() if name not in known}
        found = sorted(
            {f"{above}{path[0]}" for path, value in leaves(unwritten) if value not in (None, False, "", {}, [])}
        )
        if found:
            self.note(f"{pool.name}: {', '.join(found)} of the live pool: not written; see what a plan makes of it")

    def refuse(self, pool: ExportedPool, path: str, message: str, fix: str) -> None:
        """Reject a pool because of a field that the target cannot express.

        Args:
            pool: The pool.
            path: Path of the field in the spec.
            message: What the target cannot express.
            fix: What to do.
        """
        target = pool.desired.target
        self.refusals.append(
            Finding("export-refused", target.locator.at(path), f"{target.where}: {message}", fix=fix)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exports the pools of one cluster to one target.

    Attributes:
        write: Pure: the cluster and its pools -> the document without its head; collects losses in the last argument.
        head: First line of the document, above the notes: "#!/bin/sh"; "" for none.
        resource: Pure, only for Terraform: returns the block of the pool, which also shows plans in Terraform's terms
            and imports live pools.
        is_pool: Whether the target creates a cloud pool that gpukube recognizes.
        is_open: Pure: whether a pool of a spec needs values that only the live cluster has (Cloud.complete).
    """

    write: Callable[[ClusterRef, Sequence[ExportedPool], Losses], str]
    head: str = ""
    resource: Callable[[ClusterRef, ExportedPool], Block] | None = None
    is_pool: bool = True
    is_open: Callable[[Desired], bool] = lambda _: False


def shell_command(*lines: Sequence[str]) -> str:
    """Return one POSIX shell command: the words of each line quoted, and the lines joined."""
    return _INDENT.join(shlex.join(line) for line in lines if line) + "\n"
