"""Versions of a pool, and how its machines are rolled: what is asked for, what runs, how many at a time.

In scope: reading versions and upgradeSettings, and the refusals of an upgrade. Out of scope: the rolling itself
(`lifecycle`).

Source: docstring of AgentPool.orchestratorVersion (azure-mgmt-containerservice 41.8.0), docs:
aks/upgrade-aks-node-pools-rolling, docs: aks/manage-node-pools.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import bad_parameter, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.kube.draining import Blocked

_LATEST_PATCH = 5
"""Of every minor version but the control plane's; which patches exist at a time is no rule of the service."""
_MOST_NODES = 1000
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
    """How many machines come before others go, and how many may be missing meanwhile; at least one of them."""

    extra: int
    missing: int


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """How long a machine may take to drain, and whether one that does not is set apart while the others go on."""

    drain_s: float
    quarantines: bool


def running_version(asked: str, plane: str, present: str = "") -> str:
    """Resolve the version of the request to the one that runs.

    Args:
        asked: "1.34.2", "1.34" for its latest patch, "" for the control plane's.
        plane: Version of the control plane.
        present: What the pool runs; asking for its minor version changes nothing.
    """
    if not asked:
        return present or plane
    if asked.count(".") > 1:
        return asked
    known = (version for version in (present, plane) if version.startswith(f"{asked}."))
    return next(known, f"{asked}.{_LATEST_PATCH}")


def is_rolled(before: Json, after: Json) -> bool:
    """Whether every machine is made anew: another image, or another version of the kubelet."""
    keys = ("nodeImageVersion", "currentOrchestratorVersion")
    return any(before.get(key) != after.get(key) for key in keys)


def check_upgrade(before: Json, after: Json) -> None:
    """Refuse what AKS does not roll.

    Raises:
        Refusal: 400; all three sentences and the code of the first two are unconfirmed. Older versions (docs:
            aks/upgrade-aks-cluster), another count at the same time (docs: aks/manage-node-pools; of one PUT this is
            the strict reading), more nodes than a pool can have while surging (release notes of 2026-08-07).
    """
    old, new = (str(pool["currentOrchestratorVersion"]) for pool in (before, after))
    if _numbers(new) < _numbers(old):
        message = f"Downgrading agent pool from version {old} to {new} is not allowed."
        raise refuse("OperationNotAllowed", message, target="agentPoolProfile.orchestratorVersion")
    if not is_rolled(before, after):
        return
    if before["count"] != after["count"] and not after.get("enableAutoScaling"):
        message = "Upgrading and scaling an agent pool at the same time is not allowed."
        raise refuse("OperationNotAllowed", message, target="agentPoolProfile.count")
    count = int(str(after["count"]))
    if count + surge_of(after, count).extra > _MOST_NODES:
        message = f"Upgrading with maxSurge would exceed {_MOST_NODES} nodes."
        raise refuse("InvalidParameter", message, target="agentPoolProfile.upgradeSettings.maxSurge")


def check_settings(pool: Json) -> None:
    """Refuse upgradeSettings that no upgrade could go by.

    Raises:
        Refusal: 400; the sentences are unconfirmed. Forms: docs: aks/upgrade-aks-node-pools-rolling, as the ranges of
            drain and soak, and that one of the two numbers must be above 0; on System pools nothing may be missing.
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
    for key, (least, most) in _MINUTES.items():
        value = given.get(key)
        if isinstance(value, int) and not least <= value <= most:
            raise bad_parameter(f"{key} was {value}. It must be between {least} and {most}.", f"{_TARGET}.{key}")
    if str(given.get("maxSurge", "10%")) in _NONE and str(given.get("maxUnavailable", "0")) in _NONE:
        raise bad_parameter("maxSurge and maxUnavailable cannot both be 0.", f"{_TARGET}.maxSurge")
    if pool["mode"] == "System" and str(given.get("maxUnavailable", "0")) not in _NONE:
        raise bad_parameter("maxUnavailable cannot be set on System agent pools.", f"{_TARGET}.maxUnavailable")


def check_one_of_both(sent: Json) -> None:
    """Refuse a new pool in which an upgrade both adds nodes and leaves some out.

    What the service says of an update to that is unconfirmed, and is not refused here.

    Raises:
        Refusal: 400 (Azure/AKS#4277: one of the two, until a preview feature is registered; sentence unconfirmed).
    """
    settings = sent.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    if all(str(given.get(key) or "0") not in _NONE for key in ("maxSurge", "maxUnavailable")):
        target = f"{_TARGET}.maxUnavailable"
        raise bad_parameter(f"{target} can only be set when maxSurge is 0.", target)


def surge_of(pool: Json, count: int) -> Surge:
    """Read upgradeSettings for a pool of so many machines; percentages are rounded up."""
    settings = pool.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    extra, missing = (_share(given.get(key), count) for key in ("maxSurge", "maxUnavailable"))
    return Surge(extra, missing) if extra or missing else Surge(1, 0)


def drain_settings(pool: Json) -> DrainSettings:
    """Read what upgradeSettings say of drains; 30 minutes, and no going on (SDK, AgentPoolUpgradeSettings)."""
    settings = pool.get("upgradeSettings")
    given = settings if isinstance(settings, dict) else {}
    minutes = int(str(given.get("drainTimeoutInMinutes") or _DRAIN_MINUTES))
    return DrainSettings(minutes * 60.0, given.get("undrainableNodeBehavior") == "Cordon")


def undrained(left: Sequence[Blocked]) -> Json:
    """The error of an upgrade that pods held up (Azure/AKS#4783, cloudnative-pg/cloudnative-pg#7346)."""
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
