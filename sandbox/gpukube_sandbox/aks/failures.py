"""Failures of AKS: immediate errors, and errors that an operation reports later because machines did not come up.

In scope: the table of failures and their wire form. Out of scope: when they occur (`faults`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.aks.answers import ArmError, error_detail
from gpukube_sandbox.aks.lifecycle import Failure
from gpukube_sandbox.aks.sizes import find_size

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster
    from gpukube_sandbox.faults import Fault


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A known failure of AKS; `{size}`, `{location}`, `{family}`, and `{zone}` are filled in.

    Attributes:
        inner: Code of the compute service if it differs.
        status: Above 0: rejected immediately with this status; 0: the operation fails later.
    """

    message: str
    inner: str = ""
    target: str = ""
    status: int = 0


_CONSTRAINTS = (
    "Allocation failed. VM(s) with the following constraints cannot be allocated, because the condition is too "
    "restrictive. Please remove some constraints and try again."
)
_QUOTA = (
    "Operation could not be completed as it results in exceeding approved {what} quota. Additional details - "
    "Deployment Model: Resource Manager, Location: {location}, Current Limit: {limit}, Current Usage: {used}, "
    "Additional Required: {vcpus}, (Minimum) New Limit Required: {least}."
)

FAILURES: dict[str, KnownFailure] = {
    # Azure/karpenter-provider-azure pkg/fake/aksmachinesapi.go
    "AllocationFailed": KnownFailure(
        "Allocation failed. If you are trying to add a new VM to a Virtual Machine Scale Set with a single placement "
        "group or update/resize an existing VM in a Virtual Machine Scale Set with a single placement group, please "
        "note that such allocation is scoped to a single cluster, and it is possible that the cluster is out of "
        "capacity. Please read more about improving likelihood of allocation success at "
        "http://aka.ms/allocation-guidance.",
        target="243",
    ),
    "ZonalAllocationFailed": KnownFailure(
        "Allocation failed. We do not have sufficient capacity for the requested VM size {size} in zone {zone}. Read "
        "more about improving likelihood of allocation success at http://aka.ms/allocation-guidance"
    ),
    "OverconstrainedAllocationRequest": KnownFailure(_CONSTRAINTS, target="0"),
    "OverconstrainedZonalAllocationRequest": KnownFailure(_CONSTRAINTS, target="6"),
    "SkuNotAvailable": KnownFailure(
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is "
        "currently not available in location '{location}'. Please try another size or deploy to a different location "
        "or different zone. See https://aka.ms/azureskunotavailable for details.",
        target="sku.name",
    ),
    "QuotaExceeded": KnownFailure(_QUOTA.replace("{what}", "{family} Cores"), inner="OperationNotAllowed"),
    "LowPriorityQuotaExceeded": KnownFailure(_QUOTA.replace("{what}", "LowPriorityCores"), inner="OperationNotAllowed"),
    "RegionalQuotaExceeded": KnownFailure(
        _QUOTA.replace("{what}", "Total Regional Cores"), inner="OperationNotAllowed"
    ),
    # 1ChristianAlex/motordesk#14; the HTTP status is unconfirmed
    "ErrCode_InsufficientVCPUQuota": KnownFailure(
        "Insufficient vcpu quota requested {vcpus}, remaining {limit} for family {family} for region {location}. Surge "
        "nodes would also consume vcpu quota.",
        status=400,
    ),
    "RequestDisallowedByPolicy": KnownFailure("Resource '{pool}' was disallowed by policy.", status=403),
    "AuthorizationFailed": KnownFailure(
        "The client does not have authorization to perform action "
        "'Microsoft.ContainerService/managedClusters/agentPools/write' over scope '{scope}' or the scope is invalid.",
        status=403,
    ),
    "MissingSubscriptionRegistration": KnownFailure(
        "The subscription is not registered to use namespace 'Microsoft.ContainerService'.", status=409
    ),
    # Azure/AgentBaker cse_helpers.sh: exit codes of the bootstrap; the sentence is shortened
    "VMExtensionProvisioningError": KnownFailure(
        "VM has reported a failure when processing extension 'vmssCSE'. Error message: 'Enable failed: failed to "
        "execute command: command terminated with exit status=84'"
    ),
    "NodesNotReady": KnownFailure("Nodes of agent pool {pool} are not ready."),
    "SubnetIsFull": KnownFailure("Subnet does not have enough IP addresses for agent pool {pool}."),
}
_OUTER = {"LowPriorityQuotaExceeded": "QuotaExceeded", "RegionalQuotaExceeded": "QuotaExceeded"}
_NESTED = frozenset({"RequestDisallowedByPolicy", "AuthorizationFailed", "MissingSubscriptionRegistration"})


def planned_failure(fault: Fault | None, cluster: Cluster, pool: str, size: str) -> Failure | None:
    """Return the failure that a fault causes in an operation that is about to start.

    Args:
        fault: Its code is a key of `FAILURES`, or any other; its message is used instead of the table's.
        cluster: Cluster of the pool.
        pool: Pool name.
        size: The pool's vmSize.

    Raises:
        ArmError: The service reports this failure immediately.
    """
    if fault is None:
        return None
    if not fault.code:
        return Failure(None, delay_s=fault.seconds)
    code = fault.code
    known = FAILURES.get(code, KnownFailure(f"Injected failure {code}."))
    text = fault.message or _render(known.message, cluster, pool, size)
    if known.status:
        shape: Literal["flat", "nested"] = "nested" if code in _NESTED else "flat"
        raise ArmError(known.status, code, text, shape=shape)
    detail = error_detail(_OUTER.get(code, code), text, inner=known.inner, target=known.target)
    return Failure(detail, fault.after_nodes, fault.seconds)


def failure_detail(code: str, location: str, size: str, zone: str) -> Json:
    """Return the error of an operation whose machines could not be allocated; `code` is a key of `FAILURES`."""
    text = FAILURES[code].message.format_map({"size": size, "location": location, "zone": zone})
    return error_detail(code, text, target=FAILURES[code].target)


def price_detail(size: str, maximum: float, current: float) -> Json:
    """Return the error of Spot machines whose maximum price is too low (redhat-developer/mapt#548)."""
    text = (
        f"Unable to perform operation 'Create Virtual Machine Scale Set' since the provided max price '{maximum} USD' "
        f"is lower than the current spot price '{current} USD' for Azure Spot VM size '{size}'. For more information, "
        "see http://aka.ms/AzureSpot/errormessages."
    )
    return error_detail("OperationNotAllowed", text)


def size_quota_error(family: str, location: str, vcpus: int, left: int) -> ArmError:
    """Return AKS's error if the quota of a size's family is too low."""
    code = "ErrCode_InsufficientVCPUQuota"
    values = {"family": family, "location": location, "vcpus": vcpus, "limit": max(0, left)}
    return ArmError(FAILURES[code].status, code, FAILURES[code].message.format_map(values))


def quota_failure(quota: str, location: str, limit: int, used: int, vcpus: int) -> Failure:
    """Return the compute service's error, which names the quota as in usages; none of the machines comes up."""
    code = {"cores": "RegionalQuotaExceeded", "lowPriorityCores": "LowPriorityQuotaExceeded"}.get(
        quota, "QuotaExceeded"
    )
    values = {"family": quota, "location": location, "limit": limit, "used": used, "vcpus": vcpus}
    text = FAILURES[code].message.format_map({**values, "least": used + vcpus})
    return Failure(error_detail("QuotaExceeded", text, inner=FAILURES[code].inner))


def _render(template: str, cluster: Cluster, pool: str, size_name: str) -> str:
    size = find_size(size_name)
    values = {
        "size": size_name,
        "family": size.family if size else "",
        "vcpus": str(size.vcpus if size else 0),
        "least": str(size.vcpus if size else 0),
        "limit": "0",
        "used": "0",
        "zone": "1",
        "location": cluster.location,
        "pool": pool,
        "scope": cluster.id,
    }
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", value)
    return template
