"""What a node group names has to exist: asked of a sandbox without its process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpukube_sandbox.eks.account import IAM
from gpukube_sandbox.eks.ec2 import ACTIONS as EC2
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.eks.steering import declare, declare_for
from gpukube_sandbox.eks.things import CONTROL_PLANE
from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.shapes import WrongEntry
from gpukube_sandbox.world import World
from sandbox_tests.eks.aws import ACCOUNT, NAME, ONE, REGION, T4, Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.eks.wire.identity import Caller

PARAMETER = "InvalidParameterException"
ROLE = f"arn:aws:iam::{ACCOUNT}:role"
DECLARED: Json = {
    "account": ACCOUNT,
    "region": REGION,
    "roles": [{"name": "nodes"}, {"arn": f"{ROLE}/team/gpu"}, {"name": "lambda", "trust": ["lambda.amazonaws.com"]}],
    "keyPairs": ["ops"],
    "securityGroups": ["sg-1"],
    "reservations": [{"id": "cr-1", "type": "p4d.24xlarge", "zone": "b", "count": 4}],
    "subnets": [{"cluster": NAME, "id": "subnet-0abc", "zone": "us-east-1b"}],
}


class _Who:
    """A caller of the account, in a region."""

    def __init__(self, region: str = REGION) -> None:
        self.account, self.region = ACCOUNT, region


def in_world(act: Callable[[World], Any]) -> Any:  # noqa: ANN401 - what the act gives
    """Do something in a world that has one cluster and what was declared."""

    async def run() -> Any:  # noqa: ANN401 - as above
        world = World(1.0, b"authority")
        await world.ensure_eks_cluster(EksRequest(ACCOUNT, REGION, NAME))
        declare(world.eks, DECLARED)
        try:
            return act(world)
        finally:
            await world.reset()

    return asyncio.run(run())


def create(world: World, **members: object) -> Json:
    cluster = world.eks.require_cluster(ACCOUNT, REGION, NAME)
    group = cluster.groups["system"].members
    body = {"subnets": group["subnets"], "nodeRole": group["nodeRole"], "scalingConfig": ONE, **T4, **members}
    return cast("Json", world.eks.create_group(cluster, {"nodegroupName": "p", **body})["nodegroup"])


def iam(world: World, action: str, who: _Who | None = None, **params: str) -> Json:
    return cast("Json", IAM[action](world.eks, cast("Caller", who or _Who()), params))


def ec2(world: World, action: str, who: _Who | None = None, **params: str) -> Json:
    return cast("Json", EC2[action](world.eks, cast("Caller", who or _Who()), params))


REFUSED: dict[str, tuple[Json, str, str]] = {
    "a role that does not exist": (
        {"nodeRole": f"{ROLE}/nobody"}, PARAMETER, "The role with name nobody cannot be found.",
    ),
    "a role of another path": (
        {"nodeRole": f"{ROLE}/gpu"}, PARAMETER, "The role with name gpu cannot be found.",
    ),
    "a role that nodes cannot have": (
        {"nodeRole": f"{ROLE}/lambda"},
        PARAMETER,
        (
            "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of "
            f"nodeRole {ROLE}/lambda"
        ),
    ),
    "a key pair that does not exist": ({"remoteAccess": {"ec2SshKey": "mine"}}, PARAMETER, "KeyPair mine not found"),
    "a subnet that does not exist": (
        {"subnets": ["subnet-0abc", "subnet-0"]},
        "InvalidRequestException",
        "The subnet ID 'subnet-0' does not exist (Service: AmazonEC2; Code: InvalidSubnetID.NotFound)",
    ),
    "a source group that does not exist": (
        {"remoteAccess": {"ec2SshKey": "ops", "sourceSecurityGroups": ["sg-1", "sg-2"]}},
        PARAMETER,
        "The security group 'sg-2' does not exist",
    ),
}  # fmt: skip
TEMPLATES: dict[str, tuple[Json, str]] = {
    "a key pair": ({"KeyName": "mine"}, "The key pair 'mine' does not exist"),
    "a security group": ({"SecurityGroupIds": ["sg-1", "sg-2"]}, "The security group 'sg-2' does not exist"),
    "a card's group": ({"NetworkInterfaces": [{"Groups": ["sg-3"]}]}, "The security group 'sg-3' does not exist"),
}
"""What a launch template names and is not there -> what is said."""


@pytest.mark.parametrize("case", REFUSED)
def test_group_when_it_names_what_is_not_there_then_refused_and_nothing_made(case: str) -> None:
    members, code, text = REFUSED[case]

    def act(world: World) -> tuple[str, str, int, list[str]]:
        with pytest.raises(AwsError) as caught:
            create(world, **members)
        groups = list(world.eks.require_cluster(ACCOUNT, REGION, NAME).groups)
        return caught.value.code, caught.value.message, caught.value.status, groups

    assert in_world(act) == (code, text, 400, ["system"])


def test_group_when_it_names_what_was_declared_then_accepted() -> None:
    members = {"nodeRole": f"{ROLE}/team/gpu", "remoteAccess": {"ec2SshKey": "ops"}, "subnets": ["subnet-0abc"]}
    made = in_world(lambda world: create(world, **members))
    assert (made["status"], made["nodeRole"], made["subnets"]) == ("CREATING", f"{ROLE}/team/gpu", ["subnet-0abc"])


def test_template_when_its_type_does_not_exist_then_its_group_is_refused() -> None:
    def act(world: World) -> tuple[str, str]:
        world.eks.templates(ACCOUNT, REGION).create("zz-big", "", {"InstanceType": "zz.big"}, {}, "")
        with pytest.raises(AwsError) as caught:
            create(world, instanceTypes=[], launchTemplate={"name": "zz-big"})
        return caught.value.code, caught.value.message

    assert in_world(act) == (PARAMETER, "The following supplied instance types do not exist: [zz.big]")


@pytest.mark.parametrize("case", TEMPLATES)
def test_template_when_it_names_what_is_not_there_then_its_group_is_refused(case: str) -> None:
    data, text = TEMPLATES[case]

    def act(world: World) -> tuple[str, str]:
        world.eks.templates(ACCOUNT, REGION).create("named", "", data, {}, "")
        with pytest.raises(AwsError) as caught:
            create(world, launchTemplate={"name": "named"})
        return caught.value.code, caught.value.message

    assert in_world(act) == ("InvalidRequestException", text)


def test_template_when_it_names_what_was_declared_then_its_group_is_made_and_a_later_version_looked_at_too() -> None:
    def act(world: World) -> tuple[object, str]:
        cluster, store = world.eks.require_cluster(ACCOUNT, REGION, NAME), world.eks.templates(ACCOUNT, REGION)
        groups = ["sg-1", cluster.security_group]
        template = store.create("named", "", {"KeyName": "ops", "SecurityGroupIds": groups}, {}, "")
        made = create(world, launchTemplate={"name": "named"})
        cluster.groups["p"].status = "ACTIVE"
        store.add_version(template, "", {"KeyName": "gone"}, "")
        with pytest.raises(AwsError) as caught:
            world.eks.update_version(cluster, "p", {"launchTemplate": {"name": "named", "version": "2"}})
        return made["status"], caught.value.message

    assert in_world(act) == ("CREATING", "The key pair 'gone' does not exist")


def test_reservation_when_asked_for_then_only_those_that_were_declared_and_how_much_is_free() -> None:
    anything = {"id": "cr-2", "type": "p5.48xlarge", "zone": "a", "block": True}

    def act(world: World) -> list[object]:
        before = ec2(world, "DescribeCapacityReservations")["capacityReservationSet"]["item"]
        declare(world.eks, {"account": ACCOUNT, "region": REGION, "reservations": [anything]})
        after = ec2(world, "DescribeCapacityReservations")["capacityReservationSet"]["item"]
        elsewhere = ec2(world, "DescribeCapacityReservations", _Who("eu-west-1"))["capacityReservationSet"]["item"]
        keys = ("capacityReservationId", "availabilityZone", "totalInstanceCount", "reservationType")
        return [len(before), len(elsewhere), *(tuple(entry[key] for key in keys) for entry in after)]

    first, second = ("cr-1", "us-east-1b", 4, "default"), ("cr-2", "us-east-1a", 1, "capacity-block")
    assert in_world(act) == [1, 0, first, second]


def test_role_when_asked_for_then_only_those_that_were_declared_in_every_region() -> None:
    def act(world: World) -> list[object]:
        with pytest.raises(AwsError) as caught:
            iam(world, "GetRole", RoleName="does-not-exist")
        role = iam(world, "GetRole", _Who("eu-west-1"), RoleName="gpu")["Role"]
        names = [entry["RoleName"] for entry in iam(world, "ListRoles")["Roles"]["member"]]
        return [caught.value.code, caught.value.status, role["Arn"], role["Path"], names]

    own = [f"{NAME}-eksClusterRole", f"{NAME}-eksNodeRole"]
    assert in_world(act) == ["NoSuchEntity", 404, f"{ROLE}/team/gpu", "/team/", ["gpu", "lambda", "nodes", *own]]


def test_key_when_asked_for_then_of_its_region_only() -> None:
    def act(world: World) -> tuple[list[str], str, str]:
        found = [entry["keyName"] for entry in ec2(world, "DescribeKeyPairs")["keySet"]["item"]]
        with pytest.raises(AwsError) as caught:
            ec2(world, "DescribeKeyPairs", _Who("eu-west-1"), **{"KeyName.1": "ops"})
        return found, caught.value.code, caught.value.message

    assert in_world(act) == (["ops"], "InvalidKeyPair.NotFound", "The key pair 'ops' does not exist")


def test_declare_when_some_is_there_already_then_only_the_rest_is_told() -> None:
    more = DECLARED | {"keyPairs": ["ops", "new"], "roles": [{"name": "nodes", "trust": [CONTROL_PLANE]}]}
    assert in_world(lambda world: declare(world.eks, more)) == ["key pair new"]


SUBNET: Json = {"cluster": NAME, "id": "subnet-1", "zone": "us-east-1a"}
BLOCKED: Json = {"id": "cr-9", "type": "p5.48xlarge", "zone": "a"}
WRONG: dict[str, tuple[Json, str, tuple[str | int, ...]]] = {
    "key": ({"role": []}, 'there is no key "role"', ("role",)),
    "key within": (
        {"roles": [{"name": "a"}, {"name": "b", "path": "/"}]},
        'there is no key "path"; there are arn, name, trust',
        ("roles", 1, "path"),
    ),
    "no list": ({"keyPairs": "ops"}, "keyPairs must be a list", ("keyPairs",)),
    "number": ({"keyPairs": ["ops", 7]}, 'keyPairs[1] is 7; it must be text: write "7"', ("keyPairs", 1)),
    "account": ({"account": "12"}, "account is '12'; it must have twelve digits", ("account",)),
    "role": ({"roles": [{"trust": []}]}, "a role has a name or an arn", ("roles", 0)),
    "missing": ({"subnets": [{"cluster": NAME, "zone": "a"}]}, "id is missing", ("subnets", 0, "id")),
    "cluster": (
        {"subnets": [SUBNET | {"cluster": "x"}]},
        f"cluster x does not exist in account {ACCOUNT} and region {REGION}",
        ("subnets", 0, "cluster"),
    ),
    "zone": (
        {"subnets": [SUBNET | {"zone": "us-east-1z"}]},
        "zone us-east-1z does not exist; the zones are us-east-1a, us-east-1b, us-east-1c",
        ("subnets", 0, "zone"),
    ),
    "type": (
        {"reservations": [BLOCKED | {"type": "zz.big"}]},
        "zz.big is not an instance type",
        ("reservations", 0, "type"),
    ),
    "count": (
        {"reservations": [BLOCKED | {"count": True}]},
        "count is True; it must be a whole number",
        ("reservations", 0, "count"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_declare_when_it_is_not_understood_then_refused_with_its_place(case: str) -> None:
    wrong, text, at = WRONG[case]

    def act(world: World) -> tuple[str, tuple[str | int, ...]]:
        with pytest.raises(WrongEntry) as caught:
            declare(world.eks, {"account": ACCOUNT, "region": REGION, "securityGroups": ["sg-7"], **wrong})
        assert "sg-7" not in world.eks.known(ACCOUNT, REGION).groups
        return str(caught.value).partition("; there are account")[0], caught.value.at

    assert in_world(act) == (text, at)


def test_request_when_declared_for_then_it_is_accepted() -> None:
    members = {"nodeRole": f"{ROLE}/mine", "subnets": ["subnet-1", "subnet-2"], "remoteAccess": {"ec2SshKey": "k"}}
    place = {"account": ACCOUNT, "region": REGION, "cluster": NAME}

    def act(world: World) -> tuple[list[str], list[str], Json]:
        request = {**place, "request": {"nodegroup": members}}
        return declare_for(world.eks, request), declare_for(world.eks, request), create(world, **members)

    made, again, group = in_world(act)
    assert made == [f"role {ROLE}/mine", "key pair k", "subnet subnet-1", "subnet subnet-2"]
    assert (again, group["status"], group["subnets"]) == ([], "CREATING", ["subnet-1", "subnet-2"])


GROUP = "arn:aws:resource-groups:us-east-1:111122223333:group/gpus"
BLOCK = {"MarketType": "capacity-block"}
TARGETS: dict[str, tuple[Json, list[str], tuple[object, ...]]] = {
    "its zone": ({"CapacityReservationId": "cr-9"}, ["us-east-1b"], ("cr-9", "p4d.24xlarge", "b", False, ())),
    "no zone": ({"CapacityReservationId": "cr-9"}, [], ("cr-9", "p4d.24xlarge", "a", False, ())),
    "no zone that has the type": (
        {"CapacityReservationId": "cr-9"}, ["us-east-1c"], ("cr-9", "p4d.24xlarge", "a", False, ()),
    ),
    "a group": (
        {"CapacityReservationResourceGroupArn": GROUP},
        ["us-east-1b"],
        ("cr-06fca4f24bd35482d", "p4d.24xlarge", "b", False, (GROUP,)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TARGETS)
@pytest.mark.parametrize("block", [False, True])
def test_request_when_it_targets_a_reservation_then_that_is_declared_as_it_is_needed(case: str, *, block: bool) -> None:
    target, zones, wanted = TARGETS[case]
    data: Json = {"CapacityReservationSpecification": {"CapacityReservationTarget": target}, "KeyName": "k"}
    data |= {"InstanceMarketOptions": BLOCK, "InstanceType": "p4d.24xlarge"} if block else {}
    members = {} if block else {"instanceTypes": ["p4d.24xlarge"]}
    place = {"account": ACCOUNT, "region": REGION, "cluster": NAME, "zones": zones}

    def act(world: World) -> tuple[list[str], tuple[object, ...]]:
        request = {"launchTemplate": {"LaunchTemplateData": data}, "nodegroup": members}
        made = declare_for(world.eks, {**place, "request": request})
        found = world.eks.known(ACCOUNT, REGION).reservations[str(wanted[0])]
        return made, (found.id, found.type, found.zone, found.block, found.groups, found.count)

    made = ["key pair k", f"capacity reservation {wanted[0]}"]
    assert in_world(act) == (made, (*wanted[:3], block, wanted[4], None))


def test_request_when_it_names_nothing_then_nothing_is_declared() -> None:
    place = {"account": ACCOUNT, "region": REGION, "cluster": NAME}
    assert in_world(lambda world: declare_for(world.eks, {**place, "request": {"nodegroup": {}}})) == []
