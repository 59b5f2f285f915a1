"""Verifies live nodes against the spec: reads, waits while they come up, and reports what is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.proof.logs import explain_by_log, log_sources
from gpukube.cluster.proof.outcome import NOT_MANAGED, code_of_step
from gpukube.cluster.proof.verify import nodes_of, prove_pool
from gpukube.cluster.state.node_drift import without_nodes_of
from gpukube.cluster.state.snapshot import look
from gpukube.core.families import family_key
from gpukube.core.plan import plan_pool
from gpukube.engine.change.holders import as_family, declared_lines, find_holders
from gpukube.engine.change.probing import Probing, probe_pool
from gpukube.engine.plan.ownership import has_operator
from gpukube.engine.plan.planning import forms
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.lasting import Lasting
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import AccessError, ClusterError, GpukubeError, WaitTimeout, Where
from gpukube.gpu.claims import is_claimable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gpukube.cluster.proof.outcome import PoolProof, ProofStatus
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Desired, Observed
    from gpukube.engine.change.holders import Holder
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.errors import Finding

GOOD: Final[tuple[ProofStatus, ...]] = ("proven", "empty", "unmanaged")
_ENOUGH: Final[tuple[ProofStatus, ...]] = (*GOOD, "no-fabric")
"""Statuses with which a change is complete: what its fast network lacks, gpukube does not install."""
_LOGS: Final = 3
"""Maximum number of logs read per pool, as nodes of one pool usually fail alike."""
_LINES: Final = 50


def prove(desired: Desired, session: Session, run: Run, *, apart_from: Observed | None = None) -> PoolProof:
    """Wait until a pool's nodes match the spec.

    Args:
        desired: The pool.
        session: Session of its cluster.
        run: The run.
        apart_from: The pool that it replaces, whose nodes have the same labels and do not count.

    Raises:
        ClusterError: They do not match, and stayed broken for `pace.settle_s`, or until `pace.verify_s`. The
            diagnostics name the missing step.
        WaitTimeout: The run's own timeout is shorter than that, and the missing step may still succeed.
        Stopped: The run was stopped.
    """
    limit_s = min(run.pace.verify_s, run.pace.timeout_s)
    proof = _wait_for_proof(desired, session, run, limit_s, apart_from, enough=_ENOUGH)
    if proof.status in _ENOUGH:
        return proof
    if proof.status == "waiting" and limit_s < run.pace.verify_s:
        message = f"timed out: {summarise(proof)}"
        raise WaitTimeout(message, where=desired.target.where, fix=f"it may still succeed; to resume: {run.resume}")
    raise _unproven(desired, proof)


def verify_pools(
    prepared: Prepared, sessions: Mapping[str, Session], run: Run, probing: Probing | None = None
) -> tuple[ClusterReport, ...]:
    """Verify all pools of all clusters, for no longer than the run's timeout.

    Args:
        prepared: The declared pools.
        sessions: Sessions by cluster key.
        run: The run.
        probing: How to probe pools that match the spec; None for no probe.
    """
    holders = find_holders(prepared, sessions, run) if _has_families(prepared) else {}
    tasks = {
        key: partial(_verify_cluster, prepared, session, run, probing, holders) for key, session in sessions.items()
    }
    results = run_all(tasks, run.parallelism)
    return tuple(
        result
        if isinstance(result, ClusterReport)
        else _unreachable(sessions[key], _standing(prepared.desired[key], holders), result)
        for key, result in results.items()
    )


def _has_families(prepared: Prepared) -> bool:
    return any(family_key(desired) for pools in prepared.desired.values() for desired in pools)


def _verify_cluster(
    prepared: Prepared,
    session: Session,
    run: Run,
    probing: Probing | None,
    holders: Mapping[FamilyKey, Holder],
) -> ClusterReport:
    session.cloud.identify()
    # An operator that another spec installed serves these pools too, whatever their own spec needs.
    operated = has_operator(look(session.kube()))
    settled = prepared.settle(session.cluster.key, session.provider, operator_live=operated).desired
    standing = {d.target.name: holders[key] for d in settled if (key := family_key(d))}
    desired = _standing(settled, holders)
    seconds = _replaced(desired, session)
    tasks = {
        expected.target.name: partial(_verify_pool, expected, session, run, probing, seconds.get(expected.target.name))
        for expected in desired
    }
    reports = {name: r for name, r in run_all(tasks, run.parallelism).items() if isinstance(r, PoolReport)}
    pools = [as_family(r, standing[name].place) if name in standing else r for name, r in reports.items()]
    return ClusterReport(session.cluster, tuple(pools))


def _standing(pools: Sequence[Desired], holders: Mapping[FamilyKey, Holder]) -> list[Desired]:
    """Return the pools that are verified: those of no family, and of each family the one that stands for it."""
    return [
        desired for desired in pools
        if (key := family_key(desired)) is None or holders[key].target.where == desired.target.where
    ]  # fmt: skip


def _replaced(desired: Sequence[Desired], session: Session) -> dict[str, Observed]:
    """Return the old pools of replacements in progress, by the name of the declared pool.

    Their nodes have the same labels. Pools are read only if the nodes of two pools have the same labels.
    """
    nodes = session.kube().nodes()
    label = session.provider.extras.in_cluster.pool_label
    twice = [d for d in desired if len({node.labels.get(label) for node in nodes_of(d, nodes)}) > 1]
    live = session.cloud.pools() if twice else ()
    plans = {d.target.name: plan_pool(session.provider, d, live, form=forms(d, session)) for d in twice}
    return {
        name: plan.observed
        for name, plan in plans.items()
        if plan.observed and plan.replacement and plan.replacement.beside
    }


def _verify_pool(
    desired: Desired, session: Session, run: Run, probing: Probing | None, replaced: Observed | None = None
) -> PoolReport:
    target = desired.target
    try:
        proof = _wait_for_proof(desired, session, run, run.pace.timeout_s, replaced)
        if probing and proof.status in _ENOUGH:
            proof = _probe(desired, proof, session, run, probing)
    except GpukubeError as error:
        return PoolReport(target.pool, target.name, "failed", "could not be read", error=error)
    except Stopped:
        message = "not verified: the run was stopped"
        return PoolReport(target.pool, target.name, "not-attempted", message, resume=run.resume)
    if proof.status in GOOD:
        run.report("done", summarise(proof), target.cluster.key, target.pool)
        message = "matches the spec"
        if replaced is not None:
            message += f"; nodes of {replaced.name}, which it replaces, are not counted"
        return PoolReport(target.pool, target.name, "unchanged", message, proof=proof)
    run.report("failed", summarise(proof), target.cluster.key, target.pool)
    unproven = _unproven(desired, proof)
    return PoolReport(target.pool, target.name, "failed", "differs", proof=proof, error=unproven)


def _probe(desired: Desired, proof: PoolProof, session: Session, run: Run, probing: Probing) -> PoolProof:
    """Probe a pool; read it again if it had no node and the probe has started one."""
    probed = probe_pool(desired, proof, session, run, probing)
    ran = probed.probe is not None and probed.probe.status == "passed"
    if proof.status != "empty" or not ran:
        return probed
    grown = _wait_for_proof(desired, session, run, max(run.pace.timeout_s, run.pace.settle_s))
    return replace(grown, probe=probed.probe)


def _unreachable(session: Session, desired: Sequence[Desired], error: GpukubeError) -> ClusterReport:
    message = "not attempted: see the error of its cluster"
    pools = tuple(PoolReport(pool, name, "not-attempted", message) for pool, name in declared_lines(desired, set()))
    return ClusterReport(session.cluster, pools, error=error)


def _wait_for_proof(  # noqa: PLR0913 - the wait, and what ends it
    desired: Desired,
    session: Session,
    run: Run,
    limit_s: float,
    apart_from: Observed | None = None,
    *,
    enough: Collection[ProofStatus] = GOOD,
) -> PoolProof:
    """Read until the nodes match, stay broken, or the limit; return the last result.

    Raises:
        AccessError, ClusterError: The cluster could not be read for longer than a brief outage.
    """
    key, pool = desired.target.cluster.key, desired.target.pool
    end = run.clock.now() + limit_s
    bad = Lasting(run.pace.poll_s)
    number = None  # of the last read; the first one starts now that the cloud has reported the pool
    # Nodes, plugin, and labels come up one after the other, and each read sees an intermediate state. Broken means
    # broken for settle_s: pods crash while a driver is installed, and a restarting API server does not answer.
    while True:
        number, seen = session.looks.newer(number, partial(_look, session))
        if apart_from is not None and not isinstance(seen, GpukubeError):
            seen = without_nodes_of(seen, apart_from)
        proof = None if isinstance(seen, GpukubeError) else prove_pool(desired, seen)
        now = run.clock.now()
        is_bad = proof is None or proof.status == "broken"
        bad.note(now, holds=is_bad)
        over = now >= end or (is_bad and bad.seconds >= run.pace.settle_s)
        if isinstance(seen, GpukubeError) and over:
            raise seen
        if proof is not None and not isinstance(seen, GpukubeError) and (over or proof.status in enough):
            return _with_logs(desired, proof, seen, session)
        run.report("verify", summarise(proof) if proof else str(seen), key, pool)
        run.clock.wait(min(run.pace.poll_s, max(0.0, end - now)))


def _with_logs(desired: Desired, proof: PoolProof, seen: Snapshot, session: Session) -> PoolProof:
    """Add the reason from the plugin's log for a crash or missing devices; return the proof unchanged if unreadable."""
    for source in log_sources(desired, proof, seen)[:_LOGS]:
        try:
            lines = session.kube().pod_log(NAMESPACE, source.pod, _LINES, source.container)
        except GpukubeError:
            continue
        proof = explain_by_log(proof, source, lines)
    return proof


def _look(session: Session) -> Snapshot | GpukubeError:
    """Read the cluster once; return an expired token or a restarting API server as a value."""
    kube = None
    try:
        kube = session.kube()
        return look(kube)
    except AccessError as error:
        # The wait may outlive the token. Pass this client: another thread may already have renewed it.
        session.renew(kube)
        return error
    except ClusterError as error:
        return error


def summarise(proof: PoolProof) -> str:
    """Summarize in one line what the nodes advertise, or which step is missing."""
    nodes = f"{proof.nodes_seen} node{'' if proof.nodes_seen == 1 else 's'}"
    if proof.status == "proven":
        return f"{_devices(proof)} verified on {nodes}"
    if proof.status == "unmanaged":
        seen = _devices(proof)
        return f"not managed: your own plugin advertises {seen} on {nodes}" if seen else f"{NOT_MANAGED} ({nodes})"
    if proof.status == "empty":
        stuck = next((finding.seen for finding in proof.findings if code_of_step("node") == finding.code), "")
        return f"no nodes now (autoscaling allows 0); {stuck or 'the cluster is ready for them'}"
    if proof.status == "no-fabric":
        short = _short(proof)
        there = f"{_devices(proof, except_for=short)} verified on {nodes}" if proof.nodes_seen else "no nodes now"
        not_ready = f"not ready: {', '.join(short.values())}" if short else ""
        return "; ".join(filter(None, (there, not_ready, proof.fabric_findings[0].seen)))
    step = proof.missing_step
    return f"{step.where}: {step.seen}" if step else f"{nodes}, no devices yet"


def _devices(proof: PoolProof, except_for: Collection[str] = ()) -> str:
    return ", ".join(_counted(name, count) for name, count in proof.total.items() if name not in except_for)


def _counted(name: str, count: int) -> str:
    """Render a count: a resource as it is listed on nodes, or devices of the DRA driver, which nodes do not list."""
    return f"{count} device{'' if count == 1 else 's'} of {name}" if is_claimable(name) else f"{name}: {count}"


def _short(proof: PoolProof) -> dict[str, str]:
    """Describe the devices of which the nodes have too few, by name."""
    due: Counter[str] = Counter()
    for node in proof.per_node:
        due.update(node.expected)
    return {name: f"{name} {proof.total[name]} of {count}" for name, count in due.items() if proof.total[name] < count}


def _unproven(desired: Desired, proof: PoolProof) -> ClusterError:
    """Turn what is missing into an error whose diagnostics name the steps, the most relevant first."""
    real = [finding for finding in proof.all_findings if finding.severity != "hint"]
    real = real or [finding for finding in proof.fabric_findings if finding.fix]  # the others count what is missing
    first = proof.missing_step
    ordered = sorted(real, key=lambda finding: finding is not first)
    if not ordered:
        return ClusterError(
            summarise(proof),
            where=desired.target.where,
            fix="gpukube pool create continues",
            code="unproven",
        )
    return ClusterError.of([_as_error(desired, finding) for finding in ordered], summarise(proof))


def _as_error(desired: Desired, finding: Finding) -> Finding:
    where = Where(f"{desired.target.where}: {finding.where}")
    return replace(finding, where=where, fix=finding.fix or "wait", severity="error")
