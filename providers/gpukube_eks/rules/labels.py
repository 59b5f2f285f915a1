"""Rules for labels, taints, and tags: what EKS rejects or misreads.

In scope: pure checks from a target to diagnostics, listed in `KEY_CHECKS`. Out of scope: Kubernetes' syntax of labels
and taints (`gpukube.spec`).

If EKS accepts something that cannot work (a label that the kubelet rejects), the rule is gpukube's, and its `why` says
so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import COPY_TAGS
from gpukube.core.resolve import promise_of
from gpukube.errors import Finding
from gpukube_eks.pool.fields import RESOURCE_TAG
from gpukube_eks.pool.marks import FORM
from gpukube_eks.pool.template import CLUSTER_TAG, GROUP_TAG
from gpukube_eks.pool.translate import resource_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where

_LONGEST: Final = 63  # botocore eks/2017-11-01 labelKey, labelValue, taintKey, taintValue
_MOST_TAINTS: Final = 50  # docs: eks/node-taints-managed-node-groups
_MOST_TAGS: Final = 50  # docs: eks/eks-using-tags; includes gpukube's own, a launch template has fewer
_TAG_KEY, _TAG_VALUE = 128, 256
_TAG_TEXT: Final = re.compile(r"[\w +\-=.:/@]*")
_AUTOSCALER: Final = "k8s.io/cluster-autoscaler/"
_VENDOR: Final = "nvidia.com/"
_TAGS_FROM: Final = 28
"""Minor version of the first cluster autoscaler that reads node group tags (kubernetes/autoscaler, aws_manager.go:
commits b4cadfb4e2 and 3ab6ead79d are in 1.28.0)."""


def _at(target: Target, mapping: str, key: str) -> Where:
    return target.locator.at(f"{mapping}[{json.dumps(key)}]")


def _labels(target: Target) -> Iterator[Finding]:
    for key, value in target.labels.items():
        where = _at(target, "labels", key)
        if reason := _key_reason(key):
            fix = f"choose a short prefix, such as example.com/{key.rpartition('/')[2][:40]}"
            yield Finding("eks-label", where, f'EKS rejects the label "{key}"', fix=fix, why=reason)
        elif _within(key, *_KUBELETS_OWN):
            yield _once_refused("eks-label", where, f'the label "{key}"')
        if not value and not reason:
            message, fix = f'the label "{key}" has no value', 'add a value, such as "true"'
            yield Finding(
                "eks-label-value",
                where,
                message,
                fix=fix,
                why="EKS accepts labels of 1 to 63 characters (botocore eks)",
            )


_KUBELETS_OWN: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
"""Prefixes under kubernetes.io that a kubelet may set on its node (kubernetes/kubernetes, kubeletLabelNamespaces)."""


def _within(key: str, *domains: str) -> bool:
    prefix = key.rpartition("/")[0]
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _once_refused(code: str, where: Where, what: str) -> Finding:
    return Finding(
        code,
        where,
        f"EKS may reject {what}",
        fix="choose your own prefix, such as example.com/NAME, if it does",
        why="it used to reject every prefix with kubernetes.io (aws/containers-roadmap#1451) and now accepts "
        "subdomains (terraform-aws-modules/terraform-aws-eks#3346); this one is unconfirmed",
        severity="warning",
    )


_RESERVED: Final = (
    "EKS reserves kubernetes.io and k8s.io, and the kubelet does not start with labels of their subdomains "
    "(aws/containers-roadmap#1451, terraform-aws-modules/terraform-aws-eks#3346)"
)


def _key_reason(key: str, *, label: bool = True) -> str:
    prefix = key.rpartition("/")[0]
    if prefix in ("kubernetes.io", "k8s.io"):
        return _RESERVED
    if label and _within(key, "kubernetes.io", "k8s.io") and not _within(key, *_KUBELETS_OWN):
        return _RESERVED
    if prefix == "eks.amazonaws.com":
        return "EKS sets the labels under eks.amazonaws.com itself (aws/containers-roadmap#1451)"
    if len(key) > _LONGEST:
        return f"it has {len(key)} characters; EKS allows {_LONGEST}, including the prefix (botocore eks)"
    return ""


_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


def _taints(target: Target) -> Iterator[Finding]:
    if not any(taint.effect in _KEEPS_AWAY for taint in target.taints):
        yield Finding(
            "eks-untainted",
            target.locator.at("gpuTaint"),
            "no taint keeps pods without GPUs away: they fill the nodes and keep the autoscaler from removing them",
            fix="remove gpuTaint, or add a taint with effect NoSchedule",
            why="EKS taints no GPU nodes (docs.aws.amazon.com/eks/latest/userguide/node-taints-managed-node-groups)",
            severity="hint",
        )
    for index, taint in enumerate(target.taints):
        # The GPU taint is first and never wrong, so the spec's own taints start one position later.
        where = target.locator.at(f"taints[{index - 1 if target.gpu_taint else index}]")
        if reason := _key_reason(taint.key, label=False):
            fix = "choose a short prefix, such as example.com/NAME"
            yield Finding("eks-taint", where, f'EKS rejects the taint "{taint.key}"', fix=fix, why=reason)
        elif _within(taint.key, "kubernetes.io", "k8s.io"):
            yield _once_refused("eks-taint", where, f'the taint "{taint.key}"')
        if not taint.value and target.nodes.autoscaled and target.nodes.minimum == 0:
            yield Finding(
                "eks-taint-value",
                where,
                f'the autoscaler ignores the taint "{taint.key}" while the pool is empty, because it has no value',
                fix="write min: 1; or add a value to the taint and to the tolerations of its pods",
                why="in an empty group it sees only taints with a value, and starts nodes for pods that do not "
                "tolerate the others (kubernetes/autoscaler, cloudprovider/aws/aws_wrapper.go)",
                severity="warning",
            )
    if len(target.taints) > _MOST_TAINTS:
        message = f"there are {len(target.taints)} taints, more than a node group can have"
        yield Finding("eks-taint-count", target.locator.at("taints"), message, fix=f"write at most {_MOST_TAINTS}")


def _tags(target: Target) -> Iterator[Finding]:
    for key, value in target.tags.items():
        if reason := _tag_reason(key, value):
            message = f'EKS rejects the tag "{key}"'
            fix = "write a key of 1 to 128 and a value of at most 256 letters, digits, spaces and + - = . _ : / @"
            yield Finding("eks-tag", _at(target, "tags", key), message, fix=fix, why=reason)
        elif key in (CLUSTER_TAG, GROUP_TAG) or FORM.is_own(key):
            message = f'gpukube itself sets the tag "{key}"'
            why = "the tags under gpukube.io/ are a copy of the pool's gpukube.io labels"
            yield Finding("eks-tag", _at(target, "tags", key), message, fix="choose another key", why=why)
    own = len(COPY_TAGS) + len(resource_tags(target, promise_of(target)).keys() - target.tags.keys())
    if len(target.tags) > _MOST_TAGS - own:
        message = f"there are {len(target.tags)} tags, more than a node group can have"
        fix = f"write at most {_MOST_TAGS - own}; {own} more are gpukube's own"
        yield Finding("eks-tag-count", target.locator.at("tags"), message, fix=fix)


def _tag_reason(key: str, value: str) -> str:
    if key.lower().startswith("aws:"):
        return "aws: is reserved for AWS's own tags (botocore eks TagMap)"
    if not 1 <= len(key) <= _TAG_KEY or len(value) > _TAG_VALUE:
        return f"a key has 1 to {_TAG_KEY} characters, a value at most {_TAG_VALUE} (botocore eks TagMap)"
    if not (_TAG_TEXT.fullmatch(key) and _TAG_TEXT.fullmatch(value)):
        return "it has a character that EKS does not allow in tags (botocore eks TagMap)"
    return ""


def _autoscaler_tags(target: Target) -> Iterator[Finding]:
    """Check tags for the autoscaler: of a node group's tags, it reads only those for resources."""
    for key, value in target.tags.items():
        name = key.removeprefix(RESOURCE_TAG)
        if name != key and name.startswith(_VENDOR):
            yield from _device_tag(target, key, name, value)
        elif name == key and key.startswith(_AUTOSCALER):
            yield Finding(
                "eks-asg-tag",
                _at(target, "tags", key),
                f'the autoscaler does not read the tag "{key}" of a node group',
                fix="remove it: EKS tags the Auto Scaling group, and the autoscaler reads labels and taints from EKS",
                why="EKS does not copy tags to the Auto Scaling group (aws/containers-roadmap#608)",
                severity="warning",
            )


def _device_tag(target: Target, key: str, name: str, value: str) -> Iterator[Finding]:
    shown = promise_of(target).per_node
    if value == str(shown.get(name)):
        return
    has = ", ".join(f"{count} {device}" for device, count in shown.items())
    yield Finding(
        "eks-resource-tag",
        _at(target, "tags", key),
        f"the tag promises the autoscaler {value} {name} per node, but the nodes advertise {has}",
        fix="remove it: gpukube writes the right tag where the autoscaler needs it",
        why="such a tag takes precedence in the autoscaler (kubernetes/autoscaler#8799)",
        severity="warning",
    )


def _autoscaler_version(target: Target) -> Iterator[Finding]:
    minor = target.kubernetes_version.split(".")[1:2]
    old = bool(minor) and int(minor[0]) < _TAGS_FROM
    if old and target.nodes.minimum == 0 and (reported := resource_tags(target, promise_of(target))):
        names = ", ".join(key.removeprefix(RESOURCE_TAG) for key in reported)
        yield Finding(
            "eks-autoscaler-version",
            target.locator.at("kubernetesVersion"),
            f"a {target.kubernetes_version} autoscaler does not know about {names} while the pool is empty",
            fix=f"upgrade the cluster to 1.{_TAGS_FROM}, or write min: 1",
            why="it reads node group tags only from 1.28 on (kubernetes/autoscaler, cloudprovider/aws/aws_manager.go)",
            severity="warning",
        )


KEY_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _labels,
    _taints,
    _tags,
    _autoscaler_tags,
    _autoscaler_version,
)
