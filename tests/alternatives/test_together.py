"""Several runs at once for the same family: one alternative has the nodes in the end, and never two at a time."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from time import sleep
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.coordination_v1 import Lease

from gpukube import api
from gpukube.engine.change.family_lease import FamilyLease, Timing
from gpukube.errors import ExitCode
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


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_delete_when_a_run_goes_on_to_the_next_alternative_then_that_run_is_named(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    deleted: list[api.ClusterReport] = []
    run = world.run_until("m0 no machines", lambda: deleted.append(delete(world, document)))
    with world.watched() as seen:
        ended = world.ran(document, run=run)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended
    assert max(map(len, seen)) == 1, seen
    assert [pool.outcome for pool in deleted[0].pools] == ["done"]
    assert re.search(
        r"m0: the run \S+ may create it again; if it still runs, stop it and delete again", deleted[0].release
    )
    assert "may create it again" not in delete(world, document).release
    assert world.sizes() == {}


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_create_when_its_pool_is_deleted_before_it_gets_its_size_then_it_ends_and_nothing_is_left(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    ended = world.ran(document, run=world.run_until(f"m1 requesting {NODES} x", partial(delete, world, document)))
    assert ended.report.error is not None, ended
    assert (ended.code, ended.report.resume, world.sizes()) == (ExitCode.ERROR, "again", {}), ended
    assert world.ran(document).report.name == "m1"


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_delete_when_run_twice_at_once_then_both_find_it_deleted(world: Families, cloud: str) -> None:
    world.begin(cloud)
    document = spec("team", world.there, [ranked(cloud)])
    world.ran(document)
    with ThreadPoolExecutor() as threads:
        reports = [one.result() for one in [threads.submit(delete, world, document) for _ in range(2)]]
    assert {pool.outcome for report in reports for pool in report.pools} <= {"done", "unchanged"}, reports
    assert world.sizes() == {}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_rebalance_when_run_twice_at_once_then_the_pods_move_once(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    world.ran(document)
    world.stock(cloud, 0, NODES)
    mark = world.last_request()
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(world.applied, document, rebalance=True) for _ in range(2)]
        ended = [one.result() for one in runs]
    assert sorted((one.code, one.report.outcome) for one in ended) == [(0, "done"), (0, "unchanged")], ended
    assert [name.rpartition("/")[2] for name, _ in made_requests(world.info, mark)] == ["m0"]
    assert world.sizes() == {f"{cloud}/m0": NODES}


def delete(world: Families, document: Document) -> api.ClusterReport:
    """Delete the one family of a spec by its name."""
    (report,) = api.delete(prepare(document), world.run(), ["m0"])
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
