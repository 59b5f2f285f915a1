"""One node pool: its wire resource, its machines, and the service's defaults at creation.

In scope: state and defaults. Out of scope: rules (`rules`), changes (`updates`), lifecycles.

Source of the defaults: a real GET in GoogleCloudPlatform/magic-modules#12027; docs: how-to/gpus (driver).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.machines import DEFAULT_MACHINE, Machine, find_machine
from gpukube_sandbox.gke.versions import full_node_version, is_at_least

GPU_TAINT = ("nvidia.com/gpu", "present", wire.NodeTaint.Effect.NO_SCHEDULE)
"""Key, value, and effect of the taint that GKE adds to a GPU pool (docs: kubernetes-engine/how-to/gpus)."""
_DISK_GB = 100
_MAX_PODS = 110
_LOGGING_SCOPES = (
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
)


@dataclass(frozen=True, slots=True)
class Lot:
    """Where a machine came from.

    Attributes:
        machine: Its type, which a pool's upgrade can change.
        kind: Kind of stock.
    """

    machine: str
    kind: str


@dataclass(slots=True)
class Pool:
    """A node pool.

    Attributes:
        wire: The resource as Get returns it.
        nodes: Zone -> names of its machines, oldest first.
        lots: Name of a machine -> where it came from.
        operation: Name of its newest operation that changes machines.
        made: Number of machines created so far, for their names.
        listed_from: Time from which lists contain it.
        moved: Whether the autoscaler changed its size since it was last set; then the current size stays.
    """

    wire: wire.NodePool
    nodes: dict[str, list[str]] = field(default_factory=dict)
    lots: dict[str, Lot] = field(default_factory=dict)
    operation: str = ""
    made: int = 0
    listed_from: float = 0.0
    moved: bool = False

    @property
    def name(self) -> str:
        """Return the pool's name."""
        return self.wire.name

    def all_nodes(self) -> list[str]:
        """Return the names of the machines in all zones."""
        return [name for names in self.nodes.values() for name in names]

    def touch(self) -> None:
        """Record a change to the resource: it gets a new eTag."""
        self.wire.etag = new_etag()


def new_etag() -> str:
    """Return a new, unique fingerprint."""
    return uuid.uuid4().hex[:8]


def clone(pool: wire.NodePool) -> wire.NodePool:
    """Return a deep copy."""
    copied = wire.NodePool()
    wire.NodePool.copy_from(copied, pool)
    return copied


def machine_of(pool: wire.NodePool) -> Machine:
    """Return the machine type of a checked pool."""
    found = find_machine(pool.config.machine_type)
    if found is None:
        message = f"pool of unknown machine type {pool.config.machine_type}"
        raise LookupError(message)
    return found


def accelerator_of(pool: wire.NodePool) -> wire.AcceleratorConfig | None:
    """Return the pool's GPUs, if any."""
    return pool.config.accelerators[0] if pool.config.accelerators else None


def has_gpu(pool: wire.NodePool) -> bool:
    """Return whether the pool's machines have GPUs."""
    return bool(pool.config.accelerators)


def count_per_zone(pool: wire.NodePool) -> list[int]:
    """Return the number of nodes per zone, in the order of `locations`.

    `initial_node_count` is per zone; autoscaling bounds it by its own limits, per zone or for the whole pool.
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
    """Fill in the service's defaults at creation, before any check.

    Args:
        pool: The pool as sent; changed in place.
        version: Version of the control plane.
        locations: Zones of the cluster.
        channel: Release channel of the cluster; "" for none. On a channel, management defaults to on.
    """
    config = pool.config
    config.machine_type = config.machine_type or DEFAULT_MACHINE
    machine = find_machine(config.machine_type)
    config.image_type = config.image_type.upper() or "COS_CONTAINERD"
    _fill_disk(config, machine.disk_type if machine else "pd-balanced")
    config.service_account = config.service_account or "default"
    config.metadata.setdefault("disable-legacy-endpoints", "true")
    if "shielded_instance_config" not in config:  # a GET of a pool of GKE 1.33, recorded by cloud-barista in 2026
        config.shielded_instance_config.enable_integrity_monitoring = True
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
    """Return the default upgrade settings; scheduled nodes are upgraded when they end (docs: concepts/dws)."""
    if pool.queued_provisioning.enabled or pool.config.flex_start:
        return wire.NodePool.UpgradeSettings(strategy=wire.NodePoolUpdateStrategy.SHORT_LIVED)
    return wire.NodePool.UpgradeSettings(max_surge=1, strategy=wire.NodePoolUpdateStrategy.SURGE)


def _fill_disk(config: wire.NodeConfig, disk_type: str) -> None:
    """Fill in the boot disk in both of its forms, which the service keeps in sync."""
    boot = config.boot_disk
    config.disk_type = config.disk_type or boot.disk_type or disk_type
    config.disk_size_gb = config.disk_size_gb or boot.size_gb or _DISK_GB
    boot.disk_type = boot.disk_type or config.disk_type
    boot.size_gb = boot.size_gb or config.disk_size_gb
    config.boot_disk = boot


def fill_driver(pool: wire.NodePool, version: str) -> None:
    """Fill in the driver version: DEFAULT from 1.30.1-gke.1156000 on; before, no driver is installed."""
    accelerator = accelerator_of(pool)
    if accelerator is None or not is_at_least(version, "driver-default"):
        return
    if not int(accelerator.gpu_driver_installation_config.gpu_driver_version):
        accelerator.gpu_driver_installation_config = wire.GPUDriverInstallationConfig(
            gpu_driver_version=wire.GPUDriverInstallationConfig.GPUDriverVersion.DEFAULT
        )
