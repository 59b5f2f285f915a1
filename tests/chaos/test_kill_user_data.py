"""Killed at any change while a node group is replaced, its user data of others is still there in the end.

In between nothing but a launch template has it: the old group is deleted before the new one exists.
"""

from __future__ import annotations

import base64
from contextlib import closing
from typing import TYPE_CHECKING, Final

import pytest

from gpukube.core.jsontree import tree
from gpukube.core.values import Settings
from gpukube_eks.live.access import AwsClients, Identity
from gpukube_sandbox import daemon
from tests.chaos.changes import CHANGES, CLOUDS, prepare, start_change
from tests.chaos.clouds import templates
from tests.chaos.test_kill_changes import BOTH, MOST_CHANGES, Killer
from tests.live_groups import user_data_of, wait_until_active
from tests.unit.gpukube_eks.samples import ACCOUNT, REGION
from tests.unit.gpukube_eks.user_data import SCRIPT, mime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.changes import Change
    from tests.chaos.stage import Stage

EKS: Final = CLOUDS["eks"]
THEIRS: Final = mime(SCRIPT)


@pytest.fixture
def aws(stage: Stage) -> Iterator[AwsClients]:
    """Somebody else's client."""
    identity = Identity(dummy=ACCOUNT, secret=stage.info.secret)
    with closing(AwsClients(identity, REGION, stage.info.aws_url, Settings())) as clients:
        yield clients


def write_user_data(aws: AwsClients, group: str, user_data: str, template: str) -> None:
    """Move a group to a new version of its launch template that has this user data too, as its owner does."""
    added = aws.ec2.create_launch_template_version(
        LaunchTemplateName=template,
        SourceVersion="$Latest",
        LaunchTemplateData={"UserData": base64.b64encode(user_data.encode()).decode()},
    )
    version = tree(added, "LaunchTemplateVersion")
    own = {"name": template, "version": str(version["VersionNumber"])}
    aws.eks.update_nodegroup_version(clusterName="train", nodegroupName=group, launchTemplate=own)
    wait_until_active(aws, group)


@pytest.mark.turns(2)
@pytest.mark.parametrize("how", ["recreate", "surge"])
def test_user_data_of_others_when_replacing_is_killed_at_each_change_then_is_still_there(
    stage: Stage, aws: AwsClients, how: str
) -> None:
    change = CHANGES["eks", how]
    prepare(stage, EKS, change)
    write_user_data(aws, EKS.pool, THEIRS, f"gpukube/train/{EKS.pool}")
    killer = Killer(stage, EKS, change)
    struck = 0
    while killer.strike(BOTH[struck % 2]):
        struck += 1
        assert struck <= 3 * MOST_CHANGES

    assert struck
    require_kept(stage, aws, change)


def require_kept(stage: Stage, aws: AwsClients, change: Change) -> None:
    """The pool is replaced, and its nodes start with the same user data."""
    ended = start_change(stage, EKS, change).wait()
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    name = EKS.pool + change.suffix
    assert stage.pools() == {**EKS.others, name: change.nodes}
    assert user_data_of(aws, name) == THEIRS


def test_user_data_of_others_when_an_adopted_pool_is_recreated_and_killed_at_each_change_then_is_still_there(
    stage: Stage, aws: AwsClients
) -> None:
    """The group's launch template is somebody else's: no later run would find it without the group."""
    change = CHANGES["eks", "recreate"]
    prepare(stage, EKS, change, made=False)
    daemon.add_eks_cluster(stage.info, ACCOUNT, REGION, "train")
    make_theirs(aws)
    adopt = ("pool", "apply", "--adopt", "--yes", "--allow-disruption", "-f", str(stage.home / "before.yaml"))
    for _ in range(2):  # adopting changes the marks only, a second run the rest
        adopted = stage.run(*adopt)
        assert adopted.code == 0, adopted.said
    assert user_data_of(aws, EKS.pool) == THEIRS

    killer = Killer(stage, EKS, change)
    struck = 0
    while killer.strike(BOTH[struck % 2]):
        struck += 1
        assert struck <= 3 * MOST_CHANGES

    assert struck
    require_kept(stage, aws, change)
    assert templates(stage) == {f"gpukube/train/{EKS.pool}": 1, "theirs": 1}
    deleted = stage.run("pool", "delete", EKS.pool, "--yes", "-f", str(stage.home / "after.yaml"))
    assert deleted.code == 0, deleted.said
    assert templates(stage) == {"theirs": 1}  # what was kept for this group goes with it


def make_theirs(aws: AwsClients) -> None:
    """Make the pool as a person would, with a launch template of their own."""
    data = {"UserData": base64.b64encode(THEIRS.encode()).decode()}
    aws.ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData=data)
    beside = tree(aws.eks.describe_nodegroup(clusterName="train", nodegroupName="system"), "nodegroup")
    aws.eks.create_nodegroup(
        clusterName="train",
        nodegroupName=EKS.pool,
        launchTemplate={"name": "theirs", "version": "1"},
        amiType="AL2023_x86_64_NVIDIA",
        instanceTypes=["g4dn.xlarge"],
        scalingConfig={"minSize": 2, "maxSize": 2, "desiredSize": 2},
        nodeRole=beside["nodeRole"],
        subnets=beside["subnets"],
    )
    wait_until_active(aws, EKS.pool)
