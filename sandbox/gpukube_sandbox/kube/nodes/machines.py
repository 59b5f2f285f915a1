"""A simulated machine: its GPUs, its pods, and the extended resources of its kubelet.

In scope: registration of device plugins with a kubelet, and its effect on node status. Out of scope: pod lifecycle
(`kubelet`), what plugins discover (`plugin`).

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
"""Owner of resources that a service of the host registers."""


@dataclass(slots=True)
class Machine:
    """One machine.

    Attributes:
        up: Whether the kubelet responds; false while the machine boots or reboots.
        pods: Pod uid -> its run.
        capacity: Extended resource -> devices at the last registration; a kubelet never forgets a name.
        owners: Extended resource -> plugin that registered it last and still serves it.
        limited: Resources of which a pod may request at most one.
        runtimes: Names of container runtimes that provide GPUs to containers. They are configured in files, which
            survive a reboot; a driver that a container has loaded does not.
        has_slices: Whether the cluster has ResourceSlices of its network devices.
        has_wiped: The kubelet has deleted the node's ResourceSlices since it started.
        serves_claims: A plugin of the DRA driver runs, or has run until less than 30 seconds ago.
        plugin_gone_at: Sandbox time at which that plugin disappeared; 0 while it runs.
        driver_root: Directory in which a container installed the driver; "" if the image includes it.
    """

    shape: NodeShape
    up: bool = False
    runtimes: set[str] = field(default_factory=set)
    preinstalled_driver: bool = field(init=False)
    driver_root: str = ""
    pods: dict[str, PodRun] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    limited: set[str] = field(default_factory=set)
    has_slices: bool = False
    has_wiped: bool = False
    serves_claims: bool = False
    plugin_gone_at: float = 0.0

    def __post_init__(self) -> None:
        """Set what the image includes."""
        gpu = self.shape.gpu
        self.preinstalled_driver = bool(gpu and gpu.driver)
        self.runtimes |= {gpu.runtime} if gpu and gpu.runtime else set()

    @property
    def has_driver(self) -> bool:
        """Whether the driver is loaded."""
        return bool(self.shape.gpu and self.shape.gpu.driver)

    @property
    def driver_location(self) -> str:
        """Directory of the host with the loaded driver's files; "" without a driver."""
        if self.shape.gpu is None or not self.has_driver:
            return ""
        return self.driver_root or self.shape.gpu.driver_root

    def load_driver(self, root: str) -> None:
        """Mark the driver as loaded by a container, from a directory of the host."""
        self.driver_root = root
        self._set_driver(loaded=True)

    def _set_driver(self, *, loaded: bool) -> None:
        if self.shape.gpu:
            self.shape = dataclasses.replace(self.shape, gpu=dataclasses.replace(self.shape.gpu, driver=loaded))

    def shut_down(self) -> None:
        """Start a reboot: pods end, and a driver that a container had loaded is unloaded."""
        self.up = False
        self.owners.clear()
        self.pods.clear()
        self.has_wiped = False
        self._set_driver(loaded=self.preinstalled_driver)

    def start(self) -> None:
        """Finish booting; a host service, if any, registers the GPUs."""
        self.up = True
        gpu = self.shape.gpu
        if gpu and gpu.host_plugin:
            settings = Settings(mig_strategy=gpu.host_strategy, sharing=gpu.host_sharing)
            found = advertise(gpu, settings, mps_daemon=True)  # with MPS, a host service starts the daemon itself
            self.register(HOST_SERVICE, found.resources, found.limited)

    def register(self, owner: str, resources: Mapping[str, int], limited: frozenset[str]) -> None:
        """Register a plugin's resources; for a known name, the last registration wins."""
        for name, count in resources.items():
            self.capacity[name] = count
            self.owners[name] = owner
            if name in limited:
                self.limited.add(name)
            else:
                self.limited.discard(name)

    def unregister(self, resources: frozenset[str]) -> None:
        """Remove the resources of a plugin that exited.

        All plugins for one name share a socket path, so the devices disappear whichever plugin registered last, until
        one registers again.
        """
        for name in resources:
            self.owners.pop(name, None)

    def allocatable(self) -> dict[str, int]:
        """Return the allocatable devices: 0 for a name that no plugin serves."""
        return {name: count if name in self.owners else 0 for name, count in self.capacity.items()}
