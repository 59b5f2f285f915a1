"""Descriptions of simulated machines.

In scope: the values that a cloud passes when a machine boots. Out of scope: behavior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.kube.nodes.settings import NodeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.nodes.pluginconfig import Sharing

MigStrategy = Literal["none", "single", "mixed"]


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint of a node, as defined by its pool."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    @classmethod
    def parse(cls, text: str) -> Taint:
        """Parse "key=value:Effect" or "key:Effect", the format of nodeTaints in ARM."""
        pair, _, effect = text.rpartition(":")
        key, _, value = pair.partition("=")
        return cls(key, value, effect)


@dataclass(frozen=True, slots=True)
class GpuShape:
    """The GPUs of one node.

    Attributes:
        model: Key of `hardware.MODELS`, such as "A100-40GB".
        count: Physical GPUs.
        mig_layout: MIG instances of the node: one tuple of profiles per GPU, or one tuple of plain profiles for all
            GPUs (`("1g.5gb",) * 7`); empty for MIG off. In the per-GPU form, `None` is a GPU with MIG off and `()` a
            GPU with MIG on and no instances.
        mig_reboot: The machine reboots once before the layout takes effect (AKS: REBOOTREQUIRED of AgentBaker).
        driver: The host has the NVIDIA driver.
        driver_root: Directory of the host with that driver.
        runtime: Name of the host's container runtime that provides GPUs to containers; "" if there is none, as on hosts
            that wait for the GPU Operator's container toolkit.
        host_plugin: A host service advertises the GPUs: AKS managed GPU, Bottlerocket.
        host_strategy: MIG strategy of that service.
        host_sharing: Replicas per device of that service.
        partition: GKE's config for its own plugin (gpu_config.json): MIG profile of every GPU, "" for none; likewise
            `sharing`, "time-sharing" or "mps", and `clients` per device.
    """

    model: str
    count: int
    mig_layout: tuple[str, ...] | tuple[tuple[str, ...] | None, ...] = ()
    mig_reboot: bool = False
    driver: bool = True
    driver_root: str = "/"
    runtime: str = "nvidia"
    host_plugin: bool = False
    host_strategy: MigStrategy = "none"
    host_sharing: Sharing | None = None
    partition: str = ""
    sharing: str = ""
    clients: int = 0

    def per_gpu(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return the instances of each GPU: None is MIG off, () is MIG on without instances."""
        plain = tuple(item for item in self.mig_layout if isinstance(item, str))
        if plain:
            return (plain,) * self.count
        given = tuple(item for item in self.mig_layout if not isinstance(item, str))
        return given + (None,) * (self.count - len(given))


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One machine to boot.

    Attributes:
        name: Node name.
        pool: Name of its pool; for the cloud's bookkeeping.
        machine: The cloud's machine type, such as "Standard_ND96asr_v4".
        labels: Labels of the node; well-known ones (hostname, os, arch, instance type) are added.
        taints: Taints of the node.
        gpu: Its GPUs, if any.
        boot_s: Sandbox seconds from `add_node` to registration.
        kubelet: Version of its kubelet, without the "v"; "" for the cluster's version.
        settings: Settings of its kubelet and kernel.
        storage_gib: Size of the disk with images, logs, and emptyDir volumes; 0 for the usual one.
        fabric: Kind of its network devices ("efa", "infiniband") -> their number.
        networks: Additional networks: VPC and subnet of each (GKE).
    """

    name: str
    pool: str = ""
    machine: str = "generic"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    cpu: int = 4
    memory_gib: float = 16.0
    gpu: GpuShape | None = None
    boot_s: float = 60.0
    provider_id: str = ""
    os_image: str = "Ubuntu 24.04.3 LTS"
    runtime: str = "containerd://2.0.6"
    max_pods: int = 110
    zone: str = ""
    arch: str = "amd64"
    kernel: str = "6.8.0-88-generic"
    kubelet: str = ""
    settings: NodeSettings = field(default_factory=NodeSettings)
    storage_gib: float = 0.0
    fabric: Mapping[str, int] = field(default_factory=dict)
    networks: tuple[tuple[str, str], ...] = ()
