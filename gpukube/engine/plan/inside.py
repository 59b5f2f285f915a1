"""Reads a cluster and plans its content: the releases that advertise the GPUs, node labels, other advertisers.

Changes nothing. Only runs that read clusters import it (looking): it loads most of the package `cluster`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.helm.choice import choose_engine
from gpukube.cluster.names import DRA_KINDS, RELEASE_KINDS, kind_of
from gpukube.cluster.release.adoption import adoptable_releases, still_foreign
from gpukube.cluster.release.charts import ChartCache
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.reach import check_reach
from gpukube.cluster.state.advertisers import check_advertisers, check_second_release, find_advertisers
from gpukube.cluster.state.fabric import check_fabrics
from gpukube.cluster.state.installers import check_installers
from gpukube.cluster.state.nfd import find_nfd, nfd_warnings
from gpukube.cluster.state.node_drift import node_repairs, nodes_of_pool
from gpukube.cluster.state.scaling import scaler_warnings
from gpukube.cluster.state.snapshot import look
from gpukube.core.plan import keep_failed_pool
from gpukube.engine.plan.blocked import with_blockers
from gpukube.engine.plan.drain_forecast import with_drain_forecasts
from gpukube.engine.plan.losses import with_costs
from gpukube.engine.plan.ownership import carries_operator, has_operator
from gpukube.engine.plan.planning import with_pools
from gpukube.engine.plan.upgrades import with_unfinished
from gpukube.errors import ChartNotFound, HelmError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import ClusterFacts, Desired, Observed, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan, Scope
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.errors import Finding
    from gpukube.provider import Provider


def plan_inside(outside: ClusterPlan, session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    """Read a cluster whose pools were planned from its cloud, and complete the plan with both."""
    kube = session.kube()
    seen = look(kube)
    if has_operator(seen) != carries_operator(outside.live):  # the cluster is more reliable than the labels of pools
        outside = with_pools(outside, session, prepared, scope, operator_live=has_operator(seen))
    pools = tuple(_by_nodes(pool, session.provider, outside.facts, seen) for pool in outside.pools)
    plan_it = partial(plan_release, outside.desired, seen, live_pools=outside.live)
    plan_plugin = partial(
        plan_it,
        chart_version=run.chart_version(RELEASE_KINDS),
        migrate=scope.migrate_release,
        adopt=adoptable_releases(kube, seen) if scope.adopt_release else (),
    )
    plans = (
        plan_plugin(retire=scope.retire),
        plan_it(kinds=DRA_KINDS, chart_version=run.chart_version(DRA_KINDS)),
    )
    (release, unpinned), (dra_release, unpinned_too) = (_pinned(plan, run, scope) for plan in plans)
    first = replace(plan_plugin(retire=False), digest=release.digest)
    staying = _without_leaving(seen, pools)
    found = (
        *outside.diagnostics,
        *release.diagnostics,
        *dra_release.diagnostics,
        *unpinned,
        *unpinned_too,
        *_foreign(staying, outside.desired, release),
        *_features(seen, outside.desired),
        *check_reach(release, outside.desired),
        *check_reach(dra_release, outside.desired),
        *scaler_warnings(seen, outside.desired),
        *check_fabrics(staying, outside.desired),
        *check_installers(seen, outside.desired),
        *check_second_release(seen, outside.desired),
    )
    suffering = with_drain_forecasts(with_costs(pools, seen, kube), session, kube, run.clock.now())
    return replace(
        outside,
        pools=tuple(with_blockers(pool, seen, kube, run.clock.now()) for pool in suffering),
        seen=seen,
        release=release,
        first=first,
        dra_release=dra_release,
        repairs=node_repairs(pools, seen),
        diagnostics=found,
    )


def _by_nodes(pool: PoolPlan, provider: Provider, facts: ClusterFacts | None, seen: Snapshot) -> PoolPlan:
    """Plan a pool by its nodes: a failed pool may still run pods, and be partly upgraded."""
    nodes = nodes_of_pool(seen, pool.observed) if pool.observed else ()
    if nodes:
        kept = keep_failed_pool(provider, pool)
        pool = kept if kept is pool else replace(kept, upgrade=pool.upgrade)
    return with_unfinished(pool, provider.extras.upgrades, facts, nodes) if provider.extras.upgrades and facts else pool


def _pinned(release: ReleasePlan, run: Run, scope: Scope) -> tuple[ReleasePlan, tuple[Finding, ...]]:
    """Pin the plan to the digest of its chart if required; warn if it cannot be fetched from here, as apply does it.

    Raises:
        ChartNotFound: The version does not exist, so apply cannot succeed.
    """
    untested = scope.check_chart and release.version != release.kind.version
    if release.action not in ("install", "upgrade") or not (scope.pin or untested):
        return release, ()
    try:
        engine = choose_engine(run.environ, stopped=lambda: run.is_over)
        with closing(ChartCache(engine, run.chart)) as charts:
            return replace(release, digest=charts.digest(release)), ()
    except ChartNotFound:
        raise
    except (HelmError, MissingExtra) as error:
        return release, tuple(replace(found, severity="warning") for found in error.diagnostics)


def _without_leaving(seen: Snapshot, pools: Sequence[PoolPlan]) -> Snapshot:
    """Omit nodes that are deleted before those of their pool are created again: their plugin is not a conflict.

    For example, a pool with a cloud's own plugin is replaced by one that gpukube's release serves, or the other way
    round.
    """
    leaving = [pool.observed for pool in pools if pool.observed and _leaves(pool, pool.observed)]
    names = {node.name for observed in leaving for node in nodes_of_pool(seen, observed)}
    return replace(seen, nodes=tuple(node for node in seen.nodes if node.name not in names))


def _leaves(pool: PoolPlan, observed: Observed) -> bool:
    return pool.action == "replace" or observed.state == "deleting"


def _foreign(seen: Snapshot, desired: Sequence[Desired], release: ReleasePlan) -> list[Finding]:
    return check_advertisers(still_foreign(find_advertisers(seen, desired), release.leaves), desired)


def _features(seen: Snapshot, desired: Sequence[Desired]) -> list[Finding]:
    """Check an existing NFD: whether its workers run on gpukube's nodes."""
    served = [expected for expected in desired if kind_of(expected.ownership.advertiser)]
    nfd = find_nfd(seen)
    return nfd_warnings(nfd, served) if nfd and served else []
