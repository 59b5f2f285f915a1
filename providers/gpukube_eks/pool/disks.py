"""The nodes' disk in a launch template: written, changed, and read back.

In scope: converting a spec's disk to BlockDeviceMappings and back. Out of scope: what EC2 rejects (`rules.disks`), the
rest of the launch template (`template`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import DISK_ENCRYPTED, DISK_IOPS, DISK_KMS_KEY, DISK_SIZE, DISK_THROUGHPUT, DISK_TYPE
from gpukube.core.jsontree import tree, trees

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.fields import FieldPath
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Disk

DEFAULT_DISK_GIB: Final = 100
"""Default disk size: a few GPU images fill EKS's default of 20 GiB, and pods are evicted (eksctl-io/eksctl#780)."""
DEFAULT_DISK_TYPE: Final = "gp3"
_ROOT: Final = "/dev/xvda"
_DATA: Final = "/dev/xvdb"
_MEMBERS: Final[Mapping[FieldPath, str]] = {
    DISK_SIZE: "VolumeSize",
    DISK_TYPE: "VolumeType",
    DISK_IOPS: "Iops",
    DISK_THROUGHPUT: "Throughput",
    DISK_ENCRYPTED: "Encrypted",
    DISK_KMS_KEY: "KmsKeyId",
}
"""Field -> member of Ebs (EC2 LaunchTemplateEbsBlockDeviceRequest)."""


def is_encrypted(disk: Disk) -> bool | None:
    """Return whether a disk is encrypted, which a key implies; None for the account's default."""
    return True if disk.kms_key else disk.encrypted


def new_disks(disk: Disk, *, rocket: bool) -> list[dict[str, object]]:
    """Return the BlockDeviceMappings of a new launch template."""
    ebs = {
        "VolumeSize": disk.size_gib or DEFAULT_DISK_GIB,
        "VolumeType": disk.type or DEFAULT_DISK_TYPE,
        "DeleteOnTermination": True,
        **_performance(disk),
        **_encryption(disk),
    }
    return _with_system_disk([{"DeviceName": disk_device(rocket=rocket), "Ebs": ebs}], disk, rocket=rocket)


def changed_disks(disk: Disk, live: Sequence[Tree], *, rocket: bool) -> list[dict[str, object]]:
    """Change the nodes' disk among the live ones; throughput and IOPS depend on its type and are dropped with it."""
    name = disk_device(rocket=rocket)
    ours: Tree = next((device for device in live if device.get("DeviceName") == name), {})
    ebs = tree(ours, "Ebs") or {"VolumeType": DEFAULT_DISK_TYPE, "DeleteOnTermination": True}
    if disk.type and disk.type != ebs.get("VolumeType"):
        ebs = {key: value for key, value in ebs.items() if key not in ("Iops", "Throughput")}
        ebs["VolumeType"] = disk.type
    ebs = _encrypted({**ebs, **_performance(disk)}, disk)
    ebs["VolumeSize"] = disk.size_gib or ebs.get("VolumeSize") or DEFAULT_DISK_GIB
    changed = [{**ours, "DeviceName": name, "Ebs": ebs}, *(dict(device) for device in live if device is not ours)]
    return _with_system_disk(changed, disk, rocket=rocket)


def read_disk(data: Mapping[str, object], *, rocket: bool) -> dict[FieldPath, object]:
    """Return the comparable fields of the nodes' disk that the launch template sets."""
    ebs = _live_disk(data, rocket=rocket)
    return {path: ebs[member] for path, member in _MEMBERS.items() if member in ebs}


def starts_from_snapshot(data: Mapping[str, object], *, rocket: bool) -> bool:
    """Return whether the nodes' disk starts from a snapshot, beside which EC2 accepts no encryption."""
    return bool(_live_disk(data, rocket=rocket).get("SnapshotId"))


def _live_disk(data: Mapping[str, object], *, rocket: bool) -> Mapping[str, object]:
    name = disk_device(rocket=rocket)
    found = [tree(one, "Ebs") for one in trees(data, "BlockDeviceMappings") if one.get("DeviceName") == name]
    return found[-1] if found else {}


def _with_system_disk(devices: list[dict[str, object]], disk: Disk, *, rocket: bool) -> list[dict[str, object]]:
    """Encrypt Bottlerocket's other disk, with its operating system, like the one for images and pods.

    Source:
        eksctl-io/eksctl pkg/cfn/builder/block_device_mappings.go, AdditionalEncryptedVolume.
    """
    encryption = _encryption(disk)
    system: Tree = next((device for device in devices if device.get("DeviceName") == _ROOT), {})
    if not (rocket and (encryption.get("Encrypted") or (encryption and system))):
        return devices
    ebs = _encrypted(tree(system, "Ebs"), disk)
    others = [device for device in devices if device is not system]
    return [*others, {**system, "DeviceName": _ROOT, "Ebs": ebs}]


def _performance(disk: Disk) -> dict[str, object]:
    found = {"Iops": disk.iops, "Throughput": disk.throughput}
    return {name: value for name, value in found.items() if value is not None}


def _encryption(disk: Disk) -> dict[str, object]:
    found = {"Encrypted": is_encrypted(disk), "KmsKeyId": disk.kms_key or None}
    return {name: value for name, value in found.items() if value is not None}


def _encrypted(ebs: Tree, disk: Disk) -> dict[str, object]:
    """Return a disk with the declared encryption; a key stays only with an encrypted one."""
    found = {**ebs, **_encryption(disk)}
    return {name: value for name, value in found.items() if name != "KmsKeyId" or found.get("Encrypted") is not False}


def disk_device(*, rocket: bool) -> str:
    """Return the disk for images and pods; Bottlerocket has two (terraform-aws-modules/terraform-aws-eks#3180)."""
    return _DATA if rocket else _ROOT
