"""Chooses a pool's role and subnets if the spec names none, and checks version and reservation against them.

In scope: the choice, based on the cluster and its groups. Out of scope: calls.

Both default to those of the cluster's other node groups; otherwise to a role with a documented name, and to the
cluster's own subnets, private before public (docs: eks/create-node-role, eksctl pkg/cfn/builder/nodegroup.go
AssignSubnets). Only zones that offer the instance type are used. If several choices remain, gpukube reports an error
instead of guessing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.errors import ReservationFull, SpecError
from gpukube_eks.pool.purchase import is_block

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpukube.core.values import Target

ROLE_NAMES: Final = ("eksNodeRole", "AmazonEKSNodeRole", "NodeInstanceRole")
"""Parts of node role names in AWS's documentation and eksctl."""


_OVER: Final = frozenset({"expired", "cancelled", "failed", "payment-failed", "unsupported", "unavailable"})
"""States of a reservation that never has machines again (botocore ec2 CapacityReservationState)."""


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet: its id, its Availability Zone, whether machines get public addresses."""

    id: str
    zone: str
    public: bool


def documented_roles(roles: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the ARNs of roles with the name of a node role."""
    return tuple(
        str(role.get("Arn"))
        for role in roles
        if any(part.lower() in str(role.get("RoleName", "")).lower() for part in ROLE_NAMES)
    )


def choose_role(target: Target, used: Iterable[str], documented: Iterable[str] | None, forbidden: Iterable[str]) -> str:
    """Choose the role of a pool's nodes.

    Args:
        target: The pool.
        used: Roles of the cluster's other groups.
        documented: Roles of the account with the name of a node role, None without permission to list them; considered
            only if none is used.
        forbidden: The cluster's own role, and Auto Mode's, whose policy is insufficient.

    Raises:
        SpecError: No role, or several.
    """
    banned = set(forbidden)
    for candidates in (used, documented or ()):
        found = sorted(set(candidates) - banned - {""})
        if len(found) == 1:
            return found[0]
        if found:
            raise SpecError(
                f"several roles are possible for the nodes of {target.where}: {', '.join(found)}",
                where=target.locator.at("eks.nodeRole"),
                fix=f"write one of them, such as eks: {{nodeRole: {found[0]}}}",
                code="node-role",
            )
    raise SpecError(
        f"no role found for the nodes of {target.where}",
        where=target.locator.at("eks.nodeRole"),
        why="the cluster has no other node group, and "
        + (
            "gpukube may not list the account's roles (iam:ListRoles)"
            if documented is None
            else f"the account has no role with {', '.join(ROLE_NAMES[:-1])} or {ROLE_NAMES[-1]} in its name"
        ),
        fix="write eks: {nodeRole: ARN} with a role that has the policies AmazonEKSWorkerNodePolicy, "
        "AmazonEC2ContainerRegistryPullOnly and AmazonEKS_CNI_Policy",
        code="node-role",
    )


def choose_subnets(
    target: Target, groups: Iterable[Sequence[str]], listed: Sequence[str], known: Mapping[str, Subnet],
    offered: Iterable[str],
) -> tuple[str, ...]:  # fmt: skip
    """Choose the subnets of a pool.

    Args:
        target: The pool; its zones are read.
        groups: Subnets of each other group of the cluster.
        listed: Subnets of the cluster itself.
        known: Subnet id -> subnet, for all of them.
        offered: Zones that offer one of the instance types.

    Raises:
        SpecError: No subnet is left, or the cluster's groups leave several choices.
    """
    zones = set(offered)
    desired = set(target.zones) or zones
    if missing := sorted(set(target.zones) - zones):
        raise SpecError(
            f"{_types(target)} {'are' if len(target.machines) > 1 else 'is'} not offered in {', '.join(missing)}",
            where=target.locator.at("zones"),
            fix=f"write zones of {', '.join(sorted(zones))}" if zones else "choose another instance type or region",
            code="zone-not-offered",
        )
    sets = {_within(group, known, desired) for group in groups} - {()}
    used = {name for group in sets for name in group}
    if target.zones:
        parts = (_within(used, known, {zone}) or _of_cluster(listed, known, {zone}) for zone in sorted(desired))
        found = tuple(name for part in parts for name in part)
    else:
        found = _largest(target, sets) or _of_cluster(listed, known, desired)
    uncovered = sorted(set(target.zones) - {known[name].zone for name in found})
    if not found or uncovered:
        raise _none_left(target, uncovered, [*listed, *used], known, zones)
    return found


def check_version(target: Target, cluster: str, group: str) -> None:
    """Reject a version that EKS does not allow for nodes of this cluster.

    Args:
        target: The pool.
        cluster: Version of the cluster, "1.34".
        group: Version of the live group; "" if there is none.

    Raises:
        SpecError: The version differs from the cluster's (botocore eks CreateNodegroupRequest, version).
    """
    desired = target.kubernetes_version
    if desired and cluster and desired not in (cluster, group):
        raise SpecError(
            f"{target.where}: kubernetesVersion is {desired}, but the cluster has {cluster}",
            where=target.locator.at("kubernetesVersion"),
            fix=f'write "{cluster}", or leave it out' + (f'; "{group}" leaves the nodes unchanged' if group else ""),
            why="EKS accepts only the cluster's own version",
            code="kubernetes-version",
        )


def reserved_zone(target: Target, live: Mapping[str, object], native: Collection[str] = ()) -> str:
    """Return the zone of a reservation, after checking that the pool can be created in it.

    Args:
        target: The pool, with a reservation that has an id.
        live: As DescribeCapacityReservations returns it.
        native: Zones of the subnets in the spec's native fields.

    Raises:
        SpecError: The reservation has another instance type, zone, or kind.
        ReservationFull: The reservation has ended.
    """
    zone, state = str(live.get("AvailabilityZone") or ""), str(live.get("State") or "")
    form = "capacityBlock" if is_block(target.capacity) else "capacityReservation"
    where, identity = target.locator.at(f"capacity.reserved.eks.{form}"), live.get("CapacityReservationId")
    if state in _OVER:
        fix = "write the id of another one (aws ec2 describe-capacity-reservations), or another capacity.type"
        raise ReservationFull(f"reservation {identity} is {state}", where=where, fix=fix, code="reservation")
    if (held := live.get("InstanceType")) != target.machine.name:
        raise SpecError(
            f"reservation {identity} is for {held}, but {target.where} has {target.machine.name}",
            where=where,
            fix=f"write instanceType: {held}, or the id of another reservation",
            code="reservation",
        )
    if (live.get("ReservationType") == "capacity-block") != is_block(target.capacity):
        other = "capacityReservation" if is_block(target.capacity) else "capacityBlock"
        message = f"reservation {identity} is not a {form}"
        raise SpecError(message, where=where, fix=f"write {other} instead of {form}", code="reservation")
    if (requested := set(target.zones) or set(native)) and requested != {zone}:
        raise SpecError(
            f"reservation {identity} is in {zone}, but {target.where} is in {', '.join(sorted(requested))}",
            where=target.locator.at("zones" if target.zones else "eks.subnets"),
            fix=f"write zones: [{zone}]",
            code="reservation",
        )
    return zone


def _types(target: Target) -> str:
    return " or ".join(machine.name for machine in target.all_machines)


def _within(names: Iterable[str], known: Mapping[str, Subnet], zones: set[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name in known and known[name].zone in zones))


def _of_cluster(listed: Sequence[str], known: Mapping[str, Subnet], zones: set[str]) -> tuple[str, ...]:
    names = _within(listed, known, zones)
    private = tuple(name for name in names if not known[name].public)
    return private or names


def _largest(target: Target, sets: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the set that contains all others: a group in fewer zones makes no difference."""
    largest = [one for one in sets if not any(set(one) < set(other) for other in sets)]
    if len(largest) <= 1:
        return largest[0] if largest else ()
    shown = "; ".join(", ".join(one) for one in sorted(largest))
    raise SpecError(
        f"several sets of subnets are possible for {target.where}: {shown}",
        where=target.locator.at("eks.subnets"),
        fix=f"write eks: {{subnets: [{', '.join(min(largest))}]}}, or zones",
        code="subnets",
    )


def _none_left(
    target: Target, uncovered: Sequence[str], names: Iterable[str], known: Mapping[str, Subnet], offered: set[str]
) -> SpecError:
    zones = sorted({known[name].zone for name in names if name in known})
    if uncovered:
        message = (
            f"the cluster has no subnet in {', '.join(uncovered)}; it has subnets in {', '.join(zones) or 'no zone'}"
        )
    else:
        message = (
            f"the cluster has no subnet in a zone that offers {_types(target)}: it has subnets in "
            f"{', '.join(zones) or 'no zone'}; zones that offer it: {', '.join(sorted(offered)) or 'none'}"
        )
    where = target.locator.at("zones" if uncovered else "eks.subnets")
    fix = "write eks: {subnets: [...]} with subnets of the cluster's VPC, or choose another instance type"
    return SpecError(message, where=where, fix=fix, code="subnets")
