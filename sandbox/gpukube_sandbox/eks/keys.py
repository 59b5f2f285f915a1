"""Labels, taints, and tags of a node group: what EKS accepts, and what the kubelet rejects later.

In scope: those rules. Out of scope: labels of nodes (`machines`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.wire.answers import Json, bad_parameter, objects_in

if TYPE_CHECKING:
    from collections.abc import Mapping

EFFECTS: dict[str, str] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
"""EKS's spelling of taint effects -> Kubernetes' spelling (botocore eks TaintEffect)."""

_RESERVED = ("kubernetes.io/", "k8s.io/", "eks.amazonaws.com/")
_KUBELETS_OWN = ("kubelet.kubernetes.io", "node.kubernetes.io")
_MAX_LENGTH = 63
_MAX_TAINTS = 50
_MAX_TAGS = 50
_TAG_KEY, _TAG_VALUE = 128, 256
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TAG = re.compile(r"[\w\s+\-=._:/@]*")


def labels_of(group: Json) -> dict[str, str]:
    """Return the labels of a node group as a new map."""
    found = group.get("labels")
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def check_labels(labels: Mapping[str, str]) -> None:
    """Reject reserved prefixes, empty or long values, and invalid Kubernetes labels.

    Subdomains of the reserved prefixes pass here and fail at the kubelet (`refused_by_kubelet`).

    Raises:
        AwsError: 400 InvalidParameterException (aws/containers-roadmap#1451, eksctl-io/eksctl#4006 for prefixes;
            lengths: botocore eks labelKey and labelValue; their messages are unconfirmed).
    """
    for key, value in labels.items():
        if key.startswith(_RESERVED):
            raise bad_parameter(f"Label cannot contain reserved prefixes [{', '.join(_RESERVED)}]")
        if not 1 <= len(key) <= _MAX_LENGTH:
            raise bad_parameter(f"Label key {key} must have length between 1 and {_MAX_LENGTH}")
        if not 1 <= len(value) <= _MAX_LENGTH:
            raise bad_parameter(f"Value of label {key} must have length between 1 and {_MAX_LENGTH}")
        if not _is_qualified(key) or not _NAME.fullmatch(value):
            raise bad_parameter(f"Label {key}={value} is not a valid Kubernetes label")


def labels_kubelet_rejects(labels: Mapping[str, str]) -> list[str]:
    """Return the label keys that keep a kubelet from starting (terraform-aws-modules/terraform-aws-eks#3346)."""
    found = []
    for key in labels:
        prefix = key.rpartition("/")[0]
        own = any(prefix == item or prefix.endswith(f".{item}") for item in _KUBELETS_OWN)
        if prefix.endswith((".kubernetes.io", ".k8s.io")) and not own:
            found.append(key)
    return found


def check_taints(taints: object) -> None:
    """Reject more than 50 taints, invalid keys, values, and effects, and duplicates of (key, effect).

    Raises:
        AwsError: 400 InvalidParameterException (botocore eks taintKey, taintValue, TaintEffect; docs:
            eks/node-taints-managed-node-groups; alphagov/govuk-infrastructure#1264 for the prefix; messages
            unconfirmed).
    """
    entries = objects_in(taints)
    if len(entries) > _MAX_TAINTS:
        raise bad_parameter(f"Too many taints: {len(entries)}, at most {_MAX_TAINTS} are allowed")
    seen = set()
    for entry in entries:
        key, value, effect = str(entry.get("key") or ""), str(entry.get("value") or ""), str(entry.get("effect"))
        if effect not in EFFECTS:
            raise bad_parameter(f"Taint effect {effect} is not one of [{', '.join(EFFECTS)}]")
        if key.startswith(_RESERVED):
            raise bad_parameter(f"Taint key cannot contain reserved prefixes [{', '.join(_RESERVED)}]")
        if not 1 <= len(key) <= _MAX_LENGTH or not _is_qualified(key):
            raise bad_parameter(f"Taint key {key} is not a valid Kubernetes taint key of 1 to {_MAX_LENGTH} characters")
        if len(value) > _MAX_LENGTH or (value and not _NAME.fullmatch(value)):
            raise bad_parameter(f"Value {value} of taint {key} is not a valid Kubernetes taint value")
        if (key, effect) in seen:
            raise bad_parameter(f"Taint {key} with effect {effect} is given more than once")
        seen.add((key, effect))


def check_tags(tags: Mapping[str, object]) -> None:
    """Reject more than 50 tags, long or reserved keys, and characters that tags cannot contain.

    Raises:
        AwsError: 400 InvalidParameterException (botocore eks TagMap; messages unconfirmed).
    """
    if len(tags) > _MAX_TAGS:
        raise bad_parameter(f"Too many tags: {len(tags)}, at most {_MAX_TAGS} are allowed")
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            raise bad_parameter(f"Tag key {key} begins with the reserved prefix aws:")
        if not 1 <= len(key) <= _TAG_KEY or not isinstance(value, str) or len(value) > _TAG_VALUE:
            raise bad_parameter(
                f"Tag {key} is too long: keys have 1 to {_TAG_KEY} characters, values 0 to {_TAG_VALUE}"
            )
        if not _TAG.fullmatch(key) or not _TAG.fullmatch(value):
            raise bad_parameter(f"Tag {key} has characters other than letters, digits, space and + - = . _ : / @")


def _is_qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not slash or bool(_PREFIX.fullmatch(prefix)))
