"""What UpdateNodePool may change, and how.

Lives here: which fields of the request belong together, and what they do to the pool. Must not live here: the work.

Sources: UpdateNodePoolRequest of google.container.v1; GoogleCloudPlatform/magic-modules#18493 (GPUs, tried on a real
cluster); docs: how-to/gpus. That one request holds one group of attributes is how gcloud and Terraform send it; the
refusal of more is the sandbox's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube.sandbox.gke.answers import Refusal, bad
from gpukube.sandbox.gke.pools import accelerator_of
from gpukube.sandbox.gke.rules import check_accelerators, check_labels, check_taints, check_zones

if TYPE_CHECKING:
    from gpukube.sandbox.gke.rules import ClusterFacts

__all__ = ["ROLLING", "apply_update", "changed_group"]

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
    "kubelet_config": ("kubelet_config",),
    "linux_node_config": ("linux_node_config",),
    "taint_config": ("taint_config",),
    "queued_provisioning": ("queued_provisioning",),
    "max_run_duration": ("max_run_duration",),
    "flex_start": ("flex_start",),
    "consolidation_delay": ("consolidation_delay",),
    "workload_metadata_config": ("workload_metadata_config",),
}
ROLLING = frozenset(
    {"machine", "image", "accelerators", "resource_labels", "gvnic", "kubelet_config", "linux_node_config"}
)
"""Groups whose change replaces every machine."""
_OF_CONFIG = (
    "gvnic", "fast_socket", "logging_config", "kubelet_config", "linux_node_config", "taint_config", "max_run_duration",
    "flex_start", "consolidation_delay", "workload_metadata_config",
)  # fmt: skip


def changed_group(request: wire.UpdateNodePoolRequest) -> str:
    """The group of attributes that a request is about.

    Raises:
        Refusal: 400, none or more than one.
    """
    found = [group for group, names in _GROUPS.items() if any(_is_set(request, name) for name in names)]
    if not found:  # the sentence, with more names, is seen in public Terraform runs
        names = ", ".join(f"'{name}'" for group in _GROUPS.values() for name in group)
        raise bad(f"At least one of [{names}] must be specified.")
    if len(found) > 1:
        raise bad(f"Only one group of attributes can be updated at a time; the request holds {', '.join(found)}.")
    return found[0]


def _is_set(request: wire.UpdateNodePoolRequest, name: str) -> bool:
    """Whether a field is on the wire; "-" and the empty text are no versions."""
    return name in request and bool(getattr(request, name) or not isinstance(getattr(request, name), str))


def apply_update(pool: wire.NodePool, request: wire.UpdateNodePoolRequest, group: str, facts: ClusterFacts) -> None:
    """Change a copy of a pool.

    Raises:
        Refusal: 400, or 409 ABORTED for an etag that is not the pool's.
    """
    if request.etag and request.etag != pool.etag:
        raise Refusal("ABORTED", f"Etag {request.etag!r} does not match the current etag of the node pool.")
    config = pool.config
    match group:
        case "labels":
            config.labels = dict(request.labels.labels)
            check_labels(dict(config.labels))
        case "taints":
            config.taints = list(request.taints.taints)
            check_taints(list(config.taints))
        case "tags":
            config.tags = list(request.tags.tags)
        case "resource_labels":
            own = {key: value for key, value in config.resource_labels.items() if key.startswith("goog-gke-")}
            config.resource_labels = own | dict(request.resource_labels.labels)
        case "accelerators":
            _change_accelerators(pool, request)
        case "machine":
            _change_machine(config, request)
        case "image":
            config.image_type = request.image_type.upper() or config.image_type
            pool.version = facts.version if request.node_version in {"", "-"} else request.node_version
        case "locations":
            pool.locations = list(request.locations)
            check_zones(pool, facts)
        case "upgrade_settings":
            pool.upgrade_settings = request.upgrade_settings
        case "queued_provisioning":
            pool.queued_provisioning = request.queued_provisioning
        case _ if group in _OF_CONFIG:
            setattr(config, group, getattr(request, group))
    check_accelerators(config, facts)


def _change_accelerators(pool: wire.NodePool, request: wire.UpdateNodePoolRequest) -> None:
    """Driver and sharing change in place; what GPUs there are does not, nor (unconfirmed) how they are cut."""
    current = accelerator_of(pool)
    wanted = request.accelerators[0]
    if current is None or len(request.accelerators) > 1:
        raise bad(f"Accelerator count: {wanted.accelerator_count} should not be updated.")
    fields = (
        ("type", current.accelerator_type, wanted.accelerator_type),
        ("count", current.accelerator_count, wanted.accelerator_count),
        ("GPU partition size", current.gpu_partition_size, wanted.gpu_partition_size),
    )
    for name, before, after in fields:
        if before != after:  # the sentence for the count: GoogleCloudPlatform/magic-modules#18493
            raise bad(f"Accelerator {name}: {after} should not be updated.")
    driver = current.gpu_driver_installation_config
    if "gpu_driver_installation_config" not in wanted:
        wanted.gpu_driver_installation_config = driver
    pool.config.accelerators = [wanted]


def _change_machine(config: wire.NodeConfig, request: wire.UpdateNodePoolRequest) -> None:
    config.machine_type = request.machine_type or config.machine_type
    boot = request.boot_disk
    config.disk_type = request.disk_type or boot.disk_type or config.disk_type
    config.disk_size_gb = request.disk_size_gb or boot.size_gb or config.disk_size_gb
    config.boot_disk.disk_type = config.disk_type
    config.boot_disk.size_gb = config.disk_size_gb
