"""Matches pods to nodes.

In scope: taints and tolerations, node selectors and affinity, quantities and requests; all pure functions.
Out of scope: placing pods (`scheduler`, `daemonsets`).

Source: docs concepts/scheduling-eviction/{taint-and-toleration,assign-pod-node}.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import conditions, labels, name_of, spec, status
from gpukube_sandbox.kube.store.quantities import parse_quantity
from gpukube_sandbox.kube.store.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gpukube_sandbox.kube.store.objects import JsonObject

HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def untolerated(
    pod_spec: JsonObject, taints: Iterable[JsonObject], effects: Collection[str] = HARD_EFFECTS
) -> JsonObject | None:
    """Return the first taint with one of the effects that a pod, or a request for devices, does not tolerate."""
    return next((item for item in taints if item.get("effect") in effects and not tolerates(pod_spec, item)), None)


def tolerates(pod_spec: JsonObject, taint: JsonObject) -> bool:
    """Return whether a pod tolerates a taint."""
    return toleration_of(pod_spec, taint) is not None


def toleration_of(pod_spec: JsonObject, taint: JsonObject) -> JsonObject | None:
    """Return the pod's toleration that matches a taint."""
    return next((item for item in pod_spec.get("tolerations") or () if _tolerates(item, taint)), None)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    if toleration.get("key") not in {None, "", taint.get("key")}:
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def matches_node(pod_spec: JsonObject, node: JsonObject) -> bool:
    """Return whether a node matches the nodeSelector and the required node affinity (terms are ORed)."""
    marks = labels(node)
    desired: dict[str, str] = pod_spec.get("nodeSelector") or {}
    if any(marks.get(key) != value for key, value in desired.items()):
        return False
    affinity = ((pod_spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(matches_term(term, marks, name_of(node)) for term in affinity.get("nodeSelectorTerms") or ())


def pod_requests(pod: JsonObject) -> Counter[str]:
    """Return the sum of a pod's requests in base units (cpu in thousandths), including 1 for "pods".

    Init containers run one at a time, alongside the sidecars declared before them.

    Source:
        kubernetes component-helpers resource/helpers.go (PodRequests).
    """
    total: Counter[str] = Counter()
    for container in spec(pod).get("containers") or ():
        total.update(_requests(container))
    sidecars: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    for container in spec(pod).get("initContainers") or ():
        requested = _requests(container)
        if container.get("restartPolicy") == "Always":
            total.update(requested)
            sidecars.update(requested)
            largest |= sidecars
        else:
            largest |= requested + sidecars
    total |= largest
    whole = _requests(spec(pod))
    total.update({name: whole[name] - total[name] for name in whole})
    total.update({name: _in_base_units(name, value) for name, value in (spec(pod).get("overhead") or {}).items()})
    total["pods"] = 1
    return total


def _requests(container: JsonObject) -> Counter[str]:
    resources = container.get("resources")
    if not resources:
        return Counter()
    requested = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({name: _in_base_units(name, value) for name, value in requested.items()})


def _in_base_units(name: str, value: str | float) -> int:
    return _parsed(str(value), in_thousandths=name == "cpu")


@lru_cache(4096)
def _parsed(text: str, *, in_thousandths: bool) -> int:
    return ceil(parse_quantity(text) * (1000 if in_thousandths else 1))


def allocatable_of(node: JsonObject) -> Counter[str]:
    """Return a node's allocatable resources in the units of `pod_requests`."""
    return resources_of(status(node).get("allocatable") or {})


def resources_of(listed: Mapping[str, str]) -> Counter[str]:
    """Return amounts of resources in the units of `pod_requests`."""
    return Counter({name: _in_base_units(name, value) for name, value in listed.items()})


def is_ready(obj: JsonObject) -> bool:
    """Return whether a node or pod has the condition Ready."""
    return conditions(obj).get("Ready") == "True"


def is_terminal(pod: JsonObject) -> bool:
    """Return whether a pod has finished."""
    return status(pod).get("phase") in {"Succeeded", "Failed"}
