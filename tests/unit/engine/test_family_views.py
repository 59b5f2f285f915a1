"""Families in plans, lists, and commands by name, where the sandbox of tests/cli has no such state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.fields import COUNT
from gpukube.core.plan import plan_pool, plan_removal
from gpukube.core.prices import EMBEDDED, PriceBook
from gpukube.core.values import FAMILY_LABEL, Capacity, ClusterFacts, FamilyPlace, Nodes
from gpukube.engine.change.holders import declared_lines, planned_lines
from gpukube.engine.change.scale import Size, plan_scaling
from gpukube.engine.documents.families import listed_families, longest_waits
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.plan.families import with_families
from gpukube.engine.plan.lookup import absent_pools
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.plan.price_limits import CurrentLimits, PriceLimits
from gpukube.errors import Conflict
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER
from tests.screens.scenes import live, node, wanted
from tests.unit.engine.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Action, ClusterRef, Desired, FamilyRole, Observed, PoolPlan

ND, T4 = "Standard_ND96asr_v4", "Standard_NC4as_T4_v3"
PROVIDER = FakeProvider()
OTHER = replace(CLUSTER, key="serve-aks", name="serve")
OWNER = "ml-platform"


def member(name: str, rank: int, machine: str = T4, **changes: object) -> Desired:
    made = wanted(name, machine, None, family="first", rank=rank, nodes=Nodes(2, 2, 2, autoscaled=False))
    return replace(made, target=replace(made.target, **changes))  # type: ignore[arg-type]  # test data


def there(name: str, nodes: int, machine: str = T4, family: str = "first") -> Observed:
    labels = {FAMILY_LABEL: family} if family else {}
    return live(name, machine, nodes, labels=labels, fields={COUNT: nodes})


def cluster(desired: list[Desired], found: list[Observed], key: ClusterRef = CLUSTER) -> ClusterPlan:
    facts = ClusterFacts("eastus", "1.34.2", ready=True, status="Running")
    return ClusterPlan(key, facts, live=tuple(found), desired=tuple(desired))


FAMILY = [member("first", 0), member("second", 1), member("third", 2, ND)]


def planned(desired: Desired, role: FamilyRole, observed: Observed | None = None) -> PoolPlan:
    plan = plan_pool(PROVIDER, desired, ())
    place = FamilyPlace("first", desired.target.rank, role, of=3)
    if role == "leftover" and observed:
        return replace(plan_removal(PROVIDER, CLUSTER, observed), desired=desired, family=place)
    action: Action = "no-op" if role == "holder" else "create" if role == "next" else "standby"
    return replace(plan, action=action, observed=observed, family=place)


@pytest.mark.parametrize(
    ("found", "names", "absent"),
    [
        ([], ["first"], ["first"]),
        ([], ["second"], ["second"]),
        ([], ["train-aks/first", "third"], ["first"]),
        ([there("third", 2)], ["first"], []),
        ([there("third", 2)], ["first", "second"], []),
        ([there("third", 2)], ["second"], ["second"]),
        ([there("first", 2, family="")], ["first"], []),  # as before it had alternatives
    ],
)
def test_absent_when_a_family_is_named_then_only_if_no_pool_of_it_is_live(
    found: list[Observed], names: list[str], absent: list[str]
) -> None:
    plan = cluster(FAMILY, found)
    assert list(absent_pools(plan, names, [plan])) == absent


def test_absent_when_the_family_is_on_any_cluster_then_it_exists_if_one_has_it() -> None:
    here = [member("first", 0, place="any"), member("second", 1, place="any")]
    plans = [cluster(here, []), cluster([], [there("second", 2)], OTHER)]
    assert list(absent_pools(plans[0], ["first"], plans)) == []
    assert list(absent_pools(plans[0], ["first"], plans[:1])) == ["first"]
    everywhere = [replace(plans[0], desired=tuple(FAMILY)), plans[1]]
    assert list(absent_pools(everywhere[0], ["first"], everywhere)) == ["first"]


@pytest.mark.parametrize(
    ("found", "name", "said"),
    [
        ([there("first", 2), there("third", 1)], "first", "first and third have nodes"),
        ([there("first", 0), there("third", 0)], "first", "first and third have no nodes"),
        ([there("first", 2), there("third", 0)], "third", "third has no nodes"),
    ],
)
def test_scale_when_not_exactly_one_pool_of_a_family_has_nodes_then_refused(
    found: list[Observed], name: str, said: str
) -> None:
    stage = Stage([])
    with pytest.raises(Conflict, match=said) as caught:
        plan_scaling([cluster(FAMILY, found)], {CLUSTER.key: stage.session}, [OWNER], name, Size(count=3))
    assert caught.value.diagnostics[0].code == "family-partial"


def test_lines_when_pools_are_a_family_then_one_and_none_if_it_is_on_any_cluster() -> None:
    alone, anywhere = wanted("alone"), [member("first", 0, place="any"), member("second", 1, place="any")]
    assert list(declared_lines([*FAMILY, alone])) == [("first", "first"), ("alone", "alone")]
    assert list(declared_lines([*anywhere, alone])) == [("alone", "alone")]
    listed: set[FamilyKey] = set()
    assert list(declared_lines(anywhere, listed)) == [("first", "first")]
    assert list(declared_lines([*anywhere, alone], listed)) == [("alone", "alone")]
    pools = [planned(FAMILY[0], "standby"), planned(FAMILY[1], "holder"), plan_pool(PROVIDER, alone, ())]
    assert [name for name, _ in planned_lines(pools)] == ["first", "alone"]


def test_plan_when_another_pool_of_the_family_has_nodes_too_then_they_count_and_those_left_over_go() -> None:
    pools = (
        planned(FAMILY[0], "holder", there("first", 2)),
        planned(FAMILY[1], "leftover", there("second", 0)),
        planned(FAMILY[2], "second", there("third", 1, ND)),
    )
    document = plan_document([replace(cluster(FAMILY, []), pools=pools)], ())
    first, left, second = document["clusters"][0]["pools"]
    assert document["summary"]["gpus"] == {"before": 10, "min": 10, "max": 10}
    assert document["summary"]["price"]["usdPerHour"]["after"] == document["summary"]["price"]["usdPerHour"]["before"]
    assert (left["needs"], left["declared"], left["price"] and left["price"]["usdPerHour"]["after"]) == (
        [], None, {"min": 0, "max": 0},
    )  # fmt: skip
    assert second["price"]
    assert second["price"]["usdPerHour"]["after"] == {"min": 27.197, "max": 27.197}
    assert second["price"]["ifTried"] == {"min": 54.394, "max": 54.394}
    assert [part["family"]["role"] for part in (first, left, second)] == ["holder", "leftover", "second"]


def test_waits_when_no_pool_has_nodes_then_each_cloud_may_take_its_time() -> None:
    plan = replace(cluster(FAMILY, []), pools=(planned(FAMILY[0], "next"), planned(FAMILY[1], "standby")))
    assert list(longest_waits([plan]).values()) == [2 * 30 * 60]


def test_list_when_a_family_has_no_nodes_then_no_pool_is_named() -> None:
    (family,) = listed_families(cluster(FAMILY, [there("third", 0), there("old", 0)]))
    assert family == {"name": "first", "owner": OWNER, "members": ["first", "second", "third", "old"], "holder": ""}


def test_prices_when_a_pool_costs_too_much_then_an_alternative_is_skipped_and_another_pool_refused() -> None:
    dear, alone = member("first", 0, ND, max_hourly_price=50.0), wanted("alone", ND, max_hourly_price=20.0)
    pools = (planned(dear, "next"), plan_pool(PROVIDER, alone, ()), planned(member("third", 1), "standby"))
    book = EMBEDDED
    now = 1_782_000_000.0  # June 2026, days after the embedded prices
    (shown,) = PriceLimits(book, now).shown([replace(cluster([dear, alone], []), pools=pools)])
    found = [[(one.code, one.severity) for one in pool.diagnostics] for pool in shown.pools]
    assert found == [[("price-limit", "warning")], [("price-limit", "error")], []]
    late = PriceLimits(book, now + 90 * 86400).shown([replace(cluster([dear], []), pools=pools[:1])])
    assert [one.code for one in late[0].pools[0].diagnostics] == ["price-unknown"]


def test_prices_when_an_attempt_comes_late_then_its_spot_price_is_read_again_and_no_other() -> None:
    spot = member("second", 1, max_hourly_price=10.0, capacity=Capacity("spot"))
    whole = replace(cluster([*FAMILY[:1], spot], []), pools=(planned(FAMILY[0], "next"), planned(spot, "standby")))
    asked: list[list[str]] = []
    usd: list[float | None] = [6.0, 4.0, None]
    now = [1_782_000_000.0]

    def prices(plans: Sequence[ClusterPlan]) -> PriceBook:
        asked.append([pool.pool for plan in plans for pool in plan.pools])
        price = usd.pop(0)
        told = () if price is None else (LivePrice(T4, price, spot=True),)
        return PriceBook(live={("aks", "eastus"): (LivePrice(T4, 2.0), *told)}, day="2026-06-21")

    limits = CurrentLimits(PriceLimits(PriceBook(live={("aks", "eastus"): (LivePrice(T4, 3.0, spot=True),)}), now[0]),
                           prices, lambda: now[0])  # fmt: skip
    assert (limits.over(whole, spot), asked) == ("", [])
    now[0] += 301
    assert limits.over(whole, member("first", 0, max_hourly_price=10.0)) == ""
    assert asked == [], "prices on demand do not change within a run"
    assert limits.over(whole, spot).startswith("12.00 USD/h, more than maxHourlyPrice: 10")
    assert limits.hourly(whole, spot) == 12.0
    assert asked == [["second"]]
    now[0] += 301
    assert limits.over(whole, spot) == ""
    now[0] += 301
    assert limits.over(whole, spot) == f"the catalog has no spot price of {T4}", "an unknown price is not a low one"
    assert asked == [["second"]] * 3


@pytest.mark.parametrize(
    ("ready", "said"), [(2, "third has the nodes of first"), (0, "third waits for the nodes of first")]
)
def test_plan_when_an_attempt_has_no_nodes_yet_then_it_waits_for_them(ready: int, said: str) -> None:
    stage = Stage([])
    nodes = tuple(node(f"n{number}", "third", {"nvidia.com/gpu": "8"}) for number in range(ready))
    holder = plan_pool(PROVIDER, FAMILY[2], ())
    holder = replace(holder, action="no-op", why="matches the spec", observed=there("third", 2))
    pools = (*(plan_pool(PROVIDER, desired, ()) for desired in FAMILY[:2]), holder)
    read = replace(cluster(FAMILY, []), pools=pools, seen=Snapshot(nodes=nodes))
    (found,) = with_families([read], {CLUSTER.key: stage.session})
    assert [(pool.action, pool.why) for pool in found.pools[:2]] == [("standby", said), ("standby", said)]
    assert ("has no nodes yet" in found.pools[2].why) == (not ready)
