"""Better alternatives shown with a plan: --live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.capacity.better import with_better
from gpukube.capacity.finding import Line, short_timeout
from gpukube.cli.stderr import write_stderr
from gpukube.engine.run.calls import Calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.engine.plan.planning import ClusterPlan

_SECONDS: Final = 60.0
"""How long all clouds together may take; what has not responded by then is `not told`."""


def with_alternatives(choices: Choices, job: Job, plans: Sequence[ClusterPlan]) -> tuple[ClusterPlan, ...]:
    """Add a hint for each better alternative that may get machines now.

    Raises:
        Stopped: The run was stopped.
    """
    run = job.run
    for plan in plans:
        if any(pool.family and pool.family.turn and pool.family.role == "holder" for pool in plan.pools):
            run.report("check", "reading available machines", plan.cluster.key)
    calls = Calls(run.clock, run.clock.now() + _SECONDS, run.resume)
    line = Line(short_timeout(run.settings), run.clock, calls, {})
    found = with_better(plans, line, f"gpukube pool apply {run.spec_options}")
    with job.progress.paused():
        for note in found.notes if choices.verbose else ():
            write_stderr(f"note: {note}")
    return found.plans
