"""The GKE provider: the pure half, assembled from its parts.

In scope: `GkeProvider` and GKE's abilities. Out of scope: any import of Google's SDK; `connect` imports the live half
(`live.client`) on demand.

Every command that lists clouds loads every installed provider, so this module imports little: methods import the code
that checks and translates pools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.provider_parts import Extras
from gpukube.core.values import NodeStack
from gpukube.provider import importing_sdk, part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.provider_parts import PoolRequests
    from gpukube.core.values import (
        Ability,
        Change,
        ClusterRef,
        Desired,
        Observed,
        Ownership,
        Promise,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.errors import Finding
    from gpukube.gpu.cloud_machines import CloudMachines
    from gpukube.provider import Cloud, Provider
    from gpukube.spec.cloud import CloudSpec

_SOURCE: Final = "docs: kubernetes-engine/how-to/gpus"
_OWN_SOURCE: Final = "NVIDIA/cloud-native-docs: gpu-operator/google-gke"
_IMAGES: Final = {"": "COS", "COS_CONTAINERD": "COS", "UBUNTU_CONTAINERD": "Ubuntu"}
_NO_OPERATOR: Final = "GKE's own plugin runs there"
_INSTALLED: Final = " with Google's driver installer"
_ACCELERATOR: Final = "nodePool.config.accelerators.0"
_FIELDS: Final = (
    f"{_ACCELERATOR}.gpuDriverInstallationConfig.gpuDriverVersion",
    f"{_ACCELERATOR}.gpuPartitionSize",
    f"{_ACCELERATOR}.gpuSharingConfig.gpuSharingStrategy",
)
"""Fields that decide who installs what (docs: kubernetes-engine/how-to/gpus, NVIDIA/cloud-native-docs google-gke)."""


def _no_dra(target: Target) -> tuple[str, str]:
    """Return why the DRA driver cannot serve the nodes, and what to write instead."""
    if target.sharing.mig is not None:
        return "GKE does MIG for its own plugin only", "remove sharing.mig"
    if target.driver_owner == "operator":
        return "the driver of the GPU Operator is not where GKE's nodes have it", "write driver.owner: auto"
    return "", ""


class GkeExtras(Extras):
    """Optional parts of the GKE provider."""

    pools_at_once = 4  # five operations may run at once; one is left to others (terraform-provider-google#15205)
    starts_empty = True
    capacity_wait_s = 2700  # a resize tries for 35 min to start machines (cilium/cilium#48184), and then ends
    outcome_ttl_s = 600.0  # ours: a managed instance group itself retries every few minutes (NVIDIA/aicr#2764)
    tolerates_resources = True  # docs: kubernetes-engine/how-to/gpus, Automatic tolerations
    in_cluster = part(".facts.in_cluster:IN_CLUSTER")
    diagnosis = part(".diagnose:DIAGNOSIS")
    catalog = part(".catalog:CATALOG")
    capacity = part(".catalog:CAPACITY")
    order = part(".facts.compute_class:ORDER")
    quotas = part(".rules.quotas:QUOTAS")
    durations = part(".facts.durations:DURATIONS")
    exporters = part(".export.targets:EXPORTERS")
    upgrades = part(".pool.renewing:UPGRADES")
    policies = part(".rules.permissions:write_policies")
    managers = part(".pool.managers:managers_of")
    members = part(".pool.members:POOL_MEMBERS")
    chosen_fields = part(".pool.importing:chosen_fields")
    check_coexistence = part(".rules.coexistence:check_coexistence")


class GkeProvider:
    """Google Kubernetes Engine."""

    name = "gke"
    spec: CloudSpec = part(".spec:SPEC")
    machines: CloudMachines = part(".facts.machines:MACHINES")
    nodes: NodeFacts = part(".facts.nodes:NODES")
    codes: Mapping[str, tuple[str, str]] = part(".codes:CODES")
    requests: PoolRequests = part(".requests:REQUESTS")
    extras = GkeExtras()

    def abilities(self) -> Mapping[str, Ability]:
        """Return how GKE supports each feature."""
        from gpukube_gke.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Report what GKE would reject, before any call."""
        from gpukube_gke.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes come with: driver and plugin, unless the spec makes somebody else run the plugin."""
        from gpukube_gke.facts.installer import DRA_VALUES, OWN_DRIVER_VALUES, QUOTA_VALUES
        from gpukube_gke.pool.fields import DRA_LABEL, OPT_OUT_LABEL, image_of, is_operated, runs_own_plugin

        own = runs_own_plugin(target)
        installed = is_operated(target) and target.driver_owner in ("auto", "cloud")
        left_out = own or target.driver_owner in ("none", "operator")
        cutter: Literal["operator", "cloud"] = "operator" if is_operated(target) else "cloud"
        system = _IMAGES.get(image_of(target), target.image)
        no_dra, with_dra = _no_dra(target)
        return NodeStack(
            driver="cloud" if installed or not left_out else "none",
            advertiser="none" if own else "cloud",
            cut_by=cutter if target.sharing.mig else "none",
            source=_OWN_SOURCE if own else _SOURCE,
            image=f"GKE {system}{_INSTALLED if installed else ''}",
            no_operator="" if own else _NO_OPERATOR,
            no_driver="there is none for Container-Optimized OS (NVIDIA/gpu-operator#1623)" if system == "COS" else "",
            without_plugin="write devicePlugin.owner: operator, whose release disables GKE's plugin",
            operator_values=OWN_DRIVER_VALUES if installed else QUOTA_VALUES if is_operated(target) else {},
            fields=(*_FIELDS, f"nodePool.config.labels.{OPT_OUT_LABEL}"),
            no_dra=no_dra,
            with_dra=with_dra,
            dra_labels={DRA_LABEL: "true"},
            dra_values=DRA_VALUES,
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_gke.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return what changing this field does."""
        from gpukube_gke.pool.updates import find_row

        del beside, live
        return find_row(change)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Return the live half, without any call yet.

        Raises:
            MissingExtra: Google's SDK is not installed.
            AccessError: Credentials must not be sent to the endpoint.
        """
        with importing_sdk("google-cloud-container", ("google", "grpc"), "gke", cluster.key):
            from gpukube_gke.live.client import (
                connect_cluster,
            )  # importing the SDK takes 320 ms, and planning does not need it
        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = GkeProvider
