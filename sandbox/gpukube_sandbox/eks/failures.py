"""Failures of EKS: immediate errors, and later ones as health issues and errors of updates.

In scope: the table of failures and their wire form. Out of scope: when they occur (`faults`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.wire.answers import AwsError, Json

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.faults import Fault


@dataclass(frozen=True, slots=True)
class Failure:
    """A planned failure or delay of an operation.

    Attributes:
        code: Health issue code; "" if the operation is only delayed.
        after_nodes: Machines that still come up before it fails.
        delay_s: Additional sandbox seconds.
        is_retried: Whether Auto Scaling tries again until it succeeds.
    """

    code: str
    message: str = ""
    after_nodes: int = 0
    delay_s: float = 0.0
    is_retried: bool = False


LAUNCH: dict[str, str] = {
    # docs: AWSEC2 troubleshooting-launch, as Auto Scaling repeats it in StatusMessage
    "InsufficientInstanceCapacity": (
        "We currently do not have sufficient {type} capacity in the Availability Zone you requested ({zone}). Our "
        "system will be working on provisioning additional capacity."
    ),
    "UnfulfillableCapacity": (
        "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
    ),
    "VcpuLimitExceeded": (
        "You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows for the instance "
        "bucket that the specified instance type belongs to. Please visit "
        "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
    ),
    "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
    "ReservationCapacityExceeded": (
        "The requested reservation does not have sufficient compatible and available capacity."
    ),
    "InvalidCapacityReservationId.NotFound": "The specified capacity reservation does not exist.",
    "InvalidPlacementGroup.Unknown": "The placement group is unknown.",
    # hashicorp/terraform-provider-aws#39904
    "Client.InvalidKMSKey.InvalidState": "The KMS key provided is in an incorrect state",
    "Unsupported": (
        "Your requested instance type ({type}) is not supported in your requested Availability Zone ({zone}). Please "
        "retry your request by not specifying an Availability Zone or choosing another one."
    ),
}
"""EC2 error code -> its message; a group shows them as AsgInstanceLaunchFailures."""

_ELSEWHERE = (
    " You can currently get {type} capacity by not specifying an Availability Zone in your request or choosing "
    "{others}."
)
_NO_SPOT = "There is no Spot capacity available that matches your request."
_ISSUES: dict[str, str] = {
    # docs: eks/troubleshooting, managed node group error codes
    "NodeCreationFailure": "Instances failed to join the kubernetes cluster",
    "AccessDenied": "Your worker nodes do not have access to the cluster: the node role is not mapped.",
    "InstanceLimitExceeded": "Your AWS account is unable to launch any more instances of the specified instance type.",
    "InsufficientFreeAddresses": "One or more of the subnets do not have enough available IP addresses for new nodes.",
    "Ec2SubnetInvalidConfiguration": (
        "One or more Amazon EC2 Subnets do not automatically assign public IP addresses to instances launched into it."
    ),
    "NodeTerminationFailure": "Nodes failed to drain and terminate.",
    "PodEvictionFailure": "Reached max retries while trying to evict pods from nodes in node group",
    "InternalFailure": "An internal error occurred.",
}

_AT_ONCE: dict[str, tuple[str, int, str]] = {
    # code of the fault -> exception, status, message
    "RequestLimitExceeded": ("InvalidRequestException", 400, "Request limit exceeded."),  # aws/aws-sdk#652
    "ResourceInUseException": (
        "ResourceInUseException",
        409,
        "Nodegroup cannot be updated as it is currently not in Active State",
    ),
    "ResourcePropagationDelayException": (
        "ResourcePropagationDelayException",
        428,
        "The service-linked role for Amazon EKS node groups is still being created.",
    ),
    "ResourceLimitExceededException": (
        "ResourceLimitExceededException",
        400,
        "Maximum number of managed node groups exceeded.",
    ),
    "AccessDeniedException": (
        "AccessDeniedException",
        403,
        "User: arn:aws:iam::{account}:user/sandbox is not authorized to perform: eks:{action} on {arn}",
    ),
    "UnsupportedAvailabilityZoneException": (
        "UnsupportedAvailabilityZoneException",
        400,
        "Your cluster's Availability Zones do not support this request.",
    ),
}


def planned_failure(
    fault: Fault | None, cluster: EksCluster, kind: str, action: str, *, spot: bool = False
) -> Failure | None:
    """Return the failure that a fault causes in an operation that is about to start.

    Args:
        fault: Its code is an EC2 error of `LAUNCH`, a health issue code, or an immediate error of EKS.
        cluster: Cluster of the group.
        kind: Instance type, for the message.
        action: The API's operation, for the message.
        spot: Whether the group buys on the Spot market.

    Raises:
        AwsError: The service reports this failure immediately.
    """
    if fault is None:
        return None
    if not fault.code:
        return Failure("", delay_s=fault.seconds)
    if fault.code in _AT_ONCE:
        name, status, message = _AT_ONCE[fault.code]
        text = fault.message or message.format(account=cluster.account, arn=cluster.arn, action=action)
        raise AwsError(name, text, status=status)
    zone = f"{cluster.region}{next((entry.zone for entry in cluster.subnets), 'a')}"
    if fault.code in LAUNCH:
        text = fault.message or launch_message(fault.code, kind, zone, spot=spot)
        return Failure("AsgInstanceLaunchFailures", text, fault.after_nodes, fault.seconds)
    text = fault.message or _ISSUES.get(fault.code, f"Injected failure {fault.code}.")
    return Failure(fault.code, text, fault.after_nodes, fault.seconds)


def launch_message(  # noqa: PLR0913 - the parts of the text
    code: str, kind: str, zone: str, limit: float = 0, *, spot: bool = False, others: str = "another one"
) -> str:
    """Return Auto Scaling's message of a failed launch (seen in public logs of AsgInstanceLaunchFailures).

    Args:
        code: Key of `LAUNCH`.
        kind: Instance type.
        zone: Availability Zone, if the message names one.
        limit: The quota, if the message names it.
        spot: Whether the Spot market was asked.
        others: Zones that have machines; "" for none.
    """
    sentence = LAUNCH[code].format(type=kind, zone=zone, limit=limit)
    if code == "InsufficientInstanceCapacity":
        sentence = _NO_SPOT if spot else sentence + (_ELSEWHERE.format(type=kind, others=others) if others else "")
    market = "Spot" if spot or code == "MaxSpotInstanceCountExceeded" else "On-Demand"
    return f"Could not launch {market} Instances. {code} - {sentence} Launching EC2 instance failed."


def eviction_failure(group: str) -> Failure:
    """Return the failure if pods of a node cannot be evicted in time (docs: eks/managed-node-update-behavior)."""
    return Failure("PodEvictionFailure", f"{_ISSUES['PodEvictionFailure']} {group}")


def unsupported_zone(kind: str, zone: str) -> Failure:
    """Return the failure if no subnet of the group is in a zone that offers any of its types."""
    return launch_failure("Unsupported", kind, zone)


def launch_failure(code: str, kind: str, zone: str, *, spot: bool = False, others: str = "another one") -> Failure:
    """Return the failure of a launch that EC2 rejects, as the group's health shows it; see `launch_message`."""
    return Failure("AsgInstanceLaunchFailures", launch_message(code, kind, zone, spot=spot, others=others))


def over_quota(kind: str, limit: float, *, spot: bool) -> Failure:
    """Return the failure of a launch beyond the account's vCPU limit for the type, or its limit of spot requests."""
    code = "MaxSpotInstanceCountExceeded" if spot else "VcpuLimitExceeded"
    return Failure("AsgInstanceLaunchFailures", launch_message(code, kind, "", limit))


def issue(failure: Failure, resources: list[str]) -> Json:
    """Return a health issue in its wire form."""
    return {"code": failure.code, "message": failure.message, "resourceIds": resources}
