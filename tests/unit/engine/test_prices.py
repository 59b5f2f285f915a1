"""What a plan says of prices: per pool, in all, and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cli.rendering.prices import price_change, price_line, price_words, usd
from gpukube.core.fields import CAPACITY_TYPE
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.prices import EMBEDDED
from gpukube.core.values import Capacity, ClusterFacts, Nodes, Promise, Replacement
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.prices import price_part
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.plan.regions import region_of
from gpukube.errors import CloudError, Finding, Where
from gpukube.gpu.machines import require_machine
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER, make_observed
from tests.screens.scenes import live, wanted

if TYPE_CHECKING:
    from gpukube.core.values import Action, PoolPlan
    from gpukube.engine.documents.shapes.prices import PoolPricePart

ND, T4 = "Standard_ND96asr_v4", "Standard_NC4as_T4_v3"
ND_USD, T4_USD = 27.197, 0.526
"""In eastus (retail prices of 2026-06-18)."""
PROVIDER = FakeProvider()


def nodes(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


def plan(action: Action = "create", machine: str = ND, **changes: Any) -> PoolPlan:  # noqa: ANN401 - parts of plans and targets
    there = changes.pop("there", None)
    devices = changes.pop("devices", {"nvidia.com/gpu": 8})
    desired = wanted("p", machine, devices, **changes)
    made = plan_pool(PROVIDER, desired, ())
    return replace(made, action=action, observed=there)


def part(planned: PoolPlan, region: str = "eastus") -> PoolPricePart:
    found = price_part(planned, region, EMBEDDED)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("planned", "cell"),
    [
        (plan(nodes=nodes(2)), "0 -> 54.39"),
        (plan(nodes=Nodes(0, 0, 4, autoscaled=True)), "0 -> 0 to 108.79"),
        (plan("no-op", T4, there=live("p", T4, 1)), "0.53"),
        (plan("update", T4, nodes=nodes(3), there=live("p", T4, 1)), "0.53 -> 1.58"),
        (plan("replace", ND, there=live("p", T4, 2)), "1.05 -> 27.20"),
        (plan("adopt", T4, there=live("p", T4, None)), "? -> 0.53"),
        (plan("no-op", T4, there=live("p", "Standard_D2s_v5", 1)), "? -> 0.53"),
        (plan("no-op", T4, there=live("p", "Standard_D2s_v5", 0)), "0 -> 0.53"),
        (plan(capacity=Capacity("spot")), "0 -> ?"),
        (plan(capacity=Capacity("reserved")), "0 -> ?"),
        (plan_removal(PROVIDER, CLUSTER, live("old", ND, 2)), "54.39 -> 0"),
    ],
)
def test_price_when_a_pool_is_planned_then_before_and_after(planned: PoolPlan, cell: str) -> None:
    assert price_change(part(planned)) == cell


def test_price_when_the_pool_is_not_ours_then_none() -> None:
    assert price_part(plan("conflict", there=live("p", ND, 1)), "eastus", EMBEDDED) is None


def test_price_when_replaced_then_what_both_cost_while_both_run() -> None:
    beside = Replacement("pb", wanted("pb", ND))
    both = {"min": ND_USD + 2 * T4_USD, "max": ND_USD + 2 * T4_USD}
    surge = replace(plan("replace", ND, there=live("p", T4, 2)), replacement=beside)
    assert part(surge)["whileBothRun"] == both
    uncounted = replace(surge, observed=live("p", T4, None))
    assert part(uncounted)["whileBothRun"] is None
    full = replace(beside, obstacles=(Finding("no-room", Where("p"), "there is no room for both"),))
    assert part(replace(surge, replacement=full))["whileBothRun"] is None
    assert part(replace(surge, replacement=None))["whileBothRun"] is None


def test_price_when_a_replacement_is_under_way_then_both_pools_are_there_before() -> None:
    begun = Replacement("pb", wanted("pb", ND), beside=live("pb", ND, 1))
    found = part(replace(plan("replace", ND, there=live("p", T4, 2)), replacement=begun))
    assert price_change(found) == "28.25 -> 27.20"
    assert found["whileBothRun"] == found["usdPerHour"]["before"]


@pytest.mark.parametrize(
    ("devices", "device", "each"),
    [
        ({"nvidia.com/gpu": 8}, "nvidia.com/gpu", ND_USD / 8),
        ({"nvidia.com/mig-1g.5gb": 56}, "nvidia.com/mig-1g.5gb", ND_USD / 56),
        ({"nvidia.com/gpu.shared": 80}, "nvidia.com/gpu.shared", ND_USD / 80),
        ({"nvidia.com/mig-1g.5gb": 16, "nvidia.com/mig-3g.20gb": 8}, "", None),
        ({}, "", None),
    ],
)
def test_price_when_of_one_device_then_of_the_one_kind_that_nodes_have(
    devices: dict[str, int], device: str, each: float | None
) -> None:
    planned = plan()
    assert planned.desired
    promised = replace(planned.desired, promise=Promise(devices, planned.desired.target.nodes))
    found = part(replace(planned, desired=promised))
    assert found["device"] == device
    assert found["perDevice"] == (None if each is None else {"min": round(each, 4), "max": round(each, 4)})
    assert found["perGpuHour"] == {"min": round(ND_USD / 8, 4), "max": round(ND_USD / 8, 4)}


def test_price_when_of_a_part_of_a_gpu_then_the_gpu_costs_the_whole() -> None:
    machine = require_machine("aks", "Standard_NV6ads_A10_v5")
    assert machine.price_usd_h
    whole = part(plan(machine=machine.name))["perGpuHour"]
    assert whole
    assert whole["min"] == whole["max"] == pytest.approx(machine.price_usd_h * 6, abs=0.01)


def test_price_when_the_region_is_another_then_marked_with_the_place_that_it_is_of() -> None:
    found = part(plan(), "westeurope")
    assert (found["rough"], found["place"]) == (True, "eastus")
    assert price_words(found) == "0 -> ~27.20 USD/h, ~3.40 per GPU (price of eastus, 2026-06-18)"


def test_price_when_unknown_then_the_words_say_why() -> None:
    assert price_words(part(plan(capacity=Capacity("reserved")))) == (
        "0 -> ? USD/h: reserved capacity has no list price"
    )
    unsaid = part(plan("no-op", T4, there=live("p", T4, None)))
    assert price_words(unsaid).endswith("(eastus, 2026-06-18): the number of nodes is unknown")


def test_sum_when_some_prices_are_unknown_then_a_lower_bound_and_how_many() -> None:
    facts = ClusterFacts("eastus", "1.34.2", ready=True, status="Succeeded")
    lost = ClusterPlan(replace(CLUSTER, key="lost"), error=CloudError("no"), desired=(wanted("lost"),))
    pools = (plan(), plan(capacity=Capacity("reserved")), plan("conflict", there=live("p", ND, 1)))
    total = plan_document([ClusterPlan(CLUSTER, facts=facts, pools=pools), lost], [])["summary"]["price"]
    assert total["usdPerHour"] == {"before": {"min": 0.0, "max": 0.0}, "after": {"min": ND_USD, "max": ND_USD}}
    assert total["unknown"] == {"before": 1, "after": 2}
    assert price_line(total).startswith("price: ? now, >= 27.20 USD/h after, and ? for 2 pools; without disks, ")
    assert total["usdPerMonth"]["after"]["min"] == round(ND_USD * 730, 2)


def test_live_price_when_it_was_bought_otherwise_then_as_it_is_bought() -> None:
    there = make_observed(wanted("p", ND, {}), nodes=1)
    spot = replace(there, fields={**there.fields, CAPACITY_TYPE: "spot"})
    assert part(plan("no-op", there=there))["usdPerHour"]["before"]
    assert part(plan("no-op", there=spot))["usdPerHour"]["before"] is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (0.0049, "0.0049"), (0.0526, "0.053"), (0.1, "0.10"), (0.526, "0.53"), (27.197, "27.20"),
     (1234.5, "1,234.50")],
)  # fmt: skip
def test_amount_when_written_then_without_needless_digits(amount: float, text: str) -> None:
    assert usd(amount) == text


def test_region_when_the_cloud_was_not_asked_then_as_the_spec_has_it() -> None:
    gke = replace(CLUSTER, provider="gke", identity={"project": "p", "location": "us-central1-a"})
    eks = replace(CLUSTER, provider="eks", identity={"account": "1", "region": "eu-west-1"})
    assert (region_of(gke), region_of(eks), region_of(CLUSTER)) == ("us-central1", "eu-west-1", "")
    assert region_of(gke, "europe-west4-b") == "europe-west4"
