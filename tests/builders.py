"""Values for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.fields import FieldPath
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, ClusterRef, Disk, Nodes, Observed, Target
from gpukube.errors import Where
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import Sharing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
CLUSTER = ClusterRef("train-aks", "aks", "train", {"subscription": SUBSCRIPTION, "resourceGroup": "ml"})


class Nowhere:
    """A locator for pools that come from no file: every field is at its own path."""

    def at(self, path: str) -> Where:
        return Where(f"spec.{path}")


_TARGET = Target(
    owner="ml-platform",
    pool="a100mig",
    cluster=CLUSTER,
    name="a100mig",
    machine=require_machine("aks", "Standard_ND96asr_v4"),
    nodes=Nodes(1, 1, 1, autoscaled=False),
    capacity=Capacity("on-demand"),
    zones=(),
    disk=Disk(None, None),
    image="",
    sharing=Sharing(),
    taints=(GPU_TAINT,),
    gpu_taint=True,
    labels={},
    tags={},
    protect=False,
    driver_owner="auto",
    plugin_owner="auto",
    native={},
    locator=Nowhere(),
)


def make_target(machine: str = "Standard_ND96asr_v4", **changes: object) -> Target:
    """Make a target on the AKS cluster of the examples; `changes` are fields of Target."""
    return replace(_TARGET, machine=require_machine("aks", machine), **changes)  # type: ignore[arg-type]  # test data


def make_observed(desired: Desired, **changes: object) -> Observed:
    """Make the live pool that a desired one would become; `changes` are fields of Observed."""
    target = desired.target
    observed = Observed(
        name=target.name,
        owner=target.owner,
        pool=target.pool,
        protected=target.protect,
        state="ready",
        status="Succeeded",
        failure="",
        fields=desired.fields,
        nodes=target.nodes.count,
        labels=desired.labels,
        effective_taints=desired.effective_taints,
        instance_type=target.machine.name,
        etag="1",
        native={},
    )
    return replace(observed, **changes)  # type: ignore[arg-type]  # test data


def by_path(fields: Mapping[str, object]) -> dict[FieldPath, object]:
    """Give fields that a test writes by their texts: "labels[team]"."""
    return {FieldPath.parse(text): value for text, value in fields.items()}


def by_text(fields: Mapping[FieldPath, object]) -> dict[str, object]:
    """Give fields by their texts, as documents do."""
    return {str(path): value for path, value in fields.items()}
