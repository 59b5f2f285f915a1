"""Each printed permission taken away in turn: the command that needs it fails, or does with less, and names it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import pytest

from gpukube.engine.permissions.chart_roles import PLUGIN_EVERYWHERE, PLUGIN_OURS
from gpukube.engine.permissions.in_cluster import RULES
from gpukube_sandbox import daemon
from tests.permissions.granting import daemonsets, grant
from tests.permissions.policies import EXTRAS, SPEC, printed

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube, Result
    from tests.permissions.policies import Json

SUBSCRIPTION, PROJECT = "11111111-2222-3333-4444-555555555555", "ml-prod"
DENIED, UNCLEAR, PARTLY, DONE = 5, 4, 3, 0
REFRESH = "catalog refresh --provider"
BIGGER = "pool apply -y --allow-disruption --set pools.shared.disk.sizeGiB=200"
OTHER_TYPE = "pool plan --replace surge --set pools.fast.instanceType=g4dn.12xlarge"
FIND = "capacity find --live --for 7d --pool shared"
FIND_H100 = "capacity find --live --for 7d --gpu H100-80GB --count 8"
RENEW = "pool apply -y --allow-disruption --upgrade --pool shared"
GROUPS = "Microsoft.Compute/capacityReservationGroups"
AZURE, NETWORK = "Microsoft.ContainerService", "Microsoft.Network"


@dataclass(frozen=True)
class Row:
    """A command line that needs permissions.

    Attributes:
        permissions: Each is taken away alone.
        words: The command, without the spec and the cluster.
        cloud: Whose cluster it is for.
        code: How it ends: without what it cannot do without, with some pools, or with less.
        world: What is there: clusters alone; pools; pools and newer node images; a cluster of an account that never had
            a node group; clusters and a group of reserved machines.
    """

    permissions: str
    words: str
    cloud: str
    code: int = DENIED
    world: Literal["clusters", "pools", "images", "bare", "reserved"] = "clusters"


ROWS = (
    Row("eks:DescribeCluster eks:ListNodegroups eks:DescribeNodegroup", "pool plan", "eks"),
    Row("ec2:DescribeLaunchTemplates ec2:DescribeLaunchTemplateVersions", "pool plan", "eks", world="pools"),
    Row("ec2:DescribeSubnets ec2:DescribeInstanceTypeOfferings", "pool plan", "eks"),
    Row("ec2:DescribeInstances", "pool plan", "eks", DONE),
    Row("iam:ListRoles", "pool plan", "eks", UNCLEAR, world="bare"),
    Row("iam:CreateServiceLinkedRole", "pool create", "eks", world="bare"),
    Row("servicequotas:GetServiceQuota", "pool plan", "eks", DONE),
    Row("servicequotas:GetAWSDefaultServiceQuota", OTHER_TYPE, "eks", DONE, world="pools"),
    Row("ssm:GetParameter", "pool plan --upgrade", "eks", DONE, world="pools"),
    Row("pricing:GetProducts", "pool plan --live-prices", "eks", DONE),
    Row("ec2:DescribeSpotPriceHistory", "pool plan --live-prices --set pools.shared.capacity.type=spot", "eks", DONE),
    Row("eks:CreateNodegroup ec2:CreateLaunchTemplate ec2:CreateTags ec2:RunInstances", "pool create", "eks"),
    Row("iam:PassRole iam:GetRole iam:ListAttachedRolePolicies", "pool create", "eks"),
    Row("eks:TagResource", "pool create", "eks", PARTLY),  # a pool without tags of its own does without the copy
    Row("eks:UpdateNodegroupConfig eks:DescribeUpdate", "pool scale shared --nodes 2", "eks", world="pools"),
    Row("ec2:DescribeSecurityGroupRules ec2:DescribeRouteTables", "pool plan", "eks", DONE),
    Row("ec2:CreatePlacementGroup", "pool create", "eks", PARTLY),
    Row("ec2:DescribePlacementGroups ec2:DeletePlacementGroup", "pool delete fast -y", "eks", world="pools"),
    Row("ec2:CreateLaunchTemplateVersion eks:UpdateNodegroupVersion", BIGGER, "eks", PARTLY, world="pools"),
    Row("eks:UntagResource", "pool release shared -y", "eks", world="pools"),
    Row("ec2:DeleteTags", "pool release shared -y", "eks", DONE, world="pools"),
    Row("eks:DeleteNodegroup ec2:DeleteLaunchTemplate", "pool delete shared -y", "eks", world="pools"),
    Row("ec2:DescribeInstanceTypes", f"{REFRESH} eks", ""),
    Row("pricing:GetProducts ec2:DescribeSpotPriceHistory", f"{REFRESH} eks", "", DONE),
    Row("ec2:DescribeCapacityBlockOfferings", FIND_H100, "eks", DONE),
    Row("ec2:GetSpotPlacementScores ec2:DescribeAvailabilityZones", "capacity find --live --pool claims", "eks", DONE),
    Row(f"{AZURE}/managedClusters/read {AZURE}/managedClusters/agentPools/read", "pool plan", "aks"),
    Row(f"{AZURE}/managedClusters/listClusterUserCredential/action", "pool plan", "aks"),
    Row("Microsoft.Compute/locations/usages/read", "pool plan", "aks", DONE),
    Row(f"{AZURE}/managedClusters/agentPools/upgradeProfiles/read", "pool plan --upgrade", "aks", DONE, world="pools"),
    Row(f"{AZURE}/managedClusters/agentPools/upgradeNodeImageVersion/action", RENEW, "aks", world="images"),
    Row(f"{AZURE}/managedClusters/agentPools/write", "pool create", "aks"),
    Row(f"{NETWORK}/virtualNetworks/subnets/join/action", "pool create", "aks", PARTLY),
    Row(f"{NETWORK}/publicIPPrefixes/join/action", "pool create", "aks", PARTLY),
    Row("Microsoft.Compute/proximityPlacementGroups/write", "pool create", "aks", PARTLY),
    Row(f"{AZURE}/managedClusters/agentPools/delete", "pool delete shared -y", "aks", world="pools"),
    Row("Microsoft.Compute/skus/read", f"{REFRESH} aks --subscription {SUBSCRIPTION}", ""),
    Row("Microsoft.Compute/skus/read Microsoft.Compute/locations/placementScores/generate/action", FIND, "aks", DONE),
    Row(f"{GROUPS}/read {GROUPS}/capacityReservations/read", FIND, "aks", DONE, world="reserved"),
    Row("container.clusters.get", "pool plan", "gke"),
    Row("compute.regions.get compute.projects.get", "pool plan", "gke", DONE),
    Row("cloudquotas.quotas.get monitoring.timeSeries.list", "pool plan", "gke", DONE),
    Row("container.clusters.update container.operations.get iam.serviceAccounts.actAs", "pool create", "gke"),
    Row("compute.machineTypes.list compute.advice.capacityHistory compute.advice.calendarMode", FIND_H100, "gke", DONE),
    Row("compute.acceleratorTypes.list compute.reservations.list compute.advice.capacity", FIND, "gke", DONE),
    Row(
        "compute.machineTypes.list compute.acceleratorTypes.list",
        f"catalog refresh --provider gke --project {PROJECT}",
        "",
    ),
)
OPERATIONS = f"{AZURE}/locations/operations/read"
SILENT = {"ec2:DescribeCapacityReservations", "autoscaling:DescribeScalingActivities", OPERATIONS}
"""Done without, and not told: EKS itself refuses a reservation that cannot be used, and node groups have their health;
pools of AKS show their state."""
CASES = [(permission, row) for row in ROWS for permission in row.permissions.split()]


def prepare(gpukube: Gpukube, row: Row) -> None:
    """Let there be what the row is for."""
    if row.world in {"pools", "images"}:
        gpukube.made("-f", SPEC)
    elif row.cloud:
        gpukube("pool", "list", "-f", SPEC)  # declares the clusters
    if row.world == "reserved":
        reserved = {"name": "t4", "size": "Standard_NC4as_T4_v3", "count": 2}
        identity = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/{GROUPS}/gpus"
        daemon.declare(gpukube.info, "aks", capacityReservationGroups=[{"id": identity, "reservations": [reserved]}])
    if row.world == "images":
        daemon.upgrade_cluster(gpukube.info, "train", images="20270101")
    if row.world == "bare":
        clusters = daemon.status(gpukube.info)["clusters"]
        assert isinstance(clusters, list)
        name = next(entry["id"] for entry in clusters if entry["provider"] == "eks")
        daemon.tamper(gpukube.info, name, "system", delete=True)


def run(gpukube: Gpukube, row: Row) -> Result:
    of_cluster = ("-f", str(SPEC), "--cluster", f"train-{row.cloud}") if row.cloud else ()
    return gpukube(*row.words.split(), *of_cluster)


@pytest.mark.turns(6)
@pytest.mark.parametrize(("permission", "row"), CASES, ids=[f"{name}-{row.words}" for name, row in CASES])
def test_permission_when_taken_away_then_named(permission: str, row: Row, gpukube: Gpukube) -> None:
    prepare(gpukube, row)
    daemon.deny_permissions(gpukube.info, permission)

    result = run(gpukube, row)

    assert permission in result.out + result.err, result.out + result.err
    assert result.code == row.code, result.out + result.err
    if row.code != DONE and "create" in row.words:
        assert "to resume: gpukube" in result.out
        daemon.deny_permissions(gpukube.info)
        again = run(gpukube, row)
        assert again.code == DONE, again.out + again.err


def test_operations_of_aks_when_they_may_not_be_read_then_the_pool_is_followed(gpukube: Gpukube) -> None:
    row = Row(OPERATIONS, "pool create", "aks", DONE)
    prepare(gpukube, row)
    daemon.deny_permissions(gpukube.info, OPERATIONS)

    assert run(gpukube, row).code == DONE


IN_CLUSTERS = (
    Row("list nodes,list daemonsets.apps,list secrets", "pool plan", "aks", world="pools"),
    Row("create daemonsets.apps,create clusterroles.rbac.authorization.k8s.io,create secrets", "pool create", "aks"),
    Row("list resourcequotas,list serviceaccounts", "pool create", "aks"),
    Row("create jobs.batch,get pods/log", "pool verify --probe", "aks", world="pools"),
    Row("patch nodes", "pool drain shared -y", "aks", world="pools"),
)
ACCESSES = [(permission, row) for row in IN_CLUSTERS for permission in row.permissions.split(",")]


@pytest.mark.turns(3)
@pytest.mark.parametrize(("permission", "row"), ACCESSES, ids=[f"{name}-{row.words}" for name, row in ACCESSES])
def test_access_when_taken_away_in_a_cluster_then_verb_and_resource_are_named(
    permission: str, row: Row, gpukube: Gpukube
) -> None:
    prepare(gpukube, row)
    daemon.deny_permissions(gpukube.info, permission)

    result = run(gpukube, row)

    verb, resource = permission.partition(".")[0].split()
    named = [line for line in (result.out + result.err).splitlines() if f"{verb} {resource}" in line]
    assert named, result.out + result.err
    assert result.code == row.code, result.out + result.err


GRANTED = sorted(
    {
        (verb, resource, rule.group)
        for rule in (*PLUGIN_EVERYWHERE, *PLUGIN_OURS)
        for verb in rule.verbs.split()
        for resource in rule.resources.split()
    }
    - {
        (verb, resource, row.rule.group)
        for row in RULES
        for verb in row.rule.verbs.split()
        for resource in row.rule.resources.split()
    }
)
"""What gpukube needs only because roles of the chart allow it."""


def without(found: Json, right: tuple[str, str, str]) -> Json:
    """Take a right out of a printed role."""
    rules: list[Json] = []
    for rule in found.get("rules") or ():
        for verb, group, resource in product(rule["verbs"], rule["apiGroups"], rule["resources"]):
            if (verb, resource, group) != right:
                rules.append({**rule, "verbs": [verb], "apiGroups": [group], "resources": [resource]})
    return {**found, "rules": rules} if "rules" in found else found


@pytest.mark.turns(9)
@pytest.mark.parametrize("right", GRANTED, ids=[" ".join(right) for right in GRANTED])
def test_right_of_a_charts_role_when_taken_away_then_named_before_anything_is_written(
    right: tuple[str, str, str], gpukube: Gpukube
) -> None:
    row = Row("", "pool create", "aks")
    prepare(gpukube, row)
    allowed = printed("apply", *EXTRAS)
    lacking = replace(allowed, objects=tuple((cluster, without(found, right)) for cluster, found in allowed.objects))
    grant(gpukube.info, lacking)

    result = run(gpukube, row)

    verb, resource, group = right
    named = f"{verb} {resource}.{group}" if group else f"{verb} {resource}"
    assert f"not allowed in the cluster: {named}" in result.out + result.err, result.out + result.err
    assert "--print-policy apply" in result.out + result.err
    assert (result.code, gpukube.writes()) == (DENIED, [])
    assert daemonsets(gpukube.info, "train-aks") == []


def test_table_when_the_policy_is_printed_then_has_each_permission() -> None:
    tried = {permission for permission, _ in CASES} | SILENT
    assert sorted(printed("apply", *EXTRAS).clouds ^ tried) == []
