"""The AKS provider: the pure half, tied together from its parts.

In scope: `AksProvider` and what AKS can do. Out of scope: any import of the Azure SDK; `connect` imports the
live half (`live.client`) when it is asked for.

Every installed provider is loaded wherever clouds are listed, so this module is cheap: what judges and translates a
pool is imported by the method that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.values import NodeStack
from gpukube.errors import SpecError
from gpukube.provider import importing_sdk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.cloud_catalog import CloudCatalog
    from gpukube.core.cloud_check import Diagnosis
    from gpukube.core.durations import CloudDurations
    from gpukube.core.exporting import Exporter
    from gpukube.core.fields import FieldPath
    from gpukube.core.in_cluster import InClusterFacts
    from gpukube.core.managers import Manager
    from gpukube.core.node_facts import NodeFacts
    from gpukube.core.permissions import CloudPolicy, PolicyScope
    from gpukube.core.quotas import CloudQuotas
    from gpukube.core.values import (
        Ability,
        Change,
        ClusterRef,
        Desired,
        Nodes,
        Observed,
        Ownership,
        Promise,
        Request,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.errors import Finding
    from gpukube.gpu.cloud_machines import CloudMachines
    from gpukube.provider import Cloud, NodeUpgrades, Provider
    from gpukube.spec.cloud import CloudSpec

_MANAGED_SOURCE: Final = "docs: aks/aks-managed-gpu-nodes"
_DRIVER_SOURCE: Final = "docs: aks/use-nvidia-gpu"
_NO_OPERATOR: Final = "AKS does not document it for this system (docs: aks/nvidia-gpu-operator)"
_FIELDS: Final = (
    "body.properties.gpuProfile.driver",
    "body.properties.gpuProfile.nvidia.managementMode",
    "body.properties.gpuInstanceProfile",
)
"""Who installs what is decided by these; without gpuProfile AKS installs the driver (docs: aks/aks-managed-gpu-nodes).
The runtime's name: Azure/AgentBaker pkg/agent/baker.go, docs: gpu-operator/microsoft-aks."""


class AksProvider:
    """Azure Kubernetes Service."""

    @property
    def name(self) -> str:
        """`provider: aks`."""
        return "aks"

    @property
    def pools_at_once(self) -> int:
        """One: a second pool operation is answered with 409 (cilium/cilium#25944, Azure/telescope#1213)."""
        return 1

    @property
    def tolerates_resources(self) -> bool:
        """Every cluster does (docs: aks/faq, the admission controllers, which cannot be changed)."""
        return True

    @property
    def spec(self) -> CloudSpec:
        """Clusters, reserved capacity and native fields of AKS."""
        from gpukube_aks.spec import SPEC

        return SPEC

    @property
    def machines(self) -> CloudMachines:
        """Instance types of AKS that cannot be used, by their names."""
        from gpukube_aks.facts.machines import MACHINES

        return MACHINES

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Codes of AKS's rules, with their sentences."""
        from gpukube_aks.codes import CODES

        return CODES

    @property
    def diagnosis(self) -> Diagnosis:
        """What is known to go wrong with pools of AKS."""
        from gpukube_aks.diagnose import DIAGNOSIS

        return DIAGNOSIS

    @property
    def catalog(self) -> CloudCatalog:
        """What AKS's machines can do, and where they and their prices are read."""
        from gpukube_aks.catalog import CATALOG

        return CATALOG

    @property
    def quotas(self) -> CloudQuotas:
        """What its nodes count against."""
        from gpukube_aks.rules.quotas import QUOTAS

        return QUOTAS

    @property
    def durations(self) -> CloudDurations:
        """How long it takes for changes of pools."""
        from gpukube_aks.facts.durations import DURATIONS

        return DURATIONS

    @property
    def in_cluster(self) -> InClusterFacts:
        """AKS's marks on nodes, and its plugin on managed ones."""
        from gpukube_aks.facts.in_cluster import IN_CLUSTER

        return IN_CLUSTER

    @property
    def nodes(self) -> NodeFacts:
        """AKS's nodes as pods see them."""
        from gpukube_aks.facts.nodes import NODES

        return NODES

    @property
    def exporters(self) -> Mapping[str, Exporter]:
        """Other tools that pools of AKS can be written for."""
        from gpukube_aks.export.targets import EXPORTERS

        return EXPORTERS

    @property
    def upgrades(self) -> NodeUpgrades:
        """What AKS does to nodes and pods when a pool is upgraded."""
        from gpukube_aks.pool.renewing import AksUpgrades

        return AksUpgrades()

    def policies(self, scope: PolicyScope) -> tuple[CloudPolicy, ...]:
        """Write role definitions for each subscription."""
        from gpukube_aks.rules.permissions import write_policies

        return write_policies(scope)

    def chosen_fields(self, observed: Observed) -> Mapping[FieldPath, object]:
        """Leave out of a live pool's fields what AKS gives to every pool."""
        from gpukube_aks.pool.importing import chosen_fields

        return chosen_fields(observed)

    def managers(self, observed: Observed) -> tuple[Manager, ...]:
        """Find who else manages a live pool, by what AKS shows of it."""
        from gpukube_aks.pool.managers import managers_of

        return managers_of(observed)

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature how faithful AKS is."""
        from gpukube_aks.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Find what AKS would refuse, before any call."""
        from gpukube_aks.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes bring: the driver unless it is left out, the plugin on AKS-managed nodes only."""
        from gpukube_aks.facts.images import DEFAULT_IMAGE
        from gpukube_aks.pool.fields import cut_by_operator, leaves_driver_out

        managed = target.plugin_owner == "cloud"
        system = target.image or DEFAULT_IMAGE
        cutter: Literal["operator", "cloud"] = "operator" if cut_by_operator(target) else "cloud"
        left_out = leaves_driver_out(target)
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
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_aks.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Delete this very pool; AKS refuses when it changed since it was read."""
        from gpukube_aks.pool.translate import translate_delete

        return translate_delete(cluster, observed)

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """PUT a failed pool again, guarded by its etag: AKS keeps it and reconciles; None where that would hurt."""
        from gpukube_aks.pool.change import translate_recreate

        return translate_recreate(desired, observed)

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: a PUT carries the whole pool."""
        del desired, observed
        return None

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return what changing this field does."""
        from gpukube_aks.pool.updates import find_row

        del beside
        return find_row(change, live)

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """PUT the pool as read with the changes merged in, guarded by its etag; what rolls the nodes by itself."""
        from gpukube_aks.pool.change import translate_updates

        return translate_updates(desired, observed, changes)

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """PUT the pool as read with another count, or other bounds, guarded by its etag.

        Raises:
            SpecError: A pool cannot have so many nodes.
        """
        from gpukube_aks.pool.change import translate_scale
        from gpukube_aks.rules.checks import check_scale

        if problems := check_scale(nodes, f"{cluster.key}/{observed.name}"):
            raise SpecError.of(problems)
        return translate_scale(cluster, observed, nodes)

    def release_requests(self, cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
        """PUT the pool as read without our labels and tags, guarded by its etag."""
        from gpukube_aks.pool.change import translate_release

        return translate_release(cluster, observed)

    def copy_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """PUT the pool as read, with the copy in its tags."""
        from gpukube_aks.pool.change import translate_copy

        return translate_copy(cluster, observed)

    def freeze_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """PUT the pool as read, without the autoscaler."""
        from gpukube_aks.pool.change import translate_freeze

        return translate_freeze(cluster, observed)

    def check_coexistence(self, successor: Desired, observed: Observed) -> list[Finding]:
        """Nothing that AKS refuses by itself: machines of a reservation group are found out by creating."""
        del successor, observed
        return []

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half; no call yet.

        Raises:
            MissingExtra: The Azure SDK is not installed.
            AccessError: The endpoint is one that credentials must not be sent to.
        """
        with importing_sdk("azure-mgmt-containerservice and azure-identity", ("azure",), "aks", cluster.key):
            from gpukube_aks.live.client import connect_cluster  # the SDK costs 365 ms, planning needs none

            return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = AksProvider
