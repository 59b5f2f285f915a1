"""Updates that meet somebody else's, or that a killed run left half-done: nothing is overwritten, nothing piles up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import DISK_SIZE, FieldPath
from gpukube.core.plan import plan_pool
from gpukube.core.values import Disk, Nodes, Operation, Settings, Taint
from gpukube.errors import AccessError, Busy, CloudError, Conflict, GpukubeError, Moved
from gpukube_eks import EksProvider
from gpukube_eks.live.access import AwsClients, Identity
from gpukube_eks.pool.fields import UPDATE_CONFIG, UPDATE_VERSION
from gpukube_sandbox import daemon
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.core.values import Desired, Observed, Progress, Request, Target
    from gpukube_eks.live.client import EksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Follow = Callable[[EksCloud, Operation], Progress]

PROVIDER = EksProvider()
T4 = eks_target("g4dn.xlarge", labels={"team": "vision"}, tags={"cost": "a"}, disk=Disk(100, "gp3"))
RANGED = replace(T4, nodes=Nodes(1, 1, 3, autoscaled=True))
BIGGER = replace(T4, disk=Disk(200, "gp3"))
OWN = {"updateConfig": {"maxUnavailable": 2}}


@pytest.fixture
def aws(sandbox: SandboxInfo) -> Iterator[AwsClients]:
    """Somebody else's client."""
    clients = AwsClients(Identity(dummy=ACCOUNT, secret=sandbox.secret), REGION, sandbox.aws_url, Settings())
    yield clients
    clients.close()


def find(cloud: EksCloud) -> Observed:
    found = cloud.pool("a100mig")
    assert found is not None
    return found


def make(cloud: EksCloud, follow: Follow, target: Target = T4) -> None:
    assert follow(cloud, cloud.send(cloud.complete(desired_of(target)).create)).done


def requests(cloud: EksCloud, desired: Desired) -> tuple[Request, ...]:
    observed = find(cloud)
    return PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))


def versions(aws: AwsClients) -> int:
    answer = aws.ec2.describe_launch_template_versions(LaunchTemplateName="gpukube/train/a100mig")
    return len(cast("list[object]", answer["LaunchTemplateVersions"]))


def code_of(error: GpukubeError) -> str:
    return error.diagnostics[0].code


MEDDLING: Mapping[str, tuple[Target, Target, dict[str, object]]] = {
    "the label": (T4, replace(T4, labels={"team": "speech"}), {"labels": {"team": "robots"}}),
    "the label, gone": (T4, replace(T4, labels={"team": "speech"}), {"labels": {}}),
    "the taint": (
        T4,
        replace(T4, taints=()),
        {"taints": [{"key": "nvidia.com/gpu", "value": "x", "effect": "NO_SCHEDULE"}]},
    ),
    "a taint of that key and effect": (
        T4,
        replace(T4, taints=(*T4.taints, Taint("dedicated", "vision", "NoSchedule"))),
        {"taints": [{"key": "dedicated", "value": "robots", "effect": "NO_SCHEDULE"}]},
    ),
    "the tag": (T4, replace(T4, tags={"cost": "b"}), {"tags": {"cost": "c"}}),
    "a bound": (
        RANGED,
        replace(RANGED, nodes=Nodes(1, 1, 5, autoscaled=True)),
        {"scalingConfig": {"minSize": 1, "maxSize": 4, "desiredSize": 1}},
    ),
    "the size, below the new bound": (
        RANGED,
        replace(RANGED, nodes=Nodes(1, 0, 2, autoscaled=True)),
        {"scalingConfig": {"minSize": 1, "maxSize": 3, "desiredSize": 3}},
    ),
    "a setting beside ours": (
        replace(T4, native=OWN),
        replace(T4, native={"updateConfig": {"maxUnavailable": 3}}),
        {"updateConfig": {"maxUnavailable": 2, "updateStrategy": "MINIMAL"}},
    ),
    "the release": (T4, BIGGER, {"releaseVersion": "1.34.2-20260801"}),
    "all of it": (T4, BIGGER, {}),
}


@pytest.mark.parametrize("name", MEDDLING)
def test_update_when_the_same_thing_moved_is_not_sent(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, name: str
) -> None:
    before, after, meddling = MEDDLING[name]
    make(cloud, follow, before)
    request = requests(cloud, desired_of(after))[0]
    change = {"cluster": "train", "pool": "a100mig", "delete": not meddling, "set": meddling}
    daemon.call(sandbox, "POST", "tamper", change)
    sent = len(posts(sandbox))

    with pytest.raises(Conflict) as caught:
        cloud.send(request)

    assert isinstance(caught.value, Moved)
    assert len(posts(sandbox)) == sent


def posts(sandbox: SandboxInfo) -> list[object]:
    return [entry for entry in daemon.requests_since(sandbox) if "/update" in str(entry["path"])]


def test_update_when_another_thing_moved_is_sent_and_leaves_it(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    make(cloud, follow)
    (request,) = requests(cloud, desired_of(replace(T4, labels={"team": "speech"})))
    daemon.tamper(sandbox, "train", "a100mig", labels={**find(cloud).labels, "other": "x"})

    assert follow(cloud, cloud.send(request)).done

    assert (find(cloud).labels["team"], find(cloud).labels["other"]) == ("speech", "x")


def test_update_when_sent_twice_happens_once(cloud: EksCloud, follow: Follow) -> None:
    make(cloud, follow)
    (request,) = requests(cloud, desired_of(BIGGER))
    assert follow(cloud, cloud.send(request)).done
    once = find(cloud)

    with pytest.raises(Conflict) as caught:
        cloud.send(request)

    assert isinstance(caught.value, Moved)
    assert find(cloud) == once


@pytest.mark.parametrize("busy", ["UPDATING", "DELETING", "CREATING"])
@pytest.mark.parametrize("target", [BIGGER, replace(T4, labels={})], ids=["version", "config"])
def test_update_when_the_group_is_busy_waits_and_makes_nothing(  # noqa: PLR0913, PLR0917 - fixtures and two columns
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, aws: AwsClients, busy: str, target: Target
) -> None:
    make(cloud, follow)
    (request,) = requests(cloud, desired_of(target))
    daemon.tamper(sandbox, "train", "a100mig", status=busy)

    with pytest.raises(Conflict) as caught:
        cloud.send(request)

    assert isinstance(caught.value, Busy)
    assert versions(aws) == 1


@pytest.mark.parametrize("code", ["ResourceInUseException", "RequestLimitExceeded"])
def test_update_when_eks_says_busy_is_the_code_that_the_engine_waits_for(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, code: str
) -> None:
    make(cloud, follow)
    daemon.add_fault(sandbox, "operation", pool="a100mig", code=code)

    with pytest.raises(Conflict) as caught:
        cloud.send(requests(cloud, desired_of(replace(T4, labels={})))[0])

    assert isinstance(caught.value, Busy)


@pytest.mark.parametrize("status", ["CREATE_FAILED", "DELETE_FAILED", "DEGRADED"])
def test_update_when_waiting_would_not_help_says_so_and_why(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, status: str
) -> None:
    make(cloud, follow)
    daemon.configure(sandbox, eksDegradedBusy=True)
    issue = {"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity", "resourceIds": []}
    daemon.tamper(sandbox, "train", "a100mig", status=status, issues=[issue])

    with pytest.raises(CloudError) as caught:
        cloud.send(requests(cloud, desired_of(replace(T4, labels={})))[0])

    assert code_of(caught.value) == "unchangeable"
    assert "InsufficientInstanceCapacity" in caught.value.diagnostics[0].why


def test_update_when_a_degraded_group_takes_it_is_done(sandbox: SandboxInfo, cloud: EksCloud, follow: Follow) -> None:
    make(cloud, follow)
    daemon.tamper(sandbox, "train", "a100mig", status="DEGRADED")

    assert follow(cloud, cloud.send(requests(cloud, desired_of(replace(T4, labels={})))[0])).done

    assert "team" not in find(cloud).labels


def test_update_when_not_allowed_names_the_action(sandbox: SandboxInfo, cloud: EksCloud, follow: Follow) -> None:
    make(cloud, follow)
    daemon.add_fault(sandbox, "operation", pool="a100mig", code="AccessDeniedException")

    with pytest.raises(AccessError) as caught:
        cloud.send(requests(cloud, desired_of(replace(T4, labels={})))[0])

    assert "eks:UpdateNodegroupConfig" in caught.value.diagnostics[0].why


def test_version_when_killed_between_the_two_calls_is_found_again(
    cloud: EksCloud, follow: Follow, aws: AwsClients
) -> None:
    make(cloud, follow)
    (request,) = requests(cloud, desired_of(BIGGER))
    template = cast("Mapping[str, object]", request.params["launchTemplate"])
    left = cloud._templates.follow(template, "train-eks/a100mig")

    (again,) = requests(cloud, desired_of(BIGGER))
    assert again == request
    assert follow(cloud, cloud.send(again)).done

    native = cast("Mapping[str, Mapping[str, str]]", find(cloud).native)
    assert native["launchTemplate"]["version"] == left
    assert versions(aws) == 2


def test_version_when_it_fails_again_and_again_makes_one_version(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, aws: AwsClients
) -> None:
    make(cloud, follow)
    for _ in range(3):
        daemon.add_fault(sandbox, "operation", pool="a100mig", kind="VersionUpdate", code="PodEvictionFailure")
        assert follow(cloud, cloud.send(requests(cloud, desired_of(BIGGER))[0])).error is not None

    assert versions(aws) == 2
    assert find(cloud).fields[DISK_SIZE] == 100


def test_version_when_going_to_and_fro_makes_no_more_versions(cloud: EksCloud, follow: Follow, aws: AwsClients) -> None:
    make(cloud, follow)
    for target in (BIGGER, T4, BIGGER, T4):
        assert follow(cloud, cloud.send(requests(cloud, desired_of(target))[0])).done

    assert versions(aws) == 2
    native = cast("Mapping[str, Mapping[str, str]]", find(cloud).native)
    assert native["launchTemplate"]["version"] == "1"


@pytest.mark.turns(2)
@pytest.mark.parametrize("action", ["drop-before", "drop-after", "status"])
@pytest.mark.parametrize(
    "path", ["/update-version$", "/update-config$", "Action=CreateLaunchTemplateVersion$", "/tags/"]
)
def test_update_when_a_call_is_disturbed_converges(  # noqa: PLR0913, PLR0917 - fixtures and two columns
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, aws: AwsClients, action: str, path: str
) -> None:
    make(cloud, follow)
    desired = desired_of(replace(BIGGER, labels={"team": "speech"}, tags={"cost": "b"}))
    status = {"status": 503} if action == "status" else {}
    daemon.add_fault(sandbox, action, service="aws", method="POST", path=path, **status)

    for _ in range(5):
        changes = requests(cloud, desired)
        if changes:
            assert follow(cloud, cloud.send(changes[0])).done

    assert [fault["struck"] for fault in daemon.list_faults(sandbox)] == [1]
    assert diff_fields(desired.fields, find(cloud).fields) == ()
    assert versions(aws) == 2


def test_version_when_made_follows_what_others_put_into_the_template(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, aws: AwsClients
) -> None:
    make(cloud, follow)
    disk = {"VolumeSize": 100, "VolumeType": "gp3", "Encrypted": True, "Throughput": 500, "DeleteOnTermination": True}
    other = {"DeviceName": "/dev/xvdz", "Ebs": {"VolumeSize": 5}}
    data = {"BlockDeviceMappings": [other, {"DeviceName": "/dev/xvda", "Ebs": disk}], "Monitoring": {"Enabled": True}}
    name = "gpukube/train/a100mig"
    aws.ec2.create_launch_template_version(LaunchTemplateName=name, SourceVersion="1", LaunchTemplateData=data)
    native = cast("Mapping[str, Mapping[str, str]]", find(cloud).native)
    daemon.tamper(sandbox, "train", "a100mig", launchTemplate={**native["launchTemplate"], "version": "2"})

    assert follow(cloud, cloud.send(requests(cloud, desired_of(BIGGER))[0])).done

    answer = aws.ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["3"])
    (version,) = cast("list[Mapping[str, Mapping[str, object]]]", answer["LaunchTemplateVersions"])
    found = version["LaunchTemplateData"]
    disks = {one["DeviceName"]: one["Ebs"] for one in cast("list[dict[str, object]]", found["BlockDeviceMappings"])}
    assert disks == {"/dev/xvda": {**disk, "VolumeSize": 200}, "/dev/xvdz": {"VolumeSize": 5}}
    assert found["Monitoring"] == {"Enabled": True}
    assert found["MetadataOptions"]


def test_version_when_only_the_disk_changes_keeps_the_release(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    make(cloud, follow)
    daemon.tamper(sandbox, "train", "a100mig", releaseVersion="1.34.2-20260101")

    assert follow(cloud, cloud.send(requests(cloud, desired_of(BIGGER))[0])).done

    assert find(cloud).fields[FieldPath.parse("eks.releaseVersion")] == "1.34.2-20260101"


def test_version_when_only_the_release_changes_keeps_the_template(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, aws: AwsClients
) -> None:
    make(cloud, follow, BIGGER)
    daemon.tamper(sandbox, "train", "a100mig", releaseVersion="1.34.2-20260101")
    desired = desired_of(replace(BIGGER, native={"releaseVersion": "1.34.2-20260714"}))

    assert follow(cloud, cloud.send(requests(cloud, desired)[0])).done

    assert diff_fields(desired.fields, find(cloud).fields) == ()
    assert versions(aws) == 1


def test_version_when_the_group_has_no_template_says_so_and_changes_nothing(
    cloud: EksCloud, follow: Follow, aws: AwsClients
) -> None:
    system = aws.eks.describe_nodegroup(clusterName="train", nodegroupName="system")
    group = cast("Mapping[str, object]", system["nodegroup"])
    sizes = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
    given = {"subnets": group["subnets"], "nodeRole": group["nodeRole"], "instanceTypes": ["g4dn.xlarge"]}
    place = {"clusterName": "train", "nodegroupName": "a100mig", "amiType": "AL2023_x86_64_NVIDIA"}
    aws.eks.create_nodegroup(**place, **given, scalingConfig=sizes)
    assert follow(cloud, Operation("a100mig", "create")).done
    desired = desired_of(BIGGER)
    change = tuple(c for c in diff_fields(desired.fields, find(cloud).fields) if c.field == DISK_SIZE)

    (request,) = PROVIDER.requests.update(desired, find(cloud), change)
    with pytest.raises(CloudError) as caught:
        cloud.send(request)

    assert code_of(caught.value) == "launch-template"
    assert find(cloud).status == "ACTIVE"


def test_calls_when_all_is_changed_go_tags_then_configuration_then_version(cloud: EksCloud, follow: Follow) -> None:
    make(cloud, follow)
    desired = desired_of(replace(BIGGER, labels={}, tags={"cost": "b"}))

    assert [one.operation for one in requests(cloud, desired)] == ["tag_resource", UPDATE_CONFIG, UPDATE_VERSION]


def test_pool_when_deleted_is_deleting_and_then_planned_again(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    make(cloud, follow)
    daemon.configure(sandbox, speed=0.01)
    operation = cloud.send(PROVIDER.requests.delete(CLUSTER, find(cloud)))

    assert (find(cloud).state, find(cloud).status) == ("deleting", "DELETING")
    assert plan_pool(PROVIDER, desired_of(T4), cloud.pools()).action == "create"

    daemon.configure(sandbox, speed=4000)
    assert follow(cloud, operation).done
    assert cloud.pool("a100mig") is None


def test_pool_when_read_alone_costs_one_call(sandbox: SandboxInfo, cloud: EksCloud, follow: Follow) -> None:
    make(cloud, follow)
    cloud.pools()
    seen = len(daemon.requests_since(sandbox))

    cloud.pool("a100mig")

    assert len(daemon.requests_since(sandbox)) == seen + 1


def test_pool_when_only_its_template_is_left_is_shown_as_in_the_list(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    make(cloud, follow)
    daemon.tamper(sandbox, "train", "a100mig", delete=True)

    assert cloud.pool("a100mig") == next(one for one in cloud.pools() if one.name == "a100mig")


SIZES: Mapping[str, tuple[Target, Nodes, dict[str, int]]] = {
    "a fixed one": (T4, Nodes(3, 3, 3, autoscaled=False), {"minSize": 3, "maxSize": 3, "desiredSize": 3}),
    "to nothing": (T4, Nodes(0, 0, 0, autoscaled=False), {"minSize": 0, "maxSize": 1, "desiredSize": 0}),
    "bounds around the size": (RANGED, Nodes(9, 0, 5, autoscaled=True), {"minSize": 0, "maxSize": 5, "desiredSize": 1}),
    "a bound above the size": (RANGED, Nodes(2, 2, 3, autoscaled=True), {"minSize": 2, "maxSize": 3, "desiredSize": 2}),
    "the same": (T4, Nodes(1, 1, 1, autoscaled=False), {"minSize": 1, "maxSize": 1, "desiredSize": 1}),
}


@pytest.mark.parametrize("name", SIZES)
def test_scale_when_asked_sets_the_size_or_leaves_it_to_the_autoscaler(
    cloud: EksCloud, follow: Follow, name: str
) -> None:
    target, size, expected = SIZES[name]
    make(cloud, follow, target)

    assert follow(cloud, cloud.send(PROVIDER.requests.scale(CLUSTER, find(cloud), size))).done

    assert find(cloud).native["scalingConfig"] == expected
