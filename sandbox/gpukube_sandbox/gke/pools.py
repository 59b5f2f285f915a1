"""One node pool: its wire resource, its machines, and what the service fills in at creation.

In scope: state and defaults. Out of scope: rules (`rules`), changes (`updates`), life cycles.

What is filled in: the sample of a real GET in GoogleCloudPlatform/magic-modules#12027; docs: how-to/gpus (driver).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.machines import DEFAULT_MACHINE, Machine, find_machine
from gpukube_sandbox.gke.versions import full_node_version, is_at_least

GPU_TAINT = ("nvidia.com/gpu", "present", wire.NodeTaint.Effect.NO_SCHEDULE)
"""Key, value and effect of the taint that GKE gives a GPU pool (docs: kubernetes-engine/how-to/gpus)."""
_DISK_GB = 100
_MAX_PODS = 110
_LOGGING_SCOPES = (
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
)


@dataclass(slots=True)
class Pool:
    """One node pool.

    Attributes:
        wire: The resource as Get gives it.
        nodes: Zone -> names of its machines, oldest first.
        made: Machines made so far, for their names.
        listed_from: Moment from which on lists have it.
        moved: The autoscaler has changed its size since it was last set; what is there then stays.
    """

    wire: wire.NodePool
    nodes: dict[str, list[str]] = field(default_factory=dict)
    made: int = 0
    listed_from: float = 0.0
    moved: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.wire.name

    def all_nodes(self) -> list[str]:
        """Names of the machines of all zones."""
        return [name for names in self.nodes.values() for name in names]

    def touch(self) -> None:
        """Note that the resource changed."""
        self.wire.etag = new_etag()


def new_etag() -> str:
    """A fingerprint that no other has."""
    return uuid.uuid4().hex[:8]


def clone(pool: wire.NodePool) -> wire.NodePool:
    """A copy that shares nothing."""
    copied = wire.NodePool()
    wire.NodePool.copy_from(copied, pool)
    return copied


def machine_of(pool: wire.NodePool) -> Machine:
    """The machine type of a pool that was checked."""
    found = find_machine(pool.config.machine_type)
    if found is None:
        message = f"pool of unknown machine type {pool.config.machine_type}"
        raise LookupError(message)
    return found


def accelerator_of(pool: wire.NodePool) -> wire.AcceleratorConfig | None:
    """Its GPUs, if it has any."""
    return pool.config.accelerators[0] if pool.config.accelerators else None


def has_gpu(pool: wire.NodePool) -> bool:
    """Whether its machines have GPUs."""
    return bool(pool.config.accelerators)


def count_per_zone(pool: wire.NodePool) -> list[int]:
    """Nodes that each of the pool's zones shall have, in the order of `locations`.

    `initial_node_count` is per zone; an autoscaler keeps it within its own limits, of a zone or of the whole pool.
    """
    zones = len(pool.locations)
    scaling = pool.autoscaling
    if pool.queued_provisioning.enabled:
        return [0] * zones
    if not scaling.enabled:
        return [pool.initial_node_count] * zones
    if not scaling.total_max_node_count:
        return [min(max(pool.initial_node_count, scaling.min_node_count), scaling.max_node_count)] * zones
    total = pool.initial_node_count * zones
    total = min(max(total, scaling.total_min_node_count), scaling.total_max_node_count)
    return [total // zones + (at < total % zones) for at in range(zones)]


def fill_defaults(pool: wire.NodePool, version: str, locations: list[str], channel: str) -> None:
    """Fill in what the service fills in at creation, before anything is checked.

    Args:
        pool: What was sent; changed.
        version: Version of the control plane.
        locations: Zones of the cluster.
        channel: Release channel of the cluster, "" for none; there, management that is not sent is on.
    """
    config = pool.config
    config.machine_type = config.machine_type or DEFAULT_MACHINE
    machine = find_machine(config.machine_type)
    config.image_type = config.image_type.upper() or "COS_CONTAINERD"
    _fill_disk(config, machine.disk_type if machine else "pd-balanced")
    config.service_account = config.service_account or "default"
    config.metadata.setdefault("disable-legacy-endpoints", "true")
    if not config.oauth_scopes:
        config.oauth_scopes.extend(_LOGGING_SCOPES)
    config.resource_labels.setdefault("goog-gke-node-pool-provisioning-model", "spot" if config.spot else "on-demand")
    if machine and machine.accelerator:
        config.resource_labels.setdefault("goog-gke-accelerator-type", machine.accelerator)
    pool.version = full_node_version(pool.version, version, version)
    if not pool.locations:
        pool.locations.extend(locations)
    if "upgrade_settings" not in pool:
        pool.upgrade_settings = _usual_upgrades(pool)
    elif not int(pool.upgrade_settings.strategy):
        pool.upgrade_settings.strategy = wire.NodePoolUpdateStrategy(wire.NodePoolUpdateStrategy.SURGE)
    if channel and "management" not in pool:
        pool.management = wire.NodeManagement(auto_upgrade=True, auto_repair=True)
    if not pool.max_pods_constraint.max_pods_per_node:
        pool.max_pods_constraint = wire.MaxPodsConstraint(max_pods_per_node=_MAX_PODS)
    pool.pod_ipv4_cidr_size = 24
    fill_driver(pool, version)


def _usual_upgrades(pool: wire.NodePool) -> wire.NodePool.UpgradeSettings:
    """Nodes that come by Dynamic Workload Scheduler are upgraded when they end (docs: concepts/dws)."""
    if pool.queued_provisioning.enabled or pool.config.flex_start:
        return wire.NodePool.UpgradeSettings(strategy=wire.NodePoolUpdateStrategy.SHORT_LIVED)
    return wire.NodePool.UpgradeSettings(max_surge=1, strategy=wire.NodePoolUpdateStrategy.SURGE)


def _fill_disk(config: wire.NodeConfig, disk_type: str) -> None:
    """The boot disk in both of its forms, which the service keeps alike."""
    boot = config.boot_disk
    config.disk_type = config.disk_type or boot.disk_type or disk_type
    config.disk_size_gb = config.disk_size_gb or boot.size_gb or _DISK_GB
    boot.disk_type = boot.disk_type or config.disk_type
    boot.size_gb = boot.size_gb or config.disk_size_gb
    config.boot_disk = boot


def fill_driver(pool: wire.NodePool, version: str) -> None:
    """An unset driver version means DEFAULT from 1.30.1-gke.1156000 on; before, nothing is installed."""
    accelerator = accelerator_of(pool)
    if accelerator is None or not is_at_least(version, "driver-default"):
        return
    if not int(accelerator.gpu_driver_installation_config.gpu_driver_version):
        accelerator.gpu_driver_installation_config = wire.GPUDriverInstallationConfig(
            gpu_driver_version=wire.GPUDriverInstallationConfig.GPUDriverVersion.DEFAULT
        )
