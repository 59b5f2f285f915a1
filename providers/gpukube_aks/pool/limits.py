"""Ranges and formats of values, which the SDK's models lack: path of a member -> values that AKS accepts.

In scope: that table. Out of scope: the members and their types (`members`), exclusive combinations
(`rules.combinations`).

AKS does not check all of these before it creates nodes: a node with a value out of range may not start (docs:
aks/custom-node-configuration).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Limit:
    """Allowed values of one property.

    Attributes:
        expected: Human-readable description, after "write".
        allows: Whether a value of the right type is allowed.
        example: An allowed value.
        source: Where it is documented.
    """

    expected: str
    allows: Callable[[object], bool]
    example: object
    source: str


_NODE_CONFIG = "docs: aks/custom-node-configuration"
_KARPENTER = "Azure/karpenter-provider-azure#1502, whose bounds follow AKS"
_ROLLING = "docs: aks/upgrade-aks-node-pools-rolling"
_MODEL = "azure-mgmt-containerservice: models of AgentPool"


def _between(least: int, most: int, source: str = _NODE_CONFIG) -> Limit:
    def allows(value: object) -> bool:
        return isinstance(value, int) and least <= value <= most

    return Limit(f"a number from {least} to {most}", allows, (least + most) // 2, source)


def _at_least(least: int) -> Limit:
    def allows(value: object) -> bool:
        return isinstance(value, int) and value >= least

    return Limit(f"{least} or more", allows, least, _NODE_CONFIG)


def _form(pattern: str, desired: str, example: str, source: str = _NODE_CONFIG) -> Limit:
    form = re.compile(pattern)

    def allows(value: object) -> bool:
        return isinstance(value, str) and form.fullmatch(value) is not None

    return Limit(desired, allows, example, source)


def _arm_id(kind: str) -> Limit:
    """Return the limit for ARM ids of one kind, "Microsoft.Network/virtualNetworks/subnets"; ARM ids ignore case."""
    namespace, *types = kind.split("/")
    below = "/".join(f"{name}/NAME" for name in types)
    desired = f"/subscriptions/ID/resourceGroups/NAME/providers/{namespace}/{below}"
    pattern = re.escape(desired).replace("/ID/", "/[^/]+/").replace("NAME", "[^/]+")
    return _form(f"(?i){pattern}", desired, desired, _MODEL)


def _ports(value: object) -> bool:
    found = re.fullmatch(r"(\d{1,5}) (\d{1,5})", value) if isinstance(value, str) else None
    if not found:
        return False
    first, last = int(found[1]), int(found[2])
    return 1024 <= first <= 60999 and 32768 <= last <= 65535 and first < last  # noqa: PLR2004 - the documented bounds


_SYSCTL = re.compile(r"kernel\.shm.*|kernel\.msg.*|kernel\.sem|fs\.mqueue\..*|net\..*")


def _sysctls(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and _SYSCTL.fullmatch(item) for item in value)


def _are_security_groups(value: object) -> bool:
    group = _arm_id("Microsoft.Network/applicationSecurityGroups")
    return isinstance(value, list) and all(group.allows(item) for item in value)


_OF_SYSCTLS: Mapping[str, Limit] = {
    "netCoreSomaxconn": _between(4096, 3240000),
    "netCoreNetdevMaxBacklog": _between(1000, 3240000),
    "netCoreRmemDefault": _between(212992, 134217728, _KARPENTER),
    "netCoreRmemMax": _between(212992, 134217728),
    "netCoreWmemDefault": _between(212992, 134217728, _KARPENTER),
    "netCoreWmemMax": _between(212992, 134217728),
    "netCoreOptmemMax": _between(20480, 4194304),
    "netIpv4TcpMaxSynBacklog": _between(128, 3240000),
    "netIpv4TcpMaxTwBuckets": _between(8000, 1440000),
    "netIpv4TcpFinTimeout": _between(5, 120),
    "netIpv4TcpKeepaliveTime": _between(30, 432000),
    "netIpv4TcpKeepaliveProbes": _between(1, 15),
    "netIpv4TcpkeepaliveIntvl": _between(10, 90),
    "netIpv4IpLocalPortRange": Limit(
        "two ports, the first from 1024 to 60999 and the last from 32768 to 65535, such as 32768 60999",
        _ports,
        "32000 60000",
        _NODE_CONFIG,
    ),
    "netIpv4NeighDefaultGcThresh1": _between(128, 80000),
    "netIpv4NeighDefaultGcThresh2": _between(512, 90000),
    "netIpv4NeighDefaultGcThresh3": _between(1024, 100000),
    "netNetfilterNfConntrackMax": _between(131072, 2097152),
    "netNetfilterNfConntrackBuckets": _between(65536, 524288),
    "fsInotifyMaxUserWatches": _between(781250, 2097152),
    "fsFileMax": _between(8192, 9223372036854775807),
    "fsAioMaxNr": _between(65536, 6553500),
    "fsNrOpen": _between(8192, 20000500),
    "kernelThreadsMax": _between(20, 513785, _KARPENTER),
    "vmMaxMapCount": _between(65530, 262144, _KARPENTER),
    "vmSwappiness": _between(0, 100),
    "vmVfsCachePressure": _between(1, 100),
}

LIMITS: Mapping[str, Limit] = {
    "messageOfTheDay": _form(
        r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)",
        "text in base64, such as the output of: base64 -w0 FILE",
        "aGVsbG8=",
        _MODEL,
    ),
    "networkProfile.allowedHostPorts.portStart": _between(1, 65535, _MODEL),
    "networkProfile.allowedHostPorts.portEnd": _between(1, 65535, _MODEL),
    "networkProfile.applicationSecurityGroups": Limit(
        "a list of resource ids of Microsoft.Network/applicationSecurityGroups",
        _are_security_groups,
        ["/subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/applicationSecurityGroups/NAME"],
        _MODEL,
    ),
    "vnetSubnetID": _arm_id("Microsoft.Network/virtualNetworks/subnets"),
    "podSubnetID": _arm_id("Microsoft.Network/virtualNetworks/subnets"),
    "nodePublicIPPrefixID": _arm_id("Microsoft.Network/publicIPPrefixes"),
    "proximityPlacementGroupID": _arm_id("Microsoft.Compute/proximityPlacementGroups"),
    "hostGroupID": _arm_id("Microsoft.Compute/hostGroups"),
    "creationData.sourceResourceId": _arm_id("Microsoft.ContainerService/snapshots"),
    "upgradeSettings.drainTimeoutInMinutes": _between(5, 1440, _ROLLING),
    "upgradeSettings.nodeSoakDurationInMinutes": _between(0, 30, _ROLLING),
    "kubeletConfig.allowedUnsafeSysctls": Limit(
        "names of kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.* only",
        _sysctls,
        ["net.core.somaxconn"],
        _NODE_CONFIG,
    ),
    "linuxOSConfig.swapFileSizeMB": _at_least(1),
    **{f"linuxOSConfig.sysctls.{name}": limit for name, limit in _OF_SYSCTLS.items()},
}
"""Path of a member in the API -> its limit."""
