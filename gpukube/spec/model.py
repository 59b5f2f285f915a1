"""The spec as strict, frozen models: names, allowed values, and meaning of each field.

In scope: names, types, ranges, and descriptions (for the JSON Schema and `gpukube explain`), and small methods that
need only a model's own fields. Out of scope: checks across fields (rules.py), error messages (messages.py), anything
that only one cloud rejects (the providers' rules.py).

The models represent a spec whose defaults are already merged into every pool (merge.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, JsonValue, Tag, create_model

from gpukube.installed import unusable
from gpukube.spec.base import LABEL_VALUE, SpecModel, Text, Texts
from gpukube.spec.clusters import (
    CLOUDS,
    CLUSTER_KEY,
    CLUSTER_MODELS,
    PROVIDERS,
    Cluster,
    ClusterKey,
    ProviderName,
)
from gpukube.spec.reserved import Reserved
from gpukube.spec.sharing import Mig, Mps, Sharing, TimeSlicing

__all__ = [
    "CLUSTER_KEY",
    "CLUSTER_MODELS",
    "KUBERNETES_VERSION",
    "LABEL_VALUE",
    "NODES",
    "PERCENT",
    "PROVIDERS",
    "SHARE",
    "TYPE_MAP",
    "TYPE_NAME",
    "Autoscaling",
    "Capacity",
    "Cluster",
    "ClusterKey",
    "DevicePlugin",
    "Disk",
    "Driver",
    "GPUNodePools",
    "Gpu",
    "Hugepages",
    "Kubelet",
    "Metadata",
    "Mig",
    "Mps",
    "Network",
    "Nodes",
    "Pool",
    "PoolSettings",
    "ProviderName",
    "Reserved",
    "Sharing",
    "Silence",
    "SpecModel",
    "Taint",
    "TimeSlicing",
    "Upgrade",
]

TYPE_NAME, TYPE_MAP = "type-name", "type-per-provider"


def _instance_type_form(value: object) -> str:
    """Return the form of an instance type, so that only that form's errors are reported."""
    return TYPE_MAP if isinstance(value, dict) else TYPE_NAME


InstanceType = Annotated[
    Annotated[Text, Tag(TYPE_NAME)] | Annotated[dict[ProviderName, Text], Tag(TYPE_MAP)],
    Discriminator(_instance_type_form),
]


KUBERNETES_VERSION = r"^1\.[0-9]{1,3}(\.[0-9]{1,3}(-[A-Za-z0-9.-]{1,30})?)?$"
"""Pattern of a minor, patch, or full GKE version: 1.34, 1.34.2, 1.34.1-gke.1829000."""

PERCENT = r"^(100|[1-9]?[0-9])%$"

SYSCTL: Final = r"^[a-z0-9_-]+([./][a-zA-Z0-9_*-]+)+$"
"""Pattern of the name of a sysctl: net.core.somaxconn (sysctl.d(5))."""

CFS_PERIOD: Final = r"^[1-9][0-9]{0,6}(us|ms|s)$"
"""Pattern of a period as a Go duration of one unit: 100ms."""

LOG_SIZE: Final = r"^[1-9][0-9]{0,5}(Ki|Mi|Gi)$"
"""Pattern of a Kubernetes quantity of bytes: 50Mi."""

NODES, SHARE = "number-of-nodes", "share-of-nodes"


def _amount_form(value: object) -> str:
    """Return the form of a number of nodes."""
    return SHARE if isinstance(value, str) else NODES


Amount = Annotated[
    Annotated[int, Field(ge=0), Tag(NODES)] | Annotated[str, Field(pattern=PERCENT), Tag(SHARE)],
    Discriminator(_amount_form),
]


class Metadata(SpecModel):
    """Owner of the spec's pools."""

    name: str = Field(
        pattern=LABEL_VALUE,
        examples=["ml-platform"],
        description=(
            "The owner: label gpukube.io/owner of every pool in this spec, so it must be a valid label value: "
            "at most 63 letters, digits, '-', '_' or '.'. Pools of other owners are never changed."
        ),
    )


class Gpu(SpecModel):
    """The GPUs of one node, from which the instance type of each cloud is resolved."""

    model: Text = Field(
        examples=["A100-40GB"],
        description=(
            "GPU model of the catalog, with its memory: A100-40GB, H100-80GB. The chip alone (T4) is enough if "
            "clouds offer only one size of it."
        ),
    )
    count: int = Field(
        ge=1, le=64, examples=[1, 8], description="GPUs per node; each cloud of the pool must have such a machine."
    )


class Autoscaling(SpecModel):
    """Bounds for the cluster autoscaler."""

    min: int = Field(ge=0, examples=[0], description="Minimum number of nodes.")
    max: int = Field(ge=1, examples=[5], description="Maximum number of nodes.")
    initial: int | None = Field(
        default=None,
        ge=0,
        examples=[1],
        description="Nodes at creation; defaults to min. Later changes have no effect.",
    )
    scope: Literal["pool", "zone"] = Field(
        default="pool",
        description=(
            "Whether the numbers are totals of the pool or apply to each zone. GKE supports both; other clouds "
            "multiply the numbers of a zone by the zones."
        ),
    )


class Nodes(SpecModel):
    """Number of nodes: a fixed count, or autoscaling."""

    count: int | None = Field(
        default=None,
        ge=0,
        examples=[2],
        description="Fixed number of nodes in the whole pool. On GKE, a multiple of the number of zones.",
    )
    autoscaling: Autoscaling | None = Field(default=None, description="Bounds for the cluster autoscaler.")


class Capacity(SpecModel):
    """Purchase option of the machines."""

    type: Literal["on-demand", "spot", "reserved"] = Field(
        default="on-demand",
        description="spot: cheaper, can be reclaimed at short notice; reserved: from a reservation, see reserved.",
    )
    max_price: float | None = Field(
        default=None,
        gt=0,
        examples=[1.5],
        description="Maximum price for a spot machine, US dollars per hour; defaults to the on-demand price.",
    )
    reserved: Reserved | None = Field(
        default=None, description="Source of reserved machines, by provider; only with type: reserved."
    )


class Disk(SpecModel):
    """The operating system disk of a node."""

    size_gib: int | None = Field(
        default=None,
        alias="sizeGiB",
        ge=1,
        examples=[256],
        description="Size in GiB; defaults to the cloud's default, except that a type on EKS needs a size.",
    )
    type: Text | None = Field(
        default=None,
        examples=["gp3", "Managed", "pd-ssd"],
        description="Disk type, by the cloud's own name: gp3 (EKS), Managed or Ephemeral (AKS), pd-ssd (GKE).",
    )
    iops: int | None = Field(default=None, ge=1, examples=[6000], description="Provisioned I/O operations per second.")
    throughput: int | None = Field(default=None, ge=1, examples=[500], description="Provisioned MiB per second.")
    encrypted: bool | None = Field(
        default=None, description="Encrypt the disk; defaults to the cloud's and the account's default."
    )
    kms_key: Text | None = Field(
        default=None,
        examples=["alias/ml-nodes"],
        description="Your own key for the encryption, by the cloud's own name; defaults to the cloud's key.",
    )


class Network(SpecModel):
    """The network between the nodes."""

    high_speed: bool = Field(
        default=False,
        description=(
            "Attach the machine's network for traffic between GPUs: EFA (EKS), InfiniBand (AKS), GPUDirect networks "
            "(GKE). The device plugins or drivers that it needs in the cluster are yours to install."
        ),
    )


class Kubelet(SpecModel):
    """Settings of the kubelet, with the names of KubeletConfiguration; those that at least two clouds have.

    Source: kubernetes.io: reference/config-api/kubelet-config.v1beta1
    """

    cpu_manager_policy: Literal["none", "static"] | None = Field(
        default=None, description="static: containers with whole CPUs get them exclusively."
    )
    topology_manager_policy: Literal["none", "best-effort", "restricted", "single-numa-node"] | None = Field(
        default=None, description="Whether CPUs and devices of a pod must be on the same NUMA nodes."
    )
    topology_manager_scope: Literal["container", "pod"] | None = Field(
        default=None, description="Whether each container or the whole pod is aligned."
    )
    memory_manager_policy: Literal["None", "Static"] | None = Field(
        default=None, description="Static: memory of guaranteed pods comes from their NUMA nodes."
    )
    pod_pids_limit: int | None = Field(default=None, ge=1, examples=[4096], description="Maximum processes per pod.")
    cpu_cfs_quota: bool | None = Field(
        default=None, alias="cpuCFSQuota", description="Whether CPU limits are enforced by CFS quotas."
    )
    cpu_cfs_quota_period: str | None = Field(
        default=None,
        alias="cpuCFSQuotaPeriod",
        pattern=CFS_PERIOD,
        examples=["100ms"],
        description="Period of the CFS quota, at most 1s.",
    )
    image_gc_high_threshold_percent: int | None = Field(
        default=None,
        alias="imageGCHighThresholdPercent",
        ge=0,
        le=100,
        examples=[85],
        description="Disk usage, in percent, above which unused images are deleted.",
    )
    image_gc_low_threshold_percent: int | None = Field(
        default=None,
        alias="imageGCLowThresholdPercent",
        ge=0,
        le=100,
        examples=[80],
        description="Disk usage, in percent, at which deleting images stops.",
    )
    container_log_max_size: str | None = Field(
        default=None, pattern=LOG_SIZE, examples=["50Mi"], description="Size at which a container's log is rotated."
    )
    container_log_max_files: int | None = Field(
        default=None, ge=2, examples=[5], description="Maximum log files per container."
    )
    allowed_unsafe_sysctls: Texts = Field(
        default=(), examples=[["net.core.somaxconn"]], description="Unsafe sysctls that pods may set."
    )


class Hugepages(SpecModel):
    """Huge pages that each node reserves at boot, by number of pages."""

    mib2: int | None = Field(default=None, alias="2Mi", ge=1, examples=[5128], description="Number of pages of 2 MiB.")
    gib1: int | None = Field(default=None, alias="1Gi", ge=1, examples=[4], description="Number of pages of 1 GiB.")


class Upgrade(SpecModel):
    """How nodes are replaced when the pool's image or version changes: by number, or as a share of the pool."""

    max_surge: Amount | None = Field(
        default=None,
        examples=[1, "33%"],
        description="Nodes added beyond the pool's size, a number or a percentage; 0 if there are no spare GPUs.",
    )
    max_unavailable: Amount | None = Field(
        default=None,
        examples=[1, "33%"],
        description="Nodes removed before their replacements are ready, a number or a percentage.",
    )


class Taint(SpecModel):
    """A Kubernetes taint."""

    key: str = Field(examples=["dedicated"], description="Taint key, [prefix/]name.")
    value: str = Field(default="", examples=["vision"], description="Taint value; some clouds require one.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        description="Effect on pods without a toleration: not scheduled, avoided if possible, evicted too."
    )


class Driver(SpecModel):
    """Who installs the NVIDIA driver."""

    owner: Literal["auto", "cloud", "operator", "none"] = Field(
        default="auto",
        description=(
            "auto chooses by cloud, image, and sharing; cloud: its image or installer provides the driver; operator: "
            "gpukube's release of the GPU Operator installs driver and container toolkit, and the cloud does not; "
            "none: it is installed by other means."
        ),
    )
    version: Text | None = Field(
        default=None,
        examples=["latest"],
        description=(
            "Driver version, if it can be chosen (GKE: default or latest; driver.owner operator: the version of its "
            "driver container); empty for the default."
        ),
    )


class DevicePlugin(SpecModel):
    """Who advertises nvidia.com/* on the nodes, or publishes their GPUs for claims."""

    owner: Literal["auto", "helm", "operator", "cloud", "dra", "none"] = Field(
        default="auto",
        description=(
            "auto chooses by cloud, image, and sharing; helm: gpukube's release of the device-plugin chart; operator: "
            "its release of the GPU Operator; cloud: the cloud's own plugin; dra: gpukube's release of NVIDIA's DRA "
            "driver, and pods claim GPUs; none: you run your own."
        ),
    )
    version: Text | None = Field(
        default=None,
        examples=["0.20.0"],
        description="Version of the chart that serves the pool, one for all its pools; empty for the tested one.",
    )
    values: dict[str, JsonValue] = Field(
        default_factory=dict,
        examples=[{"resources": {"limits": {"memory": "200Mi"}}}],
        description="Values for that chart, in addition to those that gpukube sets.",
    )

    def __deepcopy__(self, memo: dict[int, object] | None = None) -> Self:
        """Return itself, since models are immutable; otherwise pydantic copies this default for every pool."""
        return self


class Silence(SpecModel):
    """A known finding that is accepted."""

    rule: Text = Field(
        examples=["GPK512"],
        description="Number or name of the rule; only for warnings and hints: errors cannot be silenced.",
    )
    reason: Text = Field(
        examples=["the queue never drains"], description="Why it is accepted; printed with the silenced finding."
    )


class _CommonSettings(SpecModel):
    """All fields of a pool except its name; also the fields of `defaults`."""

    clusters: Texts = Field(
        default=(), examples=[["train-aks"]], description="Keys under clusters; the pool is created on each of them."
    )
    gpu: Gpu | None = Field(default=None, description="GPU model and count per node; resolves to a type on each cloud.")
    instance_type: InstanceType | None = Field(
        default=None,
        examples=["Standard_ND96asr_v4", {"eks": "p4d.24xlarge", "gke": "a2-highgpu-8g"}],
        description="The cloud's own type name, or one per provider. Checked against gpu if both are set.",
    )
    instance_types: Texts = Field(
        default=(),
        examples=[["g5.2xlarge", "g5.4xlarge"]],
        description=(
            "Several types with the same GPUs instead of one, on clouds whose pools may mix them (EKS). On-demand "
            "machines are tried in this order; for Spot the cloud chooses."
        ),
    )
    nodes: Nodes | None = Field(default=None, description="Number of nodes: count, or autoscaling.")
    capacity: Capacity = Field(default=Capacity(), description="Purchase option of the machines.")
    zones: Texts = Field(
        default=(),
        examples=[["us-east-1a", "us-east-1b"]],
        description="Zones, by the cloud's own names; if empty, the cloud chooses (GKE: one that offers the machine).",
    )
    network: Network = Field(default=Network(), description="The network between the nodes.")
    placement: Text | None = Field(
        default=None,
        examples=["compact"],
        description=(
            "compact: machines close to each other; none: anywhere; or the name of your own placement group (EKS), "
            "the resource id of a proximity placement group (AKS), or the name of a workload policy (GKE)."
        ),
    )
    disk: Disk | None = Field(default=None, description="Operating system disk; defaults to the cloud's default.")
    local_storage: Literal["ephemeral", "raw"] | None = Field(
        default=None,
        description=(
            "Use of the machine's own disks. ephemeral: images and emptyDir volumes are on them; raw: they are left to "
            "pods. Defaults to the cloud's default."
        ),
    )
    kubelet: Kubelet | None = Field(default=None, description="Settings of the kubelet.")
    sysctls: dict[Annotated[str, Field(pattern=SYSCTL)], str] = Field(
        default_factory=dict,
        examples=[{"net.core.somaxconn": "4096"}],
        description="Kernel parameters of the nodes, by their names in sysctl.",
    )
    hugepages: Hugepages | None = Field(default=None, description="Huge pages that each node reserves at boot.")
    confidential: bool = Field(
        default=False, description="Encrypt the machines' memory with keys that the cloud cannot read."
    )
    image: Text | None = Field(
        default=None,
        description="Node image, by the cloud's own family name (EKS: al2023 or bottlerocket); empty for its default.",
        examples=["bottlerocket"],
    )
    kubernetes_version: str | None = Field(
        default=None,
        pattern=KUBERNETES_VERSION,
        examples=["1.34"],
        description="Kubernetes version of the nodes, in quotes; defaults to the cluster's.",
    )
    upgrade: Upgrade | None = Field(
        default=None, description="How nodes are replaced in an upgrade; defaults to the cloud's default."
    )
    max_pods_per_node: int | None = Field(
        default=None,
        ge=1,
        le=256,
        examples=[60],
        description="Maximum number of pods per node; defaults to the cloud's default.",
    )
    sharing: Sharing = Field(
        default=Sharing(), description="How one GPU serves several containers; empty for whole GPUs."
    )
    taints: Annotated[tuple[Taint, ...], Field(strict=False)] = Field(
        default=(), description="Taints of the nodes, in addition to the GPU taint."
    )
    gpu_taint: bool = Field(
        default=True, description="Add nvidia.com/gpu=present:NoSchedule, which keeps away pods that request no GPU."
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"team": "vision"}],
        description="Kubernetes labels of the nodes, in addition to those that gpukube and the cloud set.",
    )
    tags: dict[str, str] = Field(
        default_factory=dict,
        examples=[{"cost-center": "ml"}],
        description="Tags (EKS, AKS) or resource labels (GKE) for billing.",
    )
    deletion_protection: bool = Field(default=False, description="Prevent gpukube from replacing or deleting the pool.")
    driver: Driver = Field(default=Driver(), description="Who installs the NVIDIA driver.")
    device_plugin: DevicePlugin = Field(default=DevicePlugin(), description="Who advertises nvidia.com/* on the nodes.")
    max_hourly_price: float | None = Field(
        default=None,
        gt=0,
        examples=[120],
        description=(
            "Maximum price of the whole pool, US dollars per hour, at its maximum number of nodes. An alternative that "
            "costs more is not tried, and one whose price is unknown is an error."
        ),
    )
    place: Literal["all", "any"] = Field(
        default="all",
        description=(
            "all: the pool is created on each of its clusters; any: on the first of them, in this order, that gets the "
            "nodes."
        ),
    )
    silence: Annotated[tuple[Silence, ...], Field(strict=False)] = Field(
        default=(), description="Accepted warnings and hints about the pool, each with its reason."
    )


def _with_native(common: type[SpecModel]) -> type[SpecModel]:
    """Return the model with a field per cloud for its native fields, named after the provider."""
    for name in PROVIDERS:
        if name in common.model_fields:
            raise unusable(name, "has the name of a field of a pool")
    native: dict[str, tuple[object, object]] = {
        name: (
            dict[str, JsonValue],
            Field(
                default_factory=dict,
                examples=[dict(cloud.native_example)],
                description=f"Native {cloud.native} fields, by their API names, merged into the request last. "
                "Fields that gpukube sets, or whose changes it cannot classify, are rejected.",
            ),
        )
        for name, cloud in CLOUDS.items()
    }
    return create_model("PoolSettings", __base__=common, __doc__=common.__doc__, **native)  # type: ignore[call-overload, no-any-return]  # fields by name


if TYPE_CHECKING:
    from typing import Self

    PoolSettings: TypeAlias = _CommonSettings
else:
    PoolSettings = _with_native(_CommonSettings)


class Pool(PoolSettings):
    """One GPU node pool, the same on each of its clusters."""

    name: str = Field(
        pattern=LABEL_VALUE,
        examples=["a100mig"],
        description="Name of the pool. AKS allows 12 lower-case letters and digits (10 to be replaceable).",
    )
    names: dict[ProviderName, Text] = Field(
        default_factory=dict,
        examples=[{"aks": "a100"}],
        description="The pool's name on one provider's clusters, if it must differ.",
    )
    alternatives: Annotated[tuple[dict[str, JsonValue], ...], Field(strict=False)] = Field(
        default=(),
        examples=[[{"name": "h100spot", "capacity": {"type": "spot"}}]],
        description=(
            "Pools to try, in this order, if the cloud has no machines for this one: each has its own name, and its "
            "fields are laid over those of this pool. All nodes come from one of them."
        ),
    )

    def name_on(self, provider: ProviderName) -> str:
        """Return the pool's name on this provider's clusters."""
        return self.names.get(provider, self.name)

    def instance_type_on(self, provider: ProviderName) -> str | None:
        """Return the instance type for this provider; None if gpu must resolve it."""
        if isinstance(self.instance_type, dict):
            return self.instance_type.get(provider)
        return self.instance_type

    def native_on(self, provider: ProviderName) -> dict[str, JsonValue]:
        """Return the native fields (escape hatch) for this provider."""
        native: dict[str, JsonValue] = getattr(self, provider)
        return native


class GPUNodePools(SpecModel):
    """A whole spec with defaults merged: owner, clusters, and pools."""

    api_version: Literal["gpukube.io/v1alpha1"] = Field(description="Version of this format.")
    kind: Literal["GPUNodePools"] = Field(description="Always GPUNodePools.")
    metadata: Metadata = Field(description="Owner of the pools.")
    clusters: dict[ClusterKey, Cluster] = Field(
        min_length=1,
        examples=[{"train-gke": {"provider": "gke", "project": "ml-prod", "location": "us-central1", "name": "train"}}],
        description="The clusters, by the keys that pools reference.",
    )
    pools: Annotated[tuple[Pool, ...], Field(strict=False)] = Field(
        min_length=1, description="The pools; each is created on each of its clusters."
    )
