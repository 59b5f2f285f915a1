"""The exact calls for typical edits of live pools, held against botocore's model and against the limits that it skips.

`UPDATES` holds what gpukube sends, with the live values that it was made from; a change of one is a change for users
and is read in review. All of it is JSON as it is, so that a saved plan reads back the same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from botocore.validate import ParamValidator

from gpukube.core.diff import diff_fields
from gpukube.core.values import Capacity, Disk, Nodes, Reservation, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.translate import with_place
from tests.golden.eks.test_requests import ROLE, SUBNETS, broken_limits, input_of
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Observed, Request, Target

UPDATES = Path(__file__).parent / "updates"
PROVIDER = EksProvider()
ARN = f"arn:aws:eks:{REGION}:{ACCOUNT}:nodegroup/train/a100mig/00000000-1111-2222-3333-444444444444"

T4 = eks_target("g4dn.xlarge", labels={"team": "vision"}, tags={"cost": "a"})
RANGED = replace(T4, nodes=Nodes(1, 1, 3, autoscaled=True))
MIXED = eks_target(sharing=Sharing(MigCut("1g.5gb", "mixed")))
ROCKET = eks_target(image="bottlerocket", sharing=Sharing(MigCut("1g.5gb", "single")))

RESERVED = Capacity("reserved", reservation=Reservation("capacityReservation", "cr-0123456789abcdef0"))

GROUPED: Mapping[str, object] = {"securityGroups": ["sg-0123456789abcdef0"]}
FAST = eks_target("g6e.24xlarge", high_speed=True, placement="compact", native=GROUPED)

EDITS: Mapping[str, tuple[Target, Target]] = {
    "efa-and-placement-off": (FAST, replace(FAST, high_speed=False, placement="none", native={})),
    "efa-and-placement-on": (replace(FAST, high_speed=False, placement=""), FAST),
    "encrypted-disk-and-ssh": (
        T4,
        replace(T4, disk=Disk(None, None, 6000, None, kms_key="alias/ml"), native={"keyName": "ops"}),
    ),
    "labels-and-taints": (
        T4,
        replace(T4, labels={"tier": "gold"}, taints=(Taint("dedicated", "vision", "NoExecute"),), protect=True),
    ),
    "bounds-above-the-size": (RANGED, replace(RANGED, nodes=Nodes(2, 2, 6, autoscaled=True))),
    "fewer-nodes": (replace(T4, nodes=Nodes(4, 4, 4, autoscaled=False)), T4),
    "disk-and-tags": (T4, replace(T4, disk=Disk(200, "gp3"), tags={"cost": "b"})),
    "mig-profile-mixed": (MIXED, replace(MIXED, sharing=Sharing(MigCut("2g.10gb", "mixed")))),
    "bottlerocket-mig-to-time-slicing": (
        ROCKET,
        replace(ROCKET, sharing=Sharing(None, Slicing("time-slicing", 4, fail_requests_greater_than_one=True))),
    ),
    "version-pods-and-reservation": (
        replace(T4, kubernetes_version="1.33", capacity=RESERVED),
        replace(T4, kubernetes_version="1.34", max_pods=60, upgrade=Upgrade("0", "33%")),
    ),
    "release-and-settings": (
        T4,
        replace(T4, native={"releaseVersion": "1.34.2-20260801", "updateConfig": {"maxUnavailablePercentage": 50}}),
    ),
}

PARTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "update_nodegroup_config": (("nodegroup", "eks", "UpdateNodegroupConfig"),),
    "update_nodegroup_version": (
        ("placementGroup", "ec2", "CreatePlacementGroup"),
        ("nodegroup", "eks", "UpdateNodegroupVersion"),
        ("launchTemplate", "ec2", "CreateLaunchTemplateVersion"),
    ),
    "tag_resource": (("resource", "eks", "TagResource"),),
    "untag_resource": (("resource", "eks", "UntagResource"),),
}
COPY = ("TagResource", "tags"), ("UntagResource", "tagKeys")
"""Calls that the copy of the marks makes beside any other, each with its own member."""


def live(target: Target) -> Observed:
    """The group that a creation leads to, as DescribeNodegroup gives it."""
    params = cast("Mapping[str, Mapping[str, object]]", with_place(desired_of(target), ROLE, SUBNETS).create.params)
    template = {"id": "lt-0123456789abcdef0", "name": "gpukube/train/a100mig", "version": "1"}
    filled = {"nodegroupArn": ARN, "status": "ACTIVE", "version": "1.34", "releaseVersion": "1.34.2-20260714"}
    data = cast("Mapping[str, object]", params["launchTemplate"]["LaunchTemplateData"])
    return observe_group({**filled, **params["nodegroup"], "launchTemplate": template}, data, {})


def made(edit: str) -> tuple[Request, ...]:
    before, after = EDITS[edit]
    desired, observed = desired_of(after), live(before)
    return PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))


def sent(params: Mapping[str, object]) -> Mapping[str, object]:
    """Parameters without the members that the client removes from a launch template."""
    data = cast("Mapping[str, object]", params.get("LaunchTemplateData", {}))
    kept = {name: value for name, value in data.items() if value is not None}
    return {**params, "LaunchTemplateData": kept} if data else params


def test_edits_when_counted_are_all_recorded() -> None:
    assert EDITS.keys() == {path.stem for path in UPDATES.glob("*.json")}


@pytest.mark.parametrize("edit", EDITS)
def test_calls_when_made_from_an_edit_are_the_recorded_ones(edit: str, request: pytest.FixtureRequest) -> None:
    calls = [{"operation": one.operation, **one.params} for one in made(edit)]
    record = UPDATES / f"{edit}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(calls, indent=2) + "\n")

    assert calls == json.loads(record.read_text())


@pytest.mark.parametrize("edit", EDITS)
def test_calls_when_validated_are_accepted_by_botocore_and_by_the_limits_it_skips(edit: str) -> None:
    for call in made(edit):
        parts = [part for part in PARTS[call.operation] if part[0] in call.params]
        assert {name for name, _, _ in parts} >= call.params.keys() - {"expects", "nodegroup", "copy"}
        for name, service, operation in parts:
            shape, given = input_of(service, operation), sent(cast("Mapping[str, object]", call.params[name]))

            assert ParamValidator().validate(given, shape).generate_report() == ""
            assert list(broken_limits(shape, given, operation)) == []
        copy = cast("Mapping[str, object]", call.params.get("copy", {}))
        for operation, member in COPY:
            if member in copy:
                given = {"resourceArn": copy["resourceArn"], member: copy[member]}
                shape = input_of("eks", operation)
                assert ParamValidator().validate(given, shape).generate_report() == ""
                assert list(broken_limits(shape, given, operation)) == []


def test_scale_when_the_pool_is_autoscaled_leaves_the_size_alone() -> None:
    request = PROVIDER.requests.scale(CLUSTER, live(RANGED), Nodes(5, 1, 5, autoscaled=True))

    assert request.params["nodegroup"] == {
        "clusterName": "train",
        "nodegroupName": "a100mig",
        "scalingConfig": {"maxSize": 5},
    }


def test_release_when_made_takes_the_tags_off_before_the_labels() -> None:
    untag, relabel = PROVIDER.requests.release(CLUSTER, live(RANGED))

    keys = [f"gpukube.io/{name}" for name in ("owner", "place", "pool", "tags")]
    assert untag.params["resource"] == {"resourceArn": ARN, "tagKeys": keys}
    assert relabel.params["nodegroup"] == {
        "clusterName": "train",
        "nodegroupName": "a100mig",
        "labels": {
            "addOrUpdateLabels": {"gpukube.io/released": "a100mig"},
            "removeLabels": ["gpukube.io/owner", "gpukube.io/pool"],
        },
    }
    assert relabel.params["releasedTemplate"] == {"LaunchTemplateName": "gpukube/train/a100mig"}
