"""Injected failures of GKE: immediate errors, and later ones about machines that did not come up.

In scope: the table of failures and their wire form. Out of scope: when they occur (`faults`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.pools import accelerator_of, count_per_zone
from gpukube_sandbox.gke.wire.answers import HTTP_STATUS, GoogleError

if TYPE_CHECKING:
    from gpukube_sandbox.faults import Fault
    from gpukube_sandbox.gke.wire.names import Place

_RESOURCE_EXHAUSTED = 8
_UNKNOWN = 2
_CODES = wire.StatusCondition.Code


@dataclass(frozen=True, slots=True)
class Failure:
    """A planned failure or delay of an operation.

    Attributes:
        code: Condition that the pool shows, "GCE_STOCKOUT"; "" if the operation is only delayed.
        message: Message; empty for the code's own.
        after_nodes: Machines that still come up before it fails.
        delay_s: Additional sandbox seconds.
    """

    code: str
    message: str = ""
    after_nodes: int = 0
    delay_s: float = 0.0

    @property
    def is_stockout(self) -> bool:
        """Return whether the service retries this failure for over half an hour before it gives up."""
        return self.code == "GCE_STOCKOUT"

    def error(self) -> tuple[int, str]:
        """Return the canonical code number and the message of the operation's error."""
        text = self.message or f"Injected failure {self.code}."
        return _RESOURCE_EXHAUSTED if self.code.startswith("GCE_") else _UNKNOWN, text

    def condition(self) -> wire.StatusCondition:
        """Return the condition that the pool shows."""
        number, text = self.error()
        known = getattr(_CODES, self.code, _CODES.UNKNOWN)
        return wire.StatusCondition(code=known, canonical_code=number, message=text)


def planned_failure(fault: Fault | None, place: Place, pool: wire.NodePool) -> Failure | None:
    """Return the failure that an injected fault causes in an operation that is about to start.

    Args:
        fault: A canonical `code` ("PERMISSION_DENIED", "INSUFFICIENT_QUOTA" for a quota that is checked immediately) is
            returned immediately; a condition ("GCE_STOCKOUT", "GCE_QUOTA_EXCEEDED") or any other text fails later.
        place: The pool's name.
        pool: The pool after the operation.

    Raises:
        GoogleError: The service reports this failure immediately.
    """
    if fault is None:
        return None
    if fault.code in HTTP_STATUS:
        raise GoogleError(fault.code, fault.message or f"Injected failure {fault.code}.")
    if fault.code == "INSUFFICIENT_QUOTA":
        metric, needed = _gpu_demand(pool)
        raise over_quota(place, metric, 0, 0, needed)
    message = fault.message
    if fault.code == "GCE_STOCKOUT":
        message = message or stockout(place, pool, fault.after_nodes)
    if fault.code == "GCE_QUOTA_EXCEEDED":
        message = message or late_quota(place, _gpu_demand(pool)[0])
    return Failure(fault.code, message, fault.after_nodes, fault.seconds)


def stockout(place: Place, pool: wire.NodePool, running: int, zone: str = "") -> str:
    """Return the message of a stockout (tranquilitybase-io/tb-gcp#589, akka/akka-core#32992)."""
    reason = (
        f"The zone 'projects/{place.project}/zones/{zone or pool.locations[0]}' does not have enough resources "
        "available to fulfill the request.  '(resource type:compute)'."
    )
    return no_instances(place, pool, running, "GCE_STOCKOUT", reason)


def no_instances(place: Place, pool: wire.NodePool, running: int, code: str, reason: str) -> str:
    """Return the message of machines that could not be created."""
    expected = sum(count_per_zone(pool))
    instance = f"gke-{place.cluster}-{place.pool}-0a1b2c3d-x7kw"
    return (
        f"Google Compute Engine: Not all instances running in IGM after 35m4.033429035s. Expected {expected}, running "
        f"{running}, transitioning {max(expected - running, 0)}. Current errors: [{code}]: Instance '{instance}' "
        f"creation failed: {reason}"
    )


def over_quota(place: Place, quota: str, limit: int, used: int, needed: int) -> GoogleError:
    """Return the 403 error of an insufficient quota (vanvalenlab/kiosk-console#367).

    Args:
        place: Name with the project.
        quota: The quota's metric.
        limit: Limit in GPUs.
        used: GPUs of other pools.
        needed: GPUs that the request needs.
    """
    free = max(limit - used, 0)
    kind = "project" if quota.endswith("_ALL_REGIONS") else "regional"
    return GoogleError(
        "PERMISSION_DENIED",
        f"Insufficient {kind} quota to satisfy request: resource \"{quota}\": request requires '{needed:.1f}' and "
        f"is short '{needed - free:.1f}'. project has a quota of '{limit:.1f}' with '{free:.1f}' available. View and "
        f"manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={place.project}.",
    )


def _gpu_demand(pool: wire.NodePool) -> tuple[str, int]:
    """Return the quota metric of a pool's GPUs and how many it needs; CPUS without GPUs."""
    accelerator = accelerator_of(pool)
    if accelerator is None:
        return "CPUS", sum(count_per_zone(pool))
    metric = ACCELERATORS[accelerator.accelerator_type].quota
    prefix = "PREEMPTIBLE_" if pool.config.spot or pool.config.preemptible else ""
    return prefix + metric, accelerator.accelerator_count * sum(count_per_zone(pool))


def late_quota(place: Place, metric: str) -> str:
    """Return the message of an operation whose machines exceed a quota."""
    return (
        f"Google Compute Engine: Not all instances running in IGM after 20.6s. Current errors: [GCE_QUOTA_EXCEEDED]: "
        f"Instance 'gke-{place.cluster}-{place.pool}-0a1b2c3d-x7kw' creation failed: Quota '{metric}' exceeded."
    )
