"""The table of members: complete for the installed SDK, and right about what a person chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, StructureShape
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpukube.core.members import ANY_KEY, Member
from gpukube.core.values import Disk, Upgrade
from gpukube_eks.pool.members import GROUP, POOL_MEMBERS, TEMPLATE
from gpukube_eks.pool.native import LAUNCH, NATIVE
from gpukube_eks.pool.observe import observe_group
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from botocore.model import Shape

    from gpukube.core.members import Members
    from gpukube.core.values import Observed

SESSION = botocore.session.get_session()
LISTS = {"Disk": "LaunchTemplateEbsBlockDeviceRequest"}
"""Parts of TEMPLATE that are items of EC2's lists -> their shape."""
SHAPED = ("BlockDeviceMappings", "NetworkInterfaces", "TagSpecifications")


def paths_of(shape: Shape, above: str, table: Members) -> Iterator[str]:
    """Yield the members of a shape, below a message only if the table has entries there."""
    assert isinstance(shape, StructureShape)
    for name, member in shape.members.items():
        path = f"{above}{name}"
        if isinstance(member, StructureShape) and any(known.startswith(f"{path}.") for known in table):
            yield from paths_of(member, f"{path}.", table)
        else:
            yield path


def shape(service: str, name: str) -> Shape:
    return SESSION.get_service_model(service).shape_for(name)


def expected_group() -> set[str]:
    return {
        path for name in ("CreateNodegroupRequest", "Nodegroup") for path in paths_of(shape("eks", name), "", GROUP)
    }


def expected_template() -> set[str]:
    found = set(paths_of(shape("ec2", "RequestLaunchTemplateData"), "", TEMPLATE)) - {*SHAPED}
    return found | {path for part, name in LISTS.items() for path in paths_of(shape("ec2", name), f"{part}.", TEMPLATE)}


@pytest.mark.parametrize(("expected", "table"), [(expected_group(), GROUP), (expected_template(), TEMPLATE)])
def test_member_when_the_sdk_has_it_then_the_table_does_too(expected: set[str], table: Members) -> None:
    def is_known(path: str) -> bool:
        steps = path.split(".")
        return any(".".join(steps[:count]) in table for count in range(1, len(steps) + 1)) or f"{path}.*" in table

    new = sorted(path for path in expected if not is_known(path))
    assert new == [], "classify them in providers/gpukube_eks/pool/members.py"
    plain = {path for path in table if ANY_KEY not in path and not path.startswith("NetworkInterfaces.")}
    assert sorted(plain - expected - {path.split(".")[0] for path in expected}) == [], "the SDK has these no more"


def test_native_member_when_in_the_table_then_a_spec_can_write_it() -> None:
    written = {member.spec.removeprefix("eks.") for table in (GROUP, TEMPLATE) for member in table.values()
               if member.kind == "native"}  # fmt: skip
    assert written <= {*NATIVE, *LAUNCH}


PLAIN: Mapping[str, object] = {
    "nodegroupName": "a", "clusterName": "train", "nodegroupArn": "arn:x", "status": "ACTIVE", "version": "1.34",
    "releaseVersion": "1.34.2-20260714", "health": {"issues": []}, "resources": {"autoScalingGroups": [{"name": "x"}]},
    "capacityType": "ON_DEMAND", "diskSize": 20, "amiType": "AL2023_x86_64_NVIDIA", "labels": {}, "tags": {},
    "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}, "nodeRepairConfig": {"enabled": False},
    "instanceTypes": ["p4d.24xlarge"], "subnets": ["subnet-0a"], "nodeRole": "arn:role",
    "scalingConfig": {"minSize": 1, "maxSize": 1, "desiredSize": 1},
}  # fmt: skip
"""A group as EKS returns it, made without anything that is not required (botocore eks DescribeNodegroup)."""


def live(data: Mapping[str, object], **group: object) -> Observed:
    return observe_group({**PLAIN, **group}, data, {})


def lost(observed: Observed, **changes: object) -> list[str]:
    return sorted(one.path for one in POOL_MEMBERS.lost(observed, desired_of(eks_target(**changes))))  # type: ignore[arg-type]  # test data


def test_plain_group_when_read_then_only_what_everyone_must_choose() -> None:
    chosen = {one.path for one in POOL_MEMBERS.chosen(live({}))}
    assert chosen == {"instanceType", "eks.nodeRole", "nodes", "image"}


def test_plain_group_when_replaced_then_nothing_is_lost_but_what_the_cluster_fills_in() -> None:
    assert lost(live({})) == ["eks.nodeRole"]


CASES: dict[str, tuple[dict[str, object], list[str]]] = {
    "disk": (
        {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50, "VolumeType": "gp3",
         "Iops": 6000, "Throughput": 500, "Encrypted": True, "KmsKeyId": "alias/x", "SnapshotId": "snap-1"}}]},
        ["disk.sizeGiB", "disk.iops", "disk.throughput", "disk.encrypted", "disk.kmsKey",
         "eks.launchTemplate.Disk.SnapshotId"],
    ),
    "two disks": (
        {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50}}, {"DeviceName": "/dev/sdb"}]},
        ["disk.sizeGiB", "eks.launchTemplate.BlockDeviceMappings./dev/sdb"],
    ),
    "EFA": ({"NetworkInterfaces": [{"InterfaceType": "efa", "NetworkCardIndex": 0}]}, ["network.highSpeed"]),
    "EFA with prefixes, and an interface more": (
        {"NetworkInterfaces": [
            {"InterfaceType": "interface", "NetworkCardIndex": 0, "AssociatePublicIpAddress": False},
            {"InterfaceType": "efa-only", "NetworkCardIndex": 1, "DeviceIndex": 0, "DeleteOnTermination": True},
            {"InterfaceType": "interface", "NetworkCardIndex": 1, "DeviceIndex": 1},
            {"InterfaceType": "efa", "NetworkCardIndex": 2, "Ipv4PrefixCount": 2}]},
        ["network.highSpeed", "eks.launchTemplate.NetworkInterfaces.Ipv4PrefixCount",
         "eks.launchTemplate.NetworkInterfaces.other"],
    ),
    "an interface": (
        {"NetworkInterfaces": [{"Groups": ["sg-1"]}]},
        ["eks.launchTemplate.NetworkInterfaces.other", "eks.securityGroups"],
    ),
    "a Capacity Block": (
        {
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}},
        },
        ["capacity.reserved.eks.capacityBlock"],
    ),
    "security groups": ({"SecurityGroupIds": ["sg-1"]}, ["eks.securityGroups"]),
    "key, image, monitoring": (
        {"KeyName": "ops", "ImageId": "ami-1", "Monitoring": {"Enabled": True}},
        ["eks.keyName", "eks.imageId", "eks.monitoring.enabled"],
    ),
    "placement": (
        {"Placement": {"GroupName": "pg", "Tenancy": "dedicated"}},
        ["placement", "eks.launchTemplate.Placement.Tenancy"],
    ),
    "tags of machines": (
        {"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]}]},
        ["tags[team]"],
    ),
    "tags of machines and disks": (
        {"TagSpecifications": [{"ResourceType": kind, "Tags": [{"Key": "team", "Value": "a"}]}
                               for kind in ("instance", "volume")]},
        ["tags[team]"],
    ),
    "tags of interfaces": (
        {"TagSpecifications": [{"ResourceType": "network-interface", "Tags": [{"Key": "team", "Value": "a"}]}]},
        ["eks.launchTemplate.TagSpecifications.network-interface"],
    ),
    "metadata service": (
        {"MetadataOptions": {"HttpTokens": "optional", "HttpPutResponseHopLimit": 2, "HttpEndpoint": "enabled"}},
        ["eks.metadataOptions.httpTokens"],
    ),
    "enclaves off": ({"EnclaveOptions": {"Enabled": False}}, ["eks.launchTemplate.EnclaveOptions"]),
    "content of others": ({"UserData": "c2VjcmV0"}, ["eks.launchTemplate.UserData"]),
    "a member of tomorrow": ({"Tomorrow": {"Mode": "x"}}, ["eks.launchTemplate.Tomorrow.Mode"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_member_of_a_template_when_the_new_pool_lacks_it_then_lost(case: str) -> None:
    data, paths = CASES[case]
    assert lost(live(data, launchTemplate={"id": "lt-1", "version": "1"}), native=PLACE) == sorted(paths)


PLACE = {"subnets": ["subnet-0a"], "nodeRole": "arn:role"}


def test_group_when_its_members_are_in_the_spec_then_nothing_is_lost() -> None:
    observed = live(
        {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 50, "VolumeType": "gp2"}}]},
        labels={"team": "a", "gpukube.io/owner": "x", "alpha.eksctl.io/nodegroup-name": "a"},
        tags={"aws:eks:x": "y", "cost": "ml"},
        nodeRepairConfig={"enabled": True},
        updateConfig={"maxUnavailable": 2},
    )
    assert lost(observed, native=PLACE) == [
        "disk.sizeGiB", "eks.nodeRepairConfig.enabled", "labels[team]", "tags[cost]", "upgrade.maxUnavailable"
    ]  # fmt: skip
    native = {**PLACE, "nodeRepairConfig": {"enabled": True}}
    changes: dict[str, object] = {
        "upgrade": Upgrade(max_unavailable="1"),
        "labels": {"team": "b"},
        "tags": {"cost": "ml"},
        "disk": Disk(20, "gp3"),
        "native": native,
    }
    assert lost(observed, **changes) == []


def test_tag_of_machines_when_the_group_has_another_value_then_lost_though_the_spec_has_the_groups() -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]}]
    observed = live({"TagSpecifications": tags}, tags={"team": "b"})
    assert lost(observed, native=PLACE, tags={"team": "b"}) == ["tags[team]"]
    (one,) = (one for one in POOL_MEMBERS.chosen(observed) if one.wire[0] == "TagSpecifications")
    assert one.reason == "only the machines have it; in a spec it is the group's too"
    assert lost(observed, native=PLACE, tags={"team": "a"}) == []


def test_tag_of_machines_when_it_left_the_spec_and_the_template_is_ours_then_not_lost() -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]}]
    name = f"gpukube/{PLAIN['clusterName']}/{PLAIN['nodegroupName']}"
    observed = live({"TagSpecifications": tags}, launchTemplate={"name": name, "id": "lt-1", "version": "1"})
    assert lost(observed, native=PLACE) == []


def test_interfaces_when_of_another_layout_then_the_declared_network_has_them() -> None:
    interfaces = [{"InterfaceType": "efa", "NetworkCardIndex": at, "DeviceIndex": min(at, 1)} for at in range(4)]
    assert lost(live({"NetworkInterfaces": interfaces}), native=PLACE, high_speed=True) == []


def values(shape: Shape, depth: int = 3) -> st.SearchStrategy[object]:
    """Return values of a botocore shape, never empty."""
    if isinstance(shape, StructureShape):
        members = {name: values(member, depth - 1) for name, member in shape.members.items()} if depth else {}
        return st.fixed_dictionaries({}, optional=members).filter(bool) if members else st.just({"x": "y"})
    if isinstance(shape, ListShape):
        return st.lists(values(shape.member, depth - 1), min_size=1, max_size=2)
    if isinstance(shape, MapShape):
        return st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.just("v"), min_size=1, max_size=2)
    kinds: dict[str, st.SearchStrategy[object]] = {
        "boolean": st.booleans(), "integer": st.integers(1, 9), "timestamp": st.just("2026-11-28T00:00:00Z"),
    }  # fmt: skip
    choices = getattr(shape, "enum", None)
    return kinds.get(shape.type_name, st.sampled_from(choices) if choices else st.just("x"))


NAMED = {"BlockDeviceMappings": ("disk.", "eks.launchTemplate.Disk", "eks.launchTemplate.BlockDeviceMappings"),
         "TagSpecifications": ("tags[", "eks.launchTemplate.TagSpecifications"),
         "NetworkInterfaces": ("network.highSpeed", "eks.launchTemplate.NetworkInterfaces")}  # fmt: skip
"""Lists of EC2 -> beginnings of the paths of their items."""


@given(data=values(shape("ec2", "RequestLaunchTemplateData")), group=values(shape("eks", "Nodegroup")))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_group_when_it_has_any_members_then_each_is_chosen_a_default_or_made_by_the_service(
    data: dict[str, object], group: dict[str, object]
) -> None:
    observed = observe_group({**group, "nodegroupName": "a"}, data, {})
    chosen = POOL_MEMBERS.chosen(observed)
    for members, table, given_values in ((chosen, TEMPLATE, data), (chosen, GROUP, group)):
        for name, value in given_values.items():
            below = [one for path, one in table.items() if path == name or path.startswith(f"{name}.")]
            passive = any(one.kind == "server" for one in below) or any(value in one.defaults for one in below)
            begins = NAMED.get(
                name, (f"eks.launchTemplate.{name}", f"eks.{name}", *(one.spec for one in below if one.spec))
            )
            found = [one for one in members if name in one.wire or one.path.startswith(begins)]
            assert found or passive or not leaves_that_count(value, below), name
    assert all(one in chosen for one in POOL_MEMBERS.lost(observed, desired_of(eks_target())))


def leaves_that_count(value: object, below: list[Member]) -> bool:
    """Return whether a value has a leaf that is no default."""
    if isinstance(value, dict):
        return any(leaves_that_count(inner, below) for inner in value.values())
    if isinstance(value, list):
        return bool(value)
    return not any(value in one.defaults for one in below)
