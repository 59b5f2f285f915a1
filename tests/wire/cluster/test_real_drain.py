"""A drain against a real control plane: generated pods and budgets leave, or stay, as was foretold."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import closing, suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.drain.reading import read_occupants
from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.kube.api_types import BUDGETS, JOBS, PODS, ApiType
from gpukube.cluster.kube.client import connect_kube
from gpukube.core.jsontree import text
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, KubeAccess, Settings
from gpukube.engine.change.draining import DrainConsent, drain_pool
from gpukube.engine.run.context import Pace, Run
from gpukube.engine.run.session import Session
from gpukube.errors import DrainTimeout
from gpukube.sandbox.kube.controlplane import ControlPlane
from gpukube.sandbox.kube.nodes.shapes import NodeShape
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER
from tests.drained_pods import differences, workloads
from tests.draining import NEW, OLD, PLAN
from tests.waiting import PATIENCE_S, wait_for
from tests.wire.cluster.conftest import TOKEN
from tests.wire.cluster.test_real_charts import ASSETS, control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.kube.evictions import EvictionAnswer
    from gpukube.sandbox.kube.cluster import KubeCluster

pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(
        ASSETS is None or not ControlPlane(ASSETS, TOKEN).has("kube-controller-manager"),
        reason="KUBEBUILDER_ASSETS names no directory with etcd, kube-apiserver and kube-controller-manager",
    ),
]
KINDS = {
    "deployments": ApiType("apps", "v1", "Deployment", "deployments"),
    "statefulsets": ApiType("apps", "v1", "StatefulSet", "statefulsets"),
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
    for name, pool in NODES.items():
        if name.startswith(prefix):
            labels = {"fake.example/pool": pool, OWNER_LABEL: "vision", POOL_LABEL: "a100"}
            shape = NodeShape(name, labels=labels, boot_s=1, cpu=64)
            asyncio.run_coroutine_threadsafe(cluster.add_node(shape), loop).result(PATIENCE_S)
    wait_for(lambda: {node.name for node in kube.nodes() if node.ready} >= {n for n in NODES if n.startswith(prefix)})


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
