"""What NVIDIA's DRA driver publishes on each node, counted as claims can use it.

In scope: ResourceSlices -> devices by the names of a promise, and those that ResourceClaims hold; pure. Out of scope:
whether they are the promised ones (cluster.proof.claimable), and how the scheduler chooses them.

The scheduler ignores pools of devices that lack slices (kubernetes/api resource/v1, ResourcePool), and gives a device
with a taint only to claims that tolerate it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.slices import device_pools
from gpukube.core.jsontree import text, trees
from gpukube.gpu.claims import DRIVER, GPU_CLASS, mig_devices

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from gpukube.cluster.kube.slices import DevicePool, DeviceView, SliceView
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.jsontree import Tree

TYPE: Final = f"{DRIVER}/type"
UUID: Final = f"{DRIVER}/uuid"
PARENT: Final = f"{DRIVER}/parentUUID"
PROFILE: Final = f"{DRIVER}/profile"
PRODUCT: Final = f"{DRIVER}/productName"
DRIVER_VERSION: Final = f"{DRIVER}/driverVersion"
MEMORY: Final = f"{DRIVER}/memory"
"""Attributes and capacities of a device (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1
cmd/gpu-kubelet-plugin/deviceinfo.go). Its name says nothing: drivers change the form."""

LOADED_LABEL: Final = "nvidia.com/cuda.driver-version.full"
"""Node label with the version of the loaded driver, by GPU feature discovery."""


@dataclass(frozen=True, slots=True)
class Published:
    """The GPUs and MIG devices of one node.

    Attributes:
        pools: The node's pools of devices, as of their highest generation.
        slices: Number of the node's slices, of all generations.
    """

    pools: tuple[DevicePool, ...] = ()
    slices: int = 0

    @property
    def devices(self) -> tuple[DeviceView, ...]:
        """All of them, whether claims get them or not."""
        return tuple(device for pool in self.pools for device in _real_devices(pool))

    @property
    def usable(self) -> tuple[DeviceView, ...]:
        """The devices that the scheduler allocates to a claim without tolerations."""
        complete = (pool for pool in self.pools if pool.complete)
        return tuple(device for pool in complete for device in _real_devices(pool) if not device.kept_off)

    @property
    def kept_off(self) -> tuple[DeviceView, ...]:
        """The devices that a taint keeps from claims without a toleration."""
        return tuple(device for device in self.devices if device.kept_off)

    @property
    def counts(self) -> dict[str, int]:
        """Usable devices by the name that promises have for them."""
        return counted(self.usable)

    @property
    def outdated(self) -> int:
        """Slices of an earlier generation, which do not count."""
        return self.slices - sum(pool.found for pool in self.pools)


NOTHING: Final = Published()


def _real_devices(pool: DevicePool) -> Iterator[DeviceView]:
    """Yield the GPUs and MIG devices that exist: one without a UUID the driver would only make for a claim."""
    return (device for device in pool.devices if device_name(device) and device.attributes.get(UUID))


def device_name(device: DeviceView) -> str:
    """Return the name that promises have for a device: "gpu.nvidia.com", "mig.nvidia.com/1g.5gb"; "" for others."""
    match device.attributes.get(TYPE):
        case "gpu":
            return GPU_CLASS
        case "mig":
            return mig_devices(str(device.attributes.get(PROFILE, "")))
        case _:
            return ""


def former_drivers(there: Published, node: NodeView) -> list[str]:
    """Return the driver versions of a node's devices if the loaded driver is another one."""
    found = {str(version) for device in there.devices if (version := device.attributes.get(DRIVER_VERSION))}
    loaded = node.labels.get(LOADED_LABEL, "")
    return sorted(found) if loaded and _numbers(loaded) not in map(_numbers, found) else []


def _numbers(version: str) -> tuple[str, ...]:
    """Return the numbers of a driver version: 580.159.04 is published as the semantic version 580.159.4."""
    return tuple(part.lstrip("0") or "0" for part in version.split("."))


def counted(devices: Iterable[DeviceView]) -> dict[str, int]:
    """Count devices by the name that promises have for them, in the order of the names."""
    return dict(sorted(Counter(map(device_name, devices)).items()))


def published(slices: Iterable[SliceView], nodes: Container[str] | None = None) -> dict[str, Published]:
    """Return what the driver publishes on nodes, by name; nodes without slices are absent.

    Args:
        slices: Slices of all drivers and nodes.
        nodes: Names of the nodes; None for all.
    """
    ours = [item for item in slices if item.driver == DRIVER and (nodes is None or item.node in nodes)]
    number = Counter(item.node for item in ours)
    pools: dict[str, list[DevicePool]] = {}
    for pool in device_pools(ours, DRIVER):
        pools.setdefault(pool.node, []).append(pool)
    return {node: Published(tuple(found), number[node]) for node, found in pools.items()}


def node_devices(nodes: Iterable[NodeView], slices: Iterable[SliceView]) -> dict[str, dict[str, int]]:
    """Return the GPUs and shares of GPUs of each node: by resource name, and by class for those that pods claim.

    Args:
        nodes: The nodes.
        slices: Slices of all drivers and nodes.
    """
    devices = {node.name: node.devices for node in nodes}
    for name, there in published(slices, devices).items():
        devices[name] |= there.counts
    return devices


def held_devices(there: Mapping[str, Published], claims: Iterable[Tree]) -> dict[str, dict[str, int]]:
    """Return the devices that claims hold, by node; one that several pods or shares use counts once.

    Args:
        there: What the driver publishes, by node.
        claims: ResourceClaims.
    """
    held = claimed_devices(claims)
    found = {
        node: counted(device for pool in its.pools for device in pool.devices if (pool.name, device.name) in held)
        for node, its in there.items()
    }
    return {node: counts for node, counts in found.items() if counts}


def driver_results(claim: Tree) -> list[Tree]:
    """Return the devices of NVIDIA's DRA driver in a claim's allocation, with those that it only observes."""
    results = trees(claim, "status", "allocation", "devices", "results")
    return [result for result in results if text(result, "driver") == DRIVER]


def claimed_devices(claims: Iterable[Tree], *, observed: bool = False) -> frozenset[tuple[str, str]]:
    """Return pool and name of the driver's devices that claims have.

    Args:
        claims: ResourceClaims.
        observed: Whether to include devices that a claim only observes (adminAccess): others may hold them.
    """
    return frozenset(
        (text(result, "pool"), text(result, "device"))
        for claim in claims
        for result in driver_results(claim)
        if observed or text(result, "adminAccess") != "true"
    )
