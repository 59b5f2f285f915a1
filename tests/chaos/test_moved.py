"""Others change a pool between plan and call: that is noticed, said, and not overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.changes import CHANGES, CLOUDS, prepare, require_changed, start_apply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.stage import Stage

THEIRS: Mapping[str, dict[str, Any]] = {
    "aks": {"count": 1},
    "eks": {"scalingConfig": {"minSize": 1, "maxSize": 1, "desiredSize": 1}},
    "gke": {"config": {"labels": {"team": "mallory"}}},
}
"""What somebody else changes: the size, or a label that the plan changes too."""
LOOKS = {
    "aks": ("GET", "/agentPools/t4shared", 1),
    "eks": ("GET", "/node-groups/t4shared", 2),
    "gke": ("GET", "/nodePools/l4shared", 1),
}
"""The first look at the pool after the plan; on EKS the list is made of such looks too."""
WRITES = {"aks": ("PUT", "/agentPools/t4shared", 1), "gke": ("PUT", "/nodePools/l4shared", 1)}
"""The first change, where the cloud compares the version it was made from (EKS has none)."""
HELD = [("look", name) for name in LOOKS] + [("change", name) for name in WRITES]


def seen(stage: Stage) -> object:
    """What the other one has changed, as the cluster shows it."""
    return stage.pools(), sorted(node.labels.get("team", "") for node in stage.nodes())


@pytest.mark.turns(5)
@pytest.mark.parametrize(("at", "name"), HELD)
def test_apply_when_somebody_changes_the_pool_meanwhile_then_said_and_not_overwritten(
    stage: Stage, at: str, name: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "update"]
    prepare(stage, cloud, change)
    method, path, nth = (LOOKS if at == "look" else WRITES)[name]
    daemon.add_fault(stage.info, "hang", service=cloud.service, method=method, path=path, nth=nth)
    started = start_apply(stage, "after")
    wait_for(stage.struck)
    daemon.tamper(stage.info, "train", cloud.pool, **THEIRS[name])
    theirs = seen(stage)
    daemon.clear_faults(stage.info)
    ended = started.wait()
    stage.require_polite(ended)
    assert ended.code == 1, ended.said
    assert '"code": "moved"' in ended.out, ended.said
    assert "plan again" in ended.out
    assert seen(stage) == theirs
    require_changed(stage, cloud, change, start_apply(stage, "after").wait())  # asked for again: now it is wanted


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_apply_when_the_pool_changed_since_the_plan_was_saved_then_refused(stage: Stage, name: str) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "update"]
    prepare(stage, cloud, change)
    plan = str(stage.home / "plan.json")
    spec = str(stage.home / "after.yaml")
    saved = stage.run("pool", "plan", "--allow-disruption", "-f", spec, "--out", plan)
    assert saved.code == 0, saved.said
    daemon.tamper(stage.info, "train", cloud.pool, **THEIRS[name])
    theirs = seen(stage)
    refused = stage.run("pool", "apply", plan, "-o", "json")
    stage.require_polite(refused)
    assert (refused.code, "error[stale" in refused.err) == (1, True), refused.said
    assert seen(stage) == theirs
