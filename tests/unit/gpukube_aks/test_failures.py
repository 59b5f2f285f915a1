"""Azure's refusals and failures, in the shapes they have on the wire -> our errors."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.identity import CredentialUnavailableError

from gpukube.errors import (
    AccessError,
    Busy,
    CloudError,
    Conflict,
    ExitCode,
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
from gpukube_aks.codes import FAILURE_CODES
from gpukube_aks.facts.meanings import canceled, error_of, read_problem
from gpukube_aks.live.failures import explain, explained

FAMILY = "standardNDASv4_A100Family Family Cores"
QUOTA_TEXT = (
    f"Operation could not be completed as it results in exceeding approved {FAMILY} quota. "
    "Additional details - Deployment Model: Resource Manager, Location: eastus, Current Limit: 0, Current Usage: 0, "
    "Additional Required: 96, (Minimum) New Limit Required: 96. Submit a request for Quota increase."
)


def flat(code: str, message: str, **rest: object) -> dict[str, object]:
    """The shape of AKS (Azure/bicep-registry-modules#7130)."""
    return {"code": code, "details": None, "message": message, "subcode": "", **rest}


def nested(code: str, message: str) -> dict[str, object]:
    """The shape of ARM's front door."""
    return {"error": {"code": code, "message": message}}


def late(outer: str, inner: str, text: str) -> dict[str, object]:
    """The shape of a failed operation (Azure/karpenter-provider-azure, pkg/fake/aksmachinesapi.go)."""
    details = [{"code": inner, "message": text}]
    return {
        "status": "Failed",
        "error": {"code": outer, "message": f'Code="{inner}" Message="{text}"', "details": details},
    }


@dataclass(frozen=True)
class Case:
    """A body, and what it means."""

    status: int
    body: object
    error: type[GpukubeError]
    code: str


CASES = {
    "busy cluster": Case(409, flat("OperationNotAllowed", "Another operation (Updating) is in progress"), Busy, "busy"),
    "busy pool": Case(
        409,
        flat(
            "OperationNotAllowed",
            "Another agentpool operation (nodepool1 - Creating) is in progress, aka.ms/aks-pending-operation",
        ),
        Busy,
        "busy",
    ),
    "busy network": Case(409, nested("AnotherOperationInProgress", "x"), Busy, "busy"),
    "409 without a word": Case(409, None, Busy, "busy"),
    "preempted": Case(
        200, late("AKSOperationPreempted", "AKSOperationPreempted", "a later one"), Conflict, "preempted"
    ),
    "throttled": Case(429, flat("Throttled", "The request was throttled."), Throttled, "throttled"),
    "429 without a word": Case(429, None, Throttled, "throttled"),
    "early quota": Case(
        400,
        flat(
            "ErrCode_InsufficientVCPUQuota",
            "Insufficient vcpu quota requested 96, remaining 4 for family standardNDASv4_A100Family for region eastus.",
        ),
        QuotaError,
        "quota",
    ),
    "late quota": Case(200, late("QuotaExceeded", "OperationNotAllowed", QUOTA_TEXT), QuotaError, "quota"),
    "Spot quota": Case(
        200,
        late("QuotaExceeded", "OperationNotAllowed", "exceeding approved LowPriorityCores quota"),
        QuotaError,
        "quota",
    ),
    "regional quota": Case(
        200,
        late("QuotaExceeded", "OperationNotAllowed", QUOTA_TEXT.replace(FAMILY, "Total Regional Cores")),
        RegionalQuota,
        "quota",
    ),
    "other quota": Case(400, flat("QuotaExceeded", "too many addresses"), QuotaError, "quota"),
    "stock-out": Case(
        200, late("ReconcileVMSSAgentPoolFailed", "AllocationFailed", "Allocation failed."), StockOut, "capacity"
    ),
    "stock-out behind nodes that are not ready": Case(
        200, late("NodesNotReady", "AllocationFailed", "no"), StockOut, "capacity"
    ),
    "stock-out in a zone": Case(200, late("X", "ZonalAllocationFailed", "Allocation failed."), StockOut, "capacity"),
    "overconstrained": Case(200, late("X", "OverconstrainedAllocationRequest", "no"), StockOut, "capacity"),
    "overconstrained in a zone": Case(
        200, late("X", "OverconstrainedZonalAllocationRequest", "no"), StockOut, "capacity"
    ),
    "heavy usage": Case(400, flat("AksCapacityHeavyUsage", "no"), StockOut, "capacity"),
    "size not available": Case(
        200,
        late("SkuNotAvailable", "SkuNotAvailable", "is currently not available in location 'eastus'."),
        StockOut,
        "capacity",
    ),
    "size not for this subscription": Case(
        400,
        flat(
            "VMSizeNotSupported", "Virtual Machine size: 'X' is not supported for subscription s in location 'eastus'."
        ),
        NotOffered,
        "size-not-offered",
    ),
    "size not allowed": Case(
        400,
        flat("BadRequest", "The VM size of X is not allowed in your subscription in location 'eastus'."),
        NotOffered,
        "size-not-offered",
    ),
    "size restricted by AKS": Case(
        400,
        flat("BadRequest", "The VM SKUs chosen for agentpool(s) a are restricted by AKS."),
        CloudError,
        "size-refused",
    ),
    "zone": Case(400, flat("AvailabilityZoneNotSupported", "no"), NotOffered, "zone-not-offered"),
    "immutable": Case(
        400,
        flat(
            "PropertyChangeNotAllowed",
            "Changing property 'properties.vmSize' is not allowed.",
            target="properties.vmSize",
        ),
        CloudError,
        "immutable",
    ),
    "node auto-provisioning": Case(
        400,
        flat("OperationNotAllowed", ".properties.nodeProvisioningProfile.mode cannot be Auto while any AgentPools ..."),
        CloudError,
        "node-auto-provisioning",
    ),
    "not allowed": Case(409, flat("OperationNotAllowed", "There has to be a system pool."), CloudError, "refused"),
    "bad value": Case(
        400, flat("InvalidParameter", "count was -1", target="agentPoolProfile.count"), CloudError, "refused"
    ),
    "unknown field": Case(400, flat("UnmarshalError", "unknown field"), CloudError, "refused"),
    "no such subscription": Case(404, nested("SubscriptionNotFound", "not found"), WrongAccount, "subscription"),
    "other tenant": Case(401, nested("InvalidAuthenticationTokenTenant", "wrong issuer"), WrongAccount, "tenant"),
    "bad token": Case(401, nested("InvalidAuthenticationToken", "The access token is invalid."), AccessError, "access"),
    "401 without a word": Case(401, None, AccessError, "access"),
    "no permission": Case(403, nested("AuthorizationFailed", "does not have authorization"), NotAllowed, "permission"),
    "no permission for the kubeconfig": Case(
        403,
        nested(
            "AuthorizationFailed",
            "action 'Microsoft.ContainerService/managedClusters/listClusterUserCredential/action'",
        ),
        NotAllowed,
        "permission",
    ),
    "403 without a word": Case(403, None, NotAllowed, "permission"),
    "policy": Case(403, nested("RequestDisallowedByPolicy", "disallowed"), AccessError, "policy"),
    "not registered": Case(
        409, nested("MissingSubscriptionRegistration", "not registered"), AccessError, "not-registered"
    ),
    "no group": Case(404, nested("ResourceGroupNotFound", "could not be found"), CloudError, "no-resource-group"),
    "no cluster": Case(404, nested("ResourceNotFound", "was not found"), NoCluster, "no-cluster"),
    "404 of a failure inside Azure": Case(404, flat("InternalServerError", "try again"), CloudError, "cloud"),
    "404 without a word": Case(404, None, NoCluster, "no-cluster"),
    "changed": Case(412, flat("PreConditionFailed", "eTag"), Moved, "changed"),
    "driver": Case(
        200,
        late("ReconcileVMSSAgentPoolFailed", "VMExtensionProvisioningError", "VMExtension vmssCSE exit status=84"),
        CloudError,
        "gpu-driver",
    ),
    "bootstrap": Case(
        200,
        late("X", "VMExtensionProvisioningError", "VMExtension vmssCSE exit status=50"),
        CloudError,
        "node-bootstrap",
    ),
    "nodes not ready": Case(200, late("X", "NodesNotReady", "3 nodes"), CloudError, "node-bootstrap"),
    "subnet": Case(400, flat("InsufficientSubnetSize", "no"), CloudError, "subnet-full"),
    "unknown failure": Case(200, late("New", "Newer", "something new"), CloudError, "failed"),
    "unknown refusal": Case(418, flat("New", "something new"), CloudError, "cloud"),
    "nothing": Case(500, None, CloudError, "cloud"),
    "no JSON object": Case(500, ["x"], CloudError, "cloud"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_problem_when_classified_becomes_our_class_and_code(case: Case) -> None:
    error = error_of(read_problem(case.status, case.body, "req-1"), "train-aks/a100mig")

    assert (type(error), error.diagnostics[0].code) == (case.error, case.code)
    assert case.code in FAILURE_CODES
    assert "req-1" in error.render()
    assert error.render().startswith("train-aks/a100mig: error[")
    assert not error.diagnostics[0].seen.endswith(".")


TOTAL = QUOTA_TEXT.replace(FAMILY, "Total Regional Cores")
LAUNCHES: tuple[tuple[str, str, type[GpukubeError]], ...] = (
    ("AllocationFailed", "Allocation failed.", StockOut),
    ("AllocationFailed", "The single placement group's cluster is out of capacity.", StockOut),
    ("ZonalAllocationFailed", "Allocation failed.", StockOut),
    ("OverconstrainedAllocationRequest", "no", StockOut),
    ("OverconstrainedZonalAllocationRequest", "no", StockOut),
    ("SkuNotAvailable", "is currently not available in location 'eastus'.", StockOut),
    ("AksCapacityHeavyUsage", "no", StockOut),
    ("VMSizeNotSupported", "Virtual Machine size: 'X' is not supported for subscription s.", NotOffered),
    ("BadRequest", "The VM size of X is not allowed in your subscription in location 'eastus'.", NotOffered),
    ("AvailabilityZoneNotSupported", "no", NotOffered),
    ("OperationNotAllowed", QUOTA_TEXT, QuotaError),
    ("OperationNotAllowed", QUOTA_TEXT.replace("Current Limit: 0", "Current Limit: 96"), QuotaError),
    ("OperationNotAllowed", "results in exceeding approved LowPriorityCores quota.", QuotaError),
    ("ErrCode_InsufficientVCPUQuota", "Insufficient vcpu quota requested 96, remaining 4 for family x.", QuotaError),
    ("OperationNotAllowed", TOTAL, RegionalQuota),
    ("ErrCode_InsufficientVCPUQuota", "Insufficient regional vcpu quota left for location eastus.", RegionalQuota),
    ("SubnetIsFull", "no", CloudError),
    ("Newer", "something new", CloudError),
)
"""What a failed launch says -> the class that decides whether an alternative is tried."""


@pytest.mark.parametrize(("code", "text", "kind"), LAUNCHES)
def test_launch_when_refused_has_one_class_in_every_shape(code: str, text: str, kind: type[GpukubeError]) -> None:
    embedded = {"error": {"code": "QuotaExceeded" if issubclass(kind, QuotaError) else "Wrapper"}}
    embedded["error"]["message"] = f'Reconcile failed: Code="{code}" Message="{text}"'

    for status, body in ((400, flat(code, text)), (200, late("ReconcileFailed", code, text)), (200, embedded)):
        assert type(error_of(read_problem(status, body), "x")) is kind


def test_stock_out_when_wrapped_is_told_in_azures_clean_words() -> None:
    error = error_of(read_problem(200, CASES["stock-out"].body, "7f3c"), "train-aks/a100mig")

    assert error.exit_code is ExitCode.CAPACITY
    assert error.render() == (
        "train-aks/a100mig: error[capacity]: the region has no such machine available now "
        "(AllocationFailed, request 7f3c)\n"
        "    why: Azure says: Allocation failed\n"
        "    fix: choose another size, zone or region, or try later"
    )


def test_embedded_code_when_there_are_no_details_decides() -> None:
    message = 'Reconcile failed: Code="SkuNotAvailable" Message="The requested size is not available"'
    error = error_of(read_problem(200, {"error": {"code": "Wrapper", "message": message}}), "x")

    assert type(error) is StockOut
    assert "SkuNotAvailable" in error.render()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("late quota", ["standardNDASv4_A100Family cores", "from 0 to 96", "96 more needed"]),
        ("early quota", ["standardNDASv4_A100Family in eastus", "96 vCPUs", "4 are left", "surge"]),
        ("Spot quota", ["raise the quota"]),
        ("regional quota", ["Total Regional cores", "from 0 to 96"]),
    ],
)
def test_quota_when_refused_puts_the_figures_into_the_remedy(name: str, words: list[str]) -> None:
    (found,) = error_of(read_problem(200, CASES[name].body), "x").diagnostics

    assert all(word in found.fix for word in words)


def test_long_words_when_quoted_are_cut() -> None:
    (found,) = error_of(read_problem(400, flat("New", "word " * 1000)), "x").diagnostics

    assert len(found.why) < 450


class Answer:
    """As much of a response as an exception of the SDK reads."""

    def __init__(self, status: int, body: str) -> None:
        self.status_code = status
        self.reason = "Because"
        self.headers = {"x-ms-request-id": "req-9"}
        self._body = body

    def text(self, encoding: str | None = None) -> str:  # noqa: ARG002 - the SDK's signature
        return self._body


def http_error(kind: type[HttpResponseError], status: int, body: object) -> HttpResponseError:
    text = body if isinstance(body, str) else json.dumps(body)
    return kind(response=Answer(status, text))  # type: ignore[arg-type]  # all that is read is there


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (http_error(ResourceExistsError, 412, flat("PreConditionFailed", "x")), Conflict, "exists"),
        (http_error(ResourceModifiedError, 412, flat("PreConditionFailed", "x")), Moved, "changed"),
        (http_error(ResourceExistsError, 409, CASES["busy pool"].body), Busy, "busy"),
        (http_error(ClientAuthenticationError, 401, nested("InvalidAuthenticationToken", "x")), AccessError, "access"),
        (http_error(HttpResponseError, 502, "<html>Bad gateway</html>"), CloudError, "cloud"),
        (CredentialUnavailableError("none of six"), AccessError, "no-credentials"),
        (ClientAuthenticationError("DefaultAzureCredential failed to retrieve a token"), AccessError, "no-credentials"),
        (ClientAuthenticationError("... failed to retrieve a token\nAADSTS7000215: bad secret"), AccessError, "access"),
        (ClientAuthenticationError("Authentication failed"), AccessError, "access"),
        (ServiceRequestError("Connection refused"), CloudError, "unreachable"),
        (ServiceResponseError("Connection aborted"), CloudError, "no-answer"),
        (AzureError("something else"), CloudError, "bad-answer"),
    ],
)
def test_exception_when_it_leaves_the_block_is_ours_with_its_cause(
    error: AzureError, kind: type[GpukubeError], code: str
) -> None:
    with pytest.raises(kind) as caught, explained("train-aks"):
        raise error

    assert caught.value.diagnostics[0].code == code
    assert caught.value.__cause__ is error
    assert code in FAILURE_CODES


def test_login_when_refused_by_entra_quotes_that_line_only() -> None:
    text = (
        "DefaultAzureCredential failed to retrieve a token\n\tEnvironmentCredential: AADSTS7000215: bad\n\tAzureCli: no"
    )
    (found,) = explain(ClientAuthenticationError(text), "x").diagnostics

    assert found.why == "Azure says: EnvironmentCredential: AADSTS7000215: bad"


def test_answer_when_it_has_a_request_id_shows_it() -> None:
    error = explain(http_error(HttpResponseError, 400, flat("InvalidParameter", "count was -1")), "x")

    assert "request req-9" in error.render()


def test_canceled_operation_when_told_is_a_conflict() -> None:
    assert isinstance(canceled("x"), Conflict)
    assert canceled("x").diagnostics[0].code in FAILURE_CODES
