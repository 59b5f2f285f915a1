"""What Google's error codes, conditions and texts mean -> our errors, with the remedy.

Lives here: the table and the look-up in it. Must not live here: the SDK and its exceptions (`failures`).

Stock-outs and quotas fail late: the operation is DONE and carries an error, whose text begins with the condition in
square brackets. Early ones come as a refusal. So the text decides before the canonical code does.
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
    from collections.abc import Mapping

LOGIN: Final = "run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS"
_AGAIN: Final = "run the same command again: it looks first"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as Google words it.

    Attributes:
        code: Canonical code, "RESOURCE_EXHAUSTED"; "" when unknown.
        text: Its text.
        condition: Code of the pool's condition, "GCE_STOCKOUT"; "".
        is_late: An operation reports it, or the pool does, long after the request was taken.
    """

    code: str
    text: str
    condition: str = ""
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """A meaning: found by the code (a whole-word pattern, "" for any) and by the text with the condition before it."""

    codes: str
    text: str
    error: type[GpukubeError]
    says: str
    fix: str
    code: str = ""


_TABLE: Final[tuple[_Row, ...]] = (
    # The sentences: hashicorp/terraform-provider-google#15205, #15579 (five at once), #10366 (a pool that goes).
    _Row(
        "RESOURCE_EXHAUSTED",
        r"concurrent operations quota|Too many operations",
        Busy,
        "five operations run on the cluster already",
        "wait until one has ended, and run the same command again",
    ),
    _Row(
        "FAILED_PRECONDITION",
        r"(?i)incompatible operation|is currently \w+ a node pool|try again once|currently being \w+",
        Busy,
        "another operation runs on the cluster or the pool",
        "wait until it has ended, and run the same command again",
    ),
    # The sentences: GoogleCloudPlatform/gsutil#1000 (too few left), GoogleCloudPlatform/cluster-toolkit#5043 (none).
    _Row(
        "",
        r"specific reservation \"[^\"]*\" is insufficient|Reservation does not have enough resources",
        CapacityError,
        "the reservation has too few machines left, or they are not like those of the pool",
        "ask for fewer nodes, or compare machine type and local disks: gcloud compute reservations describe",
        "reservation",
    ),
    _Row(
        "",
        r"reservation \"[^\"]*\" not found for node pool",
        CapacityError,
        "there is no such reservation in the zone",
        "write its zone under zones:, and projects/OWNER/reservations/NAME for one of another project",
        "reservation",
    ),
    # google.container.v1 StatusCondition.Code; codes of Compute Engine: docs: compute/docs/troubleshooting
    _Row(
        "",
        r"GCE_STOCKOUT|ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources",
        CapacityError,
        "no such machine is free in the zone now",
        "write zones: with another zone, choose another type or capacity, or try later; gpukube pool delete takes the "
        "failed pool away",
    ),
    _Row(
        "",
        r"GCE_QUOTA_EXCEEDED|QUOTA_EXCEEDED|Insufficient (?:regional|project) quota|Quota '\S+' exceeded",
        QuotaError,
        "a quota of the project is too small",
        "raise the quota of this GPU in this region, and GPUS_ALL_REGIONS with it, or ask for fewer nodes",
    ),
    _Row(
        "",
        r"GKE_SERVICE_ACCOUNT_DELETED",
        CloudError,
        "the service account of Kubernetes Engine in this project is gone",
        "restore it: gcloud services enable container.googleapis.com",
        "service-account",
    ),
    _Row(
        "",
        r"NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS",
        CloudError,
        "the service account of the nodes lacks permissions",
        "give it the role roles/container.defaultNodeServiceAccount",
        "service-account",
    ),
    _Row(
        "",
        r"CLOUD_KMS_KEY_ERROR|CLOUD_KMS_KEY_DESTROYED",
        CloudError,
        "the key of the node disks cannot be used",
        "enable the key, or choose another in gke.config.bootDiskKmsKey",
        "disk-key",
    ),
    _Row(
        "UNAVAILABLE",
        r"(?i)failed to connect|name resolution|DNS resolution|connection refused",
        CloudError,
        "the Google Cloud API cannot be reached",
        "check the network, the proxy and the endpoint",
        "unreachable",
    ),
    _Row(
        "INVALID_ARGUMENT|NOT_FOUND",
        r"(?i)(?:accelerator|machine) type .*does not exist|not (?:available|supported) in zone",
        CapacityError,
        "the GPU or the machine type is not offered in the zone",
        "write zones: with a zone that has it (gcloud compute accelerator-types list)",
        "zone-not-offered",
    ),
    # hashicorp/terraform-provider-google#7928
    _Row(
        "INVALID_ARGUMENT",
        r"Found more than one taint",
        CloudError,
        "GKE adds this taint by itself",
        "take it away from the spec",
        "taint-twice",
    ),
    _Row(
        "PERMISSION_DENIED",
        r"(?i)SERVICE_DISABLED|has not been used in project|API .*is disabled",
        AccessError,
        "the Kubernetes Engine API is not enabled in the project",
        "run gcloud services enable container.googleapis.com --project PROJECT",
        "api-disabled",
    ),
    _Row(
        "PERMISSION_DENIED|INVALID_ARGUMENT",
        r"(?i)iam\.serviceAccounts\.actAs|serviceAccountUser",
        NotAllowed,
        "the identity may not use the service account of the nodes",
        "ask for the role roles/iam.serviceAccountUser on it",
        "service-account",
    ),
)

_BY_CODE: Final[Mapping[str, _Row]] = {
    "INVALID_ARGUMENT": _Row("", "", CloudError, "GKE refused the request", "change what it names", "refused"),
    "OUT_OF_RANGE": _Row("", "", CloudError, "GKE refused the request", "change what it names", "refused"),
    "FAILED_PRECONDITION": _Row("", "", CloudError, "GKE does not allow this now", "change what it names", "refused"),
    "UNAUTHENTICATED": _Row("", "", AccessError, "Google Cloud refused the credentials", LOGIN),
    "PERMISSION_DENIED": _Row(
        "",
        "",
        NotAllowed,
        "the identity may not do this",
        "ask for the role roles/container.clusterAdmin in the project, and check clusters.*.project",
    ),
    "NOT_FOUND": _Row(
        "",
        "",
        NoCluster,
        "there is no such cluster or pool",
        "check project, location and name under clusters (gcloud container clusters list)",
    ),
    "ALREADY_EXISTS": _Row("", "", Conflict, "a pool of this name is there already", _AGAIN, "exists"),
    "ABORTED": _Row("", "", Moved, "the pool changed since it was read", _AGAIN),
    "CANCELLED": _Row("", "", Conflict, "the operation was cancelled", _AGAIN, "aborted"),
    "RESOURCE_EXHAUSTED": _Row(
        "", "", CloudError, "Google Cloud throttles these requests", "wait a minute, and try again", "throttled"
    ),
    "UNAVAILABLE": _Row("", "", CloudError, "Google's answer was lost on the way", _AGAIN, "no-answer"),
    "DEADLINE_EXCEEDED": _Row("", "", CloudError, "Google did not answer in time", _AGAIN, "no-answer"),
}
_LATE: Final = _Row("", "", CloudError, "the operation ended badly", _AGAIN, "failed")
_UNKNOWN: Final = _Row("", "", CloudError, "GKE refused the request", "change what it names, or try again later")

_FIGURES: Final = re.compile(
    r'resource "(?P<metric>\w+)": request requires \'(?P<more>[\d.]+)\' and is short \'(?P<short>[\d.]+)\'\. '
    r"project has a quota of '(?P<limit>[\d.]+)'"
)


def error_of(problem: Problem, where: str) -> GpukubeError:
    """Make our error of Google's."""
    row = _meaning(problem)
    token = problem.condition or problem.code
    message = f"{row.says} ({token})" if token else row.says
    fix = _quota_fix(problem.text) if row.error is QuotaError else ""
    return row.error(message, where=where, fix=fix or row.fix, why=quote(problem.text), code=row.code)


def _meaning(problem: Problem) -> _Row:
    text = f"{problem.condition} {problem.text}"
    for row in _TABLE:
        if re.fullmatch(row.codes or ".*", problem.code) and re.search(row.text, text):
            return row
    return _LATE if problem.is_late else _BY_CODE.get(problem.code, _UNKNOWN)


def _quota_fix(text: str) -> str:
    """Put the figures of a quota message into the remedy."""
    found = _FIGURES.search(text)
    if found is None:
        return ""
    needed = float(found["limit"]) + float(found["short"])
    return (
        f"raise the quota {found['metric']} from {float(found['limit']):g} to {needed:g} "
        f"({float(found['more']):g} more are needed), or ask for fewer nodes"
    )


def quote(text: str) -> str:
    """Google's own words, on one line and of a length that can be read."""
    line = " ".join(text.split()).rstrip(".")
    return f"Google says: {line[:400]}" if line else ""
