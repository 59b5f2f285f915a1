"""Entries when a run that drops one meets a run that carries it along."""

from __future__ import annotations

from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.entries import dropped_entries, unseen_entries, with_entries
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import DEFAULT_KEY, ReleaseContext
from gpukube.gpu.sharing import Sharing, Slicing
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
    again = plan_release([KEPT], live, retire=True, missed=[unseen_entries(CARRIED, PLAN)])
    assert set(again.keys) == {DEFAULT_KEY, KEPT_KEY, OTHER_KEY}
    assert OLD_KEY in plan_release([KEPT], live, retire=True, missed=[CARRIED]).keys


def test_with_entries_when_given_then_the_revision_itself_is_left_alone() -> None:
    less = with_entries(CARRIED, DEVICE_PLUGIN, {OLD_KEY})
    assert set(less.values["config"]["map"]) == {OLD_KEY}  # type: ignore[index]  # values are a tree
    assert OTHER_KEY in CARRIED.values["config"]["map"]  # type: ignore[index]  # values are a tree
