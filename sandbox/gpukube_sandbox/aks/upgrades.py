"""Versions of a pool, and how its machines are replaced: requested version, running version, batch size.

In scope: parsing versions and upgradeSettings, and rejecting upgrades. Out of scope: replacing the machines
(`lifecycle`).

Source: docstring of AgentPool.orchestratorVersion (azure-mgmt-containerservice 41.8.0), docs:
aks/upgrade-aks-node-pools-rolling, docs: aks/manage-node-pools.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import aks_error, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.kube.draining import Blocked

_LATEST_PATCH = 5
"""Latest patch of every minor version except the control plane's; the service has no rule for which patches exist."""
_MAX_NODES = 1000
_TARGET = "agentPoolProfile.upgradeSettings"
_AMOUNT = re.compile(r"\d{1,4}|(100|\d{1,2})%")
_NONE = ("0", "0%")
_NOT_ON_SPOT = {
    # Azure/bicep#14517, jenkins-infra/azure#730
    "maxSurge": (
        "agentPoolProfile.upgrade.maxSurge",
        "Spot pools can't set max surge. Please see https://aka.ms/aks-naming-rules for more details.",
    ),
    # hashicorp/terraform-provider-azurerm#31129
    "maxUnavailable": ("agentPoolProfile.upgradeSettings.maxUnavailable", "Spot pools can't set maxUnavailable."),
}
_DRAIN_MINUTES = 30
_MINUTES = {"drainTimeoutInMinutes": (5, 1440), "nodeSoakDurationInMinutes": (0, 30)}


@dataclass(frozen=True, slots=True)
class Surge:
    """Machines that an upgrade adds, and machines that may be unavailable, at a time; one is at least 1."""

    extra: int
    missing: int


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Drain timeout of a machine, and whether an undrainable one stays cordoned while the others continue."""

    drain_s: float
    quarantines: bool


def running_version(requested: str, plane: str, present: str = "") -> str:
    """Resolve the requested version to the one that runs.

    Args:
        requested: "1.34.2", "1.34" for its latest patch, "" for the control plane's.
        plane: Version of the control plane.
        present: The pool's running version; a request for its minor version changes nothing.
    """
    if not requested:
        return present or plane
    if requested.count(".") > 1:
        return requested
    known = (version for version in (present, plane) if version.startswith(f"{requested}."))
    return next(known, f"{requested}.{_LATEST_PATCH}")


def is_rolled(before: Json, after: Json) -> bool:
    """Return whether every machine is replaced: an upgrade, or a profile that needs a reimage.

    Source: docs: aks/node-disruption-policy, node pool-level operations.
    """
    return is_upgraded(before, after) or any(part(before) != part(after) for part in (_local_dns, _streams))


def is_upgraded(before: Json, after: Json) -> bool:
    """Return whether the machines get a new image, or another kubelet version."""
    keys = ("nodeImageVersion", "currentOrchestratorVersion")
    return any(before.get(key) != after.get(key) for key in keys)


def _local_dns(pool: Json) -> Json:
    profile = pool.get("localDNSProfile")
    return {key: value for key, value in profile.items() if key != "state"} if isinstance(profile, dict) else {}


def _streams(pool: Json) -> bool:
    profile = pool.get("artifactStreamingProfile")
    return isinstance(profile, dict) and profile.get("enabled") is True


def check_upgrade(before: Json, after: Json) -> None:
    """Reject upgrades that AKS does not perform.

    Raises:
        ArmError: 400; all three messages and the code of the first two are unconfirmed. For older versions (docs:
            aks/upgrade-aks-cluster), another count at the same time (docs: aks/manage-node-pools; for one PUT this is
            the strict interpretation), and more nodes than a pool can have while surging (release notes of 2026-08-07).
    """
    old, new = (str(pool["currentOrchestratorVersion"]) for pool in (before, after))
    if _numbers(new) < _numbers(old):
        message = f"Downgrading agent pool from version {old} to {new} is not allowed."
        raise aks_error("OperationNotAllowed", message, target="agentPoolProfile.orchestratorVersion")
    if not is_upgraded(before, after):
        return
    if before["count"] != after["count"] and not after.get("enableAutoScaling"):
        message = "Upgrading and scaling an agent pool at the same time is not allowed."
        raise aks_error("OperationNotAllowed", message, target="agentPoolProfile.count")
    count = int(str(after["count"]))
    if count + surge_of(after, count).extra > _MAX_NODES:
        message = f"Upgrading with maxSurge would exceed {_MAX_NODES} nodes."
        raise aks_error("InvalidParameter", message, target="agentPoolProfile.upgradeSettings.maxSurge")


def check_settings(pool: Json) -> None:
    """Reject invalid upgradeSettings.

    Raises:
        ArmError: 400; the messages are unconfirmed. Forms: docs: aks/upgrade-aks-node-pools-rolling, as are the ranges
            of drain and soak, and that one of the two numbers must be above 0; on System pools no node may be
            unavailable.
    """
    settings = pool.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    if pool["scaleSetPriority"] == "Spot":
        for key, (place, text) in _NOT_ON_SPOT.items():
            if str(given.get(key) or "0") not in _NONE:
                message = f"The value of parameter {place} is invalid. Error details: {text}"
                raise bad_parameter(message, place)
        return
    for key in ("maxSurge", "maxUnavailable"):
        if key in given and not _AMOUNT.fullmatch(str(given[key])):
            message = f"{key} was '{given[key]}'. It must be a number of nodes or a percentage, such as 1 or 33%."
            raise bad_parameter(message, f"{_TARGET}.{key}")
    for key, (low, high) in _MINUTES.items():
        value = given.get(key)
        if isinstance(value, int) and not low <= value <= high:
            raise bad_parameter(f"{key} was {value}. It must be between {low} and {high}.", f"{_TARGET}.{key}")
    if str(given.get("maxSurge", "10%")) in _NONE and str(given.get("maxUnavailable", "0")) in _NONE:
        raise bad_parameter("maxSurge and maxUnavailable cannot both be 0.", f"{_TARGET}.maxSurge")
    if pool["mode"] == "System" and str(given.get("maxUnavailable", "0")) not in _NONE:
        raise bad_parameter("maxUnavailable cannot be set on System agent pools.", f"{_TARGET}.maxUnavailable")


def check_single_method(sent: Json) -> None:
    """Reject a new pool whose upgrades would both add nodes and make some unavailable.

    The service's response to an update that does so is unconfirmed; it is not rejected here.

    Raises:
        ArmError: 400 (Azure/AKS#4277: one of the two, until a preview feature is registered; message unconfirmed).
    """
    settings = sent.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    if all(str(given.get(key) or "0") not in _NONE for key in ("maxSurge", "maxUnavailable")):
        target = f"{_TARGET}.maxUnavailable"
        raise bad_parameter(f"{target} can only be set when maxSurge is 0.", target)


def surge_of(pool: Json, count: int) -> Surge:
    """Parse upgradeSettings for a pool of `count` machines; percentages are rounded up."""
    settings = pool.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    extra, missing = (_share(given.get(key), count) for key in ("maxSurge", "maxUnavailable"))
    return Surge(extra, missing) if extra or missing else Surge(1, 0)


def drain_settings(pool: Json) -> DrainSettings:
    """Parse the drain settings; 30 minutes and no continuing by default (SDK, AgentPoolUpgradeSettings)."""
    settings = pool.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    minutes = int(str(given.get("drainTimeoutInMinutes") or _DRAIN_MINUTES))
    return DrainSettings(minutes * 60.0, given.get("undrainableNodeBehavior") == "Cordon")


def drain_error(left: Sequence[Blocked]) -> Json:
    """Return the error of an upgrade that pods blocked (Azure/AKS#4783, cloudnative-pg/cloudnative-pg#7346)."""
    first = left[0]
    name = first.pod.partition("/")[2]
    budget = re.search(r"The disruption budget (\S+)", first.reason)
    debug = f" PDB debug info: {first.pod} blocked by pdb {budget[1]}." if budget else ""
    message = (
        f"Drain node {first.node} failed when evicting pod {name} failed with Too Many Requests error. This is often "
        "caused by a restrictive Pod Disruption Budget (PDB) policy. See http://aka.ms/aks/debugdrainfailures. "
        f"Original error: {first.reason or 'the pod did not end in time'}.{debug}"
    )
    return {"code": "UpgradeFailed", "message": message}


def _share(value: object, count: int) -> int:
    text = str(value or "0")
    if text.endswith("%"):
        return -(-count * int(text[:-1]) // 100)
    return int(text)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
