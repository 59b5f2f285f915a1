"""Google's words -> our errors: codes, conditions and texts in a table, exceptions of both transports."""

from __future__ import annotations

import json

import grpc  # type: ignore[import-untyped]  # ships no types
import pytest
import requests
from google.api_core import exceptions as api
from google.auth import exceptions as auth

from gpukube.core.meanings import Problem
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
    RegionalQuota,
    ReservationFull,
    StockOut,
    Throttled,
)
from gpukube_gke.facts.meanings import error_of
from gpukube_gke.live.failures import explain, explained, is_passing, is_throttled, problem_of

STOCKOUT = (
    "Google Compute Engine: Not all instances running in IGM after 35m. Current errors: [GCE_STOCKOUT]: Instance 'x' "
    "creation failed: The zone 'projects/p/zones/us-central1-a' does not have enough resources available."
)
QUOTA = (
    "Insufficient regional quota to satisfy request: resource \"NVIDIA_A100_GPUS\": request requires '8.0' and is "
    "short '4.0'. project has a quota of '16.0' with '4.0' available."
)
USED_UP = (
    "Reservation does not have enough resources for the request: specific reservation "
    '"ours" is insufficient for node pool "p" at zone "us-central1-c": required 1 and short of 1 VM count of machine '
    "type a2-highgpu-1g."
)
NOT_THERE = 'Google Compute Engine: reservation "ours" not found for node pool "p" at zone "us-central1-b".'
FIVE = 'cluster "train" hits the concurrent operations quota 5, please try again later'
BUSY = "Cluster is running incompatible operation operation-1-2."
GOING = "Operation operation-1 is currently deleting a node pool for cluster train. Please wait and try again later."

MEANINGS: list[tuple[Problem, type[GpukubeError], str, str]] = [
    (Problem("RESOURCE_EXHAUSTED", FIVE), Busy, "busy", "wait until one has finished"),
    (Problem("FAILED_PRECONDITION", BUSY), Busy, "busy", "wait until it has finished"),
    (Problem("FAILED_PRECONDITION", GOING), Busy, "busy", "wait until it has finished"),
    (Problem("FAILED_PRECONDITION", "Something else."), CloudError, "refused", "correct what the message names"),
    (Problem("RESOURCE_EXHAUSTED", "Rate limit."), Throttled, "throttled", "wait a minute"),
    (Problem("RESOURCE_EXHAUSTED", STOCKOUT, is_late=True), StockOut, "capacity", "another zone"),
    (Problem("UNKNOWN", "x", "GCE_STOCKOUT", is_late=True), StockOut, "capacity", "another zone"),
    (Problem("", "ZONE_RESOURCE_POOL_EXHAUSTED", is_late=True), StockOut, "capacity", "another zone"),
    (Problem("RESOURCE_EXHAUSTED", USED_UP), ReservationFull, "reservation", "request fewer nodes"),
    (Problem("NOT_FOUND", NOT_THERE), CapacityError, "reservation", "write its zone under zones:"),
    (Problem("PERMISSION_DENIED", QUOTA), QuotaError, "quota", "NVIDIA_A100_GPUS from 16 to 20 (8 more are needed)"),
    (Problem("UNKNOWN", "[GCE_QUOTA_EXCEEDED]: no.", is_late=True), QuotaError, "quota", "GPUS_ALL_REGIONS"),
    (Problem("PERMISSION_DENIED", "no"), NotAllowed, "permission", "roles/container.clusterAdmin"),
    (
        Problem("PERMISSION_DENIED", "Kubernetes Engine API has not been used in project 1 before or it is disabled."),
        AccessError,
        "api-disabled",
        "gcloud services enable",
    ),
    (Problem("UNAUTHENTICATED", "no"), AccessError, "access", "gcloud auth application-default login"),
    (Problem("ALREADY_EXISTS", "there"), Conflict, "exists", "it reads the live state first"),
    (Problem("ABORTED", "etag"), Moved, "changed", "it reads the live state first"),
    (Problem("NOT_FOUND", "no cluster"), NoCluster, "no-cluster", "gcloud container clusters list"),
    (
        Problem("INVALID_ARGUMENT", 'Accelerator type "nvidia-b200" does not exist in zone us-central1-a.'),
        NotOffered,
        "zone-not-offered",
        "write zones",
    ),
    (Problem("INVALID_ARGUMENT", "Found more than one taint with key x"), CloudError, "taint-twice", "remove it"),
    (Problem("INVALID_ARGUMENT", "no"), CloudError, "refused", "correct what the message names"),
    (Problem("", "x", "GKE_SERVICE_ACCOUNT_DELETED", is_late=True), CloudError, "service-account", "restore it"),
    (
        Problem("", "x", "NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS", is_late=True),
        CloudError,
        "service-account",
        "defaultNodeServiceAccount",
    ),
    (Problem("", "x", "CLOUD_KMS_KEY_ERROR", is_late=True), CloudError, "disk-key", "bootDiskKmsKey"),
    (Problem("PERMISSION_DENIED", "needs iam.serviceAccounts.actAs"), NotAllowed, "service-account", "AccountUser"),
    (Problem("INTERNAL", "x", is_late=True), CloudError, "failed", "run the same command again"),
    (Problem("INTERNAL", "x"), CloudError, "cloud", "try again later"),
    (Problem("UNAVAILABLE", "failed to connect to all addresses"), CloudError, "unreachable", "check the network"),
    (Problem("UNAVAILABLE", "DNS resolution failed for container"), CloudError, "unreachable", "check the network"),
    (Problem("UNAVAILABLE", "Unable to connect to proxy"), CloudError, "unreachable", "check the network"),
    (Problem("UNAVAILABLE", "Socket closed"), CloudError, "no-answer", "it reads the live state first"),
]  # fmt: skip

CODES: dict[type[GpukubeError], tuple[str, ...]] = {
    StockOut: (
        "GCE_STOCKOUT",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "RESOURCE_POOL_EXHAUSTED",
        "INSUFFICIENT_CAPACITY",
        "insufficientCapacity",
        "UNSUPPORTED_OPERATION",
        "scale.up.error.out.of.resources",
        "FailedScaleUp: GCE out of resources",
        "The zone does not currently have sufficient capacity for the requested resources",
    ),
    QuotaError: (
        "GCE_QUOTA_EXCEEDED",
        "QUOTA_EXCEEDED",
        "CPUS_PER_VM_FAMILY_QUOTA_EXCEEDED",
        "quotaExceeded",
        "scale.up.error.quota.exceeded",
        "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.  Limit: 8.0 in region us-central1.",
    ),
    RegionalQuota: (
        "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
        "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 32.0 globally.",
        QUOTA.replace("NVIDIA_A100_GPUS", "GPUS_ALL_REGIONS"),
    ),
    ReservationFull: (
        "Specified reservation 'ours' does not have available resources for the request.",
        "RESERVATION_CAPACITY_EXCEEDED",
        "AUTOMATIC_RESERVATIONS_NO_CAPACITY",
    ),
    CapacityError: (
        "Cannot use reservation 'ours': it requires reservation to be in READY state",
        "RESERVATION_NOT_READY",
        "Specified reservations [ours] do not exist.",
        "RESERVATION_NOT_FOUND",
        "No available resources in specified reservations",
        "RESERVATION_INCOMPATIBLE",
        "Reservation ours is incorrect for the requested resources",
        "INVALID_RESERVATION",
    ),
    CloudError: ("IP_SPACE_EXHAUSTED", "CONDITION_NOT_MET", "PERMISSIONS_ERROR", "scale.up.error.other"),
}
"""What a failed launch says -> the class that decides whether an alternative is tried."""


@pytest.mark.parametrize(("kind", "said"), [(kind, said) for kind, all_said in CODES.items() for said in all_said])
def test_launch_when_it_failed_has_one_class_as_condition_and_in_the_text(kind: type[GpukubeError], said: str) -> None:
    text = f"Google Compute Engine: Not all instances running in IGM after 35m. Current errors: [{said}]: Instance 'x'"

    assert type(error_of(Problem("UNKNOWN", text, is_late=True), "train-gke/p")) is kind
    assert type(error_of(Problem("", "x", said, is_late=True), "train-gke/p")) is kind


@pytest.mark.parametrize(("problem", "kind", "code", "fix"), MEANINGS)
def test_problem_when_known_is_our_class_with_its_remedy(
    problem: Problem, kind: type[GpukubeError], code: str, fix: str
) -> None:
    error = error_of(problem, "train-gke/p")

    assert type(error) is kind
    (told,) = error.diagnostics
    assert told.code == code
    assert fix in told.fix
    assert told.why.startswith("Google says: ")


def answer(status: int, code: str, text: str) -> api.GoogleAPICallError:
    """An error of the REST transport: its class knows the HTTP status only."""
    response = requests.Response()
    response.status_code = status
    response._content = json.dumps({"error": {"code": status, "message": text, "status": code}}).encode()
    response.request = requests.Request("POST", "http://127.0.0.1/v1").prepare()
    error = api.from_http_response(response)  # type: ignore[no-untyped-call]  # ships no types
    assert isinstance(error, api.GoogleAPICallError)
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (answer(400, "FAILED_PRECONDITION", BUSY), "FAILED_PRECONDITION"),
        (answer(409, "ALREADY_EXISTS", "there"), "ALREADY_EXISTS"),
        (answer(409, "ABORTED", "etag"), "ABORTED"),
        (answer(429, "RESOURCE_EXHAUSTED", FIVE), "RESOURCE_EXHAUSTED"),
        (api.from_grpc_status(grpc.StatusCode.FAILED_PRECONDITION, BUSY), "FAILED_PRECONDITION"),  # type: ignore[no-untyped-call]  # ships no types
        (api.from_grpc_status(grpc.StatusCode.ABORTED, "etag"), "ABORTED"),  # type: ignore[no-untyped-call]  # ships no types
    ],
)
def test_code_when_read_from_either_transport_is_the_canonical_one(error: api.GoogleAPICallError, code: str) -> None:
    assert problem_of(error).code == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (api.RetryError("late", cause=api.ServiceUnavailable("gone")), "no-answer"),  # type: ignore[no-untyped-call]  # ships no types
        (api.from_grpc_status(grpc.StatusCode.UNAVAILABLE, "gone"), "no-answer"),  # type: ignore[no-untyped-call]  # ships no types
        (auth.DefaultCredentialsError("none"), "no-credentials"),  # type: ignore[no-untyped-call]  # google-auth
        (auth.RefreshError("expired"), "access"),  # type: ignore[no-untyped-call]  # google-auth
        (auth.RefreshError("Unable to acquire impersonated credentials"), "impersonation"),  # type: ignore[no-untyped-call]  # google-auth
        (auth.TransportError("no route"), "unreachable"),  # type: ignore[no-untyped-call]  # google-auth
        (requests.ConnectionError("refused"), "unreachable"),
        (requests.exceptions.InvalidURL("?"), "bad-answer"),
    ],
)
def test_exception_when_it_leaves_the_block_is_ours_and_keeps_its_cause(error: Exception, code: str) -> None:
    with pytest.raises(GpukubeError) as caught, explained("train-gke"):
        raise error

    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].fix
    assert caught.value.__cause__ is error


def test_answer_when_it_is_no_json_is_told_by_its_status() -> None:
    error = answer(502, "", "")
    error.response._content = b"<html>"

    assert explain(error, "x").diagnostics[0].code == "cloud"


@pytest.mark.parametrize(
    ("error", "throttled", "passing"),
    [
        (api.ResourceExhausted("rate"), True, True),  # type: ignore[no-untyped-call]  # ships no types
        (api.TooManyRequests("rate"), True, True),  # type: ignore[no-untyped-call]  # ships no types
        (api.ResourceExhausted(FIVE), False, False),  # type: ignore[no-untyped-call]  # ships no types
        (api.ResourceExhausted(USED_UP), False, False),  # type: ignore[no-untyped-call]  # ships no types
        (api.ResourceExhausted(QUOTA), False, False),  # type: ignore[no-untyped-call]  # ships no types
        (api.ServiceUnavailable("x"), False, True),  # type: ignore[no-untyped-call]  # ships no types
        (requests.ConnectionError("x"), False, True),
        (api.NotFound("x"), False, False),  # type: ignore[no-untyped-call]  # ships no types
    ],
)
def test_retry_when_asked_repeats_only_what_passes(error: Exception, throttled: bool, passing: bool) -> None:  # noqa: FBT001 - a case
    assert (is_throttled(error), is_passing(error)) == (throttled, passing)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Socket closed", True),
        ("DNS resolution failed for x", False),
        ("Failed to resolve 'oauth2.googleapis.com'", False),
    ],
)
def test_lost_answer_when_the_name_does_not_resolve_then_not_asked_again(said: str, *, passes: bool) -> None:
    error = api.from_grpc_status(grpc.StatusCode.UNAVAILABLE, said)  # type: ignore[no-untyped-call]  # ships no types
    assert is_passing(error) == passes
