"""The nodes' disk: written into a launch template, changed in it, and read back."""

from __future__ import annotations

import pytest

from gpukube.core.fields import DISK_ENCRYPTED, DISK_KMS_KEY, DISK_TYPE
from gpukube.core.values import Change, Disk
from gpukube_eks import EksProvider
from gpukube_eks.pool.disks import changed_disks, new_disks, read_disk
from gpukube_eks.pool.observe import observe_group
from tests.builders import by_text
from tests.unit.gpukube_eks.samples import eks_target

Json = dict[str, object]
KEY = "arn:aws:kms:us-east-1:111122223333:key/11111111-2222-3333-4444-555555555555"


def ebs(devices: list[Json], name: str = "/dev/xvda") -> Json:
    (found,) = [device["Ebs"] for device in devices if device["DeviceName"] == name]
    assert isinstance(found, dict)
    return found


def test_disk_when_new_has_everything_that_is_declared_and_reads_back_the_same() -> None:
    disk = Disk(500, "gp3", 6000, 500, encrypted=True, kms_key=KEY)
    devices = new_disks(disk, rocket=False)

    assert ebs(devices) == {
        "VolumeSize": 500,
        "VolumeType": "gp3",
        "DeleteOnTermination": True,
        "Iops": 6000,
        "Throughput": 500,
        "Encrypted": True,
        "KmsKeyId": KEY,
    }
    assert by_text(read_disk({"BlockDeviceMappings": devices}, rocket=False)) == {
        "disk.sizeGiB": 500,
        "disk.type": "gp3",
        "disk.iops": 6000,
        "disk.throughput": 500,
        "disk.encrypted": True,
        "disk.kmsKey": KEY,
    }


def test_disk_when_nothing_is_declared_is_the_plain_one() -> None:
    assert ebs(new_disks(Disk(None, None), rocket=False)).keys() == {"VolumeSize", "VolumeType", "DeleteOnTermination"}


def test_disk_when_only_a_key_is_declared_is_encrypted() -> None:
    assert ebs(new_disks(Disk(None, None, kms_key=KEY), rocket=False))["Encrypted"] is True


@pytest.mark.parametrize(("encrypted", "count"), [(True, 2), (False, 1), (None, 1)])
def test_bottlerocket_when_encrypted_is_so_on_both_disks(*, encrypted: bool | None, count: int) -> None:
    devices = new_disks(Disk(200, None, encrypted=encrypted), rocket=True)

    assert len(devices) == count
    assert ebs(devices, "/dev/xvdb").get("Encrypted") == encrypted
    if encrypted:
        assert ebs(devices) == {"Encrypted": True}


LIVE: Json = {
    "DeviceName": "/dev/xvda",
    "Ebs": {"VolumeType": "io2", "VolumeSize": 300, "Iops": 9000, "Encrypted": True, "KmsKeyId": KEY, "Extra": 1},
    "NoDevice": "x",
}
OTHER: Json = {"DeviceName": "/dev/sdz", "Ebs": {"VolumeSize": 7}}


def test_change_when_only_the_size_is_declared_keeps_all_else_of_the_live_disks() -> None:
    changed = changed_disks(Disk(400, None), [LIVE, OTHER], rocket=False)

    assert changed == [{**LIVE, "Ebs": {**LIVE["Ebs"], "VolumeSize": 400}}, OTHER]  # type: ignore[dict-item]


def test_change_when_the_type_is_another_drops_what_depended_on_the_old_one() -> None:
    assert "Iops" not in ebs(changed_disks(Disk(300, "gp3"), [LIVE], rocket=False))
    assert ebs(changed_disks(Disk(300, "gp3", iops=4000), [LIVE], rocket=False))["Iops"] == 4000


def test_change_when_encryption_goes_drops_the_key() -> None:
    found = ebs(changed_disks(Disk(None, None, encrypted=False), [LIVE], rocket=False))

    assert (found["Encrypted"], "KmsKeyId" in found) == (False, False)


def test_change_when_bottlerocket_is_no_longer_encrypted_is_on_both_disks() -> None:
    live = new_disks(Disk(200, None, encrypted=True, kms_key=KEY), rocket=True)
    changed = changed_disks(Disk(None, None, encrypted=False), live, rocket=True)

    assert [ebs(changed, name)["Encrypted"] for name in ("/dev/xvda", "/dev/xvdb")] == [False, False]
    assert not [name for name in ("/dev/xvda", "/dev/xvdb") if "KmsKeyId" in ebs(changed, name)]


@pytest.mark.parametrize(
    ("field", "kind"), [(DISK_ENCRYPTED, "refused"), (DISK_KMS_KEY, "refused"), (DISK_TYPE, "disruptive")]
)
def test_encryption_when_the_live_disk_starts_from_a_snapshot_is_refused(field: object, kind: str) -> None:
    devices = [{"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": "snap-1"}}]
    live = observe_group({"amiType": "AL2023_x86_64_NVIDIA"}, {"BlockDeviceMappings": devices}, {})
    change = Change(field, None, "x")  # type: ignore[arg-type]  # a field

    assert EksProvider().update_row(change, (), live).kind == kind
    assert EksProvider().update_row(change).kind == "disruptive"


@pytest.mark.parametrize(
    ("disk", "found"),
    [
        (Disk(200, "io2", 10_000), set()),
        (Disk(200, "io1"), {"eks-disk-type"}),
        (Disk(None, None, 80_001), {"eks-disk-performance", "eks-disk-limit"}),
        (Disk(200, "gp3", 16_000, 1_000), set()),
        (Disk(200, "gp3", 16_001), {"eks-disk-limit"}),
        (Disk(200, "gp3", None, 751), {"eks-disk-limit"}),
        (Disk(200, "io2", 8_000, 200), {"eks-disk-performance"}),
        (Disk(100, "io1", 5_001), {"eks-disk-limit"}),
        (Disk(None, None, kms_key="my key"), {"eks-kms-key"}),
        (Disk(None, None, kms_key=KEY.replace("us-east-1", "us-west-2")), {"eks-kms-key"}),
        (Disk(None, None, kms_key=KEY), {"eks-kms-policy"}),
        (Disk(None, None, kms_key="alias/aws/ebs"), set()),
    ],
)
def test_disk_when_checked_has_the_problems_of_its_type(disk: Disk, found: set[str]) -> None:
    checked = EksProvider().check(eks_target("g6.xlarge", disk=disk))

    assert {one.code for one in checked if one.code.startswith(("eks-disk", "eks-kms"))} == found
