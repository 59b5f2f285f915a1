"""What it takes to write a pool for another tool: the pools, the notes on what is lost, commands for a shell.

Lives here: the values that the command and the clouds hand each other, and quoting. Must not live here: what one tool
can hold (the providers' `export`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.hcl import Block
    from gpukube.core.values import ClusterRef, Desired, Observed

_MARKS: Final = (OWNER_LABEL, POOL_LABEL)
_INDENT: Final = " \\\n  "


@dataclass(frozen=True, slots=True)
class ExportedPool:
    """A pool that is to be written.

    Attributes:
        desired: What is meant; of a live pool, what a spec says of it. Its request carries gpukube's marks, or none,
            with an owner of "", where the live pool has none.
        live: The live pool, where live pools are exported; None for pools of a spec.
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
        resource: Of Terraform alone, pure: the block that is the pool; plans are shown in its terms too.
        is_pool: Whether what the target makes is a pool of the cloud, which gpukube knows again.
        is_open: Pure: whether a pool of a spec leaves open what only the live cluster knows (Cloud.complete).
    """

    write: Callable[[ClusterRef, Sequence[ExportedPool], Losses], str]
    head: str = ""
    resource: Callable[[ClusterRef, ExportedPool], Block] | None = None
    is_pool: bool = True
    is_open: Callable[[Desired], bool] = lambda _: False


def without_marks(pool: ExportedPool, labels: Mapping[str, str]) -> dict[str, str]:
    """Give the labels of a pool, without gpukube's marks where a live pool has none."""
    is_owned = bool(pool.desired.target.owner)
    return {key: value for key, value in labels.items() if is_owned or key not in _MARKS}


def shell_command(*lines: Sequence[str]) -> str:
    """Write one command of a POSIX shell: the words of each line quoted, and the lines joined."""
    return _INDENT.join(shlex.join(line) for line in lines if line) + "\n"
