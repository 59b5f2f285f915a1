"""What a plan needs of the clouds' quotas, and what is read of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpukube.core.fields import CAPACITY_TYPE, COUNT, DISK_SIZE, LEAST, MOST
from gpukube.core.plan import plan_pool
from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaDraw, QuotaNeed, QuotaReading
from gpukube.core.values import Change, ClassifiedChange, Nodes, Replacement, Settings
from gpukube.engine.change.holding import QuotaReads
from gpukube.engine.plan.planning import ClusterPlan, Scope
from gpukube.engine.plan.quotas import pool_needs, quotas_for, shortfalls, with_quotas
from gpukube.engine.run.session import Session
from gpukube.errors import CloudError
from gpukube.testing.fakes import FakeCloud, FakeProvider, FakeWorld
from tests.builders import CLUSTER, make_observed
from tests.unit.cluster.builders import desire
from tests.unit.engine.worlds import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Capacity, ClusterRef, Desired, Observed, PoolPlan
    from gpukube.gpu.catalog import Machine

ON_DEMAND = CloudQuota("fake", "od", "on-demand GPUs", "GPUs", "acme/nowhere-1", "fake quota set od {value}", "here")
SPOT = replace(ON_DEMAND, name="spot", raise_by="fake quota set spot {value}")
SECRET = replace(ON_DEMAND, name="secret", unread="nobody documents it")
TEN = QuotaReading(limit=10, used=4)


def draws(cluster: ClusterRef, location: str, machine: Machine, capacity: Capacity) -> tuple[QuotaDraw, ...]:
    del cluster, location
    return (QuotaDraw(SPOT if capacity.type == "spot" else ON_DEMAND, machine.gpus),)


def surge(desired: Desired, observed: Observed, changes: Sequence[Change]) -> int:
    del desired, observed
    return 1 if any(change.field == DISK_SIZE for change in changes) else 0


KNOWN = CloudQuotas(draws, surge)


class WithQuotas(FakeProvider):
    """A provider that names quotas."""

    def __init__(self, worlds: Mapping[str, FakeWorld] | None = None) -> None:
        super().__init__(worlds)
        self.extras.quotas = KNOWN


class Limits(FakeCloud):
    """A cloud that has quotas; what it is asked is recorded."""

    def __init__(self, found: Mapping[CloudQuota, QuotaReading] | Exception) -> None:
        super().__init__(FakeWorld())
        self.found = found
        self.asked: list[CloudQuota] = []

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        self.asked += asked
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def plan(new: Desired, old: Desired | None = None) -> PoolPlan:
    live = () if old is None else (make_observed(old),)
    return plan_pool(FakeProvider(), new, live)


def sized(count: int, labels: Mapping[str, str] = MappingProxyType({})) -> Desired:
    made = desire(nodes=Nodes(count, count, count, autoscaled=False), labels=labels)
    return replace(made, fields={**made.fields, CAPACITY_TYPE: "on-demand"})


def needed(planned: PoolPlan, *, beside: bool = False) -> dict[str, float]:
    return {need.quota.name: need.amount for need in pool_needs(KNOWN, planned, "nowhere-1", None, beside=beside)}


def test_needs_when_a_pool_is_new_then_all_the_nodes_it_may_have() -> None:
    assert needed(plan(desire(nodes=Nodes(0, 0, 3, autoscaled=True)))) == {"od": 24}


def test_needs_when_a_pool_grows_then_the_nodes_it_has_not() -> None:
    assert needed(plan(sized(5), sized(2))) == {"od": 24}
    assert needed(plan(sized(2), sized(5))) == {}
    assert needed(plan(sized(2), sized(2))) == {}
    assert needed(plan(sized(2, {"a": "b"}), sized(2))) == {}


def test_needs_when_a_change_rolls_the_nodes_then_those_that_come_beside() -> None:
    planned = plan(sized(2), sized(2))
    rolled = replace(planned, action="update")
    change = Change(DISK_SIZE, 100, 200)
    row = FakeProvider().update_row(change)
    assert needed(replace(rolled, changes=(ClassifiedChange(change, row),))) == {"od": 8}


def test_needs_when_a_pool_is_replaced_then_less_what_goes_first_unless_both_stand() -> None:
    planned = replace(plan(sized(3), sized(2)), action="replace")
    assert needed(planned) == {"od": 8}
    assert needed(planned, beside=True) == {"od": 24}


def test_quotas_when_clusters_share_them_then_read_once_and_summed() -> None:
    first, second = Limits({ON_DEMAND: TEN}), Limits({})
    needs = {"a": [QuotaNeed(ON_DEMAND, 5, "a/x")], "b": [QuotaNeed(ON_DEMAND, 2, "b/y")], "c": []}
    found = quotas_for(needs, {"a": first, "b": second}, 4)
    (use,) = found["b"]
    assert (found["a"], found["c"]) == ((use,), ())
    assert (use.needed, use.pools, use.free, use.is_short) == (7, ("a/x", "b/y"), 6, True)
    assert (first.asked, second.asked) == ([ON_DEMAND], [])
    (problem,) = shortfalls([use], "a")
    assert problem.seen == (
        "quota od (on-demand GPUs) in acme/nowhere-1 allows 10 GPUs, 4 of them used; a/x, b/y may need 7 more"
    )
    assert problem.fix == "raise it to 11: fake quota set od 11"


def test_quotas_when_one_cannot_be_read_then_unknown_and_never_zero() -> None:
    needs = {"a": [QuotaNeed(quota, 5, "a/x") for quota in (ON_DEMAND, SPOT, SECRET)]}
    uses = quotas_for(needs, {"a": Limits({SPOT: QuotaReading(limit=4, unknown="no usage")})}, 4)["a"]
    assert [(use.free, use.is_short, use.reading.unknown) for use in uses] == [
        (None, False, "the cloud does not list it"),
        (None, True, "no usage"),
        (None, False, "nobody documents it"),
    ]
    (use, *_) = quotas_for(needs, {"a": Limits(CloudError("no answer", fix="wait"))}, 4)["a"]
    assert (use.reading.limit, use.reading.unknown) == (None, "no answer")


def test_replacement_when_both_pools_stand_then_their_sum_is_shown() -> None:
    planned = replace(plan(sized(2), sized(2)), action="replace", replacement=Replacement("a100migb", sized(2)))
    cluster = ClusterPlan(CLUSTER, FACTS, pools=(planned,))
    session = Session(CLUSTER, WithQuotas(), Limits({ON_DEMAND: QuotaReading(limit=20, used=16)}), Settings())
    (found,) = with_quotas([cluster], {CLUSTER.key: session}, Scope(), 1)
    assert (found.quotas, found.diagnostics) == ((), ())
    (found,) = with_quotas([cluster], {CLUSTER.key: session}, Scope(replace="surge"), 1)
    assert [(use.needed, use.is_short) for use in found.quotas] == [(16, True)]
    under_way = replace(planned, replacement=Replacement("a100migb", sized(2), beside=make_observed(sized(2))))
    (found,) = with_quotas([replace(cluster, pools=(under_way,))], {CLUSTER.key: session}, Scope(replace="surge"), 1)
    assert found.quotas == ()


def create_of(name: str, count: int, *, autoscaled: bool = False) -> PoolPlan:
    made = desire(nodes=Nodes(count, count, 99 if autoscaled else count, autoscaled=autoscaled))
    return plan(replace(made, target=replace(made.target, pool=name, name=name)))


def held(
    found: Mapping[CloudQuota, QuotaReading] | Exception, *pools: PoolPlan
) -> tuple[dict[str, str], str, list[CloudQuota]]:
    """Return the pools that are held back with the message, the line on what was not read, and what was asked."""
    cloud, reads = Limits(found), QuotaReads(("create", "update"))
    session = Session(CLUSTER, WithQuotas(), cloud, Settings())
    planned = ClusterPlan(CLUSTER, FACTS, pools=pools)
    reads.begin(planned, session)
    reads.begin(planned, session)
    errors, unread = reads.held((planned,), {CLUSTER.key: session})
    return {pool: str(error) for (_, pool), error in errors.items()}, unread, cloud.asked


def test_pools_when_one_has_no_room_to_start_then_it_is_held_back_and_those_after_it_are_not() -> None:
    pools, unread, asked = held(
        {ON_DEMAND: QuotaReading(limit=40, used=16)},
        create_of("a", 2),  # 16 of 24
        create_of("b", 2),
        create_of("c", 1),
        create_of("d", 1),
        create_of("e", 0, autoscaled=True),
    )
    assert (list(pools), unread, asked) == (["b", "d"], "", [ON_DEMAND])
    assert "allows 40 GPUs, 16 of them used, 8 left after the pools before this one" in pools["b"]


def test_pools_when_autoscaled_then_held_to_what_they_start_with() -> None:
    eight = {ON_DEMAND: QuotaReading(limit=8, used=0)}
    assert held(eight, create_of("a", 1, autoscaled=True))[0] == {}
    assert list(held(eight, create_of("a", 2, autoscaled=True))[0]) == ["a"]
    assert needed_at_once(plan(scaled(1, 9), scaled(1, 2))) == {}
    assert needed_at_once(plan(scaled(3, 9), scaled(1, 2))) == {"od": 16}
    assert needed_at_once(plan(sized(5), sized(2))) == {"od": 24}


def scaled(least: int, most: int) -> Desired:
    made = desire(nodes=Nodes(least, least, most, autoscaled=True))
    fields = {key: value for key, value in made.fields.items() if key != COUNT} | {LEAST: least, MOST: most}
    return replace(made, fields={**fields, CAPACITY_TYPE: "on-demand"})


def needed_at_once(planned: PoolPlan) -> dict[str, float]:
    return {need.quota.name: need.amount for need in pool_needs(KNOWN, planned, "nowhere-1", None, at_once=True)}


def test_pools_when_limit_or_use_was_not_read_then_none_is_held_back_and_one_line_says_so() -> None:
    for reading in (QuotaReading(limit=1, unknown="no use of it"), QuotaReading(used=1, unknown="no use of it")):
        assert held({ON_DEMAND: reading}, create_of("a", 9))[:2] == ({}, "quotas not checked: od (no use of it)")
    assert held(CloudError("forbidden"), create_of("a", 9))[:2] == ({}, "quotas not checked: od (forbidden)")
