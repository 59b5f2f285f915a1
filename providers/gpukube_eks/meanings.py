"""What AWS's error codes, health issues and texts mean -> our errors, with the remedy.

Lives here: the table and the look-up in it. Must not live here: the SDK and its exceptions (`failures`).

Capacity, quota and most mistakes fail late, as health issues of a node group that is CREATE_FAILED, with EC2's own code
inside the text. So the text decides before the code does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.errors import (
    AccessError,
    Busy,
    CapacityError,
    CloudError,
    Conflict,
    GpukubeError,
    Moved,
    NoCluster,
    NotAllowed,
    QuotaError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGIN: Final = "run aws sso login or aws configure, or set AWS_PROFILE, or clusters.*.profile"
AGAIN: Final = "run the same command again: it looks first"
_OTHER_PLACE: Final = "write zones: with other zones, choose another type or capacity, or try later"
_QUOTAS: Final = (
    "raise the vCPU quota in Service Quotas (ec2): G and VT machines L-DB2E81BA on demand and L-3819A6DF as Spot, "
    "P machines L-417A185B and L-7212CCBC; or ask for fewer nodes"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as AWS words it.

    Attributes:
        code: Exception, or code of a health issue or of an update's error.
        text: Its text.
        is_late: A node group or an update reports it, long after the request was taken.
    """

    code: str
    text: str
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """A meaning: found by the code (a whole-word pattern, "" for any) and by the text."""

    codes: str
    text: str
    error: type[GpukubeError]
    says: str
    fix: str
    code: str = ""


_BUSY: Final = _Row(
    "ResourceInUseException",
    "",
    Busy,
    "another operation runs on the node group",
    "wait until it has ended, and run the same command again",
)

_EARLY: Final[tuple[_Row, ...]] = (
    _Row(
        "ResourceInUseException",
        r"(?i)already exists",
        Conflict,
        "a node group of this name is there already",
        AGAIN,
        "exists",
    ),
    # aws/karpenter-provider-aws#133, aws/containers-roadmap#2204
    _BUSY,
    # terraform-aws-modules/terraform-aws-eks#748: the autoscaler moved the size after it was looked at
    _Row(
        "InvalidParameterException",
        r"can't be greater than (desired|max) size",
        Moved,
        "the size of the node group changed meanwhile",
        AGAIN,
    ),
    # aws/aws-sdk#652: status 400, which the SDK does not try again; nothing was done
    _Row(
        "InvalidRequestException",
        r"(?i)request limit exceeded",
        Busy,
        "EKS has too many requests at once",
        "wait a minute, and run the same command again",
    ),
    _Row(
        "ResourcePropagationDelayException",
        "",
        Busy,
        "the service-linked role of node groups is still being made",
        "wait a minute, and run the same command again",
    ),
    _Row(
        "ThrottlingException|Throttling|TooManyRequestsException|RequestLimitExceeded|RequestThrottled",
        "",
        CloudError,
        "AWS throttles these requests",
        "wait a minute, and run the same command again",
        "throttled",
    ),
    _Row(
        "ResourceLimitExceededException",
        "",
        QuotaError,
        "a quota of EKS is too small",
        "raise it in Service Quotas (eks): node groups per cluster L-6D54EA21, nodes per group L-BD136A63",
    ),
    _Row(
        "VersionLimitExceeded|.*LimitExceeded.*|.*MaxLimit.*",
        "",
        QuotaError,
        "a quota of the account is too small",
        "raise it in Service Quotas (ec2), or delete launch templates that are not used",
    ),
    _Row(
        "UnsupportedAvailabilityZoneException",
        "",
        CapacityError,
        "EKS does not work in one of the zones",
        "write zones: with those that AWS names",
        "zone-not-offered",
    ),
    _Row(
        r"InvalidCapacityReservationId\.\w+",
        "",
        CloudError,
        "there is no such capacity reservation in this region of the account",
        "write the id of one that is there (aws ec2 describe-capacity-reservations)",
        "reservation",
    ),
    _Row(
        "InvalidParameterException",
        r"not a valid instance type for requested amiType",
        CloudError,
        "the image is not made for the instance type",
        "write another image or instanceType",
        "image-refused",
    ),
    _Row(
        "OptInRequired|SubscriptionRequiredException",
        "",
        NotAllowed,
        "the account may not use this service in this region",
        "enable the region for the account, or check clusters.*.region",
        "not-enabled",
    ),
    _Row(
        "AccessDenied",
        r"(?i)AssumeRole",
        NotAllowed,
        "the role of the spec cannot be assumed",
        "check clusters.*.roleArn and its trust policy",
        "assume-role",
    ),
    _Row(
        "AccessDeniedException|AccessDenied|UnauthorizedOperation|UnauthorizedException",
        "",
        NotAllowed,
        "the identity may not do this",
        "ask for the action that AWS names; node groups also need iam:PassRole for the nodes' role, "
        "ec2:RunInstances and ec2:CreateTags",
    ),
    _Row(
        "UnrecognizedClientException|InvalidClientTokenId|ExpiredToken|ExpiredTokenException|RequestExpired|"
        "InvalidSignatureException|SignatureDoesNotMatch|MissingAuthenticationToken|AuthFailure|InvalidAccessKeyId|"
        "IncompleteSignature",
        "",
        AccessError,
        "AWS refused the credentials",
        LOGIN,
    ),
    _Row(
        "ResourceNotFoundException|NotFoundException",
        "",
        NoCluster,
        "there is no such cluster or node group in this region of the account",
        "check region and name under clusters (aws eks list-clusters)",
    ),
    _Row(
        "InvalidParameterException|InvalidRequestException|ClientException|BadRequestException|InvalidParameter.*|"
        "MissingParameter|ValidationError|Invalid.*|InvalidStateException|IdempotentParameterMismatch",
        "",
        CloudError,
        "AWS refused the request",
        "change what it names",
        "refused",
    ),
)

_LATE: Final[tuple[_Row, ...]] = (
    # Codes of EC2 inside the texts: docs: AWSEC2/latest/APIReference errors-overview
    _Row(
        "",
        r"VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded",
        QuotaError,
        "the vCPU quota of the account is too small",
        _QUOTAS,
    ),
    _Row(
        "",
        r"ReservationCapacityExceeded|InvalidCapacityReservation\w*|CapacityReservationNotActive",
        CapacityError,
        "the reservation has no machine for it: it is used up, not active yet, or of another zone or type",
        "look at it: aws ec2 describe-capacity-reservations; or ask for fewer nodes until it has room",
        "reservation",
    ),
    _Row(
        "",
        r"InsufficientInstanceCapacity|InsufficientHostCapacity|UnfulfillableCapacity",
        CapacityError,
        "no such machine is free in these zones now",
        _OTHER_PLACE,
    ),
    _Row(
        "AsgInstanceLaunchFailures|Ec2InstanceTypeDoesNotExist",
        r"\bUnsupported\b|not supported in your requested Availability Zone|DoesNotExist",
        CapacityError,
        "the instance type is not offered in these zones",
        "write zones: with those that offer it (aws ec2 describe-instance-type-offerings)",
        "zone-not-offered",
    ),
    _Row(
        "Ec2InstanceTypeDoesNotExist",
        "",
        CapacityError,
        "the instance type is not offered in this region",
        "choose another instance type or region",
        "zone-not-offered",
    ),
    _Row(
        "AsgInstanceLaunchFailures",
        "",
        CloudError,
        "the Auto Scaling group cannot start machines",
        "read its activities: aws autoscaling describe-scaling-activities",
        "launch",
    ),
    # docs: eks/troubleshooting, managed node group errors
    _Row(
        "InsufficientFreeAddresses|IpNotAvailable",
        "",
        CloudError,
        "the subnets have too few addresses",
        "use larger subnets, or fewer nodes",
        "subnet-full",
    ),
    _Row(
        "NodeCreationFailure",
        "",
        CloudError,
        "the machines did not join the cluster in time",
        "check the role's policies, the way from the subnets to the cluster (NAT or endpoints), and the labels",
        "node-join",
    ),
    _Row(
        "AccessDenied",
        "",
        CloudError,
        "the cluster does not let EKS or the nodes in",
        "restore the cluster role eks:node-manager, and the nodes' role in the access entries or aws-auth",
        "node-access",
    ),
    _Row(
        "ClusterUnreachable",
        "",
        CloudError,
        "EKS does not reach the cluster's Kubernetes API",
        "check the cluster's endpoint access and security groups",
        "cluster-unreachable",
    ),
    _Row(
        "Ec2SubnetInvalidConfiguration|Ec2SubnetNotFound|Ec2SubnetMissingIpv6Assignment|Ec2SubnetListTooLong|"
        "SubnetNotFound",
        "",
        CloudError,
        "the subnets do not fit",
        "write eks: {subnets: [...]} with private subnets of the cluster, or let public ones assign addresses",
        "subnets",
    ),
    _Row(
        r"Ec2LaunchTemplate\w*|SourceEc2LaunchTemplateNotFound|LaunchTemplate\w*",
        "",
        CloudError,
        "the launch template was changed or taken away",
        "delete the pool and create it again; never edit its launch template",
        "launch-template",
    ),
    _Row(
        "IamNodeRoleNotFound|IamInstanceProfileNotFound",
        "",
        CloudError,
        "the nodes' role is gone",
        "make it again with the same name, or write eks: {nodeRole: ARN}",
        "node-role",
    ),
    _Row(
        "IamLimitExceeded|LimitExceeded|EniLimitReached",
        "",
        QuotaError,
        "a quota of the account is too small",
        "raise the quota that AWS names",
    ),
    _Row(
        r"AutoScalingGroup\w+",
        "",
        CloudError,
        "the Auto Scaling group was changed by hand, or is busy with itself",
        "undo the change, and cancel its instance refresh if one runs",
        "auto-scaling-group",
    ),
    _Row(
        "NodeTerminationFailure|PodEvictionFailure",
        "",
        CloudError,
        "pods keep nodes from being drained",
        "loosen the disruption budgets of these pods, or delete them",
        "drain",
    ),
    _Row("KubernetesLabelInvalid", "", CloudError, "a node label is refused", "change it", "label-refused"),
    _Row(
        "Ec2SecurityGroupNotFound|Ec2SecurityGroupDeletionFailure|SecurityGroupNotFound|VpcIdNotFound",
        "",
        CloudError,
        "a security group or the VPC is gone, or still in use",
        "undo the change that was made behind EKS's back",
        "network",
    ),
)

_FAILED: Final = _Row("", "", CloudError, "the operation ended badly", AGAIN, "failed")
_UNKNOWN: Final = _Row("", "", CloudError, "AWS refused the request", "change what it names, or try again later")


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Make our error of AWS's."""
    row = _meaning(problem)
    message = f"{row.says} ({problem.code})" if problem.code else row.says
    return row.error(message, where=where, fix=row.fix, why=quote(problem.text), code=row.code)


def issue_error(issues: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Make one error of the health issues of a group: of the first that says more than that something went wrong."""
    problems = [Problem(code, text, is_late=True) for code, text in issues] or [Problem("", "", is_late=True)]
    told = next((problem for problem in problems if _meaning(problem) is not _FAILED), problems[0])
    return error_of(told, where)


def update_error(status: str, errors: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Make our error of an update that failed or was cancelled; the group has its old configuration again."""
    if status == "Cancelled":
        return Conflict("the update was cancelled", where=where, fix=AGAIN, code="canceled")
    return issue_error(errors, where)


def exists(where: str) -> GpukubeError:
    """Make our error of a creation that met a group."""
    row = _EARLY[0]
    return row.error(row.says, where=where, fix=row.fix, code=row.code)


def busy(status: str, where: str) -> GpukubeError:
    """Make our error of a change that would meet a group which EKS works on."""
    return _BUSY.error(f"{_BUSY.says} ({status})", where=where, fix=_BUSY.fix, code=_BUSY.code)


def _meaning(problem: Problem) -> _Row:
    table, other = (_LATE, _FAILED) if problem.is_late else (_EARLY, _UNKNOWN)
    for row in table:
        if re.fullmatch(row.codes or ".*", problem.code) and re.search(row.text, f"{problem.code} {problem.text}"):
            return row
    return other


def quote(text: str) -> str:
    """AWS's own words, on one line and of a length that can be read."""
    line = " ".join(text.split()).rstrip(".")
    return f"AWS says: {line[:400]}" if line else ""
