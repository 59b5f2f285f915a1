"""Reconciles live pools with the spec: creates, updates in place, replaces if requested, prunes.

Per cluster: (1) the same checks as create; (2) the release, which gets new config entries and keeps old ones; (3) node
labels and taints that were removed by hand; (4) creates, updates, and replacements, each verified; (5) deletions; (6)
config entries that nothing uses any more are dropped. A change of sharing therefore adds the new entry, moves the
label, verifies the devices, and drops the old entry. A run killed between any two of these steps can be repeated; it
does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.release.node_repair import repair_nodes
from gpukube.cluster.release.plugin_refresh import refresh_plugin
from gpukube.cluster.state.node_drift import node_repairs
from gpukube.core.fields import label
from gpukube.core.owners import CONFIG_LABEL
from gpukube.core.plan import plan_pool
from gpukube.engine.change.clusters import prepare_cluster, settle_orders
from gpukube.engine.change.create import bring_up
from gpukube.engine.change.delete import delete_pool
from gpukube.engine.change.draining import DrainConsent, Drained, consent_finding, counted, listed
from gpukube.engine.change.families import with_families
from gpukube.engine.change.family_run import Trying
from gpukube.engine.change.live_pool import (
    attempt_all,
    create_pool,
    keep_carried,
    observe,
    require_adoptable,
    settle,
    started,
    update_pool,
)
from gpukube.engine.change.proving import prove
from gpukube.engine.change.release import STOPPED_CLEANUP, restore_entry, retire_entries
from gpukube.engine.change.surge import empty_pool, old_pool_plan, remove_emptied, surge_pool
from gpukube.engine.change.upgrading import naming_blockers, require_renewed
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import Conflict, Finding, GpukubeError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.cluster.state.node_drift import NodeRepair
    from gpukube.core.values import PoolPlan, ReplaceHow
    from gpukube.engine.change.families import OnCluster
    from gpukube.engine.change.live_pool import Proof, Work
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user allows in addition to creates and harmless updates.

    Attributes:
        allow_disruption: Updates in place that restart or evict running pods.
        replace: How to replace a pool if a field cannot change on a live one: "surge", create a second pool and delete
            the first once its pods have left; or "recreate", delete it and create it again.
        drain_timeout_s: Maximum time for the pods of one pool to leave its nodes.
    """

    allow_disruption: bool = False
    replace: ReplaceHow = ""
    drain_timeout_s: float = 3600.0


def require_consent(plans: Sequence[ClusterPlan], consent: Consent) -> None:
    """Reject, before anything changes, what the user did not allow.

    Raises:
        Conflict: One diagnostic per pool: the cost, and the option that allows it; or what no option allows (a
            protected pool, a field that cannot change).
    """
    require_adoptable(plans)
    found = [d for plan in plans for pool in plan.pools for d in _objections(pool, consent)]
    if not consent.allow_disruption:
        found += [_disruptive_repair(plan, repair) for plan in plans for repair in plan.repairs if repair.disruptive]
    if found:
        raise Conflict.of(found)


def _objections(plan: PoolPlan, consent: Consent) -> Iterator[Finding]:
    if plan.action == "conflict":
        return  # only this pool fails; the others continue
    yield from (d for d in plan.diagnostics if d.severity == "error")
    if plan.action == "replace" and not consent.replace:
        yield _needs_replace(plan)
    if plan.action == "replace" and consent.replace and plan.leaving and not consent.allow_disruption:
        yield from (consent_finding(plan, pod.pod, pod.node, pod.why) for pod in plan.leaving.needing)
    if plan.disturbs and not consent.allow_disruption:
        fields = ", ".join(str(c.change.field) for c in plan.disruptive)
        what = f"changing {fields}" if fields else "finishing the repair takes an upgrade, which"
        yield Finding(
            "needs-disruption",
            plan.where,
            f"{what} restarts or evicts pods: {_cost(plan)}",
            fix="add --allow-disruption, or leave this pool out with --pool",
            why=plan.resumes or "; ".join(dict.fromkeys(c.row.sentence for c in plan.disruptive)),
        )


def _needs_replace(plan: PoolPlan) -> Finding:
    found = plan.replacement
    if found and found.beside:
        return Finding(
            "needs-replace",
            plan.where,
            f"a replacement is under way: {plan.why}",
            fix="add --replace surge to finish it; to go back, restore the old values and add --replace surge",
        )
    fields = ", ".join(str(c.change.field) for c in plan.changes if c.row.kind == "replace")
    surge = "" if not found or found.obstacles else "add --replace surge (a new pool first), or "
    return Finding(
        "needs-replace",
        plan.where,
        f"{fields} cannot change on a live pool; replacing it costs {_cost(plan)}",
        fix=f"{surge or 'add '}--replace recreate (delete and create again); or write the live value, or a new pool "
        "name",
        why="; ".join(c.row.sentence for c in plan.changes if c.row.kind == "replace"),
    )


def _disruptive_repair(plan: ClusterPlan, repair: NodeRepair) -> Finding:
    return Finding(
        "needs-disruption",
        Where(f"{plan.cluster.key}/{repair.pool}"),
        f"restoring {repair.field} on node {repair.node} restarts or evicts its pods",
        fix="add --allow-disruption, or leave this pool out with --pool",
    )


def _cost(plan: PoolPlan) -> str:
    loss = plan.loss
    if loss is None or loss.nodes is None:
        return "an unknown number of nodes"
    gpus = f" with {loss.gpus:g} GPUs" if loss.gpus is not None else ""
    nodes = f"{counted(loss.nodes, 'node')}{gpus}"
    if loss.pods is None:
        return f"{nodes} and an unknown number of pods"
    if loss.of is not None:
        return f"{loss.nodes} of {loss.of} nodes{gpus} and the pods on them"
    named = f": {listed(loss.pods)}" if loss.pods else ""
    return f"{nodes} and {counted(len(loss.pods), 'running pod')}{named}"


def apply_pools(
    plans: Sequence[ClusterPlan],
    sessions: Mapping[str, Session],
    run: Run,
    consent: Consent = Consent(),
    trying: Trying | None = None,
) -> tuple[ClusterReport, ...]:
    """Apply the plans of all clusters in parallel; the caller has called `require_consent`.

    Raises:
        SpecError: See create_pools.
    """

    def work_on(plan: ClusterPlan) -> Work:
        return partial(_apply_pool, plan, consent)

    how = replace(trying or Trying(), consent=_drain_consent(consent))
    return with_families(plans, sessions, run, partial(_apply_on_cluster, work_on), work_on, how)


def _apply_on_cluster(
    work_on: Callable[[ClusterPlan], Work], families: OnCluster, plan: ClusterPlan, session: Session, run: Run
) -> ClusterReport:
    release = prepare_cluster(plan, session, run)
    _restore_nodes(plan, session, run)
    deleted = [pool for pool in plan.pools if pool.action == "delete" and pool.family is None]
    others = [pool for pool in plan.pools if pool not in deleted]
    done = families.attempt_all(others, session, run, work_on(plan))
    reports = [*done, *attempt_all(deleted, session, run, delete_pool)]
    if not all(report.is_settled for report in reports):
        return ClusterReport(plan.cluster, tuple(reports), release)
    try:
        # Entries that were already unused when the plan was made.
        left = set(plan.first.keys) - set(plan.release.keys) if plan.first and plan.release else set()
        release = retire_entries(plan, session, run, left=left) or release
        release = "; ".join(filter(None, (release, settle_orders(plan, session, run))))
    except Stopped:
        return ClusterReport(plan.cluster, tuple(reports), STOPPED_CLEANUP)
    except GpukubeError as error:
        run.note_failure()
        run.report("failed", str(error), plan.cluster.key)
        return ClusterReport(plan.cluster, tuple(reports), release, error)
    return ClusterReport(plan.cluster, tuple(reports), release)


def _restore_nodes(plan: ClusterPlan, session: Session, run: Run) -> None:
    """Restore what nodes have lost, pool by pool, unless the pool's API has ceased to declare it since the plan.

    The nodes of a pool that another run releases lose our marks too: those are not drift.
    """
    for pool in plan.pools:
        lost = [repair for repair in plan.repairs if repair.pool == pool.pool]
        if not lost or plan.seen is None:
            continue
        declared = node_repairs([replace(pool, observed=observe(pool, session))], plan.seen)
        repairs = [repair for repair in lost if repair in declared]
        if repairs:
            run.report("update", f"restoring {len(repairs)} node labels and taints", plan.cluster.key, pool.pool)
            repair_nodes(session.kube(), repairs)


def _apply_pool(
    cluster: ClusterPlan, consent: Consent, plan: PoolPlan, session: Session, run: Run
) -> PoolReport | Proof:
    restore_entry(cluster, plan, session, run)
    if plan.action == "update":
        _refresh(plan, session, run)
        with naming_blockers(plan, session, run):
            update_pool(plan, session, run)
            if not run.no_wait:
                settle(plan, session, run)
        return _proof_of(plan, session, run, "updated")
    if plan.action == "replace" and consent.replace == "surge":
        proof, drained = surge_pool(plan, session, run, _drain_consent(consent))
        name = plan.replacement.name if plan.replacement else plan.name
        message = "; ".join((f"replaced: {name} for {plan.name}", *drained.notes))
        return PoolReport(plan.pool, name, "done", message, plan.changes, proof)
    if plan.action == "replace":
        drained = _recreate(plan, session, run, _drain_consent(consent))
        return _proof_of(plan, session, run, "; ".join(("replaced", *drained.notes)))
    brought = bring_up(plan, session, run)
    return brought if isinstance(brought, PoolReport) else partial(_prove_renewed, plan, session, run, brought)


def _refresh(plan: PoolPlan, session: Session, run: Run) -> None:
    """Restart the operator's plugin so that it reads new entries before a label moves to one."""
    moved = any(c.change.field == label(CONFIG_LABEL) for c in plan.changes)
    operated = plan.desired is not None and plan.desired.ownership.advertiser == GPU_OPERATOR.advertiser
    if moved and operated and refresh_plugin(session.kube()):
        run.report("release", "restarting the plugin, which does not notice new entries", plan.cluster.key)


def _drain_consent(consent: Consent) -> DrainConsent:
    return DrainConsent(consent.allow_disruption, consent.drain_timeout_s)


def _recreate(plan: PoolPlan, session: Session, run: Run, consent: DrainConsent) -> Drained:
    """Drain the pool's nodes, delete it, wait until it is gone, create it again.

    If the run is killed, the next one drains the remaining nodes, or creates the pool.
    """
    desired = plan.desired
    assert desired is not None  # noqa: S101 - only declared pools are replaced
    leaving = old_pool_plan(plan)
    drained = empty_pool(leaving, session, run, consent)
    keep_carried(leaving, desired, session, run)
    run.report("replace", "deleting it first", plan.cluster.key, plan.pool)
    remove_emptied(leaving, session, run, consent)
    create_pool(plan_pool(session.provider, desired, ()), session, run)
    return drained


def _proof_of(plan: PoolPlan, session: Session, run: Run, done: str) -> PoolReport | Proof:
    desired = plan.desired
    assert desired is not None  # noqa: S101 - only declared pools are updated
    if run.no_wait:
        return started(plan, run, "requested")
    unproven = PoolReport(plan.pool, plan.name, "done", done, plan.changes)
    return partial(_prove_renewed, plan, session, run, lambda: replace(unproven, proof=prove(desired, session, run)))


def _prove_renewed(plan: PoolPlan, session: Session, run: Run, proof: Proof) -> PoolReport:
    require_renewed(plan, session, run)
    return proof()
