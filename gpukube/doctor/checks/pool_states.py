"""Checks of what the cloud reports about its cluster and pools: failed, busy, missing nodes.

In scope: pure checks that apply to every cloud. Out of scope: checks of one cloud (its diagnose.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.faults import fault
from gpukube.core.fields import MOST
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.cloud_view import diagnosed_pools
from gpukube.errors import CapacityError, GpukubeError, QuotaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence, PodFacts


CHECKS: Final = Checks(needs=("cloud", "pools"))


@CHECKS.add(
    "cluster-not-ready",
    title="clusters that are not ready",
    consequence="its pools cannot be created, changed or used",
    link="https://kubernetes.io/docs/concepts/overview/components/#control-plane-components",
    needs=("cloud",),
)
def _cluster(evidence: Evidence) -> Iterator[Fault]:
    facts = evidence.facts
    if facts is not None and not facts.ready:
        yield fault(
            where=f"cluster {evidence.cluster.key}",
            seen=f"its status in the cloud is {facts.status}",
            fix="start it, or wait until the cloud has finished",
            evidence=(f"location={facts.location}", f"version={facts.kubernetes_version}"),
        )


def _with_problem(
    evidence: Evidence, kind: type[GpukubeError], *, other_than: tuple[type[GpukubeError], ...] = ()
) -> Iterator[Fault]:
    """Find the pools for which the cloud reports an error of this class."""
    for view, diagnosis, pool in diagnosed_pools(evidence):
        error = diagnosis.problem_of(view, pool)
        if not isinstance(error, kind) or isinstance(error, other_than):
            continue
        problem = error.diagnostics[0]
        again = "gpukube pool create -f SPEC" if pool.owner else diagnosis.remove(view, pool)
        yield fault(
            where=view.name_of(pool),
            seen=f"{pool.status}: {problem.seen}",
            fix=f"{problem.fix}; then {again}" if pool.state == "failed" else problem.fix,
            evidence=tuple(line for line in (problem.why, f"details: {diagnosis.show(view, pool)}") if line),
        )


CHECKS.add(
    "pool-quota",
    title="pools that are limited by a quota",
    consequence="the pool gets no further nodes until the quota is raised",
    link="https://github.com/aws/containers-roadmap/issues/2204",
)(partial(_with_problem, kind=QuotaError))


@CHECKS.add(
    "cloud-quota",
    title="quotas of the cloud that are too low for the declared pools",
    consequence="the cloud refuses nodes beyond it, at once or when the pool grows",
    link="https://kubernetes.io/docs/concepts/cluster-administration/node-autoscaling/",
    severity="warning",
)
def _cloud_quota(evidence: Evidence) -> Iterator[Fault]:
    for use in evidence.limits:
        quota, reading = use.quota, use.reading
        where = f"quota {quota.name} in {quota.place}"
        if use.is_short:
            used = "" if reading.used is None else f", {reading.used:g} of them used"
            needed = f"{', '.join(use.pools)} may need {use.needed:g} more"
            yield fault(
                where=where,
                seen=f"it allows {reading.limit:g} {quota.unit}{used}; {needed}",
                fix=f"raise it to {use.least_limit:g}: {use.fix}",
                evidence=(f"source: {quota.source}",),
            )
        elif reading.limit is None and not quota.unread:
            yield fault(
                where=where,
                seen=f"not checked: {reading.unknown}",
                fix="grant the permission that docs/permissions.md lists, or compare the quota manually",
                evidence=(f"needed: {use.needed:g} {quota.unit} by {', '.join(use.pools)}",),
                severity="hint",
            )


CHECKS.add(
    "pool-capacity",
    title="pools for which the cloud has no capacity",
    consequence="the pool gets no further nodes for now",
    link="https://github.com/aws/containers-roadmap/issues/2326",
)(partial(_with_problem, kind=CapacityError))

CHECKS.add(
    "pool-ill",
    title="pools that failed or run with an error",
    consequence="nodes are missing or not working, and may still cost money",
    link="https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html",
)(partial(_with_problem, kind=GpukubeError, other_than=(QuotaError, CapacityError)))


@CHECKS.add(
    "pool-busy",
    title="pools that the cloud is changing",
    consequence="other changes of the pool, on AKS of the whole cluster, are refused meanwhile",
    link="https://github.com/Azure/telescope/issues/1213",
    severity="warning",
)
def _busy(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state == "busy":
            yield fault(
                where=view.name_of(pool),
                seen=f"the cloud is changing it: {pool.status}",
                fix=f"wait for it: gpukube pool wait {pool.pool} -f SPEC"
                if pool.pool
                else f"wait for it: {diagnosis.show(view, pool)}",
                evidence=_named(_leaving(evidence, pool)),
            )


@CHECKS.add(
    "pool-deleting",
    title="deletions in progress, and the pods that hold them up",
    consequence="its machines cost money until they are drained",
    link="https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/",
    severity="warning",
)
def _deleting(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state == "deleting":
            held = _leaving(evidence, pool)
            yield fault(
                where=view.name_of(pool),
                seen=f"it is being deleted, with {len(held) or 'no'} pods left on its nodes",
                fix="relax what protects its pods (kubectl get poddisruptionbudgets -A), or delete them; details: "
                + diagnosis.show(view, pool),
                evidence=_named(held),
            )


def _leaving(evidence: Evidence, pool: Observed) -> list[PodFacts]:
    """Return the pods that must leave the pool's nodes."""
    nodes = {node.name for node in nodes_of_pool(evidence.seen, pool)}
    return [
        pod
        for pod in evidence.pods
        if pod.view.node in nodes
        and pod.view.owner_kind not in ("DaemonSet", "Node")
        and pod.view.phase in ("Pending", "Running")
    ]


def _named(pods: list[PodFacts]) -> tuple[str, ...]:
    more = (f"and {len(pods) - MOST_NAMED} more pods",) if len(pods) > MOST_NAMED else ()
    return (*(f"pod {pod} on {pod.view.node}" for pod in pods[:MOST_NAMED]), *more)


@CHECKS.add(
    "pool-nodes-missing",
    title="machines that did not join the cluster",
    consequence="they cost money, and no pod can use them",
    link="https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html",
    needs=("cloud", "pools", "nodes"),
)
def _missing_nodes(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state != "ready" or not pool.nodes or diagnosis.problem_of(view, pool) is not None:
            continue
        seen = nodes_of_pool(evidence.seen, pool)
        if len(seen) < pool.nodes and pool.status != "Stopped":
            yield fault(
                where=view.name_of(pool),
                seen=f"the cloud counts {pool.nodes} nodes; {len(seen)} are in the cluster",
                fix=f"inspect the machines that did not join: {diagnosis.show(view, pool)}",
                evidence=tuple(f"node {node.name}" for node in seen[:MOST_NAMED]),
                severity="warning" if seen or MOST in pool.fields else "error",
            )
