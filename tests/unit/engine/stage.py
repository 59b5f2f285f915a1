"""A cluster in memory for the tests of the engine: the fake cloud, and an inside that depends on the time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from gpukube.cluster.helm.chart import ChartSource
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.values import ClusterFacts, Settings
from gpukube.engine.change.apply import Consent, apply_pools, require_consent
from gpukube.engine.change.create import create_pools
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.run.context import Pace, Run
from gpukube.engine.run.session import Session
from gpukube.errors import GpukubeError
from gpukube.testing.clock import ManualClock
from gpukube.testing.fakes import FakeProvider, FakeWorld
from tests.builders import CLUSTER
from tests.unit.cluster.builders import installed, node_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired
    from gpukube.engine.run.events import Event
    from gpukube.engine.run.report import ClusterReport

PACE = Pace(timeout_s=600, poll_s=5, settle_s=60, verify_s=300)
RESUME = "gpukube pool create -f pools.yaml"


@dataclass
class FakeKube:
    """What is seen inside, at any time, whatever is asked for; an error is raised by every list."""

    clock: ManualClock
    seen_at: Callable[[float], Snapshot | GpukubeError]
    log: tuple[str, ...] | GpukubeError = ()

    def _seen(self) -> Snapshot:
        seen = self.seen_at(self.clock.now())
        if isinstance(seen, GpukubeError):
            raise seen
        return seen

    def time(self) -> float:
        return self.clock.now()

    def nodes(self) -> object:
        return self._seen().nodes

    def daemonsets(self) -> object:
        return self._seen().daemonsets

    def deployments(self) -> object:
        return self._seen().deployments

    def pods(self, *_asked: object) -> object:
        return self._seen().pods

    def pod_log(self, *_asked: object) -> tuple[str, ...]:
        if isinstance(self.log, GpukubeError):
            raise self.log
        return self.log

    def config_map(self, *_asked: object) -> object:
        return self._seen().config_map

    def release_secrets(self, *_asked: object, **_how: object) -> tuple[()]:
        return ()

    def objects(self, *_asked: object, **_how: object) -> tuple[()]:
        return ()

    def pods_on(self, *_asked: object) -> tuple[()]:
        return ()

    def all_pods_on(self, *_asked: object) -> tuple[()]:
        return ()

    def object_names(self, *_asked: object) -> None:
        return None

    def resource_slices(self) -> tuple[()]:
        return ()

    def close(self) -> None:
        return None


@dataclass
class Stage:
    """One cluster, one run."""

    pools: list[Desired]
    clock: ManualClock = field(default_factory=ManualClock)
    world: FakeWorld = field(default_factory=FakeWorld)
    seen_at: Callable[[float], Snapshot | GpukubeError] | None = None
    said: list[Event] = field(default_factory=list)
    log: tuple[str, ...] | GpukubeError = ()

    def __post_init__(self) -> None:
        self.provider = FakeProvider({CLUSTER.key: self.world})
        self.session = self.open_session()
        self.run = Run(Settings(), ChartSource(), os.environ, RESUME, PACE, clock=self.clock, listen=self.said.append)

    def open_session(self) -> Session:
        kube = FakeKube(self.clock, self.seen_at or self._all_well, self.log)
        cloud = self.provider.connect(CLUSTER, Settings())
        return Session(CLUSTER, self.provider, cloud, Settings(), None, cast("Kube", kube))

    def plan(self, *, adopt: bool = False, prune: bool = False) -> ClusterPlan:
        live = self.session.cloud.pools()
        plans = tuple(plan_pool(self.provider, desired, live, adopt=adopt) for desired in self.pools)
        declared = {desired.target.name for desired in self.pools}
        extra = [pool for pool in live if pool.owner and pool.name not in declared] if prune else []
        plans += tuple(plan_removal(self.provider, CLUSTER, pool) for pool in extra)
        facts = ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")
        return ClusterPlan(CLUSTER, facts, plans, live, desired=tuple(self.pools))

    def make(self) -> None:
        """Create all pools, and forget how."""
        create_pools([self.plan()], {CLUSTER.key: self.session}, self.run)
        self.world.requests.clear()
        self.said.clear()
        self.run = replace(self.run)  # another one: what it has sent counts from here

    def apply(self, consent: Consent = Consent(), **scope: bool) -> ClusterReport:
        """Plan and apply."""
        plan = self.plan(**scope)
        require_consent([plan], consent)
        (report,) = apply_pools([plan], {CLUSTER.key: self.session}, self.run)
        return report

    def sent(self) -> list[str]:
        return [request.operation for request in self.world.requests]

    def messages(self) -> list[str]:
        return [event.message for event in self.said]

    def _all_well(self, _now: float) -> Snapshot:
        nodes = [node_of(pool, f"node-{at}") for at, pool in enumerate(self.pools)]
        return installed(self.pools, *nodes)
