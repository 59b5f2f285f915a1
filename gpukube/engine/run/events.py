"""Progress as data. The engine emits events; listeners display or write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "check", "release", "create", "update", "replace", "delete", "drain", "wait", "verify", "done", "failed"
]


@dataclass(frozen=True, slots=True)
class Event:
    """Progress of one cluster or pool.

    Attributes:
        at: Seconds since the epoch, by the run's clock.
        cluster: Key of the cluster in the spec.
        pool: Name of the pool in the spec; "" if the event concerns the whole cluster.
        phase: Current phase of the work.
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
    """Discard an event."""
