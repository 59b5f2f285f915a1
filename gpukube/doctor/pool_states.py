"""Checks of what the cloud itself says of its cluster and pools: ill, busy, gone from the inside.

Lives here: pure checks that hold on every cloud. Must not live here: what one cloud alone knows (its diagnose.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.nodes_drift import nodes_of_pool
from gpukube.core.faults import fault
from gpukube.core.fields import MOST
from gpukube.doctor.check import Check
from gpukube.doctor.cloud_view import diagnosed_pools
from gpukube.errors import CapacityError, QuotaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence, PodFacts
    from gpukube.errors import GpukubeError

_MOST_NAMED: Final = 5


def _cluster(evidence: Evidence) -> Iterator[Fault]:
    facts = evidence.facts
    if facts is not None and not facts.ready:
        yield fault(
            where=f"cluster {evidence.cluster.key}",
            seen=f"the cloud calls it {facts.status}",
            fix="start it, or wait until the cloud has finished with it",
            evidence=(f"location={facts.location}", f"version={facts.kubernetes_version}"),
        )


def _ill(wanted: Callable[[GpukubeError], bool]) -> Callable[[Evidence], Iterator[Fault]]:
    """Make a check of the pools whose illness is of one kind."""

    def find(evidence: Evidence) -> Iterator[Fault]:
        for view, diagnosis, pool in diagnosed_pools(evidence):
            error = diagnosis.illness(view, pool)
            if error is None or not wanted(error):
                continue
            told = error.diagnostics[0]
            again = "gpukube pool create -f SPEC takes it up again" if pool.owner else diagnosis.remove(view, pool)
            yield fault(
                where=view.name_of(pool),
                seen=f"{pool.status}: {told.seen}",
                fix=f"{told.fix}; then {again}" if pool.state == "failed" else told.fix,
                evidence=tuple(line for line in (told.why, f"to see it: {diagnosis.show(view, pool)}") if line),
            )

    return find


def _busy(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state == "busy":
            yield fault(
                where=view.name_of(pool),
                seen=f"the cloud works on it: {pool.status}",
                fix=f"wait for it: gpukube pool wait {pool.pool} -f SPEC"
                if pool.pool
                else f"wait for it: {diagnosis.show(view, pool)}",
                evidence=_named(_leaving(evidence, pool)),
                severity="warning",
            )


def _deleting(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state == "deleting":
            held = _leaving(evidence, pool)
            yield fault(
                where=view.name_of(pool),
                seen=f"it is being deleted, with {len(held) or 'no'} pods left on its nodes",
                fix="loosen what keeps its pods (kubectl get poddisruptionbudgets -A), or delete them; to see it: "
                + diagnosis.show(view, pool),
                evidence=_named(held),
                severity="warning",
            )


def _leaving(evidence: Evidence, pool: Observed) -> list[PodFacts]:
    """List the pods that a drain of the pool's nodes has to move."""
    nodes = {node.name for node in nodes_of_pool(evidence.seen, pool)}
    return [pod for pod in evidence.pods if pod.view.node in nodes and _is_moved(pod)]


def _named(pods: list[PodFacts]) -> tuple[str, ...]:
    more = (f"and {len(pods) - _MOST_NAMED} more pods",) if len(pods) > _MOST_NAMED else ()
    return (*(f"pod {pod} on {pod.view.node}" for pod in pods[:_MOST_NAMED]), *more)


def _is_moved(pod: PodFacts) -> bool:
    return pod.view.owner_kind not in ("DaemonSet", "Node") and pod.view.phase in ("Pending", "Running")


def _missing_nodes(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        if pool.state != "ready" or not pool.nodes or diagnosis.illness(view, pool) is not None:
            continue
        seen = nodes_of_pool(evidence.seen, pool)
        if len(seen) < pool.nodes and pool.status != "Stopped":
            yield fault(
                where=view.name_of(pool),
                seen=f"the cloud counts {pool.nodes} nodes, and {len(seen)} are in the cluster",
                fix=f"look at the machines that did not join: {diagnosis.show(view, pool)}",
                evidence=tuple(f"node {node.name}" for node in seen[:_MOST_NAMED]),
                severity="warning" if seen or MOST in pool.fields else "error",
            )


def _is_other(error: GpukubeError) -> bool:
    return not isinstance(error, QuotaError | CapacityError)


CHECKS: Final = (
    Check(
        "cluster-not-ready",
        "clusters that take no work",
        "no pool of it can be made, changed or used",
        "https://kubernetes.io/docs/concepts/overview/components/#control-plane-components",
        _cluster,
        needs=("cloud",),
    ),
    Check(
        "pool-quota",
        "pools that a quota keeps small",
        "the pool gets no further nodes until somebody raises the quota",
        "https://github.com/aws/containers-roadmap/issues/2204",
        _ill(lambda error: isinstance(error, QuotaError)),
        needs=("cloud", "pools"),
    ),
    Check(
        "pool-capacity",
        "pools for which the cloud has no machine",
        "the pool gets no further nodes here and now",
        "https://github.com/aws/containers-roadmap/issues/2326",
        _ill(lambda error: isinstance(error, CapacityError)),
        needs=("cloud", "pools"),
    ),
    Check(
        "pool-ill",
        "pools that failed or run with an error",
        "its nodes are missing or do not work, and may be paid for all the same",
        "https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html",
        _ill(_is_other),
        needs=("cloud", "pools"),
    ),
    Check(
        "pool-busy",
        "pools that the cloud is changing",
        "other changes of the pool, on AKS of the whole cluster, are refused meanwhile",
        "https://github.com/Azure/telescope/issues/1213",
        _busy,
        needs=("cloud", "pools"),
    ),
    Check(
        "pool-deleting",
        "deletions that are under way, and what holds them up",
        "its machines are paid for until they are drained",
        "https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/",
        _deleting,
        needs=("cloud", "pools"),
    ),
    Check(
        "pool-nodes-missing",
        "machines that the cloud counts and the cluster does not have",
        "they are paid for, and no pod can use them",
        "https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html",
        _missing_nodes,
        needs=("cloud", "pools", "nodes"),
    ),
)
