"""Changes by UpdateNodePool.

In scope: which fields of the request belong together, and their effect on the pool. Out of scope: the work.

Sources: UpdateNodePoolRequest of google.container.v1; GoogleCloudPlatform/magic-modules#18493 (GPUs, tried on a real
cluster); docs: how-to/gpus. gcloud and Terraform send one group of attributes per request; the error for several is the
sandbox's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.pools import accelerator_of
from gpukube_sandbox.gke.rules.pool import check_changeable
from gpukube_sandbox.gke.versions import full_node_version
from gpukube_sandbox.gke.wire.answers import GoogleError, bad

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.gke.rules.facts import ClusterFacts

_GROUPS: dict[str, tuple[str, ...]] = {
    "labels": ("labels",),
    "taints": ("taints",),
    "tags": ("tags",),
    "resource_labels": ("resource_labels",),
    "accelerators": ("accelerators",),
    "machine": ("machine_type", "disk_type", "disk_size_gb", "boot_disk"),
    "image": ("image_type", "node_version"),
    "locations": ("locations",),
    "upgrade_settings": ("upgrade_settings",),
    "gvnic": ("gvnic",),
    "fast_socket": ("fast_socket",),
    "logging_config": ("logging_config",),
    "system": ("kubelet_config", "linux_node_config"),  # both are set by gcloud's --system-config-from-file
    "taint_config": ("taint_config",),
    "queued_provisioning": ("queued_provisioning",),
    "max_run_duration": ("max_run_duration",),
    "flex_start": ("flex_start",),
    "consolidation_delay": ("consolidation_delay",),
    "workload_metadata_config": ("workload_metadata_config",),
    "node_network_config": ("node_network_config",),
    "gcfs_config": ("gcfs_config",),
    "confidential_nodes": ("confidential_nodes",),
    "containerd_config": ("containerd_config",),
    "windows_node_config": ("windows_node_config",),
    "resource_manager_tags": ("resource_manager_tags",),
    "storage_pools": ("storage_pools",),
    "node_drain_config": ("node_drain_config",),
    "maintenance_policy": ("maintenance_policy",),
}
ROLLING = frozenset(
    {
        "machine", "image", "accelerators", "resource_labels", "gvnic", "fast_socket", "system",
        "workload_metadata_config", "node_network_config", "gcfs_config", "confidential_nodes", "containerd_config",
        "storage_pools",
    }
)  # fmt: skip
"""Groups whose change replaces every machine.

The source is the proto for machine, disk, containerd, and confidential nodes; gcloud's help for resource labels;
NVIDIA/aicr for accelerators, where it may happen. For the others it is undocumented, and the sandbox assumes the worse
case.
"""


def changed_group(request: wire.UpdateNodePoolRequest) -> str:
    """Return the group of attributes in a request.

    Raises:
        GoogleError: 400 for none or more than one.
    """
    found = [group for group, names in _GROUPS.items() if any(name in request for name in names)]
    if not found:  # the message, with more names, is seen in public Terraform runs
        names = ", ".join(f"'{name}'" for group in _GROUPS.values() for name in group)
        raise bad(f"At least one of [{names}] must be specified.")
    if len(found) > 1:
        raise bad(f"Only one group of attributes can be updated at a time; the request holds {', '.join(found)}.")
    return found[0]


def apply_update(pool: wire.NodePool, request: wire.UpdateNodePoolRequest, group: str, facts: ClusterFacts) -> None:
    """Change a copy of a pool.

    Raises:
        GoogleError: 400, or 409 ABORTED for an etag that is not the pool's.
    """
    if request.etag and request.etag != pool.etag:
        raise GoogleError("ABORTED", f"Etag {request.etag!r} does not match the current etag of the node pool.")
    change = _CHANGES.get(group)
    if group == "image":
        pool.config.image_type = request.image_type.upper() or pool.config.image_type
        pool.version = full_node_version(request.node_version, pool.version, facts.version)
    elif change is not None:
        change(pool, request)
    elif group in _OF_POOL:
        setattr(pool, group, getattr(request, group))
    else:
        setattr(pool.config, group, getattr(request, group))
    check_changeable(pool, facts)


def _change_labels(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    pool.config.labels = dict(request.labels.labels)


def _change_taints(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Replace the whole list, including GKE's own taint; whether GKE would add it again is unconfirmed."""
    pool.config.taints = list(request.taints.taints)


def _change_tags(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    pool.config.tags = list(request.tags.tags)


def _change_resource_labels(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    own = {key: value for key, value in pool.config.resource_labels.items() if key.startswith("goog-gke-")}
    pool.config.resource_labels = own | dict(request.resource_labels.labels)


def _change_locations(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    pool.locations = list(request.locations)


def _change_upgrade(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Replace the whole message; omitted fields except the strategy become zero."""
    pool.upgrade_settings = request.upgrade_settings
    if not int(pool.upgrade_settings.strategy):
        pool.upgrade_settings.strategy = wire.NodePoolUpdateStrategy(wire.NodePoolUpdateStrategy.SURGE)


def _change_network(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Change whether nodes are private, and their bandwidth; ranges are for creation (magic-modules, ForceNew)."""
    sent = request.node_network_config
    if sent.create_pod_range or sent.pod_range or sent.pod_ipv4_cidr_block:
        raise bad("Pod ranges of a node pool cannot be changed.")
    if "enable_private_nodes" in sent:
        pool.network_config.enable_private_nodes = sent.enable_private_nodes
    if "network_performance_config" in sent:
        pool.network_config.network_performance_config = sent.network_performance_config


def _change_accelerators(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Change driver and sharing in place; GPUs and (unconfirmed) their partitions cannot change."""
    current = accelerator_of(pool)
    requested = request.accelerators[0]
    if current is None or len(request.accelerators) > 1:
        raise bad(f"Accelerator count: {requested.accelerator_count} should not be updated.")
    fields = (
        ("type", current.accelerator_type, requested.accelerator_type),
        ("count", current.accelerator_count, requested.accelerator_count),
        ("GPU partition size", current.gpu_partition_size, requested.gpu_partition_size),
    )
    for name, before, after in fields:
        if before != after:  # the message about the count: GoogleCloudPlatform/magic-modules#18493
            raise bad(f"Accelerator {name}: {after} should not be updated.")
    driver = current.gpu_driver_installation_config
    if "gpu_driver_installation_config" not in requested:
        requested.gpu_driver_installation_config = driver
    pool.config.accelerators = [requested]


def _change_system(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    for name in _GROUPS["system"]:
        if name in request:
            setattr(pool.config, name, getattr(request, name))


def _change_machine(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    config = pool.config
    config.machine_type = request.machine_type or config.machine_type
    boot = request.boot_disk
    config.disk_type = request.disk_type or boot.disk_type or config.disk_type
    config.disk_size_gb = request.disk_size_gb or boot.size_gb or config.disk_size_gb
    config.boot_disk.disk_type = config.disk_type
    config.boot_disk.size_gb = config.disk_size_gb
    config.boot_disk.provisioned_iops = boot.provisioned_iops or config.boot_disk.provisioned_iops
    config.boot_disk.provisioned_throughput = boot.provisioned_throughput or config.boot_disk.provisioned_throughput


def _change_confidential(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Turn confidential nodes on or off; their type is for creation only (Terraform's provider, ForceNew)."""
    current, sent = pool.config.confidential_nodes, request.confidential_nodes
    kind = sent.confidential_instance_type
    if int(kind) and int(current.confidential_instance_type) and kind != current.confidential_instance_type:
        raise bad("Confidential instance type cannot be changed.")
    pool.config.confidential_nodes = sent


_CHANGES: dict[str, Callable[[wire.NodePool, wire.UpdateNodePoolRequest], None]] = {
    "labels": _change_labels,
    "taints": _change_taints,
    "tags": _change_tags,
    "resource_labels": _change_resource_labels,
    "accelerators": _change_accelerators,
    "system": _change_system,
    "machine": _change_machine,
    "locations": _change_locations,
    "upgrade_settings": _change_upgrade,
    "node_network_config": _change_network,
    "confidential_nodes": _change_confidential,
}
"""Group -> function that applies it; any other group is a field of the pool or of the node config, set as sent."""
_OF_POOL = frozenset({"queued_provisioning", "node_drain_config", "maintenance_policy"})
