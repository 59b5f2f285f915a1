"""Checks of GPU nodes themselves: taints, labels, conditions.

In scope: pure checks. Out of scope: what runs on the nodes (plugins), and what pods request (workloads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import ConditionView, devices_of
from gpukube.cluster.proof.checks import HINDERING
from gpukube.cluster.proof.claimable import promised_counts
from gpukube.core.faults import fault
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.checks.mig import explains_crash
from gpukube.doctor.gpu_stack import advertisers_on, dra_drivers, gpu_nodes, unhealthy_devices
from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.catalog import find_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence, PodFacts

_LONGEST_BOOT_S: Final = 1800.0
"""Maximum seconds of a boot; also of a MIG layout change with its reboot (mig-config-stuck)."""
_HINDERED: Final = {
    "DiskPressure": "the kubelet evicts pods and accepts no new ones: free up its disk, or give the pool a larger one",
    "NetworkUnavailable": "the node has no route to the pod network, so no new pod starts there",
}
_TYPE: Final = "node.kubernetes.io/instance-type"
_PRODUCT: Final = "nvidia.com/gpu.product"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_HARD: Final = ("NoSchedule", "NoExecute")

CHECKS: Final = Checks(needs=("nodes",))


@CHECKS.add(
    "node-not-ready",
    title="GPU nodes that are not ready",
    consequence="no pod starts there, and the machine still costs money",
    link="https://kubernetes.io/docs/reference/node/node-status/#condition",
)
def _not_ready(evidence: Evidence) -> Iterator[Fault]:
    """Find nodes that stopped reporting, and those that are not ready yet, such as a booting node."""
    for node in gpu_nodes(evidence):
        status = node.conditions.get("Ready", "Unknown")
        if status == "True":
            continue
        age = evidence.age_s(node.condition_views["Ready"].since) if "Ready" in node.condition_views else None
        silent = status == "Unknown"
        lasts = age is not None and age >= _LONGEST_BOOT_S
        yield fault(
            f"node {node.name}",
            ("its kubelet stopped reporting" if silent else "its kubelet reports NotReady")
            + _condition_text(evidence, node, "Ready"),
            f"kubectl describe node {node.name}",
            (f"created {node.created}",),
            severity="error" if silent or lasts else "warning",
            why="if the cloud does not repair it, delete its machine in the cloud: the pool creates another"
            if silent or lasts
            else "a machine that boots, or reboots for MIG, becomes ready within half an hour on its own",
        )


def _condition_text(evidence: Evidence, node: NodeView, condition: str) -> str:
    """Return how long a condition has lasted, and its message."""
    view = node.condition_views.get(condition, ConditionView())
    age = evidence.age_s(view.since)
    held = "" if age is None else f" for {_duration_text(age)}"
    return held + (f" ({view})" if str(view) else "")


def _duration_text(seconds: float) -> str:
    minutes = int(max(seconds, 0) // 60)
    days, hours = minutes // 1440, minutes // 60
    return f"{days} days" if days > 1 else f"{hours} h" if hours > 1 else f"{minutes} min"


@CHECKS.add(
    "node-condition",
    title="GPU nodes with DiskPressure or without a network",
    consequence="no new pod starts there, and the machine still costs money",
    link="https://kubernetes.io/docs/reference/node/node-status/#condition",
)
def _conditions(evidence: Evidence) -> Iterator[Fault]:
    """Find ready nodes whose conditions keep pods away; an unready node has a separate check."""
    for node in gpu_nodes(evidence):
        for condition in HINDERING:
            if not node.ready or node.conditions.get(condition) != "True":
                continue
            age = evidence.age_s(node.condition_views[condition].since) if condition in node.condition_views else None
            lasts = age is not None and age >= _LONGEST_BOOT_S
            yield fault(
                f"node {node.name}",
                f"it has {condition}{_condition_text(evidence, node, condition)}",
                f"kubectl describe node {node.name}",
                severity="error" if lasts else "warning",
                why=_HINDERED[condition],
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
                f"unless an upgrade or a drain is in progress: kubectl uncordon {node.name}",
            )


def _is_cpu_guest(pod: PodFacts) -> bool:
    """Return whether a pod could run elsewhere: it requests no device, and no DaemonSet created it."""
    view = pod.view
    return not view.devices and view.owner_kind not in ("DaemonSet", "Node") and view.phase in ("Running", "Pending")


@CHECKS.add(
    "devices-unhealthy",
    title="devices that the plugin or the DRA driver reports as unhealthy",
    consequence="pods cannot use them; a restart of the plugin would advertise them again although they are broken",
    link="https://docs.nvidia.com/deploy/xid-errors/index.html",
    needs=("nodes", "daemonsets", "pods"),
)
def _unhealthy(evidence: Evidence) -> Iterator[Fault]:
    """Find devices in a node's capacity that are not allocatable."""
    for node in gpu_nodes(evidence):
        for name, (healthy, there) in unhealthy_devices(evidence, node).items():
            if not healthy and explains_crash(node):
                continue
            yield fault(
                f"node {node.name}",
                f"{there - healthy} of {there} {name} are unhealthy",
                f"the plugin's log on the node has the XID; then drain and replace or reboot the node: kubectl drain "
                f"{node.name} --ignore-daemonsets --delete-emptydir-data",
                (f"capacity {there}, allocatable {healthy}",),
            )
        tainted = [device for device in evidence.published_on(node.name).kept_off if node.ready]
        if tainted:
            yield fault(
                f"node {node.name}",
                f"{len(tainted)} of its devices have a taint in its ResourceSlice, such as {tainted[0].taints[0]}",
                "the driver's log on the node has the XID; then drain and replace or reboot the node: kubectl drain "
                f"{node.name} --ignore-daemonsets --delete-emptydir-data",
                tuple(f"device {device.name}" for device in tainted)[:MOST_NAMED],
                why="claims do not get them, unless they tolerate the taint; it stays until the driver's pod restarts",
            )


@CHECKS.add(
    "devices-missing",
    title="nodes with fewer devices than their machine or their pool has",
    consequence="the driver, or the MIG manager, does not see all GPUs: their share of the machine's price is lost",
    link="https://docs.nvidia.com/deploy/xid-errors/index.html",
    needs=("nodes", "daemonsets"),
)
def _missing(evidence: Evidence) -> Iterator[Fault]:
    """Find GPUs that a plugin no longer lists at all; unhealthy ones that it lists are in the capacity."""
    for node in gpu_nodes(evidence):
        there = devices_of(node.capacity)
        for name, due in _expected_devices(evidence, node).items():
            if node.ready and 0 < there.get(name, 0) < due:
                yield fault(
                    f"node {node.name}",
                    f"it has {there[name]} {name} but should have {due}",
                    "drain and replace or reboot the node: kubectl drain "
                    f"{node.name} --ignore-daemonsets --delete-emptydir-data",
                    (f"instance type {node.labels.get(_TYPE, '?')}",),
                )
        yield from _missing_to_claims(evidence, node)


def _missing_to_claims(evidence: Evidence, node: NodeView) -> Iterator[Fault]:
    """Find a node whose DRA driver has published other devices than the spec promises; dra-silent finds none."""
    pool = evidence.pool_of(node)
    there = evidence.published_on(node.name)
    if pool is None or pool.ownership.advertiser != "dra" or not there.devices or explains_crash(node):
        return
    if not node.ready or there.kept_off or not all(one.complete for one in there.pools):
        return
    shown, due = promised_counts(pool, there), pool.promise.per_node
    pods = [pod for driver in dra_drivers(evidence) for pod in evidence.pods_on(node.name, driver)]
    if shown != due and pods:
        yield fault(
            f"node {node.name}",
            f"its ResourceSlice has {_counts(shown)}; the spec promises {_counts(due)}",
            "the driver looks for devices only when it starts; restart its pod, and replace the node if that does not "
            f"help: kubectl delete pod {pods[0].view.name} --namespace {pods[0].view.namespace}",
            (f"instance type {node.labels.get(_TYPE, '?')}",),
        )


def _counts(devices: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in devices.items())


def _expected_devices(evidence: Evidence, node: NodeView) -> dict[str, int]:
    """Return the devices that a node should list: whole GPUs by its machine, MIG devices by the spec.

    Empty if GPUs are shared, or if a former layout may still apply (as many devices as GPUs): other checks cover config
    entries and layouts.
    """
    pool = evidence.pool_of(node)
    machine = pool.target.machine if pool else find_machine(evidence.cluster.provider, node.labels.get(_TYPE, ""))
    shown = devices_of(node.capacity)
    if machine is None or machine.is_fractional or explains_crash(node) or len(advertisers_on(evidence, node)) > 1:
        return {}
    if pool is not None and pool.ownership.advertiser == "dra":
        return {}
    if pool is not None and pool.target.sharing.slicing is None and pool.target.sharing.mig is not None:
        due = pool.promise.per_node
        return {name: count for name, count in due.items() if shown.get(name, 0) != machine.devices}
    whole = node.labels.get("nvidia.com/mig.strategy", "none") == "none" and "MIG" not in node.labels.get(_PRODUCT, "")
    unshared = pool.target.sharing.slicing is None if pool else node.labels.get(_REPLICAS, "") == "1"
    return {GPU_RESOURCE: machine.devices} if whole and unshared else {}


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
            fix="add the taint to its pool for new nodes, and to this one: kubectl taint node "
            f"{node.name} nvidia.com/gpu=present:NoSchedule",
            evidence=tuple(f"pod {pod}" for pod in guests[:MOST_NAMED])
            + ((f"and {len(guests) - MOST_NAMED} more",) if len(guests) > MOST_NAMED else ()),
        )
