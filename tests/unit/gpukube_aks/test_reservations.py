"""The reservations of a group that a pool uses, as Azure returns them."""

from __future__ import annotations

from typing import Any

import pytest

from gpukube.core.reservations import LiveReservation
from gpukube_aks.facts.capacity import read_reserved

SIZE = "Standard_NC24ads_A100_v4"
TODAY = "2026-12-01"
RUNS_ON = "its machines run on, billed on demand"


def reservation(name: str = "a100", zone: str = "", size: str = SIZE, **schedule: str) -> dict[str, Any]:
    zones = {"zones": [zone]} if zone else {}
    return {"name": name, "sku": {"name": size, "capacity": 4}, **zones, "properties": {"scheduleProfile": schedule}}


def group(*allocated: tuple[str, int], kind: str = "Targeted") -> dict[str, Any]:
    views = [
        {"name": name, "utilizationInfo": {"currentCapacity": 4, "virtualMachinesAllocated": [{"id": "vm"}] * count}}
        for name, count in allocated
    ]
    properties = {"reservationType": kind, "instanceView": {"capacityReservations": views}}
    return {"id": "/x/capacityReservationGroups/gpus", "properties": properties}


def test_reserved_when_machines_use_it_then_the_rest_is_free() -> None:
    found = read_reserved(group(("a100", 3)), [reservation()], SIZE.upper(), (), TODAY)
    assert found == LiveReservation("gpus", 4, 3, at_end=RUNS_ON)
    assert found.free == 1


def test_reserved_when_more_machines_use_it_than_it_holds_then_none_is_free() -> None:
    found = read_reserved(group(("a100", 6)), [reservation()], SIZE, (), TODAY)
    assert found is not None
    assert (found.total, found.used, found.free) == (4, 6, 0)


def test_reserved_when_in_zones_then_only_those_of_the_pool_count() -> None:
    listed = [reservation(f"a100-{zone}", zone) for zone in "123"]
    found = read_reserved(group(("a100-1", 1), ("a100-2", 2), ("a100-3", 3)), listed, SIZE, ("1", "2"), TODAY)
    assert found is not None
    assert (found.total, found.used) == (8, 3)
    assert read_reserved(group(("a100-1", 1)), listed[:1], SIZE, (), TODAY) is None
    assert read_reserved(group(("a100", 1)), [reservation()], SIZE, ("1",), TODAY) is None


def test_reserved_when_of_another_size_or_of_unknown_use_then_none() -> None:
    assert read_reserved(group(("a100", 3)), [reservation(size="Standard_NC4as_T4_v3")], SIZE, (), TODAY) is None
    assert read_reserved(group(), [reservation()], SIZE, (), TODAY) is None
    assert read_reserved(group(("a100", 3), kind="Open"), [reservation()], SIZE, (), TODAY) is None


@pytest.mark.parametrize(("start", "free"), [("2026-12-02", 0), ("2026-12-01", 4)])
def test_block_when_it_has_not_begun_then_it_has_no_machines(start: str, free: int) -> None:
    block = reservation(start=start, end="2026-12-09")
    found = read_reserved(group(("a100", 0), kind="Block"), [block], SIZE, (), TODAY)
    assert found is not None
    assert (found.active, found.free) == (free > 0, free)
    assert (found.end, found.at_end) == ("2026-12-09", "Azure may end its machines with it")
