"""Upgrades of node pools: what they do to nodes and pods, what is declared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import KUBERNETES_VERSION
from gpukube.core.upgrades import NodeMarks, NodeOffer
from gpukube.core.values import ClusterFacts
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.pool.renewing import GkeUpgrades
from tests.unit.gpukube_gke.targets import ZONAL, desire, gke_target
from tests.unit.gpukube_gke.test_observe import as_answered

if TYPE_CHECKING:
    from gpukube.core.values import Observed

FACTS = ClusterFacts("us-central1", "1.34.1", ready=True, status="RUNNING", channel="REGULAR")
UPGRADES = GkeUpgrades()
DESIRED = desire(gke_target(cluster=ZONAL))


def pool(**more: object) -> Observed:
    return observe_pool(as_answered(DESIRED, **more))


@pytest.mark.parametrize(
    ("settings", "extra", "words"),
    [
        ({"maxSurge": 1}, 1, "adds 1 at a time"),
        ({"maxUnavailable": 2}, 0, "drains 2 at a time"),
        ({"maxSurge": 1, "maxUnavailable": 1}, 1, "replaces up to 2 at a time"),
        ({"strategy": "BLUE_GREEN"}, DESIRED.target.nodes.count, "starts a second set of all nodes"),
        ({"strategy": "SHORT_LIVED"}, 0, "when its run ends"),
    ],
)
def test_terms_when_told_then_by_the_strategy_of_the_pool(settings: object, extra: int, words: str) -> None:
    terms = UPGRADES.terms(pool(upgradeSettings=settings), FACTS)
    assert (terms.extra_nodes, terms.drain_minutes, terms.overdue) == (extra, 60, "forces")
    assert words in terms.nodes


def test_terms_when_the_pool_has_its_own_limit_or_upgrades_itself_then_told() -> None:
    own = pool(nodeDrainConfig={"pdbTimeoutDuration": "1800s"}, management={"autoUpgrade": True})
    terms = UPGRADES.terms(own, FACTS)
    assert terms.drain_minutes == 30
    assert terms.automatic == "GKE upgrades these nodes automatically (auto-upgrade, channel REGULAR)"


def test_offer_when_declared_then_the_whole_version_unless_the_spec_names_one() -> None:
    offer = NodeOffer("1.34.1-gke.1829001")
    assert UPGRADES.upgraded(DESIRED, pool(), offer).fields[KUBERNETES_VERSION] == offer.kubernetes
    assert UPGRADES.upgraded(DESIRED, pool(version=offer.kubernetes), offer) == DESIRED
    named = replace(DESIRED, target=replace(DESIRED.target, kubernetes_version="1.33"))
    assert UPGRADES.upgraded(named, pool(), offer) == named


def test_nodes_when_known_by_their_pool_then_by_the_build() -> None:
    assert UPGRADES.marks(pool()) == NodeMarks("v1.34.1-gke.1")
