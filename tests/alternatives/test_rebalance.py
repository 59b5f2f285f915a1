"""`apply --rebalance`: the pods of a family move to a better alternative once that has the nodes, and never before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Pod

from gpukube import api
from gpukube.core.cloud_catalog import LivePrice
from gpukube.core.prices import PriceBook
from gpukube.engine.change import family_run
from gpukube.engine.change.family_lease import FamilyLease
from gpukube.errors import DrainTimeout, ExitCode
from sandbox_tests.waiting import wait_for
from tests.alternatives.stage import NODES, RANKS, killed, made_requests, ranked
from tests.changes.world import spec
from tests.e2e.stage import inside
from tests.surge.stage import APP, Killer, block, unblock

if TYPE_CHECKING:
    from tests.alternatives.stage import Families
    from tests.changes.world import Document
    from tests.e2e.stage import Inside

CLOUDS = ("eks", "aks", "gke")
STEPS = ("m0 requesting", "m0 done", "m1 evicting", "m1 requesting deletion")
MOST_STRIKES = 60
TAINTS = ("nvidia.com/gpu", "kubernetes.azure.com/scalesetpriority")


def begin(world: Families, cloud: str, **more: object) -> Document:
    """Have a family on its second alternative, and machines for the first one from now on."""
    world.begin(cloud)
    world.stock(cloud, 0, 0)
    document = spec("team", world.there, [ranked(cloud, **more)])
    ended = world.ran(document)
    assert (ended.code, world.sizes()) == (0, {f"{cloud}/m1": NODES}), ended
    world.stock(cloud, 0, NODES)
    return document


def serve(cluster: Inside) -> None:
    """Run a pod with one GPU on each node of the family."""
    container = {"name": "main", "image": "example.com/serve:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod: dict[str, Any] = {
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"gpukube.io/family": "m0"},
        "tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TAINTS],
        "containers": [container],
    }
    template = {"metadata": {"labels": APP}, "spec": pod}
    body = {"replicas": NODES, "selector": {"matchLabels": APP}, "template": template}
    made = Deployment.from_dict({"metadata": {"name": "serve", "namespace": "default"}, "spec": body})
    assert isinstance(made, Deployment)
    cluster.client.create(made)
    wait_for(lambda: len(served(cluster)) == NODES)


def served(cluster: Inside) -> list[str]:
    """Return the pools of the nodes on which pods serve."""
    pods = cluster.client.list(Pod, namespace="default", labels={**APP})
    names = [str(pod.spec and pod.spec.nodeName) for pod in pods if pod.status and pod.status.phase == "Running"]
    homes = {name: pool for pool in ("m0", "m1") for name in cluster.node_names(pool)}
    return sorted(homes[name] for name in names if name in homes)


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_rebalance_when_a_better_alternative_gets_machines_then_the_pods_move_there(
    world: Families, cloud: str
) -> None:
    document = begin(world, cloud)
    with inside(world.info, cloud) as cluster:
        serve(cluster)
        assert world.applied(document).report.name == "m1", "without the option it stays"
        block(cluster)
        blocked = world.applied(document, consent=api.Consent(drain_timeout_s=3.0), rebalance=True)
        assert isinstance(blocked.report.error, DrainTimeout), blocked
        assert served(cluster) == ["m1"] * NODES
        assert world.sizes() == {f"{cloud}/m0": NODES, f"{cloud}/m1": NODES}
        unblock(cluster)
        with world.watched() as seen:
            moved = world.applied(document, rebalance=True)
        assert (moved.code, moved.report.name, moved.report.outcome) == (0, "m0", "done"), moved
        assert world.sizes() == {f"{cloud}/m0": NODES}
        wait_for(lambda: served(cluster) == ["m0"] * NODES)
    assert seen[-1] == frozenset({f"{cloud}/m0"})
    assert all(f"{cloud}/m0" in one for one in seen)
    assert world.applied(document, rebalance=True).report.outcome == "unchanged"


@pytest.mark.parametrize(
    "cloud", [pytest.param("eks", marks=pytest.mark.slow), pytest.param("aks", marks=pytest.mark.slow), "gke"]
)
def test_rebalance_when_stopped_at_each_step_then_the_next_run_finishes_it(world: Families, cloud: str) -> None:
    document = begin(world, cloud)
    for step in STEPS:
        world.applied(document, run=world.run_until(step, stop=True), rebalance=True)
        assert NODES in world.sizes().values()
    ended = world.applied(document, rebalance=True)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m0", {f"{cloud}/m0": NODES}), ended


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("rebalance", [True, False])
def test_rebalance_when_killed_as_the_better_one_got_its_nodes_then_that_one_is_kept(
    world: Families, cloud: str, monkeypatch: pytest.MonkeyPatch, *, rebalance: bool
) -> None:
    document = begin(world, cloud)
    with monkeypatch.context() as patch:
        patch.setattr(FamilyLease, "win", killed)
        world.applied(document, rebalance=True)
    assert world.ready(cloud, "m0") == NODES
    ended = world.applied(document, rebalance=rebalance)
    assert (ended.code, ended.report.name) == (0, "m0"), ended
    left = {} if rebalance else {f"{cloud}/m1": NODES}
    assert world.sizes() == {f"{cloud}/m0": NODES, **left}
    says = "moved from m1" if rebalance else "m1 has 2 nodes too: pool apply --rebalance moves its pods"
    assert says in ended.report.message


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_apply_when_a_move_was_killed_with_half_of_its_nodes_then_they_are_given_back(
    world: Families, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = begin(world, cloud)
    world.stock(cloud, 0, 1)
    with monkeypatch.context() as patch:
        patch.setattr(family_run, "fence", killed)
        world.applied(document, rebalance=True)
    assert f"{cloud}/m0" in world.sizes()
    ended = world.applied(document)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended


@pytest.mark.slow
@pytest.mark.parametrize("cloud", CLOUDS)
def test_rebalance_when_killed_at_each_change_in_turn_then_it_finishes(
    world: Families, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = begin(world, cloud)
    with inside(world.info, cloud) as cluster:
        serve(cluster)
        with monkeypatch.context() as patch:
            killer = Killer(patch)
            ended = world.applied(document, rebalance=True)
            while ended.report.outcome in ("started", "unknown", "not-attempted"):
                assert len(killer.struck) < MOST_STRIKES, killer.struck
                ended = world.applied(document, rebalance=True)
        assert (ended.code, ended.report.name, world.sizes()) == (0, "m0", {f"{cloud}/m0": NODES}), ended
        wait_for(lambda: served(cluster) == ["m0"] * NODES)


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_rebalance_when_no_better_alternative_gets_machines_then_it_stays(world: Families, cloud: str) -> None:
    document = begin(world, cloud)
    world.stock(cloud, 0, 1)
    ended = world.applied(document, rebalance=True)
    assert (ended.code, ended.report.name, world.sizes()) == (0, "m1", {f"{cloud}/m1": NODES}), ended
    assert world.taken() == 0


def test_rebalance_when_the_holder_is_protected_then_refused_and_nothing_is_made(world: Families) -> None:
    document = begin(world, "eks", deletionProtection=True)
    mark = world.last_request()
    ended = world.applied(document, rebalance=True)
    assert ended.report.error is not None, ended
    assert [one.code for one in ended.report.error.diagnostics] == ["protected"]
    assert (made_requests(world.info, mark), world.sizes()) == ([], {"eks/m1": NODES})


def test_rebalance_when_both_together_cost_too_much_then_it_stays(world: Families) -> None:
    live = [LivePrice(machine, 10.0, spot=kind == "spot") for machine, kind in RANKS["eks"]]
    prices = PriceBook(live={("eks", "us-east-1"): tuple(live)}, day="2026-11-28")
    document = begin(world, "eks")
    mark = world.last_request()
    capped = {**document, "pools": [{**document["pools"][0], "maxHourlyPrice": 39.99}]}
    ended = world.applied(capped, prices=prices, rebalance=True)
    assert (ended.code, made_requests(world.info, mark), world.sizes()) == (0, [], {"eks/m1": NODES}), ended
    enough = {**document, "pools": [{**document["pools"][0], "maxHourlyPrice": 40}]}
    ended = world.applied(enough, prices=prices, rebalance=True)
    assert (ended.code, ended.report.name, world.sizes()) == (ExitCode.DONE, "m0", {"eks/m0": NODES}), ended
