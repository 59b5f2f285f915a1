"""What GKE refuses of a node pool.

Lives here: one check per rule, over a pool whose defaults are filled in. Must not live here: state, changes of a living
pool (`updates`), rules between operations (`operations`).

A sentence that was seen is cited; every other one is the sandbox's own wording (the real one is unconfirmed), its code
is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.machines import DEFAULT_MACHINE, Machine, find_machine
from gpukube_sandbox.gke.provisioning import check_provisioning
from gpukube_sandbox.gke.versions import is_at_least, parse_version
from gpukube_sandbox.gke.wire.answers import bad
from gpukube_sandbox.gke.wire.names import exists, region_of

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_IMAGES = frozenset({"COS_CONTAINERD", "UBUNTU_CONTAINERD"})
_DISKS = frozenset({"pd-standard", "pd-ssd", "pd-balanced", "hyperdisk-balanced"})
_MIN_DISK_GB = 10
_PODS = range(8, 257)
_PREFIX_CHARS = 253
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_LABEL_CHARS = 1024
_CLIENTS = range(2, 49)
_PER_ZONE = 1000
_SKEW = 2
_OWN_LABELS = frozenset(
    {
        "cloud.google.com/gke-accelerator", "cloud.google.com/gke-accelerator-count",
        "cloud.google.com/gke-gpu-partition-size", "cloud.google.com/gke-gpu-sharing-strategy",
        "cloud.google.com/gke-max-shared-clients-per-gpu", "cloud.google.com/gke-gpu-driver-version",
        "cloud.google.com/gke-nodepool", "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible",
        "cloud.google.com/gke-provisioning", "cloud.google.com/machine-family",
        "cloud.google.com/gke-os-distribution", "cloud.google.com/gke-max-pods-per-node",
    }
)  # fmt: skip
_LATEST = wire.GPUDriverInstallationConfig.GPUDriverVersion.LATEST


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the rules may know of a cluster.

    Attributes:
        version: Of the control plane.
        channel: Release channel, "" for none.
        accelerator_zones: Accelerator type -> zones that have it; a type that is not named is everywhere.
    """

    location: str
    version: str
    channel: str
    accelerator_zones: dict[str, list[str]]


def check_pool(pool: wire.NodePool, facts: ClusterFacts) -> None:
    """Check a pool that is to be created.

    Raises:
        Refusal: 400 INVALID_ARGUMENT.
    """
    if not _NAME.fullmatch(pool.name):  # at most 40 characters (magic-modules, name_prefix); the pattern is unconfirmed
        raise bad(f"Invalid value for field node_pool.name: {pool.name!r}.")
    if pool.initial_node_count < 0 or pool.initial_node_count > _PER_ZONE:
        raise bad(f"Node_pool.initial_node_count must be between 0 and {_PER_ZONE}.")
    check_zones(pool, facts)
    check_labels(dict(pool.config.labels))
    check_taints(list(pool.config.taints))
    check_autoscaling(pool.autoscaling)
    check_management(pool.management, facts.channel)
    check_upgrade_settings(pool.upgrade_settings)
    check_version(pool.version, facts.version)
    check_config(pool.config)
    check_accelerators(pool.config, facts)
    check_provisioning(pool, facts.version)
    if pool.max_pods_constraint.max_pods_per_node not in _PODS:  # docs: kubernetes-engine/how-to/flexible-pod-cidr
        raise bad(f"Max_pods_per_node must be between {_PODS[0]} and {_PODS[-1]}.")


def check_zones(pool: wire.NodePool, facts: ClusterFacts) -> None:
    """Zones: there are such, of the cluster's region, none twice, and with the GPUs.

    The first sentence is seen in terraform-google-modules/terraform-google-kubernetes-engine#444.
    """
    region = region_of(facts.location)
    for zone in pool.locations:
        if not exists(zone):
            raise bad(f'Location "{zone}" does not exist.')
    for zone in pool.locations:
        if region_of(zone) != region or zone == region:
            raise bad(f"Location {zone!r} is not a zone in region {region!r} of the cluster.")
    if len(set(pool.locations)) != len(pool.locations):
        raise bad("Node_pool.locations holds a zone twice.")
    for zone in pool.locations:
        _check_zone_has(pool.config, zone, facts)


def _check_zone_has(config: wire.NodeConfig, zone: str, facts: ClusterFacts) -> None:
    for accelerator in config.accelerators:
        zones = facts.accelerator_zones.get(accelerator.accelerator_type)
        if zones is not None and zone not in zones:
            raise bad(f'Accelerator type "{accelerator.accelerator_type}" does not exist in zone {zone}.')


def check_labels(labels: dict[str, str]) -> None:
    """Labels: 1,024 characters in one request, in Kubernetes' form; its keys and those of GKE are not for users.

    The sentence on keys is seen in hashicorp/terraform-provider-google#6003.
    """
    if sum(len(key) + len(value) for key, value in labels.items()) > _MAX_LABEL_CHARS:
        raise bad(f"Node labels are longer than {_MAX_LABEL_CHARS} characters in total.")
    for key, value in labels.items():
        domain = key.rpartition("/")[0]
        if (
            key in _OWN_LABELS
            or domain in {"kubernetes.io", "k8s.io"}
            or domain.endswith((".kubernetes.io", ".k8s.io"))
        ):
            raise bad(f"Applying kubernetes label is not allowed: {key}.")
        if not _is_key(key) or not _is_value(value):
            raise bad(f"Invalid node label {key!r}: {value!r}.")


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    right = not slash or (len(prefix) <= _PREFIX_CHARS and _PREFIX.fullmatch(prefix) is not None)
    return right and _QUALIFIED.fullmatch(name) is not None


def _is_value(value: str) -> bool:
    return not value or _QUALIFIED.fullmatch(value) is not None


def check_taints(taints: list[wire.NodeTaint]) -> None:
    """Taints: an effect, a key, in Kubernetes' form, none twice (the sentence: terraform-provider-google#7928)."""
    seen: set[tuple[str, int]] = set()
    for taint in taints:
        if not taint.key or not int(taint.effect):
            raise bad("Node taint must have a key and an effect.")
        if not _is_key(taint.key) or not _is_value(taint.value):
            raise bad(f"Invalid node taint {taint.key!r}: {taint.value!r}.")
        if (taint.key, taint.effect) in seen:
            effect = wire.NodeTaint.Effect(taint.effect).name
            raise bad(f"Found more than one taint with key {taint.key} and effect {effect}")
        seen.add((taint.key, taint.effect))


def check_autoscaling(scaling: wire.NodePoolAutoscaling) -> None:
    """Autoscaling: a pair of limits per zone or in total, not both, and a maximum that is one."""
    total = scaling.total_min_node_count or scaling.total_max_node_count
    if total and (scaling.min_node_count or scaling.max_node_count):
        raise bad("Total node limits and per-zone node limits are mutually exclusive in node_pool_autoscaling.")
    if not scaling.enabled:
        return
    if not scaling.max_node_count and not scaling.total_max_node_count:
        raise bad(  # terraform-google-modules/terraform-google-kubernetes-engine#1554
            "Node_pool_autoscaling.max_node_count and node_pool_autoscaling.total_max_node_count cannot be both set to "
            "zero."
        )
    low, high = scaling.min_node_count, scaling.max_node_count
    if total:
        low, high = scaling.total_min_node_count, scaling.total_max_node_count
    if low < 0 or low > high:
        raise bad(f"Node_pool_autoscaling minimum {low} is greater than maximum {high}.")


def check_management(management: wire.NodeManagement, channel: str) -> None:
    """On a release channel nodes upgrade by themselves (the sentence is seen in many public Terraform runs)."""
    if channel and not management.auto_upgrade:
        raise bad(f"Auto_upgrade must be true when release_channel {channel} is set.")


def check_version(version: str, plane: str) -> None:
    """Nodes are never newer than their control plane, and at most two minor versions older.

    Source:
        docs: kubernetes-engine/versioning (skew); hashicorp/terraform-provider-google#14389 (newer minor) and
        jetstack/terraform-google-gke-cluster#28 (unsupported) for the sentences; which one a newer patch gets, and
        that an old one gets the second, is unconfirmed.
    """
    nodes, own = parse_version(version), parse_version(plane)
    if nodes[:2] > own[:2]:
        raise bad(f'Node version "{version}" must not have a greater minor version than master version "{plane}".')
    if nodes > own or nodes[0] != own[0] or nodes[1] < own[1] - _SKEW:
        raise bad(f'Node version "{version}" is unsupported.')


def check_upgrade_settings(settings: wire.NodePool.UpgradeSettings) -> None:
    """An upgrade by surge needs a node more or a node less (the proto's comment on UpgradeSettings)."""
    if settings.strategy in (wire.NodePoolUpdateStrategy.BLUE_GREEN, wire.NodePoolUpdateStrategy.SHORT_LIVED):
        return
    if settings.max_surge < 0 or settings.max_unavailable < 0:
        raise bad("Max_surge and max_unavailable must not be negative.")
    if not settings.max_surge + settings.max_unavailable:
        raise bad("At least one of max_surge and max_unavailable must be greater than zero.")


def check_size(count: int) -> None:
    """Nodes per zone."""
    if not 0 <= count <= _PER_ZONE:
        raise bad(f"Node count must be between 0 and {_PER_ZONE} per zone; {count} was requested.")


def check_config(config: wire.NodeConfig) -> None:
    """Image, disk, and what excludes what."""
    if config.image_type not in _IMAGES:
        raise bad(f"Image type {config.image_type!r} is not supported.")
    if config.disk_type not in _DISKS:
        raise bad(f"Disk type {config.disk_type!r} is not supported.")
    if (config.disk_type, config.disk_size_gb) != (config.boot_disk.disk_type, config.boot_disk.size_gb):
        raise bad("Node_config.boot_disk does not match disk_type and disk_size_gb.")
    if config.disk_size_gb < _MIN_DISK_GB:
        raise bad(f"Disk size must be at least {_MIN_DISK_GB} GB.")
    if config.spot and config.preemptible:
        raise bad("Spot and preemptible are mutually exclusive.")
    if config.fast_socket.enabled and not config.gvnic.enabled:
        raise bad("Fast socket requires gVNIC to be enabled.")


def check_accelerators(config: wire.NodeConfig, facts: ClusterFacts) -> None:
    """GPUs: what the machine type fixes has to be sent as it is; N1 takes what is attached."""
    machine = find_machine(config.machine_type)
    if machine is None:
        raise bad(f"Machine type with name {config.machine_type!r} does not exist in zone.")
    if len(config.accelerators) > 1:
        raise bad("At most one accelerator configuration is supported.")
    if not config.accelerators:
        if machine.accelerator:  # whether the service would infer them is unconfirmed; no known tool leaves them out
            raise bad(f"Machine type {machine.name} requires accelerators: {machine.gpus} x {machine.accelerator}.")
        return
    accelerator = config.accelerators[0]
    if accelerator.accelerator_type not in ACCELERATORS:
        raise bad(f"Accelerator type {accelerator.accelerator_type!r} is not supported.")
    _check_pairing(machine, accelerator)
    _check_floor(accelerator.accelerator_type, facts.version)
    _check_partition(machine, accelerator)
    _check_sharing(machine, accelerator, facts)
    driver = accelerator.gpu_driver_installation_config.gpu_driver_version
    if driver == _LATEST and config.image_type != "COS_CONTAINERD":
        raise bad("GPU driver version LATEST is only available for Container-Optimized OS.")
    if machine.fractional and config.image_type != "COS_CONTAINERD":
        raise bad(f"Machine type {machine.name} is only available with Container-Optimized OS.")


def _check_pairing(machine: Machine, accelerator: wire.AcceleratorConfig) -> None:
    kind, count = accelerator.accelerator_type, accelerator.accelerator_count
    if machine.name == DEFAULT_MACHINE:  # hashicorp/terraform-provider-google#8387
        raise bad(f"Cannot use default machine type ({DEFAULT_MACHINE}) with GPUs; choose a different machine type.")
    if machine.accelerator:
        if (kind, count) != (machine.accelerator, machine.gpus):
            raise bad(
                f"Machine type {machine.name} has {machine.gpus} x {machine.accelerator}; {count} x {kind} was "
                "requested."
            )
        return
    attached = ACCELERATORS[kind].attached
    if machine.family != "n1" or not attached:
        raise bad(f"Accelerator type {kind} is not supported with machine type {machine.name}.")
    if count not in attached:
        raise bad(f"Accelerator count {count} is not supported for {kind}; supported are {sorted(attached)}.")
    if machine.vcpus > attached[count]:
        raise bad(f"Machine type {machine.name} has more vCPUs than the {attached[count]} that {count} x {kind} allow.")


def _check_floor(kind: str, version: str) -> None:
    if kind == "nvidia-rtx-pro-6000" and not is_at_least(version, kind):
        raise bad(f"Accelerator type {kind} requires GKE version 1.34.0-gke.1662000 or later.")


def _check_partition(machine: Machine, accelerator: wire.AcceleratorConfig) -> None:
    size = accelerator.gpu_partition_size
    if not size:
        return
    known = {} if machine.fractional else ACCELERATORS[accelerator.accelerator_type].partitions
    if size not in known:
        raise bad(f"GPU partition size {size!r} is not supported for accelerator {accelerator.accelerator_type}.")


def _check_sharing(machine: Machine, accelerator: wire.AcceleratorConfig, facts: ClusterFacts) -> None:
    if "gpu_sharing_config" not in accelerator:
        return
    sharing = accelerator.gpu_sharing_config
    if not int(sharing.gpu_sharing_strategy):
        raise bad("GPU sharing strategy must be specified.")
    if sharing.max_shared_clients_per_gpu not in _CLIENTS:
        raise bad(
            f"Max shared clients per GPU is {sharing.max_shared_clients_per_gpu}; it must be between {_CLIENTS[0]} and "
            f"{_CLIENTS[-1]}."
        )
    if machine.fractional:
        raise bad(f"GPU sharing is not supported with machine type {machine.name}.")
    mps = sharing.gpu_sharing_strategy == wire.GPUSharingConfig.GPUSharingStrategy.MPS
    if mps and not is_at_least(facts.version, "mps"):
        raise bad("NVIDIA MPS requires GKE version 1.27.7-gke.1088000 or later.")
