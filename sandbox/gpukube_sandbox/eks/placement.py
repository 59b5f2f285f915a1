"""Where the machines of a placement group may launch.

In scope: the placement group that a launch template names, its machines, their zone. Out of scope: the calls of EC2
(`placementgroups`), reservations that have a placement group (`reservations`).

Source: docs: AWSEC2/APIReference errors-overview (the codes), AWSEC2/latest/UserGuide/placement-strategies.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.things import PlacementGroup
from gpukube_sandbox.eks.wire.answers import AwsError, Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.eks.clusters import Known
    from gpukube_sandbox.eks.groups import Instance
    from gpukube_sandbox.eks.instances import InstanceType

STRATEGIES = ("cluster", "partition", "spread")
_BURSTABLE = frozenset({"t2", "t3", "t3a", "t4g"})


def strategies_of(kind: InstanceType) -> tuple[str, ...]:
    """Return the strategies of placement groups in which a type can launch."""
    return STRATEGIES[1:] if kind.family in _BURSTABLE else STRATEGIES


def placement_name(data: Json | None) -> str:
    """Return the name or id of the placement group that a launch template names; "" for none."""
    given = (data or {}).get("Placement")
    return str(given.get("GroupName") or given.get("GroupId") or "") if isinstance(given, dict) else ""


def requested_placement(data: Json | None, known: Known) -> PlacementGroup | None:
    """Return the placement group that a launch template names; None for none, or if it does not exist."""
    name = placement_name(data)
    return next((one for one in known.placement_groups.values() if name in {one.name, one.id}), None)


def zone_of(known: Known, placement: PlacementGroup) -> str:
    """Return the Availability Zone of a cluster placement group's machines; "" without machines, or if any may do."""
    if placement.strategy != "cluster":
        return ""
    return next((machine.zone for machine in machines_in(known, placement)), "")


def machines_in(known: Known, placement: PlacementGroup) -> Iterator[Instance]:
    """Yield the machines of a placement group."""
    for cluster in known.clusters:
        for group in cluster.groups.values():
            if placement_name(group.data) in {placement.name, placement.id}:
                yield from (group.instances[node] for node in group.nodes)


def new_placement_group(account: str, region: str, name: str, strategy: str = "cluster") -> PlacementGroup:
    """Return a placement group; its id is the same in every run."""
    digest = hashlib.sha256(f"{account}/{region}/{name}".encode()).hexdigest()
    return PlacementGroup(name, f"pg-0{digest[:16]}", strategy)


def placement_arn(account: str, region: str, name: str) -> str:
    """Return a placement group's ARN."""
    return f"arn:aws:ec2:{region}:{account}:placement-group/{name}"


def unknown_group(name: str) -> AwsError:
    """Return the error about a placement group that does not exist."""
    return AwsError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
