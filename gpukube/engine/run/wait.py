"""Waiting for the cloud, with an injected clock. Ctrl-C stops the wait, never the cloud."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.errors import Busy, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gpukube.core.values import Operation, Request
    from gpukube.engine.run.clock import Clock
    from gpukube.provider import Cloud

SHORTEST_S = 0.02
"""Between two looks, even when the cloud says 0: a loop must not spin."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long and how often to ask, and whom to tell.

    Attributes:
        clock: The run's clock; its stop raises Stopped from every wait.
        deadline: Seconds since the epoch, by that clock.
        poll_s: Seconds between looks when the cloud does not say.
        notify: Told the cloud's own word whenever it changes.
        resume: The command that takes up the wait again.
        ceiling_s: Never pause longer than this between looks, whatever the cloud says.
        sending: Entered around each call that is sent, so that one which is abandoned is known to be in flight.
    """

    clock: Clock
    deadline: float
    poll_s: float
    notify: Callable[[str], None]
    resume: str
    ceiling_s: float = 120.0
    sending: Callable[[], AbstractContextManager[None]] = nullcontext

    def for_operation(self, cloud: Cloud, operation: Operation) -> None:
        """Poll an operation until it ended well.

        Raises:
            GpukubeError: The operation failed; the provider's own class (CapacityError, QuotaError, ...).
            WaitTimeout: The deadline passed; the cloud keeps working.
            Stopped: The run was stopped.
        """
        last = ""
        while True:
            progress = cloud.poll(operation)
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
        """Send a change; while the cluster is busy with another operation, wait and try again.

        Raises:
            Conflict: Any other than Busy: the caller must observe, then decide.
            WaitTimeout: The cluster stayed busy until the deadline.
            Stopped: The run was stopped.
        """
        # A pool's own operation was waited for; the cluster's are others', and may begin between any look and our call.
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
        """Let time pass, at most until the deadline.

        Raises:
            WaitTimeout: The deadline had passed already.
            Stopped: The run was stopped.
        """
        left = self.deadline - self.clock.now()
        if left <= 0:
            raise WaitTimeout(f"timed out: {what}", fix=f"the cloud keeps working; to resume: {self.resume}")
        self.clock.wait(min(max(seconds, SHORTEST_S), self.ceiling_s, left))
