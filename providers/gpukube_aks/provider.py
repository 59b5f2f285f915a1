"""The AKS provider: the pure half, assembled from its parts.

In scope: `AksProvider` and AKS's abilities. Out of scope: any import of the Azure SDK; `connect` imports the live half
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

_MANAGED_SOURCE: Final = "docs: aks/aks-managed-gpu-nodes"
_DRIVER_SOURCE: Final = "docs: aks/use-nvidia-gpu"
_NO_OPERATOR: Final = "AKS does not document it for this system (docs: aks/nvidia-gpu-operator)"
_FIELDS: Final = (
    "body.properties.gpuProfile.driver",
    "body.properties.gpuProfile.nvidia.managementMode",
    "body.properties.gpuInstanceProfile",
)
"""Fields that decide who installs what; without gpuProfile AKS installs the driver (docs: aks/aks-managed-gpu-nodes).
The runtime's name: Azure/AgentBaker pkg/agent/baker.go, docs: gpu-operator/microsoft-aks."""


def _no_dra(target: Target, system: str) -> tuple[str, str]:
    """Return why the DRA driver cannot serve the nodes, and what to write instead."""
    if system == "AzureContainerLinux":
        return "where its driver is, AKS does not document", "write image: Ubuntu"
    if target.driver_owner == "none":
        return "gpukube does not know where your driver will be, and the DRA driver must", "write driver.owner: auto"
    return "", ""


class AksExtras(Extras):
    """Optional parts of the AKS provider."""

    pools_at_once = 1  # AKS rejects a second pool operation with 409 (cilium/cilium#25944, Azure/telescope#1213)
    outcome_ttl_s = 3600.0  # as Karpenter (Azure/karpenter-provider-azure: AllocationFailureTTL)
    tolerates_resources = True  # docs: aks/faq, the admission controllers, which cannot be changed
    in_cluster = part(".facts.in_cluster:IN_CLUSTER")
    diagnosis = part(".diagnose:DIAGNOSIS")
    catalog = part(".catalog:CATALOG")
    order = part(".facts.scaling:ORDER")
    capacity = part(".catalog:CAPACITY")
    quotas = part(".rules.quotas:QUOTAS")
    durations = part(".facts.durations:DURATIONS")
    exporters = part(".export.targets:EXPORTERS")
    upgrades = part(".pool.renewing:UPGRADES")
    members = part(".pool.members:POOL_MEMBERS")
    policies = part(".rules.permissions:write_policies")
    managers = part(".pool.managers:managers_of")
    chosen_fields = part(".pool.importing:chosen_fields")


class AksProvider:
    """Azure Kubernetes Service."""

    name = "aks"
    spec: CloudSpec = part(".spec:SPEC")
    machines: CloudMachines = part(".facts.machines:MACHINES")
    nodes: NodeFacts = part(".facts.nodes:NODES")
    codes: Mapping[str, tuple[str, str]] = part(".codes:CODES")
    requests: PoolRequests = part(".requests:REQUESTS")
    extras = AksExtras()

    def abilities(self) -> Mapping[str, Ability]:
        """Return how AKS supports each feature."""
        from gpukube_aks.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Report what AKS would reject, before any call."""
        from gpukube_aks.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes come with: the driver unless it is omitted, the plugin on AKS-managed nodes only."""
        from gpukube_aks.facts.images import DEFAULT_IMAGE
        from gpukube_aks.pool.fields import cut_by_operator, leaves_driver_out

        managed = target.plugin_owner == "cloud"
        system = target.image or DEFAULT_IMAGE
        cutter: Literal["operator", "cloud"] = "operator" if cut_by_operator(target) else "cloud"
        left_out = leaves_driver_out(target)
        no_dra, with_dra = _no_dra(target, system)
        return NodeStack(
            driver="none" if left_out else "cloud",
            advertiser="cloud" if managed else "none",
            cut_by=cutter if target.sharing.mig else "none",
            source=_MANAGED_SOURCE if managed else _DRIVER_SOURCE,
            image=f"AKS {system}{', managed' if managed else ''}",
            no_operator=_NO_OPERATOR if system == "AzureContainerLinux" else "",
            no_driver=_NO_OPERATOR if system == "AzureContainerLinux" else "",
            without_plugin="write devicePlugin.owner: auto",
            runtime="nvidia" if left_out or target.machine.arch == "arm64" else "nvidia-container-runtime",
            fields=_FIELDS,
            no_dra=no_dra,
            with_dra=with_dra,
            dra_values={"nvidiaDriverRoot": "/run/nvidia/driver" if target.driver_owner == "operator" else "/"},
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_aks.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return what changing this field does."""
        from gpukube_aks.pool.updates import find_row

        del beside
        return find_row(change, live)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Return the live half, without any call yet.

        Raises:
            MissingExtra: The Azure SDK is not installed.
            AccessError: Credentials must not be sent to the endpoint.
        """
        with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", cluster.key):
            from gpukube_aks.live.client import (
                connect_cluster,
            )  # importing the SDK takes 365 ms, and planning does not need it

            return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = AksProvider
