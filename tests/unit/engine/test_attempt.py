"""One attempt to get the nodes of a family: its reservation is asked first, and compared afterwards."""

from __future__ import annotations

import pytest

from gpukube.core.reservations import LiveReservation
from gpukube.core.values import Nodes
from gpukube.engine.change.attempt import Attempt, get_nodes, overdrawn
from gpukube.errors import ReservationFull, WaitTimeout
from tests.unit.cluster.builders import desire
from tests.unit.engine.stage import Stage


@pytest.fixture
def stage() -> Stage:
    return Stage([desire(nodes=Nodes(3, 3, 3, autoscaled=False))])


def attempt(stage: Stage, found: LiveReservation | None) -> Attempt:
    (plan,) = stage.plan().pools
    stage.world.reserved = {plan.name: found} if found else {}
    return Attempt(plan, stage.session, stage.run)


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        (LiveReservation("cr-1", 4, 2), "2 of 4 machines of cr-1 are free, and the pool needs 3"),
        (LiveReservation("cr-1", 4, 5), "0 of 4 machines of cr-1 are free, and the pool needs 3"),
        (LiveReservation("cr-1", 4, 0, active=False), "cr-1 is not active, and the pool needs 3"),
    ],
)
def test_attempt_when_the_reservation_has_too_few_machines_then_nothing_is_sent(
    stage: Stage, found: LiveReservation, seen: str
) -> None:
    with pytest.raises(ReservationFull, match=seen):
        get_nodes(attempt(stage, found))
    assert stage.sent() == []


@pytest.mark.parametrize("found", [LiveReservation("cr-1", 4, 1), None])
def test_attempt_when_the_reservation_has_room_or_is_unknown_then_the_pool_is_created(
    stage: Stage, found: LiveReservation | None
) -> None:
    with pytest.raises(WaitTimeout):  # no node comes
        get_nodes(attempt(stage, found))
    assert stage.sent()[0] == "create"


def test_nodes_when_more_use_the_reservation_than_it_holds_then_reported(stage: Stage) -> None:
    (seen,) = overdrawn(attempt(stage, LiveReservation("gpus", 4, 6)))
    assert seen == "6 machines use gpus, which holds 4: the others are billed on demand"
    assert overdrawn(attempt(stage, LiveReservation("gpus", 4, 4))) == []
    assert overdrawn(attempt(stage, None)) == []
