"""The spec as strict, frozen models: what each field is called, may hold and means.

Lives here: names, types, ranges and descriptions (they become the JSON Schema and `gpukube explain`), and
small questions a model can answer from its own fields. Must not live here: checks that look at two fields
(rules.py), texts of errors (messages.py), anything one cloud alone refuses (the providers' rules.py).

The models hold a spec whose defaults have already been merged under every pool (merge.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag
from pydantic.alias_generators import to_camel

__all__ = [
    "AWS_ACCOUNT",
    "AZURE_GROUP",
    "AZURE_NAME",
    "CLUSTER_KEY",
    "CLUSTER_MODELS",
    "LABEL_VALUE",
    "PROVIDERS",
    "TYPE_MAP",
    "TYPE_NAME",
    "UUID",
    "AksCluster",
    "Autoscaling",
    "Capacity",
    "Cluster",
    "ClusterKey",
    "DevicePlugin",
    "Disk",
    "Driver",
    "EksCluster",
    "GPUNodePools",
    "GkeCluster",
    "Gpu",
    "Metadata",
    "Mig",
    "Mps",
    "Nodes",
    "Pool",
    "PoolSettings",
    "ProviderName",
    "Sharing",
    "SpecModel",
    "Taint",
    "TimeSlicing",
]

ProviderName = Literal["eks", "aks", "gke"]
PROVIDERS: tuple[ProviderName, ...] = ("eks", "aks", "gke")

LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
"""A non-empty Kubernetes label value (kubernetes.io: concepts/overview/working-with-objects/labels)."""

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
Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]

TYPE_NAME, TYPE_MAP = "type-name", "type-per-provider"


def _instance_type_form(value: object) -> str:
    """Choose how an instance type is written, so that only that form's errors are reported."""
    return TYPE_MAP if isinstance(value, dict) else TYPE_NAME


InstanceType = Annotated[
    Annotated[Text, Tag(TYPE_NAME)] | Annotated[dict[ProviderName, Text], Tag(TYPE_MAP)],
    Discriminator(_instance_type_form),
]


class SpecModel(BaseModel):
    """What all models share: camelCase keys, no unknown keys, no silent conversion, no change afterwards."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        allow_inf_nan=False,
    )


class Metadata(SpecModel):
    """Who owns the pools of this spec."""

    name: str = Field(
        pattern=LABEL_VALUE,
        examples=["ml-platform"],
        description=(
            "The owner. Marks every pool made from this spec (label gpukube.io/owner), so it must be a label value: "
            "at most 63 letters, digits, '-', '_' or '.'. Pools of other owners are never touched."
        ),
    )


class KubeAccess(SpecModel):
    """How to reach the cluster's Kubernetes API when the cloud's own access is not wanted."""

    kubeconfig: Text | None = Field(
        default=None, description="Path of a kubeconfig to use instead of the cloud's own cluster access."
    )
    context: Text | None = Field(
        default=None, description="Context in that kubeconfig (or in the default one when kubeconfig is not given)."
    )


class EksCluster(KubeAccess):
    """An Amazon EKS cluster and the identity it is reached with."""

    provider: Literal["eks"] = Field(description="The cloud: eks, aks or gke.")
    account: str = Field(
        pattern=AWS_ACCOUNT,
        examples=["111122223333"],
        description="Twelve-digit AWS account, in quotes. Checked against the live identity before anything else.",
    )
    region: Text = Field(examples=["us-east-1"], description="AWS region, such as us-east-1.")
    name: Text = Field(examples=["train"], description="Name of the EKS cluster.")
    profile: Text | None = Field(default=None, description="Named profile of the AWS configuration to use.")
    role_arn: Text | None = Field(default=None, description="ARN of a role to assume first.")


class AksCluster(KubeAccess):
    """An Azure AKS cluster and the identity it is reached with."""

    provider: Literal["aks"] = Field(description="The cloud: eks, aks or gke.")
    subscription: str = Field(
        pattern=UUID,
        examples=["11111111-2222-3333-4444-555555555555"],
        description="Id (UUID) of the Azure subscription. Checked against the live identity before anything else.",
    )
    tenant: Text | None = Field(default=None, description="Entra tenant (id or domain) to sign in to.")
    resource_group: str = Field(
        pattern=AZURE_GROUP, examples=["ml"], description="Resource group of the managed cluster."
    )
    name: str = Field(pattern=AZURE_NAME, examples=["train"], description="Name of the managed cluster.")


class GkeCluster(KubeAccess):
    """A Google GKE cluster and the identity it is reached with."""

    provider: Literal["gke"] = Field(description="The cloud: eks, aks or gke.")
    project: Text = Field(
        examples=["ml-prod"],
        description="Google Cloud project id. Checked against the live identity before anything else.",
    )
    location: Text = Field(
        examples=["us-central1"], description="Region (us-central1) or zone (us-central1-a) of the cluster."
    )
    name: Text = Field(examples=["train"], description="Name of the GKE cluster.")
    impersonate: Text | None = Field(default=None, description="Service account (e-mail) to impersonate.")


Cluster = Annotated[EksCluster | AksCluster | GkeCluster, Field(discriminator="provider")]
CLUSTER_MODELS: dict[str, type[EksCluster | AksCluster | GkeCluster]] = {
    "eks": EksCluster,
    "aks": AksCluster,
    "gke": GkeCluster,
}


class Gpu(SpecModel):
    """The GPUs of one node, from which the instance type of each cloud is resolved."""

    model: Text = Field(
        examples=["A100-40GB"],
        description="GPU model of the catalogue, with its memory: A100-40GB, H100-80GB, T4-16GB.",
    )
    count: int = Field(ge=1, le=64, examples=[8], description="GPUs per node.")


class Autoscaling(SpecModel):
    """Bounds the cluster autoscaler keeps."""

    min: int = Field(ge=0, examples=[0], description="Fewest nodes.")
    max: int = Field(ge=1, examples=[5], description="Most nodes.")
    initial: int | None = Field(default=None, ge=0, description="Nodes at creation; min when not given.")
    scope: Literal["pool", "zone"] = Field(
        default="pool", description="Whether the numbers are totals of the pool or apply to each zone."
    )


class Nodes(SpecModel):
    """How many nodes: a fixed count, or autoscaling."""

    count: int | None = Field(default=None, ge=0, description="Fixed number of nodes, a total of the pool.")
    autoscaling: Autoscaling | None = Field(default=None, description="Bounds for the cluster autoscaler.")


class Capacity(SpecModel):
    """How the machines are bought."""

    type: Literal["on-demand", "spot"] = Field(default="on-demand", description="on-demand or spot.")
    max_price: float | None = Field(
        default=None,
        gt=0,
        description="Highest price for a spot machine, US dollars per hour; up to the on-demand price when not given.",
    )


class Disk(SpecModel):
    """The operating system disk of a node."""

    size_gib: int = Field(alias="sizeGiB", ge=1, examples=[256], description="Size in GiB.")
    type: Text | None = Field(
        default=None,
        description="Disk type by the cloud's own name: gp3 (EKS), Managed or Ephemeral (AKS), pd-ssd (GKE).",
    )


class Mig(SpecModel):
    """Every GPU of the pool cut alike into hardware-isolated instances."""

    profile: Text = Field(examples=["1g.5gb"], description="Instance profile as NVIDIA writes it: 1g.5gb, 3g.40gb.")
    strategy: Literal["single", "mixed"] = Field(
        default="single",
        description="single advertises nvidia.com/gpu, mixed advertises nvidia.com/mig-<profile>. Always sent.",
    )


class TimeSlicing(SpecModel):
    """Several containers take turns on one device; memory is not isolated."""

    # NVIDIA/k8s-device-plugin, api/config/v1: "number of replicas must be >= 2".
    replicas: int = Field(
        ge=2, examples=[4], description="Shares per device (per MIG instance when mig is given too), at least 2."
    )
    fail_requests_greater_than_one: bool = Field(
        default=False, description="Refuse pods that ask for more than one share: two shares are not twice the compute."
    )
    rename_by_default: bool = Field(
        default=False, description="Advertise nvidia.com/gpu.shared instead of nvidia.com/gpu."
    )


class Mps(SpecModel):
    """Several containers run on one device at the same time through CUDA MPS."""

    # NVIDIA/k8s-device-plugin v0.20.0: at least 2; at most 48 clients from compute capability 7.5 on.
    replicas: int = Field(
        ge=2, le=48, examples=[4], description="Shares per device, 2 to 48 (at most 16 on V100 and older)."
    )
    rename_by_default: bool = Field(
        default=False, description="Advertise nvidia.com/gpu.shared instead of nvidia.com/gpu."
    )


class Sharing(SpecModel):
    """How one GPU serves several containers. timeSlicing may sit on top of mig; mps stands alone."""

    mig: Mig | None = Field(default=None, description="Cut the GPUs into hardware-isolated instances.")
    time_slicing: TimeSlicing | None = Field(default=None, description="Let containers take turns.")
    mps: Mps | None = Field(default=None, description="Let containers run at the same time through CUDA MPS.")


class Taint(SpecModel):
    """A Kubernetes taint."""

    key: str = Field(examples=["dedicated"], description="Taint key, [prefix/]name.")
    value: str = Field(default="", description="Taint value; some clouds need one.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="NoSchedule, PreferNoSchedule or NoExecute."
    )


class Driver(SpecModel):
    """Who installs the NVIDIA driver."""

    owner: Literal["auto", "cloud", "operator", "none"] = Field(
        default="auto", description="auto chooses by cloud, image and sharing; none: somebody else installs it."
    )


class DevicePlugin(SpecModel):
    """Who advertises nvidia.com/* on the nodes."""

    owner: Literal["auto", "helm", "operator", "cloud", "dra", "none"] = Field(
        default="auto", description="auto chooses by cloud, image and sharing; none: somebody else runs the plugin."
    )


class PoolSettings(SpecModel):
    """Everything a pool can say except its name; also what may stand under `defaults`."""

    clusters: Texts = Field(default=(), description="Keys under clusters; the pool is made on each of them.")
    gpu: Gpu | None = Field(default=None, description="GPU model and count per node; resolves the type on each cloud.")
    instance_type: InstanceType | None = Field(
        default=None,
        examples=["Standard_ND96asr_v4"],
        description="The cloud's own type name, or one per provider. Checked against gpu when both are given.",
    )
    nodes: Nodes | None = Field(default=None, description="How many nodes: count, or autoscaling.")
    capacity: Capacity = Field(default=Capacity(), description="How the machines are bought.")
    zones: Texts = Field(default=(), description="Zones by the cloud's own names; the cloud's choice when empty.")
    disk: Disk | None = Field(default=None, description="Operating system disk; the cloud's default when not given.")
    image: Text | None = Field(
        default=None,
        description="Node image by the cloud's own family name (EKS: al2023 or bottlerocket); its default when empty.",
        examples=["bottlerocket"],
    )
    sharing: Sharing = Field(
        default=Sharing(), description="How one GPU serves several containers; whole GPUs when empty."
    )
    taints: Annotated[tuple[Taint, ...], Field(strict=False)] = Field(
        default=(), description="Taints of the nodes, besides the GPU taint."
    )
    gpu_taint: bool = Field(
        default=True, description="Add nvidia.com/gpu=present:NoSchedule, which keeps pods without GPUs away."
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Kubernetes labels of the nodes.")
    tags: dict[str, str] = Field(
        default_factory=dict, description="Tags (EKS, AKS) or resource labels (GKE) for billing."
    )
    deletion_protection: bool = Field(default=False, description="Refuse to replace or delete the pool.")
    driver: Driver = Field(default=Driver(), description="Who installs the NVIDIA driver.")
    device_plugin: DevicePlugin = Field(default=DevicePlugin(), description="Who advertises nvidia.com/* on the nodes.")
    eks: dict[str, JsonValue] = Field(
        default_factory=dict, description="Native EKS node group fields, merged into the request last."
    )
    aks: dict[str, JsonValue] = Field(
        default_factory=dict, description="Native AKS agent pool fields, merged into the request last."
    )
    gke: dict[str, JsonValue] = Field(
        default_factory=dict, description="Native GKE node pool fields, merged into the request last."
    )


class Pool(PoolSettings):
    """One GPU node pool, made alike on each of its clusters."""

    name: str = Field(
        pattern=LABEL_VALUE,
        examples=["a100mig"],
        description="Name of the pool. AKS takes 12 lower-case letters and digits (10 leave room to replace it).",
    )
    names: dict[ProviderName, Text] = Field(
        default_factory=dict, description="The pool's name on one provider's clusters, where it must differ."
    )

    def name_on(self, provider: ProviderName) -> str:
        """Return the name the pool has on this provider's clusters."""
        return self.names.get(provider, self.name)

    def instance_type_on(self, provider: ProviderName) -> str | None:
        """Return the instance type written for this provider; None when gpu must resolve it."""
        if isinstance(self.instance_type, dict):
            return self.instance_type.get(provider)
        return self.instance_type

    def native_on(self, provider: ProviderName) -> dict[str, JsonValue]:
        """Return the native fields (escape hatch) written for this provider."""
        natives: dict[ProviderName, dict[str, JsonValue]] = {"eks": self.eks, "aks": self.aks, "gke": self.gke}
        return natives[provider]


class GPUNodePools(SpecModel):
    """A whole spec, defaults merged: who owns the pools, where they go, what they are."""

    api_version: Literal["gpukube.io/v1alpha1"] = Field(description="Version of this format.")
    kind: Literal["GPUNodePools"] = Field(description="Always GPUNodePools.")
    metadata: Metadata = Field(description="Who owns the pools.")
    clusters: dict[ClusterKey, Cluster] = Field(min_length=1, description="Where: clusters by the keys that pools use.")
    pools: Annotated[tuple[Pool, ...], Field(strict=False)] = Field(min_length=1, description="What: the pools.")
