"""AKS's checks of an agent pool with the right shape, in the order in which the service runs them.

In scope: rules over the properties of one pool, pure. Out of scope: names and types (`schema`), labels and
taints (`keys`), state of the cluster (`pools`).

Every rule names its source; "unconfirmed" marks a message or code that no public log shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import Json, aks_error, bad_parameter
from gpukube_sandbox.aks.keys import check_labels, check_taints
from gpukube_sandbox.aks.machines import IMAGE_DATE
from gpukube_sandbox.aks.nodeconfig import check_node_config
from gpukube_sandbox.aks.profiles import check_profiles
from gpukube_sandbox.aks.reservations import check_reservation
from gpukube_sandbox.aks.schema import immutable_fields
from gpukube_sandbox.aks.sizes import find_size, mig_layout
from gpukube_sandbox.aks.upgrades import check_settings

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_MAX_NODES = 1000
_MAX_PODS = 250
_MIN_PODS = 10
_MIN_DISK_GB = 30
_MAX_DISK_GB = 2048
_WINDOWS_NAME = 6
_TAGS = 50
_TAG_NAME, _TAG_VALUE = 512, 256
_NOT_IN_TAGS = "<>%&\\?/"
_PRICE_DECIMALS = 5
_GIB = 1024**3

_LINUX = ("Ubuntu", "AzureLinux", "AzureContainerLinux", "CBLMariner", "Mariner")
"""Prefixes of the OS SKUs that can migrate to each other."""
_ABSENT_MEANS = {  # docs: aks/use-nvidia-gpu, aks/aks-managed-gpu-nodes: defaults
    "gpuProfile.driver": "Install",
    "gpuProfile.nvidia.managementMode": "Unmanaged",
    "gpuProfile.nvidia.migStrategy": "None",
    "gpuProfile.nvidia.driverMode": "DevicePlugin",
}


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster's facts that rules may use."""

    subscription: str
    location: str
    kubernetes_version: str
    node_provisioning_mode: str = "Manual"
    identity: str = "UserAssigned"
    image_date: str = IMAGE_DATE


def check_name(name: str) -> None:
    """Reject a pool name outside `^[a-z][a-z0-9]{0,11}$` (docs: aks/create-node-pools; the message is unconfirmed)."""
    if not _NAME.fullmatch(name):
        message = (
            "The value of parameter agentPoolProfile.name is invalid. Error details: Agent pool name "
            f"'{name}' must match ^[a-z][a-z0-9]{{0,11}}$: lower case letters and digits, at most 12, a letter first."
        )
        raise bad_parameter(message, "agentPoolProfile.name")


def check_name_for(name: str, pool: Json) -> None:
    """Reject a Windows pool name longer than six characters (jenkins-infra/azure#284; the target is unconfirmed)."""
    if pool.get("osType") == "Windows" and len(name) > _WINDOWS_NAME:
        message = f"Windows agent pool name can not be longer than {_WINDOWS_NAME} characters."
        raise aks_error("WindowsAgentPoolNameTooLong", message, target="agentPoolProfile.name")


def check_pool(pool: Json, cluster: ClusterFacts, *, creating: bool) -> None:
    """Check the whole pool as it would be stored.

    Args:
        pool: Wire properties with the server's defaults.
        cluster: Facts of the cluster.
        creating: Whether the pool is new; some rules apply only then.

    Raises:
        ArmError: The first rule that fails.
    """
    for rule in _RULES:
        rule(pool, cluster)
    if creating:
        _check_count_in_range(pool)
        _check_tags(pool)


def check_changes(before: Json, after: Json, sent: Json) -> None:
    """Reject a change that needs a new pool.

    Args:
        before: The stored pool.
        after: The pool as it would be stored.
        sent: The properties in the request body.

    Raises:
        ArmError: 400 PropertyChangeNotAllowed, flat, with its target (message seen in public logs: Changing property
            'properties.vmSize' is not allowed.; the target of gpuInstanceProfile is unconfirmed).
    """
    for path in immutable_fields():
        implied = _ABSENT_MEANS.get(path)
        old, new = _at(before, path) or implied, _at(after, path) or implied
        if not _is_same(old, new):
            raise _fixed(path)
    # A body without these two means "any size" and "no MIG", so a different pool (pulumi-azure-native#2462).
    for path in ("vmSize", "gpuInstanceProfile"):
        if path in before and path not in sent:
            raise _fixed(path)
    if before.get("osSKU") != after.get("osSKU") and not _can_migrate(before, after):
        raise _fixed("osSKU")


def _fixed(path: str) -> Exception:
    target = f"properties.{path}"
    return aks_error("PropertyChangeNotAllowed", f"Changing property '{target}' is not allowed.", target=target)


def _at(pool: Json, path: str) -> object:
    value: object = pool
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_same(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return old.lower() == new.lower()  # Azure compares sizes and ids case-insensitively
    return old == new


def _can_migrate(before: Json, after: Json) -> bool:
    """Return whether the OS SKU can change in place: from one Linux to another, with exceptions.

    Source: docs: aks/upgrade-os-version; the exceptions: docs: azure-linux/tutorial-azure-linux-migration (GPU VHD,
    confidential machines on Ubuntu 20.04, Kata). The error code of the exceptions is unconfirmed.
    """
    image, skus = str(before.get("nodeImageVersion", "")), [str(pool.get("osSKU", "")) for pool in (before, after)]
    if "gpucontainerd" in image or str(before.get("workloadRuntime", "")).startswith("Kata"):
        return False
    if "2004" in image and "cvm" in image and not skus[1].startswith("Ubuntu"):
        return False
    return all(sku.startswith(_LINUX) for sku in skus)


def _number(pool: Json, key: str) -> int | None:
    value = pool.get(key)
    return value if isinstance(value, int) else None


def _check_size(pool: Json, cluster: ClusterFacts) -> None:
    name = str(pool["vmSize"])
    size = find_size(name)
    if size is None:  # Azure/karpenter-provider-azure pkg/fake/aksmachinesapi.go
        message = (
            f"Virtual Machine size: '{name}' is not supported for subscription {cluster.subscription} in location "
            f"'{cluster.location}'. Please refer to aka.ms/aks/vm-size-selector to find supported VM sizes in location "
            f"'{cluster.location}'."
        )
        raise aks_error("VMSizeNotSupported", message)
    if size.restricted:
        raise aks_error("BadRequest", f"The VM SKUs chosen for agentpool(s) {name} are restricted by AKS.")
    zones = pool.get("availabilityZones")
    missing = [zone for zone in zones if zone not in size.zones] if isinstance(zones, list) else []
    if missing:  # unconfirmed: code and message
        message = (
            f"The zone(s) '{','.join(missing)}' for resource 'agentPoolProfile' is not supported. The supported zones "
            f"for location '{cluster.location}' and size '{name}' are '{','.join(size.zones)}'."
        )
        raise aks_error("AvailabilityZoneNotSupported", message, target="agentPoolProfile.availabilityZones")


def _check_count(pool: Json, _: ClusterFacts) -> None:
    count = _number(pool, "count")
    if count is None:  # pulumi-azure-native#2943
        message = "Required parameter properties.count is missing (null)."
        raise bad_parameter(message, "properties.count")
    minimum = 1 if pool["mode"] == "System" else 0
    if not minimum <= count <= _MAX_NODES:
        message = (
            f"The value of parameter agentPoolProfile.count is invalid: agentPoolProfile.count was {count}. It must be "
            f"greater or equal to {minimum} and less than or equal to {_MAX_NODES}."
        )
        raise bad_parameter(message, "agentPoolProfile.count")


def _check_autoscaling(pool: Json, cluster: ClusterFacts) -> None:
    low, high = _number(pool, "minCount"), _number(pool, "maxCount")
    if not pool.get("enableAutoScaling"):
        if low is not None or high is not None:  # ksctl/ksctl#629; the message is unconfirmed
            key = "minCount" if low is not None else "maxCount"
            raise bad_parameter(
                f"agentPoolProfile.{key} cannot be set when agentPoolProfile.enableAutoScaling is false.",
                f"agentPoolProfile.{key}",
            )
        return
    if cluster.node_provisioning_mode == "Auto":  # coder/envbuilder#143
        raise aks_error(
            "OperationNotAllowed",
            ".properties.nodeProvisioningProfile.mode cannot be Auto while any AgentPools have "
            ".properties.enableAutoScaling enabled",
        )
    for key, value in (("minCount", low), ("maxCount", high)):
        if value is None:
            message = f"Required parameter agentPoolProfile.{key} is missing (null)."
            raise bad_parameter(message, f"agentPoolProfile.{key}")
    minimum = 1 if pool["mode"] == "System" else 0
    if low is not None and high is not None and not minimum <= low <= high <= _MAX_NODES:
        message = (
            f"agentPoolProfile.minCount was {low} and agentPoolProfile.maxCount was {high}. minCount must be greater "
            f"or equal to {minimum}, and maxCount greater or equal to minCount and less than or equal to {_MAX_NODES}."
        )
        raise bad_parameter(message, "agentPoolProfile.minCount")


def _check_count_in_range(pool: Json) -> None:
    """Check the count at creation; an update may leave it outside, the autoscaler moves it (Azure/AKS#1758)."""
    low, high, count = (_number(pool, key) for key in ("minCount", "maxCount", "count"))
    if not pool.get("enableAutoScaling") or low is None or high is None or count is None or low <= count <= high:
        return
    message = (  # cluster-api-provider-azure#5947
        f"agentPoolProfile.count was {count}. It must be greater or equal to minCount:{low} and less than or equal to "
        f"maxCount:{high}"
    )
    raise bad_parameter(message, "agentPoolProfile.count")


def _check_spot(pool: Json, _: ClusterFacts) -> None:
    price, policy = pool.get("spotMaxPrice"), pool.get("scaleSetEvictionPolicy")
    if pool["scaleSetPriority"] != "Spot":
        # SDKs before 41 always send -1 and Delete, so these two must pass on a regular pool.
        if price not in {None, -1} or policy not in {None, "Delete"}:
            target = "spotMaxPrice" if price not in {None, -1} else "scaleSetEvictionPolicy"
            message = f"agentPoolProfile.{target} can only be set when agentPoolProfile.scaleSetPriority is Spot."
            raise bad_parameter(message, f"agentPoolProfile.{target}")
        return
    if pool["mode"] != "User":  # docs: aks/spot-node-pool
        message = "Spot agent pools must have mode User."
        raise bad_parameter(message, "agentPoolProfile.mode")
    if pool["type"] != "VirtualMachineScaleSets":
        message = "Spot agent pools must have type VirtualMachineScaleSets."
        raise bad_parameter(message, "agentPoolProfile.type")
    if isinstance(price, int | float) and price != -1:
        too_fine = round(price, _PRICE_DECIMALS) != price
        if price <= 0 or too_fine:
            message = f"spotMaxPrice was {price}. It must be -1 or above 0 with at most {_PRICE_DECIMALS} decimals."
            raise bad_parameter(message, "agentPoolProfile.spotMaxPrice")


def _check_mig(pool: Json, _: ClusterFacts) -> None:
    value = pool.get("gpuInstanceProfile")
    if value is None:
        return
    size = find_size(str(pool["vmSize"]))
    if size is None or not mig_layout(size, str(value)):
        # The check exists since the release notes of 2026-08-07 (Azure/AKS PR 5913); code and message are unconfirmed.
        message = f"GPU instance profile '{value}' is not supported by VM size '{pool['vmSize']}'."
        raise bad_parameter(message, "agentPoolProfile.gpuInstanceProfile")
    if pool["osType"] != "Linux":
        message = "GPU instance profiles are supported on Linux agent pools only."
        raise bad_parameter(message, "agentPoolProfile.gpuInstanceProfile")


def _check_gpu_profile(pool: Json, _: ClusterFacts) -> None:
    profile = pool.get("gpuProfile")
    if not isinstance(profile, dict):
        return
    if "driverType" in profile and pool["osType"] != "Windows":  # docstring of the preview SDK
        message = "gpuProfile.driverType can only be set on Windows agent pools."
        raise bad_parameter(message, "agentPoolProfile.gpuProfile.driverType")
    nvidia = profile.get("nvidia")
    if isinstance(nvidia, dict):
        _check_managed(pool, nvidia)


def _check_managed(pool: Json, nvidia: Json) -> None:
    """Check the rules of AKS-managed GPU pools (docs: aks/aks-managed-gpu-nodes; the messages are unconfirmed)."""
    target = "agentPoolProfile.gpuProfile.nvidia"
    size = find_size(str(pool["vmSize"]))
    if "migProfiles" in nvidia:
        _check_mig_profiles(pool, nvidia)
    if nvidia.get("managementMode") != "Managed":
        return
    if size is None or not size.gpus:
        message = f"VM size '{pool['vmSize']}' has no NVIDIA GPU to be managed."
        raise bad_parameter(message, f"{target}.managementMode")
    if pool["osType"] != "Linux":
        message = "Managed GPU agent pools are supported on Linux only."
        raise bad_parameter(message, f"{target}.managementMode")
    if pool.get("enableAutoScaling"):
        message = "Managed GPU agent pools do not support the cluster autoscaler."
        raise bad_parameter(message, "agentPoolProfile.enableAutoScaling")


def _check_mig_profiles(pool: Json, nvidia: Json) -> None:
    """Check the preview's migProfiles: Single has one, Mixed several; no gpuInstanceProfile (docstring of 41.9.0b1)."""
    profiles, size = nvidia["migProfiles"], find_size(str(pool["vmSize"]))
    target = "agentPoolProfile.gpuProfile.nvidia.migProfiles"
    if "gpuInstanceProfile" in pool:
        raise bad_parameter("migProfiles and gpuInstanceProfile exclude each other.", target)
    count = len(profiles) if isinstance(profiles, list) else 0
    if nvidia.get("migStrategy") == "Single" and count != 1:
        raise bad_parameter("MIG strategy Single takes exactly one entry of migProfiles.", target)
    if size is None or not all(
        mig_layout(size, str(name)) for name in (profiles if isinstance(profiles, list) else ())
    ):
        raise bad_parameter(f"migProfiles do not fit VM size '{pool['vmSize']}'.", target)


def _check_pods_and_disk(pool: Json, _: ClusterFacts) -> None:
    pods, disk = _number(pool, "maxPods"), _number(pool, "osDiskSizeGB")
    if pods is not None and not _MIN_PODS <= pods <= _MAX_PODS:  # the lower bound is unconfirmed
        message = f"agentPoolProfile.maxPods was {pods}. It must be between {_MIN_PODS} and {_MAX_PODS}."
        raise bad_parameter(message, "agentPoolProfile.maxPods")
    if disk is None:
        return
    if not _MIN_DISK_GB <= disk <= _MAX_DISK_GB:  # Azure/bicep-types-az, microsoft.containerservice types.md (2048)
        message = (  # pulumi/pulumi-azure-native#663
            f"The OSDiskSize for Agent pool cannot be less than {_MIN_DISK_GB}GB or larger than {_MAX_DISK_GB}GB."
        )
        raise bad_parameter(message, "agentPoolProfile.osDiskSizeGB")
    size = find_size(str(pool["vmSize"]))
    if pool["osDiskType"] == "Ephemeral" and size and size.local_gib is not None and disk > size.local_gib:
        message = (  # Azure/AKS#2672 and #2635, from when only the cache counted
            f"The virtual machine size {size.name} has a cache size of {size.local_gib * _GIB} bytes, but the OS disk "
            f"requires {disk * _GIB} bytes. Use a VM size with larger cache or disable ephemeral OS."
        )
        raise aks_error("VMCacheSizeTooSmall", message)


def _check_kubernetes_version(pool: Json, cluster: ClusterFacts) -> None:
    """Check for two minors below the control plane at most (docs: aks/upgrade-node-pools; message unconfirmed)."""
    running = str(pool["currentOrchestratorVersion"])
    minor, plane = _minor(running), _minor(cluster.kubernetes_version)
    above = minor is not None and _parts(running) > _parts(cluster.kubernetes_version)
    if minor is None or plane is None or above or minor < plane - 2:
        message = (
            f"Node pool version {pool['orchestratorVersion']} and control plane version {cluster.kubernetes_version} "
            "are incompatible. Minor version of node pool cannot be bigger than control plane version, and not more "
            "than two minors below."
        )
        raise aks_error("NodePoolMcVersionIncompatible", message, target="agentPoolProfile.orchestratorVersion")


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _minor(version: str) -> int | None:
    found = re.fullmatch(r"1\.(\d+)(\.\d+)?", version)
    return int(found[1]) if found else None


def _check_tags(pool: Json) -> None:
    """Reject the skip tag, as AKS does since 2025-08-14 (Azure/AKS#4925); code and message are unconfirmed."""
    tags = pool.get("tags")
    if isinstance(tags, dict) and any(key.lower() == "skipgpudriverinstall" for key in tags):
        message = (
            "The tag SkipGPUDriverInstall is retired. Set properties.gpuProfile.driver to None instead of installing "
            "the GPU driver."
        )
        raise aks_error("BadRequest", message, target="agentPoolProfile.tags")


def _check_tag_limits(pool: Json, _: ClusterFacts) -> None:
    """Check ARM's tag limits; code and messages are unconfirmed.

    Source: Azure/azure-resource-manager-rpc#146, docs: azure-resource-manager/management/tag-resources.
    """
    tags = pool.get("tags")
    if not isinstance(tags, dict):
        return
    if len(tags) > _TAGS:
        message = f"The agent pool has {len(tags)} tags. A resource can have at most {_TAGS} tags."
        raise aks_error("BadRequest", message, target="agentPoolProfile.tags")
    for name, value in tags.items():
        if wrong := [sign for sign in _NOT_IN_TAGS if sign in name]:  # docs; MicrosoftDocs/azure-docs#5647
            message = (
                f"Tag name '{name[:40]}' contains {' '.join(wrong)}. It must not contain {' '.join(_NOT_IN_TAGS)}."
            )
            raise aks_error("InvalidTagNameCharacters", message, target="agentPoolProfile.tags")
        if not 1 <= len(name) <= _TAG_NAME or len(str(value)) > _TAG_VALUE:
            message = f"Tag '{name[:40]}' is too long. Names have at most {_TAG_NAME} characters, values {_TAG_VALUE}."
            raise aks_error("BadRequest", message, target="agentPoolProfile.tags")


def _check_os_sku(pool: Json, _: ClusterFacts) -> None:
    """Check that an OS SKU matches the pool's operating system (Azure/azure-cli#24966 for Windows on a Linux pool)."""
    sku = pool.get("osSKU")
    if sku is not None and str(sku).startswith("Windows") != (pool["osType"] == "Windows"):
        raise aks_error("InvalidOSSKU", f"OSSKU='{sku}' is invalid, details: Unrecognized OSSKU")


_RULES: tuple[Callable[[Json, ClusterFacts], None], ...] = (
    _check_size,
    _check_count,
    _check_autoscaling,
    _check_spot,
    _check_mig,
    _check_gpu_profile,
    _check_pods_and_disk,
    _check_kubernetes_version,
    _check_tag_limits,
    _check_os_sku,
    lambda pool, _: check_node_config(pool),
    lambda pool, _: check_profiles(pool),
    lambda pool, _: check_settings(pool),
    lambda pool, cluster: check_reservation(pool, cluster.identity),
    lambda pool, _: check_labels(pool),
    lambda pool, _: check_taints(pool),
)
