"""Builds the IAM policy that specs need: one per account, split if it exceeds IAM's size limit.

In scope: which permissions apply, and their resources and conditions. Out of scope: the permissions
themselves (`facts.permissions`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text
from gpukube.core.permissions import EXTRAS, CloudPolicy
from gpukube_eks.facts.permissions import COMPACT, FAST, OPEN_ROLE, PERMISSIONS, PLACED, RESERVED, TAGGED
from gpukube_eks.pool import placement_groups
from gpukube_eks.pool.template import CLUSTER_TAG
from gpukube_eks.pool.translate import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.permissions import ClusterPools, Permission, PolicyScope

_LARGEST: Final = 6144
"""Maximum characters of a managed policy, without white space (docs: IAM/reference_iam-quotas)."""
_MOST: Final = 10
"""Maximum managed policies of a role, by default (same page)."""
_SERVICE: Final = "eks-nodegroup.amazonaws.com"
_SERVICE_ROLE: Final = f"aws-service-role/{_SERVICE}/AWSServiceRoleForAmazonEKSNodegroup"
"""Service-linked role of node groups (eksctl-io/eksctl userdocs, minimum-iam-policies)."""
_PASSED_TO: Final = ("eks.amazonaws.com", _SERVICE, "ec2.amazonaws.com")
"""Services that the role is passed to. AWS's examples have the first (docs:
eks/security-iam-id-based-policy-examples); AWS does not document which one EKS checks in CreateNodegroup."""
_LAUNCHED: Final = ("instance", "network-interface", "security-group", "subnet", "volume", "launch-template")
"""Resource types that RunInstances is checked against, in addition to the image, which is not in the account."""


def write_policies(scope: PolicyScope) -> tuple[CloudPolicy, ...]:
    """Return the policy of each account; several if one would exceed IAM's size limit."""
    places = scope.by("account").items()
    return tuple(policy for place, clusters in places for policy in _policies(place, clusters, scope))


def _account(item: ClusterPools) -> str:
    return item.cluster.identity["account"]


def _policies(account: str, clusters: Sequence[ClusterPools], scope: PolicyScope) -> Iterator[CloudPolicy]:
    """Split the clusters into the minimum number of policies."""
    parts: list[list[ClusterPools]] = [[]]
    for item in clusters:
        if parts[-1] and len("".join(json.dumps(_document([*parts[-1], item], scope)).split())) > _LARGEST:
            parts.append([])
        parts[-1].append(item)
    for number, part in enumerate(parts, 1):
        suffix = f"-{number}" if len(parts) > 1 else ""
        name = f"gpukube-{scope.level}{suffix}"
        file = f"eks-{account}-{scope.level}{suffix}.json"
        counted = f", part {number} of {len(parts)}" if len(parts) > 1 else ""
        arn = f"arn:{_partition(part[0])}:iam::{account}:policy/{name}"
        yield CloudPolicy(
            title=f"IAM policy for account {account}{counted}",
            place=account,
            clusters=tuple(item.cluster.key for item in part),
            file=file,
            documents=(_document(part, scope),),
            commands=(
                f"aws iam create-policy --policy-name {name} --policy-document file://{file}",
                f"aws iam attach-role-policy --role-name IDENTITY --policy-arn {arn}",
            ),
            permissions=scope.choose(PERMISSIONS, _circumstances(part)),
            notes=tuple(_notes(part, scope, parts=len(parts))),
        )


def _circumstances(clusters: Sequence[ClusterPools]) -> set[str]:
    pools = [pool for item in clusters for pool in item.desired]
    found = {
        RESERVED: any(pool.target.capacity.reservation for pool in pools),
        OPEN_ROLE: any("nodeRole" not in group_of(pool) for pool in pools),
        TAGGED: any(pool.target.tags for pool in pools),
        FAST: any(pool.target.high_speed for pool in pools),
        PLACED: any(pool.target.placement not in ("", placement_groups.NONE) for pool in pools),
        COMPACT: any(pool.target.placement == placement_groups.COMPACT for pool in pools),
        EXTRAS["alternatives"]: any(pool.target.family and not pool.target.nodes.autoscaled for pool in pools),
    }
    return {name for name, holds in found.items() if holds}


def _notes(clusters: Sequence[ClusterPools], scope: PolicyScope, *, parts: int) -> Iterator[str]:
    if parts > 1:
        yield f"IAM allows {_LARGEST:,} characters per policy: attach all {parts} parts to the identity"
    if parts > _MOST:
        yield (
            f"IAM allows {_MOST} policies per role unless its quota is raised: use an identity for each part of the "
            "clusters (--shard, --cluster)"
        )
    if roles := sorted({role for item in clusters if (role := item.cluster.identity.get("roleArn", ""))}):
        yield (
            f"attach it to {', '.join(roles)}, which gpukube assumes; the identity that runs gpukube needs only "
            "sts:AssumeRole on it, and the permissions of --live-prices and gpukube catalog refresh"
        )
    if scope.level != "apply":
        return
    if OPEN_ROLE in _circumstances(clusters) or not any(item.desired for item in clusters):
        yield "iam:PassRole covers all roles of the account that EKS and EC2 accept: write eks.nodeRole to name one"
    yield (
        "ec2:RunInstances and ec2:CreateLaunchTemplateVersion cover every launch template in the region: EKS checks "
        "that the caller itself may launch such instances"
    )


def _document(clusters: Sequence[ClusterPools], scope: PolicyScope) -> dict[str, object]:
    """Return the policy: one statement for all permissions on the same resources."""
    rows = scope.choose(PERMISSIONS, _circumstances(clusters))
    chosen = {kind: [row for row in rows if kind in row.scope.split()] for kind in _STATEMENTS}
    statements = [_statement(kind, some, clusters) for kind, some in chosen.items() if some]
    return {"Version": "2012-10-17", "Statement": statements}


def _statement(kind: str, rows: Sequence[Permission], clusters: Sequence[ClusterPools]) -> dict[str, object]:
    resources, condition = _resources(kind, clusters), _condition(kind, clusters)
    return {
        "Sid": _STATEMENTS[kind],
        "Effect": "Allow",
        "Action": sorted({row.name for row in rows}),
        "Resource": resources,
        **({"Condition": condition} if condition else {}),
    }


_STATEMENTS: Final = {
    "cluster": "Clusters",
    "nodegroup": "NodeGroups",
    "new-nodegroup": "NewNodeGroupTags",
    "region": "Region",
    "any": "Account",
    "quota": "Quotas",
    "parameter": "PublicParameters",
    "new-template": "NewLaunchTemplates",
    "own-template": "OwnLaunchTemplates",
    "template": "LaunchTemplates",
    "template-tags": "LaunchTemplateTags",
    "machine-tags": "InstanceTags",
    "new-placement": "NewPlacementGroups",
    "placement-tags": "PlacementGroupTags",
    "own-placement": "OwnPlacementGroups",
    "launch": "LaunchInstances",
    "role": "NodeRole",
    "read-role": "NodeRolePolicies",
    "service-role": "ServiceLinkedRole",
    "new-service-role": "NewServiceLinkedRole",
}
"""Scope of a row -> Sid of its statement, in the order of the policy."""
_OF_EC2: Final = {
    **dict.fromkeys(("new-template", "own-template", "template", "template-tags"), ("launch-template",)),
    **dict.fromkeys(("new-placement", "own-placement", "placement-tags"), ("placement-group",)),
    "machine-tags": ("instance", "volume"),
}
"""Scope of a row -> resource types of EC2 in the account and region."""


def _resources(kind: str, clusters: Sequence[ClusterPools]) -> list[str]:
    made = list(dict.fromkeys(arn for item in clusters for arn in _arns(kind, item)))
    if kind in ("role", "read-role") and not made:  # no declared pool could name one
        return [f"arn:{_partition(clusters[0])}:iam::{_account(clusters[0])}:role/*"]
    return made


def _arns(kind: str, item: ClusterPools) -> Iterator[str]:
    region, account, name = item.cluster.identity["region"], _account(item), item.cluster.name
    prefix = f"arn:{_partition(item)}"
    eks, ec2, iam = f"{prefix}:eks:{region}:{account}", f"{prefix}:ec2:{region}:{account}", f"{prefix}:iam::{account}"
    if kind == "cluster":
        yield f"{eks}:cluster/{name}"
    elif kind == "nodegroup":
        yield f"{eks}:nodegroup/{name}/*/*"
    elif kind == "new-nodegroup":  # EKS's name of a resource that does not exist yet, as reported for CreateAddon
        yield f"{eks}:/createnodegroup"
    elif kind in _OF_EC2:
        yield from (f"{ec2}:{resource}/*" for resource in _OF_EC2[kind])
    elif kind == "launch":
        yield from (f"{ec2}:{resource}/*" for resource in _LAUNCHED)
        yield f"{prefix}:ec2:{region}::image/*"
        if any(pool.target.placement not in ("", placement_groups.NONE) for pool in item.desired):
            yield f"{ec2}:placement-group/*"
        keys = sorted({text(pool.target.native, "keyName") for pool in item.desired} - {""})
        yield from (f"{ec2}:key-pair/{name}" for name in keys)
        # Each is an id, or the ARN of a group of reservations.
        reserved = sorted({found.id for pool in item.desired if (found := pool.target.capacity.reservation)})
        yield from (one if one.startswith("arn:") else f"{ec2}:capacity-reservation/{one}" for one in reserved)
    elif kind in ("role", "read-role"):
        yield from _roles(item, f"{iam}:role/*")
    elif kind in ("service-role", "new-service-role"):
        yield f"{iam}:role/{_SERVICE_ROLE}"
    elif kind == "quota":
        yield from (f"{prefix}:servicequotas:{region}:{account}:{service}/*" for service in ("ec2", "eks"))
    elif kind == "parameter":
        yield f"{prefix}:ssm:{region}::parameter/aws/service/*"
    elif kind in ("region", "any"):
        yield "*"


def _roles(item: ClusterPools, every: str) -> list[str]:
    """Return the node roles of a cluster's pools; any role of the account if a pool leaves it open."""
    written = {str(group_of(pool).get("nodeRole", every)) for pool in item.desired}
    return [every] if every in written else sorted(written)


def _condition(kind: str, clusters: Sequence[ClusterPools]) -> dict[str, object]:
    regions = sorted({item.cluster.identity["region"] for item in clusters})
    names = sorted({item.cluster.name for item in clusters})
    conditions: dict[str, dict[str, object]] = {
        "region": {"StringEquals": {"aws:RequestedRegion": regions}},
        "new-template": {"StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": names}},
        "own-template": {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": names}},
        "template-tags": {"StringEquals": {"ec2:CreateAction": "CreateLaunchTemplate"}},
        "new-placement": {"StringEquals": {f"aws:RequestTag/{CLUSTER_TAG}": names}},
        "placement-tags": {"StringEquals": {"ec2:CreateAction": "CreatePlacementGroup"}},
        "own-placement": {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": names}},
        "machine-tags": {"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        "role": {"StringEquals": {"iam:PassedToService": list(_PASSED_TO)}},
        "new-service-role": {"StringEquals": {"iam:AWSServiceName": _SERVICE}},
    }
    return conditions.get(kind, {})


def _partition(item: ClusterPools) -> str:
    region = item.cluster.identity["region"]
    return next((name for start, name in _PARTITIONS if region.startswith(start)), "aws")


_PARTITIONS: Final = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"))
"""Prefix of regions -> partition of ARNs (docs: IAM/reference-arns)."""
