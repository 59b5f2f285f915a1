"""Going from the chart to the operator and back: what leaves, whom it would strand, and that nobody is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR
from gpukube.cluster.release.migration import find_outgoing
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from tests.builders import make_observed
from tests.unit.cluster.builders import (
    SINGLE,
    SLICED,
    desire,
    installed,
    node_of,
    operated,
    operating,
    plugin_pod,
)
from tests.unit.cluster.test_apply import FakeCluster, run

if TYPE_CHECKING:
    from gpukube.cluster.names import ReleaseKind
    from gpukube.core.values import Desired

CHARTED, CHARTED_TOO = desire(sharing=SINGLE), desire(sharing=SLICED, pool="shared")
CUT, SHARED = operated(sharing=SINGLE), operated(sharing=SLICED, pool="shared")
WAYS = {
    "to the operator": (
        [CUT, SHARED],
        installed([CHARTED, CHARTED_TOO], node_of(CHARTED)),
        GPU_OPERATOR,
        DEVICE_PLUGIN,
    ),
    "to the chart": ([CHARTED, CHARTED_TOO], operating([CUT, SHARED], node_of(CUT)), DEVICE_PLUGIN, GPU_OPERATOR),
}


@pytest.mark.parametrize("case", WAYS)
def test_plan_when_the_migration_is_allowed_then_the_other_leaves_first_and_the_gap_is_told(case: str) -> None:
    pools, seen, kind, other = WAYS[case]
    plan = plan_release(pools, seen, migrate=True)
    assert (plan.action, plan.kind, plan.diagnostics) == ("install", kind, ())
    assert [(item.name, item.plugin, item.kind, item.there) for item in plan.leaves] == [
        (other.name, other.plugin, other, True)
    ]
    assert plan.reason == (
        f"{kind.chart} {kind.version} is not installed; {other.address} ({other.title}) is uninstalled; "
        "until the nodes have the new plugin, new pods get no GPU; running pods keep theirs"
    )
    assert plan_release(pools, seen).action == "conflict"


@pytest.mark.parametrize("case", WAYS)
def test_plan_when_the_other_has_entries_that_nodes_name_then_they_are_carried_over(case: str) -> None:
    pools, seen, *_ = WAYS[case]
    plan = plan_release(pools[:1], replace(seen, nodes=()), migrate=True)
    assert pools[1].ownership.config_key in plan.keys


def test_plan_when_pods_share_by_mps_then_they_are_said_to_suffer() -> None:
    node = node_of(CHARTED, labels={**CHARTED.labels, "nvidia.com/gpu.sharing-strategy": "mps"})
    plan = plan_release([CUT], installed([CHARTED], node), migrate=True)
    assert plan.reason.endswith("running pods keep theirs, except those that share one by MPS")


def strand(pool: Desired, owner: str) -> Desired:
    marks = {OWNER_LABEL: owner, POOL_LABEL: pool.target.pool}
    return replace(pool, target=replace(pool.target, owner=owner), labels={**pool.labels, **marks})


@pytest.mark.parametrize("case", WAYS)
def test_plan_when_a_pool_of_another_spec_is_served_by_what_leaves_then_refused_by_name(case: str) -> None:
    pools, seen, *_ = WAYS[case]
    former = CHARTED_TOO if case == "to the operator" else SHARED
    theirs = make_observed(strand(former, "another-team"), owner="another-team", pool="shared", name="theirs")
    plan = plan_release(pools[:1], seen, live_pools=[theirs], migrate=True)
    (found,) = plan.diagnostics
    assert (plan.action, plan.leaves, found.code) == ("conflict", (), "release-migration")
    assert "also serves pool theirs" in found.seen


def test_plan_when_a_node_that_no_pool_holds_is_served_by_what_leaves_then_refused_by_name() -> None:
    seen = installed([CHARTED], node_of(strand(CHARTED, "nobody"), "by-hand"))
    plan = plan_release([CUT], seen, migrate=True)
    assert "also serves node by-hand" in plan.diagnostics[0].seen


def test_plan_when_nodes_of_the_pools_carry_features_already_then_they_are_no_strays() -> None:
    seen_by_nfd = {"feature.node.kubernetes.io/pci-10de.present": "true"}
    seen = installed([CHARTED], node_of(CHARTED, labels={**CHARTED.labels, **seen_by_nfd}))
    assert plan_release([CUT], seen, migrate=True).action == "install"
    other = replace(seen, nodes=(*seen.nodes, node_of(CHARTED, "stray", labels=seen_by_nfd)))
    assert [item.code for item in plan_release([CUT], other, migrate=True).diagnostics] == ["operator-strays"]


def test_plan_when_both_are_asked_for_then_no_consent_helps() -> None:
    plan = plan_release([CHARTED, SHARED], Snapshot(), migrate=True)
    assert (plan.action, [item.code for item in plan.diagnostics]) == ("conflict", ["release-migration"])


def test_plan_when_only_pods_are_left_of_the_other_then_they_are_waited_for_without_asking() -> None:
    plan = plan_release([CUT], Snapshot(pods=(plugin_pod("node-1"),)))
    assert (plan.action, [item.there for item in plan.leaves]) == ("install", [False])
    assert f"the pods of {DEVICE_PLUGIN.plugin} must end first" in plan.reason


def test_plan_when_both_are_there_then_the_other_leaves_and_ours_is_brought_to_the_plan() -> None:
    both = replace(operating([CUT]), history=installed([CHARTED]).history)
    plan = plan_release([CUT], both, migrate=True)
    assert (plan.action, plan.revision, [item.kind for item in plan.leaves]) == ("upgrade", 1, [DEVICE_PLUGIN])


@pytest.mark.parametrize("kind", [DEVICE_PLUGIN, GPU_OPERATOR], ids=["chart", "operator"])
def test_leaving_when_nothing_else_is_there_then_empty(kind: ReleaseKind) -> None:
    assert find_outgoing(kind, Snapshot()) == ()


def test_apply_when_something_leaves_then_it_goes_before_anything_is_written() -> None:
    fake = FakeCluster()
    plan = plan_release([CHARTED], operating([CUT]), migrate=True)
    assert run(fake, plan) is not None
    assert fake.removed == [GPU_OPERATOR.name]
