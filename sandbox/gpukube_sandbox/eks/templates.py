"""EC2 launch templates: versions, names, what may stand in them.

In scope: their state and the rules of EC2. Out of scope: the XML (`ec2`), what EKS wants of them (`rules`).

Sources: botocore ec2/2016-11-15; docs: AWSEC2/APIReference CreateLaunchTemplate and errors-overview. A sentence without
a source is unconfirmed.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.wire.answers import Json, Refusal

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock

_NAME = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
_USER_DATA = 16 * 1024
_GP3_THROUGHPUT = (125, 2000)
_HOPS = (1, 64)


@dataclass(frozen=True, slots=True)
class TemplateVersion:
    """One version; never changes.

    Attributes:
        data: LaunchTemplateData, members named as in the SDK; numbers and booleans are strings, as the query protocol
            brings them.
    """

    number: int
    description: str
    data: Json
    created: float


@dataclass(slots=True)
class LaunchTemplate:
    """One launch template.

    Attributes:
        default: Number of the default version.
        token: ClientToken of the call that made it.
        made: Number of the last version that was made; one that is deleted leaves its number unused.
    """

    id: str
    name: str
    created: float
    created_by: str
    versions: list[TemplateVersion] = field(default_factory=list)
    default: int = 1
    tags: dict[str, str] = field(default_factory=dict)
    token: str = ""
    made: int = 1
    tokens: dict[str, int] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        """Number of the newest version."""
        return self.versions[-1].number

    def find(self, asked: str) -> TemplateVersion | None:
        """A version by its number, $Latest, or $Default (also for "")."""
        number = {"": self.default, "$Default": self.default, "$Latest": self.latest}.get(asked)
        wanted = str(number) if number else asked
        return next((version for version in self.versions if str(version.number) == wanted), None)


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
        """Make a template with its version 1; the same ClientToken gives the one that is there.

        Raises:
            Refusal: 400; a name that is taken is InvalidLaunchTemplateName.AlreadyExistsException, a token that was
                used with other parameters IdempotentParameterMismatch.
        """
        if not _NAME.fullmatch(name):
            message = (  # github-aws-runners/terraform-aws-github-runner#932
                "A launch template name must be between 3 and 128 characters, and may contain letters, numbers, and "
                "the following characters: - ( ) . / _."
            )
            raise Refusal("InvalidLaunchTemplateName.MalformedException", message)
        known = next((found for found in self.templates.values() if token and found.token == token), None)
        if known is not None:
            if (known.name, known.versions[0].data) != (name, data):
                message = "The client token was used with other parameters."
                raise Refusal("IdempotentParameterMismatch", message)
            return known
        if any(found.name == name for found in self.templates.values()):
            message = "Launch template name already in use."
            raise Refusal("InvalidLaunchTemplateName.AlreadyExistsException", message)
        _check_data(data)
        made = LaunchTemplate(f"lt-0{secrets.token_hex(8)}", name, self._clock.now(), self._created_by, token=token)
        made.tags = dict(tags)
        made.versions.append(TemplateVersion(1, description, data, made.created))
        self.templates[made.id] = made
        return made

    def add_version(self, template: LaunchTemplate, description: str, data: Json, token: str) -> TemplateVersion:
        """Add a version; the same ClientToken gives the one that is there. The default stays as it is."""
        if token and token in template.tokens:
            found = template.find(str(template.tokens[token]))
            if found is not None:
                return found
        _check_data(data)
        template.made += 1
        version = TemplateVersion(template.made, description, data, self._clock.now())
        template.versions.append(version)
        if token:
            template.tokens[token] = version.number
        return version

    def require(self, identity: str, name: str) -> LaunchTemplate:
        """Find a template by id or name; exactly one of them is given.

        Raises:
            Refusal: 400 InvalidLaunchTemplateId.Malformed or .NotFound, InvalidLaunchTemplateName.NotFoundException, or
                the two of giving none or both.
        """
        if identity and not identity.startswith("lt-"):  # errors-overview; the sentence as EC2's of other ids
            raise Refusal("InvalidLaunchTemplateId.Malformed", f'Invalid id: "{identity}" (expecting "lt-...")')
        if identity and name:
            message = "Launch template ID and launch template name cannot both be specified."
            raise Refusal("InvalidParameterCombination", message)
        if not identity and not name:
            raise Refusal("MissingParameter", "Either launch template ID or launch template name is required.")
        found = self.find(identity, name)
        if found is not None:
            return found
        if identity:
            message = f"The specified launch template, with template ID {identity}, does not exist."
            raise Refusal("InvalidLaunchTemplateId.NotFound", message)
        message = f"The specified launch template, with template name {name}, does not exist."
        raise Refusal("InvalidLaunchTemplateName.NotFoundException", message)

    def find(self, identity: str, name: str) -> LaunchTemplate | None:
        """A template by its id or its name."""
        if identity:
            return self.templates.get(identity)
        return next((found for found in self.templates.values() if found.name == name), None)

    def delete(self, template: LaunchTemplate) -> None:
        """Take a template away; who uses it is not looked at (EC2 does not know)."""
        del self.templates[template.id]


def _check_data(data: Json) -> None:
    """Refuse what EC2 refuses in the data of a template.

    Raises:
        Refusal: 400.
    """
    if not data:
        # awsdocs/aws-cloudformation-user-guide#453
        message = "No launch template data was provided. Launch template data is required to create a launch template."
        raise Refusal("MissingParameter", message)
    _check_user_data(str(data.get("UserData", "")))
    for mapping in _objects(data.get("BlockDeviceMappings")):
        _check_volume(mapping)
    options = data.get("MetadataOptions")
    hops = options.get("HttpPutResponseHopLimit") if isinstance(options, dict) else None
    if hops is not None and not _HOPS[0] <= _number(hops, "HttpPutResponseHopLimit") <= _HOPS[1]:
        raise Refusal("InvalidParameterValue", f"Value ({hops}) for parameter HttpPutResponseHopLimit is invalid.")
    if data.get("NetworkInterfaces") and (data.get("SecurityGroupIds") or data.get("SecurityGroups")):
        message = "Network interfaces and an instance-level security groups may not be specified on the same request"
        raise Refusal("InvalidParameterCombination", message)


def _check_user_data(text: str) -> None:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        message = "Invalid BASE64 encoding of user data."  # awslabs/ec2-spot-workshops#15
        raise Refusal("InvalidUserData.Malformed", message) from None
    if len(raw) > _USER_DATA:
        raise Refusal("InvalidUserData.Malformed", f"User data is limited to {_USER_DATA} bytes")


def _check_volume(mapping: Json) -> None:
    ebs = mapping.get("Ebs")
    if not isinstance(ebs, dict):
        return
    kind = str(ebs.get("VolumeType", "gp2"))
    if kind not in {"standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"}:
        raise Refusal("InvalidParameterValue", f"Value ({kind}) for parameter volumeType is invalid.")
    if "Throughput" in ebs:
        if kind != "gp3":
            message = f"The parameter throughput is not supported for {kind} volumes."
            raise Refusal("InvalidParameterCombination", message)
        if not _GP3_THROUGHPUT[0] <= _number(ebs["Throughput"], "throughput") <= _GP3_THROUGHPUT[1]:
            raise Refusal("InvalidParameterValue", f"Value ({ebs['Throughput']}) for parameter throughput is invalid.")
    if "VolumeSize" in ebs and _number(ebs["VolumeSize"], "volumeSize") < 1:
        raise Refusal("InvalidParameterValue", f"Value ({ebs['VolumeSize']}) for parameter volumeSize is invalid.")


def _number(value: object, name: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise Refusal("InvalidParameterValue", f"Value ({value}) for parameter {name} is invalid.") from None


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
