"""Rules that find what EKS rejects, before any call: names, places, sizes, owners; other subjects have their own files.

In scope: pure checks from a target to diagnostics, one function per subject, and the list of all. Out of scope: rules
for every cloud (`gpukube.spec.rules`, `gpukube.gpu`), the types of native members (`pool.native`).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, items
from gpukube.errors import Finding
from gpukube.visible import spell_out_lookalikes
from gpukube_eks.facts.regions import REGIONS
from gpukube_eks.pool.native import check_native
from gpukube_eks.rules.capacity import CAPACITY_CHECKS
from gpukube_eks.rules.disks import DISK_CHECKS
from gpukube_eks.rules.images import IMAGE_CHECKS
from gpukube_eks.rules.labels import KEY_CHECKS
from gpukube_eks.rules.network import NETWORK_CHECKS
from gpukube_eks.rules.node_settings import SETTING_CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

_NAME: Final = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,62}")  # docs: eks/create-managed-node-group
_CLUSTER: Final = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")  # botocore eks/2017-11-01 ClusterName
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")  # botocore data/endpoints.json, regionRegex of its partitions
_ZONE_ID: Final = re.compile(r"[a-z]+\d-az\d")  # docs: AWSEC2 UserGuide, using-regions-availability-zones
_AFTER_REGION: Final = re.compile(r"[a-z]|-[a-z0-9-]+[a-z]")
"""Suffix of a zone name: a letter; longer for Local and Wavelength Zones (same page): us-west-2-lax-1a,
us-east-1-wl1-bos-wlz-1."""
_KNOWN_LETTERS: Final = "abcdef"
"""Letters of existing zones: us-east-1 has the most, six (docs: global-infrastructure, regions_az)."""
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/.+")
_LARGEST_NUMBER: Final = 2**31 - 1  # botocore eks/2017-11-01 NodegroupScalingConfig: 32-bit integers
_USUAL_NODES: Final = 450  # Service Quotas L-BD136A63, nodes per managed node group


def check_target(target: Target) -> list[Finding]:
    """Return everything that EKS would reject, or accept although it cannot work."""
    checks = (*_CHECKS, *IMAGE_CHECKS, *DISK_CHECKS, *NETWORK_CHECKS, *CAPACITY_CHECKS, *KEY_CHECKS, *SETTING_CHECKS)
    return [finding for check in checks for finding in check(target)] + check_native(target)


def _name(target: Target) -> Iterator[Finding]:
    if not _NAME.fullmatch(target.name):
        own = target.name != target.pool
        yield Finding(
            "eks-name",
            target.locator.at("names.eks" if own else "name"),
            f'"{target.name}" is not an EKS node group name',
            fix="write 1 to 63 letters, digits, hyphens and underscores, a letter or digit first"
            + ("" if own else ", or add names: {eks: NAME}"),
        )


def _nodes(target: Target) -> Iterator[Finding]:
    path = "nodes.autoscaling.max" if target.nodes.autoscaled else "nodes.count"
    if target.nodes.maximum > _LARGEST_NUMBER:
        yield Finding(
            "eks-node-count",
            target.locator.at(path),
            f"{path} is {target.nodes.maximum}, more than the EKS API accepts",
            fix=f"write {_USUAL_NODES} or less, and split the pool",
        )
    elif target.nodes.maximum > _USUAL_NODES:
        yield Finding(
            "eks-node-count",
            target.locator.at(path),
            f"{path} is {target.nodes.maximum}; the default quota is {_USUAL_NODES} nodes in a node group",
            fix="split the pool, or raise the quota L-BD136A63 of eks in Service Quotas",
            severity="warning",
        )
    if target.nodes.maximum == 0:
        yield Finding(
            "eks-no-nodes",
            target.locator.at("nodes.count"),
            "nodes.count is 0, but the maximum size of a node group is at least 1",
            fix="write autoscaling: {min: 0, max: N}, or remove the pool from the spec",
            why="any autoscaler in the cluster discovers the group: one pending pod starts a node",
            severity="warning",
        )


def _zones(target: Target) -> Iterator[Finding]:
    region = target.cluster.identity["region"]
    for index, zone in enumerate(target.zones):
        after = zone.removeprefix(region)
        if after == zone or not _AFTER_REGION.fullmatch(after):
            message = f'"{spell_out_lookalikes(zone)}" is not a zone of {region}'
            fix = f"write zones with the region before the letter, such as {region}a"
            if _ZONE_ID.fullmatch(zone):
                message = f'"{spell_out_lookalikes(zone)}" is a zone id, not a zone name'
            yield Finding("eks-zone", target.locator.at(f"zones[{index}]"), message, fix=fix)
        elif len(after) == 1 and after not in _KNOWN_LETTERS:
            yield Finding(
                "eks-zone",
                target.locator.at(f"zones[{index}]"),
                f'zones[{index}] is "{zone}", but no known AWS region has such a zone',
                fix=f"write zones of {region} from `aws ec2 describe-availability-zones --region {region}`",
                severity="warning",
            )
    if target.zones and "subnets" in target.native:
        yield Finding(
            "eks-zones-and-subnets",
            target.locator.at("eks.subnets"),
            "zones and eks.subnets both place the pool",
            fix="keep one of them",
        )


def _subnets(target: Target) -> Iterator[Finding]:
    subnets = items(target.native, "subnets")
    for index, subnet in enumerate(subnets):
        if subnet in subnets[:index]:
            where, message = target.locator.at(f"eks.subnets[{index}]"), f"eks.subnets contains {subnet} twice"
            yield Finding("eks-native-value", where, message, fix="keep one of them")


def _cluster(target: Target) -> Iterator[Finding]:
    """Check the cluster; equal findings of several pools are reported once."""
    cluster = target.cluster
    region, role = cluster.identity["region"], cluster.identity.get("roleArn", "")
    if not _CLUSTER.fullmatch(cluster.name):
        name = spell_out_lookalikes(cluster.name)
        message = f'clusters.{cluster.key}.name is "{name}", which is not a valid EKS cluster name'
        fix = "write 1 to 100 letters, digits, hyphens and underscores, a letter or digit first"
        yield Finding("eks-cluster", cluster.at("name"), message, fix=fix)
    if not _REGION.fullmatch(region):
        message = f'clusters.{cluster.key}.region is "{spell_out_lookalikes(region)}", which is not an AWS region'
        zone = re.fullmatch(rf"({_REGION.pattern})[a-z]", region)
        fix = f"write {zone[1]}: {region} is a zone" if zone else "write a region such as us-east-1"
        yield Finding("eks-cluster", cluster.at("region"), message, fix=fix)
    elif region not in REGIONS:
        near = " or ".join(get_close_matches(region, sorted(REGIONS), 2)) or "a region such as us-east-1"
        message = f'clusters.{cluster.key}.region is "{spell_out_lookalikes(region)}", which is not a known EKS region'
        why = "gpukube's list is botocore's; it lacks regions newer than this version of gpukube"
        yield Finding("eks-cluster", cluster.at("region"), message, fix=f"write {near}", why=why, severity="warning")
    if role and not _ROLE.fullmatch(role):
        message = f'clusters.{cluster.key}.roleArn is "{spell_out_lookalikes(role)}", which is not the ARN of a role'
        yield Finding("eks-cluster", cluster.at("roleArn"), message, fix="write arn:aws:iam::111122223333:role/NAME")


def _node_role(target: Target) -> Iterator[Finding]:
    role, account = target.native.get("nodeRole"), target.cluster.identity["account"]
    found = _ROLE.fullmatch(role) if isinstance(role, str) else None
    if found and found[1] != account:
        yield Finding(
            "eks-role-account",
            target.locator.at("eks.nodeRole"),
            f"eks.nodeRole belongs to account {found[1]}, but the cluster to {account}",
            fix="use a role of the cluster's account",
            why="IAM passes only roles of the caller's account to a service; this is unconfirmed for EKS",
            severity="warning",
        )


def _repair(target: Target) -> Iterator[Finding]:
    if at(target.native, "nodeRepairConfig", "enabled") is True:
        yield Finding(
            "eks-repair-agent",
            target.locator.at("eks.nodeRepairConfig.enabled"),
            "node repair detects GPU errors only with the add-on eks-node-monitoring-agent",
            fix="install it: aws eks create-addon --addon-name eks-node-monitoring-agent --cluster-name "
            + target.cluster.name,
            why="without it EKS detects nodes that are not ready, but no XID or NVLink errors (docs: eks/node-health)",
            severity="hint",
        )


def _driver(target: Target) -> Iterator[Finding]:
    if target.driver_owner in ("operator", "none"):
        yield Finding(
            "eks-driver-owner",
            target.locator.at("driver.owner"),
            f'driver.owner "{target.driver_owner}" is not supported on EKS',
            fix="write driver.owner: auto",
            why="the GPU images contain the driver, and there is no driver container for Amazon Linux "
            "(NVIDIA/gpu-operator#686)",
        )


_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _name,
    _cluster,
    _nodes,
    _zones,
    _subnets,
    _node_role,
    _repair,
    _driver,
)
