"""The search for machines over real sockets: what the sandbox's stock, reservations and restrictions tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.capacity_sources import CapacityQuery
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Capacity, Reservation, Settings
from gpukube.gpu.machines import require_machine
from gpukube_aks import AksProvider
from gpukube_aks.catalog import CAPACITY
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.builders import CLUSTER, SUBSCRIPTION, make_target
from tests.wire.aks.lab import desire

if TYPE_CHECKING:
    from gpukube.core.capacity_sources import Offers, Way
    from gpukube_sandbox.daemon import SandboxInfo

A100 = "Standard_NC24ads_A100_v4"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups/gpus"


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    emptied(running_sandbox, 60.0)
    daemon.add_cluster(running_sandbox, SUBSCRIPTION, "ml", "train")
    return running_sandbox


def read(sandbox: SandboxInfo) -> Offers:
    settings = Settings({"aks": sandbox.arm_url}, sandbox=True, secret=sandbox.secret, request_timeout_s=60)
    inquiry = Inquiry("aks", "eastus", Account(), settings)
    return CAPACITY.fetch(CapacityQuery(inquiry, (require_machine("aks", A100),), 2, cluster=CLUSTER))


def ways(offers: Offers, kind: str) -> dict[str, Way]:
    assert {line.state for line in offers.sources} == {"ok", "not asked"}, offers.sources
    return {way.zone: way for way in offers.ways if way.kind == kind}


def test_spot_when_the_stock_of_a_zone_shrinks_then_less_likely_there(sandbox: SandboxInfo) -> None:
    daemon.set_stock(sandbox, "aks", 2, type=A100, zone="eastus-1", kind="spot")
    daemon.set_stock(sandbox, "aks", 1, type=A100, zone="eastus-2", kind="spot")
    found = ways(read(sandbox), "spot")
    assert {zone: (way.known, way.words) for zone, way in found.items()} == {
        "1": ("possible", "Medium"),
        "2": ("unlikely", "Low"),
        "3": ("likely", "High"),
    }


def test_zones_when_the_subscription_may_not_use_them_then_not_shown(sandbox: SandboxInfo) -> None:
    barred = [{"size": A100, "zones": ["1", "3"]}]
    daemon.declare(sandbox, "aks", subscription=SUBSCRIPTION, location="eastus", restrictions=barred)
    offers = read(sandbox)
    assert ways(offers, "spot").keys() == ways(offers, "on-demand").keys() == {"2"}
    assert offers.notes == (f"{A100} is not available to the subscription in zones 1, 3 of eastus",)


def test_reservation_when_some_are_used_then_the_rest_is_free(sandbox: SandboxInfo) -> None:
    reserved = {"name": "a100", "size": A100, "count": 4, "zone": "1", "usedByOthers": 1}
    daemon.declare(sandbox, "aks", capacityReservationGroups=[{"id": GROUP, "reservations": [reserved]}])
    way = ways(read(sandbox), "reservation")["1"]
    assert (way.known, way.words, way.id) == ("free", "3 of 4 free", GROUP)


def test_scores_when_refused_then_a_line_and_the_rest_is_shown(sandbox: SandboxInfo) -> None:
    daemon.add_fault(sandbox, "status", method="POST", path="placementScores/spot/generate$", status=403)
    offers = read(sandbox)
    (line,) = [one for one in offers.sources if one.source.endswith("placementScores/spot")]
    assert (line.state, line.code) == ("failed", "permission")
    assert {way.known for way in offers.ways if way.kind == "spot"} == {"not told"}
    assert {way.zone for way in offers.ways if way.kind == "on-demand"} == {"1", "2", "3"}


def test_reservation_when_a_pool_names_its_group_then_read_unless_that_is_denied(sandbox: SandboxInfo) -> None:
    reserved = {"name": "a100", "size": A100, "count": 4, "usedByOthers": 1}
    daemon.declare(sandbox, "aks", capacityReservationGroups=[{"id": GROUP, "reservations": [reserved]}])
    capacity = Capacity("reserved", reservation=Reservation("capacityReservationGroup", GROUP))
    pool = desire(make_target(A100, capacity=capacity))
    cloud = AksProvider().connect(CLUSTER, Settings({"aks": sandbox.arm_url}, sandbox=True, secret=sandbox.secret))

    found = cloud.reserved(pool)
    assert found is not None
    assert (found.id, found.total, found.used, found.free) == ("gpus", 4, 1, 3)

    daemon.deny_permissions(sandbox, "Microsoft.Compute/capacityReservationGroups/read")
    assert cloud.reserved(pool) is None
    cloud.close()
