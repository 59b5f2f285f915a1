"""Kubelet settings and kernel parameters: their names and values in a spec and in an agent pool.

In scope: the two tables, and conversions both ways. Out of scope: allowed ranges (`limits`), findings
(`rules.settings`).

Sources: KubeletConfig and SysctlConfig of azure-mgmt-containerservice; what AKS makes of them on a node:
Azure/AgentBaker pkg/agent/utils.go (kubelet) and parts/linux/cloud-init/nodecustomdata.yml (sysctls).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gpukube.core.jsontree import at, integer, strings

Live = Mapping[str, object]
"""Properties of a pool as read."""


@dataclass(frozen=True, slots=True)
class KubeletSetting:
    """One setting of the kubelet.

    Attributes:
        wire: Its name in kubeletConfig.
        to_wire: Value of a spec -> value in the request; None if AKS has no such value.
        from_wire: Live value -> value of a spec; None if a spec has no such value.
    """

    wire: str
    to_wire: Callable[[object], object] = lambda value: value
    from_wire: Callable[[object], object] = lambda value: value


_UNITS: Final = {"Gi": Fraction(1024), "Mi": Fraction(1), "Ki": Fraction(1, 1024)}
_MICROSECONDS: Final = {
    "h": Fraction(3_600_000_000),
    "m": Fraction(60_000_000),
    "s": Fraction(1_000_000),
    "ms": Fraction(1000),
    "us": Fraction(1),
    "ns": Fraction(1, 1000),
}
_MOST_MEGABYTES, _LONGEST = 1_000_000, 10_000_000
"""One more than the numbers that a spec accepts (spec.model, LOG_SIZE and CFS_PERIOD)."""
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)")


def _megabytes(size: object) -> int | None:
    """Return a size such as 50Mi in AKS's unit; None if it is not a whole number of it."""
    text = str(size)
    count = int(text[:-2]) * _UNITS[text[-2:]]
    return int(count) if count.denominator == 1 else None


def _size(megabytes: object) -> str | None:
    count = integer(megabytes) or 0
    return f"{count}Mi" if 0 < count < _MOST_MEGABYTES else None


def _limit(pids: object) -> int | None:
    """Return the number of processes; -1 is the kubelet's default, no limit."""
    count = integer(pids) or 0
    return count if count > 0 else None


def period_of(duration: object) -> str | None:
    """Return a duration in the spec's form, one number and unit: "1.5s" -> "1500ms"; None if there is none."""
    text = str(duration)
    if not _DURATION.fullmatch(text):
        return None
    total = sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text))
    if total < 1 or total.denominator != 1:
        return None
    unit = next(unit for unit in ("s", "ms", "us") if total % _MICROSECONDS[unit] == 0)
    count = total // _MICROSECONDS[unit]
    return f"{count}{unit}" if count < _LONGEST else None


KUBELET: Final[Mapping[str, KubeletSetting]] = {
    "cpuManagerPolicy": KubeletSetting("cpuManagerPolicy"),
    "topologyManagerPolicy": KubeletSetting("topologyManagerPolicy"),
    "podPidsLimit": KubeletSetting("podMaxPids", from_wire=_limit),
    "cpuCFSQuota": KubeletSetting("cpuCfsQuota"),
    "cpuCFSQuotaPeriod": KubeletSetting("cpuCfsQuotaPeriod", from_wire=period_of),
    "imageGCHighThresholdPercent": KubeletSetting("imageGcHighThreshold"),
    "imageGCLowThresholdPercent": KubeletSetting("imageGcLowThreshold"),
    "containerLogMaxSize": KubeletSetting("containerLogMaxSizeMB", _megabytes, _size),
    "containerLogMaxFiles": KubeletSetting("containerLogMaxFiles"),
    "allowedUnsafeSysctls": KubeletSetting(
        "allowedUnsafeSysctls", lambda names: [*strings(names)], lambda names: strings(names) or None
    ),
}
"""Setting under `kubelet` in a spec -> its place in kubeletConfig. AKS has no topologyManagerScope and no
memoryManagerPolicy."""

SYSCTLS: Final[Mapping[str, str]] = {
    "fs.aio-max-nr": "fsAioMaxNr",
    "fs.file-max": "fsFileMax",
    "fs.inotify.max_user_watches": "fsInotifyMaxUserWatches",
    "fs.nr_open": "fsNrOpen",
    "kernel.threads-max": "kernelThreadsMax",
    "net.core.netdev_max_backlog": "netCoreNetdevMaxBacklog",
    "net.core.optmem_max": "netCoreOptmemMax",
    "net.core.rmem_default": "netCoreRmemDefault",
    "net.core.rmem_max": "netCoreRmemMax",
    "net.core.somaxconn": "netCoreSomaxconn",
    "net.core.wmem_default": "netCoreWmemDefault",
    "net.core.wmem_max": "netCoreWmemMax",
    "net.ipv4.ip_local_port_range": "netIpv4IpLocalPortRange",
    "net.ipv4.neigh.default.gc_thresh1": "netIpv4NeighDefaultGcThresh1",
    "net.ipv4.neigh.default.gc_thresh2": "netIpv4NeighDefaultGcThresh2",
    "net.ipv4.neigh.default.gc_thresh3": "netIpv4NeighDefaultGcThresh3",
    "net.ipv4.tcp_fin_timeout": "netIpv4TcpFinTimeout",
    "net.ipv4.tcp_keepalive_intvl": "netIpv4TcpkeepaliveIntvl",
    "net.ipv4.tcp_keepalive_probes": "netIpv4TcpKeepaliveProbes",
    "net.ipv4.tcp_keepalive_time": "netIpv4TcpKeepaliveTime",
    "net.ipv4.tcp_max_syn_backlog": "netIpv4TcpMaxSynBacklog",
    "net.ipv4.tcp_max_tw_buckets": "netIpv4TcpMaxTwBuckets",
    "net.ipv4.tcp_tw_reuse": "netIpv4TcpTwReuse",
    "net.netfilter.nf_conntrack_buckets": "netNetfilterNfConntrackBuckets",
    "net.netfilter.nf_conntrack_max": "netNetfilterNfConntrackMax",
    "vm.max_map_count": "vmMaxMapCount",
    "vm.swappiness": "vmSwappiness",
    "vm.vfs_cache_pressure": "vmVfsCachePressure",
}
"""Name of a kernel parameter -> its name in linuxOSConfig.sysctls."""
_PORTS: Final = "net.ipv4.ip_local_port_range"
_REUSE: Final = "net.ipv4.tcp_tw_reuse"
"""The only one that AKS takes as true or false; its value 2, loopback only, cannot be set."""


def sysctl_name(written: str) -> str:
    """Return the name of a parameter with dots; sysctl also accepts slashes."""
    return written.replace("/", ".")


def sysctl_value(name: str, written: str) -> object:
    """Return the value of a parameter as AKS takes it; None if it is not of the right type."""
    if name == _PORTS:
        return " ".join(written.split())
    if name == _REUSE:
        return {"0": False, "1": True}.get(written)
    return int(written) if written.isdecimal() else None


def wire_sysctls(sysctls: Mapping[str, str]) -> dict[str, object]:
    """Return the parameters of a spec as AKS takes them."""
    named = {sysctl_name(written): value for written, value in sysctls.items()}
    return {SYSCTLS[name]: sysctl_value(name, value) for name, value in sorted(named.items()) if name in SYSCTLS}


def known_sysctls(sysctls: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a spec in the form that `live_sysctls` reads."""
    return {sysctl_name(written): " ".join(value.split()) for written, value in sysctls.items()}


def live_sysctls(live: Live) -> dict[str, str]:
    """Return the parameters of a live pool in the spec's form."""
    found = {name: at(live, "linuxOSConfig", "sysctls", wire) for name, wire in SYSCTLS.items()}
    return {name: _text(value) for name, value in found.items() if value is not None}


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else " ".join(str(value).split())
