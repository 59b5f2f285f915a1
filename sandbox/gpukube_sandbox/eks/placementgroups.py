"""The calls on EC2's placement groups.

In scope: creating, describing, and deleting them. Out of scope: the XML itself (`query`), what they mean for a launch
(`placement`).

Sources: botocore ec2/2016-11-15; docs: AWSEC2/APIReference errors-overview (the codes); a message without a source is
unconfirmed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.filters import filtered, read_tags, tag_set
from gpukube_sandbox.eks.placement import STRATEGIES, machines_in, new_placement_group, placement_arn, unknown_group
from gpukube_sandbox.eks.wire.answers import AwsError, Json
from gpukube_sandbox.eks.wire.query import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.things import PlacementGroup
    from gpukube_sandbox.eks.wire.identity import Caller

_LONGEST = 255
_FILTERS = {
    "group-name": "groupName", "group-arn": "groupArn", "state": "state", "strategy": "strategy",
    "spread-level": "spreadLevel",
}  # fmt: skip


def _create(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known, name = service.known(caller.account, caller.region), params.get("GroupName", "")
    strategy, count = params.get("Strategy", "cluster"), params.get("PartitionCount", "")
    if not name:
        raise AwsError("MissingParameter", "The request must contain the parameter groupName")
    if len(name) > _LONGEST or not name.isascii():  # botocore: up to 255 ASCII characters
        raise AwsError("InvalidParameterValue", f"Value ({name}) for parameter groupName is invalid.")
    if strategy not in STRATEGIES:
        raise AwsError("InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.")
    if count and strategy != "partition":
        message = "The parameter partitionCount is only supported with the partition strategy."
        raise AwsError("InvalidParameterCombination", message)
    if name in known.placement_groups:  # cybertronai/ncluster#35
        raise AwsError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
    made = replace(
        new_placement_group(caller.account, caller.region, name, strategy),
        partitions=int(count or 2) if strategy == "partition" else 0,
        tags=read_tags(params, "placement-group"),
    )
    known.placement_groups[name] = made
    return {"placementGroup": _shown(caller, made)}


def _describe(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    groups = service.known(caller.account, caller.region).placement_groups
    names, ids = numbered(params, "GroupName"), numbered(params, "GroupId")
    known = {*groups, *(one.id for one in groups.values())}
    if unknown := [name for name in (*names, *ids) if name not in known]:
        raise unknown_group(unknown[0])
    found = [
        _shown(caller, one)
        for name, one in sorted(groups.items())
        if not (names or ids) or name in names or one.id in ids
    ]
    return {"placementGroupSet": {"item": filtered(params, found, _FILTERS)}}


def _delete(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    known, name = service.known(caller.account, caller.region), params.get("GroupName", "")
    found = known.placement_groups.get(name)
    if found is None:
        raise unknown_group(name)
    if next(machines_in(known, found), None) is not None:  # docs: errors-overview; message unconfirmed
        message = f"The placement group '{name}' is in use and may not be deleted."
        raise AwsError("InvalidPlacementGroup.InUse", message)
    del known.placement_groups[name]
    return {"return": True}


def _shown(caller: Caller, found: PlacementGroup) -> Json:
    return {
        "groupName": found.name,
        "groupId": found.id,
        "groupArn": placement_arn(caller.account, caller.region, found.name),
        "state": "available",
        "strategy": found.strategy,
        "partitionCount": found.partitions or None,
        "spreadLevel": "rack" if found.strategy == "spread" else None,
        "tagSet": tag_set(found.tags),
    }


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "CreatePlacementGroup": _create,
    "DescribePlacementGroups": _describe,
    "DeletePlacementGroup": _delete,
}
"""Actions of EC2, next to those of `ec2`."""
