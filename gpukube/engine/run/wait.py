"""Waits for the cloud, with an injected clock. Ctrl-C stops the wait, not the cloud's operation."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.errors import Busy, Throttled, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gpukube.core.values import Operation, Request
    from gpukube.engine.run.clock import Clock
    from gpukube.provider import Cloud

SHORTEST_S = 0.02
"""Minimum interval between reads, even if the cloud specifies 0, to avoid a busy loop."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long and how often to poll, and whom to notify.

    Attributes:
        clock: The run's clock; its stop raises Stopped from every wait.
        deadline: Seconds since the epoch, by that clock.
        poll_s: Seconds between reads if the cloud does not specify an interval.
        notify: Called with the cloud's own status whenever it changes.
        resume: The command that resumes the wait.
        ceiling_s: Maximum pause between reads, whatever the cloud specifies.
        sending: Context entered around each call that is sent, so that an abandoned one is known to be in flight.
    """

    clock: Clock
    deadline: float
    poll_s: float
    notify: Callable[[str], None]
    resume: str
    ceiling_s: float = 120.0
    sending: Callable[[], AbstractContextManager[None]] = nullcontext

    def for_operation(self, cloud: Cloud, operation: Operation) -> None:
        """Poll an operation until it succeeds.

        While the cloud throttles the reads, they become rarer, as the operation itself goes on.

        Raises:
            GpukubeError: The operation failed, as the provider's error class (CapacityError, QuotaError, ...).
            WaitTimeout: The deadline passed; the cloud keeps working.
            Stopped: The run was stopped.
        """
        last, throttled_s = "", 0.0
        while True:
            try:
                progress = cloud.poll(operation)
            except Throttled as error:
                if not throttled_s:
                    self.notify(f"waiting: {error}")
                throttled_s = min(2 * throttled_s or self.poll_s, self.ceiling_s)
                self.pause(throttled_s, f"{operation.pool} cannot be read: {error}")
                continue
            throttled_s = 0.0
            if progress.error is not None:
                raise progress.error
            if progress.done:
                return
            if progress.status != last:
                last = progress.status
                self.notify(last)
            pause = self.poll_s if progress.retry_after_s is None else progress.retry_after_s
            self.pause(pause, f"{operation.pool} is still {last or 'busy'}")

    def send(self, cloud: Cloud, request: Request) -> Operation:
        """Send a change; while the cluster is busy with another operation, wait and retry.

        Raises:
            Conflict: Any conflict other than Busy; the caller must read the pool, then decide.
            WaitTimeout: The cluster stayed busy until the deadline.
            Stopped: The run was stopped.
        """
        # The pool's own operation has ended. Others may start one on the cluster between any read and this call.
        while True:
            try:
                with self.sending():
                    operation = cloud.send(request)
            except Busy as error:
                self.notify(f"waiting: {error}")
                self.pause(self.poll_s, "the cluster is still busy with another operation")
            else:
                if operation.warning:
                    self.notify(f"warning: {operation.warning}")
                return operation

    def pause(self, seconds: float, what: str) -> None:
        """Wait, at most until the deadline.

        Raises:
            WaitTimeout: The deadline has already passed.
            Stopped: The run was stopped.
        """
        left = self.deadline - self.clock.now()
        if left <= 0:
            raise WaitTimeout(f"timed out: {what}", fix=f"the cloud keeps working; to resume: {self.resume}")
        self.clock.wait(min(max(seconds, SHORTEST_S), self.ceiling_s, left))
