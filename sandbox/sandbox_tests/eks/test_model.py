"""The emulation against botocore's own models: what is taken, what is answered, and what the tables leave out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import botocore.session
import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.model import ListShape, MapShape, StringShape, StructureShape
from botocore.validate import ParamValidator

from gpukube_sandbox.eks.images import IMAGES
from gpukube_sandbox.eks.keys import EFFECTS
from gpukube_sandbox.eks.schema import CREATE, UPDATE_CONFIG, UPDATE_VERSION, Field
from gpukube_sandbox.eks.templatedata import TEMPLATE_DATA
from gpukube_sandbox.eks.wire.answers import EKS_STATUS
from gpukube_sandbox.eks.wire.identity import access_key
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from botocore.model import ServiceModel, Shape

    from gpukube_sandbox.eks.wire.query import Member


def model(service: str) -> ServiceModel:
    """A service's model."""
    return botocore.session.Session().get_service_model(service)


EKS, EC2 = model("eks"), model("ec2")
KINDS = {"string": "string", "integer": "integer", "boolean": "boolean", "map": "map", "structure": "object"}


def kind_of(shape: Shape) -> str:
    """A shape's kind in the words of our tables."""
    if isinstance(shape, ListShape):
        return "strings" if isinstance(shape.member, StringShape) else "objects"
    return KINDS[shape.type_name]


def assert_same(shape: StructureShape, table: dict[str, Field], left_out: frozenset[str] = frozenset()) -> None:
    """Members, kinds, choices and minima of a table are those of the model."""
    assert set(shape.members) - left_out == set(table)
    for name, field in table.items():
        member = shape.members[name]
        assert kind_of(member) == field.kind, name
        if field.choices:
            assert isinstance(member, StringShape)
            assert set(member.enum) == set(field.choices), name
        if field.kind == "integer":
            assert member.metadata.get("min") == field.minimum, name
        below = member.member if isinstance(member, ListShape) else member
        if field.fields:
            assert isinstance(below, StructureShape)
            assert_same(below, dict(field.fields))
        assert field.required is (name in shape.required_members), name


@pytest.mark.parametrize(
    ("operation", "table", "in_the_path"),
    [
        ("CreateNodegroup", CREATE, {"clusterName"}),
        ("UpdateNodegroupConfig", UPDATE_CONFIG, {"clusterName", "nodegroupName"}),
        ("UpdateNodegroupVersion", UPDATE_VERSION, {"clusterName", "nodegroupName"}),
    ],
)
def test_table_when_compared_with_the_model_then_the_same(
    operation: str, table: dict[str, Field], in_the_path: set[str]
) -> None:
    shape = EKS.operation_model(operation).input_shape
    assert isinstance(shape, StructureShape)
    required = [name for name in shape.required_members if name not in in_the_path]
    assert [name for name, field in table.items() if field.required] == sorted(required, key=list(table).index)
    assert_same(shape, table, frozenset(in_the_path))


def test_choices_when_compared_with_the_model_then_the_same() -> None:
    kinds, effects = EKS.shape_for("AMITypes"), EKS.shape_for("TaintEffect")
    assert isinstance(kinds, StringShape)
    assert isinstance(effects, StringShape)
    assert (set(kinds.enum), set(effects.enum)) == (set(IMAGES), set(EFFECTS))


@pytest.mark.parametrize("shape", EKS.error_shapes, ids=lambda shape: str(shape.name))
def test_error_when_in_the_model_then_our_status_is_its(shape: StructureShape) -> None:
    status = shape.metadata["error"]["httpStatusCode"]
    assert EKS_STATUS.get(shape.name, status) == status


NOT_TAKEN = {
    "TemplateData": {
        "ElasticGpuSpecifications", "ElasticInferenceAccelerators", "InstanceRequirements", "Operator",
        "SecondaryInterfaces",
    },
}  # fmt: skip
"""Members of LaunchTemplateData that a node group does not need; a request with one is refused."""


def test_template_when_compared_with_the_model_then_every_name_is_right() -> None:
    asked, answered = EC2.shape_for("RequestLaunchTemplateData"), EC2.shape_for("ResponseLaunchTemplateData")
    assert isinstance(asked, StructureShape)
    assert isinstance(answered, StructureShape)
    assert set(asked.members) - {member.name for member in TEMPLATE_DATA} <= NOT_TAKEN["TemplateData"]
    assert_names(TEMPLATE_DATA, asked, answered)


def assert_names(members: tuple[Member, ...], asked: StructureShape, answered: StructureShape) -> None:
    """Names in requests and answers are those that botocore writes and reads."""
    for member in members:
        there, back = asked.members[member.name], answered.members[member.name]
        query = there.serialization.get("queryName") or str(there.serialization.get("name", member.name))
        assert member.request_name == query[0].upper() + query[1:], member.name
        assert member.response_name == back.serialization["name"], member.name
        if isinstance(there, ListShape) and isinstance(back, ListShape):
            assert member.item == back.member.serialization.get("name", "member"), member.name
            there, back = there.member, back.member
        if isinstance(there, StructureShape) and isinstance(back, StructureShape):
            assert_names(member.members, there, back)


def assert_fits(shape: Shape, value: object, where: str = "") -> None:
    """A JSON answer has no member, choice or type that the model has not."""
    if isinstance(shape, StructureShape):
        assert isinstance(value, dict), where
        for key, item in value.items():
            assert key in shape.members, f"{where}.{key}"
            assert_fits(shape.members[key], item, f"{where}.{key}")
    elif isinstance(shape, ListShape):
        assert isinstance(value, list), where
        for item in value:
            assert_fits(shape.member, item, f"{where}[]")
    elif isinstance(shape, MapShape):
        assert isinstance(value, dict), where
        for item in value.values():
            assert_fits(shape.value, item, f"{where}{{}}")
    elif isinstance(shape, StringShape):
        assert isinstance(value, str), where
        assert not shape.enum or value in shape.enum, f"{where}: {value}"
    elif shape.type_name == "timestamp":
        assert isinstance(value, int | float), where
    else:
        expected = {"integer": int, "boolean": bool, "long": int}[shape.type_name]
        assert isinstance(value, expected), where


def ask(aws: Aws, operation: str, path: str, body: dict[str, Any] | None = None) -> None:
    """Send a signed request by hand and hold the raw answer against the model."""
    found = EKS.operation_model(operation)
    url = f"{aws.info.aws_url}{path}"
    request = AWSRequest(found.http["method"], url, data=json.dumps(body).encode() if body else b"")
    SigV4Auth(Credentials(access_key(ACCOUNT), aws.info.secret), "eks", REGION).add_auth(request)
    headers = dict(request.headers.items())
    answer = httpx.request(
        found.http["method"], url, content=request.data, headers=headers, trust_env=False, timeout=PATIENCE_S
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-amzn-requestid"]
    assert found.output_shape is not None
    assert_fits(found.output_shape, answer.json(), operation)


def test_answers_when_held_against_the_model_then_they_fit(aws: Aws) -> None:
    template = aws.template()
    taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    more: dict[str, Any] = {
        "labels": {"a": "b"},
        "taints": taints,
        "tags": {"c": "d"},
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "MINIMAL"},
        "nodeRepairConfig": {"enabled": True, "maxUnhealthyNodeThresholdCount": 2},
        "warmPoolConfig": {"enabled": True, "minSize": 0, "poolState": "STOPPED"},
    }
    group = aws.create("gpu", launchTemplate=template, **more)
    update = aws.update("gpu", labels={"addOrUpdateLabels": {"a": "c"}}, scalingConfig={"maxSize": 2})
    base = f"/clusters/{NAME}"
    ask(aws, "ListClusters", "/clusters")
    ask(aws, "DescribeCluster", base)
    ask(aws, "ListNodegroups", f"{base}/node-groups")
    ask(aws, "DescribeNodegroup", f"{base}/node-groups/gpu")
    ask(aws, "DescribeNodegroup", f"{base}/node-groups/system")
    ask(aws, "ListUpdates", f"{base}/updates?nodegroupName=gpu")
    ask(aws, "DescribeUpdate", f"{base}/updates/{update['id']}?nodegroupName=gpu")
    ask(aws, "ListTagsForResource", f"/tags/{group['nodegroupArn'].replace('/', '%2F').replace(':', '%3A')}")
    ask(aws, "ListAccessEntries", f"{base}/access-entries")
    ask(aws, "ListAddons", f"{base}/addons")
    body = {"nodegroupName": "b", **aws.place(), "scalingConfig": {"minSize": 0, "maxSize": 1, "desiredSize": 0}}
    ask(aws, "CreateNodegroup", f"{base}/node-groups", body)
    aws.settled("b")
    ask(aws, "DeleteNodegroup", f"{base}/node-groups/b")


def test_request_when_botocore_lets_it_pass_then_the_service_still_may_not() -> None:
    shape = EKS.operation_model("CreateNodegroup").input_shape
    assert shape is not None
    odd = {
        "clusterName": "c", "nodegroupName": "n" * 99, "subnets": ["s"], "nodeRole": "r", "amiType": "NOT_AN_AMI",
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    }  # fmt: skip
    assert not ParamValidator().validate(odd, shape).has_errors()
