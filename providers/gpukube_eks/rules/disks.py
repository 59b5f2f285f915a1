"""Rules for node disks: what EC2 rejects, and what it possibly does.

In scope: pure checks from a target to diagnostics, listed in `DISK_CHECKS`. Out of scope: the launch template's members
(`pool.disks`).

Source: botocore ec2 LaunchTemplateEbsBlockDeviceRequest, for all sizes and ranges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_eks.pool.disks import DEFAULT_DISK_GIB, DEFAULT_DISK_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.core.values import Target


@dataclass(frozen=True, slots=True)
class _Kind:
    """A disk type.

    Attributes:
        most_gib: Largest size.
        iops: Range of provisioned IOPS; None if it has none.
        per_gib: Maximum IOPS per GiB.
    """

    most_gib: int
    iops: tuple[int, int] | None = None
    per_gib: int = 0


_KINDS: Final[Mapping[str, _Kind]] = {
    "gp3": _Kind(65_536, (3_000, 80_000), 500),
    "gp2": _Kind(16_384),
    "io2": _Kind(65_536, (100, 256_000), 1_000),
    "io1": _Kind(16_384, (100, 64_000), 50),
}
_NEED_IOPS: Final = ("io1", "io2")
_THROUGHPUT: Final = (125, 2_000)
"""Range of gp3's provisioned MiB/s."""
_FORMER: Final = {"iops": 16_000, "throughput": 1_000}
"""Maximum of gp3 in earlier versions of the API; whether every region has the larger one is unconfirmed."""
_IOPS: Final = 3_000
"""IOPS of gp3 without provisioned ones."""
_IOPS_PER_MIB: Final = 4
"""Least IOPS for each MiB/s of gp3; like IOPS per GiB, unconfirmed by the SDK: only a warning."""
_LEAST_DISK_GIB: Final = 20  # cilium/cilium#43051: smaller than the snapshot of AL2023
_ENOUGH_GIB: Final = 50
"""Disk size below which a few GPU images fill the disk (eksctl-io/eksctl#780, awslabs/kubeflow-manifests#782)."""
_NOT_BOOT: Final = {"st1", "sc1"}
_KEY: Final = re.compile(
    r"alias/[A-Za-z0-9/_-]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}"
    r"|arn:aws[a-z-]*:kms:(?P<region>[a-z0-9-]+):\d{12}:(key|alias)/[A-Za-z0-9/_-]+"
)
"""Key id, alias, or the ARN of either (docs: kms/concepts, key identifiers)."""
_OF_AWS: Final = "alias/aws/"
_RANGES: Final = "botocore ec2 LaunchTemplateEbsBlockDeviceRequest"


def _size(target: Target) -> Iterator[Finding]:
    size, kind = target.disk.size_gib, target.disk.type
    limits = {name: row.most_gib for name, row in _KINDS.items()}
    where = target.locator.at("disk.sizeGiB")
    if size is not None and size < _LEAST_DISK_GIB and target.image != "bottlerocket":
        message = f"disk.sizeGiB is {size}, less than the image needs"
        fix = f"write {_LEAST_DISK_GIB} or more; 100 leaves room for GPU images"
        yield Finding("eks-disk-size", where, message, fix=fix)
    elif size is not None and size > (most := limits.get(kind or "", max(limits.values()))):
        message = f"disk.sizeGiB is {size}, more than the maximum of an EBS volume"
        why = ", ".join(f"{name} has at most {limit:,} GiB" for name, limit in limits.items())
        yield Finding("eks-disk-size", where, message, fix=f"write {most} or less", why=why)
    elif size is not None and size < _ENOUGH_GIB:
        yield Finding(
            "eks-disk-small",
            where,
            f"disk.sizeGiB is {size}, enough for only a few GPU images",
            fix="write 100 or more",
            why="the kubelet evicts pods when images fill the disk (eksctl-io/eksctl#780)",
            severity="warning",
        )
    if kind is not None and size is None:
        message = "disk.type needs disk.sizeGiB"
        fix = "add sizeGiB; 100 leaves room for GPU images"
        why = "EKS's default of 20 GiB is too small for GPU images"
        yield Finding("eks-disk-size", target.locator.at("disk"), message, fix=fix, why=why)


def _type(target: Target) -> Iterator[Finding]:
    kind, where = target.disk.type, target.locator.at("disk.type")
    if kind is not None and kind not in _KINDS:
        message = f'disk.type is "{kind}", which gpukube does not support for node disks'
        why = "st1 and sc1 cannot be boot volumes (EC2 EbsBlockDevice)" if kind in _NOT_BOOT else ""
        *first, last = _KINDS
        yield Finding("eks-disk-type", where, message, fix=f"write {', '.join(first)} or {last}", why=why)
    elif kind in _NEED_IOPS and target.disk.iops is None:
        message = f"disk.type is {kind}, which needs disk.iops"
        yield Finding("eks-disk-type", where, message, fix="add disk.iops, or write gp3", why=_RANGES)


def _performance(target: Target) -> Iterator[Finding]:
    disk, name = target.disk, target.disk.type or DEFAULT_DISK_TYPE
    kind = _KINDS.get(name)
    if kind is None:
        return
    ranges = {"iops": kind.iops, "throughput": _THROUGHPUT if name == "gp3" else None}
    for field, value in (("iops", disk.iops), ("throughput", disk.throughput)):
        where, allowed = target.locator.at(f"disk.{field}"), ranges[field]
        if value is None:
            continue
        if allowed is None:
            other = "gp3" if field == "throughput" else "gp3, io1 or io2"
            message = f"disk.{field} cannot be set for {name}"
            yield Finding("eks-disk-performance", where, message, fix=f"write disk.type: {other}, or remove it")
        elif not allowed[0] <= value <= allowed[1]:
            message = f"disk.{field} is {value}, but {name} has {allowed[0]:,} to {allowed[1]:,}"
            yield Finding("eks-disk-performance", where, message, fix="write a number in this range", why=_RANGES)
        elif name == "gp3" and value > _FORMER[field]:
            yield Finding(
                "eks-disk-limit",
                where,
                f"disk.{field} is {value}; some regions may still have {_FORMER[field]:,} as the maximum of gp3",
                fix="check the limits of gp3 in the region",
                why="no machine starts if EC2 rejects the volume",
                severity="warning",
            )


def _ratios(target: Target) -> Iterator[Finding]:
    disk, name = target.disk, target.disk.type or DEFAULT_DISK_TYPE
    kind, size = _KINDS.get(name), target.disk.size_gib or DEFAULT_DISK_GIB
    why = "no machine starts if EC2 rejects the volume, and AWS has changed these limits before"
    if kind and kind.iops and disk.iops and disk.iops > max(size * kind.per_gib, kind.iops[0]):
        yield Finding(
            "eks-disk-limit",
            target.locator.at("disk.iops"),
            f"disk.iops is {disk.iops}; {name} has at most {kind.per_gib:,} for each GiB, and disk.sizeGiB is {size}",
            fix=f"write {size * kind.per_gib} or less, or {-(-disk.iops // kind.per_gib)} GiB",
            why=why,
            severity="warning",
        )
    iops = disk.iops or _IOPS
    if name == "gp3" and disk.throughput and disk.throughput * _IOPS_PER_MIB > iops:
        yield Finding(
            "eks-disk-limit",
            target.locator.at("disk.throughput"),
            f"disk.throughput is {disk.throughput} MiB/s, but {iops:,} IOPS allow at most {iops // _IOPS_PER_MIB}",
            fix=f"write disk.iops: {disk.throughput * _IOPS_PER_MIB}, or less throughput",
            why=why,
            severity="warning",
        )


def _key(target: Target) -> Iterator[Finding]:
    key, where = target.disk.kms_key, target.locator.at("disk.kmsKey")
    if not key:
        return
    found, region = _KEY.fullmatch(key), target.cluster.identity["region"]
    if found is None:
        fix = "write the id of the key, an alias such as alias/ml-nodes, or the ARN of either"
        yield Finding("eks-kms-key", where, f'disk.kmsKey is "{key}", which is not a KMS key', fix=fix)
    elif found["region"] not in (None, region):
        message = f"disk.kmsKey is in {found['region']}, and the cluster in {region}"
        yield Finding("eks-kms-key", where, message, fix=f"write a key of {region}", why="docs: ebs/ebs-encryption")
    elif not key.startswith(_OF_AWS):
        yield Finding(
            "eks-kms-policy",
            where,
            f"the policy of {key} must let the role AWSServiceRoleForAutoScaling use the key and create grants",
            fix="add both statements to the key's policy, unless it has them",
            why="no machine starts otherwise: Client.InvalidKMSKey.InvalidState (terraform-provider-aws#39904)",
            severity="hint",
        )


DISK_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (_size, _type, _performance, _ratios, _key)
