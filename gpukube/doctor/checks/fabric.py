"""Checks of the network between GPUs: what provides it to pods, and what its nodes have.

In scope: pure checks of EFA, InfiniBand and GPUDirect in the cluster, and of huge pages. Out of scope: the pool's own
interfaces, security groups and placement (a cloud's checks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.proof.fabric import fabric_findings, hugepage_findings, short_findings
from gpukube.cluster.proof.verify import nodes_of
from gpukube.cluster.state.fabric import (
    MOUNTED,
    TWICE,
    UNMOUNT,
    allocators,
    is_mounting_all,
    one_allocator,
    part_state,
    remedy,
    why_not_there,
)
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.cluster.state.reach import live_place
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import fault
from gpukube.core.fields import HIGH_SPEED
from gpukube.doctor.check import Checks
from gpukube.doctor.gpu_stack import gpu_nodes
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.fabric import PartState
    from gpukube.core.fabric import FabricPart
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence
    from gpukube.errors import Finding, Severity

_EFA: Final = "https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html"

CHECKS: Final = Checks(needs=("nodes", "daemonsets"))


def _parts() -> tuple[FabricPart, ...]:
    return tuple(part for facts in in_cluster_facts() for part in facts.fabric_parts)


def _state_on(node: NodeView, evidence: Evidence) -> PartState:
    return part_state(_parts(), live_place(node), evidence.seen.daemonsets)


def _as_faults(found: Iterable[Finding], kind: str) -> Iterator[Fault]:
    for item in found:
        severity: Severity = "warning" if item.severity == "hint" else "error"
        yield fault(f"{kind} {item.where}", item.seen, item.fix, severity=severity, why=item.why)


def is_fabric_missing(evidence: Evidence, names: Iterable[str]) -> bool:
    """Return whether a pool's fast network has one of these resources, and nothing makes it available."""
    wanted = tuple(names)
    if not wanted or {"daemonsets", "dra"} & evidence.troubles.keys():
        return False
    return any(
        pool.fabric is not None
        and any(map(pool.fabric.covers, wanted))
        and any(fabric_findings(pool, nodes_of(pool, evidence.nodes), evidence.seen))
        for pool in evidence.desired
    )


@CHECKS.add(
    "fabric-missing",
    title="pools with a fast network that nothing in the cluster makes available to pods",
    consequence="pods that request EFA, InfiniBand or GPUDirect stay Pending, others communicate over TCP",
    link="https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html",
    severity="warning",
    needs=("nodes", "daemonsets", "dra"),
)
def _missing(evidence: Evidence) -> Iterator[Fault]:
    for pool in evidence.desired:
        nodes = nodes_of(pool, evidence.nodes)
        found = fabric_findings(pool, nodes, evidence.seen)
        yield from _as_faults(found, "node" if any(node.ready for node in nodes) else "pool")


@CHECKS.add(
    "fabric-unplaced",
    title="DaemonSets of a fast network that do not tolerate the taints of nodes that have it",
    consequence="these nodes offer no device of the network: pods that request one stay Pending",
    link=_EFA,
    severity="warning",
    needs=("pools", "nodes", "daemonsets"),
)
def _unplaced(evidence: Evidence) -> Iterator[Fault]:
    """Check live pools outside the spec; `fabric-missing` checks those of the spec."""
    declared = {pool.target.name for pool in evidence.desired}
    for pool in evidence.live:
        if pool.name in declared or pool.fields.get(HIGH_SPEED) is not True:
            continue
        for node in nodes_of_pool(evidence.seen, pool)[:1]:
            state = _state_on(node, evidence)
            if state.stuck is not None and not state.landing and all(misfit.taint for misfit in state.stuck[2]):
                yield fault(f"node {node.name}", why_not_there(state), remedy(state, node.taints))


@CHECKS.add(
    "fabric-twice",
    title="nodes whose EFA devices are allocated by a device plugin and by a DRA driver",
    consequence=TWICE,
    link=_EFA,
)
def _twice(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        state = _state_on(node, evidence)
        if seen := allocators(state):
            yield fault(f"node {node.name}", seen, one_allocator(state))


@CHECKS.add(
    "fabric-mounted",
    title="device plugins 0.19.0 to 0.19.2 that pass all RDMA devices of a node to each GPU pod",
    consequence=MOUNTED,
    link="https://github.com/NVIDIA/k8s-device-plugin/pull/1837",
)
def _mounted(evidence: Evidence) -> Iterator[Fault]:
    mounting = [item for item in evidence.seen.daemonsets if is_mounting_all(item)]
    for node in gpu_nodes(evidence) if mounting else ():
        if any(part.advertises for part, _ in _state_on(node, evidence).landing):
            for item in mounting:
                if lands_on(item, node):
                    yield fault(f"node {node.name}", f"{item} passes all RDMA devices to each pod with a GPU", UNMOUNT)


@CHECKS.add(
    "fabric-short",
    title="nodes with fewer devices of their fast network, or fewer huge pages, than their pool",
    consequence="pods that request them stay Pending, or do not use the whole network",
    link=_EFA,
    needs=("nodes", "daemonsets", "dra"),
)
def _short(evidence: Evidence) -> Iterator[Fault]:
    for pool in evidence.desired:
        for node in nodes_of(pool, evidence.nodes):
            if node.ready:
                found = (*short_findings(pool, node, evidence.seen), *hugepage_findings(pool, node))
                yield from _as_faults((item for item in found if item.severity != "hint"), "node")
