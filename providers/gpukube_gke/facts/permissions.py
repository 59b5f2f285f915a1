"""The IAM permissions of Google Cloud that the calls of the live half need.

In scope: the table. Out of scope: which of them a spec needs and on which resources (`rules.permissions`).

The REST reference names the required permission on each method's page.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from gpukube.core.permissions import EXTRAS, Permission

_REST: Final = "docs: kubernetes-engine/docs/reference/rest/v1/projects.locations"
_POOLS: Final = f"{_REST}.clusters.nodePools"
_COMPUTE: Final = "docs: compute/docs/reference/rest/v1"

REGIONAL: Final = "for GPUs with a quota of their own in Compute Engine"
GLOBAL: Final = "for GPUs that count against GPUS_ALL_REGIONS"
FAMILY: Final = "for GPUs with a quota in Cloud Quotas"
RESERVED: Final = "for pools in a reservation"
OPEN_ZONES: Final = "for pools without zones in regional clusters"

_NOT_TOLD: Final = "the ways that need it are shown as not told"

WITHOUT_CALLS: Final = ("GET cloudbilling/v1/services/skus",)
"""Calls that need only credentials, no permission (docs: billing/docs/reference/rest/v1/services.skus/list)."""

_plan = partial(Permission, scope="project")
_apply = partial(_plan, level="apply")

PERMISSIONS: Final = (  # name, purpose, source
    _plan("container.clusters.get",
        "to find the cluster and the address of its Kubernetes API, to compare node pools with the spec",
        f"{_REST}.clusters/get; {_POOLS}/list and get", calls=("get_cluster", "list_node_pools", "get_node_pool")),
    _plan("compute.acceleratorTypes.list", "to choose a zone that has the GPU",
        f"{_COMPUTE}/acceleratorTypes/aggregatedList", calls=("GET compute/v1/aggregated/acceleratorTypes",),
        when=OPEN_ZONES, without="a zone is chosen from the cluster's own; write zones"),
    _plan("compute.reservations.list", "to check the free machines of the reservation before a pool is created in it, "
        "and when it ends", f"{_COMPUTE}/reservations/aggregatedList",
        calls=("GET compute/v1/aggregated/reservations",), when=RESERVED,
        without="GKE refuses a full reservation minutes later"),
    _plan("compute.regions.get", "to compare the region's quotas with what the plan needs", f"{_COMPUTE}/regions/get",
        calls=("GET compute/v1/regions",), when=REGIONAL, without="these quotas are not checked"),
    _plan("compute.projects.get", "to compare the project's quota of all GPUs with what the plan needs",
        f"{_COMPUTE}/projects/get", calls=("GET compute/v1/projects",), when=GLOBAL,
        without="this quota is not checked"),
    _plan("cloudquotas.quotas.get", "to read the limit of a GPU family",
        "docs: docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos/get",
        calls=("GET cloudquotas/v1/quotaInfos",), when=FAMILY, without="this quota is not checked"),
    _plan("monitoring.timeSeries.list", "to read how much of a GPU family is used", "docs: monitoring/access-control",
        calls=("GET monitoring/v3/timeSeries",), when=FAMILY, without="this quota is not checked"),
    _plan("compute.machineTypes.list", "to refresh the catalog of machine types",
        f"{_COMPUTE}/machineTypes/aggregatedList", calls=("GET compute/v1/aggregated/machineTypes",),
        when=EXTRAS["catalog"]),
    _plan("compute.acceleratorTypes.list", "to refresh the catalog of GPUs",
        f"{_COMPUTE}/acceleratorTypes/aggregatedList", calls=("GET compute/v1/aggregated/acceleratorTypes",),
        when=EXTRAS["catalog"]),
    _plan("compute.machineTypes.list", "to find the zones that have a machine type",
        f"{_COMPUTE}/machineTypes/aggregatedList", calls=("GET compute/v1/aggregated/machineTypes",),
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("compute.acceleratorTypes.list", "to find the zones that have a GPU for N1 machines",
        f"{_COMPUTE}/acceleratorTypes/aggregatedList", calls=("GET compute/v1/aggregated/acceleratorTypes",),
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("compute.reservations.list", "to find reservations with free machines",
        f"{_COMPUTE}/reservations/aggregatedList", calls=("GET compute/v1/aggregated/reservations",),
        when=EXTRAS["capacity"], without=_NOT_TOLD),
    _plan("compute.advice.capacity", "to read how likely Spot and flex-start requests are to succeed",
        f"{_COMPUTE}/advice/capacity", calls=("POST compute/v1/advice/capacity",), when=EXTRAS["capacity"],
        without=_NOT_TOLD),
    _plan("compute.advice.capacityHistory", "to show Spot prices", f"{_COMPUTE}/advice/capacityHistory",
        calls=("POST compute/v1/advice/capacityHistory",), when=EXTRAS["capacity"],
        without="the catalog's prices are shown"),
    _plan("compute.advice.calendarMode", "to find reservations in calendar mode for sale",
        f"{_COMPUTE}/advice/calendarMode", calls=("POST compute/v1/advice/calendarMode",), when=EXTRAS["capacity"],
        without=_NOT_TOLD),
    _apply("container.clusters.update",
        "to create, change and delete node pools: Google has one permission for all three",
        f"{_POOLS}/create, update, setSize, setAutoscaling, setManagement and delete",
        calls=("create_node_pool", "update_node_pool", "set_node_pool_size", "set_node_pool_autoscaling",
            "set_node_pool_management", "delete_node_pool")),
    _apply("container.operations.get", "to wait for changes, and to see why one failed", f"{_REST}.operations/get",
        calls=("get_operation",)),
    _apply("iam.serviceAccounts.actAs", "to give the nodes their service account",
        "docs: kubernetes-engine/docs/how-to/iam, Service Account User on the account", scope="nodes",
        calls=("create_node_pool",)),
)  # fmt: skip
