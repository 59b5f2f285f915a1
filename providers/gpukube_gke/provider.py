"""The GKE provider: the pure half, tied together from its parts.

In scope: `GkeProvider` and what GKE can do. Out of scope: any import of Google's SDK; `connect` imports the
live half (`live.client`) when it is asked for.

Every installed provider is loaded wherever clouds are listed, so this module is cheap: what judges and translates a
pool is imported by the method that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.values import NodeStack
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
"""Who installs what is decided by these (docs: kubernetes-engine/how-to/gpus, NVIDIA/cloud-native-docs google-gke)."""
_AT_ONCE: Final = 4


class GkeProvider:
    """Google Kubernetes Engine."""

    @property
    def name(self) -> str:
        """`provider: gke`."""
        return "gke"

    @property
    def pools_at_once(self) -> int:
        """Four: five operations of a cluster may run, and one is left to others (terraform-provider-google#15205)."""
        return _AT_ONCE

    @property
    def tolerates_resources(self) -> bool:
        """Every cluster does (docs: kubernetes-engine/how-to/gpus, Automatic tolerations)."""
        return True

    @property
    def spec(self) -> CloudSpec:
        """Clusters, reserved capacity and native fields of GKE."""
        from gpukube_gke.spec import SPEC

        return SPEC

    @property
    def machines(self) -> CloudMachines:
        """Instance types of GKE that cannot be used, by their names."""
        from gpukube_gke.facts.machines import MACHINES

        return MACHINES

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Codes of GKE's rules, with their sentences."""
        from gpukube_gke.codes import CODES

        return CODES

    @property
    def diagnosis(self) -> Diagnosis:
        """What is known to go wrong with pools of GKE."""
        from gpukube_gke.diagnose import DIAGNOSIS

        return DIAGNOSIS

    @property
    def catalog(self) -> CloudCatalog:
        """What GKE's machines can do, and where they and their prices are read."""
        from gpukube_gke.catalog import CATALOG

        return CATALOG

    @property
    def quotas(self) -> CloudQuotas:
        """What its nodes count against."""
        from gpukube_gke.rules.quotas import QUOTAS

        return QUOTAS

    @property
    def durations(self) -> CloudDurations:
        """How long it takes for changes of pools."""
        from gpukube_gke.facts.durations import DURATIONS

        return DURATIONS

    @property
    def in_cluster(self) -> InClusterFacts:
        """GKE's marks on nodes, its plugin and its driver installer."""
        from gpukube_gke.facts.in_cluster import IN_CLUSTER

        return IN_CLUSTER

    @property
    def nodes(self) -> NodeFacts:
        """GKE's nodes as pods see them."""
        from gpukube_gke.facts.nodes import NODES

        return NODES

    @property
    def exporters(self) -> Mapping[str, Exporter]:
        """Other tools that pools of GKE can be written for."""
        from gpukube_gke.export.targets import EXPORTERS

        return EXPORTERS

    @property
    def upgrades(self) -> NodeUpgrades:
        """What GKE does to nodes and pods when a pool is upgraded."""
        from gpukube_gke.pool.renewing import GkeUpgrades

        return GkeUpgrades()

    def policies(self, scope: PolicyScope) -> tuple[CloudPolicy, ...]:
        """Write custom roles for each project."""
        from gpukube_gke.rules.permissions import write_policies

        return write_policies(scope)

    def chosen_fields(self, observed: Observed) -> Mapping[FieldPath, object]:
        """Leave out of a live pool's fields what GKE gives to every pool."""
        from gpukube_gke.pool.importing import chosen_fields

        return chosen_fields(observed)

    def managers(self, observed: Observed) -> tuple[Manager, ...]:
        """Find who else manages a live pool, by what GKE shows of it."""
        from gpukube_gke.pool.managers import managers_of

        return managers_of(observed)

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature how faithful GKE is."""
        from gpukube_gke.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Find what GKE would refuse, before any call."""
        from gpukube_gke.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes bring: driver and plugin, unless the spec says that somebody else runs the plugin."""
        from gpukube_gke.facts.installer import OWN_DRIVER_VALUES, QUOTA_VALUES
        from gpukube_gke.pool.fields import OPT_OUT_LABEL, image_of, is_operated, runs_own_plugin

        own = runs_own_plugin(target)
        installed = is_operated(target) and target.driver_owner in ("auto", "cloud")
        left_out = own or target.driver_owner in ("none", "operator")
        cutter: Literal["operator", "cloud"] = "operator" if is_operated(target) else "cloud"
        system = _IMAGES.get(image_of(target), target.image)
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
        )

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_gke.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Delete a pool by its name; the call takes no etag."""
        from gpukube_gke.pool.translate import translate_delete

        return translate_delete(cluster, observed)

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: a pool that failed at creation must be deleted first."""
        del desired, observed
        return None

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Add the GPU taint where GKE did not."""
        from gpukube_gke.pool.translate import translate_taint

        return translate_taint(desired, observed)

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return what changing this field does."""
        from gpukube_gke.pool.updates import find_row

        del beside, live
        return find_row(change)

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """Make the calls that bring these changes about: one group of attributes in each, guarded by the etag.

        Raises:
            SpecError: The live zones do not divide the size that is declared.
        """
        from gpukube_gke.pool.change import update_pool

        return update_pool(desired, observed, changes)

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """Set the size, or the bounds of the autoscaler; GKE counts per zone.

        Raises:
            SpecError: The zones of the pool do not divide a number, or it is more than GKE allows.
        """
        from gpukube_gke.pool.change import scale_pool

        return scale_pool(cluster, observed, nodes)

    def release_requests(self, cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
        """Send the labels without our marks; the copy of them in the resource labels stays, and is made void."""
        from gpukube_gke.pool.change import release_pool

        return release_pool(cluster, observed)

    def copy_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Other resource labels would make every node anew, so the copy is written at creation only."""
        del cluster, observed
        return None

    def freeze_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Turn the autoscaler off, which leaves the pool at the size it has."""
        from gpukube_gke.pool.sizes import autoscale_request, is_autoscaled

        return autoscale_request(cluster, observed, None) if is_autoscaled(observed) else None

    def check_coexistence(self, successor: Desired, observed: Observed) -> list[Finding]:
        """Judge compact placement: nodes close together, with room for so many."""
        from gpukube_gke.rules.coexistence import check_coexistence

        return check_coexistence(successor, observed)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half; no call yet.

        Raises:
            MissingExtra: Google's SDK is not installed.
            AccessError: The endpoint is one that credentials must not be sent to.
        """
        with importing_sdk("google-cloud-container", ("google", "grpc"), "gke", cluster.key):
            from gpukube_gke.live.client import connect_cluster  # the SDK costs 320 ms, planning needs none
        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = GkeProvider
