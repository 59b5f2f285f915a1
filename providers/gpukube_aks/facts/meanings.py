"""Maps Azure's error codes and texts to gpukube's errors, with the fix.

In scope: the table, and parsing Azure's two error shapes. Out of scope: the SDK and its exceptions
(`live.failures`).

Capacity and quota failures come late, inside an operation whose response has status 200: an outer code, a message with
`Code="..." Message="..."` inside, and the clean text in the first detail. So the innermost code that is in the table
decides, and the HTTP status only if no code does.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import items, tree
from gpukube.core.meanings import Meaning, Problem, find_meaning, missing_permission
from gpukube.core.meanings import quote as quote_of
from gpukube.core.permissions import PRINT_POLICY, permission_fix
from gpukube.errors import (
    AccessError,
    Busy,
    CloudError,
    Conflict,
    GpukubeError,
    Moved,
    NoCluster,
    NotAllowed,
    NotOffered,
    QuotaError,
    RegionalQuota,
    StockOut,
    Throttled,
    WrongAccount,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LOGIN: Final = "run az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or a federated token)"


quote: Final = partial(quote_of, "Azure")
_ACTION: Final = re.compile(r"perform action(?:\(s\))? '([\w./]+)'")

_OTHER_PLACE = "choose another size, zone or region, or try later"
_TABLE: tuple[Meaning, ...] = (
    # A cluster or pool does one operation at a time (docs: aks/upgrade-node-pools; cilium/cilium#25944).
    Meaning(
        codes="OperationNotAllowed|Conflict",
        text=r"(?i)another \w* ?operation|operation .*in progress|aks-pending-operation",
        error=Busy,
        seen="another operation is running on the cluster or the pool",
        fix="wait until it has finished, then run the same command again",
    ),
    Meaning(
        codes="AnotherOperationInProgress|OperationInProgress",
        error=Busy,
        seen="another operation is running on the cluster or the pool",
        fix="wait until it has finished, then run the same command again",
    ),
    Meaning(
        codes="AKSOperationPreempted|AKSOperationPreemptedByDelete|OperationPreempted",
        error=Conflict,
        seen="a later operation replaced this one",
        fix="run the same command again: it reads the live state first",
        code="preempted",
    ),
    Meaning(
        codes="Throttled|TooManyRequests|SubscriptionRequestsThrottled",
        error=Throttled,
        seen="Azure throttles these requests",
        fix="wait a few minutes, then run the same command again",
        code="throttled",
    ),
    # docs: aks/quotas-skus-regions; the texts of compute: troubleshoot azure-kubernetes, quotaexceeded
    Meaning(
        codes="ErrCode_InsufficientVCPUQuota|InsufficientVCPUQuota|QuotaExceeded|OperationNotAllowed|BadRequest",
        text=r"Total Regional Cores quota|(?i:insufficient regional vcpu quota)",
        error=RegionalQuota,
        seen="the quota of the subscription for all cores of the region is too small",
        fix="raise the total regional quota of vCPUs, or request fewer nodes: another size of the region does not help",
    ),
    Meaning(
        codes="ErrCode_InsufficientVCPUQuota|InsufficientVCPUQuota",
        error=QuotaError,
        seen="the vCPU quota of the subscription is too small",
        fix="raise the quota of this machine family in this region, or request fewer nodes",
    ),
    Meaning(
        codes="QuotaExceeded|OperationNotAllowed|BadRequest",
        text=r"Family Cores quota|LowPriorityCores|(?i:quota exceeded|exceed\w* .*quota)",
        error=QuotaError,
        seen="the core quota of the subscription is too small",
        fix="raise the quota of this machine family in this region, or request fewer nodes",
    ),
    Meaning(
        codes="QuotaExceeded",
        error=QuotaError,
        seen="a quota of the subscription is too small",
        fix="raise it, or request fewer nodes",
    ),
    Meaning(codes="SkuNotAvailable", error=StockOut, seen="the size is not available here now", fix=_OTHER_PLACE),
    Meaning(
        codes="VMSizeNotSupported|BadRequest|InvalidParameter",
        text=r"is not supported for subscription|is not allowed in your subscription in location",
        error=NotOffered,
        seen="the subscription cannot use this size in this region",
        fix="choose another size or region, or ask Microsoft to enable the size for the subscription",
        code="size-not-offered",
    ),
    Meaning(
        codes="BadRequest",
        text=r"restricted by AKS",
        error=CloudError,
        seen="AKS does not accept this size",
        fix="choose another size of the region: az vm list-skus --location REGION --size Standard_N",
        code="size-refused",
    ),
    Meaning(
        codes="AvailabilityZoneNotSupported",
        error=NotOffered,
        seen="the size is not offered in this zone",
        fix="choose another zone, or remove zones",
        code="zone-not-offered",
    ),
    Meaning(
        codes="ZonalAllocationFailed|OverconstrainedZonalAllocationRequest",
        error=StockOut,
        seen="the zone has no such machine available now",
        fix="remove zones or choose others, remove the proximity placement group, or try later",
    ),
    Meaning(
        codes="AllocationFailed|OverconstrainedAllocationRequest|AksCapacityHeavyUsage",
        error=StockOut,
        seen="the region has no such machine available now",
        fix=_OTHER_PLACE,
    ),
    Meaning(
        codes="PropertyChangeNotAllowed|OperationNotAllowed",
        text=r"(?i)changing property",
        error=CloudError,
        seen="AKS sets this property at creation only",
        fix="give the pool a new name, or write the live value again",
        code="immutable",
    ),
    Meaning(
        codes="OperationNotAllowed",
        text=r"nodeProvisioningProfile",
        error=CloudError,
        seen="node auto-provisioning is enabled, which excludes autoscaled pools",
        fix="write a fixed nodes.count, or set the cluster's nodeProvisioningProfile to Manual",
        code="node-auto-provisioning",
    ),
    Meaning(
        codes="OperationNotAllowed",
        error=CloudError,
        seen="AKS does not allow this",
        fix="correct what the message names",
        code="refused",
    ),
    # Two minor versions below the control plane, never above it (docs: aks/upgrade-node-pools)
    Meaning(
        codes="NodePoolMcVersionIncompatible",
        error=CloudError,
        seen="the Kubernetes version does not fit the control plane's",
        fix="write an aks.orchestratorVersion up to two minor versions below the control plane, or upgrade that first",
        code="refused",
    ),
    # docs: azure-resource-manager, common deployment errors
    Meaning(
        codes="SubscriptionNotFound|InvalidSubscriptionId",
        error=WrongAccount,
        seen="the subscription does not exist, or this identity cannot see it",
        fix="check clusters.*.subscription (az account list), or log in with an identity that can see it",
        code="subscription",
    ),
    Meaning(
        codes="InvalidAuthenticationTokenTenant",
        error=WrongAccount,
        seen="the credentials belong to a different tenant than the subscription",
        fix="write clusters.*.tenant, or run az login --tenant TENANT",
        code="tenant",
    ),
    Meaning(
        codes="InvalidAuthenticationToken|AuthenticationFailed|ExpiredAuthenticationToken",
        error=AccessError,
        seen="Azure refused the credentials",
        fix=LOGIN,
    ),
    # The role's name: docs: aks/control-kubeconfig-access
    Meaning(
        codes="AuthorizationFailed|Forbidden",
        text=r"(?i)listClusterUserCredential",
        error=NotAllowed,
        seen="the identity is not allowed to get the cluster's kubeconfig",
        fix="ask for the role Azure Kubernetes Service Cluster User Role, or write clusters.*.kubeconfig",
    ),
    Meaning(
        codes="AuthorizationFailed|LinkedAuthorizationFailed|Forbidden",
        error=NotAllowed,
        seen="the identity lacks a permission",
        fix=f"allow the action in Azure's message; {PRINT_POLICY} prints all required permissions",
    ),
    Meaning(
        codes="RequestDisallowedByPolicy",
        error=AccessError,
        seen="a policy of the organization denies this",
        fix="change the spec to comply with the policy, or ask for an exemption",
        code="policy",
    ),
    Meaning(
        codes="MissingSubscriptionRegistration",
        error=AccessError,
        seen="the subscription is not registered for AKS",
        fix="run az provider register --namespace Microsoft.ContainerService",
        code="not-registered",
    ),
    Meaning(
        codes="ResourceGroupNotFound",
        error=CloudError,
        seen="the resource group does not exist",
        fix="check clusters.*.resourceGroup (az group list)",
        code="no-resource-group",
    ),
    Meaning(
        codes="ResourceNotFound|NotFound|ParentResourceNotFound",
        error=NoCluster,
        seen="the cluster or pool does not exist",
        fix="check clusters.*.name and clusters.*.resourceGroup (az aks list --output table)",
    ),
    # Exit codes: Azure/AgentBaker, parts/linux/cloud-init/artifacts/cse_helpers.sh
    Meaning(
        codes="VMExtensionProvisioningError|ReconcileVMSSAgentPoolFailed|VMSSAgentPoolReconciler",
        text=r"exit (?:status|code)[ =:]*(?:8[3-7]|123|129|22[4-9]|230)\b",
        error=CloudError,
        seen="the GPU driver could not be installed on a node",
        fix="run the same command again; if it fails again, contact Azure support",
        code="gpu-driver",
    ),
    Meaning(
        codes="VMExtensionProvisioningError|VMExtensionProvisioningTimeout|NodesNotReady",
        error=CloudError,
        seen="nodes did not start",
        fix="run the same command again; if it fails again, check the node's events and network",
        code="node-bootstrap",
    ),
    Meaning(
        # Azure/AKS#4783, cloudnative-pg/cloudnative-pg#7346; the text names pod and budget
        codes="UpgradeFailed|PodDrainFailure",
        text="(?i)drain",
        error=CloudError,
        seen="pods block the drain of nodes",
        fix="relax the PodDisruptionBudgets of these pods, or delete them; then run the same command again",
        code="drain",
    ),
    Meaning(
        codes="SubnetIsFull|InsufficientSubnetSize",
        error=CloudError,
        seen="the subnet has too few free addresses",
        fix="use fewer nodes, fewer pods per node (aks.maxPods), or a larger subnet",
        code="subnet-full",
    ),
    Meaning(
        codes="InvalidParameter|UnmarshalError|InvalidRequestContent|SystemPoolHasRestrictedTaint|CanNotTaintAllAgentPools",
        error=CloudError,
        seen="AKS refused the request",
        fix="correct what the message names",
        code="refused",
    ),
)

_BY_STATUS: Mapping[int, Meaning] = {
    200: Meaning(
        error=CloudError,
        seen="the operation failed",
        fix="run the same command again: it reads the live state first",
        code="failed",
    ),
    401: Meaning(error=AccessError, seen="Azure refused the credentials", fix=LOGIN),
    403: Meaning(
        error=NotAllowed,
        seen="the identity lacks a permission",
        fix=f"ask for a role; {PRINT_POLICY} prints one with all required permissions",
    ),
    404: Meaning(error=NoCluster, seen="the cluster or pool does not exist", fix="check the names under clusters"),
    409: Meaning(error=Busy, seen="the cluster or the pool is busy", fix="run the same command again later"),
    412: Meaning(
        error=Moved,
        seen="the pool changed since it was read",
        fix="run the same command again: it reads the live state first",
    ),
    429: Meaning(
        error=Throttled,
        seen="Azure throttles these requests",
        fix="wait a few minutes, then try again",
        code="throttled",
    ),
}
_UNKNOWN = Meaning(
    error=CloudError, seen="Azure refused the request", fix="correct what Azure's message names, or try again later"
)
_EXISTS = Meaning(
    error=Conflict,
    seen="a pool of this name already exists",
    fix="run the same command again: it reads the live state first",
    code="exists",
)
_CANCELED = Meaning(
    error=Conflict,
    seen="the operation was canceled",
    fix="run the same command again: it reads the live state first",
    code="canceled",
)

_NOT_FOUND = 404
_EMBEDDED = re.compile(r'Code="(?P<code>\w+)"\s+Message="(?P<text>[^"]*)"')
_FIGURES = re.compile(
    r"Current Limit: (?P<limit>\d+), Current Usage: (?P<used>\d+), Additional Required: (?P<more>\d+), "
    r"\(Minimum\) New Limit Required: (?P<needed>\d+)"
)
_FAMILY = re.compile(r"(?:approved |family )(?P<family>[\w ]+?)(?: Family Cores| Cores| for region)")
_EARLY_FIGURES = re.compile(
    r"requested (?P<more>\d+), remaining (?P<left>\d+) for family (?P<family>[\w ]+) for region (?P<region>\w+)"
)


def read_problem(status: int, body: object, request_id: str = "") -> Problem:
    """Return the innermost known cause of an error body, in AKS's flat shape or ARM's shape under "error"."""
    causes = list(_causes(tree(body, "error") or tree(body))) or [("", "")]
    code, text = next((cause for cause in reversed(causes) if find_meaning(_TABLE, *cause)), causes[-1])
    return Problem(code, text, status=status, request_id=request_id)


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Convert Azure's error to gpukube's: by its code, else by the status."""
    code, text = problem.code, problem.text
    meaning = find_meaning(_TABLE, code, text)
    if meaning is None and problem.status == _NOT_FOUND and code and not code.endswith("NotFound"):
        meaning = _UNKNOWN  # not about the cluster: Azure returns this status for internal failures too
    elif meaning is None:
        meaning = _BY_STATUS.get(problem.status, _UNKNOWN)
    note = ", ".join(part for part in (code, f"request {problem.request_id}" if problem.request_id else "") if part)
    fix = _quota_fix(text) if issubclass(meaning.error, QuotaError) else ""
    if meaning.error is NotAllowed and not meaning.text:
        fix = permission_fix(text, _ACTION)  # the last action of a linked-access error: the first one is allowed
    lacks = missing_permission(text, _ACTION)
    return meaning.error_at(where, note=note, why=quote(text), fix=fix, lacks=lacks)


def canceled(where: str) -> GpukubeError:
    """Return the error for an operation that somebody canceled."""
    return _CANCELED.error_at(where)


def exists(where: str) -> GpukubeError:
    """Return the error for a conditional create whose pool already exists."""
    return _EXISTS.error_at(where)


def _causes(error: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield causes from the outside in: the error itself, errors embedded in its text, its first detail."""
    code, text = str(error.get("code") or ""), str(error.get("message") or "")
    if code or text:
        yield code, text
    for found in _EMBEDDED.finditer(text.replace('\\"', '"')):
        yield found["code"], found["text"]
    if first := items(error, "details")[:1]:
        yield from _causes(tree(first, 0))


def _quota_fix(text: str) -> str:
    """Return a fix with the figures of the quota message."""
    late, early, family = _FIGURES.search(text), _EARLY_FIGURES.search(text), _FAMILY.search(text)
    if late:
        name = family["family"].strip() if family else "these"
        return (
            f"raise the quota of {name} cores from {late['limit']} to {late['needed']} "
            f"({late['used']} used, {late['more']} more needed), or request fewer nodes"
        )
    if early:
        return (
            f"raise the quota of {early['family']} in {early['region']}: {early['more']} vCPUs are needed, "
            f"{early['left']} are left (surge nodes count too), or request fewer nodes"
        )
    return ""
