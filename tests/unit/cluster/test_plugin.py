"""Pools and live release -> chart values and the plan of the release."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.plan import plan_release, value_changes
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import DEFAULT_KEY, ReleaseContext
from gpukube.cluster.state.scheduling import tolerates
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Taint
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.builders import make_observed
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MIXED,
    NAMESPACE,
    RELEASE_NAME,
    SINGLE,
    SLICED,
    VISION_TAINT,
    advertised_by_cloud,
    chart_objects,
    daemonset,
    desire,
    entries_of,
    installed,
    node_of,
    release_of,
)

if TYPE_CHECKING:
    from gpukube.core.values import Desired

CHART_VERSION = DEVICE_PLUGIN.version
WHOLE, CUT, SHARED = desire(), desire(sharing=SINGLE), desire(sharing=SLICED, pool="t4")
TAINTED = desire(taints=(GPU_TAINT, VISION_TAINT))
ALONE = ReleaseContext()


def tolerations(values: dict[str, object], *path: str) -> list[object]:
    found: object = values
    for key in path:
        assert isinstance(found, dict)
        found = found[key]
    assert isinstance(found, list)
    return found


# The values


def test_values_when_a_pool_is_cut_then_its_entry_and_the_default_one() -> None:
    values = chart_values([CUT], ALONE)
    entries = entries_of(values)
    assert set(entries) == {DEFAULT_KEY, CUT.ownership.config_key}
    assert values["config"] == {"default": DEFAULT_KEY, "map": entries}


def test_values_when_rendered_then_each_entry_is_text_with_a_strategy_of_its_own() -> None:
    entries = entries_of(chart_values([CUT, desire(sharing=MIXED)], ALONE))
    strategies = {yaml.safe_load(text)["flags"]["migStrategy"] for text in entries.values()}
    assert strategies == {"none", "single", "mixed"}


def test_values_when_live_sets_what_would_undo_ours_then_it_goes() -> None:
    banned = {"migStrategy": "single", "nodeSelector": {"a": "b"}, "fullnameOverride": "x", "devicePlugin": {}}
    values = chart_values([CUT], ReleaseContext(live=banned))
    assert not set(values) & set(banned)


def test_values_when_live_has_settings_of_others_then_they_stay() -> None:
    live: dict[str, object] = {"image": {"repository": "mirror/p"}, "nfd": {"image": {"tag": "v1"}}}
    values = chart_values([CUT], ReleaseContext(live=live))
    assert values["image"] == {"repository": "mirror/p"}
    assert isinstance(values["nfd"], dict)
    assert values["nfd"]["image"] == {"tag": "v1"}
    assert live == {"image": {"repository": "mirror/p"}, "nfd": {"image": {"tag": "v1"}}}


def test_values_when_made_then_only_nodes_with_our_label_are_chosen() -> None:
    terms = [{"matchExpressions": [{"key": "gpukube.io/advertiser", "operator": "In", "values": ["chart"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    values = chart_values([CUT], ALONE)
    assert values["affinity"] == {"nodeAffinity": required}
    assert isinstance(values["nfd"], dict)
    assert values["nfd"]["worker"]["nodeSelector"] == {"gpukube.io/advertiser": "chart"}


def test_values_when_made_then_features_are_discovered() -> None:
    assert chart_values([CUT], ALONE)["gfd"] == {"enabled": True}


@pytest.mark.parametrize("bundled", [True, False])
def test_values_when_nfd_is_there_or_not_then_said_explicitly(bundled: bool) -> None:  # noqa: FBT001 -- a case
    nfd = chart_values([CUT], ReleaseContext(bundle_nfd=bundled))["nfd"]
    assert isinstance(nfd, dict)
    assert nfd["enabled"] is bundled


LISTS = {
    "plugin": ("tolerations",),
    "nfd worker": ("nfd", "worker", "tolerations"),
    "nfd master": ("nfd", "master", "tolerations"),
    "nfd gc": ("nfd", "gc", "tolerations"),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("taint", [GPU_TAINT, VISION_TAINT, Taint("nvidia.com/gpu", "x", "NoSchedule")], ids=str)
def test_values_when_pools_are_tainted_then_every_part_tolerates_them(case: str, taint: Taint) -> None:
    pool = desire(taints=(GPU_TAINT, VISION_TAINT, taint))
    made = placement_of({"tolerations": tolerations(chart_values([pool], ALONE), *LISTS[case])})
    assert tolerates(made.tolerations, taint)


KEPT = {
    "plugin": ({"key": "CriticalAddonsOnly", "operator": "Exists"}, {"key": "nvidia.com/gpu", "operator": "Exists"}),
    "nfd worker": ({"key": "node-role.kubernetes.io/master"}, {"key": "node-role.kubernetes.io/control-plane"}),
    "nfd master": ({"key": "node-role.kubernetes.io/control-plane"},),
    "nfd gc": (),
}


@pytest.mark.parametrize("case", LISTS)
def test_values_when_a_list_is_replaced_then_the_charts_own_entries_are_repeated(case: str) -> None:
    made = tolerations(chart_values([TAINTED], ALONE), *LISTS[case])
    for desired in KEPT[case]:
        assert any(isinstance(item, dict) and desired.items() <= item.items() for item in made)


def test_values_when_a_taint_is_covered_already_then_no_second_toleration() -> None:
    made = tolerations(chart_values([desire(taints=(GPU_TAINT,))], ALONE), "tolerations")
    assert len(made) == 2


def test_values_when_a_taint_is_soft_then_no_toleration() -> None:
    soft = Taint("team", "x", "PreferNoSchedule")
    assert chart_values([desire(taints=(soft,))], ALONE) == chart_values([desire(taints=())], ALONE)


def test_values_when_a_taint_has_no_value_then_the_toleration_says_so() -> None:
    made = tolerations(chart_values([desire(taints=(Taint("own", "", "NoExecute"),))], ALONE), "tolerations")
    assert made[-1] == {"key": "own", "operator": "Equal", "value": "", "effect": "NoExecute"}


def test_values_when_somebody_added_a_toleration_then_it_stays_as_written() -> None:
    odd = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
    made = tolerations(chart_values([CUT], ReleaseContext(live={"tolerations": [odd]})), "tolerations")
    assert odd in made


# Entries come and go


def test_values_when_another_spec_has_an_entry_then_it_stays() -> None:
    live = chart_values([SHARED], ALONE)
    assert SHARED.ownership.config_key in entries_of(chart_values([CUT], ReleaseContext(live=live)))


def test_values_when_an_entry_is_retired_and_unnamed_then_it_goes() -> None:
    context = ReleaseContext(live=chart_values([SHARED], ALONE), retire=True)
    assert SHARED.ownership.config_key not in entries_of(chart_values([CUT], context))


def test_values_when_a_retired_entry_is_named_by_a_node_then_it_stays() -> None:
    key = SHARED.ownership.config_key
    context = ReleaseContext(live=chart_values([SHARED], ALONE), retire=True, named=frozenset({key}))
    assert key in entries_of(chart_values([CUT], context))


def test_values_when_a_retired_entry_is_declared_then_it_stays() -> None:
    live = chart_values([CUT], ALONE)
    assert chart_values([CUT], ReleaseContext(live=live, retire=True)) == live


def test_values_when_retiring_then_what_people_named_and_what_was_overwritten_unseen_stays() -> None:
    values = chart_values([SHARED], ALONE)
    mine, missed = entries_of(values), (chart_values([desire(sharing=MIXED)], ALONE),)
    by_hand = {"default": "version: v1", "c-short": "version: v1"}
    live = {**values, "config": {"default": DEFAULT_KEY, "map": {**mine, **by_hand, **entries_of(missed[0])}}}
    made = entries_of(chart_values([], ReleaseContext(live=live, retire=True, missed=missed)))
    assert made.keys() == {DEFAULT_KEY, *by_hand, *entries_of(missed[0])}


def test_values_when_an_entry_was_overwritten_unseen_then_it_comes_back() -> None:
    context = ReleaseContext(missed=(chart_values([SHARED], ALONE),))
    assert SHARED.ownership.config_key in entries_of(chart_values([CUT], context))


SHARINGS = st.one_of(
    st.just(Sharing()),
    st.builds(
        Sharing,
        mig=st.builds(MigCut, st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb"]), st.sampled_from(["single", "mixed"])),
        slicing=st.one_of(st.none(), st.builds(Slicing, st.just("time-slicing"), st.integers(2, 9))),
    ),
)
TAINTS = st.builds(
    Taint,
    st.sampled_from(["nvidia.com/gpu", "dedicated", "sku"]),
    st.sampled_from(["present", "vision", ""]),
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
POOLS = st.lists(
    st.builds(lambda sharing, taints: desire(sharing=sharing, taints=taints), SHARINGS, st.sets(TAINTS).map(tuple)),
    max_size=4,
)


@settings(max_examples=40)
@given(POOLS, POOLS)
def test_merge_when_two_specs_share_a_cluster_then_neither_drops_the_other(mine: list, theirs: list) -> None:  # type: ignore[type-arg]  # pools
    live = chart_values(theirs, ALONE)
    merged = chart_values(mine, ReleaseContext(live=live))
    assert entries_of(live).items() <= entries_of(merged).items()
    for path in LISTS.values():
        assert all(item in tolerations(merged, *path) for item in tolerations(live, *path))


@settings(max_examples=40)
@given(POOLS, POOLS)
def test_merge_when_repeated_or_in_another_order_then_the_same(mine: list, theirs: list) -> None:  # type: ignore[type-arg]  # pools
    merged = chart_values(mine, ReleaseContext(live=chart_values(theirs, ALONE)))
    assert chart_values(mine, ReleaseContext(live=merged)) == merged
    assert chart_values(theirs, ReleaseContext(live=chart_values(mine, ALONE))) == merged
    shuffled = random.Random(7).sample(mine, len(mine))  # noqa: S311 -- an order, not a secret
    assert chart_values(shuffled, ReleaseContext(live=chart_values(theirs, ALONE))) == merged


# The plan


def test_plan_when_nothing_is_installed_then_install() -> None:
    plan = plan_release([CUT], Snapshot())
    assert (plan.action, plan.revision, plan.version) == ("install", 0, CHART_VERSION)
    assert (plan.name, plan.namespace) == (RELEASE_NAME, NAMESPACE)
    assert plan.keys == tuple(sorted({DEFAULT_KEY, CUT.ownership.config_key}))
    assert "gfd.enabled" in [change.path for change in plan.changes]


def test_plan_when_no_pool_needs_it_then_none() -> None:
    plan = plan_release([advertised_by_cloud(CUT)], Snapshot())
    assert (plan.action, plan.reason) == ("none", "no pool of this spec needs it")


def test_plan_when_no_pool_needs_the_live_one_then_it_is_left_alone() -> None:
    seen = installed([SHARED])
    plan = plan_release([advertised_by_cloud(CUT)], seen)
    assert (plan.action, plan.values) == ("none", seen.history[0].values)


def test_plan_when_it_serves_already_then_none_says_so() -> None:
    plan = plan_release([CUT], installed([CUT], node_of(CUT)))
    assert (plan.action, plan.reason, plan.changes) == ("none", "revision 1 already serves these pools", ())


def test_plan_when_a_pool_is_new_then_upgrade_adds_its_entry_only() -> None:
    plan = plan_release([CUT, SHARED], installed([CUT]))
    assert plan.action == "upgrade"
    assert [change.path for change in plan.changes] == [f"config.map.{SHARED.ownership.config_key}"]
    assert plan.reason == f"config.map.{SHARED.ownership.config_key} differs"


def test_plan_when_other_live_pools_are_tainted_then_tolerated_too() -> None:
    other = make_observed(desire(pool="other", taints=(VISION_TAINT,)), owner="another-team")
    plan = plan_release([CUT], Snapshot(), live_pools=[other])
    assert tolerates(placement_of(plan.values).tolerations, VISION_TAINT)


def test_plan_when_live_pools_are_not_ours_to_serve_then_their_taints_do_not_matter() -> None:
    foreign = make_observed(TAINTED, labels={})
    plan = plan_release([CUT], Snapshot(), live_pools=[foreign])
    assert not tolerates(placement_of(plan.values).tolerations, VISION_TAINT)


def test_plan_when_a_declared_pool_carries_a_taint_of_somebody_then_only_the_declared_ones_matter() -> None:
    tainted = make_observed(CUT, effective_taints=(VISION_TAINT,))
    assert plan_release([CUT], installed([CUT]), live_pools=[tainted]).action == "none"


NAMED_BY = {
    "a node": {"nodes": (node_of(SHARED),)},
    "nobody": {},
}


@pytest.mark.parametrize("case", NAMED_BY)
def test_plan_when_an_entry_is_retired_then_only_unless_named(case: str) -> None:
    key = SHARED.ownership.config_key
    seen = replace(installed([CUT, SHARED]), **NAMED_BY[case])  # type: ignore[arg-type]  # test data
    plan = plan_release([CUT], seen, retire=True)
    assert (key in plan.keys) is (case == "a node")


def test_plan_when_an_entry_is_retired_but_a_pool_without_nodes_names_it_then_it_stays() -> None:
    key = SHARED.ownership.config_key
    plan = plan_release([CUT], installed([CUT, SHARED]), live_pools=[make_observed(SHARED)], retire=True)
    assert key in plan.keys


def test_plan_when_an_entry_is_retired_then_the_reason_names_it() -> None:
    key = SHARED.ownership.config_key
    plan = plan_release([CUT], installed([CUT, SHARED]), retire=True)
    assert (plan.action, plan.reason) == ("upgrade", f"removes entry {key}, which no pool or node uses")
    assert plan_release([CUT], installed([CUT, SHARED])).action == "none"


@pytest.mark.parametrize("pools", [[], [advertised_by_cloud(CUT)]], ids=["no pools", "pools of the cloud"])
def test_plan_when_retiring_and_nothing_is_served_then_only_the_entries_change(pools: list[Desired]) -> None:
    seen = installed([CUT, SHARED], node_of(CUT))
    live = seen.history[0]
    seen = replace(seen, history=(replace(live, values={**live.values, "nodeSelector": {}}, chart_version="0.17.4"),))
    plan = plan_release(pools, seen, retire=True)
    assert (plan.action, plan.version) == ("upgrade", "0.17.4")
    assert [change.path for change in plan.changes] == [f"config.map.{SHARED.ownership.config_key}"]
    assert plan_release(pools, seen).action == "none"


def test_plan_when_retiring_and_everything_is_named_then_none() -> None:
    plan = plan_release([], installed([CUT], node_of(CUT)), retire=True)
    assert (plan.action, plan.reason, plan.revision) == ("none", "no pool of this spec changes it", 1)


VALUES = chart_values([CUT], ALONE)
PLUGIN, ENTRIES = chart_objects(VALUES)
DRIFT: dict[str, tuple[dict[str, object], str]] = {
    "DaemonSet gone": ({"objects": (ENTRIES,)}, f"DaemonSet {RELEASE_NAME} is missing"),
    "affinity edited": (
        {"objects": (chart_objects({**VALUES, "affinity": {}})[0], ENTRIES)},
        f"DaemonSet {RELEASE_NAME}: affinity.nodeAffinity differs",
    ),
    "tolerations edited": (
        {"objects": (chart_objects({**VALUES, "tolerations": []})[0], ENTRIES)},
        f"DaemonSet {RELEASE_NAME}: tolerations differs",
    ),
    "entry edited": (
        {"objects": (PLUGIN, {**ENTRIES, "data": {**entries_of(VALUES), DEFAULT_KEY: "version: v2"}})},
        f"ConfigMap {RELEASE_NAME}-configs: data[{DEFAULT_KEY}] differs",
    ),
    "config map gone": ({"objects": (PLUGIN,)}, f"ConfigMap {RELEASE_NAME}-configs is missing"),
    "failed": ({"history": (release_of(VALUES, status="failed"),)}, "its last change ended as failed"),
    "older chart": ({"history": (release_of(VALUES, chart_version="0.17.4"),)}, f"chart 0.17.4 -> {CHART_VERSION}"),
}


@pytest.mark.parametrize("case", DRIFT)
def test_plan_when_the_cluster_drifted_then_upgrade_says_what(case: str) -> None:
    changes, reason = DRIFT[case]
    plan = plan_release([CUT], installed([CUT], **changes))
    assert (plan.action, plan.reason) == ("upgrade", reason)


def test_plan_when_values_differ_and_an_object_is_gone_then_both_are_told() -> None:
    plan = plan_release([CUT, SHARED], installed([CUT], objects=(ENTRIES,)))
    entry = f"config.map.{SHARED.ownership.config_key} differs"
    assert plan.reason == f"{entry}; DaemonSet {RELEASE_NAME} is missing"
    assert [(item.object, item.gone) for item in plan.drift] == [(f"DaemonSet {RELEASE_NAME}", True)]


UNJUDGED: dict[str, dict[str, object]] = {
    "the objects were not read": {"objects": None},
    "the last change was cut off": {"objects": (), "history": (release_of(VALUES, status="pending-upgrade"),)},
}


@pytest.mark.parametrize("case", UNJUDGED)
def test_plan_when_objects_cannot_be_judged_then_no_drift(case: str) -> None:
    assert plan_release([CUT], installed([CUT], **UNJUDGED[case])).drift == ()


def test_plan_when_the_live_chart_is_newer_then_it_is_not_taken_back() -> None:
    seen = installed([CUT], history=(release_of(VALUES, chart_version="0.21.0"),))
    plan = plan_release([CUT], seen)
    assert (plan.action, plan.version) == ("none", "0.21.0")


def test_plan_when_the_user_names_a_chart_then_its_version_counts() -> None:
    seen = installed([CUT], history=(release_of(VALUES, chart_version="0.21.0"),))
    assert plan_release([CUT], seen, chart_version="0.19.3").version == "0.19.3"
    assert plan_release([CUT], Snapshot(), chart_version="0.19.3").version == "0.19.3"


def test_plan_when_a_former_run_was_cut_off_then_pending_is_told() -> None:
    seen = installed([CUT], history=(release_of(VALUES, status="pending-upgrade", revision=4),))
    plan = plan_release([CUT], seen)
    assert (plan.action, plan.pending, plan.revision) == ("upgrade", "pending-upgrade", 4)


def test_plan_when_nfd_runs_already_then_the_chart_brings_none() -> None:
    nfd = daemonset("nfd-worker", "node-feature-discovery", labels={"app.kubernetes.io/name": "node-feature-discovery"})
    plan = plan_release([CUT], Snapshot(daemonsets=(nfd,)))
    assert isinstance(plan.values["nfd"], dict)
    assert plan.values["nfd"]["enabled"] is False


def test_plan_when_only_our_own_nfd_runs_then_it_stays_on() -> None:
    labels = {"app.kubernetes.io/name": "node-feature-discovery", "app.kubernetes.io/instance": RELEASE_NAME}
    ours = daemonset(f"{RELEASE_NAME}-node-feature-discovery-worker", NAMESPACE, labels=labels)
    seen = installed([CUT])
    plan = plan_release([CUT], replace(seen, daemonsets=(*seen.daemonsets, ours)))
    assert plan.action == "none"


def test_value_changes_when_leaves_differ_then_dotted_and_sorted() -> None:
    changes = value_changes({"a": {"b": 1, "c": 2}, "x": [1]}, {"a": {"b": 1, "c": 3}, "n": {"m": 1}, "x": [2]})
    assert [(change.path, change.old, change.new) for change in changes] == [
        ("a.c", 2, 3),
        ("n.m", None, 1),
        ("x", [1], [2]),
    ]
