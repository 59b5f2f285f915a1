"""Whether a second pool has room beside the one that it would replace; what a plan makes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.fields import INSTANCE_TYPE
from gpukube.core.plan import plan_pool
from gpukube.core.quotas import QuotaReading
from gpukube.core.values import ClusterFacts, Nodes, Settings
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.plan.planning import ClusterPlan, Scope
from gpukube.engine.plan.replacing import nodes_needed, with_replacements, with_size
from gpukube.engine.run.session import Session
from gpukube.testing.fakes import NAME_LENGTH, FakeProvider
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import desire
from tests.unit.engine.test_quotas import KNOWN, ON_DEMAND, Limits

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed, PoolPlan, Replacement

FACTS = ClusterFacts("nowhere-1", "1.34.2", ready=True, status="Running")
WANTED = desire()
NAME = WANTED.target.name
SURGE = Scope(replace="surge")
PLENTY = QuotaReading(limit=1000, used=8)


class Limited(FakeProvider):
    def __init__(self) -> None:
        super().__init__()
        self.extras.quotas = KNOWN


def judge(
    desired: Desired,
    *live: Observed,
    scope: Scope = SURGE,
    quota: QuotaReading = PLENTY,
    others: tuple[Desired, ...] = (),
) -> PoolPlan:
    provider = Limited()
    pools = (plan_pool(provider, desired, live),)
    plan = ClusterPlan(CLUSTER, FACTS, pools, live, seen=Snapshot(), desired=(desired, *others))
    session = Session(CLUSTER, provider, Limits({ON_DEMAND: quota}), Settings())
    (pool,) = with_replacements(plan, session, scope).pools
    return pool


def differing(desired: Desired, **changes: object) -> Observed:
    fields = {**desired.fields, INSTANCE_TYPE: "other"}
    return make_observed(desired, **{"fields": fields, "copy": desired.copy, **changes})


def found(plan: PoolPlan) -> Replacement:
    assert plan.replacement is not None
    return plan.replacement


def test_plan_when_there_is_room_for_both_then_the_calls_of_a_surge() -> None:
    plan = judge(WANTED, differing(WANTED))
    assert (found(plan).obstacles, found(plan).unknown) == ((), ())
    assert [request.operation for request in plan.requests] == ["create", "delete"]
    recreated = judge(WANTED, differing(WANTED), scope=Scope(replace="recreate"))
    assert [request.operation for request in recreated.requests] == ["delete", "create"]


LONG = desire(name="a" * NAME_LENGTH, pool="a100")


@pytest.mark.parametrize(
    ("desired", "more", "quota", "message"),
    [
        (LONG, (), PLENTY, "is too long"),
        (WANTED, (make_observed(WANTED, name=f"{NAME}b", owner="", pool=""),), PLENTY, "has no gpukube.io/owner label"),
        (WANTED, (make_observed(WANTED, name=f"{NAME}b", owner="us", pool="x"),), PLENTY, 'belongs to "us"'),
        (WANTED, (), QuotaReading(limit=10, used=8), "quota od (on-demand GPUs), which has 2 left"),
    ],
)
def test_plan_when_both_cannot_exist_then_refused_with_the_reason_and_recreate_is_left(
    desired: Desired, more: tuple[Observed, ...], quota: QuotaReading, message: str
) -> None:
    plan = judge(desired, differing(desired), *more, quota=quota)
    (obstacle,) = found(plan).obstacles
    assert message in obstacle.seen
    (problem,) = [d for d in plan.diagnostics if d.code == "surge-impossible"]
    assert (problem.severity, message in problem.seen, problem.fix != "") == ("error", True, True)
    (pool,) = plan_document([ClusterPlan(CLUSTER, facts=FACTS, pools=(plan,))], [])["clusters"][0]["pools"]
    assert pool["needs"] == ["--replace recreate"]
    assert pool["replacement"] is not None
    assert pool["replacement"]["surge"] is False


def test_plan_when_another_pool_of_the_spec_has_the_name_then_refused() -> None:
    other = desire(name=f"{NAME}b", pool="other")
    assert (
        'another pool with the cloud name "'
        in found(judge(WANTED, differing(WANTED), others=(other,))).obstacles[0].seen
    )


def test_plan_when_it_cannot_be_known_whether_both_fit_then_said_and_not_refused() -> None:
    plan = judge(WANTED, differing(WANTED), quota=QuotaReading(unknown="may not be read"))
    assert (found(plan).obstacles, found(plan).unknown) == ((), ("quota od (on-demand GPUs): may not be read",))


def test_plan_when_a_replacement_is_under_way_then_recreate_is_refused() -> None:
    plan = judge(
        WANTED,
        differing(WANTED),
        make_observed(WANTED, name=f"{NAME}b", copy=WANTED.copy),
        scope=Scope(replace="recreate"),
    )
    assert [d.code for d in plan.diagnostics] == ["replacement-under-way"]


@pytest.mark.parametrize(("busy", "needed", "count"), [(0, 0, 1), (2, 2, 2), (9, 4, 4)])
def test_size_when_autoscaled_then_as_many_nodes_as_the_busy_ones_and_no_more_than_declared(
    busy: int, needed: int, count: int
) -> None:
    scaled = desire(nodes=Nodes(1, 0, 4, autoscaled=True))
    assert nodes_needed(scaled, make_observed(scaled), busy) == needed
    sized = with_size(FakeProvider(), scaled, needed, make_observed(scaled))
    assert (sized.target.nodes.minimum, sized.target.nodes.count) == (0, count)
