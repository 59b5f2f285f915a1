"""Where pools go: a cluster of each cloud, and the identity that it is reached with.

Lives here: names, patterns and descriptions of the cluster fields. Must not live here: anything that calls a cloud.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gpukube.spec.base import SpecModel, Text

__all__ = [
    "AWS_ACCOUNT",
    "AZURE_GROUP",
    "AZURE_NAME",
    "CLUSTER_KEY",
    "CLUSTER_MODELS",
    "UUID",
    "AksCluster",
    "Cluster",
    "ClusterKey",
    "EksCluster",
    "GkeCluster",
]

AWS_ACCOUNT = r"^[0-9]{12}$"
"""Twelve digits (docs.aws.amazon.com: accounts/latest/reference/manage-acct-identifiers)."""

AZURE_GROUP = r"^[\w().-]{0,89}[\w()-]$"
"""At most 90 letters, digits, _ ( ) - and ., which cannot be last (PSRule.Rules.Azure: Azure.Group.Naming)."""

AZURE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
"""Managed cluster as Az.Aks takes it; above all nothing that would change the path of the call."""

UUID = r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""An Azure subscription id: ARM paths take the id, never the display name."""

CLUSTER_KEY = r"^[A-Za-z0-9]([-A-Za-z0-9_]{0,61}[A-Za-z0-9])?$"
"""Cluster keys stand in paths (clusters.train-aks.name) and in names of results (train-aks/a100mig): no dots."""

ClusterKey = Annotated[str, Field(pattern=CLUSTER_KEY)]


class KubeAccess(SpecModel):
    """How to reach the cluster's Kubernetes API when the cloud's own access is not wanted."""

    kubeconfig: Text | None = Field(
        default=None,
        examples=["./train.kubeconfig"],
        description="Path of a kubeconfig to use instead of the cloud's own cluster access.",
    )
    context: Text | None = Field(
        default=None,
        examples=["train"],
        description="Context in that kubeconfig (or in the default one when kubeconfig is not given).",
    )


class EksCluster(KubeAccess):
    """An Amazon EKS cluster and the identity it is reached with."""

    provider: Literal["eks"] = Field(description="The cloud. It decides which other fields there are.")
    account: str = Field(
        pattern=AWS_ACCOUNT,
        examples=["111122223333"],
        description="Twelve-digit AWS account, in quotes. Checked against the live identity before anything else.",
    )
    region: Text = Field(examples=["us-east-1"], description="AWS region, such as us-east-1.")
    name: Text = Field(examples=["train"], description="Name of the cluster in its cloud.")
    profile: Text | None = Field(
        default=None,
        examples=["ml-admin"],
        description="Named profile of the AWS configuration to use; AWS's own order of credentials when not given.",
    )
    role_arn: Text | None = Field(
        default=None,
        examples=["arn:aws:iam::111122223333:role/gpukube"],
        description="ARN of a role to assume first, with the credentials that would be used without it.",
    )


class AksCluster(KubeAccess):
    """An Azure AKS cluster and the identity it is reached with."""

    provider: Literal["aks"] = Field(description="The cloud. It decides which other fields there are.")
    subscription: str = Field(
        pattern=UUID,
        examples=["11111111-2222-3333-4444-555555555555"],
        description="Id (UUID) of the Azure subscription. Checked against the live identity before anything else.",
    )
    tenant: Text | None = Field(
        default=None, examples=["contoso.onmicrosoft.com"], description="Entra tenant (id or domain) to sign in to."
    )
    resource_group: str = Field(
        pattern=AZURE_GROUP, examples=["ml"], description="Resource group of the managed cluster."
    )
    name: str = Field(pattern=AZURE_NAME, examples=["train"], description="Name of the cluster in its cloud.")


class GkeCluster(KubeAccess):
    """A Google GKE cluster and the identity it is reached with."""

    provider: Literal["gke"] = Field(description="The cloud. It decides which other fields there are.")
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


Cluster = Annotated[EksCluster | AksCluster | GkeCluster, Field(discriminator="provider")]
CLUSTER_MODELS: dict[str, type[EksCluster | AksCluster | GkeCluster]] = {
    "eks": EksCluster,
    "aks": AksCluster,
    "gke": GkeCluster,
}
