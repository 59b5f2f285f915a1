"""Maps Google's error codes, conditions, and texts to gpukube's errors, with the fix.

In scope: the table and its lookup. Out of scope: the SDK and its exceptions (`live.failures`).

Stockouts and quotas fail late: the operation is DONE and contains an error, whose text starts with the condition in
square brackets. Early failures are error responses. So the text takes precedence over the canonical code.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

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
    RegionalQuota,
    ReservationFull,
    StockOut,
    Throttled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

UNREACHABLE: Final = r"(?i:(?:name|DNS) resolution|failed to resolve|unable to connect to proxy|contact DNS)"
"""Texts of gRPC and the login for failures that a quick retry does not fix: an unresolvable name, a closed proxy."""
LOGIN: Final = "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"
_AGAIN: Final = "run the same command again: it reads the live state first"


quote: Final = partial(quote_of, "Google")
_PERMISSION: Final = re.compile(r"(?i)(?:required|permission) [\"']?([a-z]+\.\w+\.\w+)\b")

_TABLE: Final[tuple[Meaning, ...]] = (
    # Texts: hashicorp/terraform-provider-google#15205, #15579 (five at once), #10366 (a pool being deleted).
    Meaning(
        codes="RESOURCE_EXHAUSTED",
        text=r"concurrent operations quota|Too many operations",
        error=Busy,
        seen="five operations are running on the cluster already",
        fix="wait until one has finished, then run the same command again",
    ),
    Meaning(
        codes="FAILED_PRECONDITION",
        text=r"(?i)incompatible operation|is currently \w+ a node pool|try again once|currently being \w+",
        error=Busy,
        seen="another operation is running on the cluster or the pool",
        fix="wait until it has finished, then run the same command again",
    ),
    # Texts: GoogleCloudPlatform/gsutil#1000 (too few left), GoogleCloudPlatform/cluster-toolkit#5043 (none);
    # kubernetes/autoscaler cloudprovider/gce/autoscaling_gce_client.go: the errors of Compute Engine and their codes
    Meaning(
        text=r"specific reservation \"[^\"]*\" is insufficient|Reservation does not have enough resources|"
        r"Specified reservation .* does not have available resources|RESERVATION_CAPACITY_EXCEEDED|"
        r"(?i:automatic_?reservations_?no_?capacity)",
        error=ReservationFull,
        seen="the reservation has too few machines left, or they differ from the pool's",
        fix="request fewer nodes, or compare machine type and local disks: gcloud compute reservations describe",
        code="reservation",
    ),
    Meaning(
        text=r"reservation \"[^\"]*\" not found for node pool|Specified reservations? .* do(?:es)? not exist|"
        r"Could not find the given reservation|RESERVATION_NOT_FOUND",
        error=CapacityError,
        seen="the zone has no such reservation",
        fix="write its zone under zones:, and projects/OWNER/reservations/NAME for one in another project",
        code="reservation",
    ),
    Meaning(
        text=r"requires reservation to be in READY state|RESERVATION_NOT_READY|"
        r"No available resources in specified reservations|RESERVATION_INCOMPATIBLE|"
        r"Reservation .* is incorrect for the requested resources|INVALID_RESERVATION",
        error=CapacityError,
        seen="the pool cannot use the reservation: it is not ready, or for other machines",
        fix="compare its status, machine type and local disks: gcloud compute reservations describe",
        code="reservation",
    ),
    # google.container.v1 StatusCondition.Code; codes of Compute Engine: docs: compute/docs/troubleshooting, and
    # skypilot-org/skypilot sky/backends/cloud_vm_ray_backend.py (UNSUPPORTED_OPERATION: a machine that is preempted
    # while it is created); the autoscaler's: docs: kubernetes-engine/docs/how-to/cluster-autoscaler-visibility
    Meaning(
        text=r"GCE_STOCKOUT|RESOURCE_POOL_EXHAUSTED|INSUFFICIENT_CAPACITY|insufficientCapacity|UNSUPPORTED_OPERATION|"
        r"does not (?:currently )?have (?:enough resources|sufficient capacity)|"
        r"scale\.up\.error\.out\.of\.resources|GCE out of resources",
        error=StockOut,
        seen="the zone has no such machine available now",
        fix="write zones: with another zone, choose another type or capacity, or try later; "
        "gpukube pool delete removes the failed pool",
    ),
    Meaning(
        text=r"[GC]PUS_ALL_REGIONS",
        error=RegionalQuota,
        seen="a quota of the project for all regions is too small",
        fix="raise GPUS_ALL_REGIONS or CPUS_ALL_REGIONS, or request fewer nodes: another type does not help",
    ),
    Meaning(
        text=r"QUOTA(?!_PROJECT)|quotaExceeded|Insufficient (?:regional|project) quota|Quota '\S+' exceeded|"
        r"scale\.up\.error\.quota\.exceeded",
        error=QuotaError,
        seen="a quota of the project is too small",
        fix="raise the quota of this GPU in this region, and GPUS_ALL_REGIONS with it, or request fewer nodes",
    ),
    Meaning(
        text=r"GKE_SERVICE_ACCOUNT_DELETED",
        error=CloudError,
        seen="the service account of Kubernetes Engine in this project was deleted",
        fix="restore it: gcloud services enable container.googleapis.com",
        code="service-account",
    ),
    Meaning(
        text=r"NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS",
        error=CloudError,
        seen="the service account of the nodes lacks permissions",
        fix="grant it the role roles/container.defaultNodeServiceAccount",
        code="service-account",
    ),
    Meaning(
        text=r"CLOUD_KMS_KEY_ERROR|CLOUD_KMS_KEY_DESTROYED",
        error=CloudError,
        seen="the key of the node disks cannot be used",
        fix="enable the key, or choose another in gke.config.bootDiskKmsKey",
        code="disk-key",
    ),
    Meaning(
        codes="UNAVAILABLE",
        text=r"(?i)failed to connect|connection refused|" + UNREACHABLE,
        error=CloudError,
        seen="the Google Cloud API cannot be reached",
        fix="check the network, the proxy and the endpoint",
        code="unreachable",
    ),
    Meaning(
        codes="INVALID_ARGUMENT|NOT_FOUND",
        text=r"(?i)(?:accelerator|machine) type .*does not exist|not (?:available|supported) in zone",
        error=NotOffered,
        seen="the GPU or the machine type is not offered in the zone",
        fix="write zones: with a zone that has it (gcloud compute accelerator-types list)",
        code="zone-not-offered",
    ),
    # hashicorp/terraform-provider-google#7928
    Meaning(
        codes="INVALID_ARGUMENT",
        text=r"Found more than one taint",
        error=CloudError,
        seen="GKE adds this taint itself",
        fix="remove it from the spec",
        code="taint-twice",
    ),
    Meaning(
        codes="PERMISSION_DENIED",
        text=r"(?i)SERVICE_DISABLED|has not been used in project|API .*is disabled",
        error=AccessError,
        seen="the Kubernetes Engine API is not enabled in the project",
        fix="run gcloud services enable container.googleapis.com --project PROJECT",
        code="api-disabled",
    ),
    Meaning(
        codes="PERMISSION_DENIED|INVALID_ARGUMENT",
        text=r"(?i)iam\.serviceAccounts\.actAs|serviceAccountUser",
        error=NotAllowed,
        seen="the identity is not allowed to use the service account of the nodes",
        fix="ask for the role roles/iam.serviceAccountUser on it (iam.serviceAccounts.actAs)",
        code="service-account",
    ),
)

_BY_CODE: Final[Mapping[str, Meaning]] = {
    "INVALID_ARGUMENT": Meaning(
        error=CloudError, seen="GKE refused the request", fix="correct what the message names", code="refused"
    ),
    "OUT_OF_RANGE": Meaning(
        error=CloudError, seen="GKE refused the request", fix="correct what the message names", code="refused"
    ),
    "FAILED_PRECONDITION": Meaning(
        error=CloudError, seen="GKE does not allow this now", fix="correct what the message names", code="refused"
    ),
    "UNAUTHENTICATED": Meaning(error=AccessError, seen="Google Cloud refused the credentials", fix=LOGIN),
    "PERMISSION_DENIED": Meaning(
        error=NotAllowed,
        seen="the identity lacks a permission",
        fix="ask for the role roles/container.clusterAdmin in the project, and check clusters.*.project; "
        f"{PRINT_POLICY} prints a role with fewer permissions",
    ),
    "NOT_FOUND": Meaning(
        error=NoCluster,
        seen="the cluster or pool does not exist",
        fix="check project, location and name under clusters (gcloud container clusters list)",
    ),
    "ALREADY_EXISTS": Meaning(error=Conflict, seen="a pool of this name already exists", fix=_AGAIN, code="exists"),
    "ABORTED": Meaning(error=Moved, seen="the pool changed since it was read", fix=_AGAIN),
    "CANCELLED": Meaning(error=Conflict, seen="the operation was canceled", fix=_AGAIN, code="aborted"),
    "RESOURCE_EXHAUSTED": Meaning(
        error=Throttled,
        seen="Google Cloud throttles these requests",
        fix="wait a minute, then try again",
        code="throttled",
    ),
    "UNAVAILABLE": Meaning(error=CloudError, seen="Google's response was lost", fix=_AGAIN, code="no-answer"),
    "DEADLINE_EXCEEDED": Meaning(error=CloudError, seen="Google did not respond in time", fix=_AGAIN, code="no-answer"),
}
_LATE: Final = Meaning(error=CloudError, seen="the operation failed", fix=_AGAIN, code="failed")
_UNKNOWN: Final = Meaning(
    error=CloudError, seen="GKE refused the request", fix="correct what GKE's message names, or try again later"
)

_FIGURES: Final = re.compile(
    r'resource "(?P<metric>\w+)": request requires \'(?P<more>[\d.]+)\' and is short \'(?P<short>[\d.]+)\'\. '
    r"project has a quota of '(?P<limit>[\d.]+)'"
)


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Convert Google's error to gpukube's."""
    meaning = find_meaning(_TABLE, problem.code, f"{problem.condition} {problem.text}")
    if meaning is None:
        meaning = _LATE if problem.is_late else _BY_CODE.get(problem.code, _UNKNOWN)
    fix = _quota_fix(problem.text) if issubclass(meaning.error, QuotaError) else ""
    if meaning.error is NotAllowed and not meaning.code:
        fix = permission_fix(problem.text, _PERMISSION)
    note, lacks = problem.condition or problem.code, missing_permission(problem.text, _PERMISSION)
    return meaning.error_at(where, note=note, why=quote(problem.text), fix=fix, lacks=lacks)


def _quota_fix(text: str) -> str:
    """Return a fix with the figures of the quota message."""
    found = _FIGURES.search(text)
    if found is None:
        return ""
    needed = float(found["limit"]) + float(found["short"])
    return (
        f"raise the quota {found['metric']} from {float(found['limit']):g} to {needed:g} "
        f"({float(found['more']):g} more are needed), or request fewer nodes"
    )
