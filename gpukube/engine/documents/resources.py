"""Pools of a plan as the Terraform resources that they would be: what tools that read Terraform's plans price.

In scope: choosing them. Out of scope: the form of Terraform's plans (cli.formats.terraform), what a pool is in
Terraform (the providers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from gpukube.core.exporting import ExportedPool
from gpukube.core.hcl import resource_name, values_of
from gpukube.engine.documents.shapes.plan import PlanDocument
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.engine.plan.planning import ClusterPlan


class PlannedResource(TypedDict):
    """A pool as it will be."""

    cluster: str
    """Key in the spec."""
    identity: Mapping[str, str]
    """Where the cluster is, by the names of the spec."""
    type: str
    """Of the resource."""
    name: str
    """Of the resource: cluster and pool."""
    values: Mapping[str, object]
    """Its arguments."""


class PricedPlan(PlanDocument):
    """A plan together with its pools as resources; never printed as it is."""

    resources: Sequence[PlannedResource]
    """In the order of the plan."""


def planned_resources(plans: Sequence[ClusterPlan]) -> Iterator[PlannedResource]:
    """Return the pools that the spec declares, of clouds whose pools Terraform has."""
    for plan in plans:
        exporter = load_provider(plan.cluster.provider).extras.exporters.get("terraform")
        if exporter is None or exporter.resource is None:
            continue
        for pool in plan.pools:
            if pool.desired is None or pool.action == "conflict":
                continue
            block = exporter.resource(plan.cluster, ExportedPool(pool.desired))
            yield {
                "cluster": plan.cluster.key,
                "identity": plan.cluster.identity,
                "type": block.labels[0],
                "name": resource_name(f"{plan.cluster.key}_{pool.name}"),
                "values": values_of(block),
            }
