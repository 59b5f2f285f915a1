"""The EKS provider's pure half, assembled from its parts.

In scope: `EksProvider` and EKS's abilities. Out of scope: imports of AWS's SDK; only `connect` imports the live half
(`live.client`).

Every installed provider is loaded wherever clouds are listed, so this module is cheap: methods import the rules and
translations that they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

_AL2023: Final = "docs: eks/ml-eks-optimized-ami: driver and container toolkit, no device plugin"
_BOTTLEROCKET: Final = "docs: eks/ml-eks-optimized-ami: driver, device plugin and MIG manager"
_FIELDS: Final = ("nodegroup.amiType",)
_RACK_SCALE: Final = "p6e-"
"""Instance types whose NVLink connects nodes (docs: eks/ml-eks-nvidia-ultraserver)."""
_DRA_VALUES: Final = {"nvidiaDriverRoot": "/"}
"""docs: eks/ml-eks-optimized-ami: the driver is part of the image."""


def _al2023(target: Target) -> NodeStack:
    rack = target.machine.name.startswith(_RACK_SCALE)
    return NodeStack(
        driver="cloud",
        advertiser="none",
        cut_by="operator" if target.sharing.mig else "none",
        source=_AL2023,
        image="EKS AL2023",
        no_driver="there is no driver container for Amazon Linux",
        fields=_FIELDS,
        no_dra="AWS documents the device plugin for their GPUs, and DRA for NVLink only" if rack else "",
        with_dra="choose another instance type",
        dra_values=_DRA_VALUES,
    )


def _bottlerocket(target: Target) -> NodeStack:
    claimed = target.plugin_owner == "dra"  # user data turns its plugin off
    return NodeStack(
        driver="cloud",
        advertiser="none" if claimed else "cloud",
        cut_by="cloud" if target.sharing.mig else "none",
        source=_BOTTLEROCKET,
        image="EKS Bottlerocket",
        no_operator="it does not support Bottlerocket (bottlerocket-os/bottlerocket#3992)",
        no_driver="it does not support Bottlerocket",
        without_plugin="write image: al2023",
        fields=_FIELDS,
        no_dra="whether it publishes the MIG instances of Bottlerocket is unconfirmed" if target.sharing.mig else "",
        with_dra="write image: al2023",
        dra_values=_DRA_VALUES,
    )


class EksExtras(Extras):
    """EKS's optional parts."""

    pools_at_once = 8  # node groups do not wait for each other, but many at once are throttled (aws/aws-sdk#652)
    starts_empty = True  # aws/containers-roadmap#1684: min and desired 0
    capacity_wait_s = 900  # docs: eks/troubleshooting, NodeCreationFailure: EKS waits as long for nodes to join
    outcome_ttl_s = 180.0  # as Karpenter (aws/karpenter-provider-aws pkg/cache, UnavailableOfferingsTTL)
    tolerates_resources = True  # docs: eks/platform-versions, the admission controllers enabled
    claims_advice = "docs: eks/device-management-nvidia-dra-device-plugin"
    in_cluster = part(".facts.in_cluster:IN_CLUSTER")
    diagnosis = part(".diagnose:DIAGNOSIS")
    catalog = part(".catalog:CATALOG")
    capacity = part(".catalog:CAPACITY")
    order = part(".facts.scaling:ORDER")
    quotas = part(".rules.quotas:QUOTAS")
    durations = part(".facts.durations:DURATIONS")
    exporters = part(".export.targets:EXPORTERS")
    upgrades = part(".pool.renewing:UPGRADES")
    policies = part(".rules.permissions:write_policies")
    managers = part(".pool.managers:managers_of")
    carried = part(".pool.settings:describe_kept")
    chosen_fields = part(".pool.importing:chosen_fields")
    members = part(".pool.members:POOL_MEMBERS")
    check_coexistence = part(".rules.coexistence:check_coexistence")


class EksProvider:
    """Amazon Elastic Kubernetes Service."""

    name = "eks"
    spec: CloudSpec = part(".spec:SPEC")
    machines: CloudMachines = part(".facts.machines:MACHINES")
    nodes: NodeFacts = part(".facts.nodes:NODES")
    codes: Mapping[str, tuple[str, str]] = part(".codes:CODES")
    requests: PoolRequests = part(".requests:REQUESTS")
    extras = EksExtras()

    def abilities(self) -> Mapping[str, Ability]:
        """Return how well EKS supports each feature."""
        from gpukube_eks.pool.fields import ABILITIES

        return ABILITIES

    def check(self, target: Target) -> list[Finding]:
        """Return what EKS would reject, before any call."""
        from gpukube_eks.rules.checks import check_target

        return check_target(target)

    def stack(self, target: Target) -> NodeStack:
        """Return what the nodes include: always the driver; on Bottlerocket also the plugin and the MIG manager."""
        return _bottlerocket(target) if target.image == "bottlerocket" else _al2023(target)

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target."""
        from gpukube_eks.pool.translate import translate_pool

        return translate_pool(target, ownership, promise)

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """Return the effect of changing this field."""
        from gpukube_eks.pool.updates import find_row

        return find_row(change, beside, live)

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Create the live half; no call yet.

        Raises:
            MissingExtra: AWS's SDK is not installed.
            AccessError: Credentials must not be sent to this endpoint.
        """
        with importing_sdk("boto3", ("boto3", "botocore"), "eks", cluster.key):
            from gpukube_eks.live.client import connect_cluster  # the SDK costs 150 ms, planning needs none
        return connect_cluster(cluster, settings)


if TYPE_CHECKING:
    _: type[Provider] = EksProvider
