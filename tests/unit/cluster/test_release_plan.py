"""Which release a cluster gets: one, and never the other beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR, ReleaseKind, kind_of
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.errors import Conflict
from tests.builders import make_observed
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MIXED,
    NAMESPACE,
    SINGLE,
    SLICED,
    VISION_TAINT,
    advertised_by_cloud,
    desire,
    installed,
    node_of,
    operated,
    operated_node,
    operating,
    operator_daemonset,
    operator_objects,
    operator_release,
)
from tests.unit.cluster.test_apply import FakeCluster

CHARTED = desire(sharing=SINGLE)
CUT, SHARED = operated(sharing=SINGLE), operated(sharing=SLICED, pool="shared")
VALUES = operator_values([CUT], ReleaseContext())


def test_plan_when_the_operator_shall_advertise_then_its_chart_is_installed() -> None:
    plan = plan_release([CUT, SHARED], Snapshot())
    assert (plan.action, plan.kind, plan.version) == ("install", GPU_OPERATOR, "v26.7.0")
    assert (plan.name, plan.namespace, plan.chart) == ("gpukube-gpu-operator", NAMESPACE, "gpu-operator")
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} < set(plan.keys)
    assert plan.reason == "gpu-operator v26.7.0 is not installed"


def test_plan_when_the_operator_serves_already_then_none() -> None:
    plan = plan_release([CUT], operating([CUT], operated_node(CUT)))
    assert (plan.action, plan.reason) == ("none", "revision 1 already serves these pools")


def test_plan_when_a_pool_is_new_then_its_entry_is_added_only() -> None:
    plan = plan_release([CUT, SHARED], operating([CUT]))
    assert plan.reason == f"devicePlugin.config.data.{SHARED.ownership.config_key} differs"


OBJECTS = operator_objects(VALUES)
DRIFT: dict[str, tuple[dict[str, object], str]] = {
    "operator gone": ({"objects": OBJECTS[1:]}, "Deployment gpu-operator is missing"),
    "policy gone": ({"objects": (OBJECTS[0], OBJECTS[2])}, "ClusterPolicy cluster-policy is missing"),
    "policy edited": (
        {"objects": (OBJECTS[0], {**OBJECTS[1], "spec": {"mig": {"strategy": "mixed"}}}, OBJECTS[2])},
        "ClusterPolicy cluster-policy: mig.strategy differs",
    ),
    "config map gone": ({"objects": OBJECTS[:2]}, "ConfigMap gpukube-gpu-operator-configs is missing"),
    "failed": ({"operator_history": (operator_release(VALUES, status="failed"),)}, "its last change ended as failed"),
}


@pytest.mark.parametrize("case", DRIFT)
def test_plan_when_the_cluster_drifted_then_upgrade_says_what(case: str) -> None:
    changes, reason = DRIFT[case]
    plan = plan_release([CUT], operating([CUT], **changes))
    assert (plan.action, plan.reason) == ("upgrade", reason)


def test_plan_when_only_operands_are_not_there_yet_then_no_drift() -> None:
    assert plan_release([CUT], operating([CUT], daemonsets=())).action == "none"


@pytest.mark.parametrize(
    ("live", "version", "action"),
    [("v26.3.0", "v26.7.0", "upgrade"), ("v27.1.0", "v27.1.0", "none"), ("v26.7.0", "v26.7.0", "none")],
)
def test_plan_when_the_live_operator_has_another_version_then_only_forward(
    live: str, version: str, action: str
) -> None:
    plan = plan_release([CUT], operating([CUT], operator_history=(operator_release(VALUES, chart_version=live),)))
    assert (plan.version, plan.action) == (version, action)


def test_plan_when_nfd_of_the_release_runs_then_it_stays_on() -> None:
    labels = {"app.kubernetes.io/name": "node-feature-discovery", "app.kubernetes.io/instance": GPU_OPERATOR.name}
    worker = operator_daemonset(name=f"{GPU_OPERATOR.name}-node-feature-discovery-worker", labels=labels)
    assert plan_release([CUT], operating([CUT], daemonsets=(operator_daemonset(), worker))).action == "none"


def test_plan_when_an_entry_of_the_operator_is_retired_then_dropped_unless_named() -> None:
    key = SHARED.ownership.config_key
    plan = plan_release([CUT], operating([CUT, SHARED]), retire=True)
    assert (key in plan.keys, plan.reason) == (False, f"removes entry {key}, which no pool or node uses")
    named = operating([CUT, SHARED], operated_node(SHARED))
    assert plan_release([CUT], named, retire=True).action == "none"
    assert plan_release([], operating([CUT, SHARED], operated_node(CUT)), retire=True).keys == plan.keys


def test_plan_when_another_specs_pools_are_tainted_then_tolerated() -> None:
    other = make_observed(operated(pool="other", taints=(GPU_TAINT, VISION_TAINT)), owner="another-team")
    changes = plan_release([CUT], operating([CUT]), live_pools=[other]).changes
    assert "daemonsets.tolerations" in [change.path for change in changes]


MIGRATIONS = {
    "the chart is there": ([CUT], installed([CHARTED]), GPU_OPERATOR, DEVICE_PLUGIN),
    "the operator is there": ([CHARTED], operating([CUT]), DEVICE_PLUGIN, GPU_OPERATOR),
    "both are asked for": ([CHARTED, SHARED], Snapshot(), DEVICE_PLUGIN, GPU_OPERATOR),
    "both are there": (
        [CUT],
        replace(installed([CHARTED]), operator_history=operating([CUT]).operator_history),
        GPU_OPERATOR,
        DEVICE_PLUGIN,
    ),
}


@pytest.mark.parametrize("case", MIGRATIONS)
def test_plan_when_the_other_release_is_there_then_refused_with_both_ways_out(case: str) -> None:
    pools, seen, kind, other = MIGRATIONS[case]
    plan = plan_release(pools, seen)
    assert (plan.action, plan.kind, plan.changes) == ("conflict", kind, ())
    (found,) = plan.diagnostics
    assert (found.code, found.severity) == ("release-migration", "error")
    assert other.address in found.seen
    assert found.fix.endswith("; or, to switch: --migrate-release uninstalls it first")


def test_plan_when_only_history_is_left_of_the_other_then_no_migration() -> None:
    history = tuple(replace(item, status="uninstalled") for item in installed([CHARTED]).history)
    assert plan_release([CUT], Snapshot(history=history)).action == "install"


@pytest.mark.parametrize("seen", [installed([CHARTED]), operating([CUT])], ids=["chart", "operator"])
def test_plan_when_no_pool_needs_a_release_then_the_live_one_is_left_alone_whichever(seen: Snapshot) -> None:
    plan = plan_release([advertised_by_cloud(CUT)], seen)
    assert (plan.action, plan.diagnostics, plan.revision) == ("none", (), 1)


def test_plan_when_the_operator_would_take_nodes_of_others_then_refused() -> None:
    stray = node_of(CUT, "other", labels={"feature.node.kubernetes.io/pci-10de.present": "true"})
    plan = plan_release([CUT], Snapshot(nodes=(stray,)))
    assert (plan.action, [found.code for found in plan.diagnostics]) == ("conflict", ["operator-strays"])
    assert plan_release([CHARTED], Snapshot(nodes=(stray,))).action == "install"


def test_plan_when_another_specs_live_pool_is_cut_by_another_strategy_then_refused() -> None:
    mix = operated(sharing=MIXED, pool="mix")
    plan = plan_release([CUT], operating([mix]), live_pools=[make_observed(mix, owner="another-team")])
    assert (plan.action, [found.code for found in plan.diagnostics]) == ("conflict", ["operator-strategy"])
    assert plan_release([CUT], operating([mix])).action == "upgrade"


def test_apply_when_a_plan_is_a_conflict_then_raised_with_its_diagnostics() -> None:
    plan = plan_release([CUT], installed([CHARTED]))
    fake = FakeCluster()
    with pytest.raises(Conflict) as caught:
        apply_release(fake, fake, plan, lambda _missed: plan)  # type: ignore[arg-type]  # the fake is its own Kube
    assert caught.value.diagnostics == plan.diagnostics
    assert fake.written == []


OWNERS = {"chart": CHARTED, "operator": CUT, "cloud": advertised_by_cloud(CHARTED)}
LIVE = {"nothing": Snapshot(), "chart": installed([CHARTED]), "operator": operating([CUT])}


@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(OWNERS)), max_size=4), st.sampled_from(sorted(LIVE)))
def test_plan_when_anything_is_asked_then_never_a_second_release(owners: list[str], live: str) -> None:
    seen = LIVE[live]
    plan = plan_release([OWNERS[owner] for owner in owners], seen)
    after: set[ReleaseKind] = {kind for kind in (DEVICE_PLUGIN, GPU_OPERATOR) if seen.release_of(kind)}
    if plan.action in ("install", "upgrade"):
        after |= {plan.kind}
    assert len(after) <= 1
    assert plan.action == "conflict" or {kind for owner in owners if (kind := kind_of(owner))} <= after
