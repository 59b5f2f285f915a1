"""Kubelet, kernel, and disk settings that a pool gives its nodes, in the form of the simulated machines.

In scope: kubelet_config, linux_node_config, boot disk and local SSDs. Out of scope: which settings GKE accepts
(`rules`).

Source: the comments on NodeKubeletConfig and LinuxNodeConfig in google.container.v1; docs:
kubernetes-engine/how-to/node-system-config, kubernetes-engine/concepts/local-ssd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.gke.pools import machine_of
from gpukube_sandbox.gke.rules.machines import LOCAL_DISKS
from gpukube_sandbox.kube.nodes.settings import NodeSettings

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

_SCALARS: Final = {
    "cpu_manager_policy": "cpuManagerPolicy", "cpu_cfs_quota_period": "cpuCFSQuotaPeriod",
    "pod_pids_limit": "podPidsLimit", "image_gc_low_threshold_percent": "imageGCLowThresholdPercent",
    "image_gc_high_threshold_percent": "imageGCHighThresholdPercent", "image_minimum_gc_age": "imageMinimumGCAge",
    "image_maximum_gc_age": "imageMaximumGCAge", "container_log_max_size": "containerLogMaxSize",
    "container_log_max_files": "containerLogMaxFiles",
    "eviction_max_pod_grace_period_seconds": "evictionMaxPodGracePeriod",
    "max_parallel_image_pulls": "maxParallelImagePulls", "single_process_oom_kill": "singleProcessOOMKill",
}  # fmt: skip
"""Field of NodeKubeletConfig -> member of KubeletConfiguration."""
_DISK_GIB: Final = 375
_BY_DEFAULT: Final = frozenset({"a3", "a4", "a4x"})
"""Families whose local SSDs back ephemeral storage unless the pool says otherwise."""
_OF_BOOT_DISK: Final = 0.95
"""Share of a boot disk that is left for images and pods."""


def node_settings(config: wire.NodeConfig) -> NodeSettings:
    """Return the settings of a pool's nodes."""
    kubelet, linux = config.kubelet_config, config.linux_node_config
    found: dict[str, object] = {ours: value for name, ours in _SCALARS.items() if (value := getattr(kubelet, name))}
    if kubelet.cpu_cfs_quota is not None:
        found["cpuCFSQuota"] = kubelet.cpu_cfs_quota
    for key, value in (("Policy", kubelet.topology_manager.policy), ("Scope", kubelet.topology_manager.scope)):
        found |= {f"topologyManager{key}": value} if value else {}
    if kubelet.memory_manager.policy:
        found["memoryManagerPolicy"] = kubelet.memory_manager.policy.capitalize()
    if kubelet.allowed_unsafe_sysctls:
        found["allowedUnsafeSysctls"] = list(kubelet.allowed_unsafe_sysctls)
    pages = {"2Mi": linux.hugepages.hugepage_size2m, "1Gi": linux.hugepages.hugepage_size1g}
    return NodeSettings(found, dict(linux.sysctls), {size: count for size, count in pages.items() if count})


def storage_gib(pool: wire.NodePool) -> float:
    """Return the size of the disk with images and pods: local SSDs in its place, or the boot disk."""
    config, machine = pool.config, machine_of(pool)
    own = LOCAL_DISKS.get(machine.name, 0)
    count = config.ephemeral_storage_local_ssd_config.local_ssd_count
    if not count and "ephemeral_storage_local_ssd_config" in config:
        count = own
    raw = config.local_nvme_ssd_block_config.local_ssd_count or "local_nvme_ssd_block_config" in config
    if not count and not raw and machine.family in _BY_DEFAULT:
        count = own
    return float(count * _DISK_GIB) if count else config.disk_size_gb * _OF_BOOT_DISK
