"""Native members of an EKS node group by API name: which ones the spec may set, and their types.

In scope: the table, checking the spec's `eks:` fields against it, merging them into a request. Out of scope: the effect
of changing a member (`updates`).

Names, types, and bounds: botocore 1.44.5, eks/2017-11-01 CreateNodegroupRequest; a test compares them with the
installed model. botocore checks neither upper bounds nor enums, so this module does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpukube.core.binding import managed_members
from gpukube.core.fields import MAX_SURGE, MAX_UNAVAILABLE, FieldPath
from gpukube.errors import Finding
from gpukube.spec.wording import choices, did_you_mean, nearest
from gpukube_eks.pool.fields import BINDINGS
from gpukube_eks.pool.upgrades import is_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of at least 1, and at most `most` unless that is 0."""

    most: int = 0


Leaf: TypeAlias = "Literal['bool', 'str', 'strings', 'overrides'] | Number | tuple[str, ...]"
"""Type of a member: a JSON type with its bounds, or its allowed values."""

NATIVE: Final[Mapping[str, Leaf]] = {
    "subnets": "strings",
    "nodeRole": "str",
    "releaseVersion": "str",
    "updateConfig.maxUnavailable": Number(100),
    "updateConfig.maxUnavailablePercentage": Number(100),
    "updateConfig.updateStrategy": ("DEFAULT", "MINIMAL"),
    "nodeRepairConfig.enabled": "bool",
    "nodeRepairConfig.maxUnhealthyNodeThresholdCount": Number(),
    "nodeRepairConfig.maxUnhealthyNodeThresholdPercentage": Number(100),
    "nodeRepairConfig.maxParallelNodesRepairedCount": Number(),
    "nodeRepairConfig.maxParallelNodesRepairedPercentage": Number(100),
    "nodeRepairConfig.nodeRepairConfigOverrides": "overrides",
}
"""Members of CreateNodegroup allowed in `eks:`, by path. Each has a row in `updates`, under its field (`field_of`). The
maximum of maxUnavailable is only in the documentation of botocore eks NodegroupUpdateConfig."""

LAUNCH: Final[Mapping[str, Leaf]] = {
    "imageId": "str",
    "keyName": "str",
    "securityGroups": "strings",
    "ebsOptimized": "bool",
    "monitoring.enabled": "bool",
    "metadataOptions.httpTokens": ("optional", "required"),
    "metadataOptions.httpPutResponseHopLimit": Number(64),
    "metadataOptions.instanceMetadataTags": ("disabled", "enabled"),
}
"""Members of the launch template allowed in `eks:` (`launch`, `network`); the maximum of the hop limit is only in the
documentation of botocore ec2 LaunchTemplateInstanceMetadataOptionsRequest."""
_ALLOWED: Final = {**NATIVE, **LAUNCH}

_FIELDS: Final[Mapping[str, FieldPath]] = {
    "updateConfig.maxUnavailable": MAX_UNAVAILABLE,
    "updateConfig.maxUnavailablePercentage": MAX_UNAVAILABLE,
    "updateConfig.updateStrategy": MAX_SURGE,
}
"""Members that also have portable fields in the spec (`upgrades`)."""

MANAGED: Final[Mapping[str, str]] = {
    "clusterName": "clusters.*.name",
    "nodegroupName": "names.eks",
    **managed_members(BINDINGS),
}
"""Members that gpukube sets -> the spec field to write instead."""

REFUSED: Final[Mapping[str, str]] = {
    "launchTemplate": "every pool has gpukube's own launch template",
    "remoteAccess": "EKS accepts it only on node groups without a launch template",
    "clientRequestToken": "each attempt has its own",
    "warmPoolConfig": "gpukube does not know the cost and devices of stopped GPU machines",
}
"""Members that gpukube does not support -> why."""

EXCLUSIVE: Final = (
    ("updateConfig.maxUnavailable", "updateConfig.maxUnavailablePercentage"),
    ("nodeRepairConfig.maxUnhealthyNodeThresholdCount", "nodeRepairConfig.maxUnhealthyNodeThresholdPercentage"),
    ("nodeRepairConfig.maxParallelNodesRepairedCount", "nodeRepairConfig.maxParallelNodesRepairedPercentage"),
)
"""Mutually exclusive members (botocore eks NodegroupUpdateConfig, NodeRepairConfig)."""

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")
_SUBNET: Final = re.compile(r"subnet-[0-9a-f]{8,17}")
_SECURITY_GROUP: Final = re.compile(r"sg-[0-9a-f]{8,17}")
_AMI: Final = re.compile(r"ami-[0-9a-f]{8,17}")
_NAME: Final = re.compile(r"[ -~]{1,255}")  # docs: AWSEC2/APIReference CreateKeyPair
_FORMS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "nodeRole": (_ROLE, "the ARN of a role, such as arn:aws:iam::111122223333:role/NAME"),
    "subnets": (_SUBNET, "a list of subnet ids, such as [subnet-0123456789abcdef0]"),
    "securityGroups": (_SECURITY_GROUP, "a list of security group ids, such as [sg-0123456789abcdef0]"),
    "imageId": (_AMI, "the id of an AMI, such as ami-0123456789abcdef0"),
    "keyName": (_NAME, "the name of an EC2 key pair"),
}
OVERRIDE: Final[Mapping[str, Leaf]] = {
    "nodeMonitoringCondition": "str",
    "nodeUnhealthyReason": "str",
    "minRepairWaitTimeMins": Number(),
    "repairAction": ("Replace", "Reboot", "NoAction"),
}
"""Members allowed in an item of nodeRepairConfigOverrides."""
_OVERRIDES: Final = "nodeRepairConfig.nodeRepairConfigOverrides"
_WORDS: Final[Mapping[str, str]] = {
    "bool": "true or false",
    "str": "a string",
    "strings": "a list of strings",
    "overrides": f"a list of mappings with {', '.join(OVERRIDE)}",
}
_STRUCTURES: Final = frozenset(path.partition(".")[0] for path in _ALLOWED if "." in path)


def field_of(path: str) -> FieldPath:
    """Return the comparable field of a native member: eks.nodeRole, upgrade.maxUnavailable."""
    return _FIELDS.get(path) or FieldPath("eks", *path.split("."))


def check_native(target: Target) -> list[Finding]:
    """Check the `eks:` fields of a pool: known, not set by gpukube, of the right type."""
    found = [finding for path, value in _walk("", target.native) for finding in _check(path, value, target)]
    return [*found, *_excluded(target), *_set_twice(target)]


def _excluded(target: Target) -> Iterator[Finding]:
    given = {path for path, _ in _walk("", target.native)}
    for first, second in EXCLUSIVE:
        if {first, second} <= given:
            message = f"eks.{first} and eks.{second} exclude each other"
            yield Finding("eks-native-value", target.locator.at(f"eks.{second}"), message, fix="keep one of them")


def _set_twice(target: Target) -> Iterator[Finding]:
    if is_set(target.upgrade) and "updateConfig" in target.native:
        where, message = target.locator.at("eks.updateConfig"), "eks.updateConfig and upgrade are the same setting"
        yield Finding("eks-native-managed", where, message, fix="keep upgrade only")


def flatten_native(group: Mapping[str, object]) -> dict[FieldPath, object]:
    """Flatten native members of a spec or a live group: eks.nodeRepairConfig.enabled and so on."""
    return {
        field_of(path): _comparable(path, value)
        for path, value in _walk("", group)
        if path in _ALLOWED and path not in _FIELDS and value is not None
    }


def _walk(prefix: str, members: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in members.items():
        path = f"{prefix}{name}"
        if path in _STRUCTURES and isinstance(value, Mapping):
            yield from _walk(f"{path}.", value)
        else:
            yield path, value


def _comparable(path: str, value: object) -> object:
    if path in ("subnets", "securityGroups") and isinstance(value, list | tuple):
        return tuple(sorted(str(one) for one in value))
    return json.dumps(value, sort_keys=True) if isinstance(value, list) else value


def _check(path: str, value: object, target: Target) -> Iterator[Finding]:
    where, shown = target.locator.at(f"eks.{path}"), f"eks.{path}"
    if path in MANAGED:
        fix = f"write {MANAGED[path]} instead"
        yield Finding("eks-native-managed", where, f"{shown} is set by gpukube itself", fix=fix)
    elif path in REFUSED:
        yield Finding("eks-native-refused", where, f"{shown} cannot be set", fix="remove it", why=REFUSED[path])
    elif path in _STRUCTURES:
        message = f"{shown} is {json.dumps(value)}; expected a mapping"
        inner = ", ".join(known.partition(".")[2] for known in _ALLOWED if known.startswith(f"{path}."))
        yield Finding("eks-native-value", where, message, fix=f"write a mapping with {inner}")
    elif path not in _ALLOWED:
        near = get_close_matches(path, {*_ALLOWED, *_STRUCTURES}, n=1, cutoff=0.7)
        yield Finding(
            "eks-native-unknown",
            where,
            f'a node group has no member "{path}"',
            fix=did_you_mean(f"eks.{near[0]}") if near else "remove it",
        )
    elif path == _OVERRIDES and isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
        yield from _check_overrides(value, target)
    elif fix := _wrong(_ALLOWED[path], _FORMS.get(path), value):
        message = f"{shown} is {json.dumps(value)}, which is not a valid value"
        yield Finding("eks-native-value", where, message, fix=fix)


def _check_overrides(items: list[Mapping[str, object]], target: Target) -> Iterator[Finding]:
    for index, item in enumerate(items):
        for name, value in item.items():
            shown = f"eks.{_OVERRIDES}[{index}].{name}"
            if name not in OVERRIDE:
                near = get_close_matches(name, OVERRIDE, n=1, cutoff=0.7)
                fix, message = did_you_mean(near[0]) if near else "remove it", f'a repair has no member "{name}"'
                yield Finding("eks-native-unknown", target.locator.at(shown), message, fix=fix)
            elif fix := _wrong(OVERRIDE[name], None, value):
                message = f"{shown} is {json.dumps(value)}, which is not a valid value"
                yield Finding("eks-native-value", target.locator.at(shown), message, fix=fix)


def _wrong(leaf: Leaf, form: tuple[re.Pattern[str], str] | None, value: object) -> str:
    """Return the fix for a value; "" if it is valid."""
    pattern, words = form or (None, "")
    if not _fits(value, leaf):
        return f"write {words}" if words else _rewrite(value, leaf)
    texts = value if isinstance(value, list) else [value]
    return f"write {words}" if pattern and not all(pattern.fullmatch(str(text)) for text in texts) else ""


def _rewrite(value: object, leaf: Leaf) -> str:
    if isinstance(leaf, Number):
        return f"write a whole number from 1 to {leaf.most}" if leaf.most else "write a whole number of 1 or more"
    if isinstance(leaf, tuple):
        meant = nearest(str(value), leaf)
        return did_you_mean(meant) if meant else f"write {choices(leaf)}"
    return f"write {_WORDS[leaf]}"


def _fits(value: object, leaf: Leaf) -> bool:
    if isinstance(leaf, tuple):
        return value in leaf
    if isinstance(leaf, Number):
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        return is_number and not (leaf.most and int(str(value)) > leaf.most)
    if leaf == "strings":
        return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
    if leaf == "overrides":  # a list of mappings; its items are checked separately
        return False
    return isinstance(value, bool if leaf == "bool" else str)
