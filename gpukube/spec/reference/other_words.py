"""Other tools' names of a pool's fields: eksctl's, Terraform's, and the clouds' own.

In scope: the table. Out of scope: misspellings (wording), misplaced fields (loading.messages).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.spec.clusters import CLOUDS
from gpukube.spec.wording import fold

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHER_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "instanceType": ("vmSize", "nodeVmSize", "machineType", "nodeType", "instance", "sku"),
    "gpu": ("accelerator", "accelerators", "guestAccelerator"),
    "gpu.model": ("gpuType", "gpuModel", "acceleratorType", "gpu.type", "gpu.name"),
    "gpu.count": ("gpuCount", "acceleratorCount", "gpusPerNode"),
    "nodes": ("scalingConfig",),
    "nodes.count": ("desiredCapacity", "desiredSize", "nodeCount", "numNodes", "initialNodeCount"),
    "nodes.autoscaling": (
        "scaling", "autoscale", "autoscaler", "enableAutoscaling", "enableClusterAutoscaler",
    ),
    "nodes.autoscaling.min": ("minSize", "minCount", "minNodes", "minNodeCount", "totalMinNodeCount"),
    "nodes.autoscaling.max": ("maxSize", "maxCount", "maxNodes", "maxNodeCount", "totalMaxNodeCount"),
    "capacity.type": ("spot", "capacityType", "priority", "scaleSetPriority", "preemptible", "provisioningModel"),
    "capacity.maxPrice": ("spotMaxPrice",),
    "capacity.reserved": ("reservedCapacity",),
    **{f"capacity.reserved.{name}": cloud.reserved_words for name, cloud in CLOUDS.items() if cloud.reserved_words},
    "zones": ("availabilityZones", "nodeLocations"),
    "disk.sizeGiB": ("diskSize", "diskSizeGb", "osDiskSize", "osDiskSizeGb", "nodeOsDiskSize", "volumeSize"),
    "disk.type": ("diskType", "osDiskType", "nodeOsDiskType", "volumeType"),
    "image": ("amiFamily", "amiType", "imageType", "osSku"),
    "kubernetesVersion": ("orchestratorVersion", "nodeVersion", "kubeletVersion"),
    "maxPodsPerNode": ("maxPods",),
    "upgrade": ("updateConfig", "upgradeSettings"),
    "sharing": ("gpuSharing", "gpuSharingConfig", "gpuSharingStrategy"),
    "sharing.mig": ("migConfig", "migStrategy"),
    "sharing.mig.profile": ("migProfile", "gpuInstanceProfile", "gpuPartitionSize"),
    "labels": ("nodeLabels", "kubernetesLabels"),
    "taints": ("nodeTaints", "kubernetesTaints"),
    "tags": ("resourceLabels",),
    "driver": ("gpuDriver", "gpuDriverInstallationConfig"),
    "driver.version": ("driverVersion", "gpuDriverVersion"),
    "devicePlugin": ("plugin", "nvidiaDevicePlugin"),
    "devicePlugin.version": ("pluginVersion", "chartVersion"),
}  # fmt: skip
"""gpukube's field -> names in eksctl (ClusterConfig), the EKS API and Terraform's aws_eks_node_group, az and the AKS
API, gcloud and the GKE API, and colloquial ones; a name with a prefix before the dot counts only in that place."""

_FIELD_OF: Final = {fold(word): field for field, words in OTHER_WORDS.items() for word in words}


def field_for(word: str, within: str) -> str | None:
    """Return the field of a pool ("nodes.autoscaling.min") for another tool's name.

    Args:
        word: The unknown key.
        within: Path of its mapping ("nodes"); "" for the pool itself.

    Returns:
        None if no tool uses this name for a field in that place.
    """
    field = _FIELD_OF.get(fold(f"{within}.{word}")) or _FIELD_OF.get(fold(word))
    return field if field and (not within or field.startswith(f"{within}.")) else None
