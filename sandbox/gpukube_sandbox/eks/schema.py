"""Bodies of EKS requests: types, choices, and bounds of their members.

In scope: the tables and the check of a body against them. Out of scope: rules across members (`rules`).

Source: botocore eks/2017-11-01 service-2.json; choices and maxima are checked here because botocore itself checks only
types, required members, and minima before it sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpukube_sandbox.eks.images import IMAGES
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter

Kind = Literal["string", "integer", "boolean", "strings", "map", "object", "objects"]

_TYPES: dict[Kind, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "strings": (list,),
    "map": (dict,),
    "object": (dict,),
    "objects": (list,),
}


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a body.

    Attributes:
        kind: JSON type.
        choices: Allowed values; () for any.
        minimum: Minimum; None for none.
        maximum: Maximum; 0 for none.
        fields: Members of an object, or of each object of a list.
        required: Whether the member is required.
    """

    kind: Kind
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int = 0
    fields: tuple[tuple[str, Field], ...] = ()
    required: bool = False


def _number(minimum: int, maximum: int = 0) -> Field:
    return Field("integer", minimum=minimum, maximum=maximum)


def _choice(*choices: str) -> Field:
    return Field("string", choices)


_TEXT = Field("string")
_FLAG = Field("boolean")
_SCALING = Field("object", fields=(("minSize", _number(0)), ("maxSize", _number(1)), ("desiredSize", _number(0))))
_TAINT = (("key", _TEXT), ("value", _TEXT), ("effect", _choice("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE")))
_UPDATE = Field(
    "object",
    fields=(
        ("maxUnavailable", _number(1, 100)),  # maximum 100: botocore documentation of NodegroupUpdateConfig
        ("maxUnavailablePercentage", _number(1, 100)),
        ("updateStrategy", _choice("DEFAULT", "MINIMAL")),
    ),
)
_OVERRIDE = (
    ("nodeMonitoringCondition", _TEXT),
    ("nodeUnhealthyReason", _TEXT),
    ("minRepairWaitTimeMins", _number(1)),
    ("repairAction", _choice("Replace", "Reboot", "NoAction")),
)
_REPAIR = Field(
    "object",
    fields=(
        ("enabled", _FLAG),
        ("maxUnhealthyNodeThresholdCount", _number(1)),
        ("maxUnhealthyNodeThresholdPercentage", _number(1, 100)),
        ("maxParallelNodesRepairedCount", _number(1)),
        ("maxParallelNodesRepairedPercentage", _number(1, 100)),
        ("nodeRepairConfigOverrides", Field("objects", fields=_OVERRIDE)),
    ),
)
_WARM = Field(
    "object",
    fields=(
        ("enabled", _FLAG),
        ("minSize", _number(0)),
        ("maxGroupPreparedCapacity", Field("integer")),
        ("poolState", _choice("STOPPED", "RUNNING", "HIBERNATED")),
        ("reuseOnScaleIn", _FLAG),
    ),
)
_TEMPLATE = Field("object", fields=(("id", _TEXT), ("name", _TEXT), ("version", _TEXT)))

CREATE: dict[str, Field] = {
    "nodegroupName": Field("string", required=True),
    "scalingConfig": _SCALING,
    "diskSize": Field("integer"),
    "subnets": Field("strings", required=True),
    "instanceTypes": Field("strings"),
    "amiType": _choice(*IMAGES),
    "remoteAccess": Field("object", fields=(("ec2SshKey", _TEXT), ("sourceSecurityGroups", Field("strings")))),
    "nodeRole": Field("string", required=True),
    "labels": Field("map"),
    "taints": Field("objects", fields=_TAINT),
    "tags": Field("map"),
    "clientRequestToken": _TEXT,
    "launchTemplate": _TEMPLATE,
    "updateConfig": _UPDATE,
    "nodeRepairConfig": _REPAIR,
    "capacityType": _choice("ON_DEMAND", "SPOT", "CAPACITY_BLOCK"),
    "version": _TEXT,
    "releaseVersion": _TEXT,
    "warmPoolConfig": _WARM,
}
UPDATE_CONFIG: dict[str, Field] = {
    "labels": Field("object", fields=(("addOrUpdateLabels", Field("map")), ("removeLabels", Field("strings")))),
    "taints": Field(
        "object",
        fields=(
            ("addOrUpdateTaints", Field("objects", fields=_TAINT)),
            ("removeTaints", Field("objects", fields=_TAINT)),
        ),
    ),
    "scalingConfig": _SCALING,
    "updateConfig": _UPDATE,
    "nodeRepairConfig": _REPAIR,
    "warmPoolConfig": _WARM,
    "clientRequestToken": _TEXT,
}
UPDATE_VERSION: dict[str, Field] = {
    "version": _TEXT,
    "releaseVersion": _TEXT,
    "launchTemplate": _TEMPLATE,
    "force": _FLAG,
    "clientRequestToken": _TEXT,
}
TAGS: dict[str, Field] = {"tags": Field("map", required=True)}


def check_shape(body: object, table: dict[str, Field]) -> Json:
    """Check a body against its table.

    Args:
        body: Parsed JSON.
        table: Member -> its definition.

    Returns:
        The members that the service has; others are ignored, as REST-JSON services do. Null is the same as absent.

    Raises:
        AwsError: 400 SerializationException for a wrong type, InvalidParameterException for a value out of bounds or a
            missing one (messages unconfirmed).
    """
    if not isinstance(body, dict):
        raise AwsError("SerializationException", "The request body is not a JSON object")
    return _object(body, table, "")


def _object(body: Json, table: dict[str, Field], where: str) -> Json:
    for name, field in table.items():
        if field.required and body.get(name) is None:
            raise bad_parameter(f"{where}{name} is required")
    return {
        name: _checked(value, table[name], f"{where}{name}")
        for name, value in body.items()
        if name in table and value is not None
    }


def _checked(value: object, field: Field, where: str) -> object:
    is_wrong_flag = isinstance(value, bool) and field.kind != "boolean"
    if is_wrong_flag or not isinstance(value, _TYPES[field.kind]):
        raise AwsError("SerializationException", f"{where} cannot be read as {field.kind}")
    if field.choices and value not in field.choices:
        raise bad_parameter(f"{value} is not a valid value for {where}; it must be one of [{', '.join(field.choices)}]")
    if isinstance(value, int) and field.minimum is not None and value < field.minimum:
        raise bad_parameter(f"{where} is {value}; it must be at least {field.minimum}")
    if isinstance(value, int) and field.maximum and value > field.maximum:
        raise bad_parameter(f"{where} is {value}; it must be at most {field.maximum}")
    if isinstance(value, dict) and field.fields:
        return _object(value, dict(field.fields), f"{where}.")
    if isinstance(value, list) and field.kind == "objects":
        return [_item(item, dict(field.fields), where) for item in value]
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise AwsError("SerializationException", f"{where} cannot be read as strings")
    if field.kind == "map" and isinstance(value, dict) and not all(isinstance(item, str) for item in value.values()):
        raise AwsError("SerializationException", f"{where} cannot be read as map of strings")
    return value


def _item(item: object, table: dict[str, Field], where: str) -> Json:
    if not isinstance(item, dict):
        raise AwsError("SerializationException", f"{where} cannot be read as objects")
    return _object(item, table, f"{where}.")
