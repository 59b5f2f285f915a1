"""Devices, classes and claims of a cluster at one moment.

In scope: the scheduler's view of them, and what pods have taken since. Out of scope: pools (`pools`), choosing devices
(`allocation`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.scheduler.pools import SliceIndex
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube_sandbox.kube.scheduler.pools import DeviceId, Pool
    from gpukube_sandbox.kube.store.objects import JsonObject

IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Every class has this extended resource name, with its own name after it."""


@dataclass(slots=True)
class DeviceState:
    """What dynamic resource allocation works with.

    Attributes:
        slices: All ResourceSlices.
        classes: DeviceClasses by name.
        claims: ResourceClaims by namespace and name.
    """

    slices: list[JsonObject] = field(default_factory=list)
    classes: dict[str, JsonObject] = field(default_factory=dict)
    claims: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    _index: SliceIndex | None = None
    _in_use: set[DeviceId] | None = None

    def pools_on(self, node: JsonObject) -> list[Pool]:
        """Return the pools with devices for a node."""
        self._index = self._index or SliceIndex(self.slices)
        return self._index.pools_on(node)

    def put(self, claim: JsonObject) -> None:
        """Add or replace a claim; one that is not created yet is known by its `generateName`."""
        name = name_of(claim) or str(meta(claim).get("generateName", ""))
        self.claims[namespace_of(claim), name] = claim
        self._in_use = None

    def take(self, allocations: Iterable[tuple[JsonObject, JsonObject]]) -> None:
        """Allocate devices to claims."""
        for claim, allocation in allocations:
            self.put({**claim, "status": {**status(claim), "allocation": allocation}})

    def with_slices(self, slices: Iterable[JsonObject]) -> DeviceState:
        """Return a copy with more slices."""
        return DeviceState([*self.slices, *slices], self.classes, dict(self.claims))

    def slices_on(self, node: str) -> tuple[JsonObject, ...]:
        """Return the slices that belong to a node alone."""
        return tuple(item for item in self.slices if spec(item).get("nodeName") == node)

    def utilization(self, node: str) -> float | None:
        """Return which share of a node's own devices is in use; None if it has none."""
        own = {
            (spec(item)["driver"], spec(item)["pool"]["name"], device["name"])
            for item in self.slices_on(node)
            for device in spec(item).get("devices") or ()
        }
        return len(own & self.in_use()) / len(own) if own else None

    def in_use(self) -> set[DeviceId]:
        """Return the devices that are allocated to a claim; administrative access takes none."""
        if self._in_use is None:
            self._in_use = {
                (result["driver"], result["pool"], result["device"])
                for claim in self.claims.values()
                for result in results_of(claim)
                if not result.get("adminAccess")
            }
        return self._in_use

    def class_for(self, resource: str) -> str:
        """Return the class that serves an extended resource, of two the newest, then the first by name; "" for none."""
        if resource.startswith(IMPLICIT):
            name = resource.removeprefix(IMPLICIT)
            return name if name in self.classes else ""
        found = sorted(name for name, one in self.classes.items() if spec(one).get("extendedResourceName") == resource)
        return max(found, key=lambda name: str(meta(self.classes[name]).get("creationTimestamp", "")), default="")


def take_devices(
    slices: Iterable[JsonObject], classes: Iterable[JsonObject], claims: Iterable[JsonObject]
) -> DeviceState:
    """Return the state of devices in a cluster."""
    state = DeviceState(list(slices), {name_of(item): item for item in classes})
    for claim in claims:
        state.put(claim)
    return state


def results_of(claim: JsonObject) -> Iterator[JsonObject]:
    """Yield the devices that are allocated to a claim."""
    yield from ((status(claim).get("allocation") or {}).get("devices") or {}).get("results") or ()
