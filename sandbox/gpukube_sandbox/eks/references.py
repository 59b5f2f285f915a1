"""What a node group and its launch template name and somebody else has made. Only what was declared exists.

In scope: the refusal of what does not exist. Out of scope: what exists (`things`, `clusters`), other rules
(`rules`), how things are declared (`steering`), what a reservation allows (`reservations`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.eks.instances import TYPES, ZONES
from gpukube_sandbox.eks.reservations import is_block, requested_reservation
from gpukube_sandbox.eks.things import NODES
from gpukube_sandbox.eks.wire.answers import Json, Refusal, bad_parameter, strings_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.eks.clusters import EksCluster

Kind = Literal["roles", "keyPairs", "securityGroups", "subnets"]
"""As `steering.declare` calls them."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One member that names a thing.

    Attributes:
        member: Where it is: in "nodegroup", the body of CreateNodegroup, or in "template", the data of its template.
        code: Error code where the thing does not exist.
        text: Its sentence; {name} stands for the thing.
    """

    member: tuple[str, ...]
    kind: Kind
    code: str
    text: str

    def names_in(self, request: Json) -> list[str]:
        """What `{"nodegroup", "template"}` names here."""
        return list(_strings_at(request, self.member))


_NO_KEY = "The key pair '{name}' does not exist"
_NO_GROUP = "The security group '{name}' does not exist"
REFERENCES = (
    # code and sentence unconfirmed; the sentence is IAM's own of GetRole
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
    # What EC2 says of a template, EKS passes on as InvalidRequestException: cloudposse/terraform-aws-eks-node-group#77.
    # EC2's sentence of a key pair: eksctl-io/eksctl#1989; of a group: unconfirmed.
    Reference(("template", "KeyName"), "keyPairs", "InvalidRequestException", _NO_KEY),
    Reference(("template", "SecurityGroupIds"), "securityGroups", "InvalidRequestException", _NO_GROUP),
    Reference(("template", "NetworkInterfaces", "Groups"), "securityGroups", "InvalidRequestException", _NO_GROUP),
)


def check_references(request: Json, cluster: EksCluster) -> None:
    """Refuse a request that names what does not exist, or a role that nodes cannot have.

    Args:
        request: `{"nodegroup", "template"}`; either may be absent.
        cluster: Where the group is.

    Raises:
        Refusal: 400 by the table; InvalidParameterException for a role whose trust lacks EC2 (sentence unconfirmed).
    """
    for reference in REFERENCES:
        for name in reference.names_in(request):
            if not _exists(reference.kind, name, cluster):
                shown = name.rpartition("/")[2] if reference.kind == "roles" else name
                raise Refusal(reference.code, reference.text.format(name=shown))
    for arn in _strings_at(request, ("nodegroup", "nodeRole")):
        if NODES not in cluster.known.roles[arn.rpartition("/")[2]].services:
            message = (
                f"Following required service principals [{NODES}] were not found in the trust relationships of "
                f"nodeRole {arn}"
            )
            raise bad_parameter(message)


def things_of(group: Json, template: Json, cluster: str, zones: Sequence[str]) -> Json:
    """What the request of a node group needs, as `steering.declare` reads it.

    Args:
        group: Members of CreateNodegroup.
        template: Data of its launch template.
        cluster: Name of the cluster.
        zones: Letters of the zones that it shall be in; none if it does not matter.
    """
    named: dict[str, list[str]] = {}
    for reference in REFERENCES:
        named.setdefault(reference.kind, []).extend(reference.names_in({"nodegroup": group, "template": template}))
    turn = zones or ZONES
    subnets = [
        {"cluster": cluster, "id": name, "zone": turn[at % len(turn)]} for at, name in enumerate(named["subnets"])
    ]
    return {
        **named,
        "roles": [{"arn": arn} for arn in named["roles"]],
        "subnets": subnets,
        "reservations": _reservations_of(group, template, zones),
    }


def _reservations_of(group: Json, template: Json, zones: Sequence[str]) -> list[Json]:
    """The reservation that a template targets, of the type and in the zone that are asked for, as large as needed."""
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
    """All strings at a path, through lists of objects too."""
    if isinstance(value, list):
        for item in value:
            yield from _strings_at(item, path)
    elif path:
        yield from _strings_at(value.get(path[0]) if isinstance(value, dict) else None, path[1:])
    elif isinstance(value, str):
        yield value
