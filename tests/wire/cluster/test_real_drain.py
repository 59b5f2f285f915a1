"""A drain against a real control plane: generated pods and budgets leave, or stay, as was foretold."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.drain.reading import Controllers, read_occupants
from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.kube.api_types import BUDGETS, JOBS, PODS, REPLICATION_CONTROLLERS, STATEFUL_SETS, ApiType
from gpukube.cluster.kube.client import connect_kube
from gpukube.core.jsontree import text
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, KubeAccess, Settings
from gpukube.engine.change.draining import DrainConsent, Drained, drain_pool
from gpukube.engine.run.context import Pace, Run
from gpukube.engine.run.session import Session
from gpukube.errors import DrainTimeout, GpukubeError
from gpukube.testing.fakes import FakeProvider
from gpukube_sandbox.kube.controlplane import ControlPlane
from gpukube_sandbox.kube.nodes.shapes import NodeShape
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.builders import CLUSTER
from tests.drained_pods import differences, workloads
from tests.draining import NEW, OLD, PLAN, POOL, budget, deployment, pod_spec
from tests.wire.cluster.conftest import TOKEN
from tests.wire.cluster.test_real_charts import ASSETS, control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.kube.evictions import EvictionAnswer
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(
        ASSETS is None or not ControlPlane(ASSETS, TOKEN).has("kube-controller-manager"),
        reason="KUBEBUILDER_ASSETS names no directory with etcd, kube-apiserver and kube-controller-manager",
    ),
]
KINDS = {
    "deployments": ApiType("apps", "v1", "Deployment", "deployments"),
    "statefulsets": STATEFUL_SETS,
    "replicationcontrollers": REPLICATION_CONTROLLERS,
    "jobs": JOBS,
    "pods": PODS,
}
COUNT = 100
NODES = {"old-1": OLD, "old-2": OLD, "new-1": NEW, "new-2": NEW}


@pytest.fixture
def real() -> Iterator[tuple[KubeCluster, asyncio.AbstractEventLoop]]:
    with control_plane() as running:
        yield running


def join(cluster: KubeCluster, loop: asyncio.AbstractEventLoop, kube: LightKube, prefix: str) -> None:
    join_nodes(cluster, loop, kube, {name: (pool, "a100") for name, pool in NODES.items() if name.startswith(prefix)})


def join_nodes(
    cluster: KubeCluster, loop: asyncio.AbstractEventLoop, kube: LightKube, nodes: Mapping[str, tuple[str, str]]
) -> None:
    """Let nodes join, each with the cloud's and our name of its pool."""
    for name, (pool, mark) in nodes.items():
        labels = {"fake.example/pool": pool, OWNER_LABEL: "vision", POOL_LABEL: mark}
        shape = NodeShape(name, labels=labels, boot_s=1, cpu=64)
        asyncio.run_coroutine_threadsafe(cluster.add_node(shape), loop).result(PATIENCE_S)
    wait_for(lambda: {node.name for node in kube.nodes() if node.ready} >= nodes.keys())


def test_drain_when_pods_and_budgets_are_generated_then_a_real_control_plane_does_as_foretold(
    real: tuple[KubeCluster, asyncio.AbstractEventLoop],
) -> None:
    cluster, loop = real
    refused: list[tuple[str, str]] = []
    with closing(connect_kube(KubeAccess(cluster.kubeconfig("")), PATIENCE_S)) as kube:
        evict = kube.evict

        def recorded(namespace: str, pod: str, uid: str) -> EvictionAnswer:
            answer = evict(namespace, pod, uid)
            if answer.refusal:
                refused.append((f"{namespace}/{pod}", answer.refusal))
            return answer

        kube.evict = recorded  # type: ignore[method-assign]
        join(cluster, loop, kube, "old")
        count = 0
        for workload in workloads(Random(7), COUNT):  # noqa: S311 -- repeatable
            kind = KINDS[workload.plural]
            version = f"{kind.group}/{kind.version}" if kind.group else kind.version
            kube.create_object(kind, {"apiVersion": version, "kind": kind.kind, **workload.obj})
            for one in workload.budgets:
                kube.create_object(BUDGETS, {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **one})
            count += workload.pods

        def ways() -> dict[str, str]:
            found = read_occupants(kube, ["old-1", "old-2"], 0.0, allow_disruption=True)
            return {f"{v.pod} {v.pod.ready} {v.pod.phase}": v.way for v in found.left}

        seen: list[dict[str, str]] = [{}, {}, {}]

        def settled() -> bool:
            seen.append(ways())
            running = sum(pod.endswith("Running") for pod in seen[-1])
            return running == count and seen[-1] == seen[-2] == seen[-3]

        wait_for(settled, lambda: f"of {count} pods: {seen[-1]}", every_s=2.0)
        join(cluster, loop, kube, "new")
        provider = FakeProvider()
        session = Session(CLUSTER, provider, provider.connect(CLUSTER, Settings()), Settings(), None, kube)
        run = Run(Settings(), ChartSource(), {}, "again", Pace(timeout_s=600, poll_s=3, settle_s=60))
        foretold = read_occupants(kube, ["old-1", "old-2"], 0.0, allow_disruption=True).verdicts
        with suppress(DrainTimeout):
            drain_pool(PLAN, session, run, DrainConsent(allow_disruption=True, timeout_s=90))
        left = {text(pod, "metadata", "uid") for pod in kube.all_pods_on(["old-1", "old-2"])}
    shown = Counter(verdict.way for verdict in foretold)
    assert differences(foretold, left, refused) == []
    assert sum(shown.values()) >= COUNT
    assert min(shown[way] for way in ("free", "budget", "waits", "never")) > 0, shown


def create(kube: LightKube, plural: str, obj: JsonObject) -> None:
    kind = KINDS[plural]
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    obj["metadata"]["namespace"] = "default"
    kube.create_object(kind, {"apiVersion": version, "kind": kind.kind, **obj})


@dataclass
class Pool:
    """A pool of two nodes with pods of its own, and what became of its drain.

    Attributes:
        lasting: Its workloads that ignore cordons.
        evicted: Uids whose eviction was taken.
        result: What the drain has said, or its refusal.
        late: Whether pods are bound to its nodes while it is drained.
    """

    name: str
    lasting: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    result: Drained | GpukubeError | None = None
    late: bool = False

    @property
    def nodes(self) -> tuple[str, str]:
        return f"{self.name}-1", f"{self.name}-2"

    def fill(self, kube: LightKube, random: Random) -> int:
        """Make its workloads by a number; returns how many pods they have."""
        pods = 0
        for number in range(random.randint(1, 3)):
            name, replicas = f"{self.name}-w{number}", random.randint(1, 3)
            plural = random.choice(["deployments", "deployments", "statefulsets", "replicationcontrollers"])
            more: JsonObject = {"terminationGracePeriodSeconds": random.choice([0, 1, 5])}
            ignores = random.random() < 0.5
            if ignores and random.random() < 0.3:
                more["nodeName"] = self.nodes[0]
            elif ignores:
                more["tolerations"] = [{"operator": "Exists"}]
            guarded = random.random() < 0.4
            if ignores or (not guarded and random.random() < 0.3):  # has no place elsewhere
                more["nodeSelector"] = {POOL_LABEL: self.name}
            obj = deployment(name, replicas, **more)
            if plural == "statefulsets":
                obj["spec"] |= {"serviceName": name, "podManagementPolicy": random.choice(["Parallel", "OrderedReady"])}
            if plural == "replicationcontrollers":
                obj["spec"]["selector"] = {"app": name}
            if guarded:
                rule: JsonObject = random.choice(
                    [{"maxUnavailable": 1}, {"minAvailable": 0}, {"maxUnavailable": "50%"}]
                )
                kube.create_object(BUDGETS, {
                    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **budget(name, **rule),
                } | {"metadata": {"name": name, "namespace": "default"}})  # fmt: skip
            create(kube, plural, obj)
            self.lasting += [f"{KINDS[plural].kind} default/{name}"] if ignores else []
            pods += replicas
        return pods

    def disturb(self, kube: LightKube, random: Random) -> None:
        """Bind two more pods while it is drained, as a scheduler does that has not seen the cordon yet."""
        for number in range(2):
            time.sleep(random.uniform(0.5, 6))
            create(kube, "pods", {
                "metadata": {"name": f"{self.name}-late{number}"},
                "spec": pod_spec(nodeName=random.choice(self.nodes), terminationGracePeriodSeconds=1),
            })  # fmt: skip

    def drain(self, kube: LightKube) -> None:
        evict = kube.evict

        def recorded(namespace: str, pod: str, uid: str) -> EvictionAnswer:
            answer = evict(namespace, pod, uid)
            self.evicted += [uid] if not answer.refusal else []
            return answer

        kube.evict = recorded  # type: ignore[method-assign]
        provider = FakeProvider()
        session = Session(CLUSTER, provider, provider.connect(CLUSTER, Settings()), Settings(), None, kube)
        run = Run(Settings(), ChartSource(), {}, "again", Pace(timeout_s=900, poll_s=1, settle_s=60))
        plan = replace(PLAN, pool=self.name, name=self.name, observed=replace(POOL, name=self.name, pool=self.name))
        try:
            self.result = drain_pool(plan, session, run, DrainConsent(allow_disruption=True, timeout_s=600))
        except GpukubeError as error:
            self.result = error

    def wrong(self, kube: LightKube) -> Iterator[str]:
        """Describe what is there that the drain has not said."""
        if not isinstance(self.result, Drained):
            yield f"{self.name}: {self.result}"
            return
        found = read_occupants(kube, self.nodes, 0.0, allow_disruption=True, controllers=Controllers())
        said = {workload for workload, _ in self.result.ending}
        yield from (f"{self.name}: {v.pod}, but {self.result}" for v in found.left if v.pod.workload not in said)
        yield from (f"{self.name}: {one} was not expected to stay" for one in said - set(self.lasting))
        if len(self.evicted) != len(set(self.evicted)):
            yield f"{self.name}: evicted twice"


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
def test_drains_when_pods_tolerate_everything_come_late_or_have_budgets_then_never_empty_with_pods(
    real: tuple[KubeCluster, asyncio.AbstractEventLoop], count: int
) -> None:
    cluster, loop = real
    pools = [Pool(f"p{number}", late=number % 2 == 0) for number in range(count)]
    with ExitStack() as stack:
        kube = stack.enter_context(closing(connect_kube(KubeAccess(cluster.kubeconfig("")), PATIENCE_S)))
        homes = {node: (pool.name, pool.name) for pool in pools for node in pool.nodes}
        join_nodes(cluster, loop, kube, homes | {f"free-{number}": ("free", "free") for number in range(3)})
        pods = sum(pool.fill(kube, Random(number)) for number, pool in enumerate(pools))  # noqa: S311 -- repeatable
        seen: list[int] = []

        def settled() -> bool:
            seen.append(sum(pod.phase == "Running" for pod in kube.pods("default")))
            return len(seen) > 3 and len(set(seen[-3:])) == 1

        wait_for(settled, lambda: f"of {pods}: {seen[-3:]}", every_s=2.0)
        for first in range(0, count, 10):
            some = pools[first : first + 10]
            with ThreadPoolExecutor(20) as threads:
                for number, pool in enumerate(some, first):
                    own = stack.enter_context(closing(connect_kube(KubeAccess(cluster.kubeconfig("")), PATIENCE_S)))
                    threads.submit(pool.drain, own)
                    if pool.late:
                        threads.submit(pool.disturb, kube, Random(number))  # noqa: S311 -- repeatable
        first_look = [line for pool in pools for line in pool.wrong(kube)]
        time.sleep(15)
        assert first_look + [line for pool in pools for line in pool.wrong(kube)] == []
    words = Counter("empty" in str(pool.result) for pool in pools)
    found = f"{words[True]} empty, {words[False]} with pods that end with the node, 0 falsely empty"
    logging.getLogger(__name__).info("%s drains of %s pods: %s", count, pods, found)
    assert min(words[True], words[False]) > 0, words
