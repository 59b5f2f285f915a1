"""The IAM permissions of Google Cloud that calls of the live half need.

Lives here: the table. Must not live here: which of them a spec needs and on which resources (`rules.permissions`).

Each page of a method in the REST reference names the permission that it needs.
"""

from __future__ import annotations

from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_REST: Final = "docs: kubernetes-engine/docs/reference/rest/v1/projects.locations"
_POOLS: Final = f"{_REST}.clusters.nodePools"
_COMPUTE: Final = "docs: compute/docs/reference/rest/v1"

REGIONAL: Final = "for GPUs with a quota of their own in Compute Engine"
GLOBAL: Final = "for GPUs that count against GPUS_ALL_REGIONS"
FAMILY: Final = "for GPUs with a quota in Cloud Quotas"
OPEN_ZONES: Final = "for pools without zones in regional clusters"

WITHOUT_CALLS: Final = ("GET cloudbilling/v1/services/skus",)
"""Calls that need no permission, only credentials (docs: billing/docs/reference/rest/v1/services.skus/list)."""

PERMISSIONS: Final = (
    Permission(
        name="container.clusters.get",
        calls=("get_cluster", "list_node_pools", "get_node_pool"),
        purpose="to find the cluster and the address of its Kubernetes API, to compare node pools with the spec",
        source=f"{_REST}.clusters/get; {_POOLS}/list and get",
        scope="project",
    ),
    Permission(
        name="compute.acceleratorTypes.list",
        calls=("GET compute/v1/aggregated/acceleratorTypes",),
        purpose="to choose a zone that has the GPU",
        source=f"{_COMPUTE}/acceleratorTypes/aggregatedList",
        when=OPEN_ZONES,
        without="a zone is chosen from the cluster's own; write zones",
        scope="project",
    ),
    Permission(
        name="compute.regions.get",
        calls=("GET compute/v1/regions",),
        purpose="to compare the region's quotas with what the plan needs",
        source=f"{_COMPUTE}/regions/get",
        when=REGIONAL,
        without="these quotas are not checked",
        scope="project",
    ),
    Permission(
        name="compute.projects.get",
        calls=("GET compute/v1/projects",),
        purpose="to compare the project's quota of all GPUs with what the plan needs",
        source=f"{_COMPUTE}/projects/get",
        when=GLOBAL,
        without="this quota is not checked",
        scope="project",
    ),
    Permission(
        name="cloudquotas.quotas.get",
        calls=("GET cloudquotas/v1/quotaInfos",),
        purpose="to read the limit of a GPU family",
        source="docs: docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/get",
        when=FAMILY,
        without="this quota is not checked",
        scope="project",
    ),
    Permission(
        name="monitoring.timeSeries.list",
        calls=("GET monitoring/v3/timeSeries",),
        purpose="to read how much of a GPU family is used",
        source="docs: monitoring/access-control",
        when=FAMILY,
        without="this quota is not checked",
        scope="project",
    ),
    Permission(
        name="compute.machineTypes.list",
        calls=("GET compute/v1/aggregated/machineTypes",),
        purpose="to refresh the catalog of machine types",
        source=f"{_COMPUTE}/machineTypes/aggregatedList",
        when=EXTRAS["catalog"],
        scope="project",
    ),
    Permission(
        name="compute.acceleratorTypes.list",
        calls=("GET compute/v1/aggregated/acceleratorTypes",),
        purpose="to refresh the catalog of GPUs",
        source=f"{_COMPUTE}/acceleratorTypes/aggregatedList",
        when=EXTRAS["catalog"],
        scope="project",
    ),
    Permission(
        name="container.clusters.update",
        calls=(
            "create_node_pool",
            "update_node_pool",
            "set_node_pool_size",
            "set_node_pool_autoscaling",
            "set_node_pool_management",
            "delete_node_pool",
        ),
        purpose="to create, change and delete node pools: Google has one permission for all of these",
        source=f"{_POOLS}/create, update, setSize, setAutoscaling, setManagement and delete",
        level="apply",
        scope="project",
    ),
    Permission(
        name="container.operations.get",
        calls=("get_operation",),
        purpose="to wait for changes, and to see why one failed",
        source=f"{_REST}.operations/get",
        level="apply",
        scope="project",
    ),
    Permission(
        name="iam.serviceAccounts.actAs",
        calls=("create_node_pool",),
        purpose="to give the nodes their service account",
        source="docs: kubernetes-engine/docs/how-to/iam, Service Account User on the account",
        level="apply",
        scope="nodes",
    ),
)
