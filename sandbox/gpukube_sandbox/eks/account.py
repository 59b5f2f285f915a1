"""The actions of STS, IAM, and Auto Scaling that node groups need.

In scope: the caller's identity, IAM roles, the groups' instances and activities. Out of scope: signatures
(`identity`), the XML itself (`query`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.things import CONTROL_PLANE
from gpukube_sandbox.eks.wire.answers import AwsError, Json, objects_in
from gpukube_sandbox.eks.wire.identity import SESSION, access_key
from gpukube_sandbox.eks.wire.query import numbered, structures, when
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.things import Role
    from gpukube_sandbox.eks.wire.identity import Caller

_SESSION_S = 3600
_MAX_TAGS = 25
_MAX_RECORDS = 100
_ROLE_NAME = re.compile(r"[\w+=,.@-]+", re.ASCII)
_NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly")
_CLUSTER_POLICIES = ("AmazonEKSClusterPolicy",)


def _caller_identity(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    del service, params
    return {"Arn": caller.arn, "UserId": caller.user_id, "Account": caller.account}


def _assume_role(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Allow assuming any role of any account; the session's key identifies the account."""
    del caller
    arn = params.get("RoleArn", "")
    parts = arn.split(":")
    if len(parts) != 6 or parts[2] != "iam" or not parts[5].startswith("role/"):  # noqa: PLR2004 - parts of an ARN
        raise AwsError("ValidationError", f"{arn} is invalid")
    account, role, name = parts[4], parts[5].removeprefix("role/"), params.get("RoleSessionName", "")
    credentials: Json = {
        "AccessKeyId": access_key(account, session=True),
        "SecretAccessKey": service.secret,
        "SessionToken": f"{SESSION}/{role}",
        "Expiration": when(service.clock.now() + _SESSION_S * max(service.clock.speed, 1)),
    }
    user: Json = {
        "AssumedRoleId": f"AROAGPUK{account}:{name}",
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role}/{name}",
    }
    return {"Credentials": credentials, "AssumedRoleUser": user}


STS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "GetCallerIdentity": _caller_identity,
    "AssumeRole": _assume_role,
}


def _role(role: Role) -> Json:
    services = list(role.services)
    principal = {"Service": services[0] if len(services) == 1 else services}
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement] if services else []})
    path = role.arn.partition(":role")[2].removesuffix(role.name)
    return {
        "Path": path,
        "RoleName": role.name,
        "RoleId": f"AROA{role.name.upper()[:17]:X<17}",
        "Arn": role.arn,
        "CreateDate": when(role.created),
        "AssumeRolePolicyDocument": policy,
    }


def _list_roles(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    roles = [_role(role) for _, role in sorted(service.roles(caller.account).items())]
    try:
        page, following = cut("ListRoles", roles, params.get("Marker", ""), int(params.get("MaxItems", "100")))
    except WrongToken as error:
        raise AwsError("ValidationError", "Invalid Marker.") from error
    more: Json = {"Marker": following} if following else {}
    return {"Roles": {"member": list(page)}, "IsTruncated": bool(more), **more}


def _require_role(service: EksService, caller: Caller, params: Mapping[str, str]) -> Role:
    name = params.get("RoleName", "")
    if not _ROLE_NAME.fullmatch(name):  # kubecost/docs#36, shashankprasanna/torchserve-examples#7
        message = (
            "The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the "
        )
        raise AwsError("ValidationError", f"{message}following: +=,.@_-")
    found = service.roles(caller.account).get(name)
    if found is None:
        raise AwsError("NoSuchEntity", f"The role with name {name} cannot be found.", status=404)
    return found


def _get_role(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    return {"Role": _role(_require_role(service, caller, params))}


def _list_policies(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    role = _require_role(service, caller, params)
    names = _CLUSTER_POLICIES if CONTROL_PLANE in role.services else _NODE_POLICIES
    members = [{"PolicyName": name, "PolicyArn": f"arn:aws:iam::aws:policy/{name}"} for name in names]
    return {"AttachedPolicies": {"member": members}, "IsTruncated": False}


IAM: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "ListRoles": _list_roles,
    "GetRole": _get_role,
    "ListAttachedRolePolicies": _list_policies,
}


def _groups(service: EksService, caller: Caller) -> Iterator[tuple[EksCluster, NodeGroup]]:
    for cluster in service.in_region(caller.account, caller.region):
        for group in cluster.groups.values():
            yield cluster, group


def _describe_groups(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    names = numbered(params, "AutoScalingGroupNames.member")
    found = [_asg(cluster, group) for cluster, group in _groups(service, caller) if not names or group.asg in names]
    return {"AutoScalingGroups": {"member": found}}


def _asg(cluster: EksCluster, group: NodeGroup) -> Json:
    zones = sorted({f"{cluster.region}{cluster.zone(str(name))}" for name in _subnets(group)})
    instances: list[Json] = [
        {
            "InstanceId": group.instances[node].id,
            "AvailabilityZone": group.instances[node].zone,
            "LifecycleState": "InService",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for node in group.nodes
    ]
    return {
        "AutoScalingGroupName": group.asg,
        "AutoScalingGroupARN": f"arn:aws:autoscaling:{cluster.region}:{cluster.account}:autoScalingGroup:x:{group.asg}",
        "MinSize": group.scaling["minSize"],
        "MaxSize": group.scaling["maxSize"],
        "DesiredCapacity": group.scaling["desiredSize"],
        "DefaultCooldown": 300,
        "AvailabilityZones": {"member": zones},
        "HealthCheckType": "EC2",
        "CreatedTime": when(group.created),
        "VPCZoneIdentifier": ",".join(_subnets(group)),
        "Instances": {"member": instances},
        "Tags": {"member": [_tag(group, key, value) for key, value in group.asg_tags.items()]},
    }


def _subnets(group: NodeGroup) -> list[str]:
    found = group.members["subnets"]
    return [str(name) for name in found] if isinstance(found, list) else []


def _tag(group: NodeGroup, key: str, value: str) -> Json:
    return {
        "ResourceId": group.asg,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": True,
    }


def _describe_activities(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return activities, newest first."""
    name, ids = params.get("AutoScalingGroupName", ""), numbered(params, "ActivityIds.member")
    entries = [(group, activity) for _, group in _groups(service, caller) for activity in group.activities]
    found: list[Json] = []
    for group, activity in sorted(entries, key=lambda entry: -float(str(entry[1]["StartTime"]))):
        if name in {"", group.asg} and (not ids or activity["ActivityId"] in ids):
            moment = when(float(str(activity["StartTime"])))
            shown = {**activity, "StartTime": moment, "EndTime": moment, "AutoScalingGroupName": group.asg}
            found.append({key: value for key, value in shown.items() if value != ""})
    size = params.get("MaxRecords") or str(_MAX_RECORDS)
    if not size.isdigit() or not 1 <= int(size) <= _MAX_RECORDS:
        raise AwsError("ValidationError", f"MaxRecords {size} must be between 1 and {_MAX_RECORDS}")
    try:
        page, following = cut("DescribeScalingActivities", found, params.get("NextToken", ""), int(size))
    except WrongToken as error:
        raise AwsError("InvalidNextToken", "The NextToken value is not valid.") from error
    more: Json = {"NextToken": following} if following else {}
    return {"Activities": {"member": list(page)}, **more}


def _put_tags(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Set tags, at most 25 per call (docs: autoscaling CreateOrUpdateTags; eksctl-io/eksctl has the same limit)."""
    places = structures(params, "Tags.member")
    if len(places) > _MAX_TAGS:
        raise AwsError("ValidationError", f"At most {_MAX_TAGS} tags can be set in one call")
    known = {group.asg: group for _, group in _groups(service, caller)}
    for place in places:
        name = params.get(f"{place}ResourceId", "")
        if name not in known:
            raise AwsError("ValidationError", f"AutoScalingGroup name not found - no such group: {name}")
        known[name].asg_tags[params.get(f"{place}Key", "")] = params.get(f"{place}Value", "")
    return {}


def _describe_tags(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    found = [_tag(group, key, value) for _, group in _groups(service, caller) for key, value in group.asg_tags.items()]
    for place in structures(params, "Filters.member"):
        name, values = params.get(f"{place}Name", ""), numbered(params, f"{place}Values.member")
        key = {"auto-scaling-group": "ResourceId", "key": "Key", "value": "Value"}.get(name, "ResourceId")
        found = [tag for tag in found if tag[key] in values]
    return {"Tags": {"member": objects_in(found)}}


AUTOSCALING: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "DescribeAutoScalingGroups": _describe_groups,
    "DescribeScalingActivities": _describe_activities,
    "CreateOrUpdateTags": _put_tags,
    "DescribeTags": _describe_tags,
}
