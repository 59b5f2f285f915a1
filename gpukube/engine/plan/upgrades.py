"""Newer versions for live pools: their part of the plan, and with --upgrade the desired pools with these versions.

An upgrade is not a separate operation: if the spec sets no version, --upgrade sets what the cloud offers. The
differences are ordinary disruptive changes, which are planned, allowed, sent, resumed, and verified like any other.

Out of scope: what a cloud offers and does (`core.upgrades`, implemented by the provider).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.fields import KUBERNETES_VERSION
from gpukube.core.plan import match_live
from gpukube.core.upgrades import NodeOffer, UpgradeOutlook
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.provider_parts import NodeUpgrades
    from gpukube.core.upgrades import NodeMarks
    from gpukube.core.values import ClusterFacts, Desired, Observed, PoolPlan
    from gpukube.engine.run.session import Session
    from gpukube.errors import Where


def read_offers(session: Session, desired: Iterable[Desired], live: Sequence[Observed]) -> dict[str, NodeOffer]:
    """Read from the cloud what the live pools among these could be upgraded to, by cloud name.

    Skips pools that cannot be upgraded or are not gpukube's.
    """
    upgrades = session.provider.extras.upgrades
    if upgrades is None:
        return {}
    found = ((expected, ours_alone(expected, live)) for expected in desired)
    return {
        observed.name: session.cloud.newest(observed, expected.target.kubernetes_version)
        for expected, observed in found
        if observed and observed.state != "deleting"
    }


def follow(
    upgrades: NodeUpgrades,
    desired: Desired,
    live: Sequence[Observed],
    offers: Mapping[str, NodeOffer],
    facts: ClusterFacts,
) -> Desired:
    """Set the offered versions for a live pool; return it unchanged if there are none, or its cloud rejects them."""
    observed = ours_alone(desired, live)
    if observed is None or observed.name not in offers or upgrades.terms(observed, facts).obstacle:
        return desired
    return upgrades.upgraded(desired, observed, offers[observed.name])


def with_outlook(
    plan: PoolPlan, upgrades: NodeUpgrades, facts: ClusterFacts, offers: Mapping[str, NodeOffer]
) -> PoolPlan:
    """Add to an unchanged or updated pool's plan its newer versions, and what prevents the upgrade.

    Args:
        plan: Plan of one pool.
        upgrades: The provider's data on upgrades.
        facts: Facts of the cluster: without an offer, nodes could follow its version.
        offers: Offers read by --upgrade; empty without it.
    """
    observed, desired = plan.observed, plan.desired
    if observed is None or desired is None:
        return plan
    requested = observed.name in offers
    repaired = requested and observed.state == "failed"  # an upgrade that stopped half-way
    if plan.action not in ("no-op", "update") and not repaired:
        return plan
    offer = offers.get(observed.name) or NodeOffer(desired.target.kubernetes_version or facts.kubernetes_version)
    declared = any(change.change.field == KUBERNETES_VERSION for change in plan.changes)
    outlook = UpgradeOutlook(upgrades.system(observed), offer, upgrades.terms(observed, facts), requested or declared)
    if not outlook.is_behind and not requested:
        return plan
    findings = _findings(plan.where, outlook) if requested else ()
    return replace(plan, upgrade=outlook, diagnostics=(*plan.diagnostics, *findings))


def with_unfinished(
    plan: PoolPlan, upgrades: NodeUpgrades, facts: ClusterFacts, nodes: Sequence[NodeView] | None = None
) -> PoolPlan:
    """Add to the plan that repairs a failed pool the upgrade that its cloud would resume, if there is one.

    Args:
        plan: Plan of one pool.
        upgrades: The provider's data on upgrades.
        facts: Facts of the cluster.
        nodes: Nodes of the pool; None if the cluster was not read.
    """
    observed = plan.observed
    if plan.action != "create" or observed is None or observed.state != "failed":
        return plan
    if nodes is not None and not nodes:
        return replace(plan, resumes="")
    old = outdated_nodes(nodes or (), upgrades.marks(observed))
    by_nodes = f"nodes not on the pool's version: {', '.join(node.name for node in old)}" if old else ""
    resumes = by_nodes or upgrades.unfinished(observed)
    if not resumes or plan.resumes:
        return replace(plan, resumes=resumes)
    live = upgrades.system(observed)
    outlook = UpgradeOutlook(live, NodeOffer(live.kubernetes), upgrades.terms(observed, facts))
    planned = replace(plan.upgrade or outlook, is_asked=True)
    return replace(plan, upgrade=planned, resumes=resumes, why=f"{plan.why}; that resumes an upgrade")


def outdated_nodes(nodes: Sequence[NodeView], marks: NodeMarks) -> list[NodeView]:
    """Return the nodes that do not run their pool's version."""
    return [
        node
        for node in nodes
        if not node.kubelet.startswith(marks.kubelet)
        or any(node.labels.get(name) != value for name, value in marks.labels.items())
    ]


def _findings(where: Where, outlook: UpgradeOutlook) -> Iterable[Finding]:
    if outlook.terms.obstacle and outlook.is_behind:
        yield Finding(
            "upgrade-impossible",
            where,
            "the pool is not upgraded",
            fix="upgrade it another way, or leave it out with --pool",
            why=outlook.terms.obstacle,
            severity="warning",
        )
    elif outlook.offer.unknown:
        fix, why = outlook.offer.fix, outlook.offer.unknown
        message = "the pool follows only the version of the cluster"
        yield Finding("release-unknown", where, message, fix=fix, why=why, severity="warning")


def ours_alone(desired: Desired, live: Sequence[Observed]) -> Observed | None:
    """Return the only live pool with this pool's ownership labels; None if there is not exactly one."""
    target, found = desired.target, match_live(desired, live)
    return found[0] if len(found) == 1 and (found[0].owner, found[0].pool) == (target.owner, target.pool) else None


def renews_nodes(plan: PoolPlan) -> bool:
    """Return whether a plan brings a pool's live nodes to another version, or did so before it was killed."""
    return plan.upgrade is not None and plan.upgrade.is_asked and not plan.upgrade.terms.obstacle
