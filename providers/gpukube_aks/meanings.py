"""What Azure's error codes and texts mean: codes and texts -> our errors, with the remedy.

Lives here: the table, and the reading of Azure's two error shapes. Must not live here: the SDK and its exceptions
(`failures`).

Capacity and quota failures come late, inside an operation that was read with status 200: an outer code, a message with
`Code="..." Message="..."` inside, and the clean text in the first detail. So the innermost code that the table knows
decides, and the HTTP status only where no code does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import items, tree
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
    WrongAccount,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOGIN: Final = "run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or a federated token)"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as Azure words it.

    Attributes:
        status: HTTP status; 200 for a failure that an operation reports.
        causes: (code, text), outermost first.
        request_id: Azure's id of the request, for its support; "".
    """

    status: int
    causes: tuple[tuple[str, str], ...]
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """A meaning: found by code (a whole-word pattern) and, where the code says too little, by its text."""

    codes: str
    error: type[GpukubeError]
    says: str
    fix: str
    code: str = ""
    text: str = ""


_OTHER_PLACE = "choose another size, zone or region, or try later"
_TABLE: tuple[_Row, ...] = (
    # A cluster or pool does one operation at a time (docs: aks/upgrade-node-pools; cilium/cilium#25944).
    _Row(
        "OperationNotAllowed|Conflict",
        Busy,
        "another operation runs on the cluster or the pool",
        "wait until it has ended, and run the same command again",
        "busy",
        r"(?i)another \w* ?operation|operation .*in progress|aks-pending-operation",
    ),
    _Row(
        "AnotherOperationInProgress|OperationInProgress",
        Busy,
        "another operation runs on the cluster or the pool",
        "wait until it has ended, and run the same command again",
    ),
    _Row(
        "AKSOperationPreempted|AKSOperationPreemptedByDelete|OperationPreempted",
        Conflict,
        "a later operation took over",
        "run the same command again: it looks first",
        "preempted",
    ),
    _Row(
        "Throttled|TooManyRequests|SubscriptionRequestsThrottled",
        CloudError,
        "Azure throttles these requests",
        "wait some minutes, and run the same command again",
        "throttled",
    ),
    # docs: aks/quotas-skus-regions; the texts of compute: troubleshoot azure-kubernetes, quotaexceeded
    _Row(
        "ErrCode_InsufficientVCPUQuota|InsufficientVCPUQuota",
        QuotaError,
        "the vCPU quota of the subscription is too small",
        "raise the quota of this machine family in this region, or ask for fewer nodes",
    ),
    _Row(
        "QuotaExceeded|OperationNotAllowed|BadRequest",
        QuotaError,
        "the core quota of the subscription is too small",
        "raise the quota of this machine family in this region, or ask for fewer nodes",
        "",
        r"Family Cores quota|Total Regional Cores quota|LowPriorityCores|(?i:quota exceeded|exceed\w* .*quota)",
    ),
    _Row(
        "QuotaExceeded",
        QuotaError,
        "a quota of the subscription is too small",
        "raise it, or ask for fewer nodes",
    ),
    _Row("SkuNotAvailable", CapacityError, "the size is not available here now", _OTHER_PLACE),
    _Row(
        "VMSizeNotSupported|BadRequest|InvalidParameter",
        CapacityError,
        "the subscription may not use this size in this region",
        "choose another size or region, or ask Microsoft to open the size for the subscription",
        "size-not-offered",
        r"is not supported for subscription|is not allowed in your subscription in location",
    ),
    _Row(
        "BadRequest",
        CloudError,
        "AKS does not accept this size",
        "choose another size of the region: az vm list-skus --location REGION --size Standard_N",
        "size-refused",
        r"restricted by AKS",
    ),
    _Row(
        "AvailabilityZoneNotSupported",
        CapacityError,
        "the size is not offered in this zone",
        "choose another zone, or leave zones out",
        "zone-not-offered",
    ),
    _Row(
        "ZonalAllocationFailed|OverconstrainedZonalAllocationRequest",
        CapacityError,
        "no such machine is free in the zone now",
        "leave zones out or choose another, drop the proximity placement group, or try later",
    ),
    _Row(
        "AllocationFailed|OverconstrainedAllocationRequest|AksCapacityHeavyUsage",
        CapacityError,
        "no such machine is free here now",
        _OTHER_PLACE,
    ),
    _Row(
        "PropertyChangeNotAllowed|OperationNotAllowed",
        CloudError,
        "AKS sets this property at creation only",
        "give the pool a new name, or write the live value again",
        "immutable",
        r"(?i)changing property",
    ),
    _Row(
        "OperationNotAllowed",
        CloudError,
        "node auto-provisioning is on, which excludes autoscaled pools",
        "write a fixed nodes.count, or turn the cluster's nodeProvisioningProfile to Manual",
        "node-auto-provisioning",
        r"nodeProvisioningProfile",
    ),
    _Row("OperationNotAllowed", CloudError, "AKS does not allow this", "change what it names", "refused"),
    # Two minor versions below the control plane, never above it (docs: aks/upgrade-node-pools)
    _Row(
        "NodePoolMcVersionIncompatible",
        CloudError,
        "the Kubernetes version does not fit the control plane's",
        "write an aks.orchestratorVersion up to two minor versions below the control plane, or upgrade that first",
        "refused",
    ),
    # docs: azure-resource-manager, common deployment errors
    _Row(
        "SubscriptionNotFound|InvalidSubscriptionId",
        WrongAccount,
        "Azure knows no such subscription, or not for this identity",
        "check clusters.*.subscription (az account list), or log in with the identity that may see it",
        "subscription",
    ),
    _Row(
        "InvalidAuthenticationTokenTenant",
        WrongAccount,
        "the credentials are of another tenant than the subscription",
        "write clusters.*.tenant, or run az login --tenant TENANT",
        "tenant",
    ),
    _Row(
        "InvalidAuthenticationToken|AuthenticationFailed|ExpiredAuthenticationToken",
        AccessError,
        "Azure refused the credentials",
        LOGIN,
    ),
    # The role's name: docs: aks/control-kubeconfig-access
    _Row(
        "AuthorizationFailed|Forbidden",
        NotAllowed,
        "the identity may not get the cluster's kubeconfig",
        "ask for the role Azure Kubernetes Service Cluster User Role, or write clusters.*.kubeconfig",
        "permission",
        r"(?i)listClusterUserCredential",
    ),
    _Row(
        "AuthorizationFailed|LinkedAuthorizationFailed|Forbidden",
        NotAllowed,
        "the identity may not do this",
        "ask for a role that holds the action that Azure names",
    ),
    _Row(
        "RequestDisallowedByPolicy",
        AccessError,
        "a policy of the organisation refuses this",
        "change the spec to what the policy asks for, or ask for an exemption",
        "policy",
    ),
    _Row(
        "MissingSubscriptionRegistration",
        AccessError,
        "the subscription is not registered for AKS",
        "run az provider register --namespace Microsoft.ContainerService",
        "not-registered",
    ),
    _Row(
        "ResourceGroupNotFound",
        CloudError,
        "there is no such resource group",
        "check clusters.*.resourceGroup (az group list)",
        "no-resource-group",
    ),
    _Row(
        "ResourceNotFound|NotFound|ParentResourceNotFound",
        NoCluster,
        "there is no such cluster or pool",
        "check clusters.*.name and clusters.*.resourceGroup (az aks list --output table)",
    ),
    # Exit codes: Azure/AgentBaker, parts/linux/cloud-init/artifacts/cse_helpers.sh
    _Row(
        "VMExtensionProvisioningError|ReconcileVMSSAgentPoolFailed|VMSSAgentPoolReconciler",
        CloudError,
        "the GPU driver could not be installed on a node",
        "run the same command again; a second failure is one for Azure's support",
        "gpu-driver",
        r"exit (?:status|code)[ =:]*(?:8[3-7]|123|129|22[4-9]|230)\b",
    ),
    _Row(
        "VMExtensionProvisioningError|VMExtensionProvisioningTimeout|NodesNotReady",
        CloudError,
        "nodes did not come up",
        "run the same command again; if it fails again, look at the node's events and network",
        "node-bootstrap",
    ),
    _Row(
        "SubnetIsFull|InsufficientSubnetSize",
        CloudError,
        "the subnet has too few addresses",
        "use fewer nodes, fewer pods per node (aks.maxPods), or a larger subnet",
        "subnet-full",
    ),
    _Row(
        "InvalidParameter|UnmarshalError|InvalidRequestContent|SystemPoolHasRestrictedTaint|CanNotTaintAllAgentPools",
        CloudError,
        "AKS refused the request",
        "change what it names",
        "refused",
    ),
)

_BY_STATUS: Mapping[int, _Row] = {
    200: _Row("", CloudError, "the operation ended badly", "run the same command again: it looks first", "failed"),
    401: _Row("", AccessError, "Azure refused the credentials", LOGIN),
    403: _Row("", NotAllowed, "the identity may not do this", "ask for a role that holds the action"),
    404: _Row("", NoCluster, "there is no such cluster or pool", "check the names under clusters"),
    409: _Row("", Busy, "the cluster or the pool is busy", "run the same command again later"),
    412: _Row("", Moved, "the pool changed since it was read", "run the same command again: it looks first"),
    429: _Row("", CloudError, "Azure throttles these requests", "wait some minutes, and try again", "throttled"),
}
_UNKNOWN = _Row("", CloudError, "Azure refused the request", "change what Azure names, or try again later")
_EXISTS = _Row(
    "", Conflict, "a pool of this name is there already", "run the same command again: it looks first", "exists"
)
_CANCELED = _Row("", Conflict, "the operation was canceled", "run the same command again: it looks first", "canceled")

_NOT_FOUND = 404
_EMBEDDED = re.compile(r'Code="(?P<code>\w+)"\s+Message="(?P<text>[^"]*)"')
_FIGURES = re.compile(
    r"Current Limit: (?P<limit>\d+), Current Usage: (?P<used>\d+), Additional Required: (?P<more>\d+), "
    r"\(Minimum\) New Limit Required: (?P<needed>\d+)"
)
_FAMILY = re.compile(r"(?:approved |family )(?P<family>[\w ]+?)(?: Family Cores| Cores| for region)")
_EARLY_FIGURES = re.compile(
    r"requested (?P<more>\d+), remaining (?P<left>\d+) for family (?P<family>\w+) for region (?P<region>\w+)"
)


def read_problem(status: int, body: object, request_id: str = "") -> Problem:
    """Read an error body in either shape: AKS's flat one, or ARM's under "error"."""
    outer = tree(body, "error") or tree(body)
    causes = list(_causes(outer))
    return Problem(status, tuple(causes), request_id)


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Make our error of Azure's: the innermost known code decides, then the status."""
    row, code, text = _meaning(problem)
    tokens = [t for t in (code, f"request {problem.request_id}" if problem.request_id else "") if t]
    message = f"{row.says} ({', '.join(tokens)})" if tokens else row.says
    fix = _quota_fix(text) if row.error is QuotaError else ""
    return row.error(message, where=where, fix=fix or row.fix, why=quote(text), code=row.code)


def canceled(where: str) -> GpukubeError:
    """Make our error of an operation that somebody canceled."""
    return _CANCELED.error(_CANCELED.says, where=where, fix=_CANCELED.fix, code=_CANCELED.code)


def exists(where: str) -> GpukubeError:
    """Make our error of a conditional creation that met a pool."""
    return _EXISTS.error(_EXISTS.says, where=where, fix=_EXISTS.fix, code=_EXISTS.code)


def _causes(error: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Walk inwards: the error itself, what its text embeds, its first detail."""
    code, text = str(error.get("code") or ""), str(error.get("message") or "")
    if code or text:
        yield code, text
    for found in _EMBEDDED.finditer(text.replace('\\"', '"')):
        yield found["code"], found["text"]
    if first := items(error, "details")[:1]:
        yield from _causes(tree(first, 0))


def _meaning(problem: Problem) -> tuple[_Row, str, str]:
    for code, text in reversed(problem.causes):
        for row in _TABLE:
            if re.fullmatch(row.codes, code) and re.search(row.text, text):
                return row, code, text
    code, text = problem.causes[-1] if problem.causes else ("", "")
    if problem.status == _NOT_FOUND and code and not code.endswith("NotFound"):
        return _UNKNOWN, code, text  # not about the cluster: a failure inside Azure comes with this status too
    return _BY_STATUS.get(problem.status, _UNKNOWN), code, text


def _quota_fix(text: str) -> str:
    """Put the figures of a quota message into the remedy."""
    late, early, family = _FIGURES.search(text), _EARLY_FIGURES.search(text), _FAMILY.search(text)
    if late:
        name = family["family"].strip() if family else "these"
        return (
            f"raise the quota of {name} cores from {late['limit']} to {late['needed']} "
            f"({late['used']} used, {late['more']} more needed), or ask for fewer nodes"
        )
    if early:
        return (
            f"raise the quota of {early['family']} in {early['region']}: {early['more']} vCPUs are needed, "
            f"{early['left']} are left (surge nodes count too), or ask for fewer nodes"
        )
    return ""


def quote(text: str) -> str:
    """Azure's own words, on one line and of a length that can be read."""
    line = " ".join(text.split()).rstrip(".")
    return f"Azure says: {line[:400]}" if line else ""
