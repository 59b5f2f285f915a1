"""Kubelet and kernel settings that a pool gives its nodes, in the form of the simulated machines.

In scope: kubeletConfig, linuxOSConfig. Out of scope: which settings AKS accepts (`nodeconfig`).

Source: docs: aks/custom-node-configuration; Azure/AgentBaker pkg/agent/utils.go, pkg/agent/datamodel/types.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.settings import NodeSettings

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json

_KUBELET: Final = {
    "cpuManagerPolicy": "cpuManagerPolicy", "cpuCfsQuota": "cpuCFSQuota", "cpuCfsQuotaPeriod": "cpuCFSQuotaPeriod",
    "imageGcHighThreshold": "imageGCHighThresholdPercent", "imageGcLowThreshold": "imageGCLowThresholdPercent",
    "topologyManagerPolicy": "topologyManagerPolicy", "allowedUnsafeSysctls": "allowedUnsafeSysctls",
    "failSwapOn": "failSwapOn", "containerLogMaxFiles": "containerLogMaxFiles", "podMaxPids": "podPidsLimit",
}  # fmt: skip
"""Member of kubeletConfig -> member of KubeletConfiguration; containerLogMaxSizeMB has another unit."""
_SYSCTLS: Final = {
    "fsAioMaxNr": "fs.aio-max-nr", "fsFileMax": "fs.file-max", "fsNrOpen": "fs.nr_open",
    "fsInotifyMaxUserWatches": "fs.inotify.max_user_watches", "kernelThreadsMax": "kernel.threads-max",
    "netCoreNetdevMaxBacklog": "net.core.netdev_max_backlog", "netCoreOptmemMax": "net.core.optmem_max",
    "netCoreRmemDefault": "net.core.rmem_default", "netCoreRmemMax": "net.core.rmem_max",
    "netCoreSomaxconn": "net.core.somaxconn", "netCoreWmemDefault": "net.core.wmem_default",
    "netCoreWmemMax": "net.core.wmem_max", "netIpv4IpLocalPortRange": "net.ipv4.ip_local_port_range",
    "netIpv4NeighDefaultGcThresh1": "net.ipv4.neigh.default.gc_thresh1",
    "netIpv4NeighDefaultGcThresh2": "net.ipv4.neigh.default.gc_thresh2",
    "netIpv4NeighDefaultGcThresh3": "net.ipv4.neigh.default.gc_thresh3",
    "netIpv4TcpFinTimeout": "net.ipv4.tcp_fin_timeout", "netIpv4TcpkeepaliveIntvl": "net.ipv4.tcp_keepalive_intvl",
    "netIpv4TcpKeepaliveProbes": "net.ipv4.tcp_keepalive_probes",
    "netIpv4TcpKeepaliveTime": "net.ipv4.tcp_keepalive_time",
    "netIpv4TcpMaxSynBacklog": "net.ipv4.tcp_max_syn_backlog",
    "netIpv4TcpMaxTwBuckets": "net.ipv4.tcp_max_tw_buckets", "netIpv4TcpTwReuse": "net.ipv4.tcp_tw_reuse",
    "netNetfilterNfConntrackBuckets": "net.netfilter.nf_conntrack_buckets",
    "netNetfilterNfConntrackMax": "net.netfilter.nf_conntrack_max", "vmMaxMapCount": "vm.max_map_count",
    "vmSwappiness": "vm.swappiness", "vmVfsCachePressure": "vm.vfs_cache_pressure",
}  # fmt: skip


def node_settings(pool: Json) -> NodeSettings:
    """Return the settings of a pool's nodes."""
    kubelet, system = _object(pool.get("kubeletConfig")), _object(pool.get("linuxOSConfig"))
    config = {_KUBELET[key]: value for key, value in kubelet.items() if key in _KUBELET}
    if "containerLogMaxSizeMB" in kubelet:
        config["containerLogMaxSize"] = f"{kubelet['containerLogMaxSizeMB']}M"
    sysctls = {_SYSCTLS[key]: _text(value) for key, value in _object(system.get("sysctls")).items() if key in _SYSCTLS}
    return NodeSettings(config, sysctls)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value).replace(" ", "\t")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
