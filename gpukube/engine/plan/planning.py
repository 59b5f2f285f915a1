"""A plan of a cluster, and its pools planned by what the cloud says. Nothing is changed here.

Out of scope: what is inside the cluster (inside), asking clusters (looking).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.core.marks import has_lost_marks
from gpukube.core.owners import check_kubernetes
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.replacing import renamed
from gpukube.engine.plan.ownership import carries_operator
from gpukube.engine.plan.upgrades import follow, read_offers, with_outlook, with_unfinished
from gpukube.errors import CloudError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.cluster.state.node_drift import NodeRepair
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, Observed, PoolPlan, ReplaceHow
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.errors import Finding, GpukubeError


@dataclass(frozen=True, slots=True)
class Scope:
    """How far a plan reaches.

    Attributes:
        skip_cluster: Look at the pool APIs only.
        adopt: Give our marks to pools that nobody owns.
        adopt_from: Owners whose pools are adopted too where only the copy of the marks names them.
        adopt_managed: Give them also to pools that nobody owns and something else manages.
        prune: Delete pools of these owners that the specs no longer declare.
        replace: How pools are replaced: "recreate", "surge"; "" for not at all.
        retire: Drop config entries of the release that nothing names any more.
        migrate_release: Our other release may be taken away where the pools need this one.
        adopt_release: A release of the plugin's chart that the user made may be taken over.
        pin: Fetch the chart that would be installed, and hold the plan to its digest.
        check_chart: Fetch it where its version is not the tested one, since such a version may not exist.
        quotas: Read the quotas of the cloud that pools need more of.
        ignore_quota: Ask a cloud for nodes that its quotas have no room for.
        upgrade: Bring live pools to the cluster's version and the newest image, where the spec names none.
    """

    skip_cluster: bool = False
    adopt: bool = False
    adopt_from: tuple[str, ...] = ()
    adopt_managed: bool = False
    prune: bool = False
    replace: ReplaceHow = ""
    retire: bool = True
    migrate_release: bool = False
    adopt_release: bool = False
    pin: bool = False
    check_chart: bool = False
    quotas: bool = False
    ignore_quota: bool = False
    upgrade: bool = False


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
        quotas: What its pools need more of, beside what is used and allowed; empty where quotas were not read.
    """

    cluster: ClusterRef
    facts: ClusterFacts | None = None
    pools: tuple[PoolPlan, ...] = ()
    live: tuple[Observed, ...] = ()
    undeclared: tuple[Observed, ...] = ()
    seen: Snapshot | None = None
    release: ReleasePlan | None = None
    first: ReleasePlan | None = None
    repairs: tuple[NodeRepair, ...] = ()
    unknown: str = ""
    unreachable: GpukubeError | None = None
    diagnostics: tuple[Finding, ...] = ()
    error: GpukubeError | None = None
    desired: tuple[Desired, ...] = ()
    quotas: tuple[QuotaUse, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the declared and the live differ, inside the cluster too where that is known."""
        pools = any(pool.action != "no-op" for pool in self.pools)
        release = self.release is not None and self.release.action in ("install", "upgrade", "conflict")
        return pools or release or bool(self.repairs) or bool(self.undeclared)


def plan_outside(session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    """Plan the pools of a cluster by what its cloud says."""
    key = session.cluster.key
    run.report("check", "reading the node pools", key)
    facts = session.cloud.identify()
    if not facts.kubernetes_version:
        raise CloudError(
            "the cloud returned nothing about the cluster",
            where=key,
            fix="run it again; if it stays, check for a proxy in between",
            code="cloud-answer",
        )
    live = session.cloud.pools()
    outside = ClusterPlan(session.cluster, facts, live=live)
    return with_pools(outside, session, prepared, scope, operator_live=carries_operator(live))


def with_pools(
    outside: ClusterPlan, session: Session, prepared: Prepared, scope: Scope, *, operator_live: bool
) -> ClusterPlan:
    """Plan the pools against the live ones, for a cluster with or without an operator of ours that serves others."""
    live = outside.live
    settled = prepared.settle(session.cluster.key, session.provider, operator_live=operator_live)
    upgrades, facts = session.provider.extras.upgrades, outside.facts
    offers = read_offers(session, settled.desired, live) if scope.upgrade else {}
    newer = partial(follow, upgrades, live=live, offers=offers, facts=facts) if upgrades and facts else None
    plan_it = partial(
        plan_pool,
        session.provider,
        live=live,
        adopt=scope.adopt,
        adopt_from=scope.adopt_from,
        adopt_managed=scope.adopt_managed,
    )
    names = prepared.names.get(session.cluster.key, frozenset())
    pools = tuple(
        plan_it(expected, form=forms(expected, session, newer), taken=names - {expected.target.name})
        for expected in settled.desired
    )
    # A pool may live under its alternate name: what is declared is what the plan is about, under the name that it has.
    desired = tuple(plan.desired or expected for plan, expected in zip(pools, settled.desired, strict=True))
    if upgrades and facts:
        pools = tuple(with_unfinished(with_outlook(pool, upgrades, facts, offers), upgrades, facts) for pool in pools)
    undeclared = () if prepared.filters.active else _undeclared(prepared, desired, live)
    if scope.prune:
        pools += tuple(plan_removal(session.provider, session.cluster, observed, live) for observed in undeclared)
        undeclared = ()
    found = (*settled.refusals, *_unsupported(outside, desired))
    return replace(outside, pools=pools, undeclared=undeclared, desired=desired, diagnostics=found)


def forms(
    desired: Desired, session: Session, newer: Callable[[Desired], Desired] | None = None
) -> Callable[[str], Desired]:
    """Return a declared pool under its names in the cloud, complete; with the versions that `newer` declares for it."""

    @cache
    def form(name: str) -> Desired:
        named = renamed(session.provider.desired, desired, name)
        return session.cloud.complete(newer(named) if newer else named)

    return form


def _unsupported(outside: ClusterPlan, desired: Sequence[Desired]) -> list[Finding]:
    """Judge the cluster's version where the operator serves a pool."""
    operated = any(expected.ownership.advertiser == GPU_OPERATOR.advertiser for expected in desired)
    return check_kubernetes(outside.cluster, outside.facts.kubernetes_version) if operated and outside.facts else []


def _undeclared(prepared: Prepared, desired: Sequence[Desired], live: Sequence[Observed]) -> tuple[Observed, ...]:
    declared = {(expected.target.owner, expected.target.pool) for expected in desired}
    return tuple(
        o for o in live
        if o.owner in prepared.owners
        and (o.owner, o.pool) not in declared
        and not any(has_lost_marks(expected, o) for expected in desired)
    )  # fmt: skip
