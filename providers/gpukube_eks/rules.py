"""What EKS refuses, found before any call: names, limits, combinations.

Lives here: pure checks from a target to diagnostics, one function per subject, listed in `_CHECKS`. Must not live
here: what holds on every cloud (`gpukube.spec.rules`, `gpukube.gpu`), the shapes of native members (`native`).

Where the service itself would take something that cannot work (a label that the kubelet refuses), the rule is ours and
its `why` says so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.errors import Diagnostic
from gpukube_eks.ami import SYSTEMS, family_of, find_image
from gpukube_eks.bottlerocket import MIG_MODELS, is_profile
from gpukube_eks.native import check_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where

__all__ = ["check_target"]

_NAME: Final = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}")  # docs: eks/create-managed-node-group
_USUAL_NODES: Final = 450  # Service Quotas L-BD136A63, nodes per managed node group
_LEAST_DISK_GIB: Final = 20  # cilium/cilium#43051: smaller than the snapshot of AL2023
_DISK_TYPES: Final = ("gp3", "gp2")
_LONGEST: Final = 63  # botocore eks/2017-11-01 labelKey, labelValue, taintKey, taintValue
_MOST_TAINTS: Final = 50  # docs: eks/node-taints-managed-node-groups
_MOST_TAGS: Final = 46  # AWS takes 50 on a resource, and a launch template has four marks of ours
_TAG_KEY, _TAG_VALUE = 128, 256
_TAG_TEXT: Final = re.compile(r"[\w +\-=.:/@]*")
_DRIVER_595: Final = frozenset({"g7"})
"""Families whose GPUs need a newer driver than the images have (awslabs/amazon-eks-ami, doc/usage/g7-ami.md)."""


def check_target(target: Target) -> list[Diagnostic]:
    """Find everything that EKS would refuse, or take and never make work; empty when all is well."""
    return [finding for check in _CHECKS for finding in check(target)] + check_native(target)


def _at(target: Target, mapping: str, key: str) -> Where:
    return target.locator.at(f"{mapping}[{json.dumps(key)}]")


def _name(target: Target) -> Iterator[Diagnostic]:
    if not _NAME.fullmatch(target.name):
        own = target.name != target.pool
        yield Diagnostic(
            "eks-name",
            target.locator.at("names.eks" if own else "name"),
            f'"{target.name}" is not an EKS node group name',
            fix="write 1 to 63 letters, digits, hyphens and underscores, a letter or digit first"
            + ("" if own else ", or add names: {eks: NAME}"),
        )


def _nodes(target: Target) -> Iterator[Diagnostic]:
    if target.nodes.maximum > _USUAL_NODES:
        path = "nodes.autoscaling.max" if target.nodes.autoscaled else "nodes.count"
        yield Diagnostic(
            "eks-node-count",
            target.locator.at(path),
            f"{path} is {target.nodes.maximum}; an account may have {_USUAL_NODES} nodes in a node group at first",
            fix="split the pool, or raise the quota L-BD136A63 of eks in Service Quotas",
            severity="warning",
        )
    if target.nodes.maximum == 0:
        yield Diagnostic(
            "eks-no-nodes",
            target.locator.at("nodes.count"),
            "nodes.count is 0, and the largest size of a node group is 1 at least",
            fix="write autoscaling: {min: 0, max: N}, or take the pool out of the spec",
            why="EKS lets every autoscaler of the cluster find the group: one pending pod starts a node",
            severity="warning",
        )


def _zones(target: Target) -> Iterator[Diagnostic]:
    region = target.cluster.identity["region"]
    for index, zone in enumerate(target.zones):
        if not zone.startswith(region) or zone == region:
            says = f'"{zone}" is not a zone of {region}'
            fix = f"write zones with the region before the letter, such as {region}a"
            yield Diagnostic("eks-zone", target.locator.at(f"zones[{index}]"), says, fix=fix)
    if target.zones and "subnets" in target.native:
        yield Diagnostic(
            "eks-zones-and-subnets",
            target.locator.at("eks.subnets"),
            "zones and eks.subnets both say where the pool goes",
            fix="keep one of them",
        )


def _image(target: Target) -> Iterator[Diagnostic]:
    where, image, machine = target.locator.at("image"), target.image, target.machine
    if image and image not in SYSTEMS:
        says = f'EKS has no image family "{image}" with the NVIDIA driver that gpukube knows'
        yield Diagnostic("eks-image", where, says, fix=f"write {' or '.join(SYSTEMS)}, or leave image out")
    elif family_of(machine.name) in _DRIVER_595:
        yield Diagnostic(
            "eks-image-machine",
            target.locator.at("instanceType"),
            f"no image of EKS drives the GPUs of {machine.name}",
            fix="choose another instance type",
            why="they need driver 595, and the images carry 580 (awslabs/amazon-eks-ami, g7-ami)",
        )
    elif find_image(image, machine) is None:
        yield Diagnostic(
            "eks-image-machine",
            where,
            f"{image or 'al2023'} with the NVIDIA driver is not made for {machine.name}",
            fix="choose another instance type" + (", or image: al2023" if find_image("", machine) else ""),
            why="EKS refuses other pairs (eksctl-io/eksctl#7754)",
        )


def _disk(target: Target) -> Iterator[Diagnostic]:
    size, kind = target.disk.size_gib, target.disk.type
    if size is not None and size < _LEAST_DISK_GIB:
        says = f"disk.sizeGiB is {size}, less than the image needs"
        fix = f"write {_LEAST_DISK_GIB} or more; 100 leaves room for GPU images"
        yield Diagnostic("eks-disk-size", target.locator.at("disk.sizeGiB"), says, fix=fix)
    if kind is not None and kind not in _DISK_TYPES:
        says = f'disk.type is "{kind}", which gpukube does not make node disks of'
        why = "io1 and io2 need a number of operations too, and st1 and sc1 cannot hold a system (EC2 EbsBlockDevice)"
        fix = f"write {' or '.join(_DISK_TYPES)}"
        yield Diagnostic("eks-disk-type", target.locator.at("disk.type"), says, fix=fix, why=why)


def _bottlerocket(target: Target) -> Iterator[Diagnostic]:
    cut, model = target.sharing.mig, str(target.machine.model)
    if target.image != "bottlerocket" or cut is None:
        return
    where = target.locator.at("sharing.mig.profile")
    if cut.strategy == "mixed":
        yield Diagnostic(
            "eks-bottlerocket-mixed",
            target.locator.at("sharing.mig.strategy"),
            "Bottlerocket shows MIG instances as nvidia.com/gpu only",
            fix="write strategy: single, or image: al2023",
        )
    if model not in MIG_MODELS:
        yield Diagnostic(
            "eks-bottlerocket-mig",
            where,
            f"Bottlerocket has no documented MIG setting for {model}",
            fix="write image: al2023",
            why=f"its setting mig.profile names {', '.join(MIG_MODELS)}",
        )
    elif cut.layout:
        yield Diagnostic(
            "eks-bottlerocket-profile",
            target.locator.at("sharing.mig.layout"),
            "Bottlerocket cuts all GPUs into instances of one profile, and not by a layout",
            fix="write profile in place of layout, or image: al2023",
        )
    elif not is_profile(cut.profile):
        yield Diagnostic(
            "eks-bottlerocket-profile",
            where,
            f'Bottlerocket does not cut to "{cut.profile}"',
            fix="write a plain profile, without +me or +gfx, or image: al2023",
        )


def _bottlerocket_plugin(target: Target) -> Iterator[Diagnostic]:
    if target.image == "bottlerocket" and target.plugin_owner == "none":
        yield Diagnostic(
            "eks-bottlerocket-plugin",
            target.locator.at("devicePlugin.owner"),
            "devicePlugin.owner is none, and Bottlerocket always runs its own device plugin",
            fix="write devicePlugin.owner: auto, or image: al2023",
            why="exactly one component may register nvidia.com/* on a node",
        )


def _spot(target: Target) -> Iterator[Diagnostic]:
    price = target.capacity.max_price
    if price is not None:
        yield Diagnostic(
            "eks-spot-price",
            target.locator.at("capacity.maxPrice"),
            f"capacity.maxPrice is {price:g}, and EKS takes no highest price",
            fix="take maxPrice away",
            why="a node group buys Spot machines at the price of the day; its launch template must not ask for them "
            "(docs: eks/launch-templates)",
        )


def _labels(target: Target) -> Iterator[Diagnostic]:
    for key, value in target.labels.items():
        where = _at(target, "labels", key)
        if reason := _key_reason(key):
            fix = f"choose a short prefix of your own, such as example.com/{key.rpartition('/')[2][:40]}"
            yield Diagnostic("eks-label", where, f'EKS refuses the label "{key}"', fix=fix, why=reason)
        if not value:
            says, fix = f'the label "{key}" has no value', 'write one, such as "true"'
            yield Diagnostic(
                "eks-label-value", where, says, fix=fix, why="EKS takes labels of 1 to 63 characters (botocore eks)"
            )


_RESERVED: Final = (
    "EKS reserves kubernetes.io and k8s.io, and with their sub-domains the kubelet does not start "
    "(aws/containers-roadmap#1451, terraform-aws-modules/terraform-aws-eks#3346)"
)


def _key_reason(key: str) -> str:
    prefix = key.rpartition("/")[0]
    if any(prefix == domain or prefix.endswith(f".{domain}") for domain in ("kubernetes.io", "k8s.io")):
        return _RESERVED
    if prefix == "eks.amazonaws.com":
        return "EKS writes the labels under eks.amazonaws.com itself (aws/containers-roadmap#1451)"
    if len(key) > _LONGEST:
        return f"it has {len(key)} characters, and EKS takes {_LONGEST}, the prefix counted (botocore eks)"
    return ""


def _taints(target: Target) -> Iterator[Diagnostic]:
    for index, taint in enumerate(target.taints):
        # The GPU taint is first and never wrong by itself, so what is written begins one further on.
        where = target.locator.at(f"taints[{index - 1 if target.gpu_taint else index}]")
        if reason := _key_reason(taint.key):
            fix = "choose a short prefix of your own, such as example.com/NAME"
            yield Diagnostic("eks-taint", where, f'EKS refuses the taint "{taint.key}"', fix=fix, why=reason)
        if not taint.value:
            yield Diagnostic(
                "eks-taint-value",
                where,
                f'the taint "{taint.key}" has no value',
                fix='add one, such as value: "true"',
                why="the cluster autoscaler passes over taints without a value, and starts nodes that no pod can use "
                "(kubernetes/autoscaler#6481)",
            )
    if len(target.taints) > _MOST_TAINTS:
        says = f"{len(target.taints)} taints are more than a node group can have"
        yield Diagnostic("eks-taint-count", target.locator.at("taints"), says, fix=f"write at most {_MOST_TAINTS}")


def _tags(target: Target) -> Iterator[Diagnostic]:
    for key, value in target.tags.items():
        if reason := _tag_reason(key, value):
            says = f'EKS refuses the tag "{key}"'
            fix = "write a key of 1 to 128 and a value of at most 256 letters, digits, spaces and + - = . _ : / @"
            yield Diagnostic("eks-tag", _at(target, "tags", key), says, fix=fix, why=reason)
    if len(target.tags) > _MOST_TAGS:
        says = f"{len(target.tags)} tags are more than a node group can have"
        fix = f"write at most {_MOST_TAGS}; four more are gpukube's own"
        yield Diagnostic("eks-tag-count", target.locator.at("tags"), says, fix=fix)


def _tag_reason(key: str, value: str) -> str:
    if key.lower().startswith("aws:"):
        return "aws: is kept for AWS's own tags (botocore eks TagMap)"
    if not 1 <= len(key) <= _TAG_KEY or len(value) > _TAG_VALUE:
        return f"a key has 1 to {_TAG_KEY} characters, a value at most {_TAG_VALUE} (botocore eks TagMap)"
    if not (_TAG_TEXT.fullmatch(key) and _TAG_TEXT.fullmatch(value)):
        return "it holds a character that tags of EKS cannot have (botocore eks TagMap)"
    return ""


def _driver(target: Target) -> Iterator[Diagnostic]:
    if target.driver_owner in ("operator", "none"):
        yield Diagnostic(
            "eks-driver-owner",
            target.locator.at("driver.owner"),
            f'driver.owner "{target.driver_owner}" is not supported on EKS',
            fix="write driver.owner: auto",
            why="the images with GPU support carry the driver, and there is no driver container for Amazon Linux "
            "(NVIDIA/gpu-operator#686)",
        )


_CHECKS: Final[tuple[Callable[[Target], Iterator[Diagnostic]], ...]] = (
    _name,
    _nodes,
    _zones,
    _image,
    _disk,
    _bottlerocket,
    _bottlerocket_plugin,
    _spot,
    _labels,
    _taints,
    _tags,
    _driver,
)
