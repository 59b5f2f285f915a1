"""Families beside other things: replacements, other pools, other clusters, a lost record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube import api
from gpukube.errors import SpecError
from gpukube_sandbox import daemon
from tests.alternatives.stage import NODES, made_requests, ranked
from tests.changes.world import SMALL, prepare, spec

if TYPE_CHECKING:
    from tests.alternatives.stage import Families
    from tests.changes.world import Document, Pool

CLOUDS = ("eks", "aks", "gke")
OTHER: dict[str, tuple[Document, Document]] = {
    "eks": ({"instanceType": "g4dn.2xlarge"},) * 2,
    "aks": ({"instanceType": "Standard_NC8as_T4_v3"},) * 2,
    "gke": ({"capacity": {"type": "spot"}}, {"capacity": {"type": "on-demand"}}),
}
"""What neither of the first two alternatives can get while it lives."""
SURGE = api.Consent(replace="surge")
EIGHT = {"gpu": {"model": "A100-80GB", "count": 8}}
"""What every cloud has."""


def edited(pool: Pool, rank: int, cloud: str) -> Pool:
    """Change an alternative so that it takes another pool."""
    if rank == 0:
        return {**pool, **OTHER[cloud][rank]}
    others = [dict(one) for one in pool["alternatives"]]
    others[rank - 1] |= OTHER[cloud][rank]
    return {**pool, "alternatives": others}


@pytest.mark.turns(6)
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_the_pool_with_the_nodes_is_edited_then_its_successor_has_them(
    world: Families, cloud: str, rank: int
) -> None:
    world.begin(cloud)
    for sold_out in range(rank):
        world.stock(cloud, sold_out, 0)
    before = ranked(cloud)
    assert world.ran(spec("team", world.there, [before])).report.name == f"m{rank}"
    daemon.clear_stock(world.info)
    after = spec("team", world.there, [edited(before, rank, cloud)])
    with world.watched() as seen:
        ended = world.applied(after, consent=SURGE)
    assert (ended.code, ended.report.name, world.sizes()) == (0, f"m{rank}b", {f"{cloud}/m{rank}b": NODES}), ended
    assert max(map(len, seen)) == 2
    assert {name for one in seen for name in one} == {f"{cloud}/m{rank}", f"{cloud}/m{rank}b"}
    assert world.ran(after).report.outcome == "unchanged"
    back = world.applied(spec("team", world.there, [before]), consent=SURGE)
    assert (back.code, back.report.name, world.sizes()) == (0, f"m{rank}", {f"{cloud}/m{rank}": NODES}), back


@pytest.mark.parametrize("names", [("m0", "m0b"), ("m0b", "m0")])
def test_spec_when_a_name_is_that_of_a_members_replacement_then_refused(names: tuple[str, str]) -> None:
    pool = ranked("eks")
    first, second = names
    alternatives = [{**pool["alternatives"][0], "name": second}]
    with pytest.raises(SpecError) as caught:
        prepare(spec("team", {"eks": ADDRESS}, [{**pool, "name": first, "alternatives": alternatives}]))
    assert [one.code for one in caught.value.diagnostics if one.severity == "error"] == ["replacement-name"]
    beside = {"name": "m1b", "nodes": {"count": 1}, **SMALL["eks"]}
    with pytest.raises(SpecError) as caught:
        prepare(spec("team", {"eks": ADDRESS}, [pool, beside]))
    assert [one.code for one in caught.value.diagnostics if one.severity == "error"] == ["replacement-name"]


ADDRESS: Document = {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "eks"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_prune_when_a_pool_left_the_spec_then_the_family_keeps_its_nodes(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    extra = {"name": "extra", "nodes": {"count": 1}, **SMALL[cloud], "capacity": {"type": "spot"}}
    theirs = {"name": "theirs", "nodes": {"count": 1}, **SMALL[cloud], "capacity": {"type": "spot"}}
    both, family = (spec("team", world.there, pools) for pools in ([ranked(cloud), extra], [ranked(cloud)]))
    world.create(spec("others", world.there, [theirs]))
    world.create(both)
    assert world.sizes() == {f"{cloud}/m1": NODES, f"{cloud}/extra": 1, f"{cloud}/theirs": 1}
    reports = world.apply(family, prune=True)
    assert {name: one.outcome for name, one in reports.items()} == {"m0": "unchanged", "extra": "done"}
    assert world.sizes() == {f"{cloud}/m1": NODES, f"{cloud}/theirs": 1}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_create_when_protected_then_only_the_pool_that_has_won_gets_the_mark(world: Families, cloud: str) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 1)
    document = spec("team", world.there, [ranked(cloud, deletionProtection=True)])
    marks: dict[str, bool] = {}

    def look() -> None:
        (plan,) = world.plan(document, skip_cluster=True)
        marks.update({one.name: one.protected for one in plan.live if one.owner == "team"})

    ended = world.ran(document, run=world.run_until("m0 no machines", look))
    assert (ended.code, ended.report.name, marks) == (0, "m1", {"m0": False}), ended
    look()
    assert marks == {"m0": False, "m1": True}


@pytest.mark.turns(6)
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("step", ["m0 no machines", "m1 requesting"])
def test_create_when_its_record_is_deleted_then_it_stops_and_the_next_run_ends_with_one(
    world: Families, cloud: str, step: str
) -> None:
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud)])
    with world.watched() as seen:
        lost = world.ran(document, run=world.run_until(step, lambda: world.forget_attempts(cloud)))
        assert lost.report.error is not None, lost
        assert [one.code for one in lost.report.error.diagnostics] == ["lease-lost"]
        ended = world.ran(document)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended
    assert max(map(len, seen)) == 1
    world.forget_attempts(cloud)
    assert world.ran(document).report.outcome == "unchanged"
    assert world.sizes() == {f"{cloud}/m1": NODES}


def anywhere(place: str, *clusters: str) -> Pool:
    """Write a pool of eight GPUs per node on several clusters."""
    return {"name": "m0", "clusters": list(clusters), **EIGHT, "nodes": {"count": NODES}, "place": place}


def test_place_when_changed_to_any_with_nodes_on_two_clusters_then_nothing_is_changed(world: Families) -> None:
    world.begin("eks", "gke-a")
    everywhere = spec("team", world.there, [anywhere("all", "eks", "gke-a")])
    assert [one.outcome for one in world.create(everywhere).values()] == ["done"]
    assert world.sizes() == {"eks/m0": NODES, "gke-a/m0": NODES}
    mark = world.last_request()
    document = spec("team", world.there, [anywhere("any", "eks", "gke-a")])
    for ended in (world.ran(document), world.applied(document), world.applied(document, rebalance=True)):
        assert ended.report.error is not None, ended
        assert {one.code for one in ended.report.error.diagnostics} == {"two-pools"}
    assert world.sizes() == {"eks/m0": NODES, "gke-a/m0": NODES}
    changed = [one for one in daemon.requests_since(world.info, mark) if one["method"] in ("PUT", "DELETE")]
    assert [one for one in changed if one["service"] in ("aws", "gke")] == []
    assert made_requests(world.info, mark) == []


def test_place_when_a_cluster_cannot_be_read_then_nothing_is_made_for_that_pool_alone(world: Families) -> None:
    world.begin("eks", "gke-a")
    fault = {"service": "gke", "status": 403, "code": "PERMISSION_DENIED", "times": 0}
    daemon.add_fault(world.info, "status", **fault)
    other = {"name": "other", "clusters": ["eks"], "nodes": {"count": 1}, **SMALL["eks"]}
    document = spec("team", world.there, [anywhere("any", "eks", "gke-a"), other])
    reports = api.create(prepare(document), world.run())
    errors: dict[str, Any] = {report.cluster.key: report.error for report in reports}
    assert errors["gke-a"] is not None
    pools = {pool.pool: pool for report in reports for pool in report.pools}
    assert (pools["other"].outcome, pools["m0"].outcome) == ("done", "failed"), pools
    assert pools["m0"].error is errors["gke-a"]
    assert world.sizes() == {"eks/other": 1}
    daemon.clear_faults(world.info)
    assert api.exit_code(api.create(prepare(document), world.run())) == 0
    assert world.sizes() == {"eks/other": 1, "eks/m0": NODES}


@pytest.mark.slow
def test_place_when_the_family_has_nodes_somewhere_then_it_stays_there(world: Families) -> None:
    world.begin("eks", "gke-a")
    daemon.set_stock(world.info, "eks", 0, type="p4de.24xlarge")
    document = spec("team", world.there, [anywhere("any", "eks", "gke-a")])
    ended = world.ran(document)
    assert (ended.code, world.sizes()) == (0, {"gke-a/m0": NODES}), ended
    daemon.clear_stock(world.info)
    for again in (world.ran(document), world.applied(document), world.applied(document, rebalance=True)):
        assert (again.code, again.report.outcome, world.sizes()) == (0, "unchanged", {"gke-a/m0": NODES}), again
