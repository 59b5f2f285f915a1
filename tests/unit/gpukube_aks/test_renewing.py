"""Upgrades of agent pools: what they do to nodes and pods, what is declared, which calls that becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import KUBERNETES_VERSION, label
from gpukube.core.plan import find_changes
from gpukube.core.upgrades import NodeMarks, NodeOffer
from gpukube.core.values import Change, ClusterFacts
from gpukube_aks import AksProvider
from gpukube_aks.pool.importing import chosen_fields
from gpukube_aks.pool.observe import observe_pool
from gpukube_aks.pool.renewing import NODE_IMAGE, UPGRADE_IMAGE, AksUpgrades
from gpukube_aks.rules.quotas import QUOTAS
from tests.unit.gpukube_aks.test_observe import TARGETS, answer, desire

if TYPE_CHECKING:
    from gpukube.core.values import Observed

FACTS = ClusterFacts("eastus", "1.34.2", ready=True, status="Succeeded")
UPGRADES = AksUpgrades()
DESIRED = desire(TARGETS["plain"])
OLD, NEW = (f"AKSUbuntu-2204gen2containerd-{date}" for date in ("202607.31.1", "202609.15.0"))


def pool(**properties: object) -> Observed:
    given = {"count": 12, "currentOrchestratorVersion": "1.34.2", "nodeImageVersion": OLD, **properties}
    return observe_pool(answer(DESIRED, **given))


@pytest.mark.parametrize(
    ("properties", "extra", "minutes", "overdue"),
    [
        ({}, 2, 30, "stops"),
        ({"upgradeSettings": {"maxSurge": "0", "maxUnavailable": "1"}}, 0, 30, "stops"),
        ({"upgradeSettings": {"maxSurge": "SOMETHING_NEW", "maxUnavailable": [None]}}, 2, 30, "stops"),
        ({"upgradeSettings": {"maxSurge": "3", "drainTimeoutInMinutes": 60}}, 3, 60, "stops"),
        ({"upgradeSettings": {"undrainableNodeBehavior": "Cordon"}}, 2, 30, "skips"),
        ({"scaleSetPriority": "Spot"}, 0, 30, "stops"),
    ],
)
def test_terms_when_told_then_by_the_settings_of_the_pool(
    properties: dict[str, object], extra: int, minutes: int, overdue: str
) -> None:
    terms = UPGRADES.terms(pool(**properties), FACTS)
    assert (terms.extra_nodes, terms.drain_minutes, terms.overdue) == (extra, minutes, overdue)


def test_channel_when_the_cluster_has_one_then_who_upgrades_anyway() -> None:
    terms = UPGRADES.terms(pool(), replace(FACTS, channel="nodeOSUpgradeChannel NodeImage"))
    assert terms.automatic == "AKS upgrades these nodes automatically (nodeOSUpgradeChannel NodeImage)"


def test_image_when_newer_then_a_change_by_a_call_of_its_own() -> None:
    upgraded = UPGRADES.upgraded(DESIRED, pool(), NodeOffer("1.34.2", NEW))
    (change,) = (found for found in find_changes(upgraded, pool()) if found.field == NODE_IMAGE)
    assert (change.old, change.new) == (OLD, NEW)
    (request,) = AksProvider().requests.update(upgraded, pool(), [change])
    assert request.operation == UPGRADE_IMAGE
    assert request.params["pool"] == DESIRED.target.name


def test_image_when_not_declared_then_neither_a_difference_nor_chosen() -> None:
    assert all(change.field != NODE_IMAGE for change in diff_fields(DESIRED.fields, pool().fields))
    assert NODE_IMAGE not in chosen_fields(pool())


def test_surge_when_only_labels_change_then_no_more_nodes_are_needed() -> None:
    label_change = Change(label("nvidia.com/device-plugin.config"), None, "c-1")
    assert QUOTAS.surge(DESIRED, pool(), [label_change]) == 0
    assert QUOTAS.surge(DESIRED, pool(), [label_change, Change(KUBERNETES_VERSION, "1.33.5", "1.34.2")]) == 2


def test_settings_when_az_writes_what_the_service_does_anyway_then_nobody_chose_them() -> None:
    settings = {"undrainableNodeBehavior": "Schedule", "maxSurge": "10%"}
    assert not [path for path in chosen_fields(pool(upgradeSettings=settings)) if "upgrade" in str(path)]


DRAIN = {"code": "UpgradeFailed", "message": "Drain node aks-0 failed when evicting pod a"}


@pytest.mark.parametrize(
    ("properties", "evidence"),
    [
        ({}, ""),
        ({"orchestratorVersion": "1.34"}, ""),
        ({"orchestratorVersion": "1.35.1"}, "the pool runs 1.34.2 and should run 1.35.1"),
        ({"status": {"provisioningError": DRAIN}}, "its last error: UpgradeFailed"),
        ({"status": {"provisioningError": {"code": "AllocationFailed", "message": "no machines"}}}, ""),
    ],
)
def test_upgrade_when_it_failed_half_way_then_a_repair_goes_on_with_it(
    properties: dict[str, object], evidence: str
) -> None:
    found = UPGRADES.unfinished(pool(provisioningState="Failed", **properties))
    assert found.startswith(evidence)
    assert bool(found) == bool(evidence)


@pytest.mark.parametrize(
    ("live", "offer", "field"),
    [
        ("1.33.5", NodeOffer("1.34.2", NEW), KUBERNETES_VERSION),  # it brings its own newest image
        ("1.34.2", NodeOffer("1.34.2", NEW), NODE_IMAGE),
        ("1.34.2", NodeOffer("1.34.2", OLD), None),
        ("1.34.2", NodeOffer("1.34.2", OLD.replace("202607", "202606")), None),
        ("1.34.2", NodeOffer("1.34.2", None, unknown="no permission"), None),
    ],
)
def test_offer_when_declared_then_the_version_or_the_image(live: str, offer: NodeOffer, field: object) -> None:
    upgraded = UPGRADES.upgraded(DESIRED, pool(currentOrchestratorVersion=live), offer)
    assert set(upgraded.fields) - set(DESIRED.fields) == ({field} if field else set())


def test_nodes_when_known_by_their_pool_then_by_version_and_image() -> None:
    assert UPGRADES.marks(pool()) == NodeMarks("v1.34.2", {"kubernetes.azure.com/node-image-version": OLD})
