"""Long-running operations: their record and its two addresses.

In scope: the record and its wire forms. Out of scope: the work (`lifecycle`).

Source: docs: azure-resource-manager, track asynchronous Azure operations.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.clock import timestamp

if TYPE_CHECKING:
    import asyncio

    from gpukube_sandbox.aks.answers import Json

Status = Literal["InProgress", "Succeeded", "Failed", "Canceled"]

OPERATION_API = "2016-03-30"
"""api-version in AKS's operation addresses, independent of the request's."""
_OPAQUE = "x" * 512
"""Stands for the real address's signed token of up to 4 KB; clients must treat it as opaque."""


@dataclass(slots=True)
class Operation:
    """A running or finished operation on a pool.

    Attributes:
        kind: The provisioningState while it runs.
        task: The work, while it runs.
    """

    subscription: str
    location: str
    pool: str
    kind: str
    started: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: Status = "InProgress"
    ended: float = 0.0
    error: Json | None = None
    task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Return whether the operation has not ended."""
        return self.status == "InProgress"

    def end(self, status: Status, now: float, error: Json | None = None) -> None:
        """Record the result."""
        self.status, self.ended, self.error = status, now, error

    def address(self, base: str, kind: Literal["operations", "operationresults"]) -> str:
        """Return the address of the operation's status or result."""
        place = f"/subscriptions/{self.subscription}/providers/Microsoft.ContainerService/locations/{self.location}"
        return f"{base}{place}/{kind}/{self.id}?api-version={OPERATION_API}&t={_OPAQUE}"

    def wire(self) -> Json:
        """Return the status document."""
        place = f"/subscriptions/{self.subscription}/providers/Microsoft.ContainerService/locations/{self.location}"
        document: Json = {
            "id": f"{place}/operations/{self.id}",
            "name": self.id,
            "status": self.status,
            "startTime": timestamp(self.started),
        }
        if not self.is_running:
            document["endTime"] = timestamp(self.ended)
            document["percentComplete"] = 100.0
        if self.error is not None:
            document["error"] = self.error
        return document
