"""Live node groups of the emulated EKS, as their owner sees them through the SDK."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from gpukube.core.jsontree import text, tree, trees
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube_eks.live.access import AwsClients


def wait_until_active(aws: AwsClients, group: str) -> None:
    """Wait until EKS has finished with a group."""

    def is_active() -> bool:
        found = aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group)
        return text(found, "nodegroup", "status") == "ACTIVE"

    wait_for(is_active, lambda: aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group))


def user_data_of(aws: AwsClients, group: str) -> str:
    """Return the user data that the nodes of a group start with."""
    own = tree(aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group), "nodegroup", "launchTemplate")
    found = aws.ec2.describe_launch_template_versions(LaunchTemplateId=str(own["id"]), Versions=[str(own["version"])])
    (version,) = trees(found, "LaunchTemplateVersions")
    return base64.b64decode(text(version, "LaunchTemplateData", "UserData")).decode()
