"""The life of a node group through the real SDK: created, read back, refused, repaired, deleted; faults on the way."""

from __future__ import annotations

import base64
import ssl
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import httpx
import pytest
import yaml

from gpukube.core.diff import diff_fields
from gpukube.core.fields import DISK_SIZE
from gpukube.core.plan import plan_pool
from gpukube.core.values import Capacity, Disk, Nodes, Operation, Settings, Taint
from gpukube.errors import (
    AccessError,
    Busy,
    CapacityError,
    CloudError,
    Conflict,
    GpukubeError,
    NotAllowed,
    NotOffered,
    QuotaError,
    SpecError,
    StockOut,
)
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from gpukube_eks.pool.translate import LEFTOVER
from gpukube_sandbox import daemon
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Desired, Observed, Progress, Target
    from gpukube_eks.live.client import EksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Follow = Callable[[EksCloud, Operation], Progress]
    Connect = Callable[..., EksCloud]

PROVIDER = EksProvider()
T4 = "g4dn.xlarge"
SLICED = Sharing(None, Slicing("time-slicing", 4, fail_requests_greater_than_one=True))
CUT = Sharing(MigCut("1g.5gb", "single"))


def find(cloud: EksCloud, name: str = "a100mig") -> Observed:
    (found,) = [pool for pool in cloud.pools() if pool.name == name]
    return found


def code_of(error: GpukubeError | None) -> str:
    assert error is not None
    return error.diagnostics[0].code


def wanted(cloud: EksCloud, target: Target) -> Desired:
    return cloud.complete(desired_of(target))


def templates(cloud: EksCloud) -> list[str]:
    return [str(template["LaunchTemplateName"]) for template in cloud._templates.listed()]


TARGETS = {
    "whole GPUs": eks_target(T4),
    "MIG": eks_target(sharing=CUT),
    "MIG mixed": eks_target(sharing=Sharing(MigCut("2g.10gb", "mixed"))),
    "sliced": eks_target(T4, sharing=SLICED),
    "MIG on Bottlerocket": eks_target(image="bottlerocket", sharing=CUT),
    "MIG, sliced on Bottlerocket": eks_target(
        image="bottlerocket", sharing=Sharing(CUT.mig, Slicing("time-slicing", 2, rename=True))
    ),
    "MPS on Bottlerocket": eks_target(T4, image="bottlerocket", sharing=Sharing(None, Slicing("mps", 8))),
    "arm64": eks_target("g5g.xlarge"),
    "a fraction of a GPU": eks_target("g6f.large"),
    "Spot, autoscaled": eks_target(T4, capacity=Capacity("spot"), nodes=Nodes(1, 1, 3, autoscaled=True)),
    "from zero": eks_target(T4, nodes=Nodes(0, 0, 3, autoscaled=True)),
    "no nodes": eks_target(T4, nodes=Nodes(0, 0, 0, autoscaled=False)),
    "zones, disk, tags": eks_target(
        T4, zones=("us-east-1c", "us-east-1a"), disk=Disk(256, "gp2"), tags={"cost": "a b"}
    ),
    "own taints and labels, protected": eks_target(
        T4, taints=(Taint("dedicated", "x", "NoExecute"),), gpu_taint=False, labels={"team": "x"}, protect=True
    ),
    "native members": eks_target(
        T4, native={"updateConfig": {"maxUnavailablePercentage": 50}, "nodeRepairConfig": {"enabled": True}}
    ),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", TARGETS)
def test_pool_when_created_shows_no_difference_and_leaves_nothing(cloud: EksCloud, follow: Follow, name: str) -> None:
    desired = wanted(cloud, TARGETS[name])

    assert follow(cloud, cloud.send(desired.create)).done
    observed = find(cloud)
    assert diff_fields(desired.fields, observed.fields) == ()
    assert (observed.state, observed.owner, observed.protected) == ("ready", "ml-platform", desired.target.protect)
    assert templates(cloud) == ["gpukube/train/a100mig"]

    assert follow(cloud, cloud.send(PROVIDER.requests.delete(CLUSTER, observed))).done
    assert [pool.name for pool in cloud.pools()] == ["system"]
    assert templates(cloud) == []


def test_identify_when_all_is_well_says_where(cloud: EksCloud) -> None:
    facts = cloud.identify()

    assert (facts.location, facts.ready, facts.status) == (REGION, True, "ACTIVE")
    assert facts.kubernetes_version.startswith("1.")


def test_identify_when_the_role_is_of_another_account_is_refused(connect: Connect) -> None:
    role = "arn:aws:iam::999999999999:role/gpukube"
    cluster = replace(CLUSTER, identity={**CLUSTER.identity, "roleArn": role})

    with pytest.raises(AccessError, match=f"to account 999999999999, not {ACCOUNT}"):
        connect(cluster).identify()


def test_identify_when_a_role_is_assumed_is_that_role(connect: Connect, sandbox: SandboxInfo) -> None:
    cluster = replace(CLUSTER, identity={**CLUSTER.identity, "roleArn": f"arn:aws:iam::{ACCOUNT}:role/gpukube"})

    assert connect(cluster).identify().ready
    assert "AssumeRole" in str(daemon.requests_since(sandbox))


ENDED = {"service": "aws", "status": 403, "code": "ExpiredTokenException"}


@pytest.mark.parametrize(
    "strike",
    [
        {"method": "GET", "path": r"/clusters/train\?"},
        {"code": "ExpiredToken", "path": "Action=CreateLaunchTemplate$"},
        {"method": "POST", "path": r"/clusters/train/node-groups\?"},
    ],
    ids=["first", "EC2", "create"],
)
def test_call_when_its_keys_ended_then_made_once_more_with_new_ones(
    connect: Connect, sandbox: SandboxInfo, strike: dict[str, str], follow: Follow
) -> None:
    cloud = connect(replace(CLUSTER, identity={**CLUSTER.identity, "roleArn": f"arn:aws:iam::{ACCOUNT}:role/gpukube"}))
    cloud.identify()  # assumes the role
    mark = len(daemon.requests_since(sandbox))
    daemon.add_fault(sandbox, "status", **{**ENDED, **strike})

    assert cloud.identify().ready
    assert follow(cloud, cloud.send(wanted(cloud, eks_target(T4)).create)).done
    assert [fault["struck"] for fault in daemon.list_faults(sandbox)] == [1]
    assert str(daemon.requests_since(sandbox, mark)).count("AssumeRole") == 1


@pytest.mark.parametrize(
    ("role", "times"), [("", 1), (f"arn:aws:iam::{ACCOUNT}:role/gpukube", 0)], ids=["given", "role"]
)
def test_call_when_new_keys_are_not_to_be_had_or_no_help_then_an_access_error(
    connect: Connect, sandbox: SandboxInfo, role: str, times: int
) -> None:
    daemon.add_fault(sandbox, "status", times=times, path=r"/clusters/train\?", **ENDED)

    with pytest.raises(AccessError) as caught:
        connect(replace(CLUSTER, identity={**CLUSTER.identity, "roleArn": role})).identify()

    assert code_of(caught.value) == "access"
    assert len([fault for fault in daemon.list_faults(sandbox) if fault["struck"] == (2 if role else 1)]) == 1


@pytest.mark.parametrize("place", [{"name": "nobody"}, {"region": "eu-west-1"}], ids=["name", "region"])
def test_identify_when_there_is_no_such_cluster_says_so(connect: Connect, place: dict[str, str]) -> None:
    identity = {**CLUSTER.identity, "region": place.get("region", REGION)}

    with pytest.raises(CloudError) as caught:
        connect(replace(CLUSTER, name=place.get("name", "train"), identity=identity)).identify()

    assert code_of(caught.value) == "no-cluster"


def test_pools_when_the_pages_are_short_are_all_read(sandbox: SandboxInfo, connect: Connect) -> None:
    daemon.reset(sandbox)
    groups = [{"nodegroupName": f"g{number}"} for number in range(5)]
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, "train", options={"nodeGroups": groups})
    daemon.configure(sandbox, pageSize=2)

    assert [pool.name for pool in connect().pools()] == ["g0", "g1", "g2", "g3", "g4"]


# A creation that stops half-way


def test_create_when_stopped_after_the_template_goes_on_with_it(cloud: EksCloud, follow: Follow) -> None:
    desired = wanted(cloud, eks_target(T4))
    params = cast("Mapping[str, Mapping[str, object]]", desired.create.params)
    cloud._templates.ensure(params["launchTemplate"], "a100mig")

    observed = find(cloud)
    again = PROVIDER.requests.recreate(desired, observed)
    assert (observed.status, observed.owner, observed.pool) == (LEFTOVER, "ml-platform", "a100mig")
    assert again is not None
    assert follow(cloud, cloud.send(again)).done

    native = cast("Mapping[str, Mapping[str, str]]", find(cloud).native)
    assert native["launchTemplate"]["version"] == "1"
    assert diff_fields(desired.fields, find(cloud).fields) == ()


def test_create_when_the_leftover_says_otherwise_uses_a_new_version(cloud: EksCloud, follow: Follow) -> None:
    params = cast("Mapping[str, Mapping[str, object]]", wanted(cloud, eks_target(T4)).create.params)
    cloud._templates.ensure(params["launchTemplate"], "a100mig")
    desired = wanted(cloud, eks_target(T4, disk=Disk(300, "gp3")))

    assert follow(cloud, cloud.send(desired.create)).done

    native = cast("Mapping[str, Mapping[str, str]]", find(cloud).native)
    assert native["launchTemplate"]["version"] == "2"
    assert find(cloud).fields[DISK_SIZE] == 300


def test_delete_when_only_the_template_is_left_takes_it(cloud: EksCloud, follow: Follow) -> None:
    params = cast("Mapping[str, Mapping[str, object]]", wanted(cloud, eks_target(T4)).create.params)
    cloud._templates.ensure(params["launchTemplate"], "a100mig")

    assert follow(cloud, cloud.send(PROVIDER.requests.delete(CLUSTER, find(cloud)))).done

    assert templates(cloud) == []


def test_delete_when_its_end_was_not_seen_leaves_a_template_that_is_found(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    follow(cloud, cloud.send(wanted(cloud, eks_target(T4)).create))
    daemon.tamper(sandbox, "train", "a100mig", delete=True)

    assert find(cloud).status == LEFTOVER


# What fails late


LATE = {
    "InsufficientInstanceCapacity": (StockOut, "capacity"),
    "Unsupported": (NotOffered, "zone-not-offered"),
    "VcpuLimitExceeded": (QuotaError, "quota"),
    "InstanceLimitExceeded": (QuotaError, "quota"),
    "NodeCreationFailure": (CloudError, "node-join"),
    "InsufficientFreeAddresses": (CloudError, "subnet-full"),
    "InternalFailure": (CloudError, "failed"),
}


@pytest.mark.parametrize("code", LATE)
def test_create_when_it_fails_late_is_kept_told_and_made_again(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, code: str
) -> None:
    desired = wanted(cloud, eks_target(T4))
    daemon.add_fault(sandbox, "operation", code=code, kind="create")

    error = follow(cloud, cloud.send(desired.create)).error

    assert (type(error), code_of(error)) == LATE[code]
    observed = find(cloud)
    assert (observed.state, observed.status) == ("failed", "CREATE_FAILED")
    assert observed.failure
    plan = plan_pool(PROVIDER, desired, cloud.pools())
    assert [request.operation for request in plan.requests] == ["delete_nodegroup", "create_nodegroup"]
    for request in plan.requests:
        assert follow(cloud, cloud.send(request)).done
    assert find(cloud).state == "ready"


def test_pool_when_degraded_is_never_made_again(sandbox: SandboxInfo, cloud: EksCloud, follow: Follow) -> None:
    desired = wanted(cloud, eks_target(T4))
    follow(cloud, cloud.send(desired.create))
    issue = {"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity", "resourceIds": []}
    daemon.tamper(sandbox, "train", "a100mig", status="DEGRADED", issues=[issue])

    observed = find(cloud)

    assert (observed.state, observed.status) == ("ready", "DEGRADED")
    assert "InsufficientInstanceCapacity" in observed.failure
    assert plan_pool(PROVIDER, desired, cloud.pools()).requests == ()
    assert isinstance(cloud.poll(Operation("a100mig", "create")).error, CapacityError)


def test_delete_when_it_fails_is_told(sandbox: SandboxInfo, cloud: EksCloud, follow: Follow) -> None:
    follow(cloud, cloud.send(wanted(cloud, eks_target(T4)).create))
    daemon.add_fault(sandbox, "operation", code="NodeTerminationFailure", kind="delete")

    error = follow(cloud, cloud.send(PROVIDER.requests.delete(CLUSTER, find(cloud)))).error

    assert code_of(error) == "drain"


# What is refused at once


EARLY = {
    "RequestLimitExceeded": (Busy, "busy"),
    "ResourcePropagationDelayException": (Busy, "busy"),
    "ResourceLimitExceededException": (QuotaError, "quota"),
    "AccessDeniedException": (NotAllowed, "permission"),
    "UnsupportedAvailabilityZoneException": (NotOffered, "zone-not-offered"),
}


@pytest.mark.parametrize("code", EARLY)
def test_create_when_refused_at_once_is_our_class(sandbox: SandboxInfo, cloud: EksCloud, code: str) -> None:
    daemon.add_fault(sandbox, "operation", code=code, kind="create")

    with pytest.raises(GpukubeError) as caught:
        cloud.send(wanted(cloud, eks_target(T4)).create)

    assert (type(caught.value), code_of(caught.value)) == EARLY[code]
    assert find(cloud).status == LEFTOVER


def test_delete_when_the_group_is_being_made_is_busy(sandbox: SandboxInfo, cloud: EksCloud) -> None:
    daemon.configure(sandbox, speed=0.01)
    cloud.send(wanted(cloud, eks_target(T4)).create)

    with pytest.raises(Conflict) as caught:
        cloud.send(PROVIDER.requests.delete(CLUSTER, find(cloud)))

    assert code_of(caught.value) == "busy"


# Disturbed calls


@pytest.mark.parametrize("action", ["drop-before", "drop-after", "status"])
@pytest.mark.parametrize("path", ["/clusters/train/node-groups$", "Action=CreateLaunchTemplate$"])
def test_create_when_a_call_is_disturbed_the_sdk_tries_again(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow, action: str, path: str
) -> None:
    desired = wanted(cloud, eks_target(T4))
    status = {"status": 503} if action == "status" else {}
    daemon.add_fault(sandbox, action, service="aws", method="POST", path=path, **status)

    assert follow(cloud, cloud.send(desired.create)).done

    assert [fault["struck"] for fault in daemon.list_faults(sandbox)] == [1]
    posts = [entry for entry in daemon.requests_since(sandbox) if entry["method"] == "POST"]
    assert len(posts) > 2
    assert diff_fields(desired.fields, find(cloud).fields) == ()
    assert templates(cloud) == ["gpukube/train/a100mig"]


def test_read_when_throttled_is_tried_again(sandbox: SandboxInfo, cloud: EksCloud) -> None:
    daemon.add_fault(sandbox, "status", service="aws", method="GET", status=429, code="ThrottlingException")

    assert [pool.name for pool in cloud.pools()] == ["system"]


def test_read_when_throttled_for_long_says_so(sandbox: SandboxInfo, cloud: EksCloud) -> None:
    daemon.add_fault(sandbox, "status", service="aws", method="GET", status=429, code="ThrottlingException", times=0)

    with pytest.raises(CloudError) as caught:
        cloud.pools()

    assert code_of(caught.value) == "throttled"


def test_read_when_nobody_answers_says_so(sandbox: SandboxInfo, connect: Connect) -> None:
    daemon.add_fault(sandbox, "hang", service="aws", times=0)

    with pytest.raises(CloudError) as caught:
        connect(timeout_s=0.1).pools()

    assert code_of(caught.value) == "no-answer"


def test_read_when_nothing_listens_says_so() -> None:
    cloud = PROVIDER.connect(CLUSTER, Settings({"eks": "http://127.0.0.1:9"}, sandbox=True))

    with pytest.raises(CloudError) as caught:
        cloud.pools()

    assert code_of(caught.value) == "unreachable"


# Role and subnets


def test_place_when_the_type_is_in_two_zones_is_there_only(cloud: EksCloud) -> None:
    group = cast("Mapping[str, list[str]]", wanted(cloud, eks_target("p4d.24xlarge")).create.params["nodegroup"])

    chosen = cloud._region.subnets(group["subnets"]).values()
    assert {subnet.zone for subnet in chosen} == {"us-east-1a", "us-east-1b"}
    assert not any(subnet.public for subnet in chosen)


def empty_cluster(sandbox: SandboxInfo, connect: Connect, *roles: str) -> EksCloud:
    daemon.reset(sandbox)
    options = {"nodeGroups": [], "roles": list(roles)}
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, "train", options=options)
    return connect()


def test_place_when_the_cluster_has_no_group_is_its_own_subnets_and_the_documented_role(
    sandbox: SandboxInfo, connect: Connect, follow: Follow
) -> None:
    cloud = empty_cluster(sandbox, connect)
    desired = wanted(cloud, eks_target(T4))

    assert follow(cloud, cloud.send(desired.create)).done
    group = cast("Mapping[str, str]", desired.create.params["nodegroup"])
    assert group["nodeRole"].endswith("role/train-eksNodeRole")


def test_place_when_several_roles_are_named_as_documented_asks(sandbox: SandboxInfo, connect: Connect) -> None:
    cloud = empty_cluster(sandbox, connect, "ops-AmazonEKSNodeRole")

    with pytest.raises(SpecError, match="several roles"):
        wanted(cloud, eks_target(T4))


def test_place_when_a_zone_has_no_machine_of_the_type_says_so(cloud: EksCloud) -> None:
    with pytest.raises(SpecError, match=r"p5\.48xlarge is not offered in us-east-1c"):
        wanted(cloud, eks_target("p5.48xlarge", zones=("us-east-1c",)))


# Updates


def test_update_when_it_fails_is_told_although_the_group_is_active(
    sandbox: SandboxInfo, cloud: EksCloud, follow: Follow
) -> None:
    follow(cloud, cloud.send(wanted(cloud, eks_target(T4)).create))
    daemon.add_fault(sandbox, "operation", code="PodEvictionFailure", kind="VersionUpdate")
    desired, observed = desired_of(eks_target(T4, disk=Disk(200, "gp3"))), find(cloud)
    (request,) = PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))

    error = follow(cloud, cloud.send(request)).error

    assert code_of(error) == "drain"
    assert (find(cloud).status, find(cloud).fields) == ("ACTIVE", observed.fields)


# The Kubernetes API


def test_kubeconfig_when_used_is_let_in(cloud: EksCloud) -> None:
    document = yaml.safe_load(cloud.kube_access().kubeconfig)
    cluster = document["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {document['users'][0]['user']['token']}"}

    with httpx.Client(
        verify=ssl.create_default_context(cadata=authority), headers=headers, trust_env=False, timeout=60
    ) as client:
        answer = client.get(f"{cluster['server']}/api/v1/nodes")

    assert answer.status_code == 200
    assert document["current-context"] == document["contexts"][0]["name"]


# Keys


@pytest.mark.usefixtures("sandbox")
def test_requests_when_logged_carry_dummy_keys_only(
    sandbox: SandboxInfo, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real key would be refused by the sandbox: it knows its own only."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREALREALREALREAL")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://example.com")

    assert connect(replace(CLUSTER, key="fresh")).identify().ready
