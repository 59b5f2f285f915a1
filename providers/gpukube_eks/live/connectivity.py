"""Completes a pool's network, placement, and user data of an own image from the live account, and checks them.

In scope: which reads a pool needs. Out of scope: the checks themselves (`pool.connectivity`), role and subnets
(`client`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import HIGH_SPEED, PLACEMENT
from gpukube.core.jsontree import strings, text, tree
from gpukube_eks.pool.connectivity import (
    not_checked,
    require_group,
    require_one_zone,
    require_open_group,
    require_private,
    reserved_group,
)
from gpukube_eks.pool.network import SECURITY_GROUPS, groups_of, with_cluster_group
from gpukube_eks.pool.own_image import joining_data, own_image
from gpukube_eks.pool.placement_groups import COMPACT, is_named, with_placement
from gpukube_eks.pool.translate import group_of, template_data, with_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Desired
    from gpukube.errors import Finding
    from gpukube_eks.live.region import Region

_EFA_ZONE: Final = "EFA traffic does not leave its Availability Zone (docs: AWSEC2 UserGuide, efa)"
_GROUP_ZONE: Final = "a cluster placement group is in one zone (docs: AWSEC2 UserGuide, placement-strategies)"


def connected(
    desired: Desired, region: Region, cluster: Mapping[str, object], live: Mapping[FieldPath, object]
) -> Desired:
    """Return the pool with the cluster's security group, its reservation's placement group, and an image's user data.

    Args:
        desired: The pool, with role and subnets.
        region: The account's resources.
        cluster: As DescribeCluster returns it.
        live: Fields of the live group; what it already has is not checked again.

    Raises:
        SpecError: Security groups, subnets, or the placement group do not fit.
        CloudError: The cluster has no endpoint yet.
    """
    if group := text(cluster, "resourcesVpcConfig", "clusterSecurityGroupId"):
        desired = with_data(desired, with_cluster_group(template_data(desired), group))
    if own_image(desired.target):
        desired = with_data(desired, {**template_data(desired), "UserData": joining_data(desired, cluster)})
    desired = _placed(desired, region, live)
    return replace(desired, unchecked=tuple(_checked(desired, region, cluster, live)))


def _placed(desired: Desired, region: Region, live: Mapping[FieldPath, object]) -> Desired:
    """Return the pool in the placement group of its reservation, if that has one."""
    target, reservation = desired.target, desired.target.capacity.reservation
    if reservation is None or not reservation.id.startswith("cr-"):
        return desired
    if live and live.items() >= {path: v for path, v in desired.fields.items() if path.is_below("capacity")}.items():
        # A block may have ended, and is not read again: the live group is where it was.
        kept = live.get(PLACEMENT) if target.placement == COMPACT else None
        return replace(desired, fields={**desired.fields, PLACEMENT: kept}) if kept else desired
    group = reserved_group(target, region.reservation(reservation.id))
    if not group:
        return desired
    placed = with_data(desired, with_placement(template_data(desired), group))
    return replace(placed, fields={**desired.fields, PLACEMENT: group})


def _checked(
    desired: Desired, region: Region, cluster: Mapping[str, object], live: Mapping[FieldPath, object]
) -> Iterator[Finding]:
    """Check what the live group does not have yet; yield what could not be checked."""
    target, subnets = desired.target, strings(group_of(desired), "subnets")
    has_groups = live.get(SECURITY_GROUPS) == desired.fields.get(SECURITY_GROUPS)
    if target.high_speed and not (live.get(HIGH_SPEED) and has_groups):
        require_one_zone(target, region.zones(subnets), _EFA_ZONE)
        groups = groups_of(template_data(desired))
        if (rules := region.security_group_rules(groups)) is None:
            what = f"whether {', '.join(groups)} let EFA traffic through"
            yield not_checked(target, "network.highSpeed", what, "ec2:DescribeSecurityGroupRules")
        else:
            require_open_group(target, groups, rules)
        if (tables := region.route_tables(text(tree(cluster, "resourcesVpcConfig"), "vpcId"))) is None:
            what = f"whether {', '.join(subnets)} are private"
            yield not_checked(target, "network.highSpeed", what, "ec2:DescribeRouteTables")
        else:
            require_private(target, subnets, tables)
    if live.get(PLACEMENT) == desired.fields.get(PLACEMENT):
        return
    is_cluster = target.placement == COMPACT
    if is_named(target):
        found, known = region.placement_group(target.placement)
        if known:
            is_cluster = require_group(target, found)
        else:
            what = f"placement group {target.placement}"
            yield not_checked(target, "placement", what, "ec2:DescribePlacementGroups")
    if is_cluster:
        require_one_zone(target, region.zones(subnets), _GROUP_ZONE)
