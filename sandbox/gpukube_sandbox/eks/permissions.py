"""IAM permissions that each AWS call needs, and the errors if they are missing.

In scope: the map from call to permission, and the messages. Out of scope: which permissions are denied (`permits`).

Sources: the service authorization reference (docs: service-authorization/latest/reference,
list_amazonelastickubernetesservice, list_amazonec2, list_identityandaccessmanagement, list_amazonec2autoscaling,
list_servicequotas, list_awspricelist, list_awssystemsmanager), where the permission of a call is the service's prefix
and the call's name; additional permissions have their source next to them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request

from gpukube_sandbox.eks.routes import error_response
from gpukube_sandbox.eks.wire.answers import AwsError, Json, objects_in
from gpukube_sandbox.eks.wire.identity import Caller, read_caller
from gpukube_sandbox.permits import Need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.responses import Response
    from starlette.types import Scope

    from gpukube_sandbox.eks.service import EksService

_EKS: dict[tuple[str, str], str] = {
    ("GET", "clusters"): "ListClusters",
    ("GET", "clusters/*"): "DescribeCluster",
    ("GET", "clusters/*/node-groups"): "ListNodegroups",
    ("POST", "clusters/*/node-groups"): "CreateNodegroup",
    ("GET", "clusters/*/node-groups/*"): "DescribeNodegroup",
    ("DELETE", "clusters/*/node-groups/*"): "DeleteNodegroup",
    ("POST", "clusters/*/node-groups/*/update-config"): "UpdateNodegroupConfig",
    ("POST", "clusters/*/node-groups/*/update-version"): "UpdateNodegroupVersion",
    ("GET", "clusters/*/updates"): "ListUpdates",
    ("GET", "clusters/*/updates/*"): "DescribeUpdate",
    ("GET", "clusters/*/addons"): "ListAddons",
    ("GET", "clusters/*/access-entries"): "ListAccessEntries",
    ("GET", "tags/*"): "ListTagsForResource",
    ("POST", "tags/*"): "TagResource",
    ("DELETE", "tags/*"): "UntagResource",
}
"""Method and path, with `*` for names -> call (botocore eks/2017-11-01)."""
_NAMED: dict[str, tuple[str, ...]] = {
    "ec2": (
        "CreateLaunchTemplate", "CreateLaunchTemplateVersion", "CreatePlacementGroup", "DeleteLaunchTemplate",
        "DeleteLaunchTemplateVersions", "DeletePlacementGroup", "DeleteTags", "DescribeAvailabilityZones",
        "DescribeCapacityBlockOfferings", "DescribeCapacityReservations", "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes", "DescribeInstances",
        "DescribeKeyPairs", "DescribeLaunchTemplateVersions", "DescribeLaunchTemplates", "DescribePlacementGroups",
        "DescribeRegions", "DescribeRouteTables", "DescribeSecurityGroupRules", "DescribeSecurityGroups",
        "DescribeSpotPriceHistory", "DescribeSubnets", "GetCapacityManagerAttributes",
        "GetCapacityManagerSupportabilityScores", "GetSpotPlacementScores", "ModifyLaunchTemplate",
        "PurchaseCapacityBlock",
    ),
    "iam": ("GetRole", "ListAttachedRolePolicies", "ListRoles"),
    "sts": ("AssumeRole",),
    "autoscaling": ("CreateOrUpdateTags", "DescribeAutoScalingGroups", "DescribeScalingActivities", "DescribeTags"),
    "servicequotas": ("GetAWSDefaultServiceQuota", "GetServiceQuota", "ListServiceQuotas"),
    "pricing": ("GetProducts",),
    "ssm": ("GetParameter", "GetParameters"),
}  # fmt: skip
"""Service -> its calls that need the permission of their own name. GetCallerIdentity needs none (docs:
STS/latest/APIReference/API_GetCallerIdentity)."""
_BESIDE = (
    "ec2:CreateTags", "ec2:RunInstances", "eks:TagResource", "iam:CreateServiceLinkedRole", "iam:PassRole",
)  # fmt: skip
"""Permissions without a call of that name here, or that other calls need too."""
KNOWN = frozenset(
    {
        *(f"eks:{name}" for name in _EKS.values()),
        *(f"{service}:{name}" for service, names in _NAMED.items() for name in names),
        *_BESIDE,
    }
)
"""All permissions that calls of the emulated AWS need."""
_QUERY = frozenset({"ec2", "iam", "sts", "autoscaling"})
_LINKED_ROLE = "AWSServiceRoleForAmazonEKSNodegroup"


class AwsPermissions:
    """Permissions that requests to the emulated AWS need.

    Args:
        service: Service with the templates and groups that some permissions depend on.
    """

    def __init__(self, service: EksService) -> None:
        self._service = service

    def needs(self, scope: Scope, body: bytes) -> list[Need]:
        """List what a request needs, the permission for the call itself first; [] if its signature is invalid."""
        request = Request(scope)
        try:
            caller = read_caller(request.headers, request.query_params)
        except AwsError:
            return []
        if caller.service == "eks":
            return list(self._eks_needs(request, caller, body))
        if caller.service in _QUERY:
            params = dict(parse_qsl(body.decode(errors="replace") or request.url.query, keep_blank_values=True))
            return list(_of_query(caller, params))
        action = request.headers.get("x-amz-target", "").rpartition(".")[2]
        return [Need(f"{caller.service}:{action}")] if action in _NAMED.get(caller.service, ()) else []

    def _eks_needs(self, request: Request, caller: Caller, body: bytes) -> Iterator[Need]:
        raw = request.scope.get("raw_path") or request.url.path.encode()
        parts = [unquote(part) for part in raw.decode().partition("?")[0].split("/") if part]
        action = _EKS.get((request.method, "/".join("*" if at % 2 else part for at, part in enumerate(parts))))
        if action is None:
            return
        arn = f"arn:aws:eks:{caller.region}:{caller.account}"
        cluster = parts[1] if len(parts) > 1 else "*"
        resource = cluster if parts[0] == "tags" else f"{arn}:cluster/{cluster}"
        if len(parts) > 3 and parts[2] == "node-groups":  # noqa: PLR2004 - clusters, its name, node-groups, its name
            resource = f"{arn}:nodegroup/{cluster}/{parts[3]}/*"
        yield Need(f"eks:{action}", resource)
        sent = _json(body)
        if action == "CreateNodegroup":
            yield from self._creation_needs(caller, cluster, sent, resource)
        if action == "UpdateNodegroupVersion":
            yield from self._launch_needs(caller, self._template_of(caller, cluster, parts[3], sent), action, resource)

    def _creation_needs(self, caller: Caller, cluster: str, sent: Json, at: str) -> Iterator[Need]:
        """Yield the caller's permissions that EKS itself needs, because it acts with the caller's identity.

        Sources: docs: eks/latest/userguide/security-iam-troubleshoot (PassRole); aws/karpenter-provider-aws#4434
        (TagResource on the group, for requests with tags); aws-controllers-k8s/community#2164
        (ListAttachedRolePolicies, DescribeSubnets); terraform-aws-modules/terraform-aws-eks#823 (GetRole);
        XenitAB/terraform-modules#396 (CreateServiceLinkedRole, by the first group of an account).
        """
        by = "eks:CreateNodegroup"
        role = str(sent.get("nodeRole", ""))
        name = f"role {role.rpartition('/')[2]}"
        if sent.get("tags"):
            group = f"nodegroup/{cluster}/{sent.get('nodegroupName', '')}/*"
            yield Need("eks:TagResource", f"arn:aws:eks:{caller.region}:{caller.account}:{group}", by, at)
        yield Need("iam:PassRole", role, by, at)
        yield Need("iam:GetRole", f"role {_LINKED_ROLE}", by, at)
        if not self._has_linked_role(caller.account):
            yield Need("iam:CreateServiceLinkedRole", f"role {_LINKED_ROLE}", by, at)
        yield Need("iam:ListAttachedRolePolicies", name, by, at)
        yield Need("ec2:DescribeSubnets", "", by, at)
        yield from self._launch_needs(caller, sent.get("launchTemplate"), "CreateNodegroup", at)

    def _launch_needs(self, caller: Caller, template: object, action: str, at: str) -> Iterator[Need]:
        """Yield the permissions for a custom launch template (docs: eks/latest/userguide/launch-templates)."""
        if not isinstance(template, dict):
            return
        by, data = f"eks:{action}", self._data_of(caller, template)
        yield Need("ec2:RunInstances", "", by, at)
        if objects_in(data.get("TagSpecifications")):
            yield Need("ec2:CreateTags", "", by, at)

    def _data_of(self, caller: Caller, template: Json) -> Json:
        for found in self._service.templates(caller.account, caller.region).templates.values():
            if template.get("id") == found.id or template.get("name") == found.name:
                version = found.find(str(template.get("version") or ""))
                return version.data if version else {}
        return {}

    def _template_of(self, caller: Caller, cluster: str, group: str, sent: Json) -> object:
        """Return the launch template of an update: the one in the request, or the group's."""
        named = sent.get("launchTemplate")
        if named:
            return named
        for found in self._service.in_region(caller.account, caller.region):
            if found.name == cluster and group in found.groups:
                return found.groups[group].wire().get("launchTemplate")
        return None

    def _has_linked_role(self, account: str) -> bool:
        """Return whether the service-linked role exists: an account's first node group creates it, and it stays."""
        return any(cluster.groups for cluster in self._service.clusters.values() if cluster.account == account)

    @staticmethod
    def answer(need: Need, scope: Scope) -> Response:
        """Return the response to a call without the permission."""
        request = Request(scope)
        caller = read_caller(request.headers, request.query_params)
        return error_response(caller.service, _permission_error(need, caller), str(uuid.uuid4()))


def _of_query(caller: Caller, params: Mapping[str, str]) -> Iterator[Need]:
    """Yield what an action needs; tags at creation need CreateTags (docs: list_amazonec2, dependent actions)."""
    action = params.get("Action", "")
    if action not in _NAMED[caller.service]:
        return
    kind = "placement-group" if action.endswith("PlacementGroup") else "launch-template"
    where = f"arn:aws:ec2:{caller.region}:{caller.account}:{kind}/"
    resource = ""
    if caller.service == "iam":
        resource = f"role {params.get('RoleName', '*')}"
    elif caller.service == "sts":
        resource = params.get("RoleArn", "")
    elif action == "PurchaseCapacityBlock":
        resource = f"arn:aws:ec2:{caller.region}:{caller.account}:capacity-reservation/*"
    elif caller.service == "ec2" and not action.startswith(("Describe", "Get")):
        resource = where + (params.get("LaunchTemplateId") or params.get("GroupName") or "*")
    yield Need(f"{caller.service}:{action}", resource)
    creates = action in {"CreateLaunchTemplate", "CreatePlacementGroup"}
    if creates and any(key.startswith("TagSpecification.") for key in params):
        yield Need("ec2:CreateTags", f"{where}*")


_FAILED: dict[str, str] = {
    "iam:GetRole": f"Failed to validate if SLR: {_LINKED_ROLE} already exists due to missing permissions for "
    "'iam:GetRole'",
    "iam:CreateServiceLinkedRole": f"Failed to create service linked role: {_LINKED_ROLE} due to missing permissions "
    "for 'iam:CreateServiceLinkedRole'",
}
"""EKS's messages about calls with the caller's permissions (terraform-aws-eks#823, XenitAB/terraform-modules#396)."""
_LAUNCHES = frozenset({"ec2:RunInstances", "ec2:CreateTags"})


def _permission_error(need: Need, caller: Caller) -> AwsError:
    """Return the error of a missing permission in the words of the called service.

    Sources: docs: eks/latest/userguide/security-iam-troubleshoot; aws-controllers-k8s/community#2164 (messages with
    "because"); aws-samples/terraform-eks-code#13 (the launch template, which names no permission). The code of errors
    that EKS passes on from IAM and EC2 is unconfirmed unless these show it.
    """
    on = f" on resource: {need.resource}" if need.resource else ""
    why = f"because no identity-based policy allows the {need.permission} action"
    denied = f"User: {caller.arn} is not authorized to perform: {need.permission}{on} {why}"
    if need.by and need.permission in _LAUNCHES:
        message = "You are not authorized to launch instances with this launch template. Encoded authorization failure "
        return AwsError("InvalidRequestException", f"{message}message: {_encoded(denied)}")
    if need.by and need.permission in _FAILED:
        return AwsError("InvalidRequestException", _FAILED[need.permission])
    if need.by and need.permission.startswith("ec2:"):
        return AwsError("InvalidRequestException", f"You are not authorized to perform {need.permission}. {denied}")
    if caller.service == "ec2":
        tail = f". Encoded authorization failure message: {_encoded(denied)}" if need.resource else ""
        message = f"You are not authorized to perform this operation. {denied}{tail}"
        return AwsError("UnauthorizedOperation", message, status=403)
    code = "AccessDenied" if caller.service in _QUERY else "AccessDeniedException"
    return AwsError(code, denied, status=403 if caller.service in {*_QUERY, "eks"} else 400)


def _encoded(text: str) -> str:
    """Encode a message for `aws sts decode-authorization-message`, which cannot decode it here."""
    digest = hashlib.sha512(text.encode()).digest()
    return base64.urlsafe_b64encode(digest * 3).decode().rstrip("=")


def _json(body: bytes) -> Json:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
