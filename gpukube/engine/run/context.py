"""The circumstances of one run: how the world is reached, how fast, who listens. Read by all of the engine."""

from __future__ import annotations

import math
import os
import threading
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
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Settings
    from gpukube.engine.run.clock import Clock
    from gpukube.engine.run.events import Listener, Phase


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take.

    Attributes:
        timeout_s: For the whole command.
        poll_s: Between two looks at the cloud or the cluster when neither says.
        settle_s: How long a broken state of a new pool may last before it counts: pods crash while a node
            reboots for its MIG cut, and recover.
        verify_s: How long nodes may take to show their GPUs once the cloud says that the pool is there.
    """

    timeout_s: float = 3600.0
    poll_s: float = 10.0
    settle_s: float = 120.0
    verify_s: float = 1500.0

    def with_timeout(self, seconds: float) -> Pace:
        """Return the whole command another limit."""
        return replace(self, timeout_s=seconds)


OVERTIME_S = 5.0
"""Beyond the run's timeout, which ends waits: the last look, and a change on its way, still get an answer."""
QUICK = Pace(poll_s=0.1, settle_s=6.0, verify_s=90.0)
"""For clouds whose time runs faster."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the engine needs besides the spec.

    Attributes:
        settings: How clouds are reached.
        chart: Where the device-plugin chart comes from.
        environ: Environment for child processes (the helm command).
        resume: The command line that takes up this run again.
        follow: The command line that waits for what this run began and does not wait for; "" when it is `resume`.
        spec_options: What names the spec, or the cluster and the owner, on a command line: "-f pools.yaml".
        parallelism: Clusters at once.
        no_wait: Return when the clouds have taken the calls; `pool wait` waits and proves.
        fail_fast: After the first failure begin nothing more; what has begun is finished.
        sent: What is known of the calls that this run has sent.
        standing: By cluster and pool what a drain has left that was stopped, and the way back.
        began: When the run was made, by its clock; the command's timeout counts from here, whatever the stage.
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
    began: float = field(init=False)
    _failed: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        """Start the command's timeout."""
        object.__setattr__(self, "began", self.clock.now())

    @property
    def end(self) -> float:
        """When the command's timeout is over, by the run's clock."""
        return self.began + self.pace.timeout_s

    @property
    def calls(self) -> Calls:
        """What makes every call of a cloud or a cluster, and ends it with the run."""
        return Calls(self.clock, self.last_call, self.resume)

    @property
    def last_call(self) -> float:
        """When the last call is given up; never in a run that does not wait (`verify` without a timeout)."""
        return self.end + OVERTIME_S if self.pace.timeout_s else math.inf

    @property
    def is_over(self) -> bool:
        """Whether nothing may begin any more: the run was stopped, or its timeout and the overtime are over."""
        return self.clock.stopped or self.clock.now() >= self.last_call

    @property
    def given_up(self) -> bool:
        """Whether something failed and the rest shall not begin."""
        return self.fail_fast and self._failed.is_set()

    def note_failure(self) -> None:
        """Remember that something failed."""
        self._failed.set()

    @property
    def chart_version(self) -> str:
        """Version of a local chart, which is what it is; "" for others, which are pulled by the version planned."""
        return local_chart(Path(self.chart.location)).version if self.chart.kind == "local" else ""

    def wait(self, resume: str, notify: Callable[[str], None], limit_s: float | None = None) -> Wait:
        """Make a wait that starts now and ends with the command at the latest.

        Args:
            resume: The command that takes it up again.
            notify: Told what happens meanwhile.
            limit_s: Seconds it may take; what is left of the command's timeout when None.
        """
        deadline = self.end if limit_s is None else min(self.end, self.clock.now() + limit_s)
        return Wait(self.clock, deadline, self.pace.poll_s, notify, resume)

    def report(self, phase: Phase, message: str, cluster: str, pool: str = "") -> None:
        """Emit one event."""
        self.listen(Event(self.clock.now(), cluster, pool, phase, message))


def chart_source(location: str) -> ChartSource:
    """Return where the device-plugin chart comes from; "" for NVIDIA's repository and the pinned version.

    Raises:
        SpecError: A local place that holds no chart, or an address of another kind; looked at now, before any call.
    """
    source = ChartSource(location) if location else ChartSource()
    if source.kind == "local":
        # Not echoed: whoever misspells a scheme has written an address, which may hold a password.
        if looks_like_address(location) and not os.path.lexists(location):
            raise SpecError(
                "there is no such file, and no such kind of address",
                where=Where("--chart"),
                fix="write https://, http:// or oci://, or the path of a directory or archive",
                code="chart-not-found",
            )
        try:
            local_chart(Path(location))
        except HelmError as error:
            raise SpecError.of(error.diagnostics) from error
    return source
