"""Pools of a plan as the Terraform resources that they would be, for pricing tools that read Terraform plans.

In scope: choosing the pools. Out of scope: the format of Terraform plans (cli.formats.terraform), the resource
arguments (the providers).
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
    """A pool in its planned state."""

    cluster: str
    """Key of the cluster in the spec."""
    identity: Mapping[str, str]
    """Location of the cluster, with the spec's field names."""
    type: str
    """Terraform resource type."""
    name: str
    """Terraform resource name: cluster and pool."""
    values: Mapping[str, object]
    """Arguments of the resource."""


class PricedPlan(PlanDocument):
    """A plan together with its pools as resources; never printed directly."""

    resources: Sequence[PlannedResource]
    """Resources in the order of the plan."""


def planned_resources(plans: Sequence[ClusterPlan]) -> Iterator[PlannedResource]:
    """Yield the pools that the spec declares, for clouds whose pools Terraform supports."""
    for plan in plans:
        exporter = load_provider(plan.cluster.provider).extras.exporters.get("terraform")
        if exporter is None or exporter.resource is None:
            continue
        for pool in plan.pools:
            if pool.desired is None or pool.action in ("conflict", "delete"):
                continue
            if pool.action == "standby" and pool.observed is None:  # it costs nothing while another one has the nodes
                continue
            block = exporter.resource(plan.cluster, ExportedPool(pool.desired))
            yield {
                "cluster": plan.cluster.key,
                "identity": plan.cluster.identity,
                "type": block.labels[0],
                "name": resource_name(f"{plan.cluster.key}_{pool.name}"),
                "values": values_of(block),
            }
