"""Several runs at once for the same family: one alternative has the nodes in the end, and never two at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from time import sleep
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.coordination_v1 import Lease

from gpukube import api
from gpukube.engine.change.family_lease import FamilyLease, Timing
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.alternatives.stage import NODES, made_requests, ranked
from tests.changes.world import prepare, spec
from tests.cli.harness import NAMESPACE
from tests.e2e.stage import inside

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.alternatives.stage import Ended, Families
    from tests.changes.world import Document

COUNT = 60
EACH_RUN = 9


@pytest.mark.turns(9)
@pytest.mark.parametrize(
    "number", [*range(EACH_RUN), *(pytest.param(one, marks=pytest.mark.slow) for one in range(EACH_RUN, COUNT))]
)
def test_runs_when_two_or_three_work_at_once_then_one_alternative_has_the_nodes(world: Families, number: int) -> None:
    random = Random(number)  # noqa: S311 - not cryptography
    cloud = random.choice(["eks", "aks", "gke"])
    world.begin(cloud)
    none = random.randint(0, 2)
    for rank in range(none):
        returns = {float(random.randint(100, 6000)): NODES} if random.random() < 0.3 else None
        world.stock(cloud, rank, 0, returns)
    document = spec("team", world.there, [ranked(cloud)])
    pauses = [random.random() * 1.5 for _ in range(random.randint(2, 3))]
    commands = [random.choice([create, apply]) for _ in pauses]
    with world.watched() as seen, ThreadPoolExecutor() as threads:
        started = [threads.submit(run, world, document, pause) for run, pause in zip(commands, pauses, strict=True)]
        ended = [one.result() for one in started]
    assert max(map(len, seen)) <= 1, seen
    assert [report.error for report in ended] == [None] * len(ended)
    left = world.sizes()
    assert list(left.values()) == [NODES], left
    assert {report.outcome for report in ended} <= {"done", "unchanged"}, ended
    assert {f"{cloud}/{report.name}" for report in ended} == set(left)
    if all(one["then"] == {} for one in daemon.list_stock(world.info)):
        assert left == {f"{cloud}/m{none}": NODES}
        assert [name.rpartition("/")[2] for name, _ in made_requests(world.info, 0)][-1] == f"m{none}"


@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_create_when_it_reads_the_pool_before_and_the_nodes_after_another_run_then_it_finds_them_as_declared(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    document = spec("team", world.there, [ranked(cloud)])
    second: list[Future[Ended]] = []

    def plan_a_second() -> None:
        daemon.add_fault(world.info, "hang", service="kube", method="GET", path="/api/v1/nodes", times=1)
        second.append(threads.submit(world.ran, document))
        wait_for(lambda: any(one["struck"] for one in daemon.list_faults(world.info)))

    with ThreadPoolExecutor() as threads:
        first = world.ran(document, run=world.run_until(f"m0 requesting {NODES} x", plan_a_second))
        daemon.clear_faults(world.info)
        ended = second[0].result()
    assert [(one.code, one.report.outcome) for one in (first, ended)] == [(0, "done"), (0, "unchanged")], ended
    assert world.sizes() == {f"{cloud}/m0": NODES}


def test_create_when_another_run_takes_the_lock_while_the_cluster_is_busy_then_nothing_is_sent_any_more(
    world: Families, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FamilyLease, "timing", Timing(duration_s=1, deadline_s=0.6, renew_s=0.2, retry_s=0.05))
    world.begin("aks")
    document = spec("team", world.there, [ranked("aks")])
    daemon.add_fault(world.info, "background", cluster="aks", seconds=1e6, state="Updating")

    def take() -> None:
        with inside(world.info, "aks") as there:
            (lease,) = there.client.list(Lease, namespace=NAMESPACE)
            taken = {"spec": {"holderIdentity": "another"}}
            there.client.patch(Lease, str(lease.metadata and lease.metadata.name), taken, namespace=NAMESPACE)
        sleep(1.0)
        daemon.clear_faults(world.info)

    lost = world.ran(document, run=world.run_until("m0 waiting: ", take))
    assert lost.report.error is not None, lost
    assert [one.code for one in lost.report.error.diagnostics] == ["lease-lost"], lost
    assert world.sizes() == {}


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "aks"])
def test_create_when_its_config_entry_is_dropped_between_two_attempts_then_the_next_one_restores_it(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud, sharing={"timeSlicing": {"replicas": 3}})])
    ended = world.ran(document, run=world.run_until("m0 no machines", partial(delete, world, document)))
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended
    assert ended.report.proof is not None
    assert ended.report.proof.total == {"nvidia.com/gpu": 3 * NODES}


def delete(world: Families, document: Document) -> api.PoolReport:
    """Delete the one family of a spec by its name."""
    (report,) = (pool for one in api.delete(prepare(document), world.run(), ["m0"]) for pool in one.pools)
    return report


def create(world: Families, document: Document, pause: float) -> api.PoolReport:
    """Create the one family of a spec, a moment later."""
    sleep(pause)
    return world.ran(document)[1]


def apply(world: Families, document: Document, pause: float) -> api.PoolReport:
    """Apply the spec instead."""
    sleep(pause)
    (report,) = world.apply(document).values()
    return report
