"""One managed node group: its wire form, its updates, its machines.

In scope: the state of a node group, defaults, wire forms. Out of scope: rules (`rules`), the work (`lifecycle`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpukube_sandbox.eks.images import IMAGES, Image, image_id
from gpukube_sandbox.eks.instances import TYPES, InstanceType
from gpukube_sandbox.eks.wire.answers import strings_in, whole

if TYPE_CHECKING:
    import asyncio

    from gpukube_sandbox.eks.wire.answers import Json

Status = Literal["CREATING", "ACTIVE", "UPDATING", "DELETING", "CREATE_FAILED", "DELETE_FAILED", "DEGRADED"]
UpdateStatus = Literal["InProgress", "Failed", "Cancelled", "Successful"]

DEFAULT_TYPE = "t3.medium"


@dataclass(slots=True)
class Update:
    """An update of a node group.

    Attributes:
        params: (type, value) pairs.
        errors: Reasons for its failure.
        token: ClientRequestToken.
        is_forced: Whether pods are deleted despite their budgets (botocore eks UpdateNodegroupVersionRequest.force).
    """

    type: Literal["ConfigUpdate", "VersionUpdate"]
    created: float
    params: list[tuple[str, str]]
    token: str = ""
    is_forced: bool = False
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: UpdateStatus = "InProgress"
    errors: list[Json] = field(default_factory=list)

    def wire(self) -> Json:
        """Return the update as DescribeUpdate returns it."""
        return {
            "id": self.id,
            "status": self.status,
            "type": self.type,
            "params": [{"type": name, "value": value} for name, value in self.params],
            "createdAt": self.created,
            "errors": self.errors,
        }


class Instance(NamedTuple):
    """A machine.

    Attributes:
        zone: Its Availability Zone.
        type: Its instance type.
        market: How it was bought: one of `stock.MARKETS`.
        reservation: Id of the capacity reservation that it runs in; "" for none.
    """

    id: str
    zone: str
    type: str
    market: str = "on-demand"
    reservation: str = ""


@dataclass(slots=True)
class NodeGroup:
    """A managed node group.

    Attributes:
        members: Members of the wire form, from the user or EKS's defaults.
        data: Data of its launch template's version; None without a template.
        sent: The body of the request that created it, for the idempotency token.
        listed_from: Time from which lists contain it.
        nodes: Names of its machines.
        instances: Node name -> its machine.
        coming: Number of machines that are being launched and have no name yet.
        activities: Activities of its Auto Scaling group, newest first.
        tasks: Running work on the group.
    """

    name: str
    cluster: str
    arn: str
    asg: str
    members: Json
    data: Json | None
    created: float
    sent: Json = field(default_factory=dict)
    listed_from: float = 0.0
    status: Status = "CREATING"
    modified: float = 0.0
    issues: list[Json] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    asg_tags: dict[str, str] = field(default_factory=dict)
    updates: dict[str, Update] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    instances: dict[str, Instance] = field(default_factory=dict)
    coming: int = 0
    next_index: int = 0
    activities: list[Json] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    growth: asyncio.Task[None] | None = None

    @property
    def image(self) -> Image:
        """Return the group's image; CUSTOM if the template names one."""
        return IMAGES[str(self.members["amiType"])]

    @property
    def desired(self) -> int:
        """DesiredSize."""
        return self.scaling["desiredSize"]

    @property
    def scaling(self) -> dict[str, int]:
        """ScalingConfig."""
        found = self.members["scalingConfig"]
        return {str(key): whole(value) for key, value in found.items()} if isinstance(found, dict) else {}

    @property
    def types(self) -> list[InstanceType]:
        """Return the instance types in order of priority, from the request or its template."""
        return [TYPES[name] for name in type_names(self.members, self.data)]

    @property
    def _has_resources(self) -> bool:
        """Return whether the Auto Scaling group exists: from its first launch on (unconfirmed while CREATING)."""
        return self.status != "CREATING" or bool(self.activities)

    def wire(self) -> Json:
        """Return the group as DescribeNodegroup returns it; members without a value are omitted."""
        found: Json = {
            "nodegroupName": self.name,
            "nodegroupArn": self.arn,
            "clusterName": self.cluster,
            "createdAt": self.created,
            "modifiedAt": self.modified or self.created,
            "status": self.status,
            "resources": {"autoScalingGroups": [{"name": self.asg}]} if self._has_resources else None,
            "health": {"issues": self.issues},
            "tags": dict(self.tags),
            **self.members,
        }
        return {key: value for key, value in found.items() if value is not None}


def type_names(members: Json, data: Json | None) -> list[str]:
    """Return the names of a group's instance types."""
    given = strings_in(members.get("instanceTypes"))
    inside = str((data or {}).get("InstanceType") or "")
    return given or ([inside] if inside else [DEFAULT_TYPE])


def image_of(group: NodeGroup) -> str:
    """Return the AMI id of the group's nodes."""
    release = str(group.members["releaseVersion"])
    return release if group.image.system == "custom" else image_id(group.image, release)
