"""A new pool that lists do not have for a while, though a read by its name finds it: on each cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import GROUP, T4, Arm
from sandbox_tests.aks.arm import NAME as AKS
from sandbox_tests.aks.arm import SUBSCRIPTION as AKS_SUBSCRIPTION
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.gke.clients import CLUSTER, Gke, add_cluster, pool_of

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

LONG_S = 1e9
SLOW = 0.001


def test_aks_when_a_pool_is_unlisted_then_read_by_its_name_alone(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, AKS_SUBSCRIPTION, GROUP, AKS)
    daemon.add_fault(sandbox, "unlisted", service="arm", pool="late", seconds=LONG_S)
    with Arm(sandbox) as arm:
        arm.create("late", {**T4, "count": 0})
        arm.create("soon", {**T4, "count": 0})
        assert [pool.name for pool in arm.sdk.agent_pools.list(GROUP, AKS)] == ["nodepool1", "soon"]
        profiles = arm.sdk.managed_clusters.get(GROUP, AKS).as_dict()["properties"]["agentPoolProfiles"]
        assert [profile["name"] for profile in profiles] == ["nodepool1", "soon"]
        assert arm.get("late")["provisioningState"] == "Succeeded"


def test_eks_when_a_group_is_unlisted_then_read_by_its_name_alone_and_listed_later(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    daemon.configure(sandbox, speed=SLOW)
    daemon.add_fault(sandbox, "unlisted", service="aws", seconds=60)
    aws = Aws(sandbox)
    aws.ask("late")
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["system"]
    assert aws.group("late")["status"] == "CREATING"
    daemon.configure(sandbox, speed=50_000_000)
    aws.settled("late")
    assert aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] == ["late", "system"]


def test_gke_when_a_pool_is_unlisted_then_read_by_its_name_alone(sandbox: SandboxInfo) -> None:
    add_cluster(sandbox)
    daemon.add_fault(sandbox, "unlisted", service="gke", seconds=LONG_S)
    gke = Gke(sandbox, "grpc")
    gke.create(pool_of("late", count=0))
    assert gke.names() == ["default-pool"]
    assert [pool.name for pool in gke.sdk.get_cluster(name=CLUSTER).node_pools] == ["default-pool"]
    assert gke.pool("late").name == "late"
    gke.close()
