"""The exact requests for every example, held against botocore's model and against the limits that botocore skips.

`REQUESTS` holds what gpukube sends; a change of one is a change for users and is read in review. Role and subnets are
not in it: the live cluster gives them.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from botocore.validate import ParamValidator

from gpukube.core.owners import needs_operator, solve_ownership
from gpukube.core.resolve import promise_of, resolve_targets
from gpukube.core.values import Ownership
from gpukube.spec.loading.load import load_specs
from gpukube_eks import EksProvider
from gpukube_eks.pool.purchase import capacity_type
from gpukube_eks.pool.translate import with_place

if TYPE_CHECKING:
    from gpukube.core.values import Desired

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("eks-*.yaml"))
REQUESTS = Path(__file__).parent / "requests"
ROLE = "arn:aws:iam::111122223333:role/train-eksNodeRole"
SUBNETS = ("subnet-0123456789abcdef0",)

Json = Mapping[str, object]


def desired_pools(example: Path) -> list[Desired]:
    (spec,) = load_specs([str(example)], environ={})
    targets, problems = resolve_targets(spec)
    assert not problems
    provider, made = EksProvider(), []
    operator = any(needs_operator(target, provider.stack(target)) for target in targets)
    for target in targets:
        assert [found for found in provider.check(target) if found.severity == "error"] == []
        ownership = solve_ownership(target, provider.stack(target), operator=operator)
        assert isinstance(ownership, Ownership)
        made.append(provider.desired(target, ownership, promise_of(target)))
    return made


def calls_of(desired: Desired) -> list[tuple[str, str, Json]]:
    """Both calls of a creation as the client sends them."""
    params = cast("Mapping[str, Json]", with_place(desired, ROLE, SUBNETS).create.params)
    return [
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
    assert {path.stem for path in EXAMPLES} == {path.stem for path in REQUESTS.glob("*.json")}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_request_when_made_from_an_example_is_the_recorded_one(example: Path, request: pytest.FixtureRequest) -> None:
    made = [{"operation": d.create.operation, **d.create.params} for d in desired_pools(example)]
    record = REQUESTS / f"{example.stem}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_calls_when_validated_are_accepted_by_botocore_and_by_the_limits_it_skips(example: Path) -> None:
    for desired in desired_pools(example):
        for service, operation, given in calls_of(desired):
            shape = input_of(service, operation)

            assert ParamValidator().validate(given, shape).generate_report() == ""
            assert list(broken_limits(shape, given, operation)) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_calls_when_read_keep_the_limits_that_only_the_documentation_tells(example: Path) -> None:
    for desired in desired_pools(example):
        (_, _, template), (_, _, group) = calls_of(desired)
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
        assert not {"ImageId", "IamInstanceProfile", "SecurityGroupIds"} & data.keys()
        interfaces = cast("list[Json]", data.get("NetworkInterfaces", []))
        assert bool(interfaces) == desired.target.high_speed
        assert not [one for one in interfaces if "SubnetId" in one]
        assert ("InstanceType" in data) != ("instanceTypes" in group)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_group_when_created_always_says_what_eks_would_choose_otherwise(example: Path) -> None:
    for desired in desired_pools(example):
        (_, _, template), (_, _, group) = calls_of(desired)
        data = cast("Mapping[str, Json]", template["LaunchTemplateData"])
        (disk,) = cast("list[Mapping[str, Json]]", data["BlockDeviceMappings"])

        assert str(group["amiType"]).endswith("_NVIDIA")
        assert group["capacityType"] == capacity_type(desired.target.capacity)
        assert ("InstanceMarketOptions" in data) == (group["capacityType"] == "CAPACITY_BLOCK")
        assert cast("Json", group["scalingConfig"]).keys() == {"minSize", "maxSize", "desiredSize"}
        assert cast("Json", group["launchTemplate"])["name"] == template["LaunchTemplateName"]
        assert (disk["Ebs"]["VolumeSize"], disk["Ebs"]["VolumeType"]) == (desired.target.disk.size_gib or 100, "gp3")
        assert data["MetadataOptions"]["HttpPutResponseHopLimit"] == 2
        assert data["MetadataOptions"]["HttpTokens"] == "required"


def test_user_data_when_bottlerocket_cuts_is_the_documented_toml() -> None:
    (desired,) = desired_pools(ROOT / "examples" / "eks-bottlerocket-mig.yaml")
    (_, _, template), _ = calls_of(desired)
    encoded = str(cast("Json", template["LaunchTemplateData"])["UserData"])

    settings = tomllib.loads(base64.b64decode(encoded, validate=True).decode())

    nvidia = {"device-partitioning-strategy": "mig", "mig": {"profile": {"a100.40gb": "1g.5gb"}}}
    assert settings == {"settings": {"kubelet-device-plugins": {"nvidia": nvidia}}}
