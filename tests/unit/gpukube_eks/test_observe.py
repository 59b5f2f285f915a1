"""A node group as EKS answers it, read."""

from __future__ import annotations

from typing import cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import DISK_SIZE, INSTANCE_TYPE, MIG_PROFILE
from gpukube.core.values import Disk, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks.pool.observe import observe_group, observe_leftover
from gpukube_eks.pool.translate import LEFTOVER
from gpukube_eks.pool.updates import find_row
from tests.unit.gpukube_eks.samples import desired_of, eks_target

Json = dict[str, object]
ZONES = {"subnet-a": "us-east-1a", "subnet-b": "us-east-1b"}


def live(**changes: object) -> tuple[Json, Json]:
    """What EKS and EC2 answer for a pool that was just made, with what they add."""
    target = eks_target("g4dn.xlarge", disk=Disk(200, "gp3"), zones=("us-east-1a", "us-east-1b"), labels={"team": "x"})
    params = cast("dict[str, Json]", desired_of(target).create.params)
    group = {**params["nodegroup"], "subnets": ["subnet-b", "subnet-a"], "nodeRole": "arn", "status": "ACTIVE"}
    group["labels"] = {**cast("Json", group["labels"]), "eks.amazonaws.com/nodegroup": "t4"}
    group["tags"] = {"aws:cloudformation:stack-name": "x"}
    group |= {"health": {"issues": []}, "releaseVersion": "1.34.2-20260714", "diskSize": None, "remoteAccess": None}
    data = cast("Json", params["launchTemplate"]["LaunchTemplateData"])
    return {**group, **changes}, data


def test_pool_when_just_made_shows_no_difference() -> None:
    target = eks_target("g4dn.xlarge", disk=Disk(200, "gp3"), zones=("us-east-1a", "us-east-1b"), labels={"team": "x"})
    group, data = live()

    observed = observe_group(group, data, ZONES)

    assert diff_fields(desired_of(target).fields, observed.fields) == ()
    assert (observed.owner, observed.pool, observed.state) == ("ml-platform", "a100mig", "ready")


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("CREATING", "busy"),
        ("ACTIVE", "ready"),
        ("UPDATING", "busy"),
        ("DELETING", "deleting"),
        ("CREATE_FAILED", "failed"),
        ("DELETE_FAILED", "failed"),
        ("DEGRADED", "ready"),
        ("SOMETHING_NEW", "busy"),
    ],
)
def test_state_when_read_is_one_of_four(status: str, state: str) -> None:
    assert observe_group(*live(status=status), ZONES).state == state


@pytest.mark.parametrize(
    ("live_words", "field", "value", "kind"),
    [
        ({"capacityType": "SOMETHING_NEW"}, "capacity.type", "SOMETHING_NEW", "refused"),
        ({"amiType": "SOMETHING_NEW"}, "image", "SOMETHING_NEW", "replace"),
        ({"updateConfig": {"updateStrategy": "SOMETHING_NEW"}}, "upgrade.maxSurge", "SOMETHING_NEW", "refused"),
        ({"taints": [{"key": "a", "effect": "SOMETHING_NEW"}]}, "taints", ("a=:SOMETHING_NEW",), "refused"),
    ],
)
def test_word_when_nobody_knows_it_is_shown_as_it_came_and_never_overwritten(
    live_words: Json, field: str, value: object, kind: str
) -> None:
    target = eks_target(
        "g4dn.xlarge",
        disk=Disk(200, "gp3"),
        zones=("us-east-1a", "us-east-1b"),
        labels={"team": "x"},
        upgrade=Upgrade("0", None),
    )
    (change,) = diff_fields(desired_of(target).fields, observe_group(*live(**live_words), ZONES).fields)

    assert (str(change.field), change.old) == (field, value)
    assert find_row(change).kind == kind


def test_failure_when_the_group_is_ill_is_every_issue() -> None:
    issues = [
        {"code": "AsgInstanceLaunchFailures", "message": "no capacity", "resourceIds": ["asg"]},
        {"code": "Unknown", "message": ""},
    ]

    observed = observe_group(*live(status="DEGRADED", health={"issues": issues}), ZONES)

    assert observed.failure == "AsgInstanceLaunchFailures: no capacity; Unknown"


def test_count_when_the_autoscaler_moved_it_is_no_difference() -> None:
    sizes = {"minSize": 0, "maxSize": 5}
    before = observe_group(*live(scalingConfig={**sizes, "desiredSize": 0}), ZONES)
    after = observe_group(*live(scalingConfig={**sizes, "desiredSize": 4}), ZONES)

    assert before.fields == after.fields
    assert (before.nodes, after.nodes) == (0, 4)


def test_pool_when_made_without_a_template_has_its_own_disk_and_type() -> None:
    group = {"nodegroupName": "old", "instanceTypes": ["g4dn.xlarge"], "diskSize": 20, "amiType": "AL2_x86_64_GPU"}

    observed = observe_group(group, {}, {})

    assert (observed.owner, observed.instance_type, observed.fields[DISK_SIZE]) == ("", "g4dn.xlarge", 20)


def test_type_when_only_the_template_has_it_is_read_there() -> None:
    observed = observe_group({"nodegroupName": "cb"}, {"InstanceType": "p5.48xlarge"}, {})

    assert observed.instance_type == observed.fields[INSTANCE_TYPE] == "p5.48xlarge"


def test_taints_when_read_are_spelt_as_kubernetes_does() -> None:
    taints = [{"key": "a", "effect": "NO_EXECUTE"}, {"key": "b", "value": "c", "effect": "PREFER_NO_SCHEDULE"}]

    observed = observe_group(*live(taints=taints), ZONES)

    assert observed.effective_taints == (Taint("a", "", "NoExecute"), Taint("b", "c", "PreferNoSchedule"))


def test_sharing_when_bottlerocket_is_read_from_the_user_data() -> None:
    sharing = Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2, rename=True))
    desired = desired_of(eks_target(image="bottlerocket", sharing=sharing))
    params = cast("dict[str, Json]", desired.create.params)

    observed = observe_group(params["nodegroup"], cast("Json", params["launchTemplate"]["LaunchTemplateData"]), {})

    assert diff_fields(desired.fields, observed.fields) == ()
    assert observed.fields[MIG_PROFILE] == "1g.5gb"


def test_sharing_when_the_user_data_was_changed_is_a_difference() -> None:
    desired = desired_of(eks_target(image="bottlerocket", sharing=Sharing(MigCut("1g.5gb", "single"))))
    params = cast("dict[str, Json]", desired.create.params)

    observed = observe_group(params["nodegroup"], {}, {})

    assert [str(change.field) for change in diff_fields(desired.fields, observed.fields)] == ["sharing.mig.profile"]


def test_leftover_when_read_is_a_failed_pool_of_ours_without_nodes() -> None:
    tags = {
        "gpukube.io/owner": "ml",
        "gpukube.io/pool": "p",
        "gpukube.io/nodegroup": "g",
        "gpukube.io/cluster": "train",
    }
    template = {
        "LaunchTemplateName": "gpukube/train/g",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }

    observed = observe_leftover(template)

    assert (observed.name, observed.owner, observed.pool) == ("g", "ml", "p")
    assert (observed.state, observed.status, observed.nodes) == ("failed", LEFTOVER, 0)
