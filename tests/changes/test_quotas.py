"""The quotas that a plan shows are those that clouds hold pools to: at the limit a pool is made, a node more is not.

SDKs and REST APIs over sockets, against the sandbox, for machines on demand, spot machines and newer families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gpukube import api
from gpukube.engine import looking
from gpukube.engine.run.session import open_sessions
from gpukube.errors import GpukubeError, QuotaError
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.changes.world import prepare, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.core.quotas import QuotaUse
    from gpukube.core.values import PoolPlan, Progress
    from tests.changes.world import Document, World

PLACES: dict[str, dict[str, str]] = {
    "eks": {"account": "111122223333", "region": "us-east-1"},
    "aks": {"subscription": "11111111-2222-3333-4444-555555555555", "location": "eastus"},
    "gke": {"project": "ml-prod", "region": "us-central1"},
}
SPOT = {"capacity": {"type": "spot"}}


@dataclass(frozen=True)
class Case:
    """Pools that one quota limits.

    Attributes:
        cloud: Where.
        machine: In the spec.
        quota: As the cloud calls it.
        per_node: What a node counts.
        named: What the refusal has of it.
        unused: Use as it is read while there is none.
    """

    cloud: str
    machine: dict[str, Any]
    quota: str
    per_node: int
    named: str
    unused: int | None = 0


T4 = {"instanceType": "n1-standard-4", "gpu": {"model": "T4", "count": 1}, "zones": ["us-central1-a"]}
A100 = {"instanceType": "a2-highgpu-1g", "zones": ["us-central1-a"], **SPOT}
H100 = {"instanceType": "a3-megagpu-8g", "zones": ["us-central1-a"]}
FAMILY = "GPUS_PER_GPU_FAMILY"
CASES = {
    "eks on demand": Case("eks", {"instanceType": "g6.xlarge"}, "L-DB2E81BA", 4, "L-DB2E81BA"),
    "eks spot": Case("eks", {"instanceType": "g6.xlarge", **SPOT}, "L-3819A6DF", 4, "L-3819A6DF"),
    "eks newer": Case("eks", {"instanceType": "p5.4xlarge"}, "L-417A185B", 16, "L-417A185B"),
    "aks on demand": Case(
        "aks", {"instanceType": "Standard_NC4as_T4_v3"}, "Standard NCASv3_T4 Family", 4, "Standard NCASv3_T4 Family"
    ),
    "aks spot": Case(
        "aks", {"instanceType": "Standard_NC4as_T4_v3", **SPOT}, "lowPriorityCores", 4, "LowPriorityCores"
    ),
    "aks newer": Case(
        "aks", {"instanceType": "Standard_ND96isr_H200_v5"}, "standardNDISRH200V5Family", 96, "NDISRH200V5Family"
    ),
    "gke on demand": Case("gke", T4, "NVIDIA_T4_GPUS", 1, "NVIDIA_T4_GPUS"),
    "gke spot": Case("gke", A100, "PREEMPTIBLE_NVIDIA_A100_GPUS", 1, "PREEMPTIBLE_NVIDIA_A100_GPUS"),
    "gke newer": Case("gke", H100, f"{FAMILY}:NVIDIA_H100_MEGA", 8, FAMILY, unused=None),
}


def planned(world: World, documents: Iterable[Document]) -> api.ClusterPlan:
    (plan,) = looking.plan(prepare(*documents), world.run(), api.Scope(skip_cluster=True, quotas=True))
    return plan


def use_of(plan: api.ClusterPlan, case: Case) -> QuotaUse:
    (use,) = (use for use in plan.quotas if use.quota.name == case.quota)
    return use


def made(world: World, pool: PoolPlan) -> GpukubeError | None:
    """Send the creation of a plan and follow it to its end; gives why it failed."""
    seen: list[Progress] = []
    with open_sessions([pool.cluster], world.run()) as sessions:
        cloud = sessions[pool.cluster.key].cloud
        try:
            operation = cloud.send(pool.requests[0])
        except GpukubeError as error:
            return error

        def ended() -> bool:
            seen.append(cloud.poll(operation))
            return seen[-1].done or seen[-1].error is not None

        wait_for(ended)
        return seen[-1].error


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_quota_when_planned_then_what_the_cloud_enforces(world: World, case: Case) -> None:
    name = f"q{list(CASES.values()).index(case)}"
    clusters = {"here": world.make(case.cloud, name)}
    daemon.declare(world.info, case.cloud, **PLACES[case.cloud], quotas={case.quota: 2 * case.per_node})
    full = planned(world, [spec("ml", clusters, [{"name": "full", "nodes": {"count": 2}, **case.machine}])])
    use = use_of(full, case)
    assert not use.is_short
    assert (use.needed, use.reading.used, use.reading.limit) == (2 * case.per_node, case.unused, 2 * case.per_node)
    assert made(world, full.pools[0]) is None
    more = planned(world, [spec("ml", clusters, [{"name": "more", "nodes": {"count": 1}, **case.machine}])])
    use = use_of(more, case)
    assert use_of(more, case).is_short
    assert (use.needed, use.reading.used, use.free) == (case.per_node, 2 * case.per_node, 0)
    advised = ["dra-advised"] if case.cloud == "eks" else []
    assert [one.code for one in more.diagnostics] == [*advised, "quota-short"]
    refused = made(world, more.pools[0])
    assert isinstance(refused, QuotaError), refused
    (problem,) = refused.diagnostics
    assert case.named in f"{problem.seen} {problem.fix} {problem.why}"


@pytest.mark.parametrize(
    ("cloud", "path", "code", "unknown"),
    [
        ("eks", "Action=GetServiceQuota$", "AccessDeniedException", "limit"),
        ("eks", "Action=DescribeInstances$", "UnauthorizedOperation", "used"),
        ("aks", "/usages", "AuthorizationFailed", "limit used"),
        ("gke", "/regions/us-central1", "PERMISSION_DENIED", "limit used"),
    ],
)
def test_quota_when_it_may_not_be_read_then_not_checked_and_never_zero(
    world: World, cloud: str, path: str, code: str, unknown: str
) -> None:
    clusters = {"here": world.make(cloud, "denied")}
    case = CASES[f"{cloud} on demand"]
    fault = {"status": 403, "path": path, "code": code, "times": 9}
    daemon.add_fault(world.info, "status", **fault)
    try:
        plan = planned(world, [spec("ml", clusters, [{"name": "gpu", "nodes": {"count": 1}, **case.machine}])])
    finally:
        daemon.clear_faults(world.info)
    use = use_of(plan, case)
    assert plan.error is None
    assert ("limit" in unknown) == (use.reading.limit is None)
    assert ("used" in unknown) == (use.reading.used is None)
    assert use.reading.unknown
