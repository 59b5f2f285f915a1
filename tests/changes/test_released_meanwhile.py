"""A pool that another process releases while `pool apply` runs: no label or taint of ours comes back on its nodes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.core_v1 import Node

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.changes.world import CLOUDS, SMALL, prepare, spec
from tests.e2e.stage import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.changes.world import Document, World

WAITS_S = 3.0
OWNER, POOL, TEAM = "gpukube.io/owner", "gpukube.io/pool", "team"


@pytest.fixture(params=CLOUDS)
def cloud(world: World, request: pytest.FixtureRequest) -> Iterator[str]:
    """Have a cluster on one cloud, called like it."""
    world.reset()
    yield request.param
    daemon.clear_faults(world.info)


def made(world: World, cloud: str) -> Document:
    """Have a pool with two nodes; returns its spec."""
    pool = {"name": "gone", "nodes": {"count": 2}, "labels": {TEAM: "vision"}, **SMALL[cloud]}
    document = spec("ml", {cloud: world.make(cloud, cloud)}, [pool])
    assert world.create(document)["gone"].error is None
    return document


def labels(world: World, cloud: str) -> list[dict[str, str]]:
    """Return the labels of the nodes of the pool that was made."""
    with inside(world.info, cloud) as there:
        found = {node.metadata.name: node.metadata.labels for node in there.client.list(Node) if node.metadata}
    return [found[name] or {} for name in world.nodes(cloud)["gone"]]


def release(world: World, document: Document) -> None:
    """Release the pool, as another process would."""
    assert world.release(["gone"], document)["gone"].outcome == "done"


def apply(
    world: World, document: Document, confirm: Callable[[Sequence[api.ClusterPlan]], None] = lambda _plans: None
) -> None:
    """Apply the spec, in a run that waits for the devices of a pool for no longer than a moment."""
    run = world.run()
    hurried = replace(run, pace=replace(run.pace, verify_s=WAITS_S))
    reports = api.apply(prepare(document), hurried, api.Scope(), confirm=confirm)
    assert [report.error for report in reports] == [None]


def require_left_alone(world: World, cloud: str) -> None:
    """The nodes have no mark of ours."""
    assert [sorted({OWNER, POOL} & one.keys()) for one in labels(world, cloud)] == [[], []]


def test_apply_when_its_pool_is_released_after_the_plan_then_no_lost_label_is_restored(
    world: World, cloud: str
) -> None:
    document = made(world, cloud)
    name = world.nodes(cloud)["gone"][0]
    with inside(world.info, cloud) as there:
        lost = {"metadata": {"labels": {OWNER: None, POOL: None, TEAM: None}}}
        there.client.patch(Node, name, lost)
    apply(world, document, lambda _plans: release(world, document))
    require_left_alone(world, cloud)


def test_apply_when_its_pool_is_released_between_its_reads_of_cloud_and_cluster_then_no_label_comes_back(
    world: World, cloud: str
) -> None:
    document = made(world, cloud)
    daemon.add_fault(world.info, "hang", service="kube", method="GET", path="/api/v1/nodes", times=1)
    with ThreadPoolExecutor() as threads:
        applied = threads.submit(apply, world, document)
        wait_for(lambda: any(one["struck"] for one in daemon.list_faults(world.info)))
        release(world, document)
        daemon.clear_faults(world.info)
        applied.result()
    require_left_alone(world, cloud)
