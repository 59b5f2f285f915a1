"""Better alternatives than the one that has the nodes: which are read, and what is shown of the result."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.capacity.better import best_way, with_better
from gpukube.capacity.finding import Line
from gpukube.core.capacity_sources import CapacityQuery, Offers, SourceLine, Way
from gpukube.core.values import ClusterFacts, FamilyPlace, PoolPlan, Settings
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.plan.prepare import prepare
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.clock import SystemClock
from gpukube.errors import CloudError
from gpukube.spec.loading.load import load_specs

if TYPE_CHECKING:
    from gpukube.core.values import FamilyRole, Target
    from tests.unit.capacity.conftest import Install

ID = "cr-0123456789abcdef0"
SPEC = f"""
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: team}}
clusters:
  train: {{provider: eks, account: "111122223333", region: us-east-1, name: train}}
pools:
  - name: h100
    clusters: [train]
    gpu: {{model: H100-80GB, count: 8}}
    nodes: {{count: 2}}
    capacity: {{type: reserved, reserved: {{eks: {{capacityReservation: {ID}}}}}}}
    alternatives:
      - {{name: h100spot, capacity: {{type: spot}}}}
      - {{name: h100e1c, capacity: {{type: on-demand}}, zones: [us-east-1c]}}
      - {{name: h200, capacity: {{type: on-demand}}, gpu: {{model: H200-141GB, count: 8}}}}
"""
FREE = Way(kind="reservation", machine="p5.48xlarge", known="free", free=4, words="4 of 4 free", id=ID)
SPOT = Way(kind="spot", machine="p5.48xlarge", zone="us-east-1a", known="likely", words="9/10")
ON_DEMAND = Way(kind="on-demand", machine="p5.48xlarge", zone="us-east-1c", why="AWS does not publish stock")


@pytest.fixture(scope="module")
def pools() -> dict[str, PoolPlan]:
    """Plan the family of the spec: the last of it has the nodes."""
    prepared = prepare(load_specs(["-"], stdin=io.StringIO(SPEC), environ={}))
    plans = {}
    for turn, desired in enumerate(pool for pools in prepared.desired.values() for pool in pools):
        target = desired.target
        role: FamilyRole = "holder" if target.pool == "h200" else "standby"
        place = FamilyPlace(target.family, turn, role) if target.family else None
        action: Any = "no-op" if role == "holder" else "standby"
        plans[target.pool] = PoolPlan(
            target.cluster, target.pool, target.name, action, "", desired, None, family=place
        )  # fmt: skip
    assert list(plans) == ["h100", "h100spot", "h100e1c", "h200"]
    return plans


def look(*pools: PoolPlan) -> tuple[list[str], list[str]]:
    """Return the hints about a cluster with these pools, and the notes."""
    clock = SystemClock()
    line = Line(Settings(), clock, Calls(clock, clock.now() + 60, "again"), {})
    facts = ClusterFacts("us-east-1", "1.34", ready=True, status="ACTIVE")
    plan = ClusterPlan(pools[0].cluster, facts, pools)
    found = with_better([plan], line, "gpukube pool apply -f pools.yaml")
    (shown,) = found.plans
    assert replace(shown, diagnostics=()) == plan
    assert shown.differs == plan.differs
    assert {one.severity for one in shown.diagnostics} <= {"hint"}
    return [f"{one.code}: {one.seen}" for one in shown.diagnostics], list(found.notes)


def test_better_when_several_have_machines_then_a_hint_each_in_their_order(
    pools: dict[str, PoolPlan], answers: Install
) -> None:
    queries = answers(lambda _: Offers((SPOT, ON_DEMAND, FREE), ()))
    hints, notes = look(*pools.values())
    assert hints == [
        "better-alternative: h100 (reserved) comes before h200 and may get machines: free, 4 of 4 free",
        "better-alternative: h100spot (spot) comes before h200 and may get machines: likely, 9/10 in us-east-1a",
    ]
    assert notes == ["train/h100e1c: not told, AWS does not publish stock in us-east-1c"]
    assert sorted((query.zones, query.nodes, query.inquiry.region) for query in queries) == [
        ((), 2, "us-east-1"), (("us-east-1c",), 2, "us-east-1"),
    ]  # fmt: skip


@pytest.mark.parametrize("known", ["unlikely", "none", "not told", "not asked"])
def test_better_when_machines_are_not_to_be_expected_then_only_a_note(
    known: Any, pools: dict[str, PoolPlan], answers: Install,  # noqa: ANN401 - a class
) -> None:  # fmt: skip
    answers(lambda _: Offers((replace(SPOT, known=known),), ()))
    hints, notes = look(pools["h100spot"], pools["h200"])
    assert hints == []
    assert notes == [f"train/h100spot: {known}, 9/10 in us-east-1a"]


@pytest.mark.parametrize("known", ["free", "offered", "likely", "possible"])
def test_better_when_machines_may_be_there_then_a_hint_with_the_class(
    known: Any, pools: dict[str, PoolPlan], answers: Install,  # noqa: ANN401 - a class
) -> None:  # fmt: skip
    answers(lambda _: Offers((replace(SPOT, known=known),), ()))
    (hint,), notes = look(pools["h100spot"], pools["h200"])
    assert hint.endswith(f"may get machines: {known}, 9/10 in us-east-1a")
    assert notes == []


def test_better_when_none_is_before_the_holder_or_none_can_be_moved_to_then_nothing_is_asked(
    pools: dict[str, PoolPlan], answers: Install
) -> None:
    queries = answers(lambda _: Offers((FREE, SPOT), ()))
    first, spot, later, last = (pools[name] for name in ("h100", "h100spot", "h100e1c", "h200"))

    def role(plan: PoolPlan, role: FamilyRole) -> PoolPlan:
        assert plan.family
        return replace(plan, family=replace(plan.family, role=role))

    assert look(role(first, "holder"), spot, later, role(last, "standby")) == ([], [])
    assert look(replace(first, action="conflict"), role(spot, "second"), last) == ([], [])
    assert look(first, spot, replace(last, action="conflict", diagnostics=())) == ([], [])
    assert look(role(first, "next"), spot) == ([], [])
    assert look(replace(first, family=None), replace(last, family=None)) == ([], [])
    other = replace(pools["h100"], desired=replace(first.desired, target=replace(first.desired.target, owner="other")))  # type: ignore[union-attr, type-var]  # declared
    assert look(other, last) == ([], [])
    assert queries == []


def test_better_when_a_source_fails_then_one_line_for_all_that_need_it(
    pools: dict[str, PoolPlan], answers: Install
) -> None:
    failed = SourceLine("EC2 GetSpotPlacementScores", "failed", "permission", "not allowed; allow it")
    skipped = SourceLine("EC2 GetCapacityManagerSupportabilityScores", "not asked", text="it needs a plan")
    told = replace(SPOT, known="not told", words="", why="scores could not be read")
    answers(lambda _: Offers((told, ON_DEMAND), (failed, skipped)))
    hints, notes = look(*pools.values())
    assert hints == ["alternatives-unread: EC2 GetSpotPlacementScores failed: not allowed; allow it"]
    assert notes[0] == "train/h100: not told"


def test_better_when_a_cloud_cannot_be_asked_then_a_line_too(pools: dict[str, PoolPlan], answers: Install) -> None:
    def fail(_query: CapacityQuery) -> Offers:
        raise CloudError("no answer in time", fix="run it again")

    answers(fail)
    hints, _ = look(pools["h100"], pools["h200"])
    assert hints == ["alternatives-unread: the cloud's answers failed: no answer in time; run it again"]


def test_better_when_a_source_that_failed_is_not_needed_then_no_line(
    pools: dict[str, PoolPlan], answers: Install
) -> None:
    failed = SourceLine("EC2 DescribeSpotPriceHistory", "failed", "permission", "not allowed")
    answers(lambda _: Offers((replace(SPOT, known="unlikely"),), (failed,)))
    assert look(pools["h100spot"], pools["h200"])[0] == []


def target_of(pools: dict[str, PoolPlan], name: str) -> Target:
    desired = pools[name].desired
    assert desired
    return desired.target


def test_way_when_reserved_then_that_reservation_and_none_that_is_for_sale(pools: dict[str, PoolPlan]) -> None:
    target = target_of(pools, "h100")
    other = replace(FREE, id="cr-other")
    sold = replace(FREE, kind="block", buy="aws ec2 purchase-capacity-block")
    assert best_way(target, [SPOT, other, sold, ON_DEMAND]) is None
    shouted = replace(FREE, id=ID.upper(), known="none")
    assert best_way(target, [other, shouted]) == shouted


def test_way_when_zones_differ_then_the_best_class_then_the_first_zone(pools: dict[str, PoolPlan]) -> None:
    bad, good = replace(SPOT, known="unlikely"), replace(SPOT, zone="us-east-1c")
    also = replace(SPOT, zone="us-east-1b")
    assert best_way(target_of(pools, "h100spot"), [bad, good, also, ON_DEMAND]) == also
