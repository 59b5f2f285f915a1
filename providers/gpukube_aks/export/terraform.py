"""Exports agent pools as resources of the Terraform provider hashicorp/azurerm: azurerm_kubernetes_cluster_node_pool.

Names of arguments: hashicorp/terraform-provider-azurerm website/docs/r/kubernetes_cluster_node_pool.html.markdown, 4.0
and later (auto_scaling_enabled).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Losses
from gpukube.core.hcl import Block, Expression, block, import_block, render, resource_name
from gpukube.core.jsontree import leaves, strings, text, texts, tree, trees
from gpukube_aks.export.request import properties_of
from gpukube_aks.pool.translate import SPOT_TAINT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.exporting import ExportedPool
    from gpukube.core.hcl import Argument
    from gpukube.core.values import ClusterRef

POOL: Final = "azurerm_kubernetes_cluster_node_pool"
_NAMES: Final[Mapping[str, str]] = {
    "vmSize": "vm_size",
    "mode": "mode",
    "osType": "os_type",
    "osSKU": "os_sku",
    "orchestratorVersion": "orchestrator_version",
    "gpuInstanceProfile": "gpu_instance",
    "gpuProfile.driver": "gpu_driver",
    "scaleSetPriority": "priority",
    "scaleSetEvictionPolicy": "eviction_policy",
    "spotMaxPrice": "spot_max_price",
    "capacityReservationGroupID": "capacity_reservation_group_id",
    "enableAutoScaling": "auto_scaling_enabled",
    "count": "node_count",
    "minCount": "min_count",
    "maxCount": "max_count",
    "maxPods": "max_pods",
    "osDiskType": "os_disk_type",
    "osDiskSizeGB": "os_disk_size_gb",
    "kubeletDiskType": "kubelet_disk_type",
    "availabilityZones": "zones",
    "vnetSubnetID": "vnet_subnet_id",
    "podSubnetID": "pod_subnet_id",
    "scaleDownMode": "scale_down_mode",
    "enableNodePublicIP": "node_public_ip_enabled",
    "nodePublicIPPrefixID": "node_public_ip_prefix_id",
    "proximityPlacementGroupID": "proximity_placement_group_id",
    "hostGroupID": "host_group_id",
    "enableEncryptionAtHost": "host_encryption_enabled",
    "enableUltraSSD": "ultra_ssd_enabled",
    "enableFIPS": "fips_enabled",
    "creationData.sourceResourceId": "snapshot_id",
    "nodeLabels": "node_labels",
    "nodeTaints": "node_taints",
    "tags": "tags",
}
"""Property -> argument, in output order."""
_UPGRADE: Final[Mapping[str, str]] = {
    "upgradeSettings.maxSurge": "max_surge",
    "upgradeSettings.maxUnavailable": "max_unavailable",
    "upgradeSettings.drainTimeoutInMinutes": "drain_timeout_in_minutes",
    "upgradeSettings.nodeSoakDurationInMinutes": "node_soak_duration_in_minutes",
    "upgradeSettings.undrainableNodeBehavior": "undrainable_node_behavior",
}
_KUBELET: Final[Mapping[str, str]] = {
    "kubeletConfig.allowedUnsafeSysctls": "allowed_unsafe_sysctls",
    "kubeletConfig.containerLogMaxFiles": "container_log_max_line",
    "kubeletConfig.containerLogMaxSizeMB": "container_log_max_size_mb",
    "kubeletConfig.cpuCfsQuota": "cpu_cfs_quota_enabled",
    "kubeletConfig.cpuCfsQuotaPeriod": "cpu_cfs_quota_period",
    "kubeletConfig.cpuManagerPolicy": "cpu_manager_policy",
    "kubeletConfig.imageGcHighThreshold": "image_gc_high_threshold",
    "kubeletConfig.imageGcLowThreshold": "image_gc_low_threshold",
    "kubeletConfig.podMaxPids": "pod_max_pid",
    "kubeletConfig.topologyManagerPolicy": "topology_manager_policy",
}
_SYSTEM: Final[Mapping[str, str]] = {
    "linuxOSConfig.swapFileSizeMB": "swap_file_size_mb",
    "linuxOSConfig.transparentHugePageDefrag": "transparent_huge_page_defrag",
    "linuxOSConfig.transparentHugePageEnabled": "transparent_huge_page_enabled",
}
_NETWORK: Final = tuple(
    f"networkProfile.{name}" for name in ("applicationSecurityGroups", "nodePublicIPTags", "allowedHostPorts")
)
"""Members of the block node_network_profile."""
_SYSCTLS: Final = "linuxOSConfig.sysctls."
_INTERVAL: Final = f"{_SYSCTLS}netIpv4TcpkeepaliveIntvl"
_RANGE: Final = f"{_SYSCTLS}netIpv4IpLocalPortRange"
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SAME: Final = frozenset({"type"})
"""Properties that are the same for every pool of the resource."""
_KEPT: Final = frozenset(path.partition(".")[0] for path in (*_NAMES, *_UPGRADE)) | {
    "kubeletConfig",
    "linuxOSConfig",
    "networkProfile",
}
"""Properties for which the resource has arguments."""
_SERVICE: Final = _SAME | {
    "currentOrchestratorVersion",
    "eTag",
    "nodeImageVersion",
    "powerState",
    "provisioningState",
    "status",
}
"""Status properties of a live pool."""
_MANAGED: Final = "gpuProfile.nvidia.managementMode"
_CYCLED: Final = 12
"""Maximum length of an agent pool's name."""


def write_hcl(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return the resources of the pools, with import blocks for live ones."""
    subscription = cluster.identity["subscription"]
    losses.note(f"the provider: hashicorp/azurerm 4.0 or later, configured for subscription {subscription}")
    losses.note(
        "to change machines, disks, zones or maxPods, Terraform moves the nodes through a pool named "
        "temporary_name_for_rotation, without cordon and drain"
    )
    return render(resource for pool in pools for resource in resources_of(cluster, pool, losses))


def resource_of(cluster: ClusterRef, pool: ExportedPool) -> Block:
    """Return the resource block of the pool."""
    return resources_of(cluster, pool, Losses())[-1]


def resources_of(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> list[Block]:
    """Return the blocks of one pool, including the import."""
    place = (
        f"/subscriptions/{cluster.identity['subscription']}/resourceGroups/{cluster.identity['resourceGroup']}"
        f"/providers/Microsoft.ContainerService/managedClusters/{cluster.name}"
    )
    name = resource_name(pool.name)
    found = _live_properties(pool) if pool.live else properties_of(pool)
    body: list[Block | Argument] = [("name", pool.name), ("kubernetes_cluster_id", place)]
    body += _body(pool, found, losses)
    resource = Block("resource", (POOL, name), body)
    if pool.live:
        losses.note_unwritten(pool, tree(pool.live.native, "properties"), _KEPT | _SERVICE)
    return [*([import_block(POOL, name, f"{place}/agentPools/{pool.name}")] if pool.live else []), resource]


def _live_properties(pool: ExportedPool) -> dict[str, object]:
    """Return the live values, since Terraform removes what the resource omits; the service manages versions."""
    live = tree(pool.live.native, "properties") if pool.live else {}
    chosen = properties_of(pool)
    unsaid = {name for name in ("orchestratorVersion", "gpuProfile") if name not in chosen}
    found = {name: value for name, value in live.items() if name in _KEPT - unsaid and value not in (None, [], {}, "")}
    return {name: value for name, value in found.items() if value is not False}


def _body(pool: ExportedPool, properties: Mapping[str, object], losses: Losses) -> list[Block | Argument]:
    whole = {name: value for name, value in properties.items() if name in ("nodeLabels", "tags")}
    paths = {
        ".".join(path): value
        for path, value in leaves({name: value for name, value in properties.items() if name not in whole})
    }
    if _MANAGED in paths:
        losses.refuse(
            pool,
            "devicePlugin.owner",
            f"{POOL} has no argument for AKS-managed GPU nodes (gpuProfile.nvidia.managementMode)",
            "remove devicePlugin.owner, or create the pool with gpukube",
        )
    if properties.get("scaleSetPriority") == "Spot":
        properties, whole = _with_spot(properties), {**whole, "nodeLabels": None}
        paths |= {name: properties[name] for name in ("scaleSetEvictionPolicy", "spotMaxPrice", "nodeTaints")}
    arguments = {**paths, **{name: texts(properties, name) for name in whole}}
    scaled = bool(properties.get("enableAutoScaling"))
    if scaled:
        arguments.pop("count", None)  # the autoscaler sets it
    _note_missing_arguments(pool, paths, losses)
    return [
        *((name, arguments[path]) for path, name in _NAMES.items() if path in arguments),
        ("temporary_name_for_rotation", f"{pool.name[: _CYCLED - 3]}tmp"),
        *_upgrade_settings(paths),
        *_kubelet_config(paths),
        *_linux_os_config(paths),
        *_node_network_profile(tree(properties, "networkProfile")),
        *([block("lifecycle", ("ignore_changes", [Expression("node_count")]))] if scaled else []),
    ]


def _with_spot(properties: Mapping[str, object]) -> dict[str, object]:
    """Add what AKS sets on Spot pools and the resource has to declare: defaults, a label, and a taint."""
    taints = dict.fromkeys((*strings(properties, "nodeTaints"), str(SPOT_TAINT)))
    return {
        "scaleSetEvictionPolicy": "Delete",
        "spotMaxPrice": -1,
        **properties,
        "nodeLabels": {**texts(properties, "nodeLabels"), SPOT_TAINT.key: SPOT_TAINT.value},
        "nodeTaints": list(taints),
    }


def _note_missing_arguments(pool: ExportedPool, paths: Mapping[str, object], losses: Losses) -> None:
    known = {*_NAMES, *_UPGRADE, *_KUBELET, *_SYSTEM, *_NETWORK, *_SAME, _MANAGED}
    for path, value in paths.items():
        if value is not None and path not in known and not path.startswith(_SYSCTLS):
            losses.note(f"{pool.name}: {path} ({text(value)}): the provider has no argument for it")


def _upgrade_settings(paths: Mapping[str, object]) -> list[Block]:
    members = {name: paths[path] for path, name in _UPGRADE.items() if path in paths}
    if {"max_surge", "max_unavailable"} <= members.keys():  # the resource accepts only one of the two
        members = {name: value for name, value in members.items() if value not in ("0", "0%")}
    return [block("upgrade_settings", *members.items())] if members else []


def _kubelet_config(paths: Mapping[str, object]) -> list[Block]:
    members = [(name, paths[path]) for path, name in _KUBELET.items() if path in paths]
    return [block("kubelet_config", *members)] if members else []


def _linux_os_config(paths: Mapping[str, object]) -> list[Block]:
    members = [(name, paths[path]) for path, name in _SYSTEM.items() if path in paths]
    sysctls: list[tuple[str, object]] = [
        ("net_ipv4_tcp_keepalive_intvl" if path == _INTERVAL else _snake(path.removeprefix(_SYSCTLS)), value)
        for path, value in paths.items()
        if path.startswith(_SYSCTLS) and path != _RANGE
    ]
    for end, value in zip(("min", "max"), re.findall(r"\d+", text(paths.get(_RANGE))), strict=False):
        sysctls.append((f"net_ipv4_ip_local_port_range_{end}", int(value)))
    nested = [block("sysctl_config", *sysctls)] if sysctls else []
    return [block("linux_os_config", *members, *nested)] if members or nested else []


def _node_network_profile(profile: Mapping[str, object]) -> list[Block]:
    groups = strings(profile, "applicationSecurityGroups")
    tags = {text(one, "ipTagType"): text(one, "tag") for one in trees(profile, "nodePublicIPTags")}
    members: list[tuple[str, object]] = [("application_security_group_ids", list(groups))] if groups else []
    members += [("node_public_ip_tags", tags)] if tags else []
    ports = [
        block("allowed_host_ports", *((_snake(name), value) for name, value in one.items()))
        for one in trees(profile, "allowedHostPorts")
    ]
    return [block("node_network_profile", *members, *ports)] if members or ports else []


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()
