"""Updates that are disturbed: calls and operations that fail, runs that are killed, others who change the pool."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.plan import plan_pool
from gpukube.core.values import Nodes, Operation
from gpukube.errors import Busy, CapacityError, CloudError, Conflict, GpukubeError, Moved, QuotaError
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import make_target
from tests.wire.aks.lab import PROVIDER, desire, properties_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Desired, Observed, Progress, Request, Target
    from gpukube_aks.live.client import AksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Follow = Callable[[AksCloud, Operation], Progress]

BEFORE = make_target(
    "Standard_NC4as_T4_v3",
    labels={"team": "vision"},
    kubernetes_version="1.33.5",
    image="Ubuntu2404",
)
AFTER = replace(BEFORE, labels={"team": "audio"}, nodes=Nodes(2, 2, 2, autoscaled=False))
UPGRADED = replace(AFTER, kubernetes_version="1.34.2")
POOL = BEFORE.name
PUT = {"service": "arm", "method": "PUT", "path": f"agentPools/{POOL}"}
RUNS = 8


@pytest.fixture
def live(cloud: AksCloud, follow: Follow) -> Observed:
    """A pool that matches `BEFORE`."""
    assert follow(cloud, cloud.send(desire(BEFORE).create)).done
    return find(cloud)


def find(cloud: AksCloud) -> Observed:
    found = cloud.pool(POOL)
    assert found is not None
    return found


def first_request(target: Target, observed: Observed) -> Request:
    desired = desire(target)
    return PROVIDER.requests.update(desired, observed, diff_fields(desired.fields, observed.fields))[0]


def run(cloud: AksCloud, follow: Follow, desired: Desired) -> None:
    """One run of gpukube, as far as one pool goes: plan, send the first call, wait; an error ends it."""
    plan = plan_pool(PROVIDER, desired, cloud.pools())
    try:
        for request in plan.requests[:1]:
            follow(cloud, cloud.send(request))
    except GpukubeError:
        follow(cloud, Operation(POOL, "update"))
    if plan.observed is not None and plan.observed.state == "busy":
        follow(cloud, Operation(POOL, "update"))


def converge(cloud: AksCloud, follow: Follow, target: Target) -> int:
    """Run again until there is nothing to do; how often."""
    desired = desire(target)
    for count in range(RUNS):
        plan = plan_pool(PROVIDER, desired, cloud.pools())
        if plan.action == "no-op" and plan.observed is not None and plan.observed.state == "ready":
            return count
        run(cloud, follow, desired)
    pytest.fail(f"not converged after {RUNS} runs")


ONCE: dict[str, dict[str, object]] = {
    "throttled": {"action": "status", "status": 429, "headers": {"Retry-After": "0"}},
    "server error": {"action": "status", "status": 503},
    "busy": {
        "action": "status",
        "status": 409,
        "body": {"code": "OperationNotAllowed", "message": "Another operation (Updating) is in progress."},
    },
    "lost before": {"action": "drop-before"},
    "lost after": {"action": "drop-after"},
}


@pytest.mark.turns(2)
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("fault", ONCE)
@pytest.mark.usefixtures("live")
def test_update_when_a_put_is_disturbed_then_the_next_runs_converge(
    fault: str, nth: int, cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    """The second PUT is that of the upgrade; a repeated one meets another etag and changes nothing twice."""
    parts = {**ONCE[fault], **PUT, "nth": nth}
    daemon.add_fault(sandbox, str(parts.pop("action")), **parts)
    converge(cloud, follow, UPGRADED)

    assert diff_fields(desire(UPGRADED).fields, find(cloud).fields) == ()
    assert sorted(pool.name for pool in cloud.pools()) == [POOL, "nodepool1"]


@pytest.mark.usefixtures("live")
def test_run_when_killed_after_every_call_then_the_next_one_goes_on(cloud: AksCloud, follow: Follow) -> None:
    desired = desire(UPGRADED)
    for _ in range(2):
        cloud.send(first_request(UPGRADED, find(cloud)))  # and nobody waits for it
        assert plan_pool(PROVIDER, desired, cloud.pools()).action in ("update", "no-op")
        follow(cloud, Operation(POOL, "update"))

    assert converge(cloud, follow, UPGRADED) == 0


LATE: Mapping[str, type[GpukubeError]] = {
    "AllocationFailed": CapacityError,
    "SkuNotAvailable": CapacityError,
    "QuotaExceeded": QuotaError,
    "NodesNotReady": CloudError,
}


@pytest.mark.turns(2)
@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("code", LATE)
@pytest.mark.parametrize("target", [AFTER, UPGRADED], ids=["scaled", "upgraded"])
def test_update_when_it_fails_late_then_our_error_and_the_next_run_repairs_the_pool(
    code: str, target: Target, cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    """AKS keeps what was asked for, so the repair is the pool as it is now: the same PUT reconciles it."""
    kind = "^Updating$" if target is AFTER else "^Upgrading$"
    if target is UPGRADED:
        follow(cloud, cloud.send(first_request(AFTER, find(cloud))))
    daemon.add_fault(sandbox, "operation", code=code, pool=POOL, kind=kind)
    progress = follow(cloud, cloud.send(first_request(target, find(cloud))))
    failed = find(cloud)

    assert isinstance(progress.error, LATE[code])
    assert (failed.state, bool(failed.failure)) == ("failed", True)
    assert PROVIDER.requests.recreate(desire(target), failed) is not None
    assert converge(cloud, follow, target) >= 1
    assert diff_fields(desire(target).fields, find(cloud).fields) == ()


def test_failed_scale_up_when_fewer_nodes_are_declared_then_an_update_and_no_new_pool(
    cloud: AksCloud, follow: Follow, live: Observed, sandbox: SandboxInfo
) -> None:
    """What the quota does not allow is taken back by the spec; the pool has nodes, so it is not made anew."""
    daemon.add_fault(sandbox, "operation", code="QuotaExceeded", pool=POOL, times=0)
    follow(cloud, cloud.send(first_request(AFTER, live)))
    failed = find(cloud)
    back = replace(AFTER, nodes=BEFORE.nodes)
    assert PROVIDER.requests.recreate(desire(back), failed) is None

    daemon.clear_faults(sandbox)
    assert follow(cloud, cloud.send(first_request(back, failed))).done
    assert (find(cloud).state, find(cloud).nodes) == ("ready", 1)


def test_update_when_somebody_changed_the_pool_then_his_change_stays(
    cloud: AksCloud, follow: Follow, live: Observed, sandbox: SandboxInfo
) -> None:
    request = first_request(AFTER, live)
    daemon.tamper(sandbox, "train", POOL, tags={"his": "1"}, maxCount=None)
    with pytest.raises(Conflict) as caught:
        cloud.send(request)

    assert isinstance(caught.value, Moved)
    converge(cloud, follow, AFTER)
    tags = cast("dict[str, str]", properties_of(find(cloud))["tags"])
    assert {key: value for key, value in tags.items() if not key.startswith("gpukube_")} == {"his": "1"}


def test_update_when_another_pool_of_the_cluster_changes_then_busy_and_later_done(
    cloud: AksCloud, follow: Follow, live: Observed, sandbox: SandboxInfo
) -> None:
    daemon.configure(sandbox, speed=0.01)
    other = cloud.send(desire(replace(BEFORE, name="other", pool="other")).create)
    with pytest.raises(Conflict) as caught:
        cloud.send(first_request(AFTER, live))
    daemon.configure(sandbox, speed=2000.0)

    assert isinstance(caught.value, Busy)
    assert follow(cloud, other).done
    assert converge(cloud, follow, AFTER) == 1


def test_upgrade_when_above_the_control_plane_then_refused_with_the_remedy(cloud: AksCloud, live: Observed) -> None:
    with pytest.raises(CloudError) as caught:
        cloud.send(first_request(replace(BEFORE, kubernetes_version="1.35"), live))

    (problem,) = caught.value.diagnostics
    assert (problem.code, "control plane" in problem.fix) == ("refused", True)
    assert find(cloud) == live


def test_update_when_the_pool_is_gone_then_moved_and_the_next_look_says_so(
    cloud: AksCloud, live: Observed, sandbox: SandboxInfo
) -> None:
    daemon.tamper(sandbox, "train", POOL, delete=True)
    with pytest.raises(Conflict) as caught:
        cloud.send(first_request(AFTER, live))

    assert isinstance(caught.value, Moved)
    assert cloud.pool(POOL) is None
    assert plan_pool(PROVIDER, desire(AFTER), cloud.pools()).action == "create"


def test_deletion_when_it_runs_then_the_pool_is_deleting(
    cloud: AksCloud, follow: Follow, live: Observed, sandbox: SandboxInfo
) -> None:
    daemon.configure(sandbox, speed=0.01)
    operation = cloud.send(PROVIDER.requests.delete(desire(BEFORE).target.cluster, live))
    going = find(cloud)
    plan = plan_pool(PROVIDER, desire(BEFORE), cloud.pools())
    with pytest.raises(Conflict) as caught:
        cloud.send(first_request(AFTER, going))
    daemon.configure(sandbox, speed=2000.0)

    assert (going.state, going.status, plan.action) == ("deleting", "Deleting", "create")
    assert isinstance(caught.value, Busy)
    assert follow(cloud, operation).done


@pytest.mark.usefixtures("live")
def test_budget_of_puts_when_spent_then_waited_for_as_told(
    cloud: AksCloud, follow: Follow, sandbox: SandboxInfo
) -> None:
    """Twenty at once, then one a minute (docs: aks/quotas-skus-regions); the SDK waits out Retry-After."""
    turns = itertools.count(1)

    def put() -> int:
        turn = next(turns)
        target = replace(BEFORE, labels={"team": f"t{turn}"})
        assert follow(cloud, cloud.send(first_request(target, find(cloud)))).done
        return turn

    def answers() -> list[object]:
        return [entry["status"] for entry in daemon.requests_since(sandbox) if entry["method"] == "PUT"]

    daemon.configure(sandbox, speed=0.001, pace={"accept_s": 0, "settle_s": 0})  # nothing is added meanwhile
    while put() < 19:  # the creation was the first of twenty
        assert 429 not in answers()
    daemon.configure(sandbox, speed=30.0)
    wait_for(lambda: (put(), 429 in answers())[1], answers)

    assert answers().count(200) == next(turns) - 1 >= 20
