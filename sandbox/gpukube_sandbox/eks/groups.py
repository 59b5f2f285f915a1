"""One managed node group: its members on the wire, its updates, its machines.

Lives here: the state of a node group, defaults, wire forms. Must not live here: rules (`rules`), work (`lifecycle`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpukube_sandbox.eks.images import IMAGES, Image, image_id, release_version
from gpukube_sandbox.eks.instances import TYPES, InstanceType
from gpukube_sandbox.eks.wire.answers import strings_in, whole

if TYPE_CHECKING:
    import asyncio

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.wire.answers import Json

Status = Literal["CREATING", "ACTIVE", "UPDATING", "DELETING", "CREATE_FAILED", "DELETE_FAILED", "DEGRADED"]
UpdateStatus = Literal["InProgress", "Failed", "Cancelled", "Successful"]

DEFAULT_TYPE = "t3.medium"
_PLAIN = {"x86_64": "AL2023_x86_64_STANDARD", "arm64": "AL2023_ARM_64_STANDARD"}
_SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}  # unconfirmed: what a group without scalingConfig gets


@dataclass(slots=True)
class Update:
    """One update of a node group.

    Attributes:
        params: (type, value) pairs.
        errors: Why it failed.
        token: ClientRequestToken.
        is_forced: Pods that their budgets keep are deleted (botocore eks UpdateNodegroupVersionRequest.force).
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
        """As DescribeUpdate gives it."""
        return {
            "id": self.id,
            "status": self.status,
            "type": self.type,
            "params": [{"type": name, "value": value} for name, value in self.params],
            "createdAt": self.created,
            "errors": self.errors,
        }


class Instance(NamedTuple):
    """One machine: its id, its Availability Zone, its type."""

    id: str
    zone: str
    type: str


@dataclass(slots=True)
class NodeGroup:
    """One node group.

    Attributes:
        members: Members of the wire form that the user gave or EKS filled in.
        data: Data of its launch template's version; None without a template.
        sent: The body that made it, for the idempotency token.
        listed_from: Moment from which on lists have it.
        nodes: Names of its machines.
        instances: Node name -> its machine.
        coming: Machines that are being launched and have no name yet.
        activities: What its Auto Scaling group has done, newest first.
        tasks: What works on it.
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
        """Its image; CUSTOM when the template names one."""
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
        """Instance types in order of priority, from the request or its template."""
        return [TYPES[name] for name in type_names(self.members, self.data)]

    def wire(self) -> Json:
        """As DescribeNodegroup gives it; members without a value are left out."""
        found: Json = {
            "nodegroupName": self.name,
            "nodegroupArn": self.arn,
            "clusterName": self.cluster,
            "createdAt": self.created,
            "modifiedAt": self.modified or self.created,
            "status": self.status,
            "resources": {"autoScalingGroups": [{"name": self.asg}]} if self.status != "CREATING" else None,
            "health": {"issues": self.issues},
            "tags": dict(self.tags),
            **self.members,
        }
        return {key: value for key, value in found.items() if value is not None}


def type_names(members: Json, data: Json | None) -> list[str]:
    """Names of the instance types of a group."""
    given = strings_in(members.get("instanceTypes"))
    inside = str((data or {}).get("InstanceType") or "")
    return given or ([inside] if inside else [DEFAULT_TYPE])


def with_defaults(sent: Json, data: Json | None, template: Json | None, cluster: EksCluster) -> Json:
    """Fill in what EKS fills in.

    Args:
        sent: Checked members of the request.
        data: Data of the launch template's version; None without a template.
        template: The template as it reads back: id, name and number.
        cluster: Where the group goes.

    Source:
        botocore eks (defaults in the documentation of CreateNodegroupRequest), docs: eks/launch-templates (what is null
        with a template); scaling without a scalingConfig is unconfirmed.
    """
    custom = bool((data or {}).get("ImageId"))
    names = type_names(sent, data)
    arch = TYPES[names[0]].arch if names[0] in TYPES else "x86_64"
    kind = "CUSTOM" if custom else str(sent.get("amiType") or _PLAIN[arch])
    image = IMAGES[kind]
    plain: Json = {key: value for key, value in sent.items() if key not in _NOT_KEPT}
    found: Json = {
        "capacityType": "ON_DEMAND",
        "labels": {},
        "taints": [],
        "scalingConfig": dict(_SCALING),
        **plain,
        "amiType": kind,
        "version": cluster.version,
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT", **_given(sent, "updateConfig")},
        "nodeRepairConfig": {"enabled": False, **_given(sent, "nodeRepairConfig")},
    }
    if "maxUnavailablePercentage" in _given(sent, "updateConfig"):
        found["updateConfig"] = {"updateStrategy": "DEFAULT", **_given(sent, "updateConfig")}
    release = release_version(image, cluster.kubernetes_version, cluster.image_date)
    found["releaseVersion"] = str((data or {}).get("ImageId")) if custom else str(sent.get("releaseVersion") or release)
    if template is None:
        found["instanceTypes"] = names
        found["diskSize"] = sent.get("diskSize") or image.disk_gib
    else:
        found["launchTemplate"] = template
        if "instanceTypes" not in sent and not (data or {}).get("InstanceType"):
            found["instanceTypes"] = names
    return found


_NOT_KEPT = frozenset({"nodegroupName", "tags", "clientRequestToken", "launchTemplate"})


def image_of(group: NodeGroup) -> str:
    """AMI id of the group's nodes."""
    release = str(group.members["releaseVersion"])
    return release if group.image.system == "custom" else image_id(group.image, release)


def _given(sent: Json, key: str) -> Json:
    value = sent.get(key)
    return value if isinstance(value, dict) else {}
