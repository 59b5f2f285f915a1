"""Promise against live nodes: look, wait while things are still coming up, and say what is missing when they do not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.proof.logs import explain_by_log, log_sources
from gpukube.cluster.proof.outcome import NOT_MANAGED, code_of_step
from gpukube.cluster.proof.verify import nodes_of, prove_pool
from gpukube.cluster.state.node_drift import without_nodes_of
from gpukube.cluster.state.snapshot import look
from gpukube.core.plan import plan_pool
from gpukube.engine.change.probing import Probing, probe_pool
from gpukube.engine.plan.ownership import has_operator
from gpukube.engine.plan.planning import forms
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.lasting import Lasting
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import AccessError, ClusterError, GpukubeError, WaitTimeout, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session
    from gpukube.errors import Finding

GOOD = ("proven", "empty", "unmanaged")
_LOGS: Final = 3
"""Nodes of one pool mostly fail alike."""
_LINES: Final = 50


def prove(desired: Desired, session: Session, run: Run, *, apart_from: Observed | None = None) -> PoolProof:
    """Wait until the nodes of a pool show what was promised.

    Args:
        desired: The pool.
        session: Its cluster.
        run: The run.
        apart_from: The pool that it replaces, whose nodes carry the same marks and prove nothing of it.

    Raises:
        ClusterError: They do not, and it did not mend itself in `pace.settle_s`; or not in `pace.verify_s`. The
            diagnostics say which step is missing.
        WaitTimeout: The run's own timeout is shorter than that, and what is missing may still come.
        Stopped: The run was stopped.
    """
    limit_s = min(run.pace.verify_s, run.pace.timeout_s)
    proof = _wait_for_proof(desired, session, run, limit_s, apart_from)
    if proof.status in GOOD:
        return proof
    if proof.status == "waiting" and limit_s < run.pace.verify_s:
        message = f"timed out: {summarise(proof)}"
        raise WaitTimeout(message, where=desired.target.where, fix=f"it may still succeed; to resume: {run.resume}")
    raise _unproven(desired, proof)


def verify_pools(
    prepared: Prepared, sessions: Mapping[str, Session], run: Run, probing: Probing | None = None
) -> tuple[ClusterReport, ...]:
    """Prove all pools of all clusters, waiting no longer than the run's timeout.

    Args:
        prepared: What is declared.
        sessions: By cluster key.
        run: The run.
        probing: How to probe pools that are as promised; None not to.
    """
    tasks = {key: partial(_verify_cluster, prepared, session, run, probing) for key, session in sessions.items()}
    results = run_all(tasks, run.parallelism)
    return tuple(
        result if isinstance(result, ClusterReport) else _unreachable(sessions[key], prepared.desired[key], result)
        for key, result in results.items()
    )


def _verify_cluster(prepared: Prepared, session: Session, run: Run, probing: Probing | None) -> ClusterReport:
    session.cloud.identify()
    # An operator that another spec brought serves these pools too, whatever their own spec needs.
    operated = has_operator(look(session.kube()))
    desired = prepared.settle(session.cluster.key, session.provider, operator_live=operated).desired
    seconds = _replaced(desired, session)
    tasks = {
        expected.target.name: partial(_verify_pool, expected, session, run, probing, seconds.get(expected.target.name))
        for expected in desired
    }
    reports = run_all(tasks, run.parallelism)
    return ClusterReport(session.cluster, tuple(r for r in reports.values() if isinstance(r, PoolReport)))


def _replaced(desired: Sequence[Desired], session: Session) -> dict[str, Observed]:
    """Find the old ones of pools that are being replaced, by the name of the declared pool.

    Their nodes carry the same marks. The pools are only read where nodes of two pools have the marks of one.
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
        if probing and proof.status in GOOD:
            proof = _probed(desired, proof, session, run, probing)
    except GpukubeError as error:
        return PoolReport(target.pool, target.name, "failed", "could not be read", error=error)
    except Stopped:
        message = "not verified: the run was stopped"
        return PoolReport(target.pool, target.name, "not-attempted", message, resume=run.resume)
    if proof.status in GOOD:
        run.report("done", summarise(proof), target.cluster.key, target.pool)
        message = "matches the spec"
        if replaced is not None:
            message += f"; nodes of {replaced.name}, which it replaces, are left out"
        return PoolReport(target.pool, target.name, "unchanged", message, proof=proof)
    run.report("failed", summarise(proof), target.cluster.key, target.pool)
    unproven = _unproven(desired, proof)
    return PoolReport(target.pool, target.name, "failed", "differs", proof=proof, error=unproven)


def _probed(desired: Desired, proof: PoolProof, session: Session, run: Run, probing: Probing) -> PoolProof:
    """Probe a pool; one that had no node is looked at again, now that the probe has started one."""
    probed = probe_pool(desired, proof, session, run, probing)
    ran = probed.probe is not None and probed.probe.status == "passed"
    if proof.status != "empty" or not ran:
        return probed
    grown = _wait_for_proof(desired, session, run, max(run.pace.timeout_s, run.pace.settle_s))
    return replace(grown, probe=probed.probe)


def _unreachable(session: Session, desired: Sequence[Desired], error: GpukubeError) -> ClusterReport:
    message = "not attempted: see the error of its cluster"
    pools = tuple(PoolReport(d.target.pool, d.target.name, "not-attempted", message) for d in desired)
    return ClusterReport(session.cluster, pools, error=error)


def _wait_for_proof(
    desired: Desired, session: Session, run: Run, limit_s: float, apart_from: Observed | None = None
) -> PoolProof:
    """Look until it is good, or until it stays broken, or until the limit; return the last look.

    Raises:
        AccessError, ClusterError: The cluster could not be read for longer than a blip.
    """
    key, pool = desired.target.cluster.key, desired.target.pool
    end = run.clock.now() + limit_s
    bad = Lasting(run.pace.poll_s)
    number = None  # of the last look; the first one begins now, when the cloud has said that the pool is there
    # Nodes, plugin and labels come up one after the other: each look is a moment in between. Broken is only what stays
    # broken for settle_s: pods crash while a driver is installed, and an API server that restarts answers nothing.
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
        if proof is not None and not isinstance(seen, GpukubeError) and (over or proof.status in GOOD):
            return _with_logs(desired, proof, seen, session)
        run.report("verify", summarise(proof) if proof else str(seen), key, pool)
        run.clock.wait(min(run.pace.poll_s, max(0.0, end - now)))


def _with_logs(desired: Desired, proof: PoolProof, seen: Snapshot, session: Session) -> PoolProof:
    """Ask the plugin's own log why it crashes or shows nothing; where it cannot be read the proof stands as it is."""
    for source in log_sources(desired, proof, seen)[:_LOGS]:
        try:
            lines = session.kube().pod_log(NAMESPACE, source.pod, _LINES, source.container)
        except GpukubeError:
            continue
        proof = explain_by_log(proof, source, lines)
    return proof


def _look(session: Session) -> Snapshot | GpukubeError:
    """Look once; an expired token and an API server that restarts are answered, not raised."""
    kube = None
    try:
        kube = session.kube()
        return look(kube)
    except AccessError as error:
        # The wait may outlive the token; this very client is named, since a sibling may have renewed it already.
        session.renew(kube)
        return error
    except ClusterError as error:
        return error


def summarise(proof: PoolProof) -> str:
    """Say in one line what the nodes show, or which step is missing."""
    nodes = f"{proof.nodes_seen} node{'' if proof.nodes_seen == 1 else 's'}"
    if proof.status == "proven":
        devices = ", ".join(f"{name}: {count}" for name, count in proof.total.items())
        return f"{devices} verified on {nodes}"
    if proof.status == "unmanaged":
        seen = ", ".join(f"{name}: {count}" for name, count in proof.total.items())
        return f"not managed: your own plugin advertises {seen} on {nodes}" if seen else f"{NOT_MANAGED} ({nodes})"
    if proof.status == "empty":
        stuck = next((finding.seen for finding in proof.findings if code_of_step("node") == finding.code), "")
        return f"no nodes now (autoscaling allows 0); {stuck or 'the cluster is ready for them'}"
    step = proof.missing_step
    return f"{step.where}: {step.seen}" if step else f"{nodes}, no devices yet"


def _unproven(desired: Desired, proof: PoolProof) -> ClusterError:
    """Turn what is missing into an error whose diagnostics name the steps, the most telling first."""
    real = [finding for finding in proof.all_findings if finding.severity != "hint"]
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
