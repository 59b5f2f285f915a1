"""The Azure RBAC actions that the calls of the live half need.

In scope: the table. Out of scope: which of them a spec needs and on which scope (`rules.permissions`).

Names are from Azure's reference of resource provider operations (docs: role-based-access-control, permissions); the
actions on pools are also in the built-in role Azure Kubernetes Service Agent Pool Manager.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_CLUSTERS: Final = "Microsoft.ContainerService/managedClusters"
_POOLS: Final = f"{_CLUSTERS}/agentPools"
_WRITE: Final = ("AgentPools.begin_create_or_update",)

_CONTAINERS: Final = "docs: role-based-access-control/permissions/containers"
_COMPUTE: Final = "docs: role-based-access-control/permissions/compute"
_LINKED: Final = "docs: aks/aks-service-permissions, identity creating and operating the cluster"

SUBNETS: Final = "for pools with aks.vnetSubnetID or aks.podSubnetID"
PREFIXES: Final = "for pools with aks.nodePublicIPPrefixID"
RESERVED: Final = "for pools with a capacity reservation group"
PLACEMENT: Final = "for pools whose placement is a proximity placement group"

_NOT_TOLD: Final = "the ways that need it are shown as not told"

WITHOUT_CALLS: Final = ("GET prices.azure.com/api/retail/prices",)
"""Calls that need neither permission nor credentials (docs: rest/api/cost-management/retail-prices)."""

_plan = partial(Permission, level="plan")
_apply = partial(Permission, level="apply")

PERMISSIONS: Final = (  # name, purpose, source, scope
    _plan(f"{_CLUSTERS}/read", "to find the cluster and its version", _CONTAINERS, "group",
        calls=("ManagedClusters.get",)),
    _plan(f"{_CLUSTERS}/listClusterUserCredential/action", "to get the cluster's kubeconfig",
        f"{_CONTAINERS}; docs: aks/control-kubeconfig-access", "group",
        calls=("ManagedClusters.list_cluster_user_credentials",), without="write clusters.*.kubeconfig"),
    _plan(f"{_POOLS}/read", "to compare node pools with the spec, and to wait for them", _CONTAINERS, "group",
        calls=("AgentPools.list", "AgentPools.get")),
    _plan(f"{_POOLS}/upgradeProfiles/read", "to read the newest node image", _CONTAINERS, "group",
        calls=("AgentPools.get_upgrade_profile",), when=EXTRAS["upgrade"],
        without="only the Kubernetes version is compared"),
    _plan("Microsoft.Compute/locations/usages/read", "to compare the subscription's quotas with what the plan needs",
        _COMPUTE, "subscription", calls=("GET Microsoft.Compute/locations/usages",),
        without="these quotas are not checked"),
    _plan("Microsoft.Compute/skus/read", "to refresh the catalog of VM sizes", _COMPUTE, "subscription",
        calls=("GET Microsoft.Compute/skus",), when=EXTRAS["catalog"]),
    _plan("Microsoft.Compute/skus/read", "to find sizes and zones that the subscription may use", _COMPUTE,
        "subscription", calls=("GET Microsoft.Compute/skus",), when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("Microsoft.Compute/capacityReservationGroups/read", "to find capacity reservation groups and their use",
        _COMPUTE, "subscription", calls=("GET Microsoft.Compute/capacityReservationGroups",), when=EXTRAS["capacity"],
        without=_NOT_TOLD),
    _plan("Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
        "to read the sizes and zones of capacity reservations", _COMPUTE, "subscription",
        calls=("GET Microsoft.Compute/capacityReservationGroups/capacityReservations",), when=EXTRAS["capacity"],
        without=_NOT_TOLD),
    _plan("Microsoft.Compute/locations/placementScores/generate/action",
        "to read how likely Spot requests are to succeed",
        f"{_COMPUTE}; docs: virtual-machine-scale-sets/spot-placement-score, Compute Recommendations Role",
        "subscription", calls=("POST Microsoft.Compute/locations/placementScores/spot/generate",),
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("Microsoft.Compute/capacityReservationGroups/read",
        "to check the free machines of the reservation group before a pool is created in it, and when it ends",
        _COMPUTE, "linked", calls=("GET Microsoft.Compute/capacityReservationGroups",), when=RESERVED,
        without="a full group is noticed only by its price: Azure takes further machines on demand"),
    _plan("Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
        "to read the sizes and zones of capacity reservations", _COMPUTE, "linked",
        calls=("GET Microsoft.Compute/capacityReservationGroups/capacityReservations",), when=RESERVED,
        without="a full group is noticed only by its price: Azure takes further machines on demand"),
    _apply(f"{_POOLS}/write", "to create and change node pools", _CONTAINERS, "group", calls=_WRITE),
    _apply(f"{_POOLS}/delete", "to delete node pools: pool delete, --replace, --prune", _CONTAINERS, "group",
        calls=("AgentPools.begin_delete",)),
    _apply(f"{_POOLS}/upgradeNodeImageVersion/action", "to bring nodes to the newest node image", _CONTAINERS, "group",
        calls=("AgentPools.begin_upgrade_node_image_version",), when=EXTRAS["upgrade"]),
    _apply("Microsoft.ContainerService/locations/operations/read", "to wait for changes, and to see why one failed",
        _CONTAINERS, "subscription", calls=("GET Microsoft.ContainerService/locations/operations",),
        without="gpukube reads the pool instead, which shows less about a failure"),
    _apply("Microsoft.Network/virtualNetworks/subnets/join/action",
        "to put nodes and pods into the subnets of the spec", _LINKED, "linked", calls=_WRITE, when=SUBNETS),
    _apply("Microsoft.Network/publicIPPrefixes/join/action", "to give nodes addresses of the spec's prefix", _LINKED,
        "linked", calls=_WRITE, when=PREFIXES),
    _apply("Microsoft.Compute/proximityPlacementGroups/write", "to put nodes into the spec's proximity placement group",
        _LINKED, "linked", calls=_WRITE, when=PLACEMENT),
)  # fmt: skip
