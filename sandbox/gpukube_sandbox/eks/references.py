"""Existing resources that a node group and its launch template name. Only declared resources exist.

In scope: rejecting names that do not exist. Out of scope: what exists (`things`, `clusters`), other rules (`rules`),
declaring resources (`steering`), what a reservation allows (`reservations`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.eks.cards import efa_count
from gpukube_sandbox.eks.instances import TYPES, ZONES
from gpukube_sandbox.eks.reservations import is_block, requested_reservation
from gpukube_sandbox.eks.things import NODES
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter, strings_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.eks.clusters import EksCluster

Kind = Literal["roles", "keyPairs", "securityGroups", "subnets"]
"""Kinds of resources, named as in `steering.declare`."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A member that names a resource.

    Attributes:
        member: Path of the member: in "nodegroup", the body of CreateNodegroup, or in "template", the data of its
            template.
        code: Error code if the resource does not exist.
        text: Message; {name} is the resource's name.
    """

    member: tuple[str, ...]
    kind: Kind
    code: str
    text: str

    def names_in(self, request: Json) -> list[str]:
        """Return the names in this member of `{"nodegroup", "template"}`."""
        return list(_strings_at(request, self.member))


_NO_KEY = "The key pair '{name}' does not exist"
_NO_GROUP = "The security group '{name}' does not exist"
REFERENCES = (
    # code and message unconfirmed; the message is that of IAM's GetRole
    Reference(
        ("nodegroup", "nodeRole"), "roles", "InvalidParameterException", "The role with name {name} cannot be found."
    ),
    # terraform-aws-modules/terraform-aws-eks#2208
    Reference(
        ("nodegroup", "remoteAccess", "ec2SshKey"),
        "keyPairs",
        "InvalidParameterException",
        "KeyPair {name} not found",
    ),
    # unconfirmed, as the subnet
    Reference(
        ("nodegroup", "remoteAccess", "sourceSecurityGroups"), "securityGroups", "InvalidParameterException", _NO_GROUP
    ),
    Reference(
        ("nodegroup", "subnets"),
        "subnets",
        "InvalidRequestException",
        "The subnet ID '{name}' does not exist (Service: AmazonEC2; Code: InvalidSubnetID.NotFound)",
    ),
    # EKS passes on EC2's errors about a template as InvalidRequestException:
    # cloudposse/terraform-aws-eks-node-group#77.
    # EC2's message about a key pair: eksctl-io/eksctl#1989; about a group: unconfirmed.
    Reference(("template", "KeyName"), "keyPairs", "InvalidRequestException", _NO_KEY),
    Reference(("template", "SecurityGroupIds"), "securityGroups", "InvalidRequestException", _NO_GROUP),
    Reference(("template", "NetworkInterfaces", "Groups"), "securityGroups", "InvalidRequestException", _NO_GROUP),
)


def check_references(request: Json, cluster: EksCluster) -> None:
    """Reject a request that names resources that do not exist, or a role that nodes cannot have.

    Args:
        request: `{"nodegroup", "template"}`; either may be absent.
        cluster: Cluster of the group.

    Raises:
        AwsError: 400 from the table; InvalidParameterException for a role whose trust lacks EC2 (message unconfirmed).
    """
    for reference in REFERENCES:
        for name in reference.names_in(request):
            if not _exists(reference.kind, name, cluster):
                shown = name.rpartition("/")[2] if reference.kind == "roles" else name
                raise AwsError(reference.code, reference.text.format(name=shown))
    for arn in _strings_at(request, ("nodegroup", "nodeRole")):
        if NODES not in cluster.known.roles[arn.rpartition("/")[2]].services:
            message = (
                f"Following required service principals [{NODES}] were not found in the trust relationships of "
                f"nodeRole {arn}"
            )
            raise bad_parameter(message)


def things_of(group: Json, template: Json, cluster: str, zones: Sequence[str], new: Sequence[str] = ()) -> Json:
    """Return what a request for a node group needs, in the form of `steering.declare`.

    Args:
        group: Members of CreateNodegroup.
        template: Data of its launch template.
        cluster: Name of the cluster.
        zones: Letters of the zones of the group; empty if any.
        new: Names of placement groups that do not exist yet, because the request creates them.
    """
    named: dict[str, list[str]] = {}
    for reference in REFERENCES:
        named.setdefault(reference.kind, []).extend(reference.names_in({"nodegroup": group, "template": template}))
    turn = zones or ZONES
    subnets = [
        {"cluster": cluster, "id": name, "zone": turn[at % len(turn)]} for at, name in enumerate(named["subnets"])
    ]
    security, placements = named["securityGroups"], _strings_at(template, ("Placement", "GroupName"))
    return {
        **named,
        "efaSecurityGroups": security if efa_count(template) else [],
        "kmsKeys": [*_strings_at(template, ("BlockDeviceMappings", "Ebs", "KmsKeyId"))],
        "placementGroups": [{"name": name} for name in placements if name not in new],
        "roles": [{"arn": arn} for arn in named["roles"]],
        "subnets": subnets,
        "reservations": _reservations_of(group, template, zones),
    }


def _reservations_of(group: Json, template: Json, zones: Sequence[str]) -> list[Json]:
    """Return the reservation that a template targets, with the requested type and zone, as large as needed."""
    identity, arn = requested_reservation(template)
    types = [*_strings_at(template, ("InstanceType",)), *strings_in(group.get("instanceTypes"))]
    if not (identity or arn) or not types or types[0] not in TYPES:
        return []
    offered = TYPES[types[0]].zones
    return [
        {
            "id": identity or f"cr-0{hashlib.sha256(arn.encode()).hexdigest()[:16]}",
            "type": types[0],
            "zone": next((zone for zone in zones if zone in offered), offered[0]),
            "block": is_block(template),
            "groups": [arn] if arn else [],
        }
    ]


def _exists(kind: Kind, name: str, cluster: EksCluster) -> bool:
    known = cluster.known
    if kind == "roles":
        return known.has_role(name)
    if kind == "subnets":
        return bool(cluster.zone(name))
    return name in (known.keys if kind == "keyPairs" else known.groups)


def _strings_at(value: object, path: tuple[str, ...]) -> Iterator[str]:
    """Return all strings at a path, also inside lists of objects."""
    if isinstance(value, list):
        for item in value:
            yield from _strings_at(item, path)
    elif path:
        yield from _strings_at(value.get(path[0]) if isinstance(value, dict) else None, path[1:])
    elif isinstance(value, str):
        yield value
