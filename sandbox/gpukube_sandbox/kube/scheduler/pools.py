"""Pools of devices, as ResourceSlices publish them.

In scope: the devices that a node reaches: of complete pools, of the newest generation. Out of scope: which are free
(`devices`), choosing some (`allocation`).

Source: k8s.io/dynamic-resource-allocation structured/internal/incubating/pools_incubating.go (1.36).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import labels, name_of, spec
from gpukube_sandbox.kube.store.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.store.objects import JsonObject

DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device that a node reaches; compared by identity."""

    driver: str
    pool: str
    body: JsonObject
    is_local: bool
    """Belongs to one node."""

    @property
    def key(self) -> DeviceId:
        """Driver, pool, name."""
        return self.driver, self.pool, str(self.body["name"])

    @property
    def label(self) -> str:
        """The device in messages."""
        return "/".join(self.key)


@dataclass(slots=True)
class Pool:
    """A pool on one node.

    Attributes:
        driver: Its driver.
        name: Its name.
        devices: Devices that the node reaches, in the order in which they are tried.
        is_incomplete: Some slices of its newest generation are missing.
        is_invalid: Two devices have the same name.
    """

    driver: str
    name: str
    devices: list[Device] = field(default_factory=list)
    is_incomplete: bool = False
    is_invalid: bool = False

    @property
    def label(self) -> str:
        """The pool in messages."""
        return f"{self.driver}/{self.name}"


class SliceIndex:
    """ResourceSlices by pool, and which pools may have devices for a node."""

    def __init__(self, slices: Iterable[JsonObject]) -> None:
        self._pools: dict[tuple[str, str], list[JsonObject]] = {}
        self._of_node: dict[str, set[tuple[str, str]]] = {}
        for item in slices:
            key = spec(item)["driver"], spec(item)["pool"]["name"]
            self._pools.setdefault(key, []).append(item)
            self._of_node.setdefault(spec(item).get("nodeName") or "", set()).add(key)

    def pools_on(self, node: JsonObject) -> list[Pool]:
        """Return the pools with devices for a node, sorted by driver and name."""
        near = self._of_node.get(name_of(node), set()) | self._of_node.get("", set())
        found = (_pool(*key, _newest(self._pools[key]), node) for key in sorted(near))
        return [pool for pool in found if pool is not None]


def _newest(slices: list[JsonObject]) -> list[JsonObject]:
    last = max(spec(item)["pool"]["generation"] for item in slices)
    return sorted((item for item in slices if spec(item)["pool"]["generation"] == last), key=name_of)


def _pool(driver: str, name: str, slices: list[JsonObject], node: JsonObject) -> Pool | None:
    near = [item for item in slices if _reaches(item, node)]
    if not near:
        return None
    if len(slices) != spec(near[0])["pool"]["resourceSliceCount"]:
        return Pool(driver, name, is_incomplete=True)
    devices = [
        Device(driver, name, body, is_local=bool(body.get("nodeName") or spec(item).get("nodeName")))
        for item in near
        for body in spec(item).get("devices") or ()
    ]
    names = Counter(device.body["name"] for device in devices)
    if any(count > 1 for count in names.values()):
        return Pool(driver, name, is_invalid=True)
    return Pool(driver, name, [device for device in devices if _is_usable(device.body, node)])


def _reaches(item: JsonObject, node: JsonObject) -> bool:
    if spec(item).get("perDeviceNodeSelection"):
        return any(_selects(device, node) for device in spec(item).get("devices") or ())
    return _selects(spec(item), node)


def _selects(place: JsonObject, node: JsonObject) -> bool:
    """Return whether the nodes that a slice or device names include one."""
    if place.get("nodeName"):
        return bool(place["nodeName"] == name_of(node))
    terms = (place.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return bool(place.get("allNodes")) or any(matches_term(term, labels(node), name_of(node)) for term in terms)


def _is_usable(device: JsonObject, node: JsonObject) -> bool:
    """Return whether a device can be allocated: partitions, shares and devices that bind late are not emulated."""
    special = ("consumesCounters", "allowMultipleAllocations", "bindingConditions")
    if any(device.get(key) for key in special):
        return False
    chosen = any(device.get(key) is not None for key in ("nodeName", "nodeSelector", "allNodes"))
    return not chosen or _selects(device, node)
