"""Context of one run for all of the engine: how to reach clouds, how fast, and who receives events."""

from __future__ import annotations

import math
import os
import threading
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.cluster.helm.chart import ChartSource, local_chart
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.clock import SystemClock
from gpukube.engine.run.events import Event, ignore
from gpukube.engine.run.sent import SentCalls
from gpukube.engine.run.wait import Wait
from gpukube.errors import HelmError, SpecError, Where
from gpukube.masking import looks_like_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpukube.cluster.names import ReleaseKind
    from gpukube.core.values import Settings
    from gpukube.engine.run.clock import Clock
    from gpukube.engine.run.events import Listener, Phase


@dataclass(frozen=True, slots=True)
class Pace:
    """Time limits and intervals.

    Attributes:
        timeout_s: Limit for the whole command.
        poll_s: Interval between reads if neither cloud nor cluster specifies one.
        settle_s: How long a new pool may stay broken before that counts: pods crash while a node reboots for its MIG
            configuration, and recover.
        verify_s: How long nodes may take to advertise their GPUs once the cloud has reported the pool.
        quiet_s: How long a cloud may go on failing to launch machines, without launching one, before it has none.
        capacity_s: How long a pool with alternatives may wait for its machines; None for what its cloud needs.
        speed: By how much the clouds' time is accelerated.
    """

    timeout_s: float = 3600.0
    poll_s: float = 10.0
    settle_s: float = 120.0
    verify_s: float = 1500.0
    quiet_s: float = 180.0
    capacity_s: float | None = None
    speed: float = 1.0

    def with_timeout(self, seconds: float) -> Pace:
        """Return a copy with another limit for the whole command."""
        return replace(self, timeout_s=seconds)


def _allow() -> None:
    """Let a call be sent."""


OVERTIME_S = 5.0
"""Seconds beyond the timeout, which ends waits: the last read, and a change in flight, still get a response."""
QUICK = Pace(poll_s=0.1, settle_s=6.0, verify_s=90.0, quiet_s=3.0, speed=60.0)
"""Pace for clouds with accelerated time."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the engine needs in addition to the spec.

    Attributes:
        settings: How to reach clouds.
        chart: Where the device-plugin chart comes from.
        environ: Environment for child processes (the helm command).
        resume: Command line that resumes this run.
        follow: Command line that waits for what this run started without waiting; "" if it is `resume`.
        spec_options: Command-line options that select the spec, or the cluster and the owner: "-f pools.yaml".
        parallelism: Number of clusters at once.
        no_wait: Return once the clouds have accepted the calls; `pool wait` waits and verifies.
        fail_fast: Start nothing more after the first failure; what has started is finished.
        sent: State of the calls that this run has sent.
        standing: By cluster and pool the state a stopped drain has left, and how to undo it.
        guard: Called right before each call that changes a pool; raises if the run may not send it any more.
        began: Time of the run's clock when the run was created; the command's timeout counts from here in all phases.
    """

    settings: Settings
    chart: ChartSource
    environ: Mapping[str, str]
    resume: str
    pace: Pace = Pace()
    parallelism: int = 8
    follow: str = ""
    spec_options: str = ""
    no_wait: bool = False
    fail_fast: bool = False
    clock: Clock = field(default_factory=SystemClock)
    listen: Listener = ignore
    sent: SentCalls = field(default_factory=SentCalls, init=False)
    standing: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    guard: Callable[[], None] = field(default=_allow, init=False)
    began: float = field(init=False)
    _failed: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        """Start the command's timeout."""
        object.__setattr__(self, "began", self.clock.now())

    @property
    def end(self) -> float:
        """Time of the run's clock at which the command times out."""
        return self.began + self.pace.timeout_s

    def limited(self, seconds: float) -> Run:
        """Return this run with less time for its waits; it shares everything else, such as the state of its calls."""
        left = min(self.pace.timeout_s, self.clock.now() - self.began + seconds)
        return self._with("pace", self.pace.with_timeout(left))

    def guarded(self, guard: Callable[[], None]) -> Run:
        """Return this run with a guard of its changes; it shares everything else."""
        return self._with("guard", guard)

    def _with(self, name: str, value: object) -> Run:
        other = copy(self)
        object.__setattr__(other, name, value)
        return other

    @property
    def calls(self) -> Calls:
        """Caller for every call to a cloud or a cluster; ends them with the run."""
        return Calls(self.clock, self.last_call, self.resume)

    @property
    def last_call(self) -> float:
        """Time at which the last call is abandoned; infinite if the run has no timeout (`verify` without --timeout)."""
        return self.end + OVERTIME_S if self.pace.timeout_s else math.inf

    @property
    def is_over(self) -> bool:
        """Whether nothing may start any more: the run was stopped, or the timeout and the overtime have passed."""
        return self.clock.stopped or self.clock.now() >= self.last_call

    @property
    def given_up(self) -> bool:
        """Whether something failed and the rest must not start."""
        return self.fail_fast and self._failed.is_set()

    def note_failure(self) -> None:
        """Record that something failed."""
        self._failed.set()

    def chart_version(self, kinds: Iterable[ReleaseKind]) -> str:
        """Return the version of a local chart of these kinds, which is fixed; "" for charts that are pulled."""
        if self.chart.kind != "local":
            return ""
        chart = local_chart(Path(self.chart.location))
        return chart.version if chart.name in [kind.chart for kind in kinds] else ""

    def wait(self, resume: str, notify: Callable[[str], None], limit_s: float | None = None) -> Wait:
        """Return a wait that starts now and ends with the command at the latest.

        Args:
            resume: The command that resumes it.
            notify: Called with progress messages.
            limit_s: Maximum seconds; None for the rest of the command's timeout.
        """
        deadline = self.end if limit_s is None else min(self.end, self.clock.now() + limit_s)
        return Wait(self.clock, deadline, self.pace.poll_s, notify, resume)

    def report(self, phase: Phase, message: str, cluster: str, pool: str = "") -> None:
        """Emit one event."""
        self.listen(Event(self.clock.now(), cluster, pool, phase, message))


def chart_source(location: str) -> ChartSource:
    """Return the source of the charts; "" means where they are published, and the pinned versions.

    Raises:
        SpecError: The local path has no chart, or the address has another scheme; checked now, before any call.
    """
    source = ChartSource(location) if location else ChartSource()
    if source.kind == "local":
        # Do not echo it: a misspelled scheme may be followed by an address with a password.
        if looks_like_address(location) and not os.path.lexists(location):
            raise SpecError(
                "there is no such file, and the address has no known scheme",
                where=Where("--chart"),
                fix="write https://, http:// or oci://, or the path of a directory or archive",
                code="chart-not-found",
            )
        try:
            local_chart(Path(location))
        except HelmError as error:
            raise SpecError.of(error.diagnostics) from error
    return source
