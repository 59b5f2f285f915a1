"""The EKS provider: the pure half, tied together from its parts.

In scope: `EksProvider` and what EKS can do. Out of scope: any import of AWS's SDK; `connect` imports the
live half (`live.client`) when it is asked for.

Every installed provider is loaded wherever clouds are listed, so this module is cheap: what judges and translates a
pool is imported by the method that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

_AL2023: Final = "docs: eks/ml-eks-optimized-ami: driver and container toolkit, no device plugin"
_BOTTLEROCKET: Final = "docs: eks/ml-eks-optimized-ami: driver, device plugin and MIG manager"
_FIELDS: Final = ("nodegroup.amiType",)
_AT_ONCE: Final = 8


def _al2023(target: Target) -> NodeStack:
    return NodeStack(
        driver="cloud",
        advertiser="none",
        cut_by="operator" if target.sharing.mig else "none",
        source=_AL2023,
        image="EKS AL2023",
        no_driver="there is no driver container for Amazon Linux",
        fields=_FIELDS,
    )


def _bottlerocket(target: Target) -> NodeStack:
    return NodeStack(
        driver="cloud",
        advertiser="cloud",
        cut_by="cloud" if target.sharing.mig else "none",
        source=_BOTTLEROCKET,
        image="EKS Bottlerocket",
        no_operator="it does not support Bottlerocket (bottlerocket-os/bottlerocket#3992)",
        no_driver="it does not support Bottlerocket",
        without_plugin="write image: al2023",
        fields=_FIELDS,
    )


class EksProvider:
    """Amazon Elastic Kubernetes Service."""

    @property
    def name(self) -> str:
        """`provider: eks`."""
        return "eks"

    @property
    def pools_at_once(self) -> int:
        """Eight: node groups do not wait for each other, but many at once are throttled (aws/aws-sdk#652)."""
        return _AT_ONCE

    @property
    def tolerates_resources(self) -> bool:
        """Every cluster does (docs: eks/platform-versions, the admission controllers enabled)."""
        return True

    @property
    def spec(self) -> CloudSpec:
        """Clusters, reserved capacity and native fields of EKS."""
        from gpukube_eks.spec import SPEC

        return SPEC

    @property
    def machines(self) -> CloudMachines:
        """Instance types of EKS that cannot be used, by their names."""
        from gpukube_eks.facts.machines import MACHINES

        return MACHINES

    @property
    def codes(self) -> Mapping[str, tuple[str, str]]:
        """Codes of EKS's rules, with their sentences."""
        from gpukube_eks.codes import CODES

        return CODES

    @property
    def diagnosis(self) -> Diagnosis:
        """What is known to go wrong with pools of EKS."""
        from gpukube_eks.diagnose import DIAGNOSIS

        return DIAGNOSIS

    @property
    def catalog(self) -> CloudCatalog:
        """What EKS's machines can do, and where they and their prices are read."""
        from gpukube_eks.catalog import CATALOG

        return CATALOG

    @property
    def quotas(self) -> CloudQuotas:
        """What its nodes count against."""
        from gpukube_eks.rules.quotas import QUOTAS

        return QUOTAS

    @property
    def durations(self) -> CloudDurations:
        """How long it takes for changes of pools."""
        from gpukube_eks.facts.durations import DURATIONS

        return DURATIONS

    @property
    def in_cluster(self) -> InClusterFacts:
        """EKS's marks on nodes, and Bottlerocket's plugin."""
        from gpukube_eks.facts.in_cluster import IN_CLUSTER

        return IN_CLUSTER

    @property
    def nodes(self) -> NodeFacts:
        """EKS's nodes as pods see them."""
        from gpukube_eks.facts.nodes import NODES

        return NODES

    @property
    def exporters(self) -> Mapping[str, Exporter]:
        """Other tools that pools of EKS can be written for."""
        from gpukube_eks.export.targets import EXPORTERS

        return EXPORTERS

    @property
    def upgrades(self) -> NodeUpgrades:
        """What EKS does to nodes and pods when a pool is upgraded."""
        from gpukube_eks.pool.renewing import EksUpgrades

        return EksUpgrades()

    def policies(self, scope: PolicyScope) -> tuple[CloudPolicy, ...]:
        """Write an IAM policy for each account."""
        from gpukube_eks.rules.permissions import write_policies

        return write_policies(scope)

    def chosen_fields(self, observed: Observed) -> Mapping[FieldPath, object]:
        """Leave out of a live pool's fields what EKS gives to every pool."""
        from gpukube_eks.pool.importing import chosen_fields

        return chosen_fields(observed)

    def managers(self, observed: Observed) -> tuple[Manager, ...]:
        """Find who else manages a live pool, by what EKS shows of it."""
        from gpukube_eks.pool.managers import managers_of

        return managers_of(observed)

    def abilities(self) -> Mapping[str, Ability]:
        """Return for every feature how faithful EKS is."""
        from gpukube_eks.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Find what EKS would refuse, before any call."""
        from gpukube_eks.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes have: always the driver; on Bottlerocket the plugin and the MIG manager too."""
        return _bottlerocket(target) if target.image == "bottlerocket" else _al2023(target)

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_eks.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Delete a node group, and then its launch template."""
        from gpukube_eks.pool.translate import translate_delete

        return translate_delete(cluster, observed)

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Go on with a launch template that has no group yet; a failed group must be deleted first."""
        from gpukube_eks.pool.translate import translate_recreate

        return translate_recreate(desired, observed)

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Nothing: the creation carries everything."""
        del desired, observed
        return None

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return what changing this field does."""
        from gpukube_eks.pool.updates import find_row

        return find_row(change, beside, live)

    def update_requests(self, desired: Desired, observed: Observed, changes: Sequence[Change]) -> tuple[Request, ...]:
        """Make the calls for changes in place: tags, then the configuration, then the version."""
        from gpukube_eks.pool.change import translate_changes

        return translate_changes(desired, observed, changes)

    def scale_request(self, cluster: ClusterRef, observed: Observed, nodes: Nodes) -> Request:
        """Set size or bounds; EKS takes any total, so there is no number that it cannot do."""
        from gpukube_eks.pool.change import translate_scale

        return translate_scale(cluster, observed, nodes)

    def release_requests(self, cluster: ClusterRef, observed: Observed) -> tuple[Request, ...]:
        """Remove the tags of the copy, then the labels and the marks of gpukube's launch template."""
        from gpukube_eks.pool.change import translate_release

        return translate_release(cluster, observed)

    def copy_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Tag the group."""
        from gpukube_eks.pool.change import translate_copy

        return translate_copy(cluster, observed)

    def freeze_request(self, cluster: ClusterRef, observed: Observed) -> Request | None:
        """Set both bounds to the size that the group has: EKS has no autoscaler of its own to turn off."""
        from gpukube_eks.pool.change import translate_freeze

        return translate_freeze(cluster, observed)

    def check_coexistence(self, successor: Desired, observed: Observed) -> list[Finding]:
        """Judge a Capacity Block that both would draw on."""
        from gpukube_eks.rules.coexistence import check_coexistence

        return check_coexistence(successor, observed)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half; no call yet.

        Raises:
            MissingExtra: AWS's SDK is not installed.
            AccessError: The endpoint is one that credentials must not be sent to.
        """
        with importing_sdk("boto3", ("boto3", "botocore"), "eks", cluster.key):
            from gpukube_eks.live.client import connect_cluster  # the SDK costs 150 ms, planning needs none
        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = EksProvider
