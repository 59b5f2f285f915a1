"""ResourceSlices: what the drivers of Dynamic Resource Allocation publish on nodes.

In scope: reading slices, and the state of each pool of devices. Out of scope: whether the devices are the promised ones
(gpukube.cluster.proof), and allocation (claims).

Source: kubernetes/api resource/v1 types.go (ResourceSlice, ResourcePool): only slices of the highest generation count,
and a pool with fewer slices than resourceSliceCount is incomplete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import items, number, text, tree, trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube.core.jsontree import Tree

_KINDS: Final = ("int", "bool", "string", "version")


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """A taint of a device; the effect None only informs."""

    key: str
    value: str
    effect: str

    @property
    def keeps_off(self) -> bool:
        """Whether the scheduler allocates the device only to claims that tolerate the taint."""
        return self.effect in ("NoSchedule", "NoExecute")

    def __str__(self) -> str:
        """Render the taint as kubectl does."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class DeviceView:
    """A device of a slice.

    Attributes:
        name: Its name in the pool; drivers change its form, so it says nothing.
        attributes: Full name ("gpu.nvidia.com/type") -> value.
        capacity: Full name -> quantity as written.
        taints: Its taints, of all effects.
    """

    name: str
    attributes: Mapping[str, object]
    capacity: Mapping[str, str]
    taints: tuple[DeviceTaint, ...] = ()

    @property
    def kept_off(self) -> bool:
        """Whether a taint keeps the device from claims that do not tolerate it."""
        return any(taint.keeps_off for taint in self.taints)


@dataclass(frozen=True, slots=True)
class SliceView:
    """A ResourceSlice.

    Attributes:
        name: Name of the object.
        driver: Name of the driver.
        node: The node that has the devices; "" for devices that several nodes reach.
        pool: Name of the pool of devices.
        generation: Generation of the pool.
        expected: Number of slices of the pool at this generation.
        devices: Its devices; none in a slice of counters.
    """

    name: str
    driver: str
    node: str
    pool: str
    generation: int = 1
    expected: int = 1
    devices: tuple[DeviceView, ...] = ()


@dataclass(frozen=True, slots=True)
class DevicePool:
    """The pool of devices of a driver, as of its highest generation.

    Attributes:
        driver, name, node, generation: See SliceView.
        found, expected: Slices of that generation, existing and announced.
        devices: The devices of the existing slices.
    """

    driver: str
    name: str
    node: str
    generation: int
    found: int
    expected: int
    devices: tuple[DeviceView, ...]

    @property
    def complete(self) -> bool:
        """Whether all slices exist; the scheduler ignores other pools."""
        return self.found == self.expected


def slice_view(obj: Tree) -> SliceView:
    """Read a ResourceSlice of API version v1; older versions yield no devices, as their shape differs."""
    driver = text(obj, "spec", "driver")
    return SliceView(
        name=text(obj, "metadata", "name"),
        driver=driver,
        node=text(obj, "spec", "nodeName"),
        pool=text(obj, "spec", "pool", "name"),
        generation=number(obj, "spec", "pool", "generation"),
        expected=number(obj, "spec", "pool", "resourceSliceCount"),
        devices=tuple(_device(item, f"{driver}/") for item in trees(obj, "spec", "devices")),
    )


def device_pools(slices: Iterable[SliceView], driver: str) -> tuple[DevicePool, ...]:
    """Return the pools of a driver's devices, sorted by node and name."""
    by_pool: dict[tuple[str, str], list[SliceView]] = {}
    for item in slices:
        if item.driver == driver:
            by_pool.setdefault((item.node, item.pool), []).append(item)
    found = []
    for (node, name), members in sorted(by_pool.items()):
        newest = max(member.generation for member in members)
        current = [member for member in members if member.generation == newest]
        devices = tuple(device for member in current for device in member.devices)
        expected = max(member.expected for member in current)
        found.append(DevicePool(driver, name, node, newest, len(current), expected, devices))
    return tuple(found)


def _device(item: Tree, domain: str) -> DeviceView:
    """Read a device; `domain` is that of names without one (kubernetes/api resource/v1, QualifiedName)."""
    attributes = {
        name if "/" in name else domain + name: _value(value) for name, value in tree(item, "attributes").items()
    }
    capacity = {
        name if "/" in name else domain + name: text(value, "value") for name, value in tree(item, "capacity").items()
    }
    taints = tuple(
        DeviceTaint(text(taint, "key"), text(taint, "value"), text(taint, "effect")) for taint in items(item, "taints")
    )
    return DeviceView(text(item, "name"), attributes, capacity, taints)


def _value(attribute: object) -> object:
    """Return the one value of an attribute; None for types that are newer than this reader."""
    if isinstance(attribute, dict):
        for kind, value in attribute.items():
            if kind in _KINDS:
                return value
    return None
