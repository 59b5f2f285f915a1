"""Pods that hold devices, and pods that wait for them, from the API's objects. Pure.

In scope: requests and claims of pods, and what keeps a pod from using what it holds. Out of scope: nodes (`building`).

A pod holds what it requests from its binding until it ends, as the scheduler counts (kubernetes
pkg/scheduler/framework NodeInfo); a claim holds devices as long as it is allocated, whether its pods run or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import NO_IMAGE, NO_MOUNT, timestamp
from gpukube.core.jsontree import at, text, texts, tree, trees
from gpukube.core.values import POOL_LABEL
from gpukube.engine.documents.map_sums import add_counts
from gpukube.gpu.claims import DRIVER, GPU_CLASS, MIG_CLASS, mig_devices
from gpukube.gpu.mig import profiles
from gpukube.gpu.models import MODELS
from gpukube.provider import in_cluster_facts
from gpukube.usage.units import is_gpu
from gpukube.usage.world import Holder, Waiting
from gpukube.workload.claims import read_claim
from gpukube.workload.requests import pod_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.jsontree import Tree

_ENDED: Final = {"Succeeded": "completed", "Failed": "failed"}
_STUCK: Final = frozenset({*NO_IMAGE, *NO_MOUNT, "ImageInspectError", "RunContainerError", "CrashLoopBackOff"})
"""Reasons of waiting containers that do not go away by waiting (also kubernetes pkg/kubelet/container/sync_result.go).
"""
SLOW_S: Final = 15 * 60
"""Seconds after which a pod that is bound and not running, or a node without GPUs, no longer counts as starting: large
images and drivers take some minutes."""
_LATE_S: Final = 5 * 60
"""Seconds beyond its grace period after which a pod that terminates is stuck."""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """A pod on a node that holds devices, or has ended and is still named by claims.

    Attributes:
        namespace, name, node: The pod.
        devices: Resource -> devices that it requests and holds; without those that claims serve.
        trouble: Why it does not use what it holds; "" if it runs or starts.
    """

    namespace: str
    name: str
    node: str
    devices: Mapping[str, int]
    trouble: str


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a cluster that matter.

    Attributes:
        bound: Pods on nodes, by namespace and name.
        waiting: Pods that wait for devices.
        holders: Pool and name of a device -> who holds it.
    """

    bound: Mapping[tuple[str, str], BoundPod] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    holders: Mapping[tuple[str, str], tuple[Holder, ...]] = field(default_factory=dict)


def read_pods(pods: Iterable[Tree], claims: Sequence[Tree], now: float) -> Pods:
    """Read the pods of a cluster.

    Args:
        pods: All pods.
        claims: All ResourceClaims.
        now: Seconds since the epoch.
    """
    bound: dict[tuple[str, str], BoundPod] = {}
    waiting: list[Waiting] = []
    named = {(text(claim, "metadata", "namespace"), text(claim, "metadata", "name")): claim for claim in claims}
    for pod in pods:
        key = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
        node, phase = text(pod, "spec", "nodeName"), text(pod, "status", "phase")
        devices = _requested(pod)
        if node:
            held = {} if phase in _ENDED else devices
            bound[key] = BoundPod(*key, node, held, _trouble(pod, now))
        elif phase not in _ENDED and not text(pod, "metadata", "deletionTimestamp"):
            wanted = add_counts(devices, _claimed(pod, key[0], named))
            if wanted:
                waiting.append(Waiting(*key, wanted, _named_pool(pod), _why(pod)))
    waiting.sort(key=lambda one: (one.namespace, one.name))
    return Pods(bound, tuple(waiting), _holders(claims))


def _requested(pod: Tree) -> dict[str, int]:
    """Return the devices that a pod requests by resource, without those that the scheduler took from DRA drivers.

    Source: kubernetes/api core/v1 PodExtendedResourceClaimStatus: a claim serves these requests.
    """
    served = {
        text(one, "resourceName") for one in trees(pod, "status", "extendedResourceClaimStatus", "requestMappings")
    }
    found = pod_request(at(pod, "spec")).devices
    return {name: count for name, count in found.items() if count and is_gpu(name) and name not in served}


def _claimed(pod: Tree, namespace: str, claims: Mapping[tuple[str, str], Tree]) -> dict[str, int]:
    """Return the devices of a pod's claims that are not allocated yet, by class."""
    made = {text(one, "name"): text(one, "resourceClaimName") for one in trees(pod, "status", "resourceClaimStatuses")}
    total: dict[str, int] = {}
    for item in trees(pod, "spec", "resourceClaims"):
        name = text(item, "resourceClaimName") or made.get(text(item, "name"), "")
        claim = claims.get((namespace, name))
        if claim is None or at(claim, "status", "allocation") is not None:
            continue
        for choice in read_claim(tree(claim, "spec")).firsts:
            if choice.device_class in (GPU_CLASS, MIG_CLASS) and not choice.admin:
                profile = _selected_profile(choice.selectors) if choice.device_class == MIG_CLASS else ""
                name = mig_devices(profile) if profile else choice.device_class
                total = add_counts(total, {name: choice.count or 1})
    return total


@cache
def _selected_profile(selectors: tuple[str, ...]) -> str:
    """Return the MIG profile that a request selects; "" if it takes several, or nobody can tell."""
    from gpukube.workload.cel.values import BeyondSubset, CelError  # noqa: PLC0415 - only for claims that wait
    from gpukube.workload.devices import Device  # noqa: PLC0415 - as above

    names = dict.fromkeys(profile.name for model in MODELS for profile in profiles(model))
    found = []
    for name in names:
        attributes = {f"{DRIVER}/type": "mig", f"{DRIVER}/profile": name}
        device = Device((DRIVER, "", ""), attributes, is_open=True)
        try:
            if all(device.matches(selector) for selector in selectors):
                found.append(name)
        except (BeyondSubset, CelError):
            return ""
    return found[0] if len(found) == 1 else ""


def _holders(claims: Iterable[Tree]) -> dict[tuple[str, str], tuple[Holder, ...]]:
    from gpukube.cluster.state.published import driver_results  # noqa: PLC0415 - only for clusters with claims

    found: dict[tuple[str, str], list[Holder]] = {}
    for claim in claims:
        namespace, name = text(claim, "metadata", "namespace"), text(claim, "metadata", "name")
        users = [text(one, "name") for one in trees(claim, "status", "reservedFor") if text(one, "resource") == "pods"]
        for result in driver_results(claim):
            if text(result, "adminAccess") != "true":
                device = text(result, "pool"), text(result, "device")
                found.setdefault(device, []).extend(Holder(namespace, user, name) for user in users or [""])
    return {device: tuple(sorted(set(holders))) for device, holders in found.items()}


def _trouble(pod: Tree, now: float) -> str:
    phase = text(pod, "status", "phase")
    if phase in _ENDED:
        return _ENDED[phase]
    deleted = timestamp(text(pod, "metadata", "deletionTimestamp"))  # with the grace period
    if deleted is not None:
        return "terminating, and late" if now - deleted > _LATE_S else ""
    states = [*trees(pod, "status", "initContainerStatuses"), *trees(pod, "status", "containerStatuses")]
    reasons = [text(one, "state", "waiting", "reason") for one in states]
    if stuck := next((reason for reason in reasons if reason in _STUCK), ""):
        return stuck
    started = timestamp(text(pod, "status", "startTime"))
    if phase == "Pending" and started is not None and now - started > SLOW_S:
        return f"not running after {SLOW_S // 60} minutes"
    return ""


def _why(pod: Tree) -> str:
    if gates := [text(one, "name") for one in trees(pod, "spec", "schedulingGates")]:
        return f"held back by its scheduling gate {', '.join(gates)}"
    conditions = (one for one in trees(pod, "status", "conditions") if text(one, "type") == "PodScheduled")
    return next((text(one, "message") for one in conditions if text(one, "status") == "False"), "")


def _named_pool(pod: Tree) -> str:
    """Return the pool that a pod's node selector names; "" if it names none."""
    selector = texts(pod, "spec", "nodeSelector")
    keys = [POOL_LABEL, *(facts.pool_label for facts in in_cluster_facts() if facts.pool_label)]
    return next((selector[key] for key in keys if selector.get(key)), "")
