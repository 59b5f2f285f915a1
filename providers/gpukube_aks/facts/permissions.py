"""The Azure RBAC actions that calls of the live half need.

Lives here: the table. Must not live here: which of them a spec needs and on which scope (`rules.permissions`).

Names are those of Azure's reference of resource provider operations (docs: role-based-access-control, permissions);
the calls on pools are also those of the built-in role Azure Kubernetes Service Agent Pool Manager.
"""

from __future__ import annotations

from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_CONTAINERS: Final = "docs: role-based-access-control/permissions/containers"
_COMPUTE: Final = "docs: role-based-access-control/permissions/compute"
_LINKED: Final = "docs: aks/aks-service-permissions, identity creating and operating the cluster"

SUBNETS: Final = "for pools with aks.vnetSubnetID or aks.podSubnetID"
PREFIXES: Final = "for pools with aks.nodePublicIPPrefixID"
PLACEMENT: Final = "for pools with aks.proximityPlacementGroupID"

WITHOUT_CALLS: Final = ("GET prices.azure.com/api/retail/prices",)
"""Calls that need no permission, nor credentials (docs: rest/api/cost-management/retail-prices)."""

PERMISSIONS: Final = (
    Permission(
        name="Microsoft.ContainerService/managedClusters/read",
        calls=("ManagedClusters.get",),
        purpose="to find the cluster and its version",
        source=_CONTAINERS,
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        calls=("ManagedClusters.list_cluster_user_credentials",),
        purpose="to get the cluster's kubeconfig",
        source=f"{_CONTAINERS}; docs: aks/control-kubeconfig-access",
        without="write clusters.*.kubeconfig",
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/agentPools/read",
        calls=("AgentPools.list", "AgentPools.get"),
        purpose="to compare node pools with the spec, and to wait for them",
        source=_CONTAINERS,
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles/read",
        calls=("AgentPools.get_upgrade_profile",),
        purpose="to read the newest node image",
        source=_CONTAINERS,
        when=EXTRAS["upgrade"],
        without="only the Kubernetes version is followed",
        scope="group",
    ),
    Permission(
        name="Microsoft.Compute/locations/usages/read",
        calls=("GET Microsoft.Compute/locations/usages",),
        purpose="to compare the subscription's quotas with what the plan needs",
        source=_COMPUTE,
        without="these quotas are not checked",
        scope="subscription",
    ),
    Permission(
        name="Microsoft.Compute/skus/read",
        calls=("GET Microsoft.Compute/skus",),
        purpose="to refresh the catalog of VM sizes",
        source=_COMPUTE,
        when=EXTRAS["catalog"],
        scope="subscription",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/agentPools/write",
        calls=("AgentPools.begin_create_or_update",),
        purpose="to create and change node pools",
        source=_CONTAINERS,
        level="apply",
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/agentPools/delete",
        calls=("AgentPools.begin_delete",),
        purpose="to delete node pools: pool delete, --replace, --prune",
        source=_CONTAINERS,
        level="apply",
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/managedClusters/agentPools/upgradeNodeImageVersion/action",
        calls=("AgentPools.begin_upgrade_node_image_version",),
        purpose="to bring nodes to the newest node image",
        source=_CONTAINERS,
        level="apply",
        when=EXTRAS["upgrade"],
        scope="group",
    ),
    Permission(
        name="Microsoft.ContainerService/locations/operations/read",
        calls=("GET Microsoft.ContainerService/locations/operations",),
        purpose="to wait for changes, and to see why one failed",
        source=_CONTAINERS,
        level="apply",
        without="the pool itself is read instead, which tells less of a failure",
        scope="subscription",
    ),
    Permission(
        name="Microsoft.Network/virtualNetworks/subnets/join/action",
        calls=("AgentPools.begin_create_or_update",),
        purpose="to put nodes and pods into the subnets of the spec",
        source=_LINKED,
        level="apply",
        when=SUBNETS,
        scope="linked",
    ),
    Permission(
        name="Microsoft.Network/publicIPPrefixes/join/action",
        calls=("AgentPools.begin_create_or_update",),
        purpose="to give nodes addresses of the spec's prefix",
        source=_LINKED,
        level="apply",
        when=PREFIXES,
        scope="linked",
    ),
    Permission(
        name="Microsoft.Compute/proximityPlacementGroups/write",
        calls=("AgentPools.begin_create_or_update",),
        purpose="to put nodes into the spec's proximity placement group",
        source=_LINKED,
        level="apply",
        when=PLACEMENT,
        scope="linked",
    ),
)
