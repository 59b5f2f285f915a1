"""Our tables against botocore's model of the service: amiTypes, members of a node group, health issues."""

from __future__ import annotations

from functools import cache

import botocore.session
import pytest
from botocore.model import ListShape, ServiceModel, Shape, StringShape, StructureShape

from gpukube.core.meanings import Problem
from gpukube.core.values import Change
from gpukube.gpu.catalog import machines
from gpukube_eks.codes import FAILURE_CODES
from gpukube_eks.facts.images import IMAGES, find_image
from gpukube_eks.facts.meanings import error_of
from gpukube_eks.pool.fields import EFFECTS
from gpukube_eks.pool.launch import MEMBERS, TOPS
from gpukube_eks.pool.native import LAUNCH, MANAGED, NATIVE, OVERRIDE, REFUSED, Leaf, Number, field_of
from gpukube_eks.pool.updates import NATIVE_ROWS, find_row


@cache
def service() -> ServiceModel:
    return botocore.session.get_session().get_service_model("eks")


def enum(name: str) -> list[str]:
    shape = service().shape_for(name)
    assert isinstance(shape, StringShape)
    return list(shape.enum)


def members(name: str) -> set[str]:
    shape = service().shape_for(name)
    assert isinstance(shape, StructureShape)
    return set(shape.members)


def test_images_when_counted_are_those_with_the_nvidia_driver() -> None:
    fips_is_not_offered = {name for name in enum("AMITypes") if name.endswith("_FIPS")}

    assert {image.name for image in IMAGES} == {n for n in enum("AMITypes") if "_NVIDIA" in n} - fips_is_not_offered


def test_members_when_counted_are_native_managed_or_refused() -> None:
    tops = {path.partition(".")[0] for path in NATIVE}

    judged, existing = tops | MANAGED.keys() | REFUSED.keys(), members("CreateNodegroupRequest")
    unjudged, unknown = existing - judged, judged - existing
    assert unjudged == set(), f"add a row to pool/fields.py, or add these to NATIVE or REFUSED: {unjudged}"
    assert unknown == set(), f"botocore has no such members; correct `wire` or `members` of their rows: {unknown}"


@pytest.mark.parametrize(("top", "shape"), [("updateConfig", "NodegroupUpdateConfig"), ("nodeRepairConfig",) * 2])
def test_inner_members_when_counted_are_all_there(top: str, shape: str) -> None:
    inner = {path.partition(".")[2] for path in NATIVE if path.startswith(f"{top}.")}

    assert inner == members(shape[0].upper() + shape[1:])


def shape_at(path: str) -> Shape:
    shape: Shape = service().shape_for("CreateNodegroupRequest")
    for name in path.split("."):
        assert isinstance(shape, StructureShape)
        shape = shape.members[name]
    return shape


def leaf_of(shape: Shape) -> Leaf:
    """What the model says of a member, in the words of our table; the most of a count stands in its text only."""
    if isinstance(shape, StringShape) and shape.enum:
        return tuple(shape.enum)
    if isinstance(shape, ListShape):
        return "overrides" if isinstance(shape.member, StructureShape) else "strings"
    if shape.type_name == "integer":
        assert int(str(shape.metadata["min"])) == 1
        return Number(int(str(shape.metadata.get("max", 0))))
    return {"boolean": "bool", "string": "str"}[shape.type_name]  # type: ignore[return-value]  # words of Leaf


@pytest.mark.parametrize("path", NATIVE)
def test_native_members_when_compared_have_the_services_types_words_and_bounds(path: str) -> None:
    said = {"updateConfig.maxUnavailable": Number(100)}  # "The maximum number is 100."

    assert NATIVE[path] == said.get(path, leaf_of(shape_at(path)))


@pytest.mark.parametrize("path", [path for path in LAUNCH if path != "securityGroups"])
def test_launch_members_when_compared_have_ec2s_types_and_words(path: str) -> None:
    shape: Shape = botocore.session.get_session().get_service_model("ec2").shape_for("RequestLaunchTemplateData")
    for name in MEMBERS[path]:
        assert isinstance(shape, StructureShape)
        shape = shape.members[name]

    if isinstance(LAUNCH[path], Number):
        assert shape.type_name == "integer"  # "Possible values: Integers from 1 to 64"
    elif isinstance(shape, StringShape) and shape.enum:
        assert {*shape.enum} == {*LAUNCH[path]}  # type: ignore[misc]  # the words of an enum
    else:
        assert LAUNCH[path] == {"boolean": "bool", "string": "str"}[shape.type_name]


def test_launch_members_when_counted_are_in_one_table_each() -> None:
    assert LAUNCH.keys() == {*MEMBERS, "securityGroups"}
    assert {path.partition(".")[0] for path in LAUNCH} == TOPS


def test_repairs_when_compared_have_the_services_members() -> None:
    item = service().shape_for("NodeRepairConfigOverrides")
    assert isinstance(item, StructureShape)

    assert {name: leaf_of(member) for name, member in item.members.items()} == OVERRIDE


def test_native_members_when_changed_have_a_row_each() -> None:
    fields = {field_of(path) for path in (*NATIVE, *LAUNCH)}

    assert {field[:2] for field in fields if field.is_below("eks")} == NATIVE_ROWS.keys()
    assert all(find_row(Change(field, None, 2)).kind != "refused" for field in fields)


def test_effects_when_counted_are_the_services() -> None:
    assert sorted(EFFECTS.values()) == sorted(enum("TaintEffect"))


@pytest.mark.parametrize("code", [*enum("NodegroupIssueCode"), *enum("ErrorCode")])
def test_late_codes_when_they_come_have_a_meaning_and_a_remedy(code: str) -> None:
    (problem,) = error_of(Problem(code, "", is_late=True), "train-eks").diagnostics

    assert problem.code in FAILURE_CODES
    assert problem.fix


NO_IMAGE = {"g7"}


def test_machines_when_they_are_in_the_catalog_have_an_image() -> None:
    missing = {machine.name.partition(".")[0] for machine in machines("eks") if find_image("", machine) is None}

    assert missing == NO_IMAGE
