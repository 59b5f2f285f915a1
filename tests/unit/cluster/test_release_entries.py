"""Entries when a run that drops one meets a run that carries it along."""

from __future__ import annotations

from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.entries import Overwritten, dropped_entries, with_entries
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import DEFAULT_KEY, ReleaseContext
from gpukube.gpu.sharing import Sharing, Slicing
from tests.builders import make_observed
from tests.unit.cluster.builders import SINGLE, SLICED, desire, installed, release_of

OLD, KEPT = desire(sharing=SINGLE), desire(sharing=SLICED, pool="shared")
OTHER = desire(sharing=Sharing(slicing=Slicing("time-slicing", 7)), pool="other")
OLD_KEY, KEPT_KEY, OTHER_KEY = (pool.ownership.config_key for pool in (OLD, KEPT, OTHER))

PLAN = plan_release([KEPT], installed([OLD, KEPT]), retire=True)
CARRIED = release_of(chart_values([OLD, KEPT, OTHER], ReleaseContext()), revision=2)


def test_plan_when_it_retires_then_what_nothing_names_is_dropped() -> None:
    assert dropped_entries(PLAN) == {OLD_KEY}
    assert dropped_entries(plan_release([KEPT], installed([OLD, KEPT]))) == frozenset()


def test_plan_when_another_run_carried_a_dropped_entry_along_then_only_its_own_stays() -> None:
    live = installed([OLD, KEPT, OTHER], history=(CARRIED,))
    overwritten = Overwritten(dropped_entries(PLAN))
    overwritten.add(PLAN, [CARRIED])
    again = plan_release([KEPT], live, dropped=overwritten.dropped, missed=overwritten.revisions)
    assert set(again.keys) == {DEFAULT_KEY, KEPT_KEY, OTHER_KEY}
    assert OLD_KEY in plan_release([KEPT], live, missed=[CARRIED]).keys


def test_plan_when_another_run_dropped_a_carried_entry_then_it_goes_unless_it_is_named() -> None:
    adding = plan_release([OTHER], installed([OLD, KEPT]))
    live = installed([OLD, KEPT, OTHER])
    overwritten = Overwritten(dropped_entries(adding))
    overwritten.add(adding, [release_of(chart_values([KEPT], ReleaseContext()), revision=2)])
    assert overwritten.dropped == {OLD_KEY}
    again = plan_release([OTHER], live, dropped=overwritten.dropped, missed=overwritten.revisions)
    assert set(again.keys) == {DEFAULT_KEY, KEPT_KEY, OTHER_KEY}
    assert OLD_KEY in plan_release([OLD], live, dropped=overwritten.dropped).keys
    assert OLD_KEY in plan_release([OTHER], live, live_pools=[make_observed(OLD)], dropped=overwritten.dropped).keys


def test_plan_when_the_newest_overwritten_revision_has_an_entry_then_it_was_not_dropped() -> None:
    overwritten = Overwritten(frozenset())
    overwritten.add(PLAN, [release_of(chart_values([KEPT], ReleaseContext()), revision=2), CARRIED])
    assert overwritten.dropped == frozenset()
    overwritten.add(PLAN, [])
    assert overwritten.dropped == frozenset()


def test_plan_when_no_pool_of_the_spec_is_served_then_dropped_and_overwritten_entries_count_as_well() -> None:
    missed = with_entries(CARRIED, DEVICE_PLUGIN, {OTHER_KEY})
    again = plan_release([], installed([OLD, KEPT]), dropped={OLD_KEY}, missed=[missed])
    assert (again.action, set(again.keys)) == ("upgrade", {DEFAULT_KEY, KEPT_KEY, OTHER_KEY})
    assert (
        again.reason
        == f"removes entry {OLD_KEY}, which no pool or node uses; restores {OTHER_KEY}, which another run added"
    )
    assert plan_release([], installed([KEPT, OTHER]), dropped={OLD_KEY}, missed=[missed]).action == "none"


def test_with_entries_when_given_then_the_revision_itself_is_left_alone() -> None:
    less = with_entries(CARRIED, DEVICE_PLUGIN, {OLD_KEY})
    assert set(less.values["config"]["map"]) == {OLD_KEY}  # type: ignore[index]  # values are a tree
    assert OTHER_KEY in CARRIED.values["config"]["map"]  # type: ignore[index]  # values are a tree
