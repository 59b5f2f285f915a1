"""Pools of the user's own image: what is sent, with what their nodes join, and what a change of it does."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest
import yaml

from gpukube.core.diff import diff_fields
from gpukube.core.fields import IMAGE, TAINTS, FieldPath, label
from gpukube.core.values import Settings, Taint
from gpukube.endpoint import Endpoint
from gpukube.errors import CloudError
from gpukube_eks import EksProvider
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.importing import chosen_fields
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.settings import carried
from gpukube_eks.pool.translate import template_data
from gpukube_eks.userdata.merging import has_others
from gpukube_eks.userdata.mime import parse_message
from tests.unit.gpukube_eks.fakes import FakeAws
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Observed, Target

AMI, NEXT = "ami-0123456789abcdef0", "ami-0fedcba9876543210"
PLACE = {"nodeRole": "arn:aws:iam::111122223333:role/nodes", "subnets": ["subnet-0123456789abcdef0"]}
PROVIDER = EksProvider()
READY: dict[str, object] = {
    "endpoint": "https://example.com",
    "certificateAuthority": {"data": "Q0E="},
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
}


def own(**changes: object) -> Target:
    target = eks_target("g7.8xlarge", image="al2023", native={**PLACE, "imageId": AMI})
    return replace(target, **changes)  # type: ignore[arg-type]  # test data


def complete(target: Target) -> Desired:
    return EksCloud(CLUSTER, Settings(), Endpoint(), FakeAws(READY)).complete(desired_of(target))


def config_of(desired: Desired) -> dict[str, object]:
    raw = base64.b64decode(str(template_data(desired)["UserData"]))
    message = parse_message(raw)
    assert message is not None
    found: dict[str, object] = yaml.safe_load(message.parts[0].content)
    assert found["kind"] == "NodeConfig"
    return cast("dict[str, object]", found["spec"])


def live(desired: Desired) -> Observed:
    group = {**cast("Mapping[str, object]", desired.create.params["nodegroup"]), "amiType": "CUSTOM"}
    template = {"id": "lt-1", "name": "gpukube/train/a100mig", "version": "1"}
    return observe_group({**group, "status": "ACTIVE", "launchTemplate": template}, template_data(desired), {})


def test_group_when_the_image_is_own_has_none_of_what_eks_rejects_beside_it() -> None:
    desired = desired_of(own())
    group = cast("Mapping[str, object]", desired.create.params["nodegroup"])

    assert not {"amiType", "version", "releaseVersion", "imageId"} & group.keys()
    assert template_data(desired)["ImageId"] == AMI
    assert desired.fields[IMAGE] == "CUSTOM"


def test_nodes_when_the_image_is_own_join_with_labels_and_taints() -> None:
    taints = (Taint("nvidia.com/gpu", "present", "NoSchedule"), Taint("team", "", "NoExecute"))
    spec = config_of(complete(own(labels={"team": "vision"}, taints=taints)))
    flags = cast("dict[str, list[str]]", spec["kubelet"])["flags"]

    assert spec["cluster"] == {
        "name": "train",
        "apiServerEndpoint": "https://example.com",
        "certificateAuthority": "Q0E=",
        "cidr": "172.20.0.0/16",
    }
    assert flags[1] == "--register-with-taints=nvidia.com/gpu=present:NoSchedule,team=:NoExecute"
    labels = dict(pair.split("=") for pair in flags[0].removeprefix("--node-labels=").split(","))
    assert labels["team"] == "vision"
    assert labels["k8s.amazonaws.com/accelerator"] == "nvidia-rtxpro4500"
    assert not [key for key in labels if key in {"gpukube.io/owner", "gpukube.io/pool"}]


def test_nodes_when_there_are_settings_have_them_too_and_all_is_gpukubes() -> None:
    desired = complete(own(max_pods=50, sysctls={"vm.max_map_count": "262144"}))

    assert diff_fields(desired.fields, live(desired).fields) == ()
    assert not has_others(str(template_data(desired)["UserData"]), rocket=False)


def test_settings_when_the_live_user_data_is_of_others_are_merged_into_it_for_a_replacement() -> None:
    raw = b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n--x\n\n#!/bin/sh\n--x--\n'
    theirs = base64.b64encode(raw).decode()
    observed = observe_group({"amiType": "CUSTOM"}, {"ImageId": AMI, "UserData": theirs}, {})

    assert template_data(carried(complete(own()), observed))["UserData"] == theirs
    merged = base64.b64decode(str(template_data(carried(complete(own(max_pods=50)), observed))["UserData"]))
    assert b"#!/bin/sh" in merged
    assert b"maxPods: 50" in merged


def test_pool_when_the_cluster_has_no_endpoint_is_refused() -> None:
    with pytest.raises(CloudError, match="the cluster has no apiServerEndpoint, certificateAuthority, cidr yet"):
        EksCloud(CLUSTER, Settings(), Endpoint(), FakeAws()).complete(desired_of(own()))


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"native": {**PLACE, "imageId": NEXT}}, {"eks.imageId": "disruptive"}),
        ({"labels": {"team": "b"}}, {"labels[team]": "disruptive"}),
        ({"taints": ()}, {"taints": "disruptive"}),
        ({"max_pods": 60}, {"maxPodsPerNode": "disruptive"}),
        ({"protect": True}, {"deletionProtection": "in-place"}),
        ({"tags": {"a": "b"}}, {"tags[a]": "in-place"}),
    ],
)
def test_change_when_it_is_in_the_user_data_needs_new_nodes(changes: dict[str, object], kinds: dict[str, str]) -> None:
    observed, desired = live(complete(own())), complete(own(**changes))
    found = diff_fields(desired.fields, observed.fields)

    assert {str(one.field): PROVIDER.update_row(one, found, observed).kind for one in found} == kinds
    calls = PROVIDER.requests.update(desired, observed, found)
    data = [cast("Mapping[str, object]", c.params["launchTemplate"]) for c in calls if "launchTemplate" in c.params]
    rolls = "disruptive" in kinds.values()
    assert len(data) == rolls
    if rolls and "eks.imageId" not in kinds:
        new = cast("Mapping[str, object]", data[0]["LaunchTemplateData"])
        assert new["UserData"] == template_data(desired)["UserData"]


@pytest.mark.parametrize(("before", "after"), [(own(), eks_target("g6.xlarge")), (eks_target("g6.xlarge"), own())])
def test_change_when_the_own_image_comes_or_goes_replaces_the_pool(before: Target, after: Target) -> None:
    old = desired_of(before)
    found = diff_fields(desired_of(after).fields, old.fields)

    assert "replace" in {PROVIDER.update_row(one, found).kind for one in found if one.field == IMAGE}


def test_labels_when_the_user_data_is_of_others_change_in_place() -> None:
    message = base64.b64encode(b"#!/bin/sh\n").decode()
    observed = observe_group({"amiType": "CUSTOM"}, {"ImageId": AMI, "UserData": message}, {})
    changes = diff_fields({label("a"): "b", TAINTS: ()}, {label("a"): "c", TAINTS: ("x:NoSchedule",)})

    assert {PROVIDER.update_row(one, changes, observed).kind for one in changes} == {"in-place"}


def test_import_when_the_user_data_is_nodeadms_names_the_image() -> None:
    chosen = chosen_fields(live(complete(own())))

    assert (chosen[IMAGE], chosen[FieldPath("eks", "imageId")]) == ("al2023", AMI)
    unknown = observe_group({"amiType": "CUSTOM"}, {"ImageId": AMI, "UserData": "Zm9v"}, {})
    assert chosen_fields(unknown)[IMAGE] == "CUSTOM"


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, False),
        ({"image": ""}, True),
        ({"image": "bottlerocket"}, True),
        ({"kubernetes_version": "1.34"}, True),
        ({"native": {**PLACE, "imageId": AMI, "releaseVersion": "1.34.2-20260714"}}, True),
    ],
)
def test_image_when_own_is_refused_beside_what_eks_rejects(changes: dict[str, object], *, refused: bool) -> None:
    found = {one.code for one in PROVIDER.check(own(**changes)) if one.severity == "error"}

    assert found == ({"eks-own-image"} if refused else set())
