"""Body of `gpukube pool import`: read a cluster, write the spec of its pools, report what a spec cannot express."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpukube.cli.stage import open_job
from gpukube.cli.stderr import write_stderr
from gpukube.engine import looking
from gpukube.engine.importing import chosen_pools, import_cluster, spec_name
from gpukube.engine.plan.planning import Scope
from gpukube.engine.run.session import open_sessions
from gpukube.errors import SpecError, Where
from gpukube.spec.address import ADDRESS_FORMS, is_address

if TYPE_CHECKING:
    from gpukube.cli.options import Choices


def import_pools(choices: Choices) -> None:
    """Write the spec of a live cluster's pools."""
    if len(choices.clusters) != 1 or not is_address(choices.clusters[0]):
        fix = f"add --cluster ADDRESS: {', '.join(ADDRESS_FORMS)}"
        raise SpecError("import needs the address of one cluster", where=Where("--cluster"), fix=fix, code="address")
    with open_job(choices, "PoolList") as job, open_sessions(job.prepared.clusters.values(), job.run) as sessions:
        (plan,) = looking.plan_clusters(job.prepared, sessions, job.run, Scope())
        if plan.error is not None:
            raise plan.error
        session = sessions[plan.cluster.key]
        owner = choices.owners[-1] if choices.owners else spec_name(plan.cluster.name)
        imported = import_cluster(plan, session, chosen_pools(plan, choices.pools), owner)
    if not imported.pools and not imported.left_out:
        write_stderr(f"{plan.cluster.name} has no GPU pools")
        return
    sys.stdout.write(imported.text)
    for name, why in imported.left_out.items():
        write_stderr(f"warning: skipped {name}: {why}")
    for name, fields in imported.differing.items():
        write_stderr(f"warning: {name} differs from the spec: {', '.join(fields)}")
