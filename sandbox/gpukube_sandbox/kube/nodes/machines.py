"""A simulated machine: its GPUs, the pods it runs, and the extended resources its kubelet knows.

In scope: registration of device plugins with a kubelet, and what that makes of node status. Out of scope: pods'
life (`kubelet`), what plugins find (`plugin`).

Source: docs concepts/extend-kubernetes/compute-storage-net/device-plugins; NVIDIA/k8s-device-plugin#255 (two plugins).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.plugin import advertise
from gpukube_sandbox.kube.nodes.pluginconfig import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.nodes.podruns import PodRun
    from gpukube_sandbox.kube.nodes.shapes import NodeShape

HOST_SERVICE = "host"
"""Owner of what a service of the node itself registers."""


@dataclass(slots=True)
class Machine:
    """One machine.

    Attributes:
        up: The kubelet answers; false while it boots or reboots.
        pods: Pod uid -> what runs.
        capacity: Extended resource -> devices at the last registration; a kubelet keeps a name once it knows it.
        owners: Extended resource -> who registered it last and still serves it.
        limited: Resources of which a pod may ask for one at most.
        runtimes: Names of container runtimes that hand GPUs to containers. What writes them writes files, which outlive
            a reboot; a driver that a container has loaded does not.
        driver_root: Where a container has put the driver; "" where the image has it.
    """

    shape: NodeShape
    up: bool = False
    runtimes: set[str] = field(default_factory=set)
    brought_driver: bool = field(init=False)
    driver_root: str = ""
    pods: dict[str, PodRun] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    limited: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Note what the image brings."""
        gpu = self.shape.gpu
        self.brought_driver = bool(gpu and gpu.driver)
        self.runtimes |= {gpu.runtime} if gpu and gpu.runtime else set()

    @property
    def has_driver(self) -> bool:
        """Whether the driver is loaded now."""
        return bool(self.shape.gpu and self.shape.gpu.driver)

    def load_driver(self, root: str) -> None:
        """A container has loaded the driver from a directory of the host."""
        self.driver_root = root
        self._set_driver(loaded=True)

    def _set_driver(self, *, loaded: bool) -> None:
        if self.shape.gpu:
            self.shape = dataclasses.replace(self.shape, gpu=dataclasses.replace(self.shape.gpu, driver=loaded))

    def go_down(self) -> None:
        """The machine reboots: its pods end, and what only a container had loaded is gone."""
        self.up = False
        self.owners.clear()
        self.pods.clear()
        self._set_driver(loaded=self.brought_driver)

    def start(self) -> None:
        """The machine is up; a service of its own registers its GPUs."""
        self.up = True
        gpu = self.shape.gpu
        if gpu and gpu.host_plugin:
            settings = Settings(mig_strategy=gpu.host_strategy, sharing=gpu.host_sharing)
            found = advertise(gpu, settings, mps_daemon=True)  # a service that shares by MPS starts its daemon itself
            self.register(HOST_SERVICE, found.resources, found.limited)

    def register(self, owner: str, resources: Mapping[str, int], limited: frozenset[str]) -> None:
        """A plugin registers; for a name that is known already, the last registration wins."""
        for name, count in resources.items():
            self.capacity[name] = count
            self.owners[name] = owner
            if name in limited:
                self.limited.add(name)
            else:
                self.limited.discard(name)

    def unregister(self, resources: frozenset[str]) -> None:
        """A plugin is gone and its sockets with it.

        All plugins for one name share one socket path, so the devices are gone whoever of them registered last,
        until one registers again.
        """
        for name in resources:
            self.owners.pop(name, None)

    def allocatable(self) -> dict[str, int]:
        """Return the devices that can be allocated: 0 for a name nobody serves."""
        return {name: count if name in self.owners else 0 for name, count in self.capacity.items()}
