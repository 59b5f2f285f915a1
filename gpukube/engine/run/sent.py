"""What a run knows of its calls that change pools: none was sent, one is in flight, or the cloud has taken one.

A run that is stopped or runs out of time reports what is written here, and never guesses: each call is noted before it
is sent, so that whatever abandons it (a signal, a deadline) finds it in flight.
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
"""The cloud has answered no. Any other failure may be a lost answer: then only a look at the pool tells."""


class SentCalls:
    """Calls by cluster and pool; all methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight: set[tuple[str, str]] = set()
        self._taken: set[tuple[str, str]] = set()

    def state(self, cluster: str, pool: str) -> CallState:
        """Return what is known of the pool's calls; one in flight outweighs those that were taken before."""
        with self._lock:
            if (cluster, pool) in self._in_flight:
                return "in-flight"
            return "taken" if (cluster, pool) in self._taken else "none"

    @contextmanager
    def sending(self, cluster: str, pool: str) -> Iterator[None]:
        """Note that a call about the pool is sent in the body, and how that ends."""
        with self._lock:
            self._in_flight.add((cluster, pool))
        try:
            yield
        except _REFUSALS:
            self._land(cluster, pool)
            raise
        except (Stopped, WaitTimeout) as error:
            if not error.in_flight:  # given up before it was made
                self._land(cluster, pool)
            raise
        self.confirm_effect(cluster, pool)

    def confirm_effect(self, cluster: str, pool: str) -> None:
        """Record that the cloud accepted the call: it answered, or the pool shows the effect."""
        with self._lock:
            self._in_flight.discard((cluster, pool))
            self._taken.add((cluster, pool))

    def _land(self, cluster: str, pool: str) -> None:
        with self._lock:
            self._in_flight.discard((cluster, pool))
