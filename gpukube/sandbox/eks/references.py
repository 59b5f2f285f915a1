"""What a node group names and somebody else has made: roles, key pairs, subnets. Only what was declared exists.

Lives here: what exists in an account, and the refusal of what does not. Must not live here: other rules (`rules`), how
things are declared (`steering`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpukube.sandbox.eks.wire.answers import Json, Refusal, bad_parameter, strings_in

if TYPE_CHECKING:
    from gpukube.sandbox.eks.clusters import EksCluster

NODES, CONTROL_PLANE = "ec2.amazonaws.com", "eks.amazonaws.com"
Kind = Literal["role", "keyPair", "subnet"]


@dataclass(frozen=True, slots=True)
class Role:
    """One IAM role.

    Attributes:
        services: Principals that its trust policy lets assume it.
    """

    arn: str
    created: float
    services: tuple[str, ...] = (NODES,)

    @property
    def name(self) -> str:
        """Its name, which no other role of the account has, whatever its path."""
        return self.arn.rpartition("/")[2]


@dataclass(slots=True)
class Known:
    """What exists in an account, seen from one region.

    Attributes:
        roles: By name; the same object in all regions of the account.
        keys: Names of key pairs, of this region alone.
    """

    roles: dict[str, Role] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)

    def add_role(self, role: Role) -> bool:
        """Add a role unless there is one of that name; whether it was added."""
        return self.roles.setdefault(role.name, role) is role

    def has_role(self, arn: str) -> bool:
        """Whether a role has this ARN, its path included."""
        found = self.roles.get(arn.rpartition("/")[2])
        return found is not None and found.arn == arn


@dataclass(frozen=True, slots=True)
class Reference:
    """One member that names a thing.

    Attributes:
        member: Where it is in the body of CreateNodegroup.
        code: Error code where the thing does not exist.
        text: Its sentence; {name} stands for the thing.
    """

    member: tuple[str, ...]
    kind: Kind
    code: str
    text: str

    def names_in(self, body: Json) -> list[str]:
        """What a body names; () for nothing."""
        value: object = body
        for key in self.member:
            value = value.get(key) if isinstance(value, dict) else None
        return [value] if isinstance(value, str) else strings_in(value)


REFERENCES = (
    # code and sentence unconfirmed; the sentence is IAM's own of GetRole
    Reference(("nodeRole",), "role", "InvalidParameterException", "The role with name {name} cannot be found."),
    # terraform-aws-modules/terraform-aws-eks#2208
    Reference(("remoteAccess", "ec2SshKey"), "keyPair", "InvalidParameterException", "KeyPair {name} not found"),
    # unconfirmed
    Reference(
        ("subnets",),
        "subnet",
        "InvalidRequestException",
        "The subnet ID '{name}' does not exist (Service: AmazonEC2; Code: InvalidSubnetID.NotFound)",
    ),
)


def check_references(body: Json, cluster: EksCluster) -> None:
    """Refuse a body that names what does not exist, or a role that nodes cannot have.

    Raises:
        Refusal: 400 by the table; InvalidParameterException for a role whose trust lacks EC2 (sentence unconfirmed).
    """
    for reference in REFERENCES:
        for name in reference.names_in(body):
            if not _exists(reference.kind, name, cluster):
                shown = name.rpartition("/")[2] if reference.kind == "role" else name
                raise Refusal(reference.code, reference.text.format(name=shown))
    arn = str(body["nodeRole"])
    if NODES not in cluster.known.roles[arn.rpartition("/")[2]].services:
        message = (
            f"Following required service principals [{NODES}] were not found in the trust relationships of nodeRole "
            f"{arn}"
        )
        raise bad_parameter(message)


def things_of(request: Json, place: Json, zones: str) -> Json:
    """What the request of a node group needs, as `steering.declare` reads it.

    Args:
        request: `{"nodegroup": members of CreateNodegroup}`; other keys do not matter.
        place: `{"account", "region", "cluster"}`.
        zones: Letters of the zones that its subnets are in, in turn.
    """
    group = request.get("nodegroup")
    named: dict[Kind, list[str]] = {"role": [], "keyPair": [], "subnet": []}
    for reference in REFERENCES:
        named[reference.kind] += reference.names_in(group if isinstance(group, dict) else {})
    subnets: list[Json] = [
        {"cluster": place["cluster"], "id": name, "zone": zones[at % len(zones)]}
        for at, name in enumerate(named["subnet"])
    ]
    roles: list[Json] = [{"arn": arn} for arn in named["role"]]
    own = {key: value for key, value in place.items() if key != "cluster"}
    return {**own, "roles": roles, "keyPairs": named["keyPair"], "subnets": subnets}


def _exists(kind: Kind, name: str, cluster: EksCluster) -> bool:
    if kind == "role":
        return cluster.known.has_role(name)
    return name in cluster.known.keys if kind == "keyPair" else bool(cluster.zone(name))
