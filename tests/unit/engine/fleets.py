"""Fleets for tests: many clusters in every state that a plan can find, as one run sees them and as shards do."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from gpukube.core.fields import label
from gpukube.core.plan import plan_pool
from gpukube.core.prices import PriceBook
from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaDraw, QuotaReading
from gpukube.core.shards import Shard
from gpukube.core.values import ClusterRef, Nodes, Settings
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.shards import shard_part
from gpukube.engine.looking import diff_exit_code, plan_exit_code
from gpukube.engine.plan.planning import ClusterPlan, Scope
from gpukube.engine.plan.prepare import Filters, Prepared
from gpukube.engine.plan.quotas import with_quotas
from gpukube.engine.plan.silencing import Silenced
from gpukube.engine.run.session import Session
from gpukube.errors import AccessError, CloudError, ClusterError, Finding, Where
from gpukube.spec.address import address_with
from gpukube.testing.fakes import FakeCloud, FakeProvider, FakeWorld
from tests.builders import SUBSCRIPTION, make_observed
from tests.unit.cluster.builders import desire
from tests.unit.engine.worlds import FACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from gpukube.core.values import Capacity, PoolPlan
    from gpukube.errors import GpukubeError
    from gpukube.gpu.catalog import Machine

    Json = dict[str, Any]

MACHINES = ("Standard_ND96asr_v4", "Standard_NV6ads_A10_v5", "Standard_NV12ads_A10_v5", "Standard_NC4as_T4_v3")
"""A third and a sixth of a GPU are among them."""
PROVIDER = FakeProvider()
WARNING = Finding("some-code", Where("fleet.yaml", 3, 4), "mind this", severity="warning")
SILENCED = Silenced(Finding("costly", Where("fleet.yaml", 9, 1), "dear", severity="hint"), "known")
NOTE = "aks/nowhere-1: prices could not be read: no answer"
TIGHT, WIDE = QuotaReading(limit=100, used=4), QuotaReading(limit=1e6, used=0.0)


def _draws(cluster: ClusterRef, location: str, machine: Machine, capacity: Capacity) -> tuple[QuotaDraw, ...]:
    del capacity
    place = f"{cluster.identity['subscription']}/{location}"
    return tuple(
        QuotaDraw(
            CloudQuota("aks", name, f"{name} GPUs", "GPUs", place, f"raise {name} to {{value}}", "here"), per_node
        )
        for name, per_node in (("tight", round(machine.gpus) or 1), ("wide", 4))
    )


class WithQuotas(FakeProvider):
    """A provider with two quotas in each region."""

    def __init__(self, worlds: Mapping[str, FakeWorld] | None = None) -> None:
        super().__init__(worlds)
        self.extras.quotas = CloudQuotas(_draws, lambda _desired, _observed, _changes: 1)


class Limits(FakeCloud):
    """A cloud in which one quota is soon used up."""

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        return {quota: TIGHT if quota.name == "tight" else WIDE for quota in asked}


@dataclass(frozen=True)
class Fleet:
    """Clusters in the order of a spec, some of them without a pool."""

    plans: tuple[ClusterPlan, ...]
    idle: frozenset[str] = frozenset()
    spec: str = "sha256:0"

    def whole(self, kind: Literal["Plan", "Diff"] = "Plan") -> tuple[Json, int]:
        """Return the document of one run, and its exit code."""
        return self._run(kind, self.plans)

    def shards(self, total: int, kind: Literal["Plan", "Diff"] = "Plan") -> list[Json]:
        """Return the documents of all shards."""
        return [self.shard(Shard(index, total), kind) for index in range(1, total + 1)]

    def shard(self, shard: Shard, kind: Literal["Plan", "Diff"] = "Plan") -> Json:
        """Return the document of one shard."""
        places = {
            plan.cluster.key: place for place, plan in enumerate(self.plans, 1) if shard.takes(address(plan.cluster))
        }
        document, code = self._run(kind, [plan for plan in self.plans if plan.cluster.key in places])
        return {**document, "shard": part(shard, places, len(self.plans), code, spec=self.spec)}

    def _run(self, kind: Literal["Plan", "Diff"], plans: Sequence[ClusterPlan]) -> tuple[Json, int]:
        read = [plan for plan in plans if plan.cluster.key not in self.idle]
        if kind == "Plan":
            sessions = {
                plan.cluster.key: Session(plan.cluster, WithQuotas(), Limits(FakeWorld()), Settings()) for plan in read
            }
            read = list(with_quotas(read, sessions, Scope(), 1))
        document = plan_document(
            read,
            [WARNING],
            kind=kind,
            silenced=[SILENCED],
            not_read=[plan.cluster.key for plan in plans if plan.cluster.key in self.idle],
            prices=PriceBook(notes=(NOTE,)),
        )
        code = plan_exit_code(read) if kind == "Plan" else diff_exit_code(read, skip_cluster=False)
        return json.loads(json.dumps(document)), int(code)


def part(shard: Shard, places: Mapping[str, int], of: int, code: int, *, spec: str = "sha256:0") -> Json:
    """Describe a shard as a run does."""
    prepared = Prepared((), {}, {}, (), Filters(shard=shard), places=places, of=of)
    return {**shard_part(prepared, (), code), "spec": spec}


def address(cluster: ClusterRef) -> str:
    """Return what tells clusters apart."""
    return address_with(cluster.provider, {**cluster.identity, "name": cluster.name})


def cluster_ref(number: int) -> ClusterRef:
    """Name a cluster; keys are not in the order of names."""
    identity = {"subscription": SUBSCRIPTION, "resourceGroup": f"ml-{number % 3}"}
    return ClusterRef(f"c{number * 7 % 100_003}", "aks", f"train-{number}", identity)


def fleet_of(count: int, seed: int = 1, trouble: float = 0.1) -> Fleet:
    """Make a fleet of so many clusters."""
    luck = Random(seed)  # noqa: S311 - the same each time
    plans = tuple(_cluster(number, luck, trouble) for number in range(count))
    return Fleet(plans, frozenset(plan.cluster.key for plan in plans if not plan.desired))


ERRORS: tuple[Callable[[str], GpukubeError], ...] = (
    lambda key: CloudError("no answer", where=key, fix="try again"),
    lambda key: AccessError("not allowed", where=key, fix="ask for it"),
)


def _cluster(number: int, luck: Random, trouble: float) -> ClusterPlan:
    cluster = cluster_ref(number)
    pools = [_pool(cluster, f"p{n}", luck) for n in range(luck.choice((0, 1, 1, 2, 3)))]
    desired = tuple(pool.desired for pool in pools if pool.desired)
    facts = replace(FACTS, location=f"region-{number % 3}")
    if luck.random() < trouble and desired:
        return ClusterPlan(cluster, error=luck.choice(ERRORS)(cluster.key), desired=desired)
    found = ClusterPlan(cluster, facts, tuple(pools), desired=desired)
    if luck.random() < trouble:
        error = ClusterError("it does not answer", where=cluster.key)
        return replace(found, unknown=str(error), unreachable=error)
    note = Finding("some-cluster", Where(cluster.key), "odd", severity="warning")
    return replace(found, diagnostics=(note,) if luck.random() < trouble else ())


def _pool(cluster: ClusterRef, name: str, luck: Random) -> PoolPlan:
    least = luck.randrange(3)
    nodes = Nodes(least, least, least + luck.randrange(3), autoscaled=True)
    wanted = desire(cluster=cluster, pool=name, name=name, machine=luck.choice(MACHINES), nodes=nodes)
    match luck.randrange(4):
        case 0:
            return plan_pool(PROVIDER, wanted, ())
        case 1:
            changed = make_observed(wanted, fields={**wanted.fields, label("team"): "vision"})
            return plan_pool(PROVIDER, wanted, (changed,))
        case 2:
            return plan_pool(PROVIDER, wanted, (make_observed(wanted, owner="", pool="", labels={}),))
        case _:
            return plan_pool(PROVIDER, wanted, (make_observed(wanted, nodes=luck.choice((0, 1, 5))),))
