"""Reads an account's resources in a region: roles, subnets, offerings, reservations.

In scope: the calls, each made once per subject. Out of scope: choosing among them (`pool.placement`), launch templates
(`templates`), node groups (`client`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, trees
from gpukube_eks.live.failures import unless
from gpukube_eks.live.placement_groups import PlacementGroups
from gpukube_eks.pool.placement import Subnet, documented_roles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpukube_eks.live.sdk import Answer, Aws

_NOT_ALLOWED: Final = frozenset({"AccessDenied", "UnauthorizedOperation", "AccessDeniedException"})
"""Error codes of missing permissions in IAM, EC2, and Systems Manager; without them the spec must name the value, or
the service decides."""
_NO_PARAMETER: Final = frozenset({"ParameterNotFound"})


class Region:
    """The account's resources that pools need, read on demand.

    Args:
        aws: The clients.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._subnets: dict[str, Subnet] = {}
        self._offers: dict[str, tuple[str, ...]] = {}
        self._reservations: dict[str, Answer] = {}
        self._parameters: dict[str, str | None] = {}
        self._rules: dict[tuple[str, ...], list[Answer] | None] = {}
        self._tables: dict[str, list[Answer] | None] = {}
        self._groups: dict[str, tuple[Answer | None, bool]] = {}

    def node_roles(self) -> tuple[str, ...] | None:
        """Return the ARNs of roles with the name of a node role; None without permission to list roles."""
        answer = unless(_NOT_ALLOWED, self._aws.iam.list_roles)
        if answer is None:
            return None
        found = trees(answer, "Roles")
        while answer.get("IsTruncated"):
            answer = self._aws.iam.list_roles(Marker=answer.get("Marker"))
            found += trees(answer, "Roles")
        return documented_roles(found)

    def offering_zones(self, instance_type: str) -> tuple[str, ...]:
        """Return the zones that offer a type; read once, since a spec may have many pools of one type."""
        if instance_type not in self._offers:
            answer = self._aws.ec2.describe_instance_type_offerings(
                LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
            )
            found = trees(answer, "InstanceTypeOfferings")
            self._offers[instance_type] = tuple(str(item.get("Location")) for item in found)
        return self._offers[instance_type]

    def reservation(self, identity: str) -> Answer:
        """Return a capacity reservation or Capacity Block by its id; {} without permission to read it."""
        if identity not in self._reservations:
            self._reservations[identity] = self.reservation_now(identity)
        return self._reservations[identity]

    def reservation_now(self, identity: str) -> Answer:
        """Return a capacity reservation as it is now, with its free machines; see `reservation`."""
        describe = partial(self._aws.ec2.describe_capacity_reservations, CapacityReservationIds=[identity])
        answer = unless(_NOT_ALLOWED, describe)
        found = trees(answer, "CapacityReservations") if answer else []
        return found[0] if found else {}

    def parameter(self, name: str) -> str | None:
        """Return the value of a public parameter; "" if there is none, None without permission to read it."""
        if name not in self._parameters:
            get = partial(unless, _NO_PARAMETER, partial(self._aws.ssm.get_parameter, Name=name))
            answer = unless(_NOT_ALLOWED, lambda: get() or {})
            self._parameters[name] = None if answer is None else str(at(answer, "Parameter", "Value") or "")
        return self._parameters[name]

    def subnets(self, names: Iterable[str]) -> dict[str, Subnet]:
        """Return subnets by id, omitting deleted ones; each is read once.

        Uses a filter, because a deleted subnet fails a query by ids.
        """
        requested = set(names)
        if unknown := sorted(requested - self._subnets.keys()):
            answer = self._aws.ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": unknown}])
            for item in trees(answer, "Subnets"):
                name, zone = str(item.get("SubnetId")), str(item.get("AvailabilityZone"))
                self._subnets[name] = Subnet(name, zone, bool(item.get("MapPublicIpOnLaunch")))
        return {name: subnet for name, subnet in self._subnets.copy().items() if name in requested}

    def security_group_rules(self, groups: Sequence[str]) -> list[Answer] | None:
        """Return the rules of security groups; None without permission to read them."""
        key = tuple(groups)
        if key not in self._rules:
            describe = self._aws.ec2.describe_security_group_rules
            self._rules[key] = self._pages(describe, "SecurityGroupRules", "group-id", groups)
        return self._rules[key]

    def route_tables(self, vpc: str) -> list[Answer] | None:
        """Return the route tables of a VPC; None without permission to read them."""
        if vpc not in self._tables:
            self._tables[vpc] = self._pages(self._aws.ec2.describe_route_tables, "RouteTables", "vpc-id", [vpc])
        return self._tables[vpc]

    def placement_group(self, name: str) -> tuple[Answer | None, bool]:
        """Return a placement group, None if it does not exist, and whether reading it is permitted."""
        if name not in self._groups:
            find = partial(unless, _NOT_ALLOWED, lambda: (PlacementGroups(self._aws).find(name), True))
            self._groups[name] = find() or (None, False)
        return self._groups[name]

    def _pages(
        self, describe: Callable[..., Answer], member: str, name: str, values: Sequence[str]
    ) -> list[Answer] | None:  # fmt: skip
        """Return all items of a filtered list; None without permission."""
        filters = [{"Name": name, "Values": list(values)}]
        answer = unless(_NOT_ALLOWED, partial(describe, Filters=filters))
        if answer is None:
            return None
        found: list[Answer] = [*trees(answer, member)]
        while token := str(answer.get("NextToken") or ""):
            answer = describe(Filters=filters, NextToken=token)
            found += trees(answer, member)
        return found

    def zones(self, names: Iterable[str]) -> dict[str, str]:
        """Return subnet id -> Availability Zone."""
        return {name: subnet.zone for name, subnet in self.subnets(names).items()}
