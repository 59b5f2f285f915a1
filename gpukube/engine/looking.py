"""Reads and plans the clusters; contains the commands that do no more, with their exit codes.

Changes nothing. Clusters are read in parallel; one that fails does not stop the others. Out of scope: commands that
make changes (commands).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.engine.documents.listing import used_devices
from gpukube.engine.plan.losses import with_costs
from gpukube.engine.plan.planning import ClusterPlan, Scope, plan_outside
from gpukube.engine.run.calls import reading_responses
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.session import open_sessions
from gpukube.errors import ChartNotFound, ExitCode, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

    OutsideKnown: TypeAlias = Callable[[ClusterPlan, Session], None]


def nothing_to_read(plan: ClusterPlan, session: Session) -> None:
    """Read nothing in addition to a cluster."""


def plan(prepared: Prepared, run: Run, scope: Scope = Scope()) -> tuple[ClusterPlan, ...]:
    """Plan the clusters of the run's pools, with `scope.prune` all clusters; changes nothing."""
    prepared = prepared if scope.prune else prepared.narrowed()
    with open_sessions(prepared.clusters.values(), run) as sessions:
        plans = plan_clusters(prepared, sessions, run, scope)
        if not scope.quotas:
            return plans
        from gpukube.engine.plan.quotas import with_quotas  # noqa: PLC0415 - for plans, not for diffs

        return with_quotas(plans, sessions, scope, run.parallelism)


def survey(
    prepared: Prepared, run: Run, *, skip_cluster: bool = False
) -> tuple[tuple[ClusterPlan, ...], dict[str, dict[str, dict[str, int]]]]:
    """Read all clusters for a listing.

    Returns:
        The plans, and per cluster key and node the devices in use; without clusters that could not be read.
    """
    with open_sessions(prepared.clusters.values(), run) as sessions:
        plans = plan_clusters(prepared, sessions, run, Scope(skip_cluster=skip_cluster))
        tasks = {p.cluster.key: partial(_usage, p.seen, sessions[p.cluster.key].kube()) for p in plans if p.seen}
        found = run_all(tasks, run.parallelism)
    return plans, {key: usage for key, usage in found.items() if not isinstance(usage, GpukubeError)}


def _usage(seen: Snapshot, kube: Kube) -> dict[str, dict[str, int]]:
    """Return the devices in use, by node; claims are read only where NVIDIA's DRA driver publishes devices."""
    from gpukube.cluster.kube.api_types import RESOURCE_CLAIMS  # noqa: PLC0415 - only for lists
    from gpukube.cluster.state.published import held_devices, published  # noqa: PLC0415 - as above

    there = published(seen.slices)
    claims = kube.objects(RESOURCE_CLAIMS) or () if there else ()
    return used_devices(kube.pods(), held_devices(there, claims))


def plan_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """Return 0 if every cluster was read, also inside if requested; else the only cause's code, or 1 for several.

    Part of a plan is not a plan: whoever applies it, or posts it, must notice.
    """
    errors = [error for plan in plans if (error := plan.error or plan.unreachable) is not None]
    codes = {error.exit_code for error in errors} or {ExitCode.DONE}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def survey_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """Return 0 if every cloud could be read, 3 if some could, else the cause's own code."""
    errors = [plan.error for plan in plans if plan.error is not None]
    if errors and len(errors) < len(plans):
        return ExitCode.PARTLY_DONE
    codes = {error.exit_code for error in errors} or {ExitCode.DONE}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def diff_exit_code(plans: Sequence[ClusterPlan], *, skip_cluster: bool) -> ExitCode:
    """Return 0 without differences, 2 with; if a cluster could not be read, the code of `plan_exit_code`."""
    read = [replace(plan, unreachable=None) if skip_cluster else plan for plan in plans]
    if (code := plan_exit_code(read)) is not ExitCode.DONE:
        return code
    return ExitCode.DIFFERS if any(plan.differs for plan in plans) else ExitCode.DONE


def plan_clusters(
    prepared: Prepared,
    sessions: Mapping[str, Session],
    run: Run,
    scope: Scope = Scope(),
    outside_known: OutsideKnown = nothing_to_read,
) -> tuple[ClusterPlan, ...]:
    """Plan every cluster, in the order of the spec.

    Args:
        prepared: The declared pools.
        sessions: Sessions of the clusters, by key.
        run: The run.
        scope: Scope of the plans.
        outside_known: Called per cluster with the plan from its cloud, before its inside is read.

    Raises:
        SpecError: An argument of --accept-loss accepts nothing.
    """
    tasks = {
        key: partial(_plan_cluster, session, prepared, run, scope, outside_known) for key, session in sessions.items()
    }
    found = run_all(tasks, run.parallelism)
    plans = tuple(
        ClusterPlan(prepared.clusters[key], error=plan, desired=prepared.desired[key])
        if isinstance(plan, GpukubeError)
        else plan
        for key, plan in found.items()
    )
    if any(pool.target.family for pools in prepared.desired.values() for pool in pools):
        from gpukube.engine.plan.families import with_families  # noqa: PLC0415 - only for pools with alternatives

        plans = with_families(plans, sessions)
    if scope.accept_loss:
        from gpukube.engine.plan.lost_members import require_lost  # noqa: PLC0415 - only with --accept-loss

        require_lost(plans, scope.accept_loss)
    return plans


def _plan_cluster(
    session: Session, prepared: Prepared, run: Run, scope: Scope, outside_known: OutsideKnown
) -> ClusterPlan:
    # Values of a response are used long after it arrived: attribute any problem with them to this cluster.
    with reading_responses(session.provider.spec.title, session.cluster.key, "reading its pools"):
        plan = _look_at_cluster(session, prepared, run, scope, outside_known)
        if any(pool.observed and pool.action in ("replace", "create") for pool in plan.pools):
            from gpukube.engine.plan.lost_members import with_losses  # noqa: PLC0415 - only for replacements

            plan = with_losses(plan, session.provider, scope.accept_loss)
        if any(pool.replacement for pool in plan.pools):
            from gpukube.engine.plan.replacing import with_replacements  # noqa: PLC0415 - reads nodes and quotas

            plan = with_replacements(plan, session, scope)
        if any(one.target.family and one.target.nodes.autoscaled for one in plan.desired):
            from gpukube.engine.plan.orders import with_orders  # noqa: PLC0415 - only for autoscaled families

            plan = with_orders(plan, session)
        return plan


def _look_at_cluster(
    session: Session, prepared: Prepared, run: Run, scope: Scope, outside_known: OutsideKnown
) -> ClusterPlan:
    outside = plan_outside(session, prepared, run, scope)
    outside_known(outside, session)
    if scope.skip_cluster:
        return replace(outside, pools=with_costs(outside.pools, None, None), unknown="skipped (--skip-cluster)")
    run.report("check", "reading the cluster", session.cluster.key)
    from gpukube.engine.plan.inside import plan_inside  # noqa: PLC0415 - loads most of the package `cluster`

    try:
        return plan_inside(outside, session, prepared, run, scope)
    except GpukubeError as error:
        pools = with_costs(outside.pools, None, None)
        # A user's mistake is a finding of the plan, with its fix; an unreachable cluster is a state.
        found = error.diagnostics if isinstance(error, ChartNotFound) else ()
        diagnostics = (*outside.diagnostics, *found)
        return replace(outside, pools=pools, unknown=_with_cause(error), unreachable=error, diagnostics=diagnostics)


def _with_cause(error: GpukubeError) -> str:
    """Describe an error with its cause: a certificate, a name that does not resolve."""
    why = error.diagnostics[0].why
    return f"{error}: {why}" if why else str(error)
