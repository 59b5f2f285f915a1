"""What outsiders found accepted, or saw refused, in a trial of the sandbox: each through the cloud's own SDK.

The rules themselves are tested in sandbox_tests/{eks,aks,gke}, one by one; here is what a client makes of a refusal.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from sandbox_tests.aks import arm as azure
from sandbox_tests.aks.arm import MIG, Arm, pool_of
from sandbox_tests.eks.aws import ACCOUNT, NAME, Aws
from sandbox_tests.gke.clients import CLUSTER, Gke, gpu_pool, shared, t4_pool
from sandbox_tests.referees.conftest import SPEED, cluster_of_each_cloud
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo

FROZEN = 0.001
"""No operation ends at this speed while a test looks."""


@pytest.fixture(scope="module")
def world(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Give the module three clusters whose pools stay as they are: all that is asked here is refused."""
    return cluster_of_each_cloud(running_sandbox)


@contextmanager
def frozen(info: SandboxInfo) -> Iterator[None]:
    """Let time stand still, so that what is begun is not over."""
    daemon.configure(info, speed=FROZEN)
    try:
        yield
    finally:
        daemon.configure(info, speed=SPEED)


# EKS

PARAMETER, REQUEST, ABSENT = "InvalidParameterException", "InvalidRequestException", "ResourceNotFoundException"
ROLE = f"arn:aws:iam::{ACCOUNT}:role"


def group(**members: object) -> Callable[[Aws], object]:
    """Ask for a node group of T4s."""
    name = str(members.pop("name", "gpu"))
    return lambda aws: aws.ask(name, **members)


EKS: dict[str, tuple[Callable[[Aws], object], int, str, str]] = {
    "a role that does not exist": (group(nodeRole=f"{ROLE}/nobody"), 400, PARAMETER, "nobody cannot be found"),
    "a role that nodes cannot have": (
        group(nodeRole=f"{ROLE}/{NAME}-eksClusterRole"), 400, PARAMETER, "[ec2.amazonaws.com] were not found",
    ),
    "an SSH key that does not exist": (group(remoteAccess={"ec2SshKey": "mine"}), 400, PARAMETER, "mine not found"),
    "a subnet that does not exist": (group(subnets=["subnet-0"]), 400, REQUEST, "'subnet-0' does not exist"),
    "a template with an unknown type": (
        group(launchTemplate={"name": "zz-big"}, instanceTypes=None, amiType=None), 400, PARAMETER, "[zz.big]",
    ),
    "a disk beside a template": (group(launchTemplate={"name": "zz-big"}, diskSize=50), 400, PARAMETER, "Disk size"),
    "a type beside a template's": (group(launchTemplate={"name": "zz-big"}), 400, REQUEST, "instance types in"),
    "a template that does not exist": (group(launchTemplate={"name": "nobody"}), 400, REQUEST, "could not be found"),
    "a name of 64": (group(name="x" * 64), 400, PARAMETER, "1 to 63"),
    "an effect as Kubernetes spells it": (
        group(taints=[{"key": "a", "effect": "NoSchedule"}]), 400, PARAMETER, "NO_SCHEDULE",
    ),
    "fewest above most": (
        group(scalingConfig={"minSize": 4, "maxSize": 2, "desiredSize": 3}), 400, PARAMETER, "can't be greater than",
    ),
    "an image of another architecture": (group(instanceTypes=["g5g.xlarge"]), 400, PARAMETER, "[g5g.xlarge]"),
    "a release of another version": (group(releaseVersion="1.33.1-20260714"), 400, PARAMETER, "release version"),
    "a group that is there": (group(name="system"), 409, "ResourceInUseException", "already exists"),
    "a cluster that is not": (lambda aws: aws.eks.describe_cluster(name="nobody"), 404, ABSENT, "No cluster found"),
    "a group that is not": (lambda aws: aws.group("nobody"), 404, ABSENT, "No node group found"),
    "a role that is asked for": (
        lambda aws: aws.client("iam").get_role(RoleName="nobody"), 404, "NoSuchEntity", "nobody cannot be found",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def aws(world: SandboxInfo) -> Aws:
    client = Aws(world)
    client.template("zz-big", InstanceType="zz.big")
    return client


def refused_by_aws(call: Callable[[Aws], object], aws: Aws) -> tuple[int, str, str]:
    with pytest.raises(ClientError) as caught:
        call(aws)
    error = caught.value.response
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"], error["Error"]["Message"]


@pytest.mark.parametrize("case", EKS)
def test_eks_when_asked_for_what_is_wrong_then_refused(aws: Aws, case: str) -> None:
    call, status, code, words = EKS[case]
    found = refused_by_aws(call, aws)
    assert found[:2] == (status, code), found
    assert words in found[2]
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["system"]


def test_eks_when_a_group_is_at_work_then_no_second_update(aws: Aws) -> None:
    def update(aws: Aws) -> object:
        labels = {"addOrUpdateLabels": {"a": "b"}}
        return aws.eks.update_nodegroup_config(clusterName=NAME, nodegroupName="system", labels=labels)

    with frozen(aws.info):
        update(aws)
        found = refused_by_aws(update, aws)
    assert found[:2] == (409, "ResourceInUseException"), found
    assert aws.settled("system")["labels"] == {"a": "b"}


# AKS

IDS = f"/subscriptions/{azure.SUBSCRIPTION}/resourceGroups/{azure.GROUP}/providers"
T4 = azure.T4 | {"count": 0}
SYSTEM: azure.Json = {"count": 1, "vmSize": "Standard_D4s_v5", "mode": "System"}


def pool(name: str = "gpu", /, **properties: object) -> Callable[[Arm], object]:
    """Ask for a pool of T4s, or for another form of the one that is there."""
    return lambda arm: arm.create(name, T4 | properties)


AKS: dict[str, tuple[Callable[[Arm], object], int, str, str]] = {
    "a subnet that does not exist": (
        pool(vnetSubnetID=f"{IDS}/Microsoft.Network/virtualNetworks/net/subnets/gpus"),
        400, "SubnetNotFound", "Could not find subnet gpus in vnet net",
    ),
    "a placement group that does not exist": (
        pool(proximityPlacementGroupID=f"{IDS}/Microsoft.Compute/proximityPlacementGroups/near"),
        400, "ResourceNotFound", "proximityPlacementGroups/near' under resource group 'ml' was not found",
    ),
    "a reservation group that does not exist": (
        pool(capacityReservationGroupID=f"{IDS}/Microsoft.Compute/capacityReservationGroups/t4"),
        400, "ResourceNotFound", "capacityReservationGroups/t4' under resource group 'ml' was not found",
    ),
    "a disk of 5000 GB": (pool(osDiskSizeGB=5000), 400, "InvalidParameter", "larger than 2048GB"),
    "an ephemeral disk without room": (
        pool(osDiskSizeGB=1000, osDiskType="Ephemeral"), 400, "VMCacheSizeTooSmall", "disable ephemeral OS",
    ),
    "51 tags": (pool(tags={f"k{at}": "v" for at in range(51)}), 400, "BadRequest", "51 tags"),
    "a tag name of 513": (pool(tags={"k" * 513: "v"}), 400, "BadRequest", "512"),
    "a Windows pool of seven letters": (
        pool("winpool", osType="Windows"), 400, "WindowsAgentPoolNameTooLong", "longer than 6 characters",
    ),
    "a label of Kubernetes": (pool(nodeLabels={"kubernetes.io/x": "y"}), 400, "BadRequest", "https://aka.ms/aks-node-labels-116"),
    "a name of 13": (pool("abcdefghijklm"), 400, "InvalidParameter", ""),
    "a name of capitals": (pool("GPU"), 400, "InvalidParameter", ""),
    "a name with a hyphen": (pool("gpu-a"), 400, "InvalidParameter", ""),
    "MIG on a T4": (pool(gpuInstanceProfile="MIG1g"), 400, "InvalidParameter", "Standard_NC4as_T4_v3"),
    "MIG without a GPU": (
        pool(vmSize="Standard_D4s_v5", gpuInstanceProfile="MIG1g"), 400, "InvalidParameter", "Standard_D4s_v5",
    ),
    "a profile in NVIDIA's words": (pool(**MIG | {"gpuInstanceProfile": "1g.5gb"}), 400, "InvalidParameter", "1g.5gb"),
    "another profile of a pool": (
        pool("mig", **MIG | {"gpuInstanceProfile": "MIG2g"}), 400, "PropertyChangeNotAllowed", "gpuInstanceProfile",
    ),
    "another size of a pool": (
        pool("mig", **MIG | {"vmSize": "Standard_ND96amsr_A100_v4"}), 400, "PropertyChangeNotAllowed", "vmSize",
    ),
    "fewest above most": (
        pool(enableAutoScaling=True, minCount=4, maxCount=3), 400, "InvalidParameter", "minCount was 4",
    ),
    "system nodes on spot": (pool(**SYSTEM, scaleSetPriority="Spot"), 400, "InvalidParameter", "User"),
    "a taint's key twice": (
        pool(nodeTaints=["a=b:NoSchedule", "a=c:NoExecute"]), 400, "InvalidParameter", "more than once",
    ),
    "an old etag": (
        lambda arm: arm.sdk.agent_pools.begin_create_or_update(
            azure.GROUP, azure.NAME, "mig", pool_of(MIG), etag="old", match_condition=MatchConditions.IfNotModified
        ),
        412, "PreConditionFailed", "",
    ),
    "a cluster that does not exist": (
        lambda arm: arm.sdk.managed_clusters.get(azure.GROUP, "nobody"), 404, "ResourceNotFound", "nobody' under",
    ),
    "a pool that does not exist": (lambda arm: arm.get("nobody"), 404, "NotFound", "agentpool: nobody"),
}  # fmt: skip


@pytest.fixture(scope="module")
def arm(world: SandboxInfo) -> Iterator[Arm]:
    with Arm(world) as client:
        client.create("mig", MIG)
        yield client


def refused_by_arm(call: Callable[[Arm], object], arm: Arm) -> tuple[int | None, object, str]:
    with pytest.raises(HttpResponseError) as caught:
        call(arm)
    error = caught.value.error
    return caught.value.status_code, error and error.code, str(caught.value)


@pytest.mark.parametrize("case", AKS)
def test_aks_when_asked_for_what_is_wrong_then_refused(arm: Arm, case: str) -> None:
    call, status, code, words = AKS[case]
    found = refused_by_arm(call, arm)
    assert found[:2] == (status, code), found
    assert words in found[2]
    assert [each.name for each in arm.sdk.agent_pools.list(azure.GROUP, azure.NAME)] == ["nodepool1", "mig"]


def test_aks_when_a_pool_is_at_work_then_no_second_operation(arm: Arm) -> None:
    with frozen(arm.info):
        assert arm.put("mig", MIG | {"nodeLabels": {"a": "b"}}).status_code == 200
        found = refused_by_arm(pool("mig", **MIG), arm)
    wait_for(lambda: arm.get("mig")["provisioningState"] == "Succeeded")
    assert found[:2] == (409, "OperationNotAllowed"), found


# GKE

A100, INVALID = "nvidia-tesla-a100", "INVALID_ARGUMENT"
MOST = {"key": "compute.googleapis.com/reservation-name", "values": ["nobodys"]}


def nodes(**config: object) -> Callable[[Gke], object]:
    """Ask for a pool of T4s; `parts` are fields of the pool itself."""
    parts = config.pop("parts", {})
    assert isinstance(parts, dict)
    return lambda gke: gke.begin(t4_pool("gpu", 1, **config) | parts)


def machine(kind: str, accelerator: str, count: int = 1, **parts: object) -> Callable[[Gke], object]:
    """Ask for a pool of one machine; `parts` are fields of its accelerator."""
    return lambda gke: gke.begin(gpu_pool("gpu", kind, accelerator, count, 1, **parts))


GKE: dict[str, tuple[Callable[[Gke], object], str, str]] = {
    "a zone that does not exist": (
        nodes(parts={"locations": ["us-central1-z"]}), INVALID, 'Location "us-central1-z" does not exist',
    ),
    "a version of long ago": (nodes(parts={"version": "1.20.0-gke.1"}), INVALID, '"1.20.0-gke.1" is unsupported'),
    "a label with blanks": (nodes(labels={"a b": "c d"}), INVALID, "'a b': 'c d'"),
    "a label value of 64": (nodes(labels={"a": "v" * 64}), INVALID, "v" * 64),
    "a taint with blanks": (
        nodes(taints=[{"key": "x y", "value": "q q", "effect": "NO_SCHEDULE"}]), INVALID, "'x y': 'q q'",
    ),
    "four pods on a node": (
        nodes(parts={"max_pods_constraint": {"max_pods_per_node": 4}}), INVALID, "between 8 and 256",
    ),
    "30 local SSDs": (nodes(local_ssd_count=30), INVALID, "does not support 30 local SSDs"),
    "a service account that does not exist": (nodes(service_account="nope"), INVALID, '"nope" does not exist'),
    "a reservation that does not exist": (
        nodes(reservation_affinity={"consume_reservation_type": "SPECIFIC_RESERVATION", **MOST}),
        "NOT_FOUND", 'reservation "nobodys" not found',
    ),
    "a machine that does not exist": (machine("a9-highgpu-1g", A100), INVALID, "'a9-highgpu-1g' does not exist"),
    "a GPU of another machine": (machine("g2-standard-24", "nvidia-tesla-t4", 2), INVALID, "has 2 x nvidia-l4"),
    "a count of another machine": (machine("a2-highgpu-2g", A100), INVALID, "1 x nvidia-tesla-a100 was requested"),
    "a partition of another GPU": (
        machine("a2-highgpu-1g", A100, gpu_partition_size="1g.10gb"), INVALID, "'1g.10gb' is not supported",
    ),
    "one client": (nodes(gpu_sharing_config=shared("TIME_SHARING", 1)), INVALID, "between 2 and 48"),
    "49 clients": (nodes(gpu_sharing_config=shared("TIME_SHARING", 49)), INVALID, "between 2 and 48"),
    "a label of Google": (
        nodes(labels={"cloud.google.com/gke-nodepool": "y"}), INVALID, "cloud.google.com/gke-nodepool",
    ),
    "1001 nodes": (nodes(parts={"initial_node_count": 1001}), INVALID, "between 0 and 1000"),
    "two groups of fields": (
        lambda gke: gke.update("default-pool", labels={"labels": {"a": "b"}}, taints={}), INVALID, "Only one group",
    ),
    "a cluster that does not exist": (
        lambda gke: gke.sdk.get_cluster(name=f"{CLUSTER}s"), "NOT_FOUND", f"Not found: {CLUSTER}s",
    ),
    "a pool that does not exist": (lambda gke: gke.pool("nobody"), "NOT_FOUND", "nodePools/nobody"),
    "a pool that is there": (lambda gke: gke.begin(t4_pool("default-pool")), "ALREADY_EXISTS", "Already exists"),
}  # fmt: skip


@pytest.fixture(scope="module", params=["grpc", "rest"])
def gke(world: SandboxInfo, request: pytest.FixtureRequest) -> Iterator[Gke]:
    client = Gke(world, request.param)
    yield client
    client.close()


@pytest.mark.parametrize("case", GKE)
def test_gke_when_asked_for_what_is_wrong_then_refused(gke: Gke, case: str) -> None:
    call, code, words = GKE[case]
    found = gke.refused(lambda: call(gke))
    assert (found[0], words in found[1]) == (code, True), found
    assert gke.names() == ["default-pool"]


def test_gke_when_five_pools_are_at_work_then_no_second_operation_and_no_sixth(gke: Gke) -> None:
    with frozen(gke.info):
        begun = [gke.begin(t4_pool(f"p{at}", 0)) for at in range(5)]
        sixth = gke.refused(lambda: gke.begin(t4_pool("p5", 0)))
        second = gke.refused(lambda: gke.sdk.delete_node_pool(name=f"{CLUSTER}/nodePools/p0"))
    for operation in begun:
        gke.succeed(operation)
        gke.succeed(gke.sdk.delete_node_pool(name=operation.target_link.partition("/v1/")[2]))
    assert sixth[0] == "RESOURCE_EXHAUSTED", sixth
    assert second == ("FAILED_PRECONDITION", f"Cluster is running incompatible operation {begun[0].name}.")


# Nobody


def test_arm_and_gke_when_no_token_is_sent_then_401(world: SandboxInfo) -> None:
    pools = (
        f"{world.arm_url}{azure.CLUSTER_PATH}/agentPools?api-version={azure.API}",
        f"{world.gke_url}/v1/{CLUSTER}/nodePools",
    )
    with httpx.Client(trust_env=False) as client:
        assert [client.get(address).status_code for address in pools] == [401, 401]
