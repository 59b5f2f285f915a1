"""EKS's additions to the spec: clusters and reserved capacity.

In scope: names, patterns, and descriptions of these fields. Out of scope: further rules (rules.checks).
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from gpukube.spec.base import SpecModel, Text
from gpukube.spec.cloud import PROVIDER_FIELD, CloudSpec, ClusterModel

ACCOUNT: Final = r"^[0-9]{12}$"
"""Pattern of an account id, twelve digits (docs.aws.amazon.com: accounts/latest/reference/manage-acct-identifiers)."""

CAPACITY_BLOCK: Final = r"^cr-[0-9a-f]{8,17}$"
"""Pattern of an EC2 capacity reservation id; Capacity Blocks have one too (EC2 API: CapacityReservation)."""

CAPACITY_RESERVATION: Final = (
    r"^(cr-[0-9a-f]{8,17}|arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/[A-Za-z0-9_./-]{1,300})$"
)
"""Pattern of an id, or of the ARN of a resource group of reservations (EC2 API: CapacityReservationTarget)."""


class EksCluster(ClusterModel):
    """An Amazon EKS cluster and the identity to access it with."""

    provider: Literal["eks"] = Field(description=PROVIDER_FIELD)
    account: str = Field(
        pattern=ACCOUNT,
        examples=["111122223333"],
        description="Twelve-digit AWS account id, in quotes. Checked against the live identity before anything else.",
    )
    region: Text = Field(examples=["us-east-1"], description="AWS region, such as us-east-1.")
    name: Text = Field(examples=["train"], description="Name of the cluster in its cloud.")
    profile: Text | None = Field(
        default=None,
        examples=["ml-admin"],
        description="Named profile of the AWS configuration; by default AWS's default credential chain.",
    )
    role_arn: Text | None = Field(
        default=None,
        examples=["arn:aws:iam::111122223333:role/gpukube"],
        description="ARN of a role to assume first, with the credentials that gpukube would use otherwise.",
    )


class EksReserved(SpecModel):
    """EC2 capacity; exactly one of the fields."""

    capacity_block: str | None = Field(
        default=None,
        pattern=CAPACITY_BLOCK,
        examples=["cr-0123456789abcdef0"],
        description="Id of a Capacity Block for ML: GPUs for a fixed time, in one zone.",
    )
    capacity_reservation: str | None = Field(
        default=None,
        pattern=CAPACITY_RESERVATION,
        examples=["cr-0123456789abcdef0"],
        description="On-Demand Capacity Reservation: its id, or the ARN of a resource group of several.",
    )


SPEC: Final = CloudSpec(
    title="Amazon EKS",
    cluster=EksCluster,
    address=("account", "region", "name"),
    native="EKS node group",
    native_example={"releaseVersion": "1.34.2-20260714"},
    reserved=EksReserved,
    reserved_description="A Capacity Block, or a capacity reservation.",
    also_called=("aws", "amazon"),
    mixes_types=True,
    cluster_words={"location": "region", "accountid": "account", "awsaccount": "account"},
    stand_ins={"account": "000000000000", "region": "us-east-1", "name": "unknown"},
    formats={
        ACCOUNT: "expected twelve digits",
        CAPACITY_BLOCK: "expected the id of a Capacity Block, cr- and hexadecimal digits",
        CAPACITY_RESERVATION: "expected the id of a capacity reservation (cr-...) or the ARN of a resource group",
    },
)
