"""Long-running operations: their record, and which of them exclude each other.

In scope: the record, its wire form, the two concurrency rules. Out of scope: the work (`lifecycle`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire
from google.rpc import status_pb2  # type: ignore[import-untyped] # ships no types

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.gke.wire.answers import GoogleError, blocked
from gpukube_sandbox.gke.wire.enums import Kind, OperationStatus
from gpukube_sandbox.gke.wire.names import is_zone

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from gpukube_sandbox.gke.wire.names import Place

_MAX = 5
_METADATA_ONLY = frozenset({Kind.SET_NODE_POOL_MANAGEMENT})
"""Metadata-only kinds that may run alongside other operations (the proto's comment on Operation.Type)."""


@dataclass(slots=True)
class Operation:
    """A running or finished operation.

    Attributes:
        place: Name of the cluster, or of the pool.
        kind: Type of the operation.
        started: Start in sandbox time; `ended` likewise.
        error: Reason for its failure: canonical code number and message; set when the operation is DONE.
        done: Number of finished machines, and of all machines, for the progress.
        task: The work, while it runs.
    """

    name: str
    place: Place
    kind: wire.Operation.Type
    started: float
    status: wire.Operation.Status = OperationStatus.PENDING
    ended: float = 0.0
    error: tuple[int, str] | None = None
    conditions: tuple[wire.StatusCondition, ...] = ()
    done: tuple[int, int] = (0, 0)
    task: asyncio.Task[None] | None = None

    @classmethod
    def begin(cls, place: Place, kind: wire.Operation.Type, now: float) -> Operation:
        """Return a new operation."""
        tail = uuid.uuid4()
        return cls(f"operation-{int(now * 1000)}-{tail}", place, kind, now)

    @property
    def is_running(self) -> bool:
        """Return whether the operation has not ended."""
        return self.status != OperationStatus.DONE

    def end(
        self, now: float, error: tuple[int, str] | None = None, conditions: tuple[wire.StatusCondition, ...] = ()
    ) -> None:
        """Record the result."""
        self.status, self.ended, self.error, self.conditions = OperationStatus.DONE, now, error, conditions

    def message(self, base: str) -> wire.Operation:
        """Return the resource.

        Args:
            base: Prefix of links, such as "https://container.googleapis.com/v1/".
        """
        place = self.place
        target = place.pool_name if place.pool else place.cluster_name
        shown = wire.Operation(
            name=self.name,
            zone=place.location,
            location=place.location if not is_zone(place.location) else "",
            operation_type=self.kind,
            status=self.status,
            self_link=f"{base}{place.parent}/operations/{self.name}",
            target_link=base + target,
            start_time=timestamp(self.started),
            end_time="" if self.is_running else timestamp(self.ended),
            nodepool_conditions=list(self.conditions),
        )
        if self.done[1]:
            self._show_progress(shown)
        if self.error is not None:
            code, text = self.error
            shown.status_message = text
            shown.error = status_pb2.Status(code=code, message=text)
        return shown

    def _show_progress(self, shown: wire.Operation) -> None:
        metric = wire.OperationProgress.Metric
        metrics = [
            metric(name="nodes done", int_value=self.done[0]),
            metric(name="nodes total", int_value=self.done[1]),
        ]
        shown.progress = wire.OperationProgress(status=self.status, metrics=metrics)
        shown.detail = f"{self.done[0]} out of {self.done[1]} nodes done."


def require_room(running: Iterable[Operation], place: Place, kind: wire.Operation.Type, background: str) -> None:
    """Reject an operation that cannot start now.

    A pool has one operation at a time, a cluster at most five; an operation on the cluster itself excludes all others.

    Args:
        running: Operations of the cluster that have not ended.
        place: Name of the new operation's cluster or pool.
        kind: Type of the new operation.
        background: Name of an operation by the service itself on the whole cluster; "" for none.

    Raises:
        GoogleError: 400 FAILED_PRECONDITION or 429 RESOURCE_EXHAUSTED; a retry succeeds later. The messages:
            terraform-provider-google#10366 (a pool that is being deleted), #15205 and #15579 (five at once).
    """
    found = list(running)
    other = next((one for one in found if _excludes(one, place)), None)
    if kind not in _METADATA_ONLY:
        if background:
            raise blocked(f"Cluster is running incompatible operation {background}.")
        if other is not None and other.kind == Kind.DELETE_NODE_POOL:
            raise blocked(
                f"Operation {other.name} is currently deleting a node pool for cluster {place.cluster}. Please wait "
                "and try again once it is done."
            )
        if other is not None:
            raise blocked(f"Cluster is running incompatible operation {other.name}.")
    if len(found) >= _MAX:
        raise GoogleError(
            "RESOURCE_EXHAUSTED",
            f'Too many operations: cluster "{place.cluster}" hits the concurrent operations quota {_MAX}, please try '
            "again later.",
        )


def _excludes(one: Operation, place: Place) -> bool:
    if one.kind in _METADATA_ONLY:
        return False
    return not one.place.pool or not place.pool or one.place.pool == place.pool
