"""The native fields of a GKE node pool: which ones a spec may set, and their shapes.

In scope: that table, the checks of the spec's `gke:` fields against it, merging them into a request. Out of scope: the
effect of a change (`updates`).

Names and shapes are those of google.container.v1 (google-cloud-container 2.67.0, messages NodePool and NodeConfig); a
test sets each of them in the real message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpukube.core.binding import managed_members
from gpukube.core.fields import FieldPath
from gpukube.errors import Finding
from gpukube.spec.wording import choices, did_you_mean, nearest
from gpukube_gke.pool.fields import BINDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where

Leaf: TypeAlias = (
    "Literal['bool', 'int', 'str', 'scopes', 'tags', 'seconds', 'range', 'key', 'networks', 'disks'] | tuple[str, ...]"
)
"""The type of a field: a JSON type, a string format, a list of strings or messages, or its enum values."""

NATIVE: Mapping[str, Leaf] = {
    "management.autoUpgrade": "bool",
    "management.autoRepair": "bool",
    "upgradeSettings.strategy": ("SURGE", "BLUE_GREEN", "SHORT_LIVED"),
    "autoscaling.locationPolicy": ("BALANCED", "ANY"),
    "networkConfig.createPodRange": "bool",
    "networkConfig.podRange": "str",
    "networkConfig.podIpv4CidrBlock": "range",
    "networkConfig.enablePrivateNodes": "bool",
    "networkConfig.additionalNodeNetworkConfigs": "networks",
    "networkConfig.acceleratorNetworkProfile": ("auto",),
    "nodeDrainConfig.respectPdbDuringNodePoolDeletion": "bool",
    "nodeDrainConfig.pdbTimeoutDuration": "seconds",
    "nodeDrainConfig.graceTerminationDuration": "seconds",
    "placementPolicy.type": ("COMPACT",),
    "placementPolicy.policyName": "str",
    "bestEffortProvisioning.enabled": "bool",
    "bestEffortProvisioning.minProvisionNodes": "int",
    "config.serviceAccount": "str",
    "config.oauthScopes": "scopes",
    "config.minCpuPlatform": "str",
    "config.workloadMetadataConfig.mode": ("GCE_METADATA", "GKE_METADATA"),
    "config.gcfsConfig.enabled": "bool",
    "config.loggingConfig.variantConfig.variant": ("DEFAULT", "MAX_THROUGHPUT"),
    "config.advancedMachineFeatures.threadsPerCore": "int",
    "config.secondaryBootDisks": "disks",
    "config.gvnic.enabled": "bool",
    "config.fastSocket.enabled": "bool",
    "config.maxRunDuration": "seconds",
    "config.reservationAffinity.consumeReservationType": (
        "NO_RESERVATION",
        "ANY_RESERVATION",
        "SPECIFIC_RESERVATION",
        "ANY_RESERVATION_THEN_FAIL",
    ),
    "config.ephemeralStorageLocalSsdConfig.localSsdCount": "int",
    "config.localNvmeSsdBlockConfig.localSsdCount": "int",
    "config.shieldedInstanceConfig.enableSecureBoot": "bool",
    "config.shieldedInstanceConfig.enableIntegrityMonitoring": "bool",
    "config.gpuDirectConfig.gpuDirectStrategy": ("RDMA",),
    "config.tags": "tags",
    "config.bootDiskKmsKey": "key",
    "config.taintConfig.architectureTaintBehavior": ("NONE", "ARM"),
    "config.consolidationDelay": "seconds",
}
"""Fields allowed in `gke:`, by path. Each has a row in `updates.NATIVE_ROWS`."""

_ACCELERATORS: Final = "config.accelerators"
MANAGED: Mapping[str, str] = {
    "name": "names.gke",
    "autoscaling.enabled": "nodes.autoscaling",
    "autoscaling.minNodeCount": "nodes.autoscaling.min with scope: zone",
    "autoscaling.maxNodeCount": "nodes.autoscaling.max with scope: zone",
    "config.accelerators.acceleratorType": "gpu.model",
    "config.accelerators.acceleratorCount": "gpu.count",
    "queuedProvisioning.enabled": "capacity.type: reserved and capacity.reserved.gke.queued",
    "config.flexStart": "capacity.type: reserved and capacity.reserved.gke.flexStart",
    "config.reservationAffinity.key": "capacity.type: reserved and capacity.reserved.gke.reservation",
    "config.reservationAffinity.values": "capacity.type: reserved and capacity.reserved.gke.reservation",
    "config.preemptible": "capacity.type: spot",
    "config.bootDisk": "disk",
    **managed_members(BINDINGS),
}
"""Fields that gpukube sets -> the field of the spec to write instead."""

_NO_ROW = "the effect of a later change on the pool is not known"
REFUSED: Mapping[str, str] = {
    "selfLink": "read-only",
    "status": "read-only",
    "statusMessage": "read-only",
    "conditions": "read-only",
    "etag": "read-only",
    "instanceGroupUrls": "read-only",
    "podIpv4CidrSize": "read-only",
    "updateInfo": "read-only",
    "autoscaling.autoprovisioned": "the autoscaler creates and deletes such pools",
    "kubeletCertInfo": "read-only",
    "maintenancePolicy": _NO_ROW,
    "placementPolicy.tpuTopology": "it is for TPUs",
    "upgradeSettings.blueGreenSettings": _NO_ROW,
    "management.upgradeOptions": "read-only",
    "networkConfig.podIpv4RangeUtilization": "read-only",
    "networkConfig.subnetwork": "read-only",
    "networkConfig.networkPerformanceConfig": _NO_ROW,
    "networkConfig.podCidrOverprovisionConfig": _NO_ROW,
    "networkConfig.additionalPodNetworkConfigs": _NO_ROW,
    "networkConfig.networkTierConfig": _NO_ROW,
    "config.windowsNodeConfig": "GPU pools of gpukube are Linux",
    "config.effectiveCgroupMode": "read-only",
    "config.ephemeralStorageLocalSsdConfig.dataCacheCount": _NO_ROW,
    "config.sandboxConfig": "GKE Sandbox is not supported on GPU pools here",
    "config.localSsdCount": "config.ephemeralStorageLocalSsdConfig and config.localNvmeSsdBlockConfig replace it",
    **{
        f"config.{name}": _NO_ROW
        for name in (
            "metadata",
            "nodeImageConfig",
            "nodeGroup",
            "linuxNodeConfig",
            "kubeletConfig",
            "advancedMachineFeatures.enableNestedVirtualization",
            "advancedMachineFeatures.performanceMonitoringUnit",
            "confidentialNodes",
            "soleTenantConfig",
            "containerdConfig",
            "resourceManagerTags",
            "enableConfidentialStorage",
            "secondaryBootDiskUpdateStrategy",
            "storagePools",
            "localSsdEncryptionMode",
        )
    },
}
"""Fields that gpukube does not allow -> why. Every field of the messages is in one of the three tables."""

_MEMBERS: Mapping[str, Mapping[str, Leaf]] = {
    "networks": {"network": "str", "subnetwork": "str"},
    "disks": {"diskImage": "str", "mode": ("CONTAINER_IMAGE_CACHE",)},
}
"""Messages in a list -> their members, all required."""
_MOST: Final = 2**31 - 1
_JSON_TYPES: Mapping[str, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number, 0 or more"),
    "str": (str, "a string"),
    "scopes": (list, "a list of full scope URLs, ending in /auth/cloud-platform or similar"),
    "tags": (list, "a list of lower-case letters, digits, and -, starting with a letter, at most 63 characters each"),
    "seconds": (str, "seconds, such as 600s"),
    "range": (str, "an address range, such as 10.96.0.0/14, or a range size, such as /21"),
    "key": (str, "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"),
}
_FORMS: Mapping[str, re.Pattern[str]] = {
    "scopes": re.compile(r"https://www\.googleapis\.com/auth/\S+"),
    "tags": re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"),
    "seconds": re.compile(r"0s|[1-9]\d{0,10}s"),
    "range": re.compile(r"(\d{1,3}(\.\d{1,3}){3})?/([89]|[12]\d|3[0-2])|"),
    "key": re.compile(r"projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+"),
}
"""Forms of texts and of items of lists, as the comments of the messages name them.

Durations use GKE's own unit; any other would differ from the live value forever.
"""
_KNOWN: Mapping[str, object] = {**NATIVE, **MANAGED, **REFUSED}
_MESSAGES = frozenset(
    path[: dot.start()] for path in _KNOWN for dot in re.finditer(r"\.", path)
) - _KNOWN.keys()  # fmt: skip


def check_native(target: Target) -> list[Finding]:
    """Check the `gke:` fields of a pool: known, not set by gpukube, of the right shape."""
    found = _written(target.native)
    return [finding for path, value, place in found for finding in _check(path, value, target.locator.at(place))]


def _written(native: Mapping[str, object]) -> list[tuple[str, object, str]]:
    """Yield path, value, and spec path of every field; keys with special characters are quoted."""
    return list(_walk("", native, "gke"))


def _walk(prefix: str, members: Mapping[str, object], place: str) -> Iterator[tuple[str, object, str]]:
    """Descend into known messages; the one accelerator of a pool counts as a message."""
    for name, value in members.items():
        path, here = f"{prefix}{name}", f"{place}.{name}" if name.isalnum() else f"{place}[{json.dumps(name)}]"
        is_list = path == _ACCELERATORS and isinstance(value, list) and len(value) == 1
        inner = value[0] if is_list and isinstance(value, list) else value
        if isinstance(inner, Mapping) and path in _MESSAGES:
            yield from _walk(f"{path}.", inner, f"{here}[0]" if is_list else here)
        else:
            yield path, value, here


def _check(path: str, value: object, where: Where) -> Iterator[Finding]:
    shown = f"gke.{path}"
    if path in MANAGED:
        fix = f"write {MANAGED[path]} instead"
        yield Finding("gke-native-managed", where, f"{shown} is set by gpukube", fix=fix)
    elif path in REFUSED:
        yield Finding("gke-native-refused", where, f"{shown} cannot be set", fix="remove it", why=REFUSED[path])
    elif path in _MESSAGES:
        message = f"{shown} is {_shown(value)}; expected a mapping"
        inner = "a list with one mapping" if path == _ACCELERATORS else "a mapping"
        yield Finding("gke-native-value", where, message, fix=f"write {inner}")
    elif path not in NATIVE:
        near = get_close_matches(path, {*_KNOWN, *_MESSAGES} - REFUSED.keys(), n=1, cutoff=0.7)
        yield Finding(
            "gke-native-unknown",
            where,
            f'a node pool has no field "{path}" that gpukube knows',
            fix=did_you_mean(MANAGED.get(near[0], f"gke.{near[0]}")) if near else "remove it",
        )
    elif fix := _wrong(value, NATIVE[path]):
        message = f"{shown} is {_shown(value)}, which is not a valid value"
        yield Finding("gke-native-value", where, message, fix=fix)


def _wrong(value: object, leaf: Leaf) -> str:
    """Return the fix for a value; "" if it is valid."""
    if isinstance(leaf, tuple):
        meant = nearest(str(value), leaf)
        return "" if value in leaf else did_you_mean(meant) if meant else f"write {choices(leaf)}"
    if leaf in _MEMBERS:
        return _wrong_items(value, _MEMBERS[leaf])
    expected, words = _JSON_TYPES[leaf]
    fix = f"write {words}"
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        return fix
    if isinstance(value, int):
        return "" if 0 <= value <= _MOST else fix
    texts = value if isinstance(value, list) else [value]
    fits = all(isinstance(text, str) and (leaf == "str" or _FORMS[leaf].fullmatch(text)) for text in texts)
    return "" if fits else fix


def _wrong_items(value: object, members: Mapping[str, Leaf]) -> str:
    fits = isinstance(value, list) and all(_is_item(item, members) for item in value)
    shape = ", ".join(f"{name}: {leaf[0] if isinstance(leaf, tuple) else 'NAME'}" for name, leaf in members.items())
    return "" if fits else f"write a list of {{{shape}}}"


def _is_item(item: object, members: Mapping[str, Leaf]) -> bool:
    if not isinstance(item, Mapping) or item.keys() != members.keys():
        return False
    return not any(_wrong(item[name], leaf) for name, leaf in members.items())


def _shown(value: object) -> str:
    return json.dumps(value)


def flatten_native(pool: Mapping[str, object], *, live: bool = False) -> dict[FieldPath, object]:
    """Flatten native fields to comparable ones, gke.config.gvnic.enabled and the like.

    Args:
        pool: Native fields of a spec, or a whole pool as read.
        live: Whether it was read from GKE: proto3 omits false, zero, and empty, so an absent flag means false and an
            absent number 0.
    """
    found = {path: _comparable(value, NATIVE[path]) for path, value, _ in _written(pool) if path in NATIVE}
    if live:
        empty: Mapping[str, object] = {"bool": False, "int": 0}
        for path, leaf in NATIVE.items():
            if isinstance(leaf, str) and leaf in empty:
                found.setdefault(path, empty[leaf])
    return {native_path(path): value for path, value in found.items()}


def native_path(name: str) -> FieldPath:
    """Return the comparable field path of a native field such as "config.gvnic.enabled"."""
    return FieldPath("gke", *name.split("."))


def _comparable(value: object, leaf: Leaf) -> object:
    """64-bit numbers are strings on the wire."""
    if leaf == "int" and isinstance(value, str):
        return int(value)
    return tuple(value) if isinstance(value, list) else value
