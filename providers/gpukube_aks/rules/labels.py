"""Checks labels, taints, and tags that AKS or Azure reject, or write themselves.

In scope: pure checks of their keys and values. Out of scope: Kubernetes' syntax
(`gpukube.spec.rules`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import COPY_TAGS
from gpukube.errors import Finding
from gpukube_aks.pool.marks import FORM, MAX_TAGS, TAGS_IN_ALL, copy_tags
from gpukube_aks.pool.translate import SPOT_KEY, SPOT_TAINT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target
    from gpukube.errors import Where

SYSTEM_PREFIX: Final = "kubernetes.azure.com"
"""Prefix of labels and taints that AKS reserves (docs: aks/use-labels)."""

_KUBERNETES_LABELS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io", "node-role.kubernetes.io")
_OWN_LABELS: Final[Mapping[str, str]] = {
    "agentpool": "AKS writes agentpool itself (hashicorp/terraform-provider-azurerm#28636)",
    "node.kubernetes.io/instance-type": "AKS writes the VM size there (learn.microsoft.com/azure/aks/use-labels)",
}
_LEGACY_LABELS: Final = ("accelerator", "storageprofile", "storagetier")
"""Old names that AKS still writes in addition to those under its prefix (docs: aks/use-labels, aks/use-nvidia-gpu)."""
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
_DRIVER_TAGS: Final[Mapping[str, str]] = {
    "skipgpudriverinstall": "AKS refuses the old skip tag since 2025-08-14 (Azure/AKS#4925)",
    "enablemanagedgpuexperience": "AKS reads it from the machine's tags when a node starts (Azure/AgentBaker)",
}
_TAG_NAME, _TAG_VALUE = 512, 256
_TAG_FORBIDS: Final = re.compile(r"[<>%&\\?/]")
_AZURE_TAGS: Final = ("microsoft", "azure", "windows")
_TAG_DOCS: Final = "docs: azure-resource-manager/management/tag-resources"


def check_labels(target: Target) -> Iterator[Finding]:
    """Report labels that AKS rejects, or overwrites with its own."""
    for key, value in target.labels.items():
        where = _at(target, "labels", key)
        prefix, _, name = key.rpartition("/")
        if target.capacity.type == "spot" and (key, value) == (SPOT_KEY, SPOT_TAINT.value):
            yield _own_mark(where, f'the label "{key}"')
        elif reason := _label_reason(key, prefix):
            fix = f"choose a prefix of your own, such as example.com/{name}"
            yield Finding("aks-label", where, f'AKS refuses the label "{key}"', fix=fix, why=reason)
        elif key in _LEGACY_LABELS:
            yield Finding(
                "aks-label-overwritten",
                where,
                f'AKS writes the label "{key}" itself',
                fix=f"remove it; pods can select kubernetes.azure.com/{key}",
                why="it is an old name of an AKS label (learn.microsoft.com/azure/aks/use-labels)",
                severity="warning",
            )


def _own_mark(where: Where, what: str) -> Finding:
    """Warn about the label or taint of Spot nodes: azurerm's examples set them, without any effect."""
    return Finding(
        "aks-spot-mark",
        where,
        f"AKS adds {what} to Spot nodes itself",
        fix="remove it; gpukube does not send it",
        why="docs: aks/spot-node-pool",
        severity="warning",
    )


def _label_reason(key: str, prefix: str) -> str:
    if _within(prefix, SYSTEM_PREFIX):
        return "kubernetes.azure.com/ is reserved for the labels of AKS (learn.microsoft.com/azure/aks/use-labels)"
    if (_within(prefix, "kubernetes.io") or _within(prefix, "k8s.io")) and prefix not in _KUBERNETES_LABELS:
        return "under kubernetes.io and k8s.io only kubelet., node. and node-role. are allowed (Azure/AKS#2866)"
    return _OWN_LABELS.get(key, "")


def check_taints(target: Target) -> Iterator[Finding]:
    """Report taints that AKS rejects or the autoscaler cannot read, and GPU nodes without any."""
    if target.capacity.type != "spot" and not any(taint.effect in _KEEPS_AWAY for taint in target.taints):
        yield Finding(
            "aks-untainted",
            target.locator.at("gpuTaint"),
            "no taint keeps pods without GPUs away: they fill the nodes and keep the autoscaler from removing them",
            fix="remove gpuTaint, or add a taint with effect NoSchedule",
            why="AKS taints Spot nodes only (learn.microsoft.com/azure/aks/best-practices-gpu)",
            severity="hint",
        )
    keys = [taint.key for taint in target.taints]
    for index, taint in enumerate(target.taints):
        # The GPU taint comes first and is always valid; the spec's taints follow it.
        where = target.locator.at(f"taints[{index - 1 if target.gpu_taint else index}]")
        if not taint.value:
            yield Finding(
                "aks-taint-value",
                where,
                f'the taint "{taint.key}" has no value',
                fix='add one, such as value: "true"',
                why="az and the cluster autoscaler accept key=value:Effect only",
            )
        if target.capacity.type == "spot" and taint == SPOT_TAINT:
            yield _own_mark(where, f'the taint "{taint.key}"')
        elif _within(taint.key.rpartition("/")[0], SYSTEM_PREFIX):
            message = f'AKS refuses the taint "{taint.key}"'
            why = "kubernetes.azure.com/ is reserved for the taints of AKS; AKS taints Spot pools itself"
            fix = "remove it, or choose a prefix of your own, such as example.com/NAME"
            yield Finding("aks-taint", where, message, fix=fix, why=why)
        if taint.key in keys[:index]:
            message = f'two taints have the key "{taint.key}"'
            fix = "keep one of them" + (
                ", or write gpuTaint: false" if target.gpu_taint and taint.key == keys[0] else ""
            )
            yield Finding("aks-taint-twice", where, message, fix=fix, why="AKS refuses it (Azure/AKS#1412)")


def check_tags(target: Target) -> Iterator[Finding]:
    """Report tags that affect the driver, that Azure rejects, or that Azure considers the same."""
    seen: dict[str, str] = {}
    for key, value in target.tags.items():
        where, folded = _at(target, "tags", key), key.casefold()
        if why := _DRIVER_TAGS.get(folded):
            message = f'the tag "{key}" changes the GPU driver independently of the spec'
            fix = "remove it; driver.owner and devicePlugin.owner decide who installs what"
            yield Finding("aks-tag", where, message, fix=fix, why=why)
        elif FORM.is_own(key):
            message, why = (
                f'the tag "{key}" is written by gpukube',
                "it is part of the copy of the pool's gpukube.io labels",
            )
            yield Finding("aks-tag", where, message, fix="choose another key", why=why)
        elif message := _tag_problem(key, value):
            yield _tag_limit(where, message)
        if other := seen.setdefault(folded, key).removeprefix(key):
            why = "Azure ignores case in tag names (learn.microsoft.com/azure/aks/use-tags)"
            yield Finding("aks-tag-twice", where, f'"{key}" and "{other}" are the same tag', fix="keep one", why=why)
    yield from _check_all_tags(target)


def _tag_problem(key: str, value: str) -> str:
    short = f"{key[:20]}..." if len(key) > 20 else key  # noqa: PLR2004 - for readability
    if found := _TAG_FORBIDS.search(key):
        return f'the name of the tag "{short}" contains "{found[0]}"'
    if key.casefold().startswith(_AZURE_TAGS):
        return f'the name of the tag "{short}" begins with one of {", ".join(_AZURE_TAGS)}, which Azure reserves'
    if len(key) > _TAG_NAME:
        return f'the name of the tag "{short}" has {len(key)} characters, at most {_TAG_NAME} are allowed'
    if len(value) > _TAG_VALUE:
        return f'the value of the tag "{short}" has {len(value)} characters, at most {_TAG_VALUE} are allowed'
    return ""


def _check_all_tags(target: Target) -> Iterator[Finding]:
    size, own = (sum(len(key) + len(value) for key, value in tags.items()) for tags in (target.tags, copy_tags(target)))
    most = MAX_TAGS - len(COPY_TAGS)
    if len(target.tags) > most:
        message = f"there are {len(target.tags)} tags, more than {most}; {len(COPY_TAGS)} are gpukube's own"
        yield _tag_limit(target.locator.at("tags"), message)
    elif size + own > TAGS_IN_ALL:
        message = f"the tags have {size} characters in total, more than {TAGS_IN_ALL - own}; gpukube's own have {own}"
        yield _tag_limit(target.locator.at("tags"), message)


def _tag_limit(where: Where, message: str) -> Finding:
    return Finding("aks-tag-limit", where, message, fix="shorten or change it", why=_TAG_DOCS)


def _at(target: Target, mapping: str, key: str) -> Where:
    return target.locator.at(f"{mapping}[{json.dumps(key)}]")


def _within(prefix: str, domain: str) -> bool:
    return prefix == domain or prefix.endswith(f".{domain}")
