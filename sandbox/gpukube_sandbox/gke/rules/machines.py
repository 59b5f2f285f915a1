"""Machines of a node pool: image, disks, processors, and GPUs.

In scope: combinations with machine types. Out of scope: how machines are bought (`provisioning`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.machines import DEFAULT_MACHINE, Machine, find_machine
from gpukube_sandbox.gke.versions import is_at_least
from gpukube_sandbox.gke.wire.answers import bad

if TYPE_CHECKING:
    from gpukube_sandbox.gke.rules.facts import ClusterFacts

_IMAGES = frozenset({"COS_CONTAINERD", "UBUNTU_CONTAINERD"})
_DOCKER_IMAGES = frozenset({"COS", "UBUNTU", "WINDOWS_LTSC", "WINDOWS_SAC"})
_PERSISTENT = frozenset({"pd-standard", "pd-ssd", "pd-balanced"})
_HYPERDISK = "hyperdisk-balanced"
_DISK_GB = range(10, 65537)
"""Source: the comment on NodeConfig.disk_size_gb; docs: compute/docs/disks/persistent-disks (64 TiB)."""
_WITHOUT_HYPERDISK = frozenset({"n1", "n2"})
"""Families that do not boot from Hyperdisk Balanced: cloudfoundry/bosh-google-cpi-release#388 (n1), and the source of
the message (n2)."""
_PLATFORMS = frozenset(
    {
        "Intel Sandy Bridge", "Intel Ivy Bridge", "Intel Haswell", "Intel Broadwell", "Intel Skylake",
        "Intel Cascade Lake", "Intel Ice Lake", "Intel Sapphire Rapids", "Intel Emerald Rapids", "Intel Granite Rapids",
        "AMD Rome", "AMD Milan", "AMD Genoa", "AMD Turin", "Ampere Altra", "Google Axion",
    }
)  # fmt: skip
"""Source: docs: compute/docs/cpu-platforms."""
_TOO_SMALL = frozenset({"f1-micro"})
_CLIENTS = range(2, 49)
_TDX = wire.ConfidentialNodes.ConfidentialInstanceType.TDX
_CONFIDENTIAL_GPUS = frozenset({"a3-highgpu-1g", "a3-highgpu-1g-nolssd"})
_LATEST = wire.GPUDriverInstallationConfig.GPUDriverVersion.LATEST
LOCAL_DISKS = {
    "a2-ultragpu-1g": 1, "a2-ultragpu-2g": 2, "a2-ultragpu-4g": 4, "a2-ultragpu-8g": 8,
    "a3-highgpu-1g": 2, "a3-highgpu-2g": 4, "a3-highgpu-4g": 8, "a3-highgpu-8g": 16, "a3-edgegpu-8g": 16,
    "a3-megagpu-8g": 16, "a3-ultragpu-8g": 32, "a4-highgpu-8g": 32, "a4x-highgpu-4g": 4, "a4x-maxgpu-4g-metal": 4,
    "g2-standard-4": 1, "g2-standard-8": 1, "g2-standard-12": 1, "g2-standard-16": 1, "g2-standard-32": 1,
    "g2-standard-24": 2, "g2-standard-48": 4, "g2-standard-96": 8,
}  # fmt: skip
"""Machine type -> the number of local SSDs that it has, or can have (GKE cluster autoscaler, machinetypes)."""
_LOCAL_DISK_COUNTS = frozenset({*range(1, 9), 16, 24})
"""Local SSDs that machines without a number of their own can have: N1's (docs: compute/docs/disks/local-ssd),
unconfirmed for others."""


def check_machines(config: wire.NodeConfig, facts: ClusterFacts) -> None:
    """Check image, disks, processors, and GPUs, and their combinations.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    machine = _machine(config.machine_type)
    _check_image(config)
    _check_boot_disk(config, machine)
    _check_local_disks(config, machine)
    _check_accelerators(config, machine, facts)
    _check_confidential(config, machine)
    if config.secondary_boot_disks and not config.gcfs_config.enabled:  # hashicorp/terraform-provider-google, docs
        raise bad("Secondary boot disks require image streaming (gcfs_config) to be enabled.")


def _machine(name: str) -> Machine:
    if name in _TOO_SMALL:  # nkoson/gke-tutorial#7
        raise bad(f"Node pools of {name} machines are not supported due to insufficient memory.")
    machine = find_machine(name)
    if machine is None:
        raise bad(f"Machine type with name {name!r} does not exist in zone.")
    return machine


def _check_image(config: wire.NodeConfig) -> None:
    if config.image_type in _DOCKER_IMAGES:  # rancher/gke-operator#120
        raise bad(
            "Creation of node pools using node images based on Docker container runtimes is not supported in GKE "
            "v1.24+ clusters as Dockershim has been removed in Kubernetes v1.24."
        )
    if config.image_type not in _IMAGES:
        raise bad(f"Image type {config.image_type!r} is not supported.")
    if config.spot and config.preemptible:
        raise bad("Spot and preemptible are mutually exclusive.")
    if config.fast_socket.enabled and not config.gvnic.enabled:
        raise bad("Fast socket requires gVNIC to be enabled.")
    if config.min_cpu_platform and config.min_cpu_platform not in _PLATFORMS:  # related-sciences/gce-github-runner#55
        platform = config.min_cpu_platform
        raise bad(f"Invalid value for field 'resource.minCpuPlatform': '{platform}'. Invalid CPU platform.")


def _check_boot_disk(config: wire.NodeConfig, machine: Machine) -> None:
    """Check the boot disk: its size, its two forms, and a type that the machine boots from.

    The messages about types are Compute Engine's, seen in rancher/harvester-cloud#249 and DataBiosphere/dsub#301; that
    GKE returns them immediately, not at the end of its operation, is unconfirmed.
    """
    if config.disk_type not in _PERSISTENT | {_HYPERDISK}:
        raise bad(f"Disk type {config.disk_type!r} is not supported.")
    if (config.disk_type, config.disk_size_gb) != (config.boot_disk.disk_type, config.boot_disk.size_gb):
        raise bad("Node_config.boot_disk does not match disk_type and disk_size_gb.")
    if config.disk_size_gb not in _DISK_GB:
        raise bad(f"Disk size must be at least {_DISK_GB[0]} GB and at most {_DISK_GB[-1]} GB.")
    if config.disk_type == _HYPERDISK and machine.family in _WITHOUT_HYPERDISK:
        raise bad(f"{_HYPERDISK} disk type cannot be used by {machine.name} machine type.")
    if config.disk_type in _PERSISTENT and machine.disk_type == _HYPERDISK:
        raise bad(f"[{config.disk_type}, {machine.name}] features are not compatible for creating instance.")


def _check_local_disks(config: wire.NodeConfig, machine: Machine) -> None:
    """Check local SSDs: one kind of use, and a number that the machine supports.

    The messages are seen in terraform-google-modules/terraform-google-kubernetes-engine#902 and, for Compute Engine, in
    hashicorp/terraform-provider-google#16020.
    """
    ephemeral = config.ephemeral_storage_local_ssd_config.local_ssd_count
    block = config.local_nvme_ssd_block_config.local_ssd_count
    if ephemeral and config.local_ssd_count:
        raise bad("Can not use local SSDs as volumes when using ephemeral storage backed by local SSDs.")
    if ephemeral and block:
        raise bad("Only one of ephemeral_storage_local_ssd_config and local_nvme_ssd_block_config can have disks.")
    count = ephemeral or block or config.local_ssd_count
    if count and machine.family == "e2":
        raise bad(f"[{machine.name}, local-ssd] features are not compatible for creating instance.")
    own = LOCAL_DISKS.get(machine.name)
    fits = count == own if own else count in _LOCAL_DISK_COUNTS
    if count and (machine.name.endswith("-nolssd") or not fits):
        raise bad(f"Machine type {machine.name} does not support {count} local SSDs.")


def _check_accelerators(config: wire.NodeConfig, machine: Machine, facts: ClusterFacts) -> None:
    """Check GPUs: requests must have the machine type's own GPUs; N1 machines get the attached ones."""
    if len(config.accelerators) > 1:
        raise bad("At most one accelerator configuration is supported.")
    if not config.accelerators:
        if machine.accelerator:  # whether the service would infer them is unconfirmed; no known tool omits them
            raise bad(f"Machine type {machine.name} requires accelerators: {machine.gpus} x {machine.accelerator}.")
        return
    accelerator = config.accelerators[0]
    if accelerator.accelerator_type not in ACCELERATORS:
        raise bad(f"Accelerator type {accelerator.accelerator_type!r} is not supported.")
    _check_pairing(machine, accelerator)
    kind = accelerator.accelerator_type
    if kind == "nvidia-rtx-pro-6000" and not is_at_least(facts.version, kind):
        raise bad(f"Accelerator type {kind} requires GKE version 1.34.0-gke.1662000 or later.")
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
    if machine.family != "n1" or not attached:  # Compute Engine's message: skypilot-org/skypilot#212
        raise bad(f"[{kind}, {machine.name}] features are not compatible for creating instance.")
    if count not in attached:
        raise bad(f"Accelerator count {count} is not supported for {kind}; supported are {sorted(attached)}.")
    if machine.vcpus > attached[count]:  # Compute Engine's message: google/deepvariant#70
        raise bad(
            f"Invalid value for field 'resource.guestAccelerators[0].acceleratorCount': '{count}'. At most "
            f"{attached[count]} vCPUs can be used along with {count} accelerator cards in an instance."
        )


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


def _check_confidential(config: wire.NodeConfig, machine: Machine) -> None:
    """Check Confidential GKE Nodes: with GPUs they are Intel TDX on a machine with one H100, which nobody shares.

    Source:
        docs: kubernetes-engine/how-to/gpus-confidential-nodes; messages unconfirmed.
    """
    if not config.confidential_nodes.enabled or not config.accelerators:
        return
    if config.confidential_nodes.confidential_instance_type != _TDX or machine.name not in _CONFIDENTIAL_GPUS:
        raise bad(f"Confidential GKE Nodes with GPUs require TDX on a3-highgpu-1g; {machine.name} was requested.")
    accelerator = config.accelerators[0]
    if "gpu_sharing_config" in accelerator or accelerator.gpu_partition_size:
        raise bad("Confidential GKE Nodes do not support GPU sharing or partitions.")
