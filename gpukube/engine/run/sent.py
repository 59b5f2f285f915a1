"""What a run knows of its calls that change pools: none sent, one in flight, or one accepted by the cloud.

A run that is stopped or times out reports this record and never guesses: each call is recorded before it is sent, so
that whatever abandons it (a signal, a deadline) finds it in flight.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from gpukube.engine.run.clock import Stopped
from gpukube.errors import AccessError, CapacityError, Conflict, QuotaError, SpecError, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

CallState = Literal["none", "in-flight", "taken"]

_REFUSALS = (AccessError, CapacityError, Conflict, QuotaError, SpecError)
"""Errors that are a rejection by the cloud. After any other error the response may be lost: only a read tells."""


class SentCalls:
    """Calls by cluster and pool; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight: set[tuple[str, str]] = set()
        self._taken: set[tuple[str, str]] = set()

    def state(self, cluster: str, pool: str) -> CallState:
        """Return the state of the pool's calls; one in flight outweighs earlier accepted ones."""
        with self._lock:
            if (cluster, pool) in self._in_flight:
                return "in-flight"
            return "taken" if (cluster, pool) in self._taken else "none"

    @contextmanager
    def sending(self, cluster: str, pool: str) -> Iterator[None]:
        """Record that the body sends a call for the pool, and how it ends."""
        with self._lock:
            self._in_flight.add((cluster, pool))
        try:
            yield
        except _REFUSALS:
            self._land(cluster, pool)
            raise
        except (Stopped, WaitTimeout) as error:
            if not error.in_flight:  # abandoned before it was made
                self._land(cluster, pool)
            raise
        self.confirm_effect(cluster, pool)

    def confirm_effect(self, cluster: str, pool: str) -> None:
        """Record that the cloud accepted the call: it responded, or the pool shows the effect."""
        with self._lock:
            self._in_flight.discard((cluster, pool))
            self._taken.add((cluster, pool))

    def _land(self, cluster: str, pool: str) -> None:
        with self._lock:
            self._in_flight.discard((cluster, pool))
