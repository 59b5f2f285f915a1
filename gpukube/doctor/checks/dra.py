"""Checks of NVIDIA's DRA driver: installed twice, waiting for the driver, and what it publishes.

In scope: pure checks of its DaemonSets, ResourceSlices and DeviceClasses. Out of scope: nodes that it does not reach
(placement), pods of it that fail (plugins), claims (claims).

Sources: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, where the driver discovers devices only when it starts;
kubernetes/api resource/v1 types.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.slices import device_pools
from gpukube.cluster.state.advertisers import is_ours, remove_driver
from gpukube.cluster.state.dra_drivers import chart_of
from gpukube.cluster.state.published import LOADED_LABEL, TYPE, former_drivers
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.faults import Reconcile, Restart, fault
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.doctor.check import APPLY, Checks
from gpukube.doctor.checks.machines import driverless_pools
from gpukube.doctor.checks.mig import explains_crash
from gpukube.doctor.gpu_stack import dra_drivers, environment_of, gpu_nodes, release_of, running_init
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.views import NodeView, WorkloadView
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import ClassFacts, Evidence, PodFacts

_ISSUES: Final = "https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues"
_DOCS: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_SLOW_S: Final = 120.0
"""Seconds after which the DRA driver should have published its slices, which takes seconds."""
_INSTALLING_S: Final = 900.0
"""Seconds that an installer may need for NVIDIA's driver on a new node."""
_ROOT: Final = "NVIDIA_DRIVER_ROOT"

CHECKS: Final = Checks(needs=("nodes", "daemonsets", "pods", "dra"))


def _served(evidence: Evidence) -> Iterator[tuple[NodeView, WorkloadView, PodFacts]]:
    """Yield the ready GPU nodes on which a DRA driver should run, with its pod there."""
    for node in gpu_nodes(evidence):
        for driver in dra_drivers(evidence):
            if node.ready and lands_on(driver, node):
                yield from ((node, driver, pod) for pod in evidence.pods_on(node.name, driver))


def _restart_on(pod: PodFacts) -> str:
    return f"kubectl delete pod {pod.view.name} --namespace {pod.view.namespace}"


@CHECKS.add(
    "dra-driver-twice",
    title="two installations of the DRA driver that publish GPUs",
    consequence="on a node with both, each deletes the other's ResourceSlices, and the kubelet knows only one",
    link="https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu",
    needs=("daemonsets",),
)
def _twice(evidence: Evidence) -> Iterator[Fault]:
    found = sorted(dra_drivers(evidence), key=lambda item: (not is_ours(item, evidence.seen), not chart_of(item)[0]))
    for other in found[1:]:
        yield fault(
            str(other),
            f"{found[0]} publishes GPUs too",
            remove_driver(other),
            tuple(f"chart {name} {version}" for name, version in map(chart_of, found) if name),
        )


@CHECKS.add(
    "dra-driver-waiting",
    title="DRA drivers that do not find NVIDIA's driver on the node",
    consequence="the driver's pod stays in Init:0/1, and the node publishes no GPU",
    link=f"{_ISSUES}/692",
)
def _waiting(evidence: Evidence) -> Iterator[Fault]:
    driverless = {node.name for *_, nodes in driverless_pools(evidence) for node in nodes}
    for node, driver, pod in _served(evidence):
        age = evidence.age_s(pod.created)
        init = running_init(pod)
        if not init or node.name in driverless:  # driver-of-nobody reports that
            continue
        root = environment_of(evidence.manifest(driver)).get(_ROOT, "") or "/"
        expected = _expected_root(evidence, node)
        if age is not None and age < (_SLOW_S if expected not in ("", root) else _INSTALLING_S):
            continue
        ours = is_ours(driver, evidence.seen)
        log = f"kubectl logs {pod.view.name} --namespace {pod.view.namespace} -c {init}"
        if expected not in ("", root):
            fix = (
                APPLY if ours else f"set nvidiaDriverRoot={expected} in its release; its log says what it finds: {log}"
            )
        else:
            fix = f"install the driver there, or correct nvidiaDriverRoot; its log says what it finds: {log}"
        yield fault(
            f"node {node.name}",
            f"pod {pod} waits for nvidia-smi below nvidiaDriverRoot {root}"
            + (f"; on nodes of this pool it is {expected}" if expected not in ("", root) else ""),
            fix,
            (f"it belongs to {driver}",),
            safe_fix=Reconcile() if fix == APPLY and evidence.desired else None,
        )


def _expected_root(evidence: Evidence, node: NodeView) -> str:
    """Return the driver root of a declared pool's nodes; "" for other nodes."""
    pool = evidence.pool_of(node)
    return str(pool.ownership.values.get("nvidiaDriverRoot", "")) if pool else ""


@CHECKS.add(
    "dra-silent",
    title="DRA drivers that run but publish no devices",
    consequence="pods that claim a GPU stay Pending even though every pod of the stack runs",
    link=f"{_ISSUES}/1008",
)
def _silent(evidence: Evidence) -> Iterator[Fault]:
    """Find nodes without a slice or without devices: NVIDIA's driver came later, or MIG mode has no instances."""
    for node, driver, pod in _served(evidence):
        age = evidence.age_s(pod.created)
        pools = evidence.published_on(node.name).pools
        if not pod.view.ready or explains_crash(node) or any(pool.devices for pool in pools):
            continue
        if not all(pool.complete for pool in pools) or (age is not None and age < _SLOW_S):
            continue
        yield fault(
            f"node {node.name}",
            f"pod {pod} is Running, but "
            + ("its ResourceSlice has no devices" if pools else f"the node has no ResourceSlice of {DRIVER}"),
            "it looks for devices only when it starts; create MIG instances first if the GPUs are in MIG mode, then "
            f"restart it: {_restart_on(pod)}",
            (f"it belongs to {driver}",),
            safe_fix=Restart(driver.namespace, driver.name),
        )


@CHECKS.add(
    "dra-slices-incomplete",
    title="nodes that have published only a part of their ResourceSlices",
    consequence="the scheduler ignores all devices of the node until the others exist",
    link=_DOCS,
)
def _incomplete(evidence: Evidence) -> Iterator[Fault]:
    for node, driver, pod in _served(evidence):
        age = evidence.age_s(pod.created)
        for pool in evidence.published_on(node.name).pools:
            if not pool.complete and (age is None or age >= _SLOW_S):
                yield fault(
                    f"node {node.name}",
                    f"{pool.found} of {pool.expected} ResourceSlices of generation {pool.generation} exist",
                    f"wait a minute, then restart the driver's pod: {_restart_on(pod)}",
                    (f"it belongs to {driver}",),
                )


@CHECKS.add(
    "dra-slices-stale",
    title="ResourceSlices of nodes that are gone, that no DRA driver serves, or of another driver version",
    consequence="the scheduler allocates devices that no driver can prepare: pods stay in ContainerCreating",
    link=_DOCS,
    severity="warning",
)
def _stale(evidence: Evidence) -> Iterator[Fault]:
    nodes = {node.name: node for node in evidence.nodes}
    served = {node.name: pod for node, _driver, pod in _served(evidence)}
    for item in evidence.seen.slices:
        if item.driver != DRIVER or not item.node:
            continue
        node = nodes.get(item.node)
        delete = f"kubectl delete resourceslice {item.name}"
        if node is None:
            yield fault(f"ResourceSlice {item.name}", f"its node {item.node} no longer exists", delete)
        elif _is_left_over(evidence, node):
            yield fault(f"ResourceSlice {item.name}", f"no DRA driver runs on its node {item.node} any more", delete)
        elif node.name in served and (versions := former_drivers(evidence.published_on(node.name), node)):
            yield fault(
                f"node {node.name}",
                f"its devices are of driver {', '.join(versions)}, but driver {node.labels[LOADED_LABEL]} is loaded",
                f"restart the driver's pod: {_restart_on(served[node.name])}",
            )


def _is_left_over(evidence: Evidence, node: NodeView) -> bool:
    """Return whether slices stay on a node of gpukube's that a device plugin serves now."""
    drivers = dra_drivers(evidence)
    claimed = node.labels.get(ADVERTISER_LABEL, "dra") == "dra"
    return bool(drivers) and not claimed and not any(evidence.pods_on(node.name, driver) for driver in drivers)


@CHECKS.add(
    "dra-class-missing",
    title="DeviceClasses of the DRA driver that do not exist",
    consequence="claims that name the class stay pending",
    link=_DOCS,
    needs=("daemonsets", "dra"),
)
def _class_missing(evidence: Evidence) -> Iterator[Fault]:
    drivers = sorted(dra_drivers(evidence), key=lambda item: not is_ours(item, evidence.seen))
    types = {
        device.attributes.get(TYPE) for pool in device_pools(evidence.seen.slices, DRIVER) for device in pool.devices
    }
    needed = {GPU_CLASS} if "gpu" in types or (drivers and not types) else set()
    needed |= {MIG_CLASS} if "mig" in types else set()
    for name in sorted(needed.difference(evidence.seen.device_classes)):
        ours = bool(drivers) and is_ours(drivers[0], evidence.seen)
        yield fault(
            f"DeviceClass {name}",
            "it does not exist, and a DRA driver publishes its devices",
            APPLY if ours else _recreate(evidence, drivers[:1]),
            safe_fix=Reconcile() if ours and evidence.desired else None,
        )


def _recreate(evidence: Evidence, drivers: list[WorkloadView]) -> str:
    releases = {(item.namespace, item.name): item for item in evidence.releases}
    release = next((found for driver in drivers if (found := releases.get(release_of(driver)))), None)
    if release is None:
        return "install the driver's release again, which creates it: helm list --all-namespaces"
    return f"helm rollback {release.name} {release.revision} --namespace {release.namespace}"


@CHECKS.add(
    "dra-class-twice",
    title="two DeviceClasses for one extended resource",
    consequence="the newest class wins: pods that request the resource may get devices of another kind",
    link=_DOCS,
    severity="warning",
    needs=("dra",),
)
def _class_twice(evidence: Evidence) -> Iterator[Fault]:
    by_name: dict[str, list[ClassFacts]] = {}
    for item in evidence.classes:
        if item.extended:
            by_name.setdefault(item.extended, []).append(item)
    for extended, classes in by_name.items():
        if len(classes) == 1:
            continue
        newest = max(item.created for item in classes)
        winner = min(item.name for item in classes if item.created == newest)
        kept = min(classes, key=lambda item: (item.name != GPU_CLASS, item.release == ("", ""), item.name))
        for extra in classes:
            if extra != kept:
                yield fault(
                    f"DeviceClass {extra.name}",
                    f"DeviceClass {kept.name} has extendedResourceName {extended} too; pods get devices of {winner}",
                    f"kubectl patch deviceclass {extra.name} --type json --patch "
                    '\'[{"op": "remove", "path": "/spec/extendedResourceName"}]\'',
                )
