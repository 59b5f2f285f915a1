"""Worlds for tests of saved plans: declared pools, live ones, a release; and what a plan of them would do."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpukube.cluster.names import DRA_KINDS
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import FieldPath
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.values import ClusterFacts
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.saved import PlanOptions, Provenance, read_plan, require_fresh, saved_plan, write_plan
from gpukube.spec.loading.load import load_specs
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER
from tests.unit.cluster.builders import desire, installed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpukube.cluster.state.node_drift import NodeRepair
    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.values import ClusterRef, Desired, Observed
    from gpukube.engine.saved import SavedPlan
    from gpukube.spec.loading.load import LoadedSpec

MADE = Provenance(sandbox=False, endpoints={}, created="2026-11-01T08:00:00Z", chart_digest="", version="0.1.0")
SPEC = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters:
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
defaults:
  labels: {team: "${TEAM}"}
pools:
  - name: a100mig
    clusters: [train-aks]
    instanceType: Standard_ND96asr_v4
    nodes: {count: 1}
"""
PROVIDER = FakeProvider()
NO_OPTIONS = PlanOptions()
FACTS = ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")


@dataclass(frozen=True)
class World:
    """One cluster: what is wanted of it, and how it is."""

    desired: tuple[Desired, ...] = field(default_factory=lambda: (desire(),))
    live: tuple[Observed, ...] = ()
    options: PlanOptions = NO_OPTIONS
    facts: ClusterFacts = FACTS
    seen: Snapshot | None = None
    cluster: ClusterRef = CLUSTER
    provenance: Provenance = MADE
    repairs: tuple[NodeRepair, ...] = ()
    orders: tuple[OrderPlan, ...] = ()

    def plan(self) -> ClusterPlan:
        """Plan it, as the engine does."""
        adopt, prune = self.options.adopt, self.options.prune
        pools = tuple(plan_pool(PROVIDER, desired, self.live, adopt=adopt) for desired in self.desired)
        declared = {(desired.target.owner, desired.target.pool) for desired in self.desired}
        strays = tuple(o for o in self.live if o.owner == "ml-platform" and (o.owner, o.pool) not in declared)
        removed = tuple(plan_removal(PROVIDER, self.cluster, o) for o in strays) if prune else ()
        release = plan_release(self.desired, self.seen or installed(self.desired))
        stay = () if prune else strays
        return ClusterPlan(
            self.cluster,
            self.facts,
            (*pools, *removed),
            self.live,
            stay,
            release=release,
            dra_release=plan_release(self.desired, self.seen or Snapshot(), kinds=DRA_KINDS),
            repairs=self.repairs,
            orders=self.orders,
        )

    def with_live(self, number: int = 0, **changes: object) -> World:
        """Change one live pool."""
        live = list(self.live)
        live[number] = replace(live[number], **changes)  # type: ignore[arg-type]  # test data
        return replace(self, live=tuple(live))

    def with_fields(self, number: int = 0, **fields: object) -> World:
        """Change fields of one live pool; "__" stands for a dot."""
        changed = {FieldPath(*name.split("__")): value for name, value in fields.items()}
        return self.with_live(number, fields={**self.live[number].fields, **changed})

    def save(self, directory: Path) -> SavedPlan:
        """Plan it, write that down, and read it again."""
        path = directory / "plan.json"
        write_plan(self.document(directory), str(path))
        return read_plan(str(path))

    def document(self, directory: Path) -> Mapping[str, object]:
        """Plan it and make the document."""
        return saved_plan([self.plan()], loaded(directory), self.options, self.provenance)


def loaded(directory: Path) -> tuple[LoadedSpec, ...]:
    """Load a spec, whatever the world is: plans are compared, not specs."""
    path = directory / "pools.yaml"
    path.write_text(SPEC)
    return load_specs([str(path)], sets=["pools.a100mig.nodes.count=2"], environ={"TEAM": "vision"})


def require_same(saved: SavedPlan, world: World) -> None:
    """Compare a saved plan with the world as it is now."""
    require_fresh(saved, [world.plan()], world.provenance)
