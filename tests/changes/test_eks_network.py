"""EKS pools with EFA, a placement group, and security groups in the sandbox: created, changed, replaced, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import Aws
from tests.changes.world import ADDRESSES, Pool, World, differences, spec

if TYPE_CHECKING:
    from tests.changes.world import Document

GROUP, OTHER, KEY = "sg-0123456789abcdef0", "sg-0fedcba9876543210", "alias/ml"
FAST: Pool = {
    "name": "fast",
    "instanceType": "g6e.8xlarge",
    "nodes": {"count": 1},
    "zones": ["us-east-1a"],
    "network": {"highSpeed": True},
    "placement": "compact",
    "disk": {"sizeGiB": 200, "iops": 4000, "encrypted": True, "kmsKey": KEY},
    "eks": {"securityGroups": [GROUP], "keyName": "ops", "metadataOptions": {"httpPutResponseHopLimit": 3}},
}
NAME = "gpukube/here/fast"


def started(world: World) -> dict[str, Document]:
    world.reset()
    clusters = {"here": world.make("eks", "here")}
    place = {key: ADDRESSES["eks"][key] for key in ("account", "region")}
    daemon.declare(world.info, "eks", **place, efaSecurityGroups=[GROUP, OTHER], keyPairs=["ops"], kmsKeys=[KEY])
    return clusters


def left(world: World) -> tuple[list[str], list[str]]:
    """Return the placement groups and launch templates of the account."""
    ec2: Any = Aws(world.info).client("ec2")
    groups = ec2.describe_placement_groups()["PlacementGroups"]
    templates = ec2.describe_launch_templates()["LaunchTemplates"]
    return [one["GroupName"] for one in groups], [one["LaunchTemplateName"] for one in templates]


def data_of(world: World, version: str = "$Latest") -> dict[str, Any]:
    ec2: Any = Aws(world.info).client("ec2")
    found = ec2.describe_launch_template_versions(LaunchTemplateName=NAME, Versions=[version])
    data: dict[str, Any] = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    return data


def test_pool_when_made_changed_and_deleted_then_nothing_is_left(world: World) -> None:
    clusters = started(world)
    before = spec("net", clusters, [FAST])
    assert {name: report.error for name, report in world.create(before).items()} == {"fast": None}
    assert differences(world.plan(before)) == []
    assert left(world) == ([NAME], [NAME])

    # without EFA and without a group: the members go, and all else stays
    slow = {**FAST, "network": {"highSpeed": False}, "placement": "none"}
    after = spec("net", clusters, [slow])
    planned = {str(one.change.field): one.row.kind for one in world.pools(after)["fast"].changes}
    assert planned == {"network.highSpeed": "disruptive", "placement": "disruptive"}
    world.apply(after, consent=api.Consent(allow_disruption=True))
    assert differences(world.plan(after)) == []
    old, new = data_of(world, "1"), data_of(world)
    assert {*old} ^ {*new} == {"NetworkInterfaces", "Placement", "SecurityGroupIds"}
    assert new["SecurityGroupIds"] == old["NetworkInterfaces"][0]["Groups"]
    assert {name: new[name] for name in new if name in old} == {name: old[name] for name in new if name in old}

    # back, with another security group
    again = {**FAST, "eks": {**FAST["eks"], "securityGroups": [OTHER], "monitoring": {"enabled": True}}}
    back = spec("net", clusters, [again])
    world.apply(back, consent=api.Consent(allow_disruption=True))
    assert differences(world.plan(back)) == []
    assert OTHER in data_of(world)["NetworkInterfaces"][0]["Groups"]
    assert GROUP not in data_of(world)["NetworkInterfaces"][0]["Groups"]

    # another machine: a second group beside the first, which goes with its pool
    larger = spec("net", clusters, [{**again, "instanceType": "g6e.16xlarge"}])
    world.apply(larger, consent=api.Consent(replace="surge", allow_disruption=True))
    assert differences(world.plan(larger)) == []
    assert left(world) == (["gpukube/here/fastb"], ["gpukube/here/fastb"])

    rest = spec("net", clusters, [{"name": "rest", "instanceType": "g4dn.xlarge", "nodes": {"count": 0}}])
    world.apply(rest, consent=api.Consent(), prune=True)
    assert left(world) == ([], ["gpukube/here/rest"])


def test_pool_when_its_image_is_own_then_made_and_changed_by_new_nodes(world: World) -> None:
    clusters = started(world)
    pool: Pool = {
        "name": "own",
        "instanceType": "g4dn.xlarge",
        "nodes": {"count": 1},
        "image": "al2023",
        "labels": {"team": "a"},
        "eks": {"imageId": "ami-0123456789abcdef0"},
    }
    before = spec("net", clusters, [pool])
    assert {name: report.error for name, report in world.create(before).items()} == {"own": None}
    assert differences(world.plan(before)) == []

    changed = {**pool, "labels": {"team": "b"}, "eks": {"imageId": "ami-0fedcba9876543210"}}
    after = spec("net", clusters, [changed])
    assert {str(one.change.field): one.row.kind for one in world.pools(after)["own"].changes} == {
        "eks.imageId": "disruptive",
        "labels[team]": "disruptive",
    }
    world.apply(after, consent=api.Consent(allow_disruption=True))
    assert differences(world.plan(after)) == []
