"""The properties of an AKS agent pool by wire name: which ones the spec may set natively, and their shapes.

In scope: that table, and the checks of the spec's `aks:` fields against it. Out of scope: the effect of a change
(`updates`), adding them to a request (`translate`).

Names and shapes are from API version 2026-08-01 (azure-mgmt-containerservice 41.8.0, models of AgentPool); a test
compares them with the installed SDK, so that it reports new properties.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from gpukube.core.binding import managed_members
from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import leaves
from gpukube.errors import Finding
from gpukube.spec.wording import choices, did_you_mean, nearest
from gpukube_aks.pool.fields import BINDINGS
from gpukube_aks.pool.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Locator, Target
    from gpukube.errors import Where

Shape: TypeAlias = "Literal['bool', 'int', 'str', 'strings'] | tuple[str, ...] | Mapping[str, Shape]"
"""Shape of a property: a JSON type, its allowed words, or its members."""

_SYSCTLS: Mapping[str, Shape] = {
    "netCoreSomaxconn": "int",
    "netCoreNetdevMaxBacklog": "int",
    "netCoreRmemDefault": "int",
    "netCoreRmemMax": "int",
    "netCoreWmemDefault": "int",
    "netCoreWmemMax": "int",
    "netCoreOptmemMax": "int",
    "netIpv4TcpMaxSynBacklog": "int",
    "netIpv4TcpMaxTwBuckets": "int",
    "netIpv4TcpFinTimeout": "int",
    "netIpv4TcpKeepaliveTime": "int",
    "netIpv4TcpKeepaliveProbes": "int",
    "netIpv4TcpkeepaliveIntvl": "int",
    "netIpv4TcpTwReuse": "bool",
    "netIpv4IpLocalPortRange": "str",
    "netIpv4NeighDefaultGcThresh1": "int",
    "netIpv4NeighDefaultGcThresh2": "int",
    "netIpv4NeighDefaultGcThresh3": "int",
    "netNetfilterNfConntrackMax": "int",
    "netNetfilterNfConntrackBuckets": "int",
    "fsInotifyMaxUserWatches": "int",
    "fsFileMax": "int",
    "fsAioMaxNr": "int",
    "fsNrOpen": "int",
    "kernelThreadsMax": "int",
    "vmMaxMapCount": "int",
    "vmSwappiness": "int",
    "vmVfsCachePressure": "int",
}

NATIVE: Mapping[str, Shape] = {
    "kubeletDiskType": ("OS", "Temporary"),
    "vnetSubnetID": "str",
    "podSubnetID": "str",
    "scaleDownMode": ("Delete", "Deallocate"),
    "upgradeSettings": {
        "drainTimeoutInMinutes": "int",
        "nodeSoakDurationInMinutes": "int",
        "undrainableNodeBehavior": ("Cordon", "Schedule"),
    },
    "enableNodePublicIP": "bool",
    "nodePublicIPPrefixID": "str",
    "scaleSetEvictionPolicy": ("Delete", "Deallocate"),
    "proximityPlacementGroupID": "str",
    "kubeletConfig": {
        "cpuManagerPolicy": ("none", "static"),
        "cpuCfsQuota": "bool",
        "cpuCfsQuotaPeriod": "str",
        "imageGcHighThreshold": "int",
        "imageGcLowThreshold": "int",
        "topologyManagerPolicy": ("none", "best-effort", "restricted", "single-numa-node"),
        "allowedUnsafeSysctls": "strings",
        "failSwapOn": "bool",
        "containerLogMaxSizeMB": "int",
        "containerLogMaxFiles": "int",
        "podMaxPids": "int",
    },
    "linuxOSConfig": {
        "sysctls": _SYSCTLS,
        "transparentHugePageEnabled": ("always", "madvise", "never"),
        "transparentHugePageDefrag": ("always", "defer", "defer+madvise", "madvise", "never"),
        "swapFileSizeMB": "int",
    },
    "enableEncryptionAtHost": "bool",
    "enableUltraSSD": "bool",
    "enableFIPS": "bool",
    "creationData": {"sourceResourceId": "str"},
    "hostGroupID": "str",
    "securityProfile": {
        "enableVTPM": "bool",
        "enableSecureBoot": "bool",
        "sshAccess": ("LocalUser", "Disabled", "EntraId"),
    },
}
"""Fields of `aks:`. Each has a row in `updates.NATIVE_ROWS`; ranges and formats of values are in `limits.LIMITS`."""

_SET: Mapping[str, str] = managed_members(BINDINGS)
MANAGED: Mapping[str, str] = {
    "enableAutoScaling": "nodes.autoscaling",
    "gpuProfile": "driver.owner or devicePlugin.owner",
    **{name: field for name, field in _SET.items() if "." not in name},
}
"""Properties that gpukube sets itself -> field of the spec to use instead."""

MANAGED_MEMBERS: Mapping[str, str] = {name: field for name, field in _SET.items() if "." in name}
"""The same for single members of properties; members that are new in the SDK are not listed."""

REFUSED: Mapping[str, str] = {
    "osType": "GPU pools of gpukube are Linux: on Windows there is no MIG and no device-plugin chart",
    "type": "GPU pools are scale sets: zones, Spot and autoscaling need VirtualMachineScaleSets",
    "mode": "GPU pools are User pools: a System pool cannot scale to zero and restricts taints",
    "nodeImageVersion": "writing another node image than the live one starts a rollback",
    "powerState": "gpukube neither stops nor starts pools",
    "eTag": "the service writes it",
    "currentOrchestratorVersion": "the service writes it",
    "provisioningState": "the service writes it",
    "status": "the service writes it",
    "virtualMachineNodesStatus": "it applies to pools of type VirtualMachines only",
    "virtualMachinesProfile": "it applies to pools of type VirtualMachines only",
    "windowsProfile": "it applies to Windows pools only",
    "gatewayProfile": "it applies to gateway pools only",
    "workloadRuntime": "GPU pools run OCI containers, the default",
}
"""Properties that a GPU pool of gpukube cannot have -> why."""

UNTESTED = ("messageOfTheDay", "podIPAllocationMode", "networkProfile", "artifactStreamingProfile", "localDNSProfile")
"""Properties without documentation of a change; they have no row in the table of updates and are rejected."""

_JSON_TYPES: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "str": (str, "a string"),
    "strings": (list, "a list of strings"),
}


def check_native(target: Target) -> list[Finding]:
    """Check that the `aks:` fields of a pool are known, not set by gpukube, and of the right shape and range."""
    found: list[Finding] = []
    for name, value in target.native.items():
        path = f"aks.{name}"
        if name in NATIVE:
            found += _check_shape(path, value, NATIVE[name], target.locator)
        else:
            found.append(_refusal(name, target))
    return found


def _refusal(name: str, target: Target) -> Finding:
    where = target.locator.at(f"aks.{name}")
    if name in MANAGED:
        return _managed(f"aks.{name}", MANAGED[name], where)
    if name in REFUSED or name in UNTESTED:
        why = REFUSED.get(name, "the effect of a later change on the nodes is not documented")
        return Finding("aks-native-refused", where, f"aks.{name} cannot be set", fix="remove it", why=why)
    message = f'an agent pool has no property "{name}"'
    return Finding("aks-native-unknown", where, message, fix=_nearest(name, NATIVE, MANAGED))


def _managed(path: str, field: str, where: Where) -> Finding:
    return Finding("aks-native-managed", where, f"{path} is set by gpukube itself", fix=f"write {field} instead")


def _check_shape(path: str, value: object, shape: Shape, locator: Locator) -> Iterator[Finding]:
    if isinstance(shape, Mapping):
        yield from _check_members(path, value, shape, locator)
    elif isinstance(shape, tuple):
        if value not in shape:
            meant = nearest(str(value), shape)
            fix = did_you_mean(meant) if meant else f"write {choices(shape)}"
            message = f"{path} is {_shown(value)}, which is not one of its values"
            yield Finding("aks-native-value", locator.at(path), message, fix=fix)
    elif not _fits(value, shape):
        message = f"{path} is {_shown(value)}; expected {_JSON_TYPES[shape][1]}"
        yield Finding("aks-native-value", locator.at(path), message, fix=_rewrite(value, shape))
    elif (limit := LIMITS.get(path.removeprefix("aks."))) and not limit.allows(value):
        message = f"{path} is {_shown(value)}, which AKS does not accept"
        yield Finding("aks-native-value", locator.at(path), message, fix=f"write {limit.expected}", why=limit.source)


def _check_members(path: str, value: object, shape: Mapping[str, Shape], locator: Locator) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        message = f"{path} is {_shown(value)}; expected a mapping"
        fix = f"write a mapping with {_some(shape, 5)}"
        yield Finding("aks-native-value", locator.at(path), message, fix=fix)
        return
    fields = _members_of(MANAGED_MEMBERS, path.removeprefix("aks."))
    for name, member in value.items():
        inner = f"{path}.{name}"
        if name in shape:
            yield from _check_shape(inner, member, shape[name], locator)
        elif name in fields:
            yield _managed(inner, fields[name], locator.at(inner))
        else:
            fix = _nearest(str(name), shape, fields)
            yield Finding("aks-native-unknown", locator.at(inner), f'{path} has no property "{name}"', fix=fix)


def _fits(value: object, shape: str) -> bool:
    expected = _JSON_TYPES[shape][0]
    if expected is int and isinstance(value, bool):
        return False
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return False
    return isinstance(value, expected)


def _members_of(table: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the rows of a table below a path, by the name that is left: "upgradeSettings" -> {"maxSurge": ...}."""
    return {name.removeprefix(f"{path}."): field for name, field in table.items() if name.startswith(f"{path}.")}


def _nearest(name: str, known: Mapping[str, Shape], fields: Mapping[str, str]) -> str:
    """Return a fix with the most similar name, or the field of the spec that replaces it."""
    near = get_close_matches(name, (*known, *fields), n=1, cutoff=0.6)
    return did_you_mean(fields.get(near[0], near[0])) if near else f"write {_some(known, 12)}"


def _some(known: Mapping[str, Shape], most: int) -> str:
    """Return a list of the choices, cut after `most`."""
    names = sorted(known)
    more = f" ({len(names) - most} more in Azure's agentPools reference)" if len(names) > most else ""
    return f"one of {', '.join(names[:most])}{more}" if len(names) > 1 else names[0]


def _rewrite(value: object, shape: str) -> str:
    """Return a fix, with the value itself if only its quotes are wrong."""
    if shape == "str" and isinstance(value, (int, float)):
        return f'write "{json.dumps(value)}", in quotes'
    unquoted = {"int": str.isdecimal, "bool": ("true", "false").__contains__}.get(shape)
    if isinstance(value, str) and unquoted is not None and unquoted(value):
        return f"write {value}, without quotes"
    return f"write {_JSON_TYPES[shape][1]}"


def _shown(value: object) -> str:
    """Return a value in YAML's spelling: true and null, not True and None."""
    return f'"{value}"' if isinstance(value, str) else json.dumps(value, default=str)


def flatten_native(properties: Mapping[str, object]) -> dict[FieldPath, object]:
    """Flatten native properties to comparable fields, aks.upgradeSettings.drainTimeoutInMinutes and the like.

    Lists become tuples. ARM ids become lower case, since ARM ignores case.
    """
    found = leaves({name: value for name, value in properties.items() if name in NATIVE})
    return {
        FieldPath("aks", *path): _comparable(value)
        for path, value in found
        if value not in (None, {}) and ".".join(path) not in MANAGED_MEMBERS
    }


def _comparable(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str) and value.lower().startswith("/subscriptions/"):
        return value.lower()
    return value
