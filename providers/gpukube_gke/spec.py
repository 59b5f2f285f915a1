"""GKE's part of the spec: its clusters, and its reserved capacity.

In scope: names, patterns, and descriptions of these fields. Out of scope: further rules of GKE (rules.checks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from gpukube.spec.base import DURATION, SpecModel, Text
from gpukube.spec.cloud import PROVIDER_FIELD, CloudSpec, ClusterModel, ReservedProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

RESERVATION: Final = (
    r"^(projects/[a-z0-9:.-]+/reservations/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?(/reservationBlocks/[a-z0-9-]+)?$"
)
"""Name of a Compute Engine reservation, with or without its project (container v1: ReservationAffinity)."""


class GkeCluster(ClusterModel):
    """A Google GKE cluster and the identity that gpukube uses for it."""

    provider: Literal["gke"] = Field(description=PROVIDER_FIELD)
    project: Text = Field(
        examples=["ml-prod"],
        description="Google Cloud project id. Checked against the live identity before anything else.",
    )
    location: Text = Field(
        examples=["us-central1"], description="Region (us-central1) or zone (us-central1-a) of the cluster."
    )
    name: Text = Field(examples=["train"], description="Name of the cluster in its cloud.")
    impersonate: Text | None = Field(
        default=None,
        examples=["gpukube@ml-prod.iam.gserviceaccount.com"],
        description="Service account (e-mail) to impersonate.",
    )


class WhenThere(SpecModel):
    """Machines that start when Google has capacity, for a limited time."""

    max_run_duration: str | None = Field(
        default=None,
        pattern=DURATION,
        examples=["7d"],
        description="How long a node may live: a number and s, m, h or d. Google's limit when not given.",
    )


class GkeReserved(SpecModel):
    """Google capacity; one form, or flexStart and queued together."""

    reservation: str | None = Field(
        default=None,
        pattern=RESERVATION,
        examples=["a100-train"],
        description="A Compute Engine reservation by name, or projects/OWNER/reservations/NAME of a shared one.",
    )
    flex_start: WhenThere | None = Field(
        default=None, description="Flex-start: nodes start when capacity is found. Needs autoscaling."
    )
    queued: WhenThere | None = Field(
        default=None,
        description=(
            "Queued provisioning (DWS): all nodes of a ProvisioningRequest come at once. Together with flexStart, as "
            "Google's guide has it, it is flex-start with queued provisioning."
        ),
    )


def _check_reserved(written: SpecModel) -> Iterator[ReservedProblem]:
    """Report two different durations of one pool."""
    if not isinstance(written, GkeReserved) or not written.flex_start or not written.queued:
        return
    first, second = written.flex_start.max_run_duration, written.queued.max_run_duration
    if first and second and first != second:
        yield ReservedProblem(
            "queued.maxRunDuration",
            f"is {second}, and that of flexStart is {first}",
            "set it once: a pool has only one duration",
        )


SPEC: Final = CloudSpec(
    title="Google GKE",
    cluster=GkeCluster,
    address=("project", "location", "name"),
    native="GKE node pool",
    native_example={"config": {"gvnic": {"enabled": True}}},
    reserved=GkeReserved,
    reserved_description="A reservation, flex-start or queued provisioning.",
    together=("flexStart", "queued"),
    check_reserved=_check_reserved,
    also_called=("google", "gcp"),
    cluster_words={"region": "location", "zone": "location", "projectid": "project"},
    reserved_words=("reservationAffinity",),
    stand_ins={"project": "unknown", "location": "us-central1", "name": "unknown"},
    formats={RESERVATION: "expected a reservation's name, or projects/OWNER/reservations/NAME"},
    judges_shares=True,
)
"""Both mean flex-start with queued provisioning (docs: kubernetes-engine/how-to/provisioningrequest, whose gcloud
command has both flags)."""
