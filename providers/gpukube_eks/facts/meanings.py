"""Maps AWS's error codes, health issues, and messages to gpukube's errors and their fixes.

In scope: the table and lookups in it. Out of scope: the SDK and its exceptions (`live.failures`).

Capacity and quota errors and most mistakes show up late, as health issues of a CREATE_FAILED node group with EC2's own
code in the message. So the message takes precedence over the code.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.clocks import SET_CLOCK
from gpukube.core.meanings import Meaning, Problem, find_meaning, missing_permission
from gpukube.core.meanings import quote as quote_of
from gpukube.core.permissions import PRINT_POLICY, permission_fix
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
    NotOffered,
    QuotaError,
    ReservationFull,
    StockOut,
    Throttled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

CLOCK: Final = "AWS rejected the request's timestamp: this machine's clock is wrong"
LOGIN: Final = "run aws sso login or aws configure, or set AWS_PROFILE, or clusters.*.profile"
AGAIN: Final = "run the same command again: it reads the live state first"
_OTHER_PLACE: Final = "write zones: with other zones, choose another type or capacity, or try later"
_QUOTAS: Final = (
    "raise the vCPU quota in Service Quotas (ec2): G and VT machines L-DB2E81BA on demand and L-3819A6DF as Spot, "
    "P machines L-417A185B and L-7212CCBC; or request fewer nodes"
)


quote: Final = partial(quote_of, "AWS")
_ACTION: Final = re.compile(r"(?:to perform:? |missing permissions for ')([a-z][\w-]*:\w+)")

LAUNCH_FAILURES: Final = "AsgInstanceLaunchFailures"
"""Code of the health issue of a group whose launches fail."""
_LAUNCH_CODE: Final = re.compile(r"(?:^|\. )([A-Z][\w.]+) - ")

_EXISTS: Final = Meaning(
    codes="ResourceInUseException",
    text=r"(?i)already exists",
    error=Conflict,
    seen="a node group of this name already exists",
    fix=AGAIN,
    code="exists",
)
_BUSY: Final = Meaning(
    codes="ResourceInUseException",
    error=Busy,
    seen="another operation is running on the node group",
    fix="wait until it has finished, then run the same command again",
)

_NOT_IN_ZONES: Final = Meaning(
    codes="Unsupported",
    error=NotOffered,
    seen="the instance type is not offered in these zones",
    fix="write zones: with those that offer it (aws ec2 describe-instance-type-offerings)",
    code="zone-not-offered",
)
_SUBNET_FULL: Final = Meaning(
    # docs: eks/troubleshooting, managed node group errors; EC2's code is in the text of a failed launch
    text=r"^InsufficientFreeAddresses\b|^IpNotAvailable\b|InsufficientFreeAddressesInSubnet",
    error=CloudError,
    seen="the subnets do not have enough free addresses",
    fix="use larger subnets, or fewer nodes",
    code="subnet-full",
)

# EC2's codes for a launch, in a response or inside the text of an issue or activity ("CODE - text"):
# docs: AWSEC2/latest/APIReference errors-overview; aws/karpenter-provider-aws pkg/errors/errors.go
_LAUNCH: Final[tuple[Meaning, ...]] = (
    Meaning(
        text=r"InsufficientInstanceCapacity[\s\S]*spread placement group",
        error=CloudError,
        seen="the spread placement group has its maximum of machines in the zone",
        fix="request fewer nodes, or use another placement group",
        code="launch",
    ),
    Meaning(
        text=r"VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|"
        r"account is unable to launch any more instances",  # docs: eks/troubleshooting, InstanceLimitExceeded
        error=QuotaError,
        seen="the vCPU quota of the account is too small",
        fix=_QUOTAS,
    ),
    Meaning(
        text=r"MaxFleetCountExceeded|(?i:maximum fleet requests)",
        error=QuotaError,
        seen="the account has its maximum of EC2 fleets",
        fix="raise the number of fleets per region in Service Quotas (ec2), or delete unused fleets",
    ),
    Meaning(
        text=r"ReservationCapacityExceeded|CapacityReservationNotActive",
        error=ReservationFull,
        seen="the reservation has no machine left: it is used up, not active yet, or for another zone or type",
        fix="check it: aws ec2 describe-capacity-reservations; or request fewer nodes",
        code="reservation",
    ),
    # The texts without a code: eksctl-io/eksctl#4732, cortexlabs/cortex#1258
    Meaning(
        text=r"InsufficientInstanceCapacity|InsufficientHostCapacity|UnfulfillableCapacity|\bInsufficientCapacity\b|"
        r"do not have sufficient \S+ capacity|no Spot capacity available",
        error=StockOut,
        seen="these zones have no such machine available now",
        fix=_OTHER_PLACE,
    ),
    _NOT_IN_ZONES,
    _SUBNET_FULL,
)

_EARLY: Final[tuple[Meaning, ...]] = (
    *_LAUNCH,
    _EXISTS,
    # aws/karpenter-provider-aws#133, aws/containers-roadmap#2204
    _BUSY,
    # terraform-aws-modules/terraform-aws-eks#748: the autoscaler changed the size after it was read
    Meaning(
        codes="InvalidParameterException",
        text=r"can't be greater than (desired|max) size",
        error=Moved,
        seen="the size of the node group changed meanwhile",
        fix=AGAIN,
    ),
    # aws/aws-sdk#652: status 400, which the SDK does not retry; nothing was done
    Meaning(
        codes="InvalidRequestException",
        text=r"(?i)request limit exceeded",
        error=Busy,
        seen="EKS received too many requests",
        fix="wait a minute, then run the same command again",
    ),
    Meaning(
        codes="ResourcePropagationDelayException",
        error=Busy,
        seen="the service-linked role of node groups is still being created",
        fix="wait a minute, then run the same command again",
    ),
    Meaning(
        codes="ThrottlingException|Throttling|TooManyRequestsException|RequestLimitExceeded|RequestThrottled",
        error=Throttled,
        seen="AWS throttles these requests",
        fix="wait a minute, then run the same command again",
        code="throttled",
    ),
    Meaning(
        codes="ResourceLimitExceededException",
        error=QuotaError,
        seen="an EKS quota is too small",
        fix="raise it in Service Quotas (eks): node groups per cluster L-6D54EA21, nodes per group L-BD136A63",
    ),
    Meaning(
        codes="VersionLimitExceeded|.*LimitExceeded.*|.*MaxLimit.*",
        error=QuotaError,
        seen="an account quota is too small",
        fix="raise it in Service Quotas (ec2), or delete unused launch templates",
    ),
    Meaning(
        codes="UnsupportedAvailabilityZoneException",
        error=NotOffered,
        seen="EKS does not support one of the zones",
        fix="write zones: with the zones that AWS lists",
        code="zone-not-offered",
    ),
    Meaning(
        codes=r"InvalidCapacityReservationId\.\w+",
        error=CloudError,
        seen="the account has no such capacity reservation in this region",
        fix="write the id of an existing one (aws ec2 describe-capacity-reservations)",
        code="reservation",
    ),
    Meaning(
        codes="InvalidParameterException",
        text=r"not a valid instance type for requested amiType",
        error=CloudError,
        seen="the image does not support the instance type",
        fix="write another image or instanceType",
        code="image-refused",
    ),
    Meaning(
        codes="OptInRequired|SubscriptionRequiredException",
        error=NotAllowed,
        seen="the service is not enabled for the account in this region",
        fix="enable the region for the account, or check clusters.*.region",
        code="not-enabled",
    ),
    Meaning(
        codes="AccessDenied",
        text=r"(?i)AssumeRole",
        error=NotAllowed,
        seen="the role of the spec cannot be assumed",
        fix="check clusters.*.roleArn and its trust policy",
        code="assume-role",
    ),
    # aws-samples/terraform-eks-code#13: EKS does a trial launch as its caller, and names no permission
    Meaning(
        codes="InvalidRequestException",
        text=r"(?i)not authorized to launch instances with this launch template",
        error=NotAllowed,
        seen="the identity may not start instances from the launch template",
        fix=f"allow ec2:RunInstances, and ec2:CreateTags if the pool has tags; {PRINT_POLICY} prints all required "
        "permissions (aws sts decode-authorization-message decodes the rest of AWS's message)",
    ),
    # terraform-aws-modules/terraform-aws-eks#823, XenitAB/terraform-modules#396, aws-controllers-k8s/community#2164:
    # EKS makes these calls with its caller's permissions
    Meaning(
        codes="InvalidRequestException|InvalidParameterException",
        text=r"(?i)missing permissions for '|not authorized to perform",
        error=NotAllowed,
        seen="the identity lacks a permission",
        fix=f"allow the action that AWS names; {PRINT_POLICY} prints all required permissions",
    ),
    Meaning(
        codes="AccessDeniedException|AccessDenied|UnauthorizedOperation|UnauthorizedException",
        error=NotAllowed,
        seen="the identity lacks a permission",
        fix=f"allow the action that AWS names; {PRINT_POLICY} prints all required permissions",
    ),
    # aws/aws-sdk-js-v3 packages/service-error-classification CLOCK_SKEW_ERROR_CODES; boto/botocore#149,
    # EngineerBetter/control-tower#51: the messages
    Meaning(
        codes="RequestTimeTooSkewed|RequestExpired|RequestInTheFuture",
        error=AccessError,
        seen=CLOCK,
        fix=SET_CLOCK,
    ),
    Meaning(
        codes="InvalidSignatureException|SignatureDoesNotMatch|AuthFailure",
        text=r"(?i)signature expired|signature not yet current|is now (?:earlier|later) than",
        error=AccessError,
        seen=CLOCK,
        fix=SET_CLOCK,
    ),
    Meaning(
        codes="UnrecognizedClientException|InvalidClientTokenId|ExpiredToken|ExpiredTokenException|"
        "InvalidSignatureException|SignatureDoesNotMatch|MissingAuthenticationToken|AuthFailure|InvalidAccessKeyId|"
        "IncompleteSignature",
        error=AccessError,
        seen="AWS refused the credentials",
        fix=LOGIN,
    ),
    Meaning(
        codes="ResourceNotFoundException|NotFoundException",
        error=NoCluster,
        seen="the account has no such cluster or node group in this region",
        fix="check region and name under clusters (aws eks list-clusters)",
    ),
    Meaning(
        codes="InvalidParameterException|InvalidRequestException|ClientException|BadRequestException|InvalidParameter.*|"
        "MissingParameter|ValidationError|Invalid.*|InvalidStateException|IdempotentParameterMismatch",
        error=CloudError,
        seen="AWS refused the request",
        fix="correct what the message names",
        code="refused",
    ),
)

_LATE: Final[tuple[Meaning, ...]] = (
    *_LAUNCH,
    Meaning(
        text=r"InvalidCapacityReservation",
        error=CapacityError,
        seen="the launch cannot use the reservation: it does not exist, or is for another zone or type",
        fix="check it: aws ec2 describe-capacity-reservations",
        code="reservation",
    ),
    replace(
        _NOT_IN_ZONES,
        codes="AsgInstanceLaunchFailures|Ec2InstanceTypeDoesNotExist",
        text=r"\bUnsupported\b|not supported in your requested Availability Zone|DoesNotExist",
    ),
    Meaning(
        codes="Ec2InstanceTypeDoesNotExist",
        error=NotOffered,
        seen="the instance type is not offered in this region",
        fix="choose another instance type or region",
        code="zone-not-offered",
    ),
    Meaning(
        codes="AsgInstanceLaunchFailures",
        error=CloudError,
        seen="the Auto Scaling group cannot start machines",
        fix="see its activities: aws autoscaling describe-scaling-activities",
        code="launch",
    ),
    # docs: eks/troubleshooting, managed node group errors
    Meaning(
        codes="NodeCreationFailure",
        error=CloudError,
        seen="the machines did not join the cluster in time",
        fix="check the role's policies, the route from the subnets to the cluster (NAT or endpoints), and the labels",
        code="node-join",
    ),
    Meaning(
        codes="AccessDenied",
        error=CloudError,
        seen="the cluster refuses access to EKS or the nodes",
        fix="restore the cluster role eks:node-manager, and the nodes' role in the access entries or aws-auth",
        code="node-access",
    ),
    Meaning(
        codes="ClusterUnreachable",
        error=CloudError,
        seen="EKS cannot reach the cluster's Kubernetes API",
        fix="check the cluster's endpoint access and security groups",
        code="cluster-unreachable",
    ),
    Meaning(
        codes="Ec2SubnetInvalidConfiguration|Ec2SubnetNotFound|Ec2SubnetMissingIpv6Assignment|Ec2SubnetListTooLong|"
        "SubnetNotFound",
        error=CloudError,
        seen="the subnets are not suitable for nodes",
        fix="write eks: {subnets: [...]} with private subnets of the cluster, or let public ones assign addresses",
        code="subnets",
    ),
    Meaning(
        codes=r"Ec2LaunchTemplate\w*|SourceEc2LaunchTemplateNotFound|LaunchTemplate\w*",
        error=CloudError,
        seen="the launch template was changed or deleted",
        fix="delete the pool and create it again; do not edit its launch template",
        code="launch-template",
    ),
    Meaning(
        codes="IamNodeRoleNotFound|IamInstanceProfileNotFound",
        error=CloudError,
        seen="the nodes' role was deleted",
        fix="create it again with the same name, or write eks: {nodeRole: ARN}",
        code="node-role",
    ),
    Meaning(
        codes="IamLimitExceeded|LimitExceeded|EniLimitReached",
        error=QuotaError,
        seen="an account quota is too small",
        fix="raise the quota that AWS's message names",
    ),
    Meaning(
        codes=r"AutoScalingGroup\w+",
        error=CloudError,
        seen="the Auto Scaling group was changed by hand, or is busy",
        fix="undo the change, and cancel its instance refresh if one runs",
        code="auto-scaling-group",
    ),
    Meaning(
        codes="NodeTerminationFailure|PodEvictionFailure",
        error=CloudError,
        seen="pods block the drain of nodes",
        fix="relax the PodDisruptionBudgets of these pods, or delete them",
        code="drain",
    ),
    Meaning(
        codes="KubernetesLabelInvalid",
        error=CloudError,
        seen="Kubernetes refused a node label",
        fix="change it",
        code="label-refused",
    ),
    Meaning(
        codes="Ec2SecurityGroupNotFound|Ec2SecurityGroupDeletionFailure|SecurityGroupNotFound|VpcIdNotFound",
        error=CloudError,
        seen="a security group or the VPC was deleted, or is still in use",
        fix="undo the change that was made outside EKS",
        code="network",
    ),
)

_FAILED: Final = Meaning(error=CloudError, seen="the operation failed", fix=AGAIN, code="failed")
_UNKNOWN: Final = Meaning(
    error=CloudError, seen="AWS refused the request", fix="correct what AWS's message names, or try again later"
)


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Return gpukube's error for an error from AWS."""
    meaning, lacks = _meaning_of(problem), missing_permission(problem.text, _ACTION)
    fix = permission_fix(problem.text, _ACTION) if meaning.error is NotAllowed and not meaning.code else ""
    return meaning.error_at(where, note=problem.code, why=quote(problem.text), fix=fix, lacks=lacks)


def issue_error(issues: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Return one error for a group's health issues: that of the first issue with a known meaning.

    A failed launch comes first: machines that were never started also did not join, which is another issue
    (eksctl-io/eksctl#4732).
    """
    ordered = sorted(issues, key=lambda issue: issue[0] != LAUNCH_FAILURES)
    problems = [Problem(code, text, is_late=True) for code, text in ordered] or [Problem("", "", is_late=True)]
    return error_of(next((item for item in problems if _meaning_of(item) is not _FAILED), problems[0]), where)


def launch_error(text: str, where: str) -> GpukubeError:
    """Return the error for a failed activity of an Auto Scaling group.

    Args:
        text: Its StatusMessage, with EC2's code before " - " ("Could not launch ... CODE - text"), or without a code.
        where: The pool.
    """
    found = _LAUNCH_CODE.search(text)
    return error_of(Problem(found[1] if found else LAUNCH_FAILURES, text, is_late=True), where)


def update_error(status: str, errors: Sequence[tuple[str, str]], where: str) -> GpukubeError:
    """Return the error for a failed or canceled update; the group is back to its old configuration."""
    if status == "Cancelled":
        return Conflict("the update was cancelled", where=where, fix=AGAIN, code="canceled")
    return issue_error(errors, where)


def exists(where: str) -> GpukubeError:
    """Return the error for a creation when the group already exists."""
    return _EXISTS.error_at(where)


def busy(status: str, where: str) -> GpukubeError:
    """Return the error for a change to a group that EKS is already changing."""
    return _BUSY.error_at(where, note=status)


def _meaning_of(problem: Problem) -> Meaning:
    table, other = (_LATE, _FAILED) if problem.is_late else (_EARLY, _UNKNOWN)
    return find_meaning(table, problem.code, f"{problem.code} {problem.text}") or other
