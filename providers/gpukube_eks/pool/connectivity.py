"""Checks the network and the placement group of a pool against what the account has.

In scope: the checks, on what was read, and their errors. Out of scope: the calls (`live.region`), the members of the
launch template (`network`, `placement_groups`).

EFA needs a security group that allows all traffic from and to itself, one Availability Zone, and a private subnet: EC2
gives machines with several network interfaces no public address (docs: eks/node-efa, eks/device-management-efa,
AWSEC2/UserGuide efa; terraform-aws-modules/terraform-aws-eks#3533).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text, trees
from gpukube.errors import Finding, SpecError
from gpukube_eks.pool.network import declared_groups
from gpukube_eks.pool.own_image import own_image
from gpukube_eks.pool.placement_groups import COMPACT, NONE, STRATEGY, is_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Target

_ALL: Final = "-1"
"""IpProtocol of a rule for all traffic (EC2 SecurityGroupRule)."""
_INTERNET: Final = "igw-"
_READY: Final = ("available", "")
_EVERYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})


def needs_account(target: Target) -> bool:
    """Return whether the live cluster or account adds to a pool's creation: security groups, placement, user data."""
    placed = target.placement == COMPACT or is_named(target)
    return bool(target.high_speed or placed or declared_groups(target) or own_image(target))


def require_one_zone(target: Target, zones: Mapping[str, str], why: str) -> None:
    """Reject subnets in several zones.

    Args:
        target: The pool.
        zones: Subnet id -> zone, of the chosen subnets.
        why: What needs one zone, as a clause.

    Raises:
        SpecError: The subnets are in several.
    """
    found = sorted(set(zones.values()))
    if len(found) <= 1:
        return
    where = target.locator.at("eks.subnets" if "subnets" in target.native else "zones")
    raise SpecError(
        f"{target.where} would have nodes in {', '.join(found)}, but needs one zone",
        where=where,
        fix=f"write zones: [{found[0]}]" + (" instead of eks.subnets" if "subnets" in target.native else ""),
        why=why,
        code="one-zone",
    )


def require_open_group(target: Target, groups: Sequence[str], rules: Sequence[Mapping[str, object]]) -> None:
    """Reject security groups that do not let EFA traffic through.

    Args:
        target: A pool with network.highSpeed.
        groups: All security groups of its nodes, the cluster's own first.
        rules: Their rules, as DescribeSecurityGroupRules returns them.

    Raises:
        SpecError: None of them allows all traffic from and to itself.
    """
    missing = [_missing(group, rules) for group in groups]
    if not all(missing):
        return
    # A declared group is more likely to be for EFA than the cluster's own.
    at = len(groups) - 1 if declared_groups(target) else 0
    group, region = groups[at], target.cluster.identity["region"]
    commands = [
        f"aws ec2 authorize-security-group-{direction} --region {region} --group-id {group} --ip-permissions "
        f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={group}}}]'"
        for direction in missing[at]
    ]
    raise SpecError(
        f"no security group of {target.where} allows all traffic {_ways(missing[at])} itself: {', '.join(groups)}",
        where=target.locator.at("eks.securityGroups" if declared_groups(target) else "network.highSpeed"),
        fix=f"add the rules ({'; '.join(commands)}), or write eks: {{securityGroups: [sg-...]}} with a group that has "
        "them",
        why="EFA needs both rules, and a rule for all addresses does not replace them (docs: AWSEC2 UserGuide, efa)",
        code="efa-security-group",
    )


def require_private(target: Target, subnets: Sequence[str], tables: Sequence[Mapping[str, object]]) -> None:
    """Reject public subnets, in which nodes with several interfaces cannot reach the cluster.

    Args:
        target: A pool with network.highSpeed.
        subnets: Its subnets.
        tables: The route tables of the VPC; the main one serves subnets without their own.

    Raises:
        SpecError: A subnet's default route is an internet gateway.
    """
    public = [subnet for subnet in subnets if _is_public(subnet, tables)]
    if not public:
        return
    raise SpecError(
        f"{', '.join(public)} of {target.where} {'are' if len(public) > 1 else 'is'} public",
        where=target.locator.at("eks.subnets" if "subnets" in target.native else "network.highSpeed"),
        fix="write eks: {subnets: [subnet-...]} with private subnets, whose route leads to a NAT gateway",
        why="EC2 gives machines with several network interfaces no public address, so these nodes never join "
        "(terraform-aws-modules/terraform-aws-eks#3533)",
        code="public-subnet",
    )


def require_group(target: Target, found: Mapping[str, object] | None) -> bool:
    """Check a placement group that the spec names; return whether it keeps all machines in one zone.

    Args:
        target: The pool.
        found: As DescribePlacementGroups returns it; None if there is none.

    Raises:
        SpecError: It does not exist, or is being deleted.
    """
    state = text(found, "State") if found else "missing"
    if found is None or state not in _READY:
        raise SpecError(
            f"placement group {target.placement} of {target.where} "
            + ("does not exist" if found is None else f"is {state}"),
            where=target.locator.at("placement"),
            fix="write the name of an existing group (aws ec2 describe-placement-groups), or compact",
            code="placement-group",
        )
    return text(found, "Strategy") == STRATEGY


def reserved_group(target: Target, reservation: Mapping[str, object]) -> str:
    """Return the placement group that machines of a reservation need; "" for none.

    Args:
        target: The pool.
        reservation: As DescribeCapacityReservations returns it.

    Raises:
        SpecError: The spec says otherwise.
    """
    identity = text(reservation, "CapacityReservationId")
    group = text(reservation, "PlacementGroupArn").partition("placement-group/")[2]
    wrong = is_named(target) and target.placement != group
    if not wrong and (target.placement != NONE or not group) and (target.placement != COMPACT or group):
        return group
    place = f"placement group {group}" if group else "no placement group"
    raise SpecError(
        f"reservation {identity} is in {place}, but placement of {target.where} is {target.placement}",
        where=target.locator.at("placement"),
        fix="remove placement: machines of a reservation are where it is",
        why="EC2 has no capacity for machines outside the reservation's placement group "
        "(eksctl-io/eksctl#7949, terraform-aws-modules/terraform-aws-eks#3730)",
        code="placement-group",
    )


def not_checked(target: Target, field: str, what: str, action: str) -> Finding:
    """Return the warning that a permission is missing for a check."""
    return Finding(
        "not-checked",
        target.locator.at(field),
        f"not checked: {what}",
        fix=f"allow {action}",
        why="AWS denied it to this identity",
        severity="warning",
    )


def _missing(group: str, rules: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the directions in which a group does not allow all traffic with itself."""
    there = {
        bool(rule.get("IsEgress"))
        for rule in rules
        if rule.get("GroupId") == group
        and rule.get("IpProtocol") == _ALL
        and text(rule, "ReferencedGroupInfo", "GroupId") == group
    }
    return [name for name, is_egress in (("ingress", False), ("egress", True)) if is_egress not in there]


def _ways(directions: Sequence[str]) -> str:
    return " and ".join({"ingress": "from", "egress": "to"}[one] for one in directions)


def _is_public(subnet: str, tables: Sequence[Mapping[str, object]]) -> bool:
    links = [(link, table) for table in tables for link in trees(table, "Associations")]
    own = [table for link, table in links if link.get("SubnetId") == subnet]
    main = [table for link, table in links if link.get("Main")]
    routes = [route for table in (own or main)[:1] for route in trees(table, "Routes")]
    return any(
        text(route, "GatewayId").startswith(_INTERNET)
        and {route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock")} & _EVERYWHERE
        for route in routes
    )
