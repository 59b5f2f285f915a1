"""Checks of the pods that request GPUs: names that no node has, requests no node can meet, quotas.

In scope: pure checks of existing pods. Out of scope: manifests that are not applied yet.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import CORDON
from gpukube.cluster.state.scheduling import misfits
from gpukube.core.faults import fault
from gpukube.core.jsontree import items, number, text, tree
from gpukube.doctor.check import MOST_NAMED, Checks
from gpukube.doctor.checks.configs import entry_of
from gpukube.doctor.checks.fabric import is_fabric_missing
from gpukube.doctor.checks.scaling import kept_by_scaler
from gpukube.doctor.gpu_stack import dra_drivers, gpu_nodes
from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS
from gpukube.rule_ids import ALIASES, rule_label
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint
from gpukube.workload.offers import make_offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence, PodFacts
    from gpukube.errors import Finding

_MIG: Final = "nvidia.com/mig-"
_SHARED: Final = ".shared"
_MISSPELT: Final = re.compile(r"^nvidia\.com/(mig\d|GPU|gpus|mig-.*\+)")
"""Misspelled names: mig1g.5gb, as one sentence of an Azure page has it; a profile's + must be a dot (docs:
aks/gpu-multi-instance; NVIDIA/k8s-device-plugin internal/rm)."""
_SLOW_S: Final = 600.0
"""Seconds after which a pod is slow: large images take minutes, also in ContainerCreating."""
_ADMISSION: Final = "UnexpectedAdmissionError"
_OUT_OF: Final = f"OutOf{GPU_RESOURCE.partition('/')[0]}"

_KEEPS_PENDING: Final = frozenset({
    "taint-untolerated", "taint-other-name", "gpu-name-unknown", "selector-no-pool", "selector-from-zero",
    "selector-product", "selector-resource-name", "spot-untolerated", "gpu-too-large", "from-zero-blind",
    "network-not-offered",
})  # fmt: skip
"""Rules of `workload lint` whose mistakes keep a pod Pending."""

_DOCS: Final = "https://kubernetes.io/docs/concepts"

CHECKS: Final = Checks(needs=("nodes", "pods"))


def _waiting(evidence: Evidence) -> list[PodFacts]:
    """Return the pods that wait for devices."""
    return [
        pod
        for pod in evidence.pods
        if pod.view.devices and pod.view.phase == "Pending" and not pod.view.scheduled and not pod.view.terminating
    ]


def _offered(evidence: Evidence, pod: PodFacts | None = None) -> dict[str, int]:
    """Return, for each resource, the maximum that one node has; for a pod, only among nodes that its selector allows.

    A pod that fits no node of the cluster is compared with all of them: pods-pending reports its selector.
    """
    most: dict[str, int] = {}
    suited = [node for node in evidence.nodes if pod is None or not misfits(pod.placement, node.labels, ())]
    for node in suited or evidence.nodes:
        for name, count in node.devices.items():
            if count:
                most[name] = max(count, most.get(name, 0))
    return most


def _reason(evidence: Evidence, pod: PodFacts, name: str, count: int) -> str:
    """Return why no existing node can ever meet a request; "" if one can, or if it is unknown."""
    offered = _offered(evidence, pod)
    if _MISSPELT.match(name) and name not in offered:
        return "name"
    if name in offered:
        return "size" if count > offered[name] else ""
    if f"{name}{_SHARED}" in offered or (name.endswith(_SHARED) and name.removesuffix(_SHARED) in offered):
        return "shared"
    if name == GPU_RESOURCE and any(other.startswith(_MIG) for other in offered):
        return "mixed"
    if name not in offered and _claimable_nodes(evidence, pod) and not _bridge(evidence, name):
        return "claims"
    promised = {resource for expected in evidence.desired for resource in expected.promise.per_node}
    return "profile" if name.startswith(_MIG) and offered and name not in promised else ""


def _claimable_nodes(evidence: Evidence, pod: PodFacts) -> list[str]:
    """Return the nodes that a pod's selector allows and whose GPUs are in ResourceSlices."""
    sliced = evidence.seen.sliced_by(DRIVER)
    return [node.name for node in evidence.nodes if node.name in sliced and not misfits(pod.placement, node.labels, ())]


def _bridge(evidence: Evidence, name: str) -> str:
    """Return the DeviceClass whose devices pods get that request an extended resource; "" if there is none."""
    return next((item.name for item in evidence.classes if item.extended == name), "")


def _impossible_requests(evidence: Evidence, why: str) -> Iterator[tuple[PodFacts, str, int]]:
    for pod in _waiting(evidence):
        for name, count in sorted(pod.view.devices.items()):
            if _reason(evidence, pod, name, count) == why:
                yield pod, name, count


def _names(evidence: Evidence, pod: PodFacts) -> tuple[str, ...]:
    offered = _offered(evidence, pod)
    shown = ", ".join(f"{name} (up to {count} per node)" for name, count in sorted(offered.items()))
    return (f"nodes advertise {shown or 'no nvidia.com/*'}",)


@CHECKS.add(
    "pods-ask-gpu-under-mixed",
    title="pods that request nvidia.com/gpu while MIG strategy mixed uses other names",
    consequence="the pod stays Pending forever",
    link="https://docs.nvidia.com/datacenter/cloud-native/kubernetes/latest/index.html",
    rule=ALIASES["pods-ask-gpu-under-mixed"],
)
def _under_mixed(evidence: Evidence) -> Iterator[Fault]:
    for pod, name, _count in _impossible_requests(evidence, "mixed"):
        cuts = sorted(other for other in _offered(evidence, pod) if other.startswith(_MIG))
        yield fault(
            f"pod {pod}",
            f"it requests {name}; with strategy mixed, nodes advertise {', '.join(cuts)} instead",
            f"request {cuts[0]} in its limits, or set strategy: single in the pool's sharing.mig",
            _names(evidence, pod),
        )


@CHECKS.add(
    "pods-ask-absent-profile",
    title="pods that request a MIG profile that no node has",
    consequence="the pod stays Pending forever: neither a plugin nor an autoscaler creates MIG instances on demand",
    link="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html",
    rule=ALIASES["pods-ask-absent-profile"],
)
def _absent_profile(evidence: Evidence) -> Iterator[Fault]:
    for pod, name, _count in _impossible_requests(evidence, "profile"):
        cuts = sorted(other for other in _offered(evidence, pod) if other.startswith(_MIG))
        profile = name.removeprefix(_MIG)
        yield fault(
            f"pod {pod}",
            f"it requests {name}, but no node that it can run on has that profile",
            (f"request {' or '.join(cuts)} in its limits, or " if cuts else "")
            + f"declare a pool with sharing.mig.profile: {profile} and strategy: mixed",
            _names(evidence, pod),
        )


@CHECKS.add(
    "pods-ask-other-name",
    title="pods whose device name differs from the pool's sharing",
    consequence="the pod stays Pending forever",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#with-cuda-time-slicing",
    rule=ALIASES["pods-ask-other-name"],
)
def _renamed(evidence: Evidence) -> Iterator[Fault]:
    for pod, name, _count in _impossible_requests(evidence, "shared"):
        other = name.removesuffix(_SHARED) if name.endswith(_SHARED) else f"{name}{_SHARED}"
        yield fault(
            f"pod {pod}",
            f"it requests {name}, but the nodes' devices are named {other}",
            f"request {other} in its limits (renameByDefault of the pool's sharing decides the name)",
            _names(evidence, pod),
        )


@CHECKS.add(
    "pods-ask-gpu-under-dra",
    title="pods that request nvidia.com/* while their nodes publish GPUs in ResourceSlices",
    consequence="the pod stays Pending forever",
    link="https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/",
    needs=("nodes", "pods", "dra"),
)
def _under_dra(evidence: Evidence) -> Iterator[Fault]:
    """Find such pods where no DeviceClass maps the name: the cluster drops that field, or the class lacks it."""
    for pod, name, _count in _impossible_requests(evidence, "claims"):
        installed = any(item.name == GPU_CLASS and item.release[1] for item in evidence.classes)
        dropped = "; the cluster drops extendedResourceName of classes" if installed and name == GPU_RESOURCE else ""
        yield fault(
            f"pod {pod}",
            f"it requests {name}, and its nodes give GPUs only to claims{dropped}",
            f"claim devices of class {GPU_CLASS if name == GPU_RESOURCE else MIG_CLASS} by a ResourceClaimTemplate "
            "instead, or run it on a pool with a device plugin",
            tuple(f"node {node} has ResourceSlices" for node in _claimable_nodes(evidence, pod))[:MOST_NAMED],
        )


@CHECKS.add(
    "pods-ask-misspelt-name",
    title="pods that request a resource name that cannot exist",
    consequence="the API accepts any name; the pod stays Pending forever",
    link="https://learn.microsoft.com/azure/aks/gpu-multi-instance",
    rule=ALIASES["pods-ask-misspelt-name"],
)
def _misspelt(evidence: Evidence) -> Iterator[Fault]:
    for pod, name, _count in _impossible_requests(evidence, "name"):
        right = re.sub(r"/mig(?=\d)", "/mig-", name).replace("+", ".").replace("/GPU", "/gpu").replace("/gpus", "/gpu")
        yield fault(
            f"pod {pod}",
            f"it requests {name}, a name that no plugin advertises",
            f"request {right} in its limits",
            _names(evidence, pod),
        )


@CHECKS.add(
    "pods-too-large",
    title="pods that request more devices than any node has",
    consequence="the pod stays Pending until a larger node joins",
    link=f"{_DOCS}/configuration/manage-resources-containers/#consuming-extended-resources",
    rule=ALIASES["pods-too-large"],
)
def _too_large(evidence: Evidence) -> Iterator[Fault]:
    for pod, name, count in _impossible_requests(evidence, "size"):
        yield fault(
            f"pod {pod}",
            f"it requests {count} {name}, but no node has more than {_offered(evidence, pod)[name]}",
            "request fewer, or create a pool of machines with more GPUs: a pod gets all its devices from one node",
            _names(evidence, pod),
        )


@CHECKS.add(
    "pods-pending",
    title="pods that wait for GPUs, and the scheduler's reason",
    consequence="the pod stays Pending",
    link=f"{_DOCS}/scheduling-eviction/taint-and-toleration/",
    severity="warning",
)
def _pending(evidence: Evidence) -> Iterator[Fault]:
    stuck = kept_by_scaler(evidence)  # nothing-scales reports those
    for pod in _waiting(evidence):
        if pod in stuck or any(_reason(evidence, pod, name, count) for name, count in pod.view.devices.items()):
            continue
        reason = pod.view.unschedulable
        if _is_kept_by_cordon(evidence, pod):  # node-cordoned reports that
            continue
        absent = _absent(evidence, pod)
        if is_fabric_missing(evidence, absent):  # fabric-missing reports that
            continue
        mistakes = _mistakes(evidence, pod)
        requests = ", ".join(f"{count} {name}" for name, count in sorted(pod.view.devices.items()))
        yield fault(
            f"pod {pod}",
            f"it waits for {requests}: {reason or 'not seen by the scheduler yet'}",
            _fix_for_absent(evidence, absent)
            or _fix_for_split_names(evidence, pod)
            or (mistakes[0].fix if mistakes else _way_out(reason, pod)),
            (*_names(evidence, pod), *(f"{rule_label(one.code)}: {one.seen}" for one in mistakes)),
        )


def _absent(evidence: Evidence, pod: PodFacts) -> list[str]:
    """Return the resources of other vendors that a pod requests and no node has."""
    names = pod.view.others
    return [name for name in names if not any(number(node.allocatable, name) for node in evidence.nodes)]


def _fix_for_absent(evidence: Evidence, names: Sequence[str]) -> str:
    """Return the fix for such resources; "" if a node of a declared pool would have them."""
    fabrics = [pool.fabric for pool in evidence.desired if pool.fabric]
    unknown = [name for name in names if not any(fabric.covers(name) for fabric in fabrics)]
    return f"no node advertises {unknown[0]}: install its device plugin, or remove the request" if unknown else ""


def _fix_for_split_names(evidence: Evidence, pod: PodFacts) -> str:
    """Return the fix for a pod that requests names which no node has together; "" if a node has them."""
    names = set(pod.view.devices)
    if len(names) == 1 or any(
        names <= {name for name, count in node.devices.items() if count} for node in evidence.nodes
    ):
        return ""
    return f"request one name: no node has {' and '.join(sorted(names))} together, so free devices do not help"


def _is_kept_by_cordon(evidence: Evidence, pod: PodFacts) -> bool:
    """Return whether only a cordon keeps a pod away: it fits a cordoned node that has its devices."""
    return "unschedulable" in pod.view.unschedulable and any(
        node.cordoned
        and all(node.devices.get(name, 0) >= count for name, count in pod.view.devices.items())
        and all(miss.taint and miss.taint.key == CORDON for miss in misfits(pod.placement, node.labels, node.taints))
        for node in gpu_nodes(evidence)
    )


def _mistakes(evidence: Evidence, pod: PodFacts) -> list[Finding]:
    """Return the `workload lint` findings that can keep a pod Pending, checked against the declared pools if any."""
    if not pod.spec:
        return []
    metadata = {"name": pod.view.name, "namespace": pod.view.namespace, "labels": dict(pod.view.labels)}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.spec}
    offers = make_offers(evidence.desired, lambda _: evidence.provider)
    found = lint([Source(str(pod), json.dumps(manifest, default=str))], offers=offers or None)
    return [finding for finding in found.findings if finding.code in _KEEPS_PENDING]


def _way_out(reason: str, pod: PodFacts) -> str:
    if "taint" in reason:
        return (
            "add the toleration to the pod: {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, and one for "
            "each other taint"
        )
    if "selector" in reason or "affinity" in reason:
        return (
            f"compare its nodeSelector and affinity with the labels of nodes: kubectl get pod {pod.view.name} "
            f"--namespace {pod.view.namespace} --output yaml && kubectl get nodes --show-labels"
        )
    return "wait until devices are free, or add nodes: gpukube pool scale POOL -f SPEC --nodes N"


@CHECKS.add(
    "pods-refused-by-node",
    title="pods that a node rejected after they were scheduled",
    consequence="the pod has failed and is not scheduled again; its controller creates others that fail too",
    link="https://github.com/NVIDIA/gpu-operator/issues/233",
)
def _refused(evidence: Evidence) -> Iterator[Fault]:
    for pod in evidence.pods:
        if pod.view.phase == "Failed" and pod.view.devices and pod.reason.startswith((_ADMISSION, _OUT_OF)):
            yield fault(
                f"pod {pod}",
                f"node {pod.view.node} rejected it: {pod.reason}",
                "request 1 if devices are shared; a failed pod stays until you delete it: kubectl delete pod "
                f"{pod.view.name} --namespace {pod.view.namespace}",
                (pod.message,) if pod.message else (),
            )


@CHECKS.add(
    "pods-not-starting",
    title="pods that have their GPUs and stay in ContainerCreating",
    consequence="the GPUs are allocated but idle, and cost money",
    link="https://kubernetes.io/docs/concepts/containers/runtime-class/#usage",
)
def _not_starting(evidence: Evidence) -> Iterator[Fault]:
    for pod in evidence.pods:
        view, age = pod.view, evidence.age_s(pod.created)
        waits = (view.devices or pod.claiming) and view.scheduled and view.phase == "Pending" and not view.terminating
        creating = any(state.waiting == "ContainerCreating" for state in view.containers)
        message = evidence.refusals.get(("Pod", view.namespace, view.name), "")
        if waits and _UNREGISTERED in message and not _has_driver(evidence, view.node):
            continue  # another check reports why no driver runs there
        if waits and (fix := _fix_for_preparing(message, pod)):
            yield fault(f"pod {pod}", f"its claims cannot be prepared on node {view.node}", fix, (message,))
            continue
        if not waits or not creating or age is None or age < _SLOW_S:
            continue
        handler = re.search(r'no runtime for "([^"]+)" is configured', message)
        describe = f"kubectl describe pod {view.name} --namespace {view.namespace}"
        yield fault(
            f"pod {pod}",
            f"it has not started on node {view.node} after {int(age // 60)} min",
            f"its RuntimeClass has handler {handler[1]}, which the node's container runtime does not know: remove "
            f"runtimeClassName from the pod's template, or use a node image with NVIDIA's container toolkit: {describe}"
            if handler
            else f"its events show what is missing: {describe}",
            (message,) if message else (),
        )


_UNREGISTERED: Final = "is not registered"


def _has_driver(evidence: Evidence, node: str) -> bool:
    return any(pod.view.ready for item in dra_drivers(evidence) for pod in evidence.pods_on(node, item))


def _fix_for_preparing(message: str, pod: PodFacts) -> str:
    """Return the fix for a message of the kubelet or of the DRA driver about claims; "" for other messages.

    Source: kubernetes pkg/kubelet/cm/dra/manager.go; kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1
    cmd/gpu-kubelet-plugin/device_state.go.
    """
    if "prepare" not in message and "CDI" not in message:
        return ""
    if _UNREGISTERED in message:
        return (
            "restart the driver's pod on that node: kubectl get pods --all-namespaces -o wide --field-selector "
            f"spec.nodeName={pod.view.node}"
        )
    if strategy := re.search(r"unknown GPU sharing strategy: (\w+)", message):
        gate = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}.get(strategy[1], strategy[1])
        return (
            "remove config from its claim (several pods can share a claim without it), or set "
            f"featureGates.{gate}=true in the values of the DRA driver's chart"
        )
    if "CDI" in message:
        return "turn on CDI in the node's containerd (its default since 2.0), or use a node image that does"
    return f"its events show what is missing: kubectl describe pod {pod.view.name} --namespace {pod.view.namespace}"


@CHECKS.add(
    "shared-request-above-one",
    title="containers that request more than one share of a GPU",
    consequence="two shares are not twice the GPU: the container gets no more time, and others get less",
    link="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#with-cuda-time-slicing",
    severity="warning",
    needs=("nodes", "daemonsets", "pods", "config-maps"),
    rule=ALIASES["shared-request-above-one"],
)
def _twice_the_share(evidence: Evidence) -> Iterator[Fault]:
    for node in gpu_nodes(evidence):
        shared = _shared_names(entry_of(evidence, node))
        for pod in evidence.pods_on(node.name) if shared else ():
            if pod.view.phase not in ("Running", "Pending"):
                continue
            for name, count in sorted(pod.most.items()):
                if count > 1 and name in shared:
                    yield fault(
                        f"pod {pod}",
                        f"one of its containers requests {count} {name}, which is shared on node {node.name}",
                        "request 1; failRequestsGreaterThanOne: true in the pool's sharing rejects such pods",
                    )


def _shared_names(entry: Mapping[str, object]) -> frozenset[str]:
    found = set()
    for kind in ("timeSlicing", "mps"):
        rename = text(tree(entry, "sharing", kind), "renameByDefault") == "true"
        for resource in items(entry, "sharing", kind, "resources"):
            found.add(text(resource, "name") + (_SHARED if rename else ""))
    return frozenset(found)


@CHECKS.add(
    "quota-exhausted",
    title="ResourceQuotas that allow no further GPU",
    consequence="controllers cannot create their pods; none is Pending, and only events show it",
    link=f"{_DOCS}/policy/resource-quotas/#resource-quota-for-extended-resources",
    severity="warning",
    needs=("quotas",),
)
def _quotas(evidence: Evidence) -> Iterator[Fault]:
    for quota in evidence.quotas:
        for name, hard in sorted(quota.hard.items()):
            resource = name.removeprefix("requests.")
            if not resource.startswith("nvidia.com/") or number(quota.used, name) < number(quota.hard, name):
                continue
            yield fault(
                str(quota),
                f"it allows {hard} {resource}, and {quota.used.get(name, '0')} are used: no further pod can be created",
                f"kubectl edit resourcequota {quota.name} --namespace {quota.namespace}",
            )


@CHECKS.add(
    "quota-other-name",
    title="ResourceQuotas that limit GPUs by a name that nodes do not have",
    consequence="the quota does not count what pods use",
    link=f"{_DOCS}/policy/resource-quotas/#resource-quota-for-extended-resources",
    severity="warning",
    needs=("nodes", "quotas"),
)
def _quota_names(evidence: Evidence) -> Iterator[Fault]:
    offered = _offered(evidence)
    for quota in evidence.quotas:
        limited = {name.removeprefix("requests.") for name in quota.hard if name.startswith("requests.nvidia.com/")}
        if limited and offered and not limited & set(offered):
            yield fault(
                str(quota),
                f"it limits {', '.join(sorted(limited))}, but nodes advertise {', '.join(sorted(offered))}",
                f"add requests.{min(offered)}: kubectl edit resourcequota {quota.name} --namespace {quota.namespace}",
                why="pods of this namespace may use any number of GPUs",
            )
