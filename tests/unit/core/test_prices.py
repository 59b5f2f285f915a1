"""What nodes cost: which price holds where, and that what is not known never counts as nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cli.bodies.plan_prices import old_days
from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.prices import EMBEDDED, NOTHING, NodePrice, PriceBook, Side, Usd
from gpukube.engine.documents.prices import Prices, add_prices
from gpukube.gpu.machines import require_machine
from gpukube.gpu.models import parse_model
from gpukube.gpu.refreshed import Offer, Stock

P4D = require_machine("eks", "p4d.24xlarge")
A2 = require_machine("gke", "a2-highgpu-1g")
T4_ON_N1 = require_machine("gke", "n1-standard-4", (parse_model("T4"), 1))


def refreshed(region: str, usd: float | None, spot: float | None = None) -> Stock:
    offer = Offer("p4d.24xlarge", price_usd_h=usd, spot_usd_h=spot, price_date="2026-11-01")
    return Stock("eks", region, "2026-11-02T00:00:00Z", (offer,))


def live(*prices: LivePrice, region: str = "eu-west-1") -> PriceBook:
    return PriceBook(live={("eks", region): prices}, day="2026-11-22")


@pytest.mark.parametrize(
    ("book", "machine", "capacity", "region", "expected"),
    [
        (EMBEDDED, P4D, "on-demand", "us-east-1", ("embedded", "us-east-1", "2026-07-20", False, True)),
        (EMBEDDED, P4D, "on-demand", "eu-west-1", ("embedded", "us-east-1", "2026-07-20", True, True)),
        (EMBEDDED, P4D, "on-demand", "", ("embedded", "us-east-1", "2026-07-20", True, True)),
        (EMBEDDED, P4D, "spot", "us-east-1", ("", "", "", False, False)),
        (EMBEDDED, A2, "spot", "us-central1", ("embedded", "us-central1", "2026-08-03", False, True)),
        (EMBEDDED, A2, "spot", "europe-west4", ("", "", "", False, False)),
        (EMBEDDED, T4_ON_N1, "on-demand", "us-central1", ("", "", "", False, False)),
        (EMBEDDED, P4D, "reserved", "us-east-1", ("", "", "", False, False)),
        (EMBEDDED, P4D, "preemptible", "us-east-1", ("", "", "", False, False)),
        (PriceBook((refreshed("eu-west-1", 24.5),)), P4D, "on-demand", "eu-west-1",
         ("refreshed", "eu-west-1", "2026-11-01", False, True)),
        (PriceBook((refreshed("eu-west-1", 24.5),)), P4D, "on-demand", "us-east-1",
         ("embedded", "us-east-1", "2026-07-20", False, True)),
        (PriceBook((refreshed("us-east-1", 22.5),)), P4D, "on-demand", "eu-west-1",
         ("refreshed", "us-east-1", "2026-11-01", True, True)),
        (PriceBook((refreshed("eu-west-1", None),)), P4D, "on-demand", "eu-west-1",
         ("embedded", "us-east-1", "2026-07-20", True, True)),
        (PriceBook((refreshed("eu-west-1", 24.5, 9.0),)), P4D, "spot", "eu-west-1",
         ("refreshed", "eu-west-1", "2026-11-01", False, True)),
        (live(LivePrice("p4d.24xlarge", 30.0)), P4D, "on-demand", "eu-west-1",
         ("live", "eu-west-1", "2026-11-22", False, True)),
        (live(LivePrice("p5.48xlarge", 30.0)), P4D, "on-demand", "eu-west-1",
         ("embedded", "us-east-1", "2026-07-20", True, True)),
        (live(LivePrice("p4d.24xlarge", 30.0), region="eu-west-2"), P4D, "on-demand", "eu-west-1",
         ("embedded", "us-east-1", "2026-07-20", True, True)),
    ],
)  # fmt: skip
def test_price_when_looked_up_then_of_the_region_or_marked_or_unknown(
    book: PriceBook, machine: object, capacity: str, region: str, expected: tuple[str, str, str, bool, bool]
) -> None:
    price = book.price(machine, capacity, region)  # type: ignore[arg-type]
    assert (price.source, price.place, price.as_of, price.rough, price.usd is not None) == expected
    assert bool(price.unknown) is (price.usd is None)


def test_price_when_of_several_zones_then_from_the_lowest_to_the_highest_of_those_of_the_pool() -> None:
    zones = [
        LivePrice(P4D.name, usd, spot=True, zone=f"eu-west-1{zone}") for zone, usd in {"a": 9, "b": 12, "c": 10}.items()
    ]
    everywhere = live(*zones).price(P4D, "spot", "eu-west-1")
    assert (everywhere.usd, everywhere.place) == (Usd(9, 12), "eu-west-1a, eu-west-1b, eu-west-1c")
    here = live(*zones).price(P4D, "spot", "eu-west-1", ("eu-west-1c",))
    assert (here.usd, here.place) == (Usd(10, 10), "eu-west-1c")
    assert live(*zones).price(P4D, "spot", "eu-west-1", ("eu-west-1d",)).unknown


def test_guide_when_the_region_has_no_spot_price_then_that_of_another_still_orders_pools() -> None:
    price = EMBEDDED.price(A2, "spot", "europe-west4")
    assert (price.usd, price.guide) == (None, A2.spot_usd_h)


def test_side_when_it_has_no_nodes_then_nothing_even_where_one_is_of_unknown_price() -> None:
    side = Side(P4D, P4D.name, "reserved", (), 0, 0)
    assert side.total(side.node(EMBEDDED, "us-east-1")) == NOTHING
    assert replace(side, most=1).total(NodePrice(unknown="?")) is None
    assert replace(side, least=None, most=None).total(NodePrice(usd=Usd(1, 1))) is None
    assert "does not have x1" in replace(side, machine=None, name="x1").node(EMBEDDED, "").unknown


CENTS = st.integers(0, 10**7).map(lambda n: n / 10**4)
AMOUNTS = st.tuples(CENTS, CENTS).map(lambda pair: Usd(min(pair), max(pair)))
POOLS = st.lists(st.builds(Prices, st.none() | AMOUNTS, st.none() | AMOUNTS, st.booleans()), max_size=12)


@given(POOLS)
def test_sum_when_of_any_pools_then_that_of_its_parts_and_unknown_ones_are_counted(pools: list[Prices]) -> None:
    total = add_prices(pools, ())
    was, will = [pool.before for pool in pools], [pool.after for pool in pools]
    sums, unknown = total["usdPerHour"], total["unknown"]
    for parts, found, left_out in ((was, sums["before"], unknown["before"]), (will, sums["after"], unknown["after"])):
        known = [part for part in parts if part is not None]
        assert found["min"] == pytest.approx(sum(part.least for part in known), abs=1e-3)
        assert found["max"] == pytest.approx(sum(part.most for part in known), abs=1e-3)
        assert 0 <= found["min"] <= found["max"]
        assert left_out == len(parts) - len(known)
        assert [round(amount, 4) for amount in (found["min"], found["max"])] == [found["min"], found["max"]]


@given(CENTS, st.integers(0, 500), st.integers(0, 500))
def test_side_when_of_any_size_then_price_times_nodes(usd: float, least: int, more: int) -> None:
    side = Side(P4D, P4D.name, "on-demand", (), least, least + more)
    total = side.total(NodePrice(usd=Usd(usd, usd)))
    assert total is not None
    assert total.least == pytest.approx(usd * least, abs=1e-3)
    assert total.most == pytest.approx(usd * (least + more), abs=1e-3)


def test_days_when_older_than_three_months_then_old() -> None:
    assert old_days(["2026-06-18", "2026-08-25", "2026-08-24", "", "soon"], "2026-11-23") == (
        "2026-06-18",
        "2026-08-24",
    )
