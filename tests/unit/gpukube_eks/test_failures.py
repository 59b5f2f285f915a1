"""AWS's refusals and failures -> our errors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    SSLError,
    SSOTokenLoadError,
    UnauthorizedSSOTokenError,
    UnknownEndpointError,
)
from botocore.parsers import ResponseParserError

from gpukube.core.meanings import Problem
from gpukube.errors import (
    AccessError,
    Busy,
    CapacityError,
    CloudError,
    Conflict,
    GpukubeError,
    NoCluster,
    NotAllowed,
    NotOffered,
    QuotaError,
    ReservationFull,
    StockOut,
    Throttled,
)
from gpukube_eks.codes import FAILURE_CODES
from gpukube_eks.facts.meanings import error_of, issue_error, update_error
from gpukube_eks.live.failures import explain, explained


@dataclass(frozen=True)
class Case:
    """An error as AWS words it, and what it means."""

    code: str
    text: str
    error: type[GpukubeError]
    means: str


LAUNCH_DENIED = "You are not authorized to launch instances with this launch template. Encoded authorization failure"
EARLY = (
    Case("ResourceInUseException", "NodeGroup already exists with name x", Conflict, "exists"),
    Case("ResourceInUseException", "cannot be updated as it is currently not in Active State", Busy, "busy"),
    Case("InvalidRequestException", "Request limit exceeded.", Busy, "busy"),
    Case("ResourcePropagationDelayException", "", Busy, "busy"),
    Case("ThrottlingException", "Rate exceeded", Throttled, "throttled"),
    Case("RequestLimitExceeded", "", Throttled, "throttled"),
    Case("ResourceLimitExceededException", "Maximum number of node groups", QuotaError, "quota"),
    Case("UnsupportedAvailabilityZoneException", "", NotOffered, "zone-not-offered"),
    Case("InvalidParameterException", "[g6.xlarge] is not a valid instance type for requested amiType X", CloudError,
         "image-refused"),
    Case("InvalidParameterException", "Label cannot contain reserved prefixes", CloudError, "refused"),
    Case("InvalidRequestException", "Launch template x could not be found.", CloudError, "refused"),
    Case("AccessDeniedException", "not authorized to perform: eks:CreateNodegroup", NotAllowed, "permission"),
    Case("UnauthorizedOperation", "You are not authorized", NotAllowed, "permission"),
    Case("InvalidRequestException", LAUNCH_DENIED, NotAllowed, "permission"),
    Case("InvalidRequestException", "SLR: due to missing permissions for 'iam:GetRole'", NotAllowed, "permission"),
    Case("InvalidRequestException", "You are not authorized to perform ec2:DescribeSubnets.", NotAllowed, "permission"),
    Case("AccessDenied", "not authorized to perform: sts:AssumeRole on resource", NotAllowed, "assume-role"),
    Case("UnrecognizedClientException", "The security token is invalid", AccessError, "access"),
    Case("ExpiredToken", "", AccessError, "access"),
    Case("AuthFailure", "", AccessError, "access"),
    Case("OptInRequired", "", NotAllowed, "not-enabled"),
    Case("ResourceNotFoundException", "No cluster found for name: x.", NoCluster, "no-cluster"),
    Case("ServerException", "", CloudError, "cloud"),
)  # fmt: skip
LATE = (
    Case("AsgInstanceLaunchFailures", "Could not launch. InsufficientInstanceCapacity - We currently do not have",
         StockOut, "capacity"),
    Case("AsgInstanceLaunchFailures", "ReservationCapacityExceeded - x", ReservationFull, "reservation"),
    Case("AsgInstanceLaunchFailures", "InvalidCapacityReservationId.NotFound - x", CapacityError, "reservation"),
    Case("AsgInstanceLaunchFailures", "VcpuLimitExceeded - You have requested more vCPU", QuotaError, "quota"),
    Case("AsgInstanceLaunchFailures", "MaxSpotInstanceCountExceeded - x", QuotaError, "quota"),
    Case("AsgInstanceLaunchFailures", "Unsupported - Your requested instance type", NotOffered, "zone-not-offered"),
    Case("AsgInstanceLaunchFailures", "something else", CloudError, "launch"),
    Case("InstanceLimitExceeded", "", QuotaError, "quota"),
    Case("InsufficientFreeAddresses", "", CloudError, "subnet-full"),
    Case("NodeCreationFailure", "Instances failed to join the kubernetes cluster", CloudError, "node-join"),
    Case("AccessDenied", "", CloudError, "node-access"),
    Case("Ec2LaunchTemplateInvalidConfiguration", "User data was not in the TOML format.", CloudError,
         "launch-template"),
    Case("PodEvictionFailure", "Reached max retries", CloudError, "drain"),
    Case("InternalFailure", "", CloudError, "failed"),
)  # fmt: skip

STOCK = "We currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested (us-east-1a)."
SPREAD = "You have reached the limit of instances in this spread placement group for the zone."
LAUNCHES: tuple[tuple[str, str, type[GpukubeError], str], ...] = (
    ("InsufficientInstanceCapacity", STOCK, StockOut, "capacity"),
    ("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.", StockOut,
     "capacity"),
    ("InsufficientInstanceCapacity", SPREAD, CloudError, "launch"),
    ("UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration.", StockOut, "capacity"),
    ("InsufficientCapacity", "x", StockOut, "capacity"),
    ("InsufficientHostCapacity", "x", StockOut, "capacity"),
    ("ReservationCapacityExceeded", "Not enough available capacity.", ReservationFull, "reservation"),
    ("CapacityReservationNotActive", "x", ReservationFull, "reservation"),
    ("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", QuotaError, "quota"),
    ("VcpuLimitExceeded", "You have requested more vCPU capacity than your current limit.", QuotaError, "quota"),
    ("InstanceLimitExceeded", "x", QuotaError, "quota"),
    ("MaxFleetCountExceeded", "x", QuotaError, "quota"),
    ("RequestFailed", "You have reached your maximum Fleet Requests.", QuotaError, "quota"),
    ("Unsupported", "Your requested instance type is not supported in your requested Availability Zone.", NotOffered,
     "zone-not-offered"),
    ("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet x.", CloudError,
     "subnet-full"),
)  # fmt: skip


@pytest.mark.parametrize(("code", "text", "kind", "means"), LAUNCHES)
def test_launch_when_refused_has_one_class_in_a_response_and_in_an_issue(
    code: str, text: str, kind: type[GpukubeError], means: str
) -> None:
    issue = f"Could not launch On-Demand Instances. {code} - {text} Launching EC2 instance failed."

    for problem in (Problem(code, text), Problem("AsgInstanceLaunchFailures", issue, is_late=True)):
        error = error_of(problem, "train-eks/t4")
        assert (type(error), error.diagnostics[0].code) == (kind, means)


@pytest.mark.parametrize("text", [STOCK, "Could not launch Spot Instances. There is no Spot capacity available."])
def test_stock_out_when_the_text_has_no_code_is_told_by_its_words(text: str) -> None:
    assert type(issue_error((("AsgInstanceLaunchFailures", text),), "train-eks/t4")) is StockOut


@pytest.mark.parametrize("case", EARLY, ids=lambda case: f"{case.code}-{case.means}")
def test_refusal_when_explained_is_our_class_with_a_remedy(case: Case) -> None:
    refusal = ClientError({"Error": {"Code": case.code, "Message": case.text}}, "CreateNodegroup")

    error = explain(refusal, "train-eks/t4")

    (problem,) = error.diagnostics
    assert (type(error), problem.code) == (case.error, case.means)
    assert problem.fix
    assert problem.why == (f"AWS says: {case.text.rstrip('.')}" if case.text else "")
    assert str(problem.where) == "train-eks/t4"


EXPIRED = "Signature expired: 20260101T100000Z is now earlier than 20260101T100500Z (20260101T102000Z - 15 min.)"


@pytest.mark.parametrize(
    ("code", "text", "minutes", "named"),
    [
        *((code, "", 0, True) for code in ("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture")),
        *((code, EXPIRED, 0, True) for code in ("SignatureDoesNotMatch", "InvalidSignatureException")),
        *((code, "", 20, True) for code in ("SignatureDoesNotMatch", "UnrecognizedClientException")),
        *((code, "", -20, True) for code in ("SignatureDoesNotMatch", "AuthFailure")),
        *((code, "", 1, False) for code in ("SignatureDoesNotMatch", "ExpiredToken")),
    ],
)
def test_refusal_when_the_clock_is_wrong_then_named(code: str, text: str, minutes: int, *, named: bool) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(minutes=minutes))
    answer = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPHeaders": {"date": date}}}
    (found,) = explain(ClientError(answer, "GetCallerIdentity"), "train-eks").diagnostics  # type: ignore[arg-type]  # test data
    assert ("clock" in found.seen, "set this machine's clock" in found.fix) == (named, named)
    assert ("20 min" in found.why) == (abs(minutes) > 1)


def test_role_when_it_cannot_be_assumed_is_told_from_other_refusals() -> None:
    """The text does not always name the action; the operation does."""
    refusal = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")

    assert explain(refusal, "train-eks").diagnostics[0].code == "assume-role"


@pytest.mark.parametrize("case", LATE, ids=lambda case: f"{case.code}-{case.means}-{case.text[:9]}")
def test_issue_when_explained_is_our_class_with_a_remedy(case: Case) -> None:
    error = error_of(Problem(case.code, case.text, is_late=True), "train-eks/t4")

    (problem,) = error.diagnostics
    assert (type(error), problem.code) == (case.error, case.means)
    assert problem.fix
    assert problem.code in FAILURE_CODES


def test_issues_when_several_are_told_by_the_one_that_says_most() -> None:
    error = issue_error((("Unknown", ""), ("InstanceLimitExceeded", "")), "train-eks/t4")

    assert isinstance(error, QuotaError)


def test_issues_when_there_are_none_still_are_an_error() -> None:
    assert issue_error((), "train-eks/t4").diagnostics[0].code == "failed"


def test_update_when_cancelled_is_a_conflict() -> None:
    assert isinstance(update_error("Cancelled", (), "train-eks/t4"), Conflict)
    assert isinstance(update_error("Failed", (("PodEvictionFailure", ""),), "train-eks/t4"), CloudError)


OTHERS: tuple[tuple[BotoCoreError | ResponseParserError, type[GpukubeError], str], ...] = (
    (NoCredentialsError(), AccessError, "no-credentials"),
    (PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"), AccessError, "no-credentials"),
    (ProfileNotFound(profile="x"), AccessError, "profile"),
    (UnauthorizedSSOTokenError(), AccessError, "access"),
    (SSOTokenLoadError(error_msg="no token"), AccessError, "access"),
    (EndpointConnectionError(endpoint_url="https://x"), CloudError, "unreachable"),
    (SSLError(endpoint_url="https://x", error=ValueError("y")), CloudError, "unreachable"),
    (ReadTimeoutError(endpoint_url="https://x"), CloudError, "no-answer"),
    (ConnectionClosedError(endpoint_url="https://x"), CloudError, "no-answer"),
    (InvalidRegionError(region_name="x y"), CloudError, "region"),
    (ParamValidationError(report="x"), CloudError, "refused"),
    (UnknownEndpointError(service_name="eks", region_name="x"), CloudError, "bad-answer"),
    (ResponseParserError("invalid XML received"), CloudError, "bad-answer"),
)


@pytest.mark.parametrize(("raised", "error", "code"), OTHERS, ids=lambda value: type(value).__name__)
def test_exception_when_it_leaves_the_block_is_ours(
    raised: BotoCoreError | ResponseParserError, error: type[GpukubeError], code: str
) -> None:
    with pytest.raises(error) as caught, explained("train-eks"):
        raise raised

    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].fix
    assert caught.value.__cause__ is raised
    assert code in FAILURE_CODES
