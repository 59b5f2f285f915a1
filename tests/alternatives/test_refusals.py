"""What clouds answer instead of machines: which answers lead to the next alternative, and which end the run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.prices import PriceBook
from gpukube.errors import ExitCode, SpecError
from gpukube_sandbox import daemon
from tests.alternatives.stage import NODES, RANKS, SERVICES, made_requests, ranked
from tests.changes.world import spec

if TYPE_CHECKING:
    from tests.alternatives.stage import Families

FILLING = {"eks": "ConfigUpdate", "aks": "Creating", "gke": "SET_NODE_POOL_SIZE"}
"""The operation that starts the machines of an attempt, as faults name it."""
ANSWERS = (
    ("eks", "InsufficientInstanceCapacity", "m1", "no machines"),
    ("eks", "UnfulfillableCapacity", "m1", "no machines"),
    ("eks", "ReservationCapacityExceeded", "m1", "the reservation is full"),
    ("eks", "MaxSpotInstanceCountExceeded", "m1", "the quota is used up"),
    ("eks", "VcpuLimitExceeded", "m1", "the quota is used up"),
    ("eks", "InstanceLimitExceeded", "m1", "the quota is used up"),
    ("eks", "Unsupported", "m1", "not offered there"),
    ("aks", "AllocationFailed", "m1", "no machines"),
    ("aks", "ZonalAllocationFailed", "m1", "no machines"),
    ("aks", "OverconstrainedAllocationRequest", "m1", "no machines"),
    ("aks", "OverconstrainedZonalAllocationRequest", "m1", "no machines"),
    ("aks", "SkuNotAvailable", "m1", "no machines"),
    ("aks", "QuotaExceeded", "m1", "the quota is used up"),
    ("aks", "RegionalQuotaExceeded", "", "the region's quota is used up"),
    ("gke", "GCE_STOCKOUT", "m1", "no machines"),
    ("gke", "GCE_QUOTA_EXCEEDED", "m1", "the quota is used up"),
)
"""Cloud and code; the alternative that has the nodes then, and what the run says about the first."""


@pytest.mark.turns(9)
@pytest.mark.parametrize(("cloud", "code", "winner", "says"), ANSWERS)
def test_create_when_the_first_gets_no_machines_then_the_next_is_tried(
    world: Families, cloud: str, code: str, winner: str, says: str
) -> None:
    world.begin(cloud)
    fault = {"service": SERVICES[cloud], "pool": "^m0$", "code": code, "kind": FILLING[cloud]}
    daemon.add_fault(world.info, "operation", **fault)
    ended = world.ran(spec("team", world.there, [ranked(cloud)]))
    if winner:
        assert (ended.code, ended.report.name, world.sizes()) == (0, winner, {f"{cloud}/{winner}": NODES}), ended
        assert f"m0: {says}" in ended.report.message
    else:
        assert (ended.code, world.sizes()) == (ExitCode.CAPACITY, {}), ended
        assert ended.report.error is not None
        assert [says in one.seen for one in ended.report.error.diagnostics] == [True] * 3


UNKNOWN = (
    ("eks", "InsufficientFreeAddresses", ExitCode.ERROR),
    ("eks", "Ec2SubnetInvalidConfiguration", ExitCode.ERROR),
    ("aks", "SubnetIsFull", ExitCode.ERROR),
    ("aks", "RequestDisallowedByPolicy", ExitCode.ACCESS),
    ("aks", "SomethingNew", ExitCode.ERROR),
    ("gke", "IP_SPACE_EXHAUSTED", ExitCode.ERROR),
    ("gke", "PERMISSION_DENIED", ExitCode.ACCESS),
)


@pytest.mark.turns(9)
@pytest.mark.parametrize(("cloud", "code", "exit_code"), UNKNOWN)
def test_create_when_the_cloud_says_anything_else_then_the_run_ends_with_its_code(
    world: Families, cloud: str, code: str, exit_code: int
) -> None:
    world.begin(cloud)
    mark = world.last_request()
    fault = {"service": SERVICES[cloud], "pool": "^m0$", "code": code, "kind": FILLING[cloud]}
    daemon.add_fault(world.info, "operation", **fault)
    ended = world.ran(spec("team", world.there, [ranked(cloud)]))
    assert (ended.code, ended.report.outcome) == (exit_code, "failed"), ended
    assert {name.rpartition("/")[2] for name, _ in made_requests(world.info, mark)} == {"m0"}
    assert sum(world.sizes().values()) == 0
    daemon.clear_faults(world.info)
    again = world.ran(spec("team", world.there, [ranked(cloud)]))
    assert (again.code, again.report.name, world.sizes()) == (0, "m0", {f"{cloud}/m0": NODES}), again


SHARING = {
    "eks": ("g5.2xlarge", "g4dn.2xlarge", "g4dn.xlarge"),
    "aks": ("Standard_NC8as_T4_v3", "Standard_NC16as_T4_v3", "Standard_NC4as_T4_v3"),
    "gke": ("g2-standard-24", "g2-standard-24", "g2-standard-4"),
}
"""Machines that count against one quota of their cloud; the second needs as much of it as the first, the third less."""
REFUSED = {"eks": "VcpuLimitExceeded", "aks": "QuotaExceeded", "gke": "GCE_QUOTA_EXCEEDED"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_create_when_a_quota_is_used_up_then_only_alternatives_that_need_less_of_it_are_asked(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    mark = world.last_request()
    fault = {"service": SERVICES[cloud], "pool": "^m0$", "code": REFUSED[cloud], "kind": FILLING[cloud]}
    daemon.add_fault(world.info, "operation", **fault)
    first, second, third = (
        {"name": f"m{number}", "instanceType": machine} for number, machine in enumerate(SHARING[cloud])
    )
    pool = {**first, "nodes": {"count": NODES}, "alternatives": [second, third]}
    ended = world.ran(spec("team", world.there, [pool]))
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m2", {f"{cloud}/m2": NODES}), ended
    assert {name.rpartition("/")[2] for name, _ in made_requests(world.info, mark)} == {"m0", "m2"}
    assert "m0: the quota is used up; m1: the quota is used up" in ended.report.message


def test_create_when_a_quota_is_used_up_then_spot_and_other_families_are_asked(world: Families) -> None:
    world.begin("aks")
    mark = world.last_request()
    fault = {"service": "arm", "pool": "^m[01]$", "code": "QuotaExceeded", "kind": "Creating", "times": 2}
    daemon.add_fault(world.info, "operation", **fault)
    first, second, third = (
        {"name": "m0", "instanceType": "Standard_NC4as_T4_v3", "gpu": {"model": "T4", "count": 1}},
        {"name": "m1", "capacity": {"type": "spot"}},
        {"name": "m2", "instanceType": "Standard_NC24ads_A100_v4", "gpu": {"model": "A100-80GB", "count": 1}},
    )
    pool = {**first, "nodes": {"count": NODES}, "alternatives": [second, third]}
    ended = world.ran(spec("team", world.there, [pool]))
    assert (ended.code, ended.report.name) == (0, "m2"), ended
    assert {name.rpartition("/")[2] for name, _ in made_requests(world.info, mark)} == {"m0", "m1", "m2"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ["eks", "aks", "gke"])
def test_create_when_no_place_has_machines_then_each_is_listed_with_its_time(world: Families, cloud: str) -> None:
    world.begin(cloud)
    for rank in range(3):
        world.stock(cloud, rank, 0)
    ended = world.ran(spec("team", world.there, [ranked(cloud)]))
    assert (ended.code, world.sizes(), world.taken()) == (ExitCode.CAPACITY, {}, 0), ended
    error = ended.report.error
    assert error is not None
    assert [str(one.where) for one in error.diagnostics] == [f"{cloud}/m{rank}" for rank in range(3)]
    assert all(re.search(r"no machines at \d\d:\d\d:\d\d UTC", one.seen) for one in error.diagnostics), error
    assert all(one.why for one in error.diagnostics)


def test_create_when_a_price_is_unknown_or_old_then_refused_before_the_first_change(world: Families) -> None:
    world.begin("eks")
    mark = world.last_request()
    document = spec("team", world.there, [ranked("eks", maxHourlyPrice=100)])
    with pytest.raises(SpecError) as caught:
        world.ran(document)
    assert caught.value.exit_code == ExitCode.BAD_INPUT
    assert {one.code for one in caught.value.diagnostics} == {"price-unknown"}
    assert all("m" in one.seen and "--live-prices" in one.fix for one in caught.value.diagnostics)
    reading = ("GET", "HEAD", "OPTIONS")
    changed = [one for one in daemon.requests_since(world.info, mark) if one["method"] not in reading]
    assert [one for one in changed if "node-groups" in str(one["path"]) or "leases" in str(one["path"])] == []


@pytest.mark.slow
def test_create_when_every_alternative_costs_too_much_then_one_and_nothing_was_asked(world: Families) -> None:
    world.begin("eks")
    mark = world.last_request()
    live = [LivePrice(machine, 10.0, spot=kind == "spot") for machine, kind in RANKS["eks"]]
    prices = PriceBook(live={("eks", "us-east-1"): tuple(live)}, day="2026-11-28")
    ended = world.ran(spec("team", world.there, [ranked("eks", maxHourlyPrice=19.99)]), prices)
    assert (ended.code, made_requests(world.info, mark)) == (ExitCode.ERROR, []), ended
    assert ended.report.error is not None
    assert {one.code for one in ended.report.error.diagnostics} == {"family-price"}
    enough = world.ran(spec("team", world.there, [ranked("eks", maxHourlyPrice=20)]), prices)
    assert (enough.code, enough.report.name) == (0, "m0"), enough


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", ["eks", "gke"])
def test_create_when_a_killed_attempt_costs_too_much_now_then_its_nodes_are_given_back_first(
    world: Families, cloud: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 1)
    world.ran(spec("team", world.there, [ranked(cloud)]), run=world.run_until("m0 no machines", stop=True))
    assert world.ready(cloud, "m0") == 1
    machine, _ = RANKS[cloud][1]
    region = "us-east-1" if cloud == "eks" else "us-central1"
    live = (LivePrice(machine, 50.0, spot=False), LivePrice(machine, 10.0, spot=True))
    prices = PriceBook(live={(cloud, region): live}, day="2026-11-28")
    with world.watched() as seen:
        ended = world.ran(spec("team", world.there, [ranked(cloud, maxHourlyPrice=40)]), prices=prices)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended
    assert max(map(len, seen)) == 1, seen
