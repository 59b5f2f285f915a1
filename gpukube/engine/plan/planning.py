"""Plans of a cluster, and of its pools from its cloud's data. Changes nothing.

Out of scope: the state inside the cluster (inside), reading clusters (looking).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.core.claims import advise_claims, check_claims_cluster
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
    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.quotas import QuotaUse
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, Observed, PoolPlan, ReplaceHow
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.errors import Finding, GpukubeError


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a plan.

    Attributes:
        skip_cluster: Read only the pool APIs.
        adopt: Add gpukube's labels to pools without an owner.
        adopt_from: Owners whose pools are also adopted if only the copy of the labels names them.
        adopt_managed: Also adopt pools without an owner that another tool manages.
        prune: Delete pools of these owners that the specs no longer declare.
        replace: How to replace pools: "recreate", "surge"; "" for not at all.
        retire: Drop config entries of the release that nothing uses any more.
        migrate_release: gpukube's other release may be removed if the pools need this one.
        adopt_release: A release of the plugin's chart installed by the user may be adopted.
        pin: Fetch the chart to install, and pin the plan to its digest.
        check_chart: Fetch the chart if its version is not the tested one, as it may not exist.
        quotas: Read the cloud's quotas that the pools need more of.
        ignore_quota: Request nodes from a cloud beyond its quotas.
        upgrade: Upgrade live pools to the cluster's version and the newest image, if the spec sets none.
        accept_loss: Members of live pools that a replacement may lose: PATH or POOL:PATH.
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
    accept_loss: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Plan for one cluster.

    Attributes:
        cluster: The cluster.
        facts: Data from its cloud; None if it could not be read.
        pools: Plans of the declared pools, then those of pools to prune.
        live: All live pools, of all owners.
        undeclared: Live pools of these owners that the spec no longer declares and that stay.
        seen: State inside the cluster; None if it was skipped or could not be reached.
        release: Release of the device-plugin chart or the GPU Operator; None if `seen` is.
        dra_release: Release of NVIDIA's DRA driver, beside `release`; None if `seen` is.
        first: The release before the pools change, with all existing entries. Once the pools are done, entries that
            nothing uses are dropped; None if `seen` is.
        repairs: gpukube's labels and taints that live nodes have lost.
        unknown: Why the state inside is unknown; "" if it is known.
        unreachable: The error behind `unknown`; None if the cluster was skipped or read.
        diagnostics: Findings beyond a single pool's API: other advertisers, the release, the cluster's state.
        error: Why the cluster could not be planned at all.
        desired: The declared pools, even if nothing could be read.
        quotas: Quotas that its pools need more of, with usage and limit; empty if quotas were not read.
        orders: Objects that tell the autoscaler in which order to try the pools of autoscaled families.
    """

    cluster: ClusterRef
    facts: ClusterFacts | None = None
    pools: tuple[PoolPlan, ...] = ()
    live: tuple[Observed, ...] = ()
    undeclared: tuple[Observed, ...] = ()
    seen: Snapshot | None = None
    release: ReleasePlan | None = None
    first: ReleasePlan | None = None
    dra_release: ReleasePlan | None = None
    repairs: tuple[NodeRepair, ...] = ()
    unknown: str = ""
    unreachable: GpukubeError | None = None
    diagnostics: tuple[Finding, ...] = ()
    error: GpukubeError | None = None
    desired: tuple[Desired, ...] = ()
    quotas: tuple[QuotaUse, ...] = ()
    orders: tuple[OrderPlan, ...] = ()

    @property
    def releases(self) -> tuple[ReleasePlan, ...]:
        """The planned releases, the device plugin's first."""
        return tuple(plan for plan in (self.release, self.dra_release) if plan)

    @property
    def differs(self) -> bool:
        """Whether declared and live state differ, including the state inside the cluster if known."""
        pools = any(pool.action not in ("no-op", "standby") for pool in self.pools)
        releases = any(plan.action in ("install", "upgrade", "conflict") for plan in self.releases)
        orders = any(order.acts for order in self.orders)
        return pools or releases or orders or bool(self.repairs) or bool(self.undeclared)


def plan_outside(session: Session, prepared: Prepared, run: Run, scope: Scope) -> ClusterPlan:
    """Plan the pools of a cluster from its cloud's data."""
    key = session.cluster.key
    run.report("check", "reading the node pools", key)
    facts = session.cloud.identify()
    if not facts.kubernetes_version:
        raise CloudError(
            "the cloud returned nothing about the cluster",
            where=key,
            fix="run it again; if this persists, check for a proxy in between",
            code="cloud-answer",
        )
    live = session.cloud.pools()
    outside = ClusterPlan(session.cluster, facts, live=live)
    return with_pools(outside, session, prepared, scope, operator_live=carries_operator(live))


def with_pools(
    outside: ClusterPlan, session: Session, prepared: Prepared, scope: Scope, *, operator_live: bool
) -> ClusterPlan:
    """Plan the pools against the live ones, with or without a GPU Operator of gpukube that serves other pools."""
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
    # A pool may be live under its alternate name: plan the declared pool under the name it has.
    desired = tuple(plan.desired or expected for plan, expected in zip(pools, settled.desired, strict=True))
    if upgrades and facts:
        pools = tuple(with_unfinished(with_outlook(pool, upgrades, facts, offers), upgrades, facts) for pool in pools)
    undeclared = () if prepared.filters.active else _undeclared(prepared, desired, live)
    if scope.prune:
        pools += tuple(plan_removal(session.provider, session.cluster, observed, live) for observed in undeclared)
        undeclared = ()
    held = {(pool.owner, pool.family) for pool in live if pool.family}
    new = [
        d for plan in pools
        if plan.action == "create" and (d := plan.desired)
        and not d.target.rank and (d.target.owner, d.target.family) not in held
    ]  # fmt: skip
    advice = session.provider.extras.claims_advice
    advised = advise_claims(outside.cluster, facts.kubernetes_version, new, advice) if facts else []
    found = (*settled.refusals, *_unsupported(outside, desired), *advised)
    return replace(outside, pools=pools, undeclared=undeclared, desired=desired, diagnostics=found)


def forms(
    desired: Desired, session: Session, newer: Callable[[Desired], Desired] | None = None
) -> Callable[[str], Desired]:
    """Return a function from cloud names to the complete desired pool, with the versions that `newer` sets for it."""

    @cache
    def form(name: str) -> Desired:
        named = renamed(session.provider.desired, desired, name)
        return session.cloud.complete(newer(named) if newer else named)

    return form


def _unsupported(outside: ClusterPlan, desired: Sequence[Desired]) -> list[Finding]:
    """Check the cluster's version if the operator or the DRA driver serves a pool."""
    if outside.facts is None:
        return []
    version = outside.facts.kubernetes_version
    operated = any(GPU_OPERATOR.serves(expected.ownership) for expected in desired)
    found = check_kubernetes(outside.cluster, version) if operated else []
    return [*found, *check_claims_cluster(outside.cluster, version, desired)]


def _undeclared(prepared: Prepared, desired: Sequence[Desired], live: Sequence[Observed]) -> tuple[Observed, ...]:
    declared = {(expected.target.owner, expected.target.pool) for expected in desired}
    return tuple(
        o for o in live
        if o.owner in prepared.owners
        and (o.owner, o.pool) not in declared
        and not any(has_lost_marks(expected, o) for expected in desired)
    )  # fmt: skip
