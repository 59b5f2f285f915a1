"""The search for machines over real sockets: what the sandbox's stock, advice and reservations tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.capacity_sources import CapacityQuery
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Capacity, Reservation, Settings
from gpukube.gpu.machines import machines
from gpukube_gke.catalog import CAPACITY
from gpukube_sandbox import daemon
from gpukube_sandbox.gke.accelerators import ACCELERATORS
from tests.unit.gpukube_gke.targets import CLUSTER, desire, gke_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.capacity_sources import Offers, Way
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

MACHINE = "a3-highgpu-8g"
ZONE = "us-central1-a"


def read(sandbox: SandboxInfo, *, machine: str = MACHINE, days: int = 7) -> Offers:
    settings = Settings({"gke": sandbox.gke_url}, sandbox=True, secret=sandbox.secret, request_timeout_s=60)
    inquiry = Inquiry("gke", "us-central1", Account(), settings)
    found = next(one for one in machines("gke") if one.name == machine and one.accelerator in ACCELERATORS)
    return CAPACITY.fetch(CapacityQuery(inquiry, (found,), 2, (ZONE,), days * 86_400, CLUSTER))


def one(offers: Offers, kind: str) -> Way:
    assert {line.state for line in offers.sources} == {"ok"}, offers.sources
    (found,) = [way for way in offers.ways if way.kind == kind and way.zone == ZONE]
    return found


@pytest.mark.parametrize(("free", "known"), [(6, "likely"), (2, "possible"), (1, "unlikely")])
def test_spot_and_flex_start_when_the_stock_shrinks_then_less_likely(
    sandbox: SandboxInfo, free: int, known: str
) -> None:
    daemon.set_stock(sandbox, "gke", free, type=MACHINE, zone=ZONE)
    offers = read(sandbox)
    assert (one(offers, "spot").known, one(offers, "flex-start").known) == (known, known)
    assert one(offers, "spot").words.endswith(("~1 h", "~10 min", "~1 min"))
    assert (one(offers, "spot").usd or 0) > 0
    assert (one(offers, "on-demand").known, one(offers, "on-demand").usd) == ("not told", None)


def test_calendar_mode_when_there_is_stock_then_offered_for_that_long(sandbox: SandboxInfo) -> None:
    way = one(read(sandbox), "block")
    assert (way.known, way.start[:4] <= way.end[:4]) == ("offered", True)
    assert f"--zone {ZONE}" in way.buy

    daemon.set_stock(sandbox, "gke", 1, type=MACHINE, zone=ZONE, kind="reserved")
    assert one(read(sandbox), "block").known == "none"


def test_reservation_when_declared_then_its_free_machines(sandbox: SandboxInfo) -> None:
    daemon.add_gke_cluster(
        sandbox,
        "ml-prod",
        "us-central1",
        "reserving",
        options={"reservations": {"ours": {"zone": ZONE, "machineType": MACHINE, "count": 3}}},
    )
    way = one(read(sandbox), "reservation")
    assert (way.id, way.known, way.words) == ("ours", "free", "3 of 3 free")


def test_gpus_when_attached_then_asked_for_with_their_machine(sandbox: SandboxInfo) -> None:
    (way,) = [way for way in read(sandbox, machine="n1-*").ways if (way.kind, way.zone) == ("spot", ZONE)]
    assert (way.known, way.usd) == ("likely", None)


def test_reservation_when_a_pool_names_it_then_read_unless_that_is_denied(
    sandbox: SandboxInfo, connect: Callable[[], GkeCloud]
) -> None:
    declared = {"name": "h100-train", "zone": ZONE, "machineType": MACHINE, "count": 4, "inUseByOthers": 1}
    daemon.declare(sandbox, "gke", project="ml-prod", reservations=[declared])
    capacity = Capacity("reserved", reservation=Reservation("reservation", "h100-train"))
    pool = desire(gke_target(zones=(ZONE,), capacity=capacity))

    found = connect().reserved(pool)
    assert found is not None
    assert (found.total, found.used, found.free) == (4, 1, 3)

    daemon.deny_permissions(sandbox, "compute.reservations.list")
    assert connect().reserved(pool) is None
