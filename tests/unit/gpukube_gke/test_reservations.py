"""The reservation that a pool names: which it is, and what Compute Engine tells about it."""

from __future__ import annotations

from typing import Any

import pytest

from gpukube.core.reservations import LiveReservation
from gpukube.core.values import Capacity, Nodes, Reservation
from gpukube_gke.facts.capacity import read_reserved
from gpukube_gke.pool.purchase import reserved_name
from tests.unit.gpukube_gke.targets import desire, gke_target

RUNS_ON = "its machines run on, billed on demand"


def item(**members: object) -> dict[str, Any]:
    counts = {"count": "4", "inUseCount": "3"}
    return {"name": "h100-train", "status": "READY", "specificReservation": counts, **members}


def read(*zones: str, **members: object) -> LiveReservation | None:
    """Read one reservation in zone a, beside another, and one of its name in another region."""
    items = {
        "zones/us-central1-a": {"reservations": [item(**members), item(name="h100-train-2")]},
        "zones/us-east4-a": {"reservations": [item()]},
    }
    return read_reserved([{"items": items}], "h100-train", "us-central1", zones)


def test_reserved_when_ready_has_its_free_machines() -> None:
    found = read("us-central1-a")
    assert found == LiveReservation("h100-train", 4, 3, at_end=RUNS_ON)
    assert found.free == 1
    assert read() == found


def test_reserved_when_google_assures_fewer_then_only_these_count() -> None:
    found = read(specificReservation={"count": "4", "assuredCount": "3", "inUseCount": "3"})
    assert found is not None
    assert (found.total, found.free) == (3, 0)


@pytest.mark.parametrize("status", ["CREATING", "UPDATING", "INVALID"])
def test_reserved_when_not_ready_has_no_free_machines(status: str) -> None:
    found = read(status=status)
    assert found is not None
    assert (found.active, found.free) == (False, 0)


def test_reserved_when_in_no_zone_of_the_pool_then_none() -> None:
    assert read("us-central1-b") is None


def test_reserved_when_in_two_zones_of_the_pool_then_both_count() -> None:
    items = {f"zones/us-central1-{letter}": {"reservations": [item()]} for letter in "ab"}
    found = read_reserved([{"items": items}], "h100-train", "us-central1", ("us-central1-a", "us-central1-b"))
    assert found is not None
    assert (found.total, found.used) == (8, 6)


@pytest.mark.parametrize(("mode", "at_end"), [("CALENDAR", "Google ends its machines with it"), ("DEFAULT", RUNS_ON)])
def test_reserved_when_it_ends_then_its_mode_decides_about_its_machines(mode: str, at_end: str) -> None:
    found = read(deleteAtTime="2026-12-08T11:30:00-08:00", reservationMode=mode)
    assert found is not None
    assert (found.end, found.at_end) == ("2026-12-08T11:30:00-08:00", at_end)


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ("h100-train", ("", "h100-train")),
        ("projects/shared/reservations/h100-train", ("shared", "h100-train")),
        ("h100-train/reservationBlocks/h100-train-0001", ("ml-prod", "h100-train")),
    ],
)
def test_name_when_a_pool_is_declared_is_that_of_the_whole_reservation(identity: str, name: tuple[str, str]) -> None:
    capacity = Capacity("reserved", reservation=Reservation("reservation", identity))
    assert reserved_name(desire(gke_target(capacity=capacity)).fields) == name


def test_name_when_a_pool_is_not_reserved_is_none() -> None:
    flex = gke_target(
        nodes=Nodes(0, 0, 2, autoscaled=True), capacity=Capacity("reserved", reservation=Reservation("flexStart"))
    )
    assert [reserved_name(desire(pool).fields) for pool in (flex, gke_target())] == [("", ""), ("", "")]
