"""AKS's part of the spec: its clusters, and its capacity reservations.

In scope: names, patterns, and descriptions of these fields. Out of scope: further rules of AKS (rules.checks).
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticKnownError

from gpukube.spec.base import SpecModel, Text
from gpukube.spec.cloud import PROVIDER_FIELD, CloudSpec, ClusterModel

GROUP: Final = r"^[\w().-]{0,89}[\w()-]$"
"""At most 90 letters, digits, _ ( ) - and ., which cannot be last (PSRule.Rules.Azure: Azure.Group.Naming)."""

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
"""Name of a managed cluster as Az.Aks accepts it; above all, nothing that would change the path of the call."""

UUID: Final = r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""Azure subscription id: ARM paths contain the id, never the display name."""

RESERVATION_GROUP: Final = (
    r"^/subscriptions/[0-9A-Fa-f-]{36}/resource[Gg]roups/[^/]+"
    r"/providers/[Mm]icrosoft\.[Cc]ompute/[Cc]apacity[Rr]eservation[Gg]roups/[^/]+$"
)
"""ARM id (docs: aks/use-capacity-reservation-groups), in any case: ARM ignores it; the SDK's page is in lower case."""

_A_GROUP: Final = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml"
    "/providers/Microsoft.Compute/capacityReservationGroups/a100"
)


def _of_group(name: str) -> str:
    """Match with Python's own engine: pydantic's takes 50 ms to compile a counted repetition of all Unicode letters."""
    if not re.fullmatch(GROUP, name):
        raise PydanticKnownError("string_pattern_mismatch", {"pattern": GROUP})
    return name


class AksCluster(ClusterModel):
    """An Azure AKS cluster and the identity that gpukube uses for it."""

    provider: Literal["aks"] = Field(description=PROVIDER_FIELD)
    subscription: str = Field(
        pattern=UUID,
        examples=["11111111-2222-3333-4444-555555555555"],
        description="Id (UUID) of the Azure subscription. Checked against the live identity before anything else.",
    )
    tenant: Text | None = Field(
        default=None, examples=["contoso.onmicrosoft.com"], description="Entra tenant (id or domain) to sign in to."
    )
    resource_group: Annotated[str, AfterValidator(_of_group)] = Field(
        json_schema_extra={"pattern": GROUP}, examples=["ml"], description="Resource group of the managed cluster."
    )
    name: str = Field(pattern=NAME, examples=["train"], description="Name of the cluster in its cloud.")


class AksReserved(SpecModel):
    """Azure capacity."""

    capacity_reservation_group: str | None = Field(
        default=None,
        pattern=RESERVATION_GROUP,
        examples=[_A_GROUP],
        description="ARM id of a capacity reservation group; one of its reservations must fit size and zone.",
    )


SPEC: Final = CloudSpec(
    title="Azure AKS",
    cluster=AksCluster,
    address=("subscription", "resourceGroup", "name"),
    ignores_case=True,
    native="AKS agent pool",
    native_example={"scaleDownMode": "Delete"},
    reserved=AksReserved,
    reserved_description="A capacity reservation group.",
    also_called=("azure",),
    cluster_words={"subscriptionid": "subscription", "resourcegroupname": "resourceGroup"},
    reserved_words=("capacityReservationGroupId", "crgId"),
    stand_ins={
        "subscription": "00000000-0000-0000-0000-000000000000",
        "resourceGroup": "unknown",
        "name": "unknown",
    },
    formats={
        GROUP: "expected at most 90 letters, digits, _ ( ) - and ., without . at the end",
        NAME: "expected letters, digits, _ - and ., a letter or digit first",
        UUID: "expected an id such as 11111111-2222-3333-4444-555555555555",
        RESERVATION_GROUP: "expected the ARM id of a capacity reservation group",
    },
)
"""Azure keeps the case of names but compares them without case (docs:
azure/azure-resource-manager/management/resource-name-rules)."""
