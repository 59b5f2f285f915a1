"""Launch templates: their name, what counts as the same, what a live one says."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import KUBERNETES_VERSION, MAX_PODS, FieldPath
from gpukube.gpu.sharing import Sharing, Slicing
from gpukube_eks.pool.fields import BINDINGS, UPDATE_VERSION
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.template import changed_data, contains, tags_of, template_fields, template_name
from gpukube_eks.pool.translate import group_of
from tests.builders import by_text
from tests.unit.gpukube_eks.samples import desired_of, eks_target

NAMES = st.from_regex(r"\A[0-9A-Za-z][A-Za-z0-9\-_]{0,99}\Z")
GROUPS = st.from_regex(r"\A[0-9A-Za-z][A-Za-z0-9\-_]{0,62}\Z")


def test_name_when_short_can_be_read() -> None:
    assert template_name("train", "a100mig") == "gpukube/train/a100mig"


def test_name_when_too_long_keeps_the_group_and_differs_by_cluster() -> None:
    group = "g" * 63
    names = {template_name(cluster * 100, group) for cluster in "ab"}

    assert len(names) == 2
    assert all(len(name) <= 128 and name.endswith(f"/{group}") for name in names)


@given(NAMES, GROUPS, NAMES, GROUPS)
def test_name_when_of_another_group_is_another_and_never_too_long(one: str, group: str, other: str, next_: str) -> None:
    first, second = template_name(one, group), template_name(other, next_)

    assert len(first) <= 128
    assert (first == second) == ((one, group) == (other, next_))


def test_contains_when_ec2_adds_something_still_holds() -> None:
    wanted = {"MetadataOptions": {"HttpTokens": "required"}, "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 100}}]}
    live = {
        "MetadataOptions": {"HttpTokens": "required", "State": "applied"},
        "BlockDeviceMappings": [{"Ebs": {"VolumeSize": 100, "Encrypted": False}}],
    }

    assert contains(live, wanted)
    assert not contains({**live, "BlockDeviceMappings": []}, wanted)
    assert not contains({**live, "MetadataOptions": {"HttpTokens": "optional"}}, wanted)
    assert not contains(None, wanted)


def test_fields_when_bottlerocket_are_those_of_the_second_disk() -> None:
    disks = [
        {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 4, "VolumeType": "gp3"}},
        {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 200, "VolumeType": "gp2"}},
    ]

    rocket = template_fields({"BlockDeviceMappings": disks}, "BOTTLEROCKET_x86_64_NVIDIA")
    linux = template_fields({"BlockDeviceMappings": disks}, "AL2023_x86_64_NVIDIA")

    assert by_text(rocket) == {"disk.sizeGiB": 200, "disk.type": "gp2"}
    assert by_text(linux) == {"disk.sizeGiB": 4, "disk.type": "gp3"}


SLICED = Sharing(None, Slicing("time-slicing", 4))


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({"image": "bottlerocket", "max_pods": 60}, {"image": "bottlerocket", "sharing": SLICED}, 60),
        (
            {"image": "bottlerocket", "sharing": SLICED},
            {"image": "bottlerocket", "sharing": SLICED, "max_pods": 40},
            40,
        ),
        ({"max_pods": 60}, {"max_pods": 40}, 40),
    ],
    ids=["sharing, pods as they are live", "pods beside sharing", "pods of Amazon Linux"],
)
def test_user_data_when_changed_says_pods_and_sharing_that_stay_too(
    before: dict[str, object], after: dict[str, object], kept: int
) -> None:
    live = group_of(made := desired_of(eks_target("g4dn.xlarge", **before)))
    data = cast("dict[str, dict[str, object]]", made.create.params)["launchTemplate"]["LaunchTemplateData"]
    observed = observe_group(live, cast("dict[str, object]", data), {})
    target = eks_target("g4dn.xlarge", **after)

    changed = changed_data(target, observed, {MAX_PODS, FieldPath.parse("sharing.timeSlicing.replicas")}, {})

    found = template_fields(changed, str(live["amiType"]))
    assert found[MAX_PODS] == kept
    assert found.get(FieldPath.parse("sharing.timeSlicing.replicas")) == (4 if target.sharing.slicing else None)


@pytest.mark.parametrize(
    "path",
    [row.path for row in BINDINGS if row.effect.call == UPDATE_VERSION and row.path != KUBERNETES_VERSION],
    ids=str,
)
def test_data_when_a_field_of_the_template_changed_then_has_it(path: FieldPath) -> None:
    live = group_of(desired_of(eks_target("g4dn.xlarge")))
    inside = {"NetworkInterfaces": [{"InterfaceType": "efa"}]}
    data = changed_data(eks_target("g4dn.xlarge"), observe_group(live, inside, {}), {path}, {})
    assert data, f"write {path} in changed_data, gpukube_eks/pool/template.py"


def test_tags_when_there_are_none_are_empty() -> None:
    assert tags_of({}) == {}
    assert tags_of({"Tags": [{"Key": "a", "Value": "b"}]}) == {"a": "b"}
