"""Settings of the software on nodes: kubelet, Linux, and containerd.

In scope: their values. Out of scope: machines and disks (`machines`).

Source of all rules: the comments on NodeKubeletConfig, LinuxNodeConfig, ContainerdConfig, and their parts in
google.container.v1. No public message was found; these are the sandbox's own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.wire.answers import bad

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

_WORDS = {
    "cpu_manager_policy": ("none", "static"),
    "topology_manager.policy": ("none", "restricted", "best-effort", "single-numa-node"),
    "topology_manager.scope": ("container", "pod"),
    "memory_manager.policy": ("none", "static", "None", "Static"),  # the last two as in Terraform's provider
}
_NUMBERS = {
    "pod_pids_limit": range(1024, 4194304),
    "image_gc_low_threshold_percent": range(10, 86),
    "image_gc_high_threshold_percent": range(10, 86),
    "container_log_max_files": range(2, 11),
    "eviction_max_pod_grace_period_seconds": range(301),
    "max_parallel_image_pulls": range(2, 6),
}
"""Field of NodeKubeletConfig -> allowed values, in addition to 0 for unset."""
_DURATIONS = {
    "cpu_cfs_quota_period": (0.001, 1),
    "image_minimum_gc_age": (0, 120),
    "crash_loop_back_off.max_container_restart_period": (1, 300),
}
"""Field -> minimum and maximum in seconds."""
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi)")
_UNIT_KI = {"Ki": 1, "Mi": 1024, "Gi": 1024**2}
_LOG_KI = range(10 * 1024, 500 * 1024 + 1)
_UNSAFE = re.compile(r"kernel\.shm.*|kernel\.msg.*|kernel\.sem|fs\.mqueue\..*|net\..*")
_SHUTDOWN_S = (0, 30, 120)
_CRITICAL_S = range(121)
_DMA_ENTRIES = range(65535, 4194305)
_MAX_REGISTRIES = 25
_NAMED = """
    net.core.busy_poll net.core.busy_read net.core.netdev_max_backlog net.core.rmem_max net.core.rmem_default
    net.core.wmem_default net.core.wmem_max net.core.optmem_max net.core.somaxconn net.ipv4.neigh.default.gc_thresh1
    net.ipv4.neigh.default.gc_thresh2 net.ipv4.neigh.default.gc_thresh3 net.ipv4.tcp_rmem net.ipv4.tcp_wmem
    net.ipv4.tcp_tw_reuse net.ipv4.tcp_mtu_probing net.ipv4.tcp_max_orphans net.ipv4.tcp_max_tw_buckets
    net.ipv4.tcp_syn_retries net.ipv4.tcp_ecn net.ipv4.tcp_congestion_control net.netfilter.nf_conntrack_max
    net.netfilter.nf_conntrack_buckets net.netfilter.nf_conntrack_tcp_timeout_close_wait
    net.netfilter.nf_conntrack_tcp_timeout_time_wait net.netfilter.nf_conntrack_tcp_timeout_established
    net.netfilter.nf_conntrack_acct kernel.keys.maxkeys kernel.keys.maxbytes kernel.shmmni kernel.shmmax kernel.shmall
    kernel.core_pattern kernel.perf_event_paranoid kernel.sched_rt_runtime_us kernel.softlockup_panic
    kernel.yama.ptrace_scope kernel.kptr_restrict kernel.dmesg_restrict kernel.sysrq fs.aio-max-nr fs.file-max
    fs.inotify.max_user_instances fs.inotify.max_user_watches fs.nr_open vm.dirty_background_ratio
    vm.dirty_background_bytes vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_bytes vm.dirty_writeback_centisecs
    vm.max_map_count vm.overcommit_memory vm.overcommit_ratio vm.vfs_cache_pressure vm.swappiness
    vm.watermark_scale_factor vm.min_free_kbytes
"""
_SYSCTLS = frozenset(_NAMED.split())


def check_nodes(config: wire.NodeConfig) -> None:
    """Check the settings of a pool's nodes.

    Raises:
        GoogleError: 400 INVALID_ARGUMENT.
    """
    _check_kubelet(config.kubelet_config)
    _check_shutdown(config)
    for name in config.linux_node_config.sysctls:
        if name not in _SYSCTLS:
            raise bad(f"Sysctl {name!r} is not supported in linux_node_config.sysctls.")
    pages = config.linux_node_config.hugepages
    for name in ("hugepage_size2m", "hugepage_size1g"):
        if (count := getattr(pages, name)) < 0:
            raise bad(f"Invalid value for linux_node_config.hugepages.{name}: {count}; it must be at least 1.")
    entries = config.linux_node_config.node_vfio_config.dma_entry_limit
    if entries and entries not in _DMA_ENTRIES:
        raise bad(_range("linux_node_config.node_vfio_config.dma_entry_limit", entries, _DMA_ENTRIES))
    if len(config.containerd_config.registry_hosts) > _MAX_REGISTRIES:
        raise bad(f"At most {_MAX_REGISTRIES} registry_hosts are allowed.")


def _range(field: str, value: object, allowed: range) -> str:
    return f"Invalid value for {field}: {value}; it must be between {allowed[0]} and {allowed[-1]}."


def _field(kubelet: wire.NodeKubeletConfig, path: str) -> object:
    found: object = kubelet
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _check_kubelet(kubelet: wire.NodeKubeletConfig) -> None:
    for path, words in _WORDS.items():
        word = _field(kubelet, path)
        if word and word not in words:
            raise bad(f"Invalid value for kubelet_config.{path}: {word!r}; allowed are {', '.join(words[:4])}.")
    for path, allowed in _NUMBERS.items():
        number = _field(kubelet, path)
        if number and number not in allowed:
            raise bad(_range(f"kubelet_config.{path}", number, allowed))
    low, high = kubelet.image_gc_low_threshold_percent, kubelet.image_gc_high_threshold_percent
    if low and high and low >= high:
        raise bad("Image_gc_low_threshold_percent must be smaller than image_gc_high_threshold_percent.")
    for path, (shortest, longest) in _DURATIONS.items():
        text = str(_field(kubelet, path))
        if text and not shortest <= _seconds(path, text) <= longest:
            raise bad(f"Invalid value for kubelet_config.{path}: {text!r}.")
    oldest = kubelet.image_maximum_gc_age
    if oldest and 0 < _seconds("image_maximum_gc_age", oldest) <= _seconds("", kubelet.image_minimum_gc_age or "2m"):
        raise bad("Image_maximum_gc_age must be greater than image_minimum_gc_age.")
    size = kubelet.container_log_max_size
    found = _SIZE.fullmatch(size)
    if size and (found is None or int(found[1]) * _UNIT_KI[found[2]] not in _LOG_KI):
        raise bad(f"Invalid value for kubelet_config.container_log_max_size: {size!r}; it must be 10Mi to 500Mi.")
    for name in kubelet.allowed_unsafe_sysctls:
        if not _UNSAFE.fullmatch(name):
            raise bad(f"Invalid value for kubelet_config.allowed_unsafe_sysctls: {name!r}.")


def _seconds(path: str, text: str) -> float:
    if not _DURATION.fullmatch(text):
        raise bad(f"Invalid value for kubelet_config.{path}: {text!r}.")
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(text))


def _check_shutdown(config: wire.NodeConfig) -> None:
    """Check the shutdown time of a Spot node."""
    kubelet = config.kubelet_config
    whole, critical = kubelet.shutdown_grace_period_seconds, kubelet.shutdown_grace_period_critical_pods_seconds
    if whole and not config.spot:
        raise bad("Shutdown_grace_period_seconds is only valid for Spot VMs.")
    if whole not in _SHUTDOWN_S:
        raise bad(f"Invalid value for kubelet_config.shutdown_grace_period_seconds: {whole}; allowed are 0, 30, 120.")
    if critical not in _CRITICAL_S or critical > whole:
        raise bad("Shutdown_grace_period_critical_pods_seconds must not be longer than shutdown_grace_period_seconds.")
