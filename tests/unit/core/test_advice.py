"""Hints on pools that work and cost more than they have to, or give less than they seem."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.advice import advise
from gpukube.core.values import Capacity, Nodes, Ownership, Reservation
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.builders import make_target

CHART = Ownership("cloud", "chart", "c-1", {}, "test")
CLOUD = replace(CHART, advertiser="cloud")
SLICED = Sharing(slicing=Slicing("time-slicing", 4))
STRICT = Sharing(slicing=Slicing("time-slicing", 4, fail_requests_greater_than_one=True))
ALWAYS_8 = Nodes(8, 8, 8, autoscaled=False)

# What the pool has besides eight A100-40GB, who advertises, and what is said.
CASES: dict[str, tuple[dict[str, object], Ownership, list[str]]] = {
    "whole": ({}, CHART, []),
    "a profile that divides the GPU": ({"sharing": Sharing(MigCut("1g.5gb", "single"))}, CHART, []),
    "the whole GPU as one instance": ({"sharing": Sharing(MigCut("7g.40gb", "single"))}, CHART, []),
    "a profile that takes all memory": ({"sharing": Sharing(MigCut("3g.20gb", "single"))}, CHART, []),
    "a profile that leaves a slice": ({"sharing": Sharing(MigCut("2g.10gb", "mixed"))}, CLOUD, ["mig-leftover"]),
    "a profile that leaves half": ({"sharing": Sharing(MigCut("4g.20gb", "single"))}, CHART, ["mig-leftover"]),
    "a layout": ({"sharing": Sharing(MigCut("", "mixed", ("3g.20gb",)))}, CHART, []),
    "shares of several GPUs": ({"sharing": SLICED}, CHART, ["shares-add", "sharing-isolation"]),
    "shares that the operator gives": (
        {"sharing": SLICED},
        replace(CHART, advertiser="operator"),
        ["shares-add", "sharing-isolation"],
    ),
    "shares of the cloud's plugin": ({"sharing": SLICED}, CLOUD, ["sharing-isolation"]),
    "shares one by one": ({"sharing": STRICT}, CHART, ["sharing-isolation"]),
    "shares by MPS": ({"sharing": Sharing(slicing=Slicing("mps", 4))}, CHART, ["sharing-isolation"]),
    "many that always run": ({"nodes": ALWAYS_8}, CHART, ["costly"]),
    "many that may be gone": ({"nodes": Nodes(8, 0, 8, autoscaled=True)}, CHART, []),
    "many that are paid for": (
        {"nodes": ALWAYS_8, "capacity": Capacity("reserved", reservation=Reservation("reservation", "a"))},
        CHART,
        [],
    ),
    "many on spot": ({"nodes": ALWAYS_8, "capacity": Capacity("spot")}, CHART, []),
}


@pytest.mark.parametrize(("changes", "ownership", "codes"), CASES.values(), ids=CASES)
def test_pool_when_judged_then_said_is(changes: dict[str, object], ownership: Ownership, codes: list[str]) -> None:
    found = advise(make_target(**changes), ownership)  # type: ignore[arg-type]  # test data
    assert [one.code for one in found] == codes
    assert {one.severity for one in found} <= {"hint"}


def test_leftover_when_said_then_names_the_largest_number_that_would_still_fit() -> None:
    (found,) = advise(make_target(sharing=Sharing(MigCut("4g.20gb", "single"))), CHART)
    assert found.seen == ("train-aks/a100mig: 1 x 4g.20gb leave part of each A100-40GB unused: room for 3 x 1g.5gb")


def test_shares_when_the_node_has_one_gpu_then_only_what_they_do_not_isolate() -> None:
    (found,) = advise(make_target("Standard_NC4as_T4_v3", sharing=SLICED), CHART)
    assert found.seen.endswith("are not isolated: each may use all memory of the GPU, and a fault of one can stop all")


def test_shares_when_of_instances_then_only_those_of_one_are_not_isolated() -> None:
    of_slices = Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 4, fail_requests_greater_than_one=True))
    (found,) = advise(make_target(sharing=of_slices), CHART)
    assert "pods that share a GPU instance are not isolated" in found.seen


def test_price_when_said_then_with_number_day_and_place() -> None:
    (found,) = advise(make_target(nodes=ALWAYS_8), CHART)
    machine = make_target().machine
    assert machine.price_usd_h is not None
    assert f"about {8 * machine.price_usd_h:.0f} USD an hour on demand" in found.seen
    assert f"({machine.price_region}, {machine.price_date})" in found.seen
