"""Looks at the clusters and plans each: the pools, and the one release that makes them advertise.

Nothing is changed here. Clusters are looked at in parallel; one that fails does not stop the others.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.advertisers import check_advertisers, find_advertisers
from gpukube.cluster.helm_choice import choose_engine
from gpukube.cluster.names import GPU_OPERATOR, kind_of
from gpukube.cluster.nfd import find_nfd, nfd_warnings
from gpukube.cluster.nodes_drift import node_repairs, nodes_of_pool
from gpukube.cluster.reach_plan import check_reach
from gpukube.cluster.release_adoption import adoptable_releases, still_foreign
from gpukube.cluster.release_chart import ChartShelf
from gpukube.cluster.release_plan import plan_release
from gpukube.cluster.sighting import look
from gpukube.core.owners import check_kubernetes
from gpukube.core.plan import plan_pool, plan_removal, spare_living
from gpukube.engine.fanout import run_all
from gpukube.engine.losses import with_costs
from gpukube.engine.owners import carries_operator, has_operator
from gpukube.errors import ChartNotFound, CloudError, GpukubeError, HelmError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.nodes_drift import NodeRepair
    from gpukube.cluster.release_plan import ReleasePlan
    from gpukube.cluster.sighting import Sighting
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, Observed, PoolPlan
    from gpukube.engine.prepare import Prepared
    from gpukube.engine.run import Run
    from gpukube.engine.session import Session
    from gpukube.errors import Finding


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a plan reaches.

    Attributes:
        skip_cluster: Look at the pool APIs only.
        adopt: Give our marks to pools that nobody owns.
        adopt_from: Owners whose pools are adopted too where only the copy of the marks names them.
        prune: Delete pools of these owners that the specs no longer declare.
        retire: Drop config entries of the release that nothing names any more.
        migrate_release: Our other release may be taken away where the pools need this one.
        adopt_release: A release of the plugin's chart that the user made may be taken over.
        pin: Fetch the chart that would be installed, and hold the plan to its digest.
        check_chart: Fetch it where its version is not the tested one, since such a version may not exist.
    """

    skip_cluster: bool = False
    adopt: bool = False
    adopt_from: tuple[str, ...] = ()
    prune: bool = False
    retire: bool = True
    migrate_release: bool = False
    adopt_release: bool = False
    pin: bool = False
    check_chart: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """What will happen on one cluster.

    Attributes:
        cluster: Which.
        facts: What the cloud says of it; None when it could not be asked.
        pools: Plans of the declared pools, then those of pools to prune.
        live: All live pools, of all owners.
        undeclared: Live pools of these owners that the spec no longer declares and that stay.
        seen: The inside of the cluster; None when it was skipped or could not be reached.
        release: The device-plugin chart or the GPU Operator; None when `seen` is.
        first: The release as it is brought before the pools are: with every entry that is there. Entries are dropped
            when the pools are done, by what is named then; None when `seen` is.
        repairs: Labels and taints of ours that live nodes have lost.
        unknown: Why the inside is not known; "" when it is.
        unreachable: The error behind `unknown`; None when the inside was skipped or is known.
        diagnostics: Findings that concern more than one pool's API: foreign advertisers, the release, cluster state.
        error: Why the cluster could not be planned at all.
        desired: The declared pools, also when nothing could be asked.
    """

    cluster: ClusterRef
    facts: ClusterFacts | None = None
    pools: tuple[PoolPlan, ...] = ()
    live: tuple[Observed, ...] = ()
    undeclared: tuple[Observed, ...] = ()
    seen: Sighting | None = None
    release: ReleasePlan | None = None
    first: ReleasePlan | None = None
    repairs: tuple[NodeRepair, ...] = ()
    unknown: str = ""
    unreachable: GpukubeError | None = None
    diagnostics: tuple[Finding, ...] = ()
    error: GpukubeError | None = None
    desired: tuple[Desired, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the declared and the live differ, inside the cluster too where that is known."""
        pools = any(pool.action != "no-op" for pool in self.pools)
        release = self.release is not None and self.release.action in ("install", "upgrade", "conflict")
        return pools or release or bool(self.repairs) or bool(self.undeclared)


def plan_clusters(
    prepared: Prepared, sessions: Mapping[str, Session], run: Run, scope: Scope = Scope()
) -> tuple[ClusterPlan, ...]:
    """Plan every cluster, in the order of the spec."""
    tasks = {key: partial(_plan_cluster, session, prepared, run, scope) for key, session in sessions.items()}
    plans = run_all(tasks, run.parallelism)
    return tuple(
        ClusterPlan(prepared.clusters[key], error=plan, desired=prepared.desired[key])
        if isinstance(plan, GpukubeError)
        else plan
        for key, plan in plans.items()
    )


def _plan_cluster(session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    outside = _plan_outside(session, prepared, run, scope)
    if scope.skip_cluster:
        return replace(outside, pools=with_costs(outside.pools, None, None), unknown="skipped (--skip-cluster)")
    run.tell("check", "looks into the cluster", session.cluster.key)
    try:
        return _plan_inside(outside, session, prepared, run, scope)
    except GpukubeError as error:
        pools = with_costs(outside.pools, None, None)
        # The user's own mistake is a finding of the plan, with its fix; that a cluster is out of reach is its state.
        found = error.diagnostics if isinstance(error, ChartNotFound) else ()
        diagnostics = (*outside.diagnostics, *found)
        return replace(outside, pools=pools, unknown=str(error), unreachable=error, diagnostics=diagnostics)


def _plan_outside(session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    key = session.cluster.key
    run.tell("check", "asks the cloud", key)
    facts = session.cloud.identify()
    if not facts.kubernetes_version:
        raise CloudError(
            "the cloud's answer about the cluster is empty",
            where=key,
            fix="run it again; if it stays, look whether a proxy stands between",
            code="cloud-answer",
        )
    live = session.cloud.pools()
    outside = ClusterPlan(session.cluster, facts, live=live)
    return _with_pools(outside, session, prepared, scope, operator_live=carries_operator(live))


def _with_pools(
    outside: ClusterPlan, session: Session, prepared: Prepared, scope: Scope, *, operator_live: bool
) -> ClusterPlan:
    """Plan the pools against the live ones, for a cluster with or without an operator of ours that serves others."""
    live = outside.live
    settled = prepared.settle(session.cluster.key, session.provider, operator_live=operator_live)
    desired = tuple(session.cloud.complete(wanted) for wanted in settled.desired)
    plan_it = partial(plan_pool, session.provider, live=live, adopt=scope.adopt, adopt_from=scope.adopt_from)
    pools = tuple(plan_it(wanted) for wanted in desired)
    undeclared = () if prepared.filters.active else _undeclared(prepared, desired, live)
    if scope.prune:
        pools += tuple(plan_removal(session.provider, session.cluster, observed) for observed in undeclared)
        undeclared = ()
    found = (*settled.refusals, *_unsupported(outside, desired))
    return replace(outside, pools=pools, undeclared=undeclared, desired=desired, diagnostics=found)


def _unsupported(outside: ClusterPlan, desired: Sequence[Desired]) -> list[Finding]:
    """Judge the cluster's version where the operator serves a pool."""
    operated = any(wanted.ownership.advertiser == GPU_OPERATOR.advertiser for wanted in desired)
    return check_kubernetes(outside.cluster, outside.facts.kubernetes_version) if operated and outside.facts else []


def _plan_inside(outside: ClusterPlan, session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    kube = session.kube()
    seen = look(kube)
    if has_operator(seen) != carries_operator(outside.live):  # the cluster knows better than the labels of pools
        outside = _with_pools(outside, session, prepared, scope, operator_live=has_operator(seen))
    pools = tuple(
        spare_living(session.provider, pool) if pool.observed and nodes_of_pool(seen, pool.observed) else pool
        for pool in outside.pools
    )
    plan_it = partial(
        plan_release,
        outside.desired,
        seen,
        live_pools=outside.live,
        chart_version=run.chart_version,
        migrate=scope.migrate_release,
        adopt=adoptable_releases(kube, seen) if scope.adopt_release else (),
    )
    release = plan_it(retire=scope.retire)
    untested = scope.check_chart and release.version != release.kind.version
    release, unpinned = _pinned(release, run) if scope.pin or untested else (release, ())
    first = replace(plan_it(retire=False), digest=release.digest)
    staying = _without_leaving(seen, pools)
    found = (
        *outside.diagnostics,
        *release.diagnostics,
        *unpinned,
        *_foreign(staying, outside.desired, release),
        *_features(seen, outside.desired),
        *check_reach(release, outside.desired),
    )
    return replace(
        outside,
        pools=with_costs(pools, seen, kube),
        seen=seen,
        release=release,
        first=first,
        repairs=node_repairs(pools, seen),
        diagnostics=found,
    )


def _pinned(release: ReleasePlan, run: Run) -> tuple[ReleasePlan, tuple[Finding, ...]]:
    """Hold the plan to the digest of its chart; where it cannot be fetched from here, warn: apply fetches it anyway.

    Raises:
        ChartNotFound: There is no such version, so that apply cannot succeed.
    """
    if release.action not in ("install", "upgrade"):
        return release, ()
    try:
        engine = choose_engine(run.environ, stopped=lambda: run.is_over)
        with closing(ChartShelf(engine, run.chart)) as shelf:
            return replace(release, digest=shelf.digest(release)), ()
    except ChartNotFound:
        raise
    except (HelmError, MissingExtra) as error:
        return release, tuple(replace(found, severity="warning") for found in error.diagnostics)


def _without_leaving(seen: Sighting, pools: Sequence[PoolPlan]) -> Sighting:
    """Leave out nodes that are gone before those of their pool are made anew: what advertises there is nobody's rival.

    A pool of a cloud's own plugin is replaced by one that our release serves, and the other way round.
    """
    leaving = [pool.observed for pool in pools if pool.observed and _leaves(pool, pool.observed)]
    names = {node.name for observed in leaving for node in nodes_of_pool(seen, observed)}
    return replace(seen, nodes=tuple(node for node in seen.nodes if node.name not in names))


def _leaves(pool: PoolPlan, observed: Observed) -> bool:
    return pool.action == "replace" or observed.state == "deleting"


def _foreign(seen: Sighting, desired: Sequence[Desired], release: ReleasePlan) -> list[Finding]:
    return check_advertisers(still_foreign(find_advertisers(seen, desired), release.leaves), desired)


def _features(seen: Sighting, desired: Sequence[Desired]) -> list[Finding]:
    """Judge an NFD that is there already: whether its workers reach our nodes."""
    served = [wanted for wanted in desired if kind_of(wanted.ownership.advertiser)]
    nfd = find_nfd(seen)
    return nfd_warnings(nfd, served) if nfd and served else []


def _undeclared(prepared: Prepared, desired: Sequence[Desired], live: Sequence[Observed]) -> tuple[Observed, ...]:
    declared = {(wanted.target.owner, wanted.target.pool) for wanted in desired}
    return tuple(
        o for o in live if o.owner in prepared.owners and (o.owner, o.pool) not in declared and not _half_lost(o)
    )


def _half_lost(pool: Observed) -> bool:
    """Whether the labels lost the name of the pool, which the copy of the marks still has: it may be a declared one."""
    return not pool.pool and pool.copy is not None
