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
from gpukube_sandbox.gke.wire.answers import Refusal, blocked
from gpukube_sandbox.gke.wire.enums import Kind, OperationStatus
from gpukube_sandbox.gke.wire.names import is_zone

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from gpukube_sandbox.gke.wire.names import Place

_MOST = 5
_BESIDE_OTHERS = frozenset({Kind.SET_NODE_POOL_MANAGEMENT})
"""Only metadata: may run beside other operations (the proto's comment on Operation.Type)."""


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        place: Cluster, and pool if it is about one.
        kind: What is done.
        started: Sandbox time; likewise `ended`.
        error: Why it failed: canonical code number and text; set on an operation that is DONE.
        done: Machines that are done, and how many there are; for the progress.
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
        """A new one."""
        tail = uuid.uuid4()
        return cls(f"operation-{int(now * 1000)}-{tail}", place, kind, now)

    @property
    def is_running(self) -> bool:
        """Whether it has not come to an end."""
        return self.status != OperationStatus.DONE

    def end(
        self, now: float, error: tuple[int, str] | None = None, conditions: tuple[wire.StatusCondition, ...] = ()
    ) -> None:
        """Note how it ended."""
        self.status, self.ended, self.error, self.conditions = OperationStatus.DONE, now, error, conditions

    def message(self, base: str) -> wire.Operation:
        """The resource.

        Args:
            base: Start of links, such as "https://container.googleapis.com/v1/".
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
    """Refuse what cannot begin now.

    A pool has one operation at a time, a cluster at most five; an operation on the cluster itself excludes them all.

    Args:
        running: Operations of the cluster that have not ended.
        place: What the new one is about.
        kind: What it is to do.
        background: Name of an operation of the service itself on the whole cluster; "" for none.

    Raises:
        Refusal: 400 FAILED_PRECONDITION or 429 RESOURCE_EXHAUSTED; both pass with time. The sentences:
            terraform-provider-google#10366 (a pool that goes), #15205 and #15579 (five at once).
    """
    found = list(running)
    other = next((one for one in found if _excludes(one, place)), None)
    if kind not in _BESIDE_OTHERS:
        if background:
            raise blocked(f"Cluster is running incompatible operation {background}.")
        if other is not None and other.kind == Kind.DELETE_NODE_POOL:
            raise blocked(
                f"Operation {other.name} is currently deleting a node pool for cluster {place.cluster}. Please wait "
                "and try again once it is done."
            )
        if other is not None:
            raise blocked(f"Cluster is running incompatible operation {other.name}.")
    if len(found) >= _MOST:
        raise Refusal(
            "RESOURCE_EXHAUSTED",
            f'Too many operations: cluster "{place.cluster}" hits the concurrent operations quota {_MOST}, please try '
            "again later.",
        )


def _excludes(one: Operation, place: Place) -> bool:
    if one.kind in _BESIDE_OTHERS:
        return False
    return not one.place.pool or not place.pool or one.place.pool == place.pool
