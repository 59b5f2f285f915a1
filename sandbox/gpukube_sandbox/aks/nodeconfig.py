"""Kubelet and operating system settings of a pool: which exist, and within which bounds.

In scope: kubeletConfig, linuxOSConfig and messageOfTheDay. Out of scope: other properties (`rules`).

Source: docs: aks/custom-node-configuration; Azure/karpenter-provider-azure#1502, whose bounds follow AKS's own;
docstrings of KubeletConfig and LinuxOSConfig (azure-mgmt-containerservice 41.8.0). Codes and messages are unconfirmed.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.aks.answers import bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.aks.answers import Json

_SOCKET = (212_992, 134_217_728)
_SYSCTLS: Final[Mapping[str, tuple[int, int]]] = {
    "fsAioMaxNr": (65_536, 6_553_500),
    "fsFileMax": (8_192, 2**63 - 1),  # docs: aks/custom-node-configuration-reference; #1502 has 12000500
    "fsInotifyMaxUserWatches": (781_250, 2_097_152),
    "fsNrOpen": (8_192, 20_000_500),
    "kernelThreadsMax": (20, 513_785),
    "netCoreNetdevMaxBacklog": (1_000, 3_240_000),
    "netCoreOptmemMax": (20_480, 4_194_304),
    "netCoreRmemDefault": _SOCKET,
    "netCoreRmemMax": _SOCKET,
    "netCoreSomaxconn": (4_096, 3_240_000),
    "netCoreWmemDefault": _SOCKET,
    "netCoreWmemMax": _SOCKET,
    "netIpv4NeighDefaultGcThresh1": (128, 80_000),
    "netIpv4NeighDefaultGcThresh2": (512, 90_000),
    "netIpv4NeighDefaultGcThresh3": (1_024, 100_000),
    "netIpv4TcpFinTimeout": (5, 120),
    "netIpv4TcpKeepaliveProbes": (1, 15),
    "netIpv4TcpKeepaliveTime": (30, 432_000),
    "netIpv4TcpMaxSynBacklog": (128, 3_240_000),
    "netIpv4TcpMaxTwBuckets": (8_000, 1_440_000),
    "netIpv4TcpkeepaliveIntvl": (10, 90),
    "netNetfilterNfConntrackBuckets": (65_536, 524_288),
    "netNetfilterNfConntrackMax": (131_072, 2_097_152),
    "vmMaxMapCount": (65_530, 262_144),
    "vmSwappiness": (0, 100),
    "vmVfsCachePressure": (0, 100),
}
_PORTS: Final = ((1_024, 60_999), (32_768, 65_535))
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "cpuManagerPolicy": ("none", "static"),
    "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
}
_PAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "transparentHugePageEnabled": ("always", "madvise", "never"),
    "transparentHugePageDefrag": ("always", "defer", "defer+madvise", "madvise", "never"),
}
_THRESHOLDS: Final = {"imageGcHighThreshold": 85, "imageGcLowThreshold": 80}
_MIN_LOG_FILES = 2
_PERIOD: Final = re.compile(r"(\d+(\.\d+)?(ns|us|ms|s|m|h))+")


def check_node_config(pool: Json) -> None:
    """Reject settings that nodes do not support.

    Raises:
        ArmError: 400 InvalidParameter.
    """
    kubelet, system = (_object(pool.get(key)) for key in ("kubeletConfig", "linuxOSConfig"))
    _check_kubelet(kubelet)
    if system and pool["osType"] == "Windows":  # docs: aks/custom-node-configuration
        raise _invalid("linuxOSConfig", "it is not supported on Windows agent pools")
    for key, choices in _PAGES.items():
        _check_choice("linuxOSConfig", key, system, choices)
    swap = system.get("swapFileSizeMB")
    if isinstance(swap, int):
        if swap < 1:
            raise _invalid("linuxOSConfig.swapFileSizeMB", f"it was {swap} and must be at least 1")
        if kubelet.get("failSwapOn", True) is not False:  # docs: swap needs failSwapOn false
            raise _invalid("linuxOSConfig.swapFileSizeMB", "it needs kubeletConfig.failSwapOn to be false")
    _check_sysctls(_object(system.get("sysctls")))
    _check_message(pool)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _check_kubelet(kubelet: Json) -> None:
    for key, choices in _POLICIES.items():
        _check_choice("kubeletConfig", key, kubelet, choices)
    for key in _THRESHOLDS:
        _check_bounds(f"kubeletConfig.{key}", kubelet.get(key), (0, 100))
    high, low = (int(str(kubelet.get(key, usual))) for key, usual in _THRESHOLDS.items())
    if low > high:
        message = f"imageGcLowThreshold {low} cannot be higher than imageGcHighThreshold {high}"
        raise _invalid("kubeletConfig.imageGcLowThreshold", message)
    files = kubelet.get("containerLogMaxFiles")
    if isinstance(files, int) and files < _MIN_LOG_FILES:
        raise _invalid("kubeletConfig.containerLogMaxFiles", f"it was {files} and must be at least {_MIN_LOG_FILES}")
    period = kubelet.get("cpuCfsQuotaPeriod")
    if period is not None and not _PERIOD.fullmatch(str(period)):
        raise _invalid("kubeletConfig.cpuCfsQuotaPeriod", f"it was '{period}' and must be a time such as 100ms")


def _check_sysctls(sysctls: Json) -> None:
    for key, bounds in _SYSCTLS.items():
        _check_bounds(f"linuxOSConfig.sysctls.{key}", sysctls.get(key), bounds)
    ports = sysctls.get("netIpv4IpLocalPortRange")
    if ports is None:
        return
    found = re.fullmatch(r"(\d+) (\d+)", str(ports))
    within = found and all(low <= int(port) <= high for port, (low, high) in zip(found.groups(), _PORTS, strict=True))
    if not within:
        message = f"it was '{ports}' and must be the first port (1024 to 60999) and the last (32768 to 65535)"
        raise _invalid("linuxOSConfig.sysctls.netIpv4IpLocalPortRange", message)


def _check_message(pool: Json) -> None:
    text = pool.get("messageOfTheDay")
    if text is None:
        return
    if pool["osType"] == "Windows":
        raise _invalid("messageOfTheDay", "it must not be specified for Windows nodes")
    try:
        base64.b64decode(str(text), validate=True)
    except binascii.Error:
        raise _invalid("messageOfTheDay", "it must be base64-encoded") from None


def _check_choice(part: str, key: str, given: Json, choices: tuple[str, ...]) -> None:
    value = given.get(key)
    if value is not None and value not in choices:
        raise _invalid(f"{part}.{key}", f"it was '{value}'; allowed values: {', '.join(choices)}")


def _check_bounds(path: str, value: object, bounds: tuple[int, int]) -> None:
    if isinstance(value, int) and not bounds[0] <= value <= bounds[1]:
        raise _invalid(path, f"it was {value} and must be between {bounds[0]} and {bounds[1]}")


def _invalid(path: str, details: str) -> Exception:
    target = f"agentPoolProfile.{path}"
    return bad_parameter(f"The value of parameter {target} is invalid. Error details: {details}.", target)
