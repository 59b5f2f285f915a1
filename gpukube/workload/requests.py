"""Computes a pod's total requests, which the scheduler compares with a node.

Pure. In scope: combining containers, sidecars, init containers, overhead, and pod-level resources. Out of scope:
checking the individual values (`lint`), nodes (`fit`).

Source: kubernetes/component-helpers resource/helpers.go (`PodRequests`, `aggregateContainerResourcesByFn`);
kubernetes/kubernetes pkg/apis/core/v1/defaults.go (`SetDefaults_Pod`, `defaultPodRequests`) and
pkg/apis/core/v1/helper/helpers.go (`IsExtendedResourceName`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Final

from gpukube.core.hugepages import HUGE
from gpukube.core.jsontree import text, tree, trees
from gpukube.spec.kubesyntax import explain_key
from gpukube.workload.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

EPHEMERAL: Final = "ephemeral-storage"
_POD_LEVEL: Final = re.compile(r"cpu|memory|hugepages-.*")
_QUOTA: Final = "requests."
_NONE: Final = Fraction()


@dataclass(frozen=True, slots=True)
class Request:
    """Total requests of a pod, as the scheduler counts.

    Attributes:
        cpu: Millicores.
        memory: Bytes.
        devices: Extended resource -> count; resources with a count of 0 are omitted.
        others: Bytes of hugepages-* and ephemeral-storage, if any.
    """

    cpu: int
    memory: int
    devices: Mapping[str, int]
    others: Mapping[str, int] = field(default_factory=dict)


def pod_request(spec: object) -> Request:
    """Return the total requests of a pod.

    Requests of containers and sidecars add up. An ordinary init container runs alone, next to the sidecars declared
    before it, so for each resource the pod requests the larger of the two. Pod-level resources replace the sum. Values
    that are negative or not quantities count as absent.

    Args:
        spec: Spec of a pod or a template, of any shape.
    """
    total = _containers(spec)
    total |= _of_pod(spec, total)
    total = _sum(total, _amounts(tree(spec, "overhead")))
    devices = {name: ceil(amount) for name, amount in sorted(total.items()) if is_extended(name) and amount}
    others = {name: ceil(amount) for name, amount in sorted(total.items()) if is_other(name) and amount}
    return Request(ceil(total.get("cpu", _NONE) * 1000), ceil(total.get("memory", _NONE)), devices, others)


def requested_names(spec: object) -> tuple[str, ...]:
    """Return the extended resources that a pod names, including those with a count of 0.

    The admission plugin ExtendedResourceToleration considers only the names.
    """
    found = {
        name for part in ("containers", "initContainers") for item in trees(spec, part) for name in _requests(item)
    }
    return tuple(sorted(filter(is_extended, found)))


def most_devices(spec: object) -> int:
    """Return the maximum number of devices of one kind that a single container requests."""
    return max(
        (
            ceil(amount)
            for part in ("containers", "initContainers")
            for item in trees(spec, part)
            for name, amount in _requests(item).items()
            if is_extended(name)
        ),
        default=0,
    )


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Return whether a name is an extended resource: a device plugin's, counted in whole units."""
    return (
        "/" in name and "kubernetes.io/" not in name and not name.startswith(_QUOTA) and not explain_key(_QUOTA + name)
    )


def is_other(name: str) -> bool:
    """Return whether a name is a resource other than CPU, memory, and devices, counted in bytes."""
    return name == EPHEMERAL or name.startswith(HUGE)


def _containers(spec: object) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for container in trees(spec, "containers"):
        total = _sum(total, _requests(container))
    sidecars: dict[str, Fraction] = {}
    starting: dict[str, Fraction] = {}
    for container in trees(spec, "initContainers"):
        now = _sum(sidecars, _requests(container))
        if text(container, "restartPolicy") == "Always":
            total = _sum(total, _requests(container))
            sidecars = now
        starting = _larger(starting, now)
    return _larger(total, starting)


def _of_pod(spec: object, total: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the pod-level requests; limits count if neither the pod nor a container requests anything."""
    limits = {name: amount for name, amount in _amounts(tree(spec, "resources", "limits")).items() if name not in total}
    found = limits | _amounts(tree(spec, "resources", "requests"))
    return {name: amount for name, amount in found.items() if _POD_LEVEL.fullmatch(name)}


def _requests(container: object) -> dict[str, Fraction]:
    """Return a container's requests; the API server copies limits that have no request."""
    limits, requests = tree(container, "resources", "limits"), tree(container, "resources", "requests")
    return _amounts(limits) | _amounts(requests)


def _amounts(values: Mapping[str, object]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for name, value in values.items():
        try:
            amount = parse_quantity(value)
        except ValueError:
            continue
        if amount >= 0:
            found[name] = amount
    return found


def _sum(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: one.get(name, _NONE) + other.get(name, _NONE) for name in (*one, *other)}


def _larger(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {name: max(one.get(name, _NONE), other.get(name, _NONE)) for name in (*one, *other)}
