"""What a cloud reports about the reservation that a pool names.

In scope: the value. Out of scope: reading it (`CloudExtras.reserved`), and reservations that no pool names
(`core.capacity_sources`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RUNS_ON: Final = "its machines run on, billed on demand"
"""What happens to machines at the end of a reservation that does not end them; see `LiveReservation.at_end`."""


@dataclass(frozen=True, slots=True)
class LiveReservation:
    """A reservation or block, as just read.

    Attributes:
        id: The cloud's id or name of it.
        total: Machines of the pool's type that it holds.
        used: Machines that use it; more than `total` if the cloud starts further ones on demand.
        active: Whether its machines can be used now: it has begun, and has not ended.
        end: When it ends, RFC 3339; "" for an open end.
        at_end: What happens to its machines at its end, as a clause: "its machines run on, billed on demand".
    """

    id: str
    total: int
    used: int
    active: bool = True
    end: str = ""
    at_end: str = ""

    @property
    def free(self) -> int:
        """Machines that can be started in it now."""
        return max(0, self.total - self.used) if self.active else 0
