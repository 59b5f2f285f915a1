"""Newer versions for live pools: what a plan says of them, and with --upgrade the pools as they are then declared.

An upgrade is nothing of its own: what the cloud offers is declared where the spec declares nothing, and the differences
are ordinary disruptive changes, which are planned, consented to, sent, resumed and proven as any other.

Out of scope: what a cloud offers and does (`core.upgrades`, said by the provider).
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
    """Ask the cloud what the live ones of these pools could be brought to, by their names in the cloud.

    Pools that cannot be upgraded, or are not ours, are not asked about.
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
    """Declare what is on offer for a live pool; as it is where nothing is, or the cloud would refuse it."""
    observed = ours_alone(desired, live)
    if observed is None or observed.name not in offers or upgrades.terms(observed, facts).obstacle:
        return desired
    return upgrades.upgraded(desired, observed, offers[observed.name])


def with_outlook(
    plan: PoolPlan, upgrades: NodeUpgrades, facts: ClusterFacts, offers: Mapping[str, NodeOffer]
) -> PoolPlan:
    """Add to the plan of a pool that stays what is newer for it, and why it cannot have that.

    Args:
        plan: Of one pool.
        upgrades: What the provider knows.
        facts: Of the cluster: without an offer, nodes could follow its version.
        offers: As read by --upgrade; empty without it.
    """
    observed, desired = plan.observed, plan.desired
    if observed is None or desired is None:
        return plan
    asked = observed.name in offers
    repaired = asked and observed.state == "failed"  # an upgrade that stopped half-way
    if plan.action not in ("no-op", "update") and not repaired:
        return plan
    offer = offers.get(observed.name) or NodeOffer(desired.target.kubernetes_version or facts.kubernetes_version)
    declared = any(change.change.field == KUBERNETES_VERSION for change in plan.changes)
    outlook = UpgradeOutlook(upgrades.system(observed), offer, upgrades.terms(observed, facts), asked or declared)
    if not outlook.is_behind and not asked:
        return plan
    findings = _findings(plan.where, outlook) if asked else ()
    return replace(plan, upgrade=outlook, diagnostics=(*plan.diagnostics, *findings))


def with_unfinished(
    plan: PoolPlan, upgrades: NodeUpgrades, facts: ClusterFacts, nodes: Sequence[NodeView] | None = None
) -> PoolPlan:
    """Add to the plan that repairs a failed pool the upgrade with which its cloud would go on, if there is one.

    Args:
        plan: Of one pool.
        upgrades: What the provider knows.
        facts: Of the cluster.
        nodes: Those of the pool; None where the cluster was not read.
    """
    observed = plan.observed
    if plan.action != "create" or observed is None or observed.state != "failed":
        return plan
    if nodes is not None and not nodes:
        return replace(plan, resumes="")
    old = outdated_nodes(nodes or (), upgrades.marks(observed))
    by_nodes = f"nodes that do not run what the pool says: {', '.join(node.name for node in old)}" if old else ""
    resumes = by_nodes or upgrades.unfinished(observed)
    if not resumes or plan.resumes:
        return replace(plan, resumes=resumes)
    live = upgrades.system(observed)
    outlook = UpgradeOutlook(live, NodeOffer(live.kubernetes), upgrades.terms(observed, facts))
    asked = replace(plan.upgrade or outlook, is_asked=True)
    return replace(plan, upgrade=asked, resumes=resumes, why=f"{plan.why}; that goes on with an upgrade")


def outdated_nodes(nodes: Sequence[NodeView], marks: NodeMarks) -> list[NodeView]:
    """Choose the nodes that do not run what their pool says."""
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
        message = "the pool follows the version of the cluster only"
        yield Finding("release-unknown", where, message, fix=fix, why=why, severity="warning")


def ours_alone(desired: Desired, live: Sequence[Observed]) -> Observed | None:
    """Find the one live pool that is this one and has our marks."""
    target, found = desired.target, match_live(desired, live)
    return found[0] if len(found) == 1 and (found[0].owner, found[0].pool) == (target.owner, target.pool) else None


def renews_nodes(plan: PoolPlan) -> bool:
    """Return whether a plan brings the live nodes of a pool to another version, or did so before it was killed."""
    return plan.upgrade is not None and plan.upgrade.is_asked and not plan.upgrade.terms.obstacle
