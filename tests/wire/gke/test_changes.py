"""Every edit of a live pool, on a running sandbox through the real SDK: one change, its calls, and nothing else moved.

Runs over the table of edits, which has one for every row of the updatability tables.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Settings
from gpukube.sandbox import daemon
from gpukube_gke.client import GkeCloud
from gpukube_gke.updates import INTENT_ROWS, NATIVE_ROWS
from tests.unit.gpukube_gke.edits import EDITS, Edit, native_fields
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import ClassifiedChange, Desired, Observed, Operation, Request, Target
    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 50000.0
DEADLINE_S = 20.0
CALLS = 6
MUTABLE = ("in-place", "disruptive")
UNTOLD = {"etag", "status", "instanceGroupUrls", "autoscaling.enabled"}
"""What the service writes by itself; an autoscaler that comes or goes is told by its bounds."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    state_dir = tmp_path_factory.mktemp("sandbox")
    info = daemon.up(state_dir, SPEED)
    daemon.add_gke_cluster(info, "ml-prod", "us-central1", "train", options={"releaseChannel": ""})
    yield info
    daemon.down(state_dir)


@pytest.fixture
def sandbox(running: SandboxInfo) -> Iterator[SandboxInfo]:
    daemon.configure(running, speed=SPEED)
    yield running
    daemon.clear_faults(running)


@pytest.fixture(scope="module")
def live(running: SandboxInfo) -> Iterator[GkeCloud]:
    settings = Settings({"gke": running.gke_url, "gke-grpc": running.gke_grpc}, sandbox=True, request_timeout_s=10.0)
    cloud = PROVIDER.connect(CLUSTER, settings)
    assert isinstance(cloud, GkeCloud)
    yield cloud
    cloud.close()


@pytest.fixture
def cloud(sandbox: SandboxInfo, live: GkeCloud) -> Iterator[GkeCloud]:
    yield live
    daemon.clear_faults(sandbox)
    for pool in live.pools():
        if pool.owner:
            finish(live, live.send(PROVIDER.delete_request(CLUSTER, pool)))


def finish(cloud: GkeCloud, operation: Operation) -> None:
    until = time.monotonic() + DEADLINE_S
    while not (progress := cloud.poll(operation)).done:
        if progress.error:
            raise progress.error
        assert time.monotonic() < until, progress
        time.sleep(0.005)


def create(cloud: GkeCloud, target: Target) -> Desired:
    desired = desire(target)
    finish(cloud, cloud.send(desired.create))
    return desired


def find(cloud: GkeCloud, name: str = "edited") -> Observed:
    found = cloud.pool(name)
    assert found is not None
    return found


def planned(cloud: GkeCloud, desired: Desired) -> tuple[ClassifiedChange, ...]:
    return plan_pool(PROVIDER, desired, cloud.pools()).changes


def bring_about(cloud: GkeCloud, desired: Desired) -> list[Request]:
    """Do what the engine does, until nothing differs; gives the calls."""
    sent: list[Request] = []
    while changes := diff_fields(desired.fields, find(cloud).fields):
        assert len(sent) < CALLS, changes
        sent.append(PROVIDER.update_requests(desired, find(cloud), changes)[0])
        finish(cloud, cloud.send(sent[-1]))
    return sent


def moved(before: Observed, after: Observed) -> set[str]:
    """Paths of the pool, as the API shows it, that are not what they were."""
    old, new = native_fields(before.native), native_fields(after.native)
    return {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)} - UNTOLD


def machines(info: SandboxInfo, pool: str = "edited") -> list[str]:
    clusters = cast("list[dict[str, list[dict[str, object]]]]", daemon.status(info)["clusters"])
    (found,) = [one for cluster in clusters for one in cluster["pools"] if one["name"] == pool]
    return cast("list[str]", found["nodes"])


def names_of(edits: dict[str, Edit], *kinds: str) -> list[str]:
    return [name for name, edit in edits.items() if edit.kind in kinds]


@pytest.mark.parametrize("name", names_of(EDITS, *MUTABLE))
def test_edit_when_brought_about_is_one_change_and_moves_nothing_else(
    sandbox: SandboxInfo, cloud: GkeCloud, name: str
) -> None:
    edit = EDITS[name]
    create(cloud, edit.base)
    before, old = find(cloud), machines(sandbox)
    (change,) = planned(cloud, desire(edit.target))
    assert (change.change.field, change.row.kind) == (edit.field, edit.kind)

    plan = plan_pool(PROVIDER, desire(edit.target), cloud.pools())
    calls = bring_about(cloud, desire(edit.target))
    after = find(cloud)

    assert [call.operation for call in calls] == [call.operation for call in plan.requests]
    assert calls[0] == plan.requests[0]
    assert calls[0].operation == change.row.call
    assert plan_pool(PROVIDER, desire(edit.target), cloud.pools()).action == "no-op"
    stray = {path for path in moved(before, after) if not f"{path}.".startswith(tuple(f"{m}." for m in edit.moves))}
    assert stray == set()
    assert GPU_TAINT in after.effective_taints
    if edit.kind == "in-place":
        assert set(machines(sandbox)) >= set(old)


@pytest.mark.parametrize("name", names_of(EDITS, "replace", "refused"))
def test_edit_when_it_cannot_be_in_place_is_planned_as_such(cloud: GkeCloud, name: str) -> None:
    edit = EDITS[name]
    create(cloud, edit.base)
    plan = plan_pool(PROVIDER, desire(edit.target), cloud.pools())

    assert [(c.change.field, c.row.kind) for c in plan.changes] == [(edit.field, edit.kind)]
    assert plan.action == "replace"
    assert [request.operation for request in plan.requests] == ["delete_node_pool", "create_node_pool"]


def test_rows_when_compared_with_the_edits_have_one_each() -> None:
    mutable = {field for field, row in (INTENT_ROWS | NATIVE_ROWS).items() if row.kind in MUTABLE}

    assert mutable <= {edit.row for edit in EDITS.values() if edit.kind in MUTABLE}


ROLLING = ("instanceType, the same GPUs", "disk.type", "image", "sharing.mps.replicas", "driver", "tags", "gke.version")


@pytest.mark.parametrize("name", ROLLING)
def test_edit_when_it_makes_the_nodes_again_leaves_none_of_the_old(
    sandbox: SandboxInfo, cloud: GkeCloud, name: str
) -> None:
    create(cloud, EDITS[name].base)
    old = machines(sandbox)
    bring_about(cloud, desire(EDITS[name].target))

    assert len(machines(sandbox)) == len(old)
    assert not set(old) & set(machines(sandbox))
