"""What an update of a live node group does to its nodes, and what is left of one that fails."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import NAME, Aws, nodes
from sandbox_tests.waiting import wait_for
from sandbox_tests.watches import Nodes

if TYPE_CHECKING:
    import httpx

GPU = "nvidia.com/gpu"
FOR_EVER_S = 1e6
"""Minutes of the wall at the usual speed, an instant at the other."""
FAST = 1e8
BOTTLEROCKET = {"amiType": "BOTTLEROCKET_x86_64_NVIDIA"}
FOUR = (
    '[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = "time-slicing"\n'
    "[settings.kubelet-device-plugins.nvidia.time-slicing]\nreplicas = 4\nrename-by-default = false\n"
)
THREE = {"minSize": 1, "maxSize": 3, "desiredSize": 1}


def next_version(aws: Aws, template: dict[str, Any], user_data: str) -> dict[str, Any]:
    """Add a version that follows the first one, with other user data."""
    data: dict[str, Any] = {"UserData": base64.b64encode(user_data.encode()).decode()}
    made = aws.client("ec2").create_launch_template_version(
        LaunchTemplateId=template["id"], SourceVersion="1", LaunchTemplateData=data
    )
    return {"id": template["id"], "version": str(made["LaunchTemplateVersion"]["VersionNumber"])}


def send_version(aws: Aws, name: str, **members: object) -> str:
    sent: str = aws.eks.update_nodegroup_version(clusterName=NAME, nodegroupName=name, **members)["update"]["id"]
    return sent


def names(kube: httpx.Client, group: str = "gpu") -> set[str]:
    return {node["metadata"]["name"] for node in nodes(kube, group)}


def shares(kube: httpx.Client, group: str = "gpu") -> list[str]:
    return [node["status"]["allocatable"].get(GPU, "0") for node in nodes(kube, group)]


def test_version_when_user_data_changes_then_new_nodes_share_by_it(aws: Aws, kube: httpx.Client) -> None:
    template = aws.template()
    aws.create("gpu", **BOTTLEROCKET, launchTemplate=template)
    wait_for(lambda: shares(kube) == ["1"])
    before = names(kube)

    update = aws.ended("gpu", send_version(aws, "gpu", launchTemplate=next_version(aws, template, FOUR)))

    assert update["status"] == "Successful"
    wait_for(lambda: shares(kube) == ["4"])
    assert not before & names(kube)
    (node,) = nodes(kube, "gpu")
    assert node["metadata"]["labels"]["eks.amazonaws.com/sourceLaunchTemplateVersion"] == "2"


@pytest.mark.parametrize("reason", ["injected", "the node cannot start", "not TOML"])
def test_version_when_it_fails_then_nodes_stay_and_later_ones_are_as_before(
    aws: Aws, kube: httpx.Client, reason: str
) -> None:
    template = aws.template()
    aws.create("gpu", **BOTTLEROCKET, launchTemplate=template, scalingConfig=THREE)
    before = names(kube)
    bad = {"the node cannot start": FOUR.replace("4", "1"), "not TOML": "hello"}.get(reason, FOUR)
    if reason == "injected":
        daemon.add_fault(aws.info, "operation", kind="VersionUpdate", code="NodeCreationFailure")

    update = aws.ended("gpu", send_version(aws, "gpu", launchTemplate=next_version(aws, template, bad)))

    assert (update["status"], update["errors"][0]["errorCode"]) == ("Failed", "NodeCreationFailure")
    assert (aws.group("gpu")["status"], aws.group("gpu")["launchTemplate"]["version"]) == ("ACTIVE", "1")
    assert names(kube) == before
    aws.update("gpu", scalingConfig={"desiredSize": 2})
    wait_for(lambda: shares(kube) == ["1", "1"])


@pytest.mark.parametrize(("strategy", "sizes"), [("DEFAULT", [1, 2, 1]), ("MINIMAL", [1, 0, 1])])
def test_version_when_it_runs_then_by_its_strategy(
    aws: Aws, kube: httpx.Client, strategy: str, sizes: list[int]
) -> None:
    settings = {"maxUnavailable": 1, "updateStrategy": strategy}
    aws.create("gpu", launchTemplate=aws.template(), updateConfig=settings)
    history = Nodes(kube, "eks.amazonaws.com/nodegroup=gpu")

    aws.ended("gpu", send_version(aws, "gpu"))

    assert history.sizes() == sizes


def test_version_when_nodes_are_still_to_come_then_they_come_after_it(aws: Aws, kube: httpx.Client) -> None:
    aws.create("gpu", launchTemplate=aws.template(), scalingConfig=THREE)
    daemon.configure(aws.info, eksPace={"launch_s": FOR_EVER_S})
    aws.update("gpu", scalingConfig={"desiredSize": 3})
    version = send_version(aws, "gpu")
    daemon.configure(aws.info, eksPace={"launch_s": 400.0})

    aws.ended("gpu", version)

    wait_for(lambda: len(nodes(kube, "gpu")) == 3)


@pytest.mark.parametrize("release", ["1.34.2-20250101", "1.34.1-20260714", "1.33.9-20260714"])
def test_version_when_the_release_is_older_then_refused(aws: Aws, release: str) -> None:
    aws.create("gpu", launchTemplate=aws.template())

    with pytest.raises(aws.eks.exceptions.InvalidParameterException, match=release):
        send_version(aws, "gpu", releaseVersion=release)


def test_config_when_a_node_still_boots_then_it_comes_with_the_new_labels(aws: Aws, kube: httpx.Client) -> None:
    taint = {"key": "a", "value": "b", "effect": "NO_SCHEDULE"}
    aws.create("gpu", scalingConfig=THREE)
    daemon.configure(aws.info, eksPace={"launch_s": 0.0, "boot_s": FOR_EVER_S})
    aws.update("gpu", scalingConfig={"desiredSize": 2})
    wait_for(lambda: len(machines(aws)) == 2)
    assert len(nodes(kube, "gpu")) == 1

    change = {"labels": {"addOrUpdateLabels": {"team": "x"}}, "taints": {"addOrUpdateTaints": [taint]}}
    update = aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="gpu", **change)["update"]
    daemon.configure(aws.info, speed=FAST)
    assert aws.ended("gpu", update["id"])["status"] == "Successful"

    assert len(nodes(kube, "gpu")) == 2
    for node in nodes(kube, "gpu"):
        assert node["metadata"]["labels"]["team"] == "x"
        assert "a" in {one["key"] for one in node["spec"]["taints"]}


def machines(aws: Aws) -> list[str]:
    """Instances of the group, registered or not."""
    clusters: Any = daemon.status(aws.info)["clusters"]
    return next(pool["nodes"] for pool in clusters[0]["pools"] if pool["name"] == "gpu")


def test_config_when_members_of_a_structure_are_left_out_then_they_are_lost(aws: Aws) -> None:
    aws.create(
        "gpu", updateConfig={"maxUnavailable": 1, "updateStrategy": "MINIMAL"}, nodeRepairConfig={"enabled": True}
    )

    aws.update(
        "gpu", updateConfig={"maxUnavailablePercentage": 50}, nodeRepairConfig={"maxParallelNodesRepairedCount": 1}
    )

    group = aws.group("gpu")
    assert group["updateConfig"] == {"maxUnavailablePercentage": 50, "updateStrategy": "DEFAULT"}
    assert group["nodeRepairConfig"] == {"maxParallelNodesRepairedCount": 1}


def test_config_when_taints_become_too_many_then_refused(aws: Aws) -> None:
    taints = [{"key": f"t{number}", "value": "x", "effect": "NO_SCHEDULE"} for number in range(50)]
    aws.create("gpu", taints=taints)

    with pytest.raises(aws.eks.exceptions.InvalidParameterException):
        aws.update("gpu", taints={"addOrUpdateTaints": [{"key": "one-more", "value": "x", "effect": "NO_EXECUTE"}]})

    assert len(aws.group("gpu")["taints"]) == 50


def test_update_when_slow_then_the_group_is_updating_all_the_time(aws: Aws) -> None:
    daemon.add_fault(aws.info, "operation", pool="system", kind="ConfigUpdate", seconds=FOR_EVER_S)
    change = {"labels": {"addOrUpdateLabels": {"a": "b"}}}

    update = aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="system", **change)["update"]

    assert (update["status"], aws.group("system")["status"]) == ("InProgress", "UPDATING")
    daemon.configure(aws.info, speed=FAST)
    assert aws.ended("system", update["id"])["status"] == "Successful"
    assert aws.group("system")["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("code", "status", "text"),
    [
        ("ResourceInUseException", 409, "not in Active State"),
        ("AccessDeniedException", 403, "eks:UpdateNodegroupConfig"),
        ("RequestLimitExceeded", 400, "Request limit exceeded"),
    ],
)
def test_update_when_refused_at_once_then_worded_as_the_service_does(
    aws: Aws, code: str, status: int, text: str
) -> None:
    daemon.add_fault(aws.info, "operation", pool="system", kind="ConfigUpdate", code=code)

    with pytest.raises(aws.eks.exceptions.ClientError, match=text) as caught:
        aws.update("system", labels={"addOrUpdateLabels": {"a": "b"}})

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert "a" not in aws.group("system").get("labels", {})
