"""Checks of what an autoscaler expects of pools, and of room for the cluster's own pods.

In scope: pure checks that apply to every cloud. Out of scope: how one cloud informs its autoscaler (its diagnose.py).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.cluster.state.reach import may_appear
from gpukube.cluster.state.scaling import NOTHING_SCALES, install_command, missing_scaler
from gpukube.cluster.state.scheduling import misfits
from gpukube.core.autoscaler_template import compare, devices_text
from gpukube.core.faults import fault
from gpukube.core.fields import LEAST, MOST
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.cloud_view import diagnosed_pools
from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.catalog import find_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence, PodFacts

_HARD: Final = ("NoSchedule", "NoExecute")
_CRITICAL: Final = "CriticalAddonsOnly"
"""Taint that the cluster's own pods tolerate (docs: aks/use-system-pools)."""
_SYSTEM: Final = "kube-system"

CHECKS: Final = Checks(needs=("cloud", "pools", "nodes"))


def _is_scaled(evidence: Evidence, pool: Observed) -> bool:
    """Return whether a GPU pool has bounds for its number of nodes."""
    has_gpus = bool(pool.owner) or find_machine(evidence.cluster.provider, pool.instance_type) is not None
    return has_gpus and MOST in pool.fields and pool.fields.get(LEAST) != pool.fields[MOST]


def kept_by_scaler(evidence: Evidence) -> list[PodFacts]:
    """Return the GPU pods that wait for a node of an autoscaled pool in a cluster without an autoscaler."""
    if missing_scaler(evidence.cluster, evidence.seen) is None:
        return []
    pools = [pool for _view, _diagnosis, pool in diagnosed_pools(evidence) if _is_scaled(evidence, pool)]
    return [
        pod
        for pod in evidence.pods
        if (pod.view.devices or pod.claiming)
        and pod.view.phase == "Pending"
        and not pod.view.scheduled
        and not pod.view.terminating
        if any(not misfits(pod.placement, pool.labels, pool.effective_taints, unknown=may_appear) for pool in pools)
    ]


@CHECKS.add(
    "autoscaler-misled",
    title="pools that scale from zero with devices the autoscaler does not know",
    consequence="pods that request these devices stay Pending: NotTriggerScaleUp, Insufficient",
    link="https://github.com/kubernetes/autoscaler/issues/8799",
)
def _misled(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        scaler = diagnosis.autoscaler
        if scaler is None or pool.fields.get(LEAST) != 0:
            continue
        expected = scaler.expected(pool)
        mismatch = None if expected is None else compare(_real_devices(evidence, pool), expected)
        if mismatch is None:
            continue
        text = f"its nodes advertise {devices_text(mismatch.real)}; while it is empty, the autoscaler expects "
        yield fault(
            where=view.name_of(pool),
            seen=text + devices_text(mismatch.expected),
            fix=scaler.fix_command(view, pool, mismatch.wrong),
            evidence=tuple(f"the autoscaler does not know {name}" for name in mismatch.unknown),
            severity="error" if mismatch.never_scales else "warning",
            why="" if mismatch.unknown else "until the first node exists, it adds a wrong number of nodes",
        )


def _real_devices(evidence: Evidence, pool: Observed) -> Mapping[str, int]:
    """Return the devices of one node: the most common of the live nodes, else the spec's; empty if unknown."""
    shown = [tuple(sorted(node.devices.items())) for node in nodes_of_pool(evidence.seen, pool) if node.devices]
    if shown:
        commonest = dict(Counter(shown).most_common(1)[0][0])
        return {name: count for name, count in commonest.items() if count}
    expected = [(pool.owner, pool.pool) == (d.target.owner, d.target.pool) for d in evidence.desired]
    return evidence.desired[expected.index(True)].promise.per_node if any(expected) else {}


@CHECKS.add(
    NOTHING_SCALES,
    title="autoscaled pools in a cluster where nothing adds or removes nodes",
    consequence="the pools keep their current size; from zero, the first pod stays Pending",
    link="https://docs.aws.amazon.com/eks/latest/userguide/autoscaling.html",
    severity="warning",
    needs=("cloud", "pools", "deployments"),
)
def _nothing_scales(evidence: Evidence) -> Iterator[Fault]:
    scaled = [(view, pool) for view, _diagnosis, pool in diagnosed_pools(evidence) if _is_scaled(evidence, pool)]
    scaler = missing_scaler(evidence.cluster, evidence.seen)
    if scaled and scaler:
        yield fault(
            where=f"cluster {evidence.cluster.key}",
            seen="nothing in the cluster adds or removes nodes of "
            + ", ".join(view.name_of(pool) for view, pool in scaled),
            fix=f"{scaler.advice}: {install_command(scaler, evidence.cluster)}",
            evidence=tuple(f"pod {pod} waits for one" for pod in kept_by_scaler(evidence)[:MOST_NAMED]),
            why=scaler.why,
        )


@CHECKS.add(
    "autoscaler-unready",
    title="autoscaled nodes that the autoscaler counts as unready",
    consequence="it adds more nodes, and after three such nodes stops scaling",
    link="https://github.com/kubernetes/autoscaler/issues/7050",
    severity="warning",
)
def _unready(evidence: Evidence) -> Iterator[Fault]:
    for view, diagnosis, pool in diagnosed_pools(evidence):
        scaler = diagnosis.autoscaler
        if scaler is None or MOST not in pool.fields:
            continue
        uncounted = [
            node
            for node in nodes_of_pool(evidence.seen, pool)
            if scaler.accelerator_label in node.labels
            and any(node.devices.values())
            and not node.devices.get(GPU_RESOURCE)
        ]
        if uncounted:
            yield fault(
                where=view.name_of(pool),
                seen=f"{len(uncounted)} of its nodes advertise {devices_text(uncounted[0].devices)} and no "
                f"{GPU_RESOURCE}: the autoscaler counts them as not ready",
                fix="advertise the devices as nvidia.com/gpu: sharing.mig.strategy: single, or renameByDefault: false, "
                "then gpukube pool apply -f SPEC; or give the pool a fixed size",
                evidence=tuple(f"node {node.name}: {devices_text(node.devices)}" for node in uncounted[:MOST_NAMED]),
            )


@CHECKS.add(
    "no-room-for-system-pods",
    title="clusters whose nodes are all tainted",
    consequence="CoreDNS and other system pods cannot run, so DNS names do not resolve",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/",
    needs=("nodes", "pods"),
)
def _all_tainted(evidence: Evidence) -> Iterator[Fault]:
    closing = [
        any(taint.effect in _HARD and taint.key != _CRITICAL for taint in node.taints) for node in evidence.nodes
    ]
    if not closing or not all(closing):
        return
    own = [
        pod
        for pod in evidence.pods
        if pod.view.namespace == _SYSTEM and pod.view.owner_kind not in ("DaemonSet", "Node")
    ]
    waiting = [pod for pod in own if not pod.view.scheduled]
    if not waiting and any(pod.view.phase == "Running" for pod in own):
        return  # they are scheduled: Fargate nodes are tainted too, but run the pods assigned to them
    taints = sorted({str(taint) for node in evidence.nodes for taint in node.taints if taint.effect in _HARD})
    yield fault(
        where=f"cluster {evidence.cluster.key}",
        seen=f"all {len(evidence.nodes)} nodes have a taint: {', '.join(taints)}",
        fix="add a pool without GPUs and without taints for system pods",
        evidence=tuple(f"pod {pod} is pending" for pod in waiting[:MOST_NAMED]),
        severity="error" if waiting else "warning",
    )
