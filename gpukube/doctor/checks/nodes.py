"""Checks of GPU nodes by themselves: taints, labels, conditions.

Lives here: pure checks. Must not live here: what runs on the nodes (plugins), and what pods request (workloads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import devices_of
from gpukube.core.faults import fault
from gpukube.doctor.check import Checks
from gpukube.doctor.gpu_stack import gpu_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence, PodFacts

_HARD: Final = ("NoSchedule", "NoExecute")
_MOST_NAMED: Final = 5

CHECKS: Final = Checks(needs=("nodes",))


@CHECKS.add(
    "node-not-ready",
    title="GPU nodes that are not ready",
    consequence="no pod starts there, and the machine still costs money",
    link="https://kubernetes.io/docs/reference/node/node-status/#condition",
)
def _not_ready(evidence: Evidence) -> Iterator[Fault]:
    """Find nodes that stopped reporting, and those that are not ready yet: a node that boots is not ready either."""
    for node in gpu_nodes(evidence):
        status = node.conditions.get("Ready", "Unknown")
        if status == "Unknown":
            yield fault(
                f"node {node.name}",
                "its kubelet stopped reporting",
                f"kubectl describe node {node.name} shows since when; if the cloud does not repair it, delete its "
                "machine in the cloud: the pool creates another",
                (f"created {node.created}",),
            )
        elif status != "True":
            yield fault(
                f"node {node.name}",
                "its kubelet reports NotReady",
                f"kubectl describe node {node.name} shows why; a machine that boots, or reboots for MIG, becomes "
                "ready by itself",
                (f"created {node.created}",),
                severity="warning",
            )


@CHECKS.add(
    "node-cordoned",
    title="GPU nodes that are cordoned",
    consequence="no new pod can use its GPUs, and the machine still costs money",
    link="https://kubernetes.io/docs/concepts/architecture/nodes/#manual-node-administration",
    severity="warning",
)
def _cordoned(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        if node.cordoned:
            yield fault(
                f"node {node.name}",
                "it is cordoned",
                f"kubectl uncordon {node.name}, unless an upgrade or a drain of it is under way",
            )


def _is_cpu_guest(pod: PodFacts) -> bool:
    """Return whether a pod could run elsewhere: it requests no device, and no DaemonSet put it here."""
    view = pod.view
    return not view.devices and view.owner_kind not in ("DaemonSet", "Node") and view.phase in ("Running", "Pending")


@CHECKS.add(
    "devices-unhealthy",
    title="devices that the plugin reports as unhealthy",
    consequence="pods cannot use them; a restart of the plugin would advertise them again although they are broken",
    link="https://docs.nvidia.com/deploy/xid-errors/index.html",
)
def _unhealthy(evidence: Evidence) -> Iterator[Fault]:
    """Find devices in a node's capacity that are not allocatable; with none left the plugin itself may be missing."""
    for node in gpu_nodes(evidence):
        for name, count in sorted(node.devices.items()):
            there = devices_of(node.capacity).get(name, 0)
            if node.ready and 0 < count < there:
                yield fault(
                    f"node {node.name}",
                    f"{there - count} of {there} {name} are unhealthy",
                    f"the plugin's log on the node has the XID; kubectl drain {node.name} --ignore-daemonsets, "
                    "then reboot or replace the node",
                    (f"capacity {there}, allocatable {count}",),
                )


@CHECKS.add(
    "gpu-node-untainted",
    title="GPU nodes without a taint, and the CPU pods on them",
    consequence="pods without GPUs fill the most expensive nodes, keep them from scaling down, and leave no room "
    "for GPU pods",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#example-use-cases",
    severity="warning",
    needs=("nodes", "pods"),
)
def _untainted(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        if any(taint.effect in _HARD for taint in node.taints):
            continue
        guests = [pod for pod in evidence.pods_on(node.name) if _is_cpu_guest(pod)]
        yield fault(
            where=f"node {node.name}",
            seen=f"no taint keeps pods without GPUs away; {len(guests)} of them run here",
            fix=f"kubectl taint node {node.name} nvidia.com/gpu=present:NoSchedule, and add the same taint to its pool "
            "for new nodes",
            evidence=tuple(f"pod {pod}" for pod in guests[:_MOST_NAMED])
            + ((f"and {len(guests) - _MOST_NAMED} more",) if len(guests) > _MOST_NAMED else ()),
        )
