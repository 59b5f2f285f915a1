"""Families whose first rank is a reservation: its free machines are read before anything is created in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube_sandbox import daemon
from tests.changes.world import ADDRESSES, SMALL, World, prepare, spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.changes.world import Document

GROUP = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml"
    "/providers/Microsoft.Compute/capacityReservationGroups/gpus"
)
RESERVATION = "cr-0fedcba9876543210"
RESERVED: dict[str, tuple[Document, Document]] = {
    "eks": (
        {"capacityReservation": RESERVATION},
        {
            "reservations": [
                {"id": RESERVATION, "type": "g4dn.xlarge", "zone": "us-east-1a", "count": 2, "end": 5 * 86_400}
            ]
        },
    ),
    "aks": (
        {"capacityReservationGroup": GROUP},
        {
            "capacityReservationGroups": [
                {
                    "id": GROUP,
                    "reservations": [{"name": "reserved-nc4as_t4_v3", "size": "Standard_NC4as_T4_v3", "count": 2}],
                }
            ]
        },
    ),
    "gke": (
        {"reservation": "t4-train"},
        {"reservations": [{"name": "t4-train", "zone": "us-central1-a", "machineType": "g2-standard-4", "count": 2}]},
    ),
}
"""Cloud -> the reservation in a spec, and what declares it to the sandbox with two machines.

That of Azure has the name with which the sandbox would declare the group of the spec by itself, with plenty.
"""


def family(world: World, cloud: str, count: int) -> Document:
    """Declare a pool in the reservation, with machines on demand as its alternative."""
    form, declared = RESERVED[cloud]
    account = {"eks": ("account", "region"), "aks": (), "gke": ("project",)}[cloud]
    daemon.declare(world.info, cloud, **{key: ADDRESSES[cloud][key] for key in account}, **declared)
    first = {
        "name": "t4",
        **SMALL[cloud],
        "nodes": {"count": count},
        "capacity": {"type": "reserved", "reserved": {cloud: form}},
        "alternatives": [{"name": "t4any", "capacity": {"type": "on-demand"}}],
    }
    return spec("ml", {"train": world.make(cloud, "train")}, [first])


@pytest.mark.parametrize("cloud", RESERVED)
def test_family_when_the_reservation_has_room_then_its_first_rank_gets_the_nodes(world: World, cloud: str) -> None:
    report = world.create(family(world, cloud, 2))["t4"]
    assert (report.error, report.name) == (None, "t4")
    assert "t4any" not in world.nodes("train")


@pytest.mark.parametrize("cloud", RESERVED)
def test_family_when_the_reservation_is_too_small_then_nothing_is_created_in_it(world: World, cloud: str) -> None:
    report = world.create(family(world, cloud, 3))["t4"]
    assert (report.error, report.name) == (None, "t4any")
    assert "t4: the reservation is full" in report.message
    assert len(world.nodes("train")["t4any"]) == 3
    deleted = [str(one["path"]) for one in daemon.requests_since(world.info) if one["method"] == "DELETE"]
    assert not [path for path in deleted if path.endswith("/t4")]


def diagnosis(world: World, document: Document) -> dict[str, str]:
    """Run the doctor; return what it saw by check."""
    (found,) = api.diagnose(prepare(document), world.run())
    return {one.check.id: one.finding.seen for one in found.found}


def test_doctor_when_an_alternative_has_the_nodes_then_since_when(world: World) -> None:
    document = family(world, "gke", 3)
    world.create(document)
    assert " since " in diagnosis(world, document)["family-lower-rank"]


@pytest.fixture
def young(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give the test a sandbox of its own.

    Its clock is ahead of gpukube's by minutes: that of the worker's sandbox is ahead by days, and so are EC2's ends.
    """
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)  # emulated, as the clusters of the other tests
    yield World(daemon.up(tmp_path, 200))
    daemon.down(tmp_path)


def test_doctor_when_the_reservation_ends_in_days_then_when(young: World) -> None:
    document = family(young, "eks", 2)
    young.create(document)
    found = diagnosis(young, document)
    assert found["reservation-ends"].startswith(f"its reservation {RESERVATION} ends in ")
    assert "family-lower-rank" not in found
