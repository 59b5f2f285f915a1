"""Progress as data. The engine emits events; whoever listens draws or writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "check", "release", "create", "update", "replace", "delete", "drain", "wait", "verify", "done", "failed"
]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one cluster or pool.

    Attributes:
        at: Seconds since the epoch, by the run's clock.
        cluster: Key of the cluster in the spec.
        pool: Name of the pool in the spec; "" when it concerns the whole cluster.
        phase: Where the work is.
        message: One line, lower case.
    """

    at: float
    cluster: str
    pool: str
    phase: Phase
    message: str

    @property
    def subject(self) -> str:
        """The cluster, or cluster/pool."""
        return f"{self.cluster}/{self.pool}" if self.pool else self.cluster


Listener = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Listen to nothing."""
