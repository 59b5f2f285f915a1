"""The claim for extended resources that a DeviceClass serves: `limits: {nvidia.com/gpu: 1}` gets a device of the class.

In scope: the requests of the claim, and which container uses which. Out of scope: whether a node needs it (`claims`).

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec
from gpukube_sandbox.kube.store.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject

MARK = "resource.kubernetes.io/extended-resource-claim"
_Use = tuple[str, int]
"""A request's name and its count."""


def extended_claim(pod: JsonObject, classes: Mapping[str, str]) -> tuple[JsonObject, list[JsonObject]]:
    """Return the claim of a pod for extended resources, and the mappings for its status.

    Args:
        pod: The pod.
        classes: Extended resource -> class that serves it.
    """
    requests: list[JsonObject] = []
    mappings: list[JsonObject] = []
    for resource, class_name in sorted(classes.items()):
        for name, count in _uses(pod, resource, mappings):
            exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
            requests.append({"name": name, "exactly": exactly})
    return {
        "metadata": {
            "generateName": f"{name_of(pod)}-extended-resources-",
            "namespace": namespace_of(pod),
            "annotations": {MARK: "true"},
            "ownerReferences": [pod_owner(pod)],
        },
        "spec": {"devices": {"requests": sorted(requests, key=lambda one: str(one["name"]))}},
    }, mappings


def pod_owner(pod: JsonObject) -> JsonObject:
    """Return the reference of a generated claim to its pod."""
    return {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": meta(pod).get("uid"), "controller": True}


def _uses(pod: JsonObject, resource: str, mappings: list[JsonObject]) -> list[_Use]:
    """Return the requests for one resource; init containers that end reuse those of later containers.

    The largest that such an init container needs beyond them is one more request, which all of them share.
    """
    first = spec(pod).get("initContainers") or []
    containers = [*first, *(spec(pod).get("containers") or ())]
    ends = [at for at, one in enumerate(first) if one.get("restartPolicy") != "Always"]
    stays: dict[int, _Use] = {}
    for at, container in enumerate(containers):
        if at not in ends and (need := _need(container, resource)):
            stays[at] = _request_name(at, container, resource), need
            mappings.append(_mapping(container, resource, stays[at][0]))
    extra: dict[str, int] = {}
    reused: list[JsonObject] = []
    for at in ends:
        need = _need(containers[at], resource)
        for name, count in (use for place, use in stays.items() if place >= at):
            if need > 0:
                reused.append(_mapping(containers[at], resource, name))
                need -= count
        if need > 0:
            name = _request_name(at, containers[at], resource)
            extra[name] = need
            reused.append(_mapping(containers[at], resource, name))
    if not extra:
        mappings += reused
        return list(stays.values())
    largest = max(extra, key=lambda name: extra[name])
    mappings += [{**one, "requestName": largest} if one["requestName"] in extra else one for one in reused]
    return [(largest, extra[largest]), *stays.values()]


def _need(container: JsonObject, resource: str) -> int:
    requests: Mapping[str, str] = (container.get("resources") or {}).get("requests") or {}
    return int(parse_quantity(requests.get(resource, "0")))


def _request_name(at: int, container: JsonObject, resource: str) -> str:
    names: Sequence[str] = sorted(container["resources"]["requests"])
    return f"container-{at}-request-{names.index(resource)}"


def _mapping(container: JsonObject, resource: str, request: str) -> JsonObject:
    return {"containerName": container["name"], "resourceName": resource, "requestName": request}
