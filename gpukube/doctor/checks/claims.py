"""Checks of claims for GPUs: pods that wait for devices, and claims that nothing cleans up.

In scope: pure checks of ResourceClaims, their templates, and the pods that name them. Out of scope: pods that request
extended resources, and pods that have their devices but do not start (workloads); manifests that are not applied yet.

Source: kubernetes/api resource/v1 types.go; messages of kubernetes pkg/scheduler/framework/plugins/dynamicresources.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.cluster.kube.views import CORDON
from gpukube.cluster.state.published import TYPE
from gpukube.cluster.state.scheduling import misfits
from gpukube.core.faults import fault
from gpukube.core.jsontree import items, number, text, tree
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.checks.scaling import kept_by_scaler
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS
from gpukube.workload.cel.values import BeyondSubset, CelError
from gpukube.workload.claims import read_claim
from gpukube.workload.devices import published_by_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.cluster.state.scheduling import Misfit
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import ClaimFacts, Evidence, PodFacts
    from gpukube.errors import Severity
    from gpukube.workload.devices import Device

    Devices: TypeAlias = Callable[[], list[Device]]

_DOCS: Final = "https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/"
_TYPES: Final = {GPU_CLASS: "gpu", MIG_CLASS: "mig"}
"""Class of the driver's chart -> type of its devices."""
_SLOW_S: Final = 120.0

CHECKS: Final = Checks(needs=("nodes", "pods", "dra", "claims"))


@dataclass(frozen=True, slots=True)
class _Cause:
    seen: str
    fix: str
    evidence: tuple[str, ...] = ()
    severity: Severity = "error"


@CHECKS.add(
    "claims-pending",
    title="pods that wait for claimed GPUs, and the reason",
    consequence="the pod stays Pending",
    link=_DOCS,
)
def _pending(evidence: Evidence) -> Iterator[Fault]:
    stuck = kept_by_scaler(evidence)  # nothing-scales reports those
    devices = cache(partial(_devices, evidence))
    for pod in evidence.pods:
        view = pod.view
        if not pod.claiming or view.phase != "Pending" or view.scheduled or view.terminating or pod in stuck:
            continue
        if cause := _cause(evidence, pod, devices):
            reason = (view.unschedulable,) if view.unschedulable else ()
            yield fault(f"pod {pod}", cause.seen, cause.fix, (*reason, *cause.evidence), severity=cause.severity)


def _cause(evidence: Evidence, pod: PodFacts, devices: Devices) -> _Cause | None:
    """Return why a pod waits for its claims; None if another check reports it, or if it does not claim GPUs.

    Args:
        evidence: The cluster.
        pod: The pod.
        devices: Returns all devices of the driver, read once for all pods.
    """
    if missing := _missing(evidence, pod):
        return missing
    claims = [claim for claim in _of(evidence, pod) if not claim.allocated]
    for name in dict.fromkeys(name for claim in claims for name in claim.classes):
        if name not in evidence.seen.device_classes:
            if name in _TYPES and evidence.seen.sliced_by(DRIVER):  # dra-class-missing reports that
                return None
            return _Cause(
                f"its claim names DeviceClass {name}, which does not exist",
                "correct deviceClassName, or install the driver that has this class: kubectl get deviceclasses",
            )
    return _of_devices(evidence, pod, claims, devices)


def _missing(evidence: Evidence, pod: PodFacts) -> _Cause | None:
    namespace = pod.view.namespace
    for kind, names, known in (
        ("ResourceClaimTemplate", pod.templates, evidence.templates),
        ("ResourceClaim", pod.claims, evidence.claims),
    ):
        there = {claim.name for claim in known if claim.namespace == namespace}
        for name in names:
            if name not in there:
                return _Cause(
                    f"it names {kind} {name}, which does not exist in namespace {namespace}",
                    "create it, or correct the name in the pod's resourceClaims: kubectl get "
                    f"{kind.lower()}s --namespace {namespace}",
                )
    return None


def _of(evidence: Evidence, pod: PodFacts) -> list[ClaimFacts]:
    """Return the claims of a pod; where they do not exist yet, its templates."""
    there = [item for item in evidence.claims if item.namespace == pod.view.namespace and item.name in pod.claims]
    templates = [
        item for item in evidence.templates if item.namespace == pod.view.namespace and item.name in pod.templates
    ]
    return there or templates


def _of_devices(evidence: Evidence, pod: PodFacts, claims: list[ClaimFacts], devices: Devices) -> _Cause | None:
    """Compare what a pod claims of the driver's own classes with the devices that exist and those that are free."""
    needed = {name: sum(_count(claim, name) for claim in claims) for name in _TYPES}
    name = next((name for name, count in needed.items() if count), "")
    if not name:
        return _of_alternatives(pod, claims)
    there = {
        node.name: [(pool.name, device) for device in pool.devices if device.attributes.get(TYPE) == _TYPES[name]]
        for node in evidence.nodes
        for pool in evidence.published_on(node.name).pools
        if pool.complete
    }
    nodes = {
        node.name: misfits(pod.placement, node.labels, node.taints) for node in evidence.nodes if there.get(node.name)
    }
    suited = [node for node, reasons in nodes.items() if not reasons]
    wants = f"it claims {needed[name]} of class {name}"
    if not nodes:
        return _Cause(
            f"{wants}, and no node has published such a device",
            "add a pool with devicePlugin.owner: dra, or claim another class: kubectl get resourceslices",
            severity="warning",
        )
    if not suited:
        return _of_placement(pod, nodes, wants)
    untainted = {node: [item for item in there[node] if not item[1].kept_off] for node in suited}
    holders = {device: claim for claim in evidence.claims for device in claim.devices}
    free = {
        node: [device for pool, device in untainted[node] if (DRIVER, pool, device.name) not in holders]
        for node in suited
    }
    if needed[name] > (most := max(len(there[node]) for node in suited)):
        return _Cause(
            f"{wants}, but no node that it can run on has more than {most}",
            "claim fewer, or create a pool of machines with more GPUs: a pod gets all its devices from one node",
        )
    if needed[name] > max(map(len, untainted.values())):  # devices-unhealthy reports that
        return None
    if needed[name] > max(map(len, free.values())):
        users = dict.fromkeys(f"{item.namespace}/{one}" for item in holders.values() for one in item.pods)
        total = sum(map(len, untainted.values()))
        return _Cause(
            f"{wants}, and other claims hold {total - sum(map(len, free.values()))} of {total}",
            "wait until devices are free, or add nodes: gpukube pool scale POOL -f SPEC --nodes N",
            tuple(f"pod {user} holds devices" for user in users)[:MOST_NAMED],
            "warning",
        )
    return _of_selectors(pod, claims, wants, devices)


def _of_alternatives(pod: PodFacts, claims: list[ClaimFacts]) -> _Cause | None:
    """Return the scheduler's reason for claims with alternatives (firstAvailable) of the driver's classes."""
    named = sorted({name for claim in claims for name in claim.classes if name in _TYPES})
    if not named or not pod.view.unschedulable:
        return None
    return _Cause(
        f"it claims devices of {' or '.join(named)}: {pod.view.unschedulable}",
        "compare its alternatives with the devices that exist: kubectl get resourceslices --output yaml",
        severity="warning",
    )


def _of_placement(pod: PodFacts, nodes: Mapping[str, Sequence[Misfit]], wants: str) -> _Cause | None:
    """Explain a pod that can run on none of the nodes with such devices; None if node-cordoned reports it."""
    node, reasons = min(nodes.items(), key=lambda item: (len(item[1]), item[0]))
    if all(reason.taint and reason.taint.key == CORDON for reason in reasons):
        return None
    taints = [str(reason.taint) for reason in reasons if reason.taint]
    if len(taints) == len(reasons):
        return _Cause(
            f"{wants}, and does not tolerate {', '.join(taints)} of node {node}",
            "add tolerations for these taints to the pod; a claim adds none, unlike a request of nvidia.com/gpu",
        )
    return _Cause(
        f"{wants}, and its nodeSelector or affinity excludes the nodes that have them",
        "compare them with the labels of these nodes: kubectl get pod "
        f"{pod.view.name} --namespace {pod.view.namespace} --output yaml && kubectl get nodes --show-labels",
        tuple(reason.message for reason in reasons),
    )


def _of_selectors(pod: PodFacts, claims: list[ClaimFacts], wants: str, devices: Devices) -> _Cause:
    """Explain a pod that waits although enough devices are free somewhere: evaluate its selectors on all devices."""
    for choice in (choice for claim in claims for choice in read_claim(claim.spec).choices):
        of_class = [device for device in devices() if device.attributes.get(TYPE) == _TYPES.get(choice.device_class)]
        for expression in choice.selectors if of_class else ():
            if problem := _no_match(expression, of_class):
                return _Cause(
                    f"{wants}; its selector {problem}",
                    "compare it with the attributes of devices: kubectl get resourceslices --output yaml",
                    (f"selector: {expression}",),
                )
    place = f"--namespace {pod.view.namespace}"
    if "cannot allocate all claims" in pod.view.unschedulable:
        return _Cause(
            f"{wants}; such devices are free, but none that all its selectors and constraints allow together",
            "compare them with the attributes of devices: kubectl get resourceslices --output yaml",
        )
    return _Cause(
        f"{wants}: {pod.view.unschedulable or 'not seen by the scheduler yet'}",
        "devices are free; its nodeSelector, its affinity or its other requests keep it from their nodes: kubectl "
        f"describe pod {pod.view.name} {place}",
        severity="warning",
    )


def _devices(evidence: Evidence) -> list[Device]:
    slices = [item for item in evidence.slices if text(item, "spec", "driver") == DRIVER]
    nodes: dict[str, Mapping[str, str]] = {text(item, "spec", "nodeName"): {} for item in slices}
    return [device for its in published_by_node(nodes, slices).values() for device in its.devices]


def _no_match(expression: str, devices: Sequence[Device]) -> str:
    """Return what is wrong with a selector that matches no device; "" if it matches one, or if nobody can say."""
    try:
        matched = any(device.matches(expression) for device in devices)
    except CelError as problem:
        return f"fails, and with it the allocation: {problem}"
    except BeyondSubset:
        return ""
    return "" if matched else f"matches none of {len(devices)} devices"


def _count(claim: ClaimFacts, class_name: str) -> int:
    """Return how many devices of a class a claim needs at least; requests with alternatives count as none."""
    exact = [tree(request, "exactly") for request in items(claim.spec, "devices", "requests")]
    return sum(max(1, number(request, "count")) for request in exact if text(request, "deviceClassName") == class_name)


@CHECKS.add(
    "claims-stuck",
    title="ResourceClaims that are deleted but still reserved for pods that are gone",
    consequence="their devices stay allocated, and no other pod gets them",
    link=_DOCS,
    needs=("pods", "claims"),
)
def _stuck(evidence: Evidence) -> Iterator[Fault]:
    pods = {str(pod) for pod in evidence.pods}
    for claim in evidence.claims:
        age = evidence.age_s(claim.deleted)
        gone = [name for name in claim.pods if f"{claim.namespace}/{name}" not in pods]
        if not claim.deleted or not gone or len(gone) < len(claim.pods) or (age is not None and age < _SLOW_S):
            continue
        yield fault(
            f"ResourceClaim {claim}",
            f"it is deleted, but stays allocated and reserved for pod {gone[0]}, which no longer exists",
            "kube-controller-manager removes such reservations; if this one stays, report it to the cluster's operator "
            f"with: kubectl get resourceclaim {claim.name} --namespace {claim.namespace} --output yaml",
            tuple(f"it holds {device} of {pool}" for _driver, pool, device in claim.devices)[:MOST_NAMED],
        )
