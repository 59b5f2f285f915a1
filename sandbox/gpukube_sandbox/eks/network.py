"""EC2's network of a cluster: subnets and their routes, security groups and their rules.

In scope: the calls that describe them. Out of scope: the XML itself (`query`), which subnets exist (`clusters`).

Sources: botocore ec2/2016-11-15; docs: eks/sec-group-reqs, vpc/VPC_Route_Tables.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.filters import filtered, page_of, tag_set
from gpukube_sandbox.eks.instances import zone_id
from gpukube_sandbox.eks.wire.answers import AwsError, Json
from gpukube_sandbox.eks.wire.query import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube_sandbox.eks.clusters import EksCluster, Subnet
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.identity import Caller

_SELF_EGRESS_FROM = 33
"""First minor version whose cluster security group has an egress rule to itself (eksctl-io/eksctl#8509)."""
_EVERYWHERE = "0.0.0.0/0"
_SUBNET_FILTERS = {
    "vpc-id": "vpcId", "subnet-id": "subnetId", "subnet-arn": "subnetArn", "availability-zone": "availabilityZone",
    "availability-zone-id": "availabilityZoneId", "map-public-ip-on-launch": "mapPublicIpOnLaunch", "state": "state",
    "cidr-block": "cidrBlock", "owner-id": "ownerId", "default-for-az": "defaultForAz",
    "available-ip-address-count": "availableIpAddressCount",
}  # fmt: skip
_TABLE_FILTERS = {
    "association.subnet-id": "associationSet.subnetId", "association.main": "associationSet.main",
    "association.route-table-id": "associationSet.routeTableId", "route-table-id": "routeTableId", "vpc-id": "vpcId",
    "route.gateway-id": "routeSet.gatewayId", "route.nat-gateway-id": "routeSet.natGatewayId",
    "route.destination-cidr-block": "routeSet.destinationCidrBlock", "owner-id": "ownerId",
}  # fmt: skip
_GROUP_FILTERS = {
    "group-id": "groupId", "group-name": "groupName", "description": "groupDescription", "owner-id": "ownerId",
    "vpc-id": "vpcId",
}  # fmt: skip
_RULE_FILTERS = {"group-id": "groupId", "security-group-rule-id": "securityGroupRuleId"}


def _describe_subnets(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    clusters = service.in_region(caller.account, caller.region)
    found = [_subnet(cluster, subnet) for cluster in clusters for subnet in cluster.subnets]
    ids = numbered(params, "SubnetId")
    known = {str(entry["subnetId"]) for entry in found}
    unknown = [name for name in ids if name not in known]
    if unknown:
        raise AwsError("InvalidSubnetID.NotFound", f"The subnet ID '{unknown[0]}' does not exist")
    if ids:
        found = [entry for entry in found if entry["subnetId"] in ids]
    page, more = page_of(filtered(params, found, _SUBNET_FILTERS), params, 1000)
    return {"subnetSet": {"item": list(page)}, "nextToken": more}


def _subnet(cluster: EksCluster, subnet: Subnet) -> Json:
    role = "kubernetes.io/role/elb" if subnet.public else "kubernetes.io/role/internal-elb"
    kind = "public" if subnet.public else "private"
    tags = {"Name": f"{cluster.name}-{kind}-{subnet.zone}", role: "1"}
    return {
        "subnetId": subnet.id,
        "subnetArn": f"arn:aws:ec2:{cluster.region}:{cluster.account}:subnet/{subnet.id}",
        "state": "available",
        "vpcId": cluster.vpc,
        "ownerId": cluster.account,
        "cidrBlock": subnet.cidr,
        "availableIpAddressCount": subnet.free,
        "availabilityZone": f"{cluster.region}{subnet.zone}",
        "availabilityZoneId": zone_id(cluster.region, subnet.zone),
        "defaultForAz": False,
        "mapPublicIpOnLaunch": subnet.public,
        "assignIpv6AddressOnCreation": False,
        "tagSet": tag_set(tags),
    }


def _describe_tables(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return three route tables of each VPC: of its public subnets, of its private ones, and the main one.

    Public subnets have a route to an internet gateway, private ones to a NAT gateway; no subnet uses the main table.
    """
    found = [table for cluster in service.in_region(caller.account, caller.region) for table in _tables(cluster)]
    ids = numbered(params, "RouteTableId")
    if unknown := [name for name in ids if name not in {table["routeTableId"] for table in found}]:
        message = f"The routeTable ID '{unknown[0]}' does not exist"
        raise AwsError("InvalidRouteTableID.NotFound", message)
    found = [table for table in found if not ids or table["routeTableId"] in ids]
    page, more = page_of(filtered(params, found, _TABLE_FILTERS), params, 100)
    return {"routeTableSet": {"item": list(page)}, "nextToken": more}


def _tables(cluster: EksCluster) -> Iterator[Json]:
    public = [subnet.id for subnet in cluster.subnets if subnet.public]
    private = [subnet.id for subnet in cluster.subnets if not subnet.public]
    yield _table(cluster, "main", {}, [])
    yield _table(cluster, "public", {"gatewayId": f"igw-0{cluster.digest('igw')}"}, public)
    yield _table(cluster, "private", {"natGatewayId": f"nat-0{cluster.digest('nat')}"}, private)


def _table(cluster: EksCluster, kind: str, gateway: Json, subnets: list[str]) -> Json:
    identity, state = f"rtb-0{cluster.digest(kind)}", {"state": "associated"}
    local: Json = {"destinationCidrBlock": "10.0.0.0/16", "gatewayId": "local", "origin": "CreateRouteTable"}
    routes = [local, *([{"destinationCidrBlock": _EVERYWHERE, **gateway, "origin": "CreateRoute"}] if gateway else [])]
    links: list[Json] = [
        {
            "routeTableAssociationId": f"rtbassoc-0{cluster.digest(f'link/{name}')}",
            "routeTableId": identity,
            "subnetId": name or None,
            "main": not name,
            "associationState": state,
        }
        for name in (subnets if gateway else [""])
    ]
    return {
        "routeTableId": identity,
        "vpcId": cluster.vpc,
        "ownerId": cluster.account,
        "routeSet": {"item": [{**route, "state": "active"} for route in routes]},
        "associationSet": {"item": links},
        "tagSet": tag_set({"Name": f"{cluster.name}-{kind}"}),
    }


def _describe_groups(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    """Return the declared security groups and those that EKS creates for clusters, with their rules."""
    found = {str(group["groupId"]): group for group in _groups(service, caller)}
    requested = numbered(params, "GroupId")
    for name in requested:
        if not name.startswith("sg-"):  # aws/aws-cdk#20800
            raise AwsError("InvalidGroupId.Malformed", f'Invalid id: "{name}" (expecting "sg-...")')
        if name not in found:  # boto/boto3#701
            raise AwsError("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
    entries = [found[name] for name in requested or sorted(found)]
    page, more = page_of(filtered(params, entries, _GROUP_FILTERS), params, 1000)
    return {"securityGroupInfo": {"item": list(page)}, "nextToken": more}


def _groups(service: EksService, caller: Caller) -> Iterator[Json]:
    clusters, known = service.in_region(caller.account, caller.region), service.known(caller.account, caller.region)
    vpc, of_clusters = clusters[0].vpc if clusters else "", {cluster.security_group for cluster in clusters}
    for name in known.groups - of_clusters:
        yield _group(caller, name, name, vpc, itself=(name in known.efa_groups,) * 2)
    for cluster in clusters:
        name, minor = f"eks-cluster-sg-{cluster.name}", int(cluster.kubernetes_version.split(".")[1])
        own = {"aws:eks:cluster-name": cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"}
        itself = True, minor >= _SELF_EGRESS_FROM
        yield _group(caller, cluster.security_group, name, cluster.vpc, itself=itself) | {"tagSet": tag_set(own)}


def _group(caller: Caller, identity: str, name: str, vpc: str, *, itself: tuple[bool, bool]) -> Json:
    """Return a security group that allows all traffic out, and, if `itself` says so, in from and out to itself."""
    peer: Json = {"userId": caller.account, "groupId": identity}
    return {
        "groupId": identity,
        "groupName": name,
        "groupDescription": name,
        "ownerId": caller.account,
        "securityGroupArn": f"arn:aws:ec2:{caller.region}:{caller.account}:security-group/{identity}",
        "vpcId": vpc,
        "ipPermissions": {"item": [_permission([peer], [])] if itself[0] else []},
        "ipPermissionsEgress": {"item": [_permission([peer] if itself[1] else [], [_EVERYWHERE])]},
    }


def _permission(peers: list[Json], ranges: list[str]) -> Json:
    """Return a permission of all traffic; its lists are there even if empty."""
    return {
        "ipProtocol": "-1",
        "groups": {"item": peers},
        "ipRanges": {"item": [{"cidrIp": one} for one in ranges]},
        "ipv6Ranges": {"item": []},
        "prefixListIds": {"item": []},
    }


def _describe_rules(service: EksService, caller: Caller, params: Mapping[str, str]) -> Json:
    found = [rule for group in _groups(service, caller) for rule in _rules(group)]
    requested = numbered(params, "SecurityGroupRuleId")
    if unknown := [name for name in requested if name not in {rule["securityGroupRuleId"] for rule in found}]:
        message = f"The security group rule ID '{unknown[0]}' does not exist"
        raise AwsError("InvalidSecurityGroupRuleId.NotFound", message)
    found = [rule for rule in found if not requested or rule["securityGroupRuleId"] in requested]
    page, more = page_of(filtered(params, found, _RULE_FILTERS), params, 1000)
    return {"securityGroupRuleSet": {"item": list(page)}, "nextToken": more}


def _rules(group: Json) -> Iterator[Json]:
    """Yield the rules of a group: one for each peer of its permissions."""
    name = str(group["groupId"])
    peers = {"groups": "referencedGroupInfo", "ipRanges": "cidrIpv4"}
    for direction in ("ipPermissions", "ipPermissionsEgress"):
        for permission in _items(group[direction]):
            for key, member in peers.items():
                for peer in _items(permission.get(key)):
                    digest = hashlib.sha256(f"{name}/{direction}/{key}".encode()).hexdigest()
                    yield {
                        "securityGroupRuleId": f"sgr-0{digest[:16]}",
                        "groupId": name,
                        "groupOwnerId": group["ownerId"],
                        "isEgress": direction == "ipPermissionsEgress",
                        "ipProtocol": permission["ipProtocol"],
                        "fromPort": -1,
                        "toPort": -1,
                        member: peer if key == "groups" else peer["cidrIp"],
                    }


def _items(value: object) -> list[Json]:
    found = value.get("item") if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


ACTIONS: dict[str, Callable[[EksService, Caller, Mapping[str, str]], Json]] = {
    "DescribeSubnets": _describe_subnets,
    "DescribeRouteTables": _describe_tables,
    "DescribeSecurityGroups": _describe_groups,
    "DescribeSecurityGroupRules": _describe_rules,
}
"""Actions of EC2, next to those of `ec2`."""
