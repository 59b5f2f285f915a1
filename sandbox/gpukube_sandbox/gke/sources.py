"""Where machines of node pools come from, as seen by clusters.

In scope: the protocol. Out of scope: its implementation (`supply`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpukube_sandbox.gke.failures import Failure
    from gpukube_sandbox.gke.pools import Lot, Pool
    from gpukube_sandbox.gke.wire.names import Place


class Source(Protocol):
    """Where machines come from."""

    def take(self, place: Place, pool: Pool, zone: str) -> Lot | None:
        """Take a machine; None if there is none."""
        ...

    def add(self, pool: Pool, zone: str) -> Lot:
        """Count a machine that exists whatever the stock is."""
        ...

    def give_back(self, zone: str, lot: Lot) -> None:
        """Return a machine that is gone."""
        ...

    def shortage(self, place: Place, pool: Pool, zone: str) -> Failure:
        """Return the failure of an operation whose machines are not available."""
        ...
