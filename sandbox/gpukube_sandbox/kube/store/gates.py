"""What a Kubernetes version serves: types and fields behind feature gates, at their defaults.

In scope: dynamic resource allocation, whose parts came with 1.34 to 1.37. Out of scope: types that all versions have.

An API server drops a field whose gate is off, unless the stored object has it: a dry run shows which fields remain.
Managed clouds do not let users change gates.

Source: kubernetes pkg/features/kube_features.go, pkg/registry/resource/*/strategy.go, pkg/api/resourceclaimspec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

Minor = tuple[int, int]

NEWEST: Final[Minor] = (1, 36)
DEVICES: Final[Minor] = (1, 34)
"""First version with resource.k8s.io/v1."""
EXTENDED_RESOURCES: Final[Minor] = (1, 36)
"""First version with DRAExtendedResource on: pods that request an extended resource get devices of a class."""
_ADVANCED: Final[Minor] = (1, 36)
"""First version with DRADeviceTaints, DRAPartitionableDevices, DRAConsumableCapacity and DRADeviceBindingConditions."""
_ALPHA: Final[Minor] = (99, 0)

_OF_CLAIMS: Final = {
    "devices.requests[].exactly.tolerations": _ADVANCED,
    "devices.requests[].firstAvailable[].tolerations": _ADVANCED,
    "devices.requests[].exactly.capacity": _ADVANCED,
    "devices.requests[].firstAvailable[].capacity": _ADVANCED,
    "devices.constraints[].distinctAttribute": _ADVANCED,
}
_GATED: Final[dict[str, dict[str, Minor]]] = {
    "Pod": {
        "spec.resourceClaims": DEVICES,
        "spec.containers[].resources.claims": DEVICES,
        "spec.initContainers[].resources.claims": DEVICES,
    },
    "DeviceClass": {"spec.extendedResourceName": EXTENDED_RESOURCES},
    "ResourceClaim": {f"spec.{path}": since for path, since in _OF_CLAIMS.items()},
    "ResourceClaimTemplate": {f"spec.spec.{path}": since for path, since in _OF_CLAIMS.items()},
    "ResourceSlice": {
        "spec.devices[].taints": _ADVANCED,
        "spec.sharedCounters": _ADVANCED,
        "spec.perDeviceNodeSelection": _ADVANCED,
        "spec.devices[].consumesCounters": _ADVANCED,
        "spec.devices[].nodeName": _ADVANCED,
        "spec.devices[].nodeSelector": _ADVANCED,
        "spec.devices[].allNodes": _ADVANCED,
        "spec.devices[].allowMultipleAllocations": _ADVANCED,
        "spec.devices[].capacity{}.requestPolicy": _ADVANCED,
        "spec.devices[].bindingConditions": _ADVANCED,
        "spec.devices[].bindingFailureConditions": _ADVANCED,
        "spec.devices[].bindsToNode": _ADVANCED,
        **{f"spec.devices[].attributes{{}}.{form}": _ALPHA for form in ("bools", "ints", "strings", "versions")},
    },
}
"""Type -> path of a field -> first version with its gate on; [] is any item of a list, {} any value of a map."""


def parse_minor(version: str) -> Minor:
    """Return the minor version of "1.34.2" or "1.34.1-gke.1829001"."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def serves(kind: Kind, minor: Minor) -> bool:
    """Return whether a version serves a type."""
    return kind.group != "resource.k8s.io" or minor >= DEVICES


def drop_gated(kind: Kind, new: JsonObject, old: JsonObject | None, minor: Minor) -> None:
    """Remove the fields of an object, in place, that this version ignores."""
    for path, since in _GATED.get(kind.kind, {}).items():
        steps = path.replace("[]", ".[]").replace("{}", ".{}").split(".")
        if minor < since and not any(_holders(old or {}, steps)):
            for holder in list(_holders(new, steps)):
                del holder[steps[-1]]


def _holders(value: object, steps: list[str]) -> Iterator[JsonObject]:
    """Yield the objects that have the last field of a path."""
    step, *rest = steps
    if step == "[]" and isinstance(value, list):
        for item in value:
            yield from _holders(item, rest)
    elif step == "{}" and isinstance(value, dict):
        for item in value.values():
            yield from _holders(item, rest)
    elif isinstance(value, dict) and step in value:
        if rest:
            yield from _holders(value[step], rest)
        else:
            yield value
