"""Body of `gpukube pool export`: read the pools of a spec or of a live cluster, and write them for another tool."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpukube.cli.stage import open_job
from gpukube.cli.stderr import write_stderr
from gpukube.core.exporting import ExportedPool
from gpukube.engine import looking
from gpukube.engine.exporting import export_text, exported_cluster, exporter_of, live_pools, require_live, targets
from gpukube.engine.importing import chosen_pools, import_desired, spec_name
from gpukube.engine.plan.planning import Scope
from gpukube.engine.run.session import open_sessions
from gpukube.errors import SpecError, Where
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.core.exporting import Exporter
    from gpukube.engine.run.session import Session


def export(choices: Choices, target: str) -> None:
    """Write pools for another tool."""
    if target not in targets():
        message = f'"{target}" is not an export target' if target else "no target given"
        fix = f"set --to to one of {', '.join(targets())}"
        raise SpecError(message, where=Where("--to"), fix=fix, code="export-target")
    with open_job(choices, "PoolList") as job:
        cluster = exported_cluster(job.prepared)
        exporter = exporter_of(load_provider(cluster.provider), target)  # before any call
        if job.prepared.addressed:
            require_live(exporter, target, choices.clusters)
        with open_sessions([cluster], job.run) as sessions:
            session = sessions[cluster.key]
            pools = _live(choices, job, session) if job.prepared.addressed else _desired(job, session, exporter)
    if not pools:
        write_stderr(f"{cluster.name} has no GPU pools")
        return
    sys.stdout.write(export_text(cluster, target, pools))


def _desired(job: Job, session: Session, exporter: Exporter) -> tuple[ExportedPool, ...]:
    """Fill in what the spec leaves to the live cluster, as plan does; makes no call if nothing is missing."""
    # A filter selects a family as a whole; an export may be of one of its pools.
    takes = job.prepared.filters.takes_pool
    desired = [one for one in job.prepared.desired[session.cluster.key] if takes(one.target.pool)]
    return tuple(ExportedPool(session.cloud.complete(one) if exporter.is_open(one) else one) for one in desired)


def _live(choices: Choices, job: Job, session: Session) -> tuple[ExportedPool, ...]:
    (plan,) = looking.plan_clusters(job.prepared, {session.cluster.key: session}, job.run, Scope())
    if plan.error is not None:
        raise plan.error
    owner = spec_name(plan.cluster.name)
    found, left_out = import_desired(plan, session, chosen_pools(plan, choices.pools), owner)
    for name, why in left_out.items():
        write_stderr(f"warning: skipped {name}: {why}")
    return live_pools(session, found)
