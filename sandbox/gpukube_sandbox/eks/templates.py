"""EC2 launch templates: versions, names, allowed contents.

In scope: their state and the rules of EC2. Out of scope: the XML (`ec2`), rules of EKS (`rules`).

Sources: botocore ec2/2016-11-15; docs: AWSEC2/APIReference CreateLaunchTemplate and errors-overview. A message without
a source is unconfirmed.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.wire.answers import AwsError, Json

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock

_NAME = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
_USER_DATA = 16 * 1024
_GP3_THROUGHPUT = (125, 2000)
_IOPS = {"gp3": (3000, 80_000), "io1": (100, 64_000), "io2": (100, 256_000)}
_GIB = {"gp3": 65_536, "io2": 65_536}
_USUAL_GIB = 16_384
"""Ranges in the documentation of botocore's LaunchTemplateEbsBlockDeviceRequest."""
_HOPS = (1, 64)


@dataclass(frozen=True, slots=True)
class TemplateVersion:
    """One immutable version of a template.

    Attributes:
        data: LaunchTemplateData, members named as in the SDK; numbers and booleans are strings, as in the query
            protocol.
    """

    number: int
    description: str
    data: Json
    created: float


@dataclass(slots=True)
class LaunchTemplate:
    """A launch template with its versions.

    Attributes:
        default: Number of the default version.
        token: ClientToken of the call that created it.
        last_number: Number of the last created version; the number of a deleted version is not reused.
    """

    id: str
    name: str
    created: float
    created_by: str
    versions: list[TemplateVersion] = field(default_factory=list)
    default: int = 1
    tags: dict[str, str] = field(default_factory=dict)
    token: str = ""
    last_number: int = 1
    tokens: dict[str, int] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        """Return the number of the newest version."""
        return self.versions[-1].number

    def find(self, requested: str) -> TemplateVersion | None:
        """Return a version by its number, $Latest, or $Default (also for "")."""
        number = {"": self.default, "$Default": self.default, "$Latest": self.latest}.get(requested)
        chosen = str(number) if number else requested
        return next((version for version in self.versions if str(version.number) == chosen), None)


class TemplateStore:
    """The launch templates of one account in one region.

    Args:
        clock: The sandbox's time.
        created_by: ARN of the caller.
    """

    def __init__(self, clock: Clock, created_by: str) -> None:
        self._clock = clock
        self._created_by = created_by
        self.templates: dict[str, LaunchTemplate] = {}

    def create(self, name: str, description: str, data: Json, tags: dict[str, str], token: str) -> LaunchTemplate:
        """Create a template with its version 1; the same ClientToken returns the existing one.

        Raises:
            AwsError: 400; for an existing name InvalidLaunchTemplateName.AlreadyExistsException, for a token that was
                used with other parameters IdempotentParameterMismatch.
        """
        if not _NAME.fullmatch(name):
            message = (  # github-aws-runners/terraform-aws-github-runner#932
                "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and "
                "the following characters: - ( ) . / _."
            )
            raise AwsError("InvalidLaunchTemplateName.MalformedException", message)
        known = next((found for found in self.templates.values() if token and found.token == token), None)
        if known is not None:
            if (known.name, known.versions[0].data) != (name, data):
                message = "The client token was used with other parameters."
                raise AwsError("IdempotentParameterMismatch", message)
            return known
        if any(found.name == name for found in self.templates.values()):
            message = "Launch template name already in use."
            raise AwsError("InvalidLaunchTemplateName.AlreadyExistsException", message)
        _check_data(data)
        template = LaunchTemplate(f"lt-0{secrets.token_hex(8)}", name, self._clock.now(), self._created_by, token=token)
        template.tags = dict(tags)
        template.versions.append(TemplateVersion(1, description, data, template.created))
        self.templates[template.id] = template
        return template

    def add_version(self, template: LaunchTemplate, description: str, data: Json, token: str) -> TemplateVersion:
        """Add a version; the same ClientToken returns the existing one. The default version does not change."""
        if token and token in template.tokens:
            found = template.find(str(template.tokens[token]))
            if found is not None:
                return found
        _check_data(data)
        template.last_number += 1
        version = TemplateVersion(template.last_number, description, data, self._clock.now())
        template.versions.append(version)
        if token:
            template.tokens[token] = version.number
        return version

    def require(self, identity: str, name: str) -> LaunchTemplate:
        """Find a template by id or name; exactly one of them is required.

        Raises:
            AwsError: 400 InvalidLaunchTemplateId.Malformed or .NotFound, InvalidLaunchTemplateName.NotFoundException,
                or the errors for neither or both.
        """
        if identity and not identity.startswith("lt-"):  # errors-overview; the message is like EC2's for other ids
            raise AwsError("InvalidLaunchTemplateId.Malformed", f'Invalid id: "{identity}" (expecting "lt-...")')
        if identity and name:
            message = "Launch template ID and launch template name cannot both be specified."
            raise AwsError("InvalidParameterCombination", message)
        if not identity and not name:
            raise AwsError("MissingParameter", "Either launch template ID or launch template name is required.")
        found = self.find(identity, name)
        if found is not None:
            return found
        if identity:
            message = f"The specified launch template, with template ID {identity}, does not exist."
            raise AwsError("InvalidLaunchTemplateId.NotFound", message)
        message = f"The specified launch template, with template name {name}, does not exist."
        raise AwsError("InvalidLaunchTemplateName.NotFoundException", message)

    def find(self, identity: str, name: str) -> LaunchTemplate | None:
        """Return a template by its id or its name."""
        if identity:
            return self.templates.get(identity)
        return next((found for found in self.templates.values() if found.name == name), None)

    def delete(self, template: LaunchTemplate) -> None:
        """Delete a template even if it is used, which EC2 does not know."""
        del self.templates[template.id]


def _check_data(data: Json) -> None:
    """Reject template data that EC2 rejects.

    Raises:
        AwsError: 400.
    """
    if not data:
        # awsdocs/aws-cloudformation-user-guide#453
        message = "No launch template data was provided. Launch template data is required to create a launch template."
        raise AwsError("MissingParameter", message)
    _check_user_data(str(data.get("UserData", "")))
    for mapping in _objects(data.get("BlockDeviceMappings")):
        _check_volume(mapping)
    options = data.get("MetadataOptions")
    hops = options.get("HttpPutResponseHopLimit") if isinstance(options, dict) else None
    if hops is not None and not _HOPS[0] <= _number(hops, "HttpPutResponseHopLimit") <= _HOPS[1]:
        raise AwsError("InvalidParameterValue", f"Value ({hops}) for parameter HttpPutResponseHopLimit is invalid.")
    for card in _objects(data.get("NetworkInterfaces")):
        for key in ("NetworkCardIndex", "DeviceIndex"):
            _number(card.get(key, 0), key[0].lower() + key[1:])
    if data.get("NetworkInterfaces") and (data.get("SecurityGroupIds") or data.get("SecurityGroups")):
        message = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise AwsError("InvalidParameterCombination", message)


def _check_user_data(text: str) -> None:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        message = "Invalid BASE64 encoding of user data."  # awslabs/ec2-spot-workshops#15
        raise AwsError("InvalidUserData.Malformed", message) from None
    if len(raw) > _USER_DATA:
        raise AwsError("InvalidUserData.Malformed", f"User data is limited to {_USER_DATA} bytes")


def _check_volume(mapping: Json) -> None:
    ebs = mapping.get("Ebs")
    if not isinstance(ebs, dict):
        return
    kind = str(ebs.get("VolumeType", "gp2"))
    if kind not in {"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}:
        raise AwsError("InvalidParameterValue", f"Value ({kind}) for parameter volumeType is invalid.")
    if "Iops" in ebs:
        if kind not in _IOPS:  # hashicorp/terraform-provider-aws#4344
            raise AwsError("InvalidParameterCombination", f"The parameter iops is not supported for {kind} volumes.")
        if not _IOPS[kind][0] <= _number(ebs["Iops"], "iops") <= _IOPS[kind][1]:
            raise AwsError("InvalidParameterValue", f"Value ({ebs['Iops']}) for parameter iops is invalid.")
    elif kind in {"io1", "io2"}:  # botocore ec2 LaunchTemplateEbsBlockDeviceRequest
        raise AwsError("MissingParameter", "The request must contain the parameter iops")
    if "Throughput" in ebs:
        if kind != "gp3":
            message = f"The parameter throughput is not supported for {kind} volumes."
            raise AwsError("InvalidParameterCombination", message)
        if not _GP3_THROUGHPUT[0] <= _number(ebs["Throughput"], "throughput") <= _GP3_THROUGHPUT[1]:
            raise AwsError("InvalidParameterValue", f"Value ({ebs['Throughput']}) for parameter throughput is invalid.")
    if "VolumeSize" in ebs and not 1 <= _number(ebs["VolumeSize"], "volumeSize") <= _GIB.get(kind, _USUAL_GIB):
        raise AwsError("InvalidParameterValue", f"Value ({ebs['VolumeSize']}) for parameter volumeSize is invalid.")


def _number(value: object, name: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise AwsError("InvalidParameterValue", f"Value ({value}) for parameter {name} is invalid.") from None


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
