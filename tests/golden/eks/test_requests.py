"""The exact requests for every example, and for large pools, held against botocore's model and what botocore skips.

`REQUESTS` holds what gpukube sends; a change of one is a change for users and is read in review. For the examples role
and subnets are not in it: the live cluster gives them. The large pools of `POOLS` are complete, from a fake account.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import botocore.session
import pytest
import yaml
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

from gpukube.core.owners import needs_operator, solve_ownership
from gpukube.core.resolve import promise_of, resolve_targets
from gpukube.core.values import Ownership, Settings
from gpukube.endpoint import Endpoint
from gpukube.spec.loading.load import load_specs
from gpukube_eks import EksProvider
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.purchase import capacity_type
from gpukube_eks.pool.translate import with_place
from tests.unit.gpukube_eks.fakes import FakeAws
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION

if TYPE_CHECKING:
    from gpukube.core.values import Desired

ROOT = Path(__file__).parents[3]
POOLS: Mapping[str, object] = yaml.safe_load((Path(__file__).parent / "pools.yaml").read_text())
EXAMPLES = sorted((ROOT / "examples").glob("eks-*.yaml"))
REQUESTS = Path(__file__).parent / "requests"
ROLE = "arn:aws:iam::111122223333:role/train-eksNodeRole"
SUBNETS = ("subnet-0123456789abcdef0",)

Json = Mapping[str, object]


CASES = {**{path.stem: path for path in EXAMPLES}, **dict.fromkeys(POOLS)}
OPEN_GROUP, PLACE = "sg-0c1a51e5000000000", "us-east-1a"


def account() -> EksCloud:
    """A cluster with one private subnet, whose security group lets EFA traffic through."""
    network = {"subnetIds": [*SUBNETS], "vpcId": "vpc-0", "clusterSecurityGroupId": OPEN_GROUP}
    aws = FakeAws(
        {
            "endpoint": "https://0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com",
            "certificateAuthority": {"data": "Q0E="},
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
            "resourcesVpcConfig": network,
        }
    )
    aws.subnets = [{"SubnetId": SUBNETS[0], "AvailabilityZone": PLACE, "MapPublicIpOnLaunch": False}]
    aws.offered = [PLACE]
    aws.roles = [{"RoleName": "train-eksNodeRole", "Arn": ROLE}]
    aws.tables = [{"Associations": [{"Main": True}], "Routes": [{"NatGatewayId": "nat-0"}]}]
    aws.rules = [
        {"GroupId": OPEN_GROUP, "IsEgress": way, "IpProtocol": "-1", "ReferencedGroupInfo": {"GroupId": OPEN_GROUP}}
        for way in (False, True)
    ]
    groups = ("ml-ring", "pg-0123456789abcdef0", "reserved")
    aws.placements = {name: {"GroupName": name, "State": "available", "Strategy": "cluster"} for name in groups}
    return EksCloud(CLUSTER, Settings(), Endpoint(), aws)


def reservation_of(desired: Desired) -> dict[str, object]:
    """The reservation that a pool names: a Capacity Block, or one in a placement group."""
    reservation = desired.target.capacity.reservation
    assert reservation is not None
    block = {"ReservationType": "capacity-block"}
    group = {"PlacementGroupArn": "arn:aws:ec2:us-east-1:111122223333:placement-group/reserved"}
    kind = block if reservation.form == "capacityBlock" else group
    place = {"AvailabilityZone": PLACE, "InstanceType": desired.target.machine.name, "State": "active"}
    return {"CapacityReservationId": reservation.id, **place, **kind}


def completed(desired: Desired) -> Desired:
    cloud = account()
    if desired.target.capacity.reservation:
        aws = cloud._aws
        assert isinstance(aws, FakeAws)
        aws.reservations = [reservation_of(desired)]
    made = cloud.complete(desired)
    assert made.unchecked == ()
    return made


def desired_pools(case: str) -> list[Desired]:
    pool = {"name": case, "clusters": ["train-eks"], **cast("dict[str, object]", POOLS.get(case) or {})}
    document = {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "ml-platform"},
        "clusters": {"train-eks": {"provider": "eks", "account": ACCOUNT, "region": REGION, "name": "train"}},
        "pools": [pool],
    }
    source, text = (str(CASES[case]), "") if CASES[case] else ("-", json.dumps(document))
    (spec,) = load_specs([source], stdin=io.StringIO(text), environ={})
    targets, problems = resolve_targets(spec)
    assert not problems
    provider, made = EksProvider(), []
    operator = any(needs_operator(target, provider.stack(target)) for target in targets)
    for target in targets:
        assert [found for found in provider.check(target) if found.severity == "error"] == []
        ownership = solve_ownership(target, provider.stack(target), operator=operator)
        assert isinstance(ownership, Ownership)
        desired = provider.desired(target, ownership, promise_of(target))
        made.append(completed(desired) if case in POOLS else desired)
    return made


def calls_of(desired: Desired) -> list[tuple[str, str, Json]]:
    """Both calls of a creation as the client sends them."""
    params = cast("Mapping[str, Json]", with_place(desired, ROLE, SUBNETS).create.params)
    group = [("ec2", "CreatePlacementGroup", params["placementGroup"])] if "placementGroup" in params else []
    return [
        *group,
        ("ec2", "CreateLaunchTemplate", {**params["launchTemplate"], "ClientToken": "0" * 32}),
        ("eks", "CreateNodegroup", params["nodegroup"]),
    ]


def input_of(service: str, operation: str) -> StructureShape:
    shape = botocore.session.get_session().get_service_model(service).operation_model(operation).input_shape
    assert isinstance(shape, StructureShape)
    return shape


def broken_limits(shape: Shape, value: object, path: str) -> Iterator[str]:
    """Upper bounds, enums and patterns of the model, which botocore's own validator does not look at."""
    yield from broken_leaf(shape, value, path)
    if isinstance(shape, StructureShape):
        for name, member in cast("Json", value).items():
            yield from broken_limits(shape.members[name], member, f"{path}.{name}")
    elif isinstance(shape, ListShape):
        for item in cast("list[object]", value):
            yield from broken_limits(shape.member, item, f"{path}[]")
    elif isinstance(shape, MapShape):
        for key, member in cast("Json", value).items():
            yield from broken_leaf(shape.key, key, f"{path} key")
            yield from broken_limits(shape.value, member, f"{path}[{key}]")


def broken_leaf(shape: Shape, value: object, path: str) -> Iterator[str]:
    most, pattern = shape.metadata.get("max"), shape.metadata.get("pattern")
    if isinstance(shape, StringShape) and shape.enum and value not in shape.enum:
        yield f"{path}: {value} is none of {shape.enum}"
    if isinstance(shape, StringShape) and pattern and not re.search(str(pattern), str(value)):
        yield f"{path}: {value} does not fit {pattern}"
    size = value if isinstance(value, int) else len(cast("str", value)) if most is not None else 0
    if most is not None and size > int(str(most)):
        yield f"{path}: more than {most}"


def test_limits_when_broken_are_seen() -> None:
    """The checker itself: what botocore lets through, it does not (seen with botocore 1.44.5)."""
    shape = input_of("eks", "CreateNodegroup")
    wrong = {"amiType": "NOT_AN_AMI", "labels": {"k" * 64: "v"}, "tags": {str(n): "" for n in range(51)}}

    found = list(broken_limits(shape, wrong, ""))

    assert [line.partition(":")[0] for line in found] == [".amiType", ".labels key", ".tags"]


def test_examples_when_counted_are_all_here() -> None:
    assert CASES.keys() == {path.stem for path in REQUESTS.glob("*.json")}
    assert len(CASES) >= 25


@pytest.mark.parametrize("case", CASES)
def test_request_when_made_from_a_spec_is_the_recorded_one(case: str, request: pytest.FixtureRequest) -> None:
    made = [{"operation": d.create.operation, **d.create.params} for d in desired_pools(case)]
    record = REQUESTS / f"{case}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


@pytest.mark.parametrize("case", CASES)
def test_calls_when_validated_are_accepted_by_botocore_and_by_the_limits_it_skips(case: str) -> None:
    for desired in desired_pools(case):
        for service, operation, given in calls_of(desired):
            shape = input_of(service, operation)

            assert ParamValidator().validate(given, shape).generate_report() == ""
            assert list(broken_limits(shape, given, operation)) == []


@pytest.mark.parametrize("case", CASES)
def test_calls_when_read_keep_the_limits_that_only_the_documentation_tells(case: str) -> None:
    for desired in desired_pools(case):
        (_, _, template), (_, _, group) = calls_of(desired)[-2:]
        data = cast("Json", template["LaunchTemplateData"])

        # docs: AWSEC2/APIReference CreateLaunchTemplate; eks/create-managed-node-group; botocore eks TagMap
        assert re.fullmatch(r"[a-zA-Z0-9().\-/_]{3,128}", str(template["LaunchTemplateName"]))
        assert re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}", str(group["nodegroupName"]))
        for key, value in cast("dict[str, str]", group.get("tags", {})).items():
            assert re.fullmatch(r"[\w +\-=.:/@]{1,128}", key)
            assert re.fullmatch(r"[\w +\-=.:/@]{0,256}", value)
        for key, value in cast("dict[str, str]", group["labels"]).items():
            assert not re.search(r"(^|\.)(kubernetes|k8s)\.io/", key)
            assert value
        # docs: eks/launch-templates, what a template and what a request beside it must not hold
        assert not {"diskSize", "remoteAccess"} & group.keys()
        assert "IamInstanceProfile" not in data
        assert ("ImageId" in data) != ("amiType" in group)
        assert not {"NetworkInterfaces", "SecurityGroupIds"} <= data.keys()
        interfaces = cast("list[Json]", data.get("NetworkInterfaces", []))
        assert bool(interfaces) == desired.target.high_speed
        assert not [one for one in interfaces if {"SubnetId", "AssociatePublicIpAddress"} & one.keys()]
        assert ("InstanceType" in data) != ("instanceTypes" in group)
        if case in POOLS:  # EKS adds the cluster's own group only to a template that names none
            groups = [data.get("SecurityGroupIds"), *(one["Groups"] for one in interfaces)]
            assert {cast("list[str]", given)[0] for given in groups if given} <= {OPEN_GROUP}


@pytest.mark.parametrize("case", CASES)
def test_group_when_created_always_says_what_eks_would_choose_otherwise(case: str) -> None:
    for desired in desired_pools(case):
        (_, _, template), (_, _, group) = calls_of(desired)[-2:]
        data = cast("Mapping[str, Json]", template["LaunchTemplateData"])
        disk = cast("list[Mapping[str, Json]]", data["BlockDeviceMappings"])[0]
        native = cast("Json", desired.target.native.get("metadataOptions", {}))

        assert str(group.get("amiType", "CUSTOM")).endswith(("_NVIDIA", "CUSTOM"))
        assert group["capacityType"] == capacity_type(desired.target.capacity)
        assert ("InstanceMarketOptions" in data) == (group["capacityType"] == "CAPACITY_BLOCK")
        assert cast("Json", group["scalingConfig"]).keys() == {"minSize", "maxSize", "desiredSize"}
        assert cast("Json", group["launchTemplate"])["name"] == template["LaunchTemplateName"]
        assert (disk["Ebs"]["VolumeSize"], disk["Ebs"]["VolumeType"]) == (
            desired.target.disk.size_gib or 100,
            desired.target.disk.type or "gp3",
        )
        assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == native.get("httpPutResponseHopLimit", 2)
        assert data["MetadataOptions"]["HttpTokens"] == "required"


def test_user_data_when_bottlerocket_cuts_is_the_documented_toml() -> None:
    (desired,) = desired_pools("eks-bottlerocket-mig")
    (_, _, template), _ = calls_of(desired)
    encoded = str(cast("Json", template["LaunchTemplateData"])["UserData"])

    settings = tomllib.loads(base64.b64decode(encoded, validate=True).decode())

    nvidia = {"device-partitioning-strategy": "mig", "mig": {"profile": {"a100.40gb": "1g.5gb"}}}
    assert settings == {"settings": {"kubelet-device-plugins": {"nvidia": nvidia}}}
