"""What pools ask of the chart: its version and further values, one answer for a cluster."""

from __future__ import annotations

from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.offline_checks import check_settings
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.snapshot import Snapshot
from tests.unit.cluster.builders import SINGLE, SLICED, advertised_by_cloud, desire, installed, operated, release_of

LIMITS = {"resources": {"limits": {"cpu": "50m"}}}
PLAIN = desire(sharing=SINGLE)
ASKING = desire(sharing=SLICED, pool="shared", chart_version="0.19.1", chart_values=LIMITS)


def test_plan_when_a_pool_asks_for_a_version_then_the_release_gets_it() -> None:
    assert plan_release([PLAIN, ASKING], Snapshot()).version == "0.19.1"
    older = plan_release([PLAIN, ASKING], installed([PLAIN, ASKING]))
    assert (older.action, older.version) == ("upgrade", "0.19.1")
    assert "chart 0.20.0 -> 0.19.1" in older.reason


def test_plan_when_the_run_names_a_version_then_it_wins() -> None:
    assert plan_release([ASKING], Snapshot(), chart_version="0.20.0").version == "0.20.0"


def test_values_when_a_pool_asks_for_more_then_they_stand_beside_ours() -> None:
    values = chart_values([PLAIN, ASKING], ReleaseContext(live={"resources": {"requests": {"cpu": "1m"}}}))
    assert values["resources"] == {"requests": {"cpu": "1m"}, "limits": {"cpu": "50m"}}
    assert values["gfd"] == {"enabled": True}
    assert check_settings([PLAIN, ASKING]) == []


def test_values_when_merged_then_what_they_came_from_is_left_alone() -> None:
    live = release_of({"resources": {"limits": {"memory": "64Mi"}}})
    chart_values([ASKING], ReleaseContext(live=live.values))
    assert (live.values, ASKING.target.chart_values) == ({"resources": {"limits": {"memory": "64Mi"}}}, LIMITS)


def test_values_when_the_operator_serves_then_they_go_to_its_chart() -> None:
    pool = operated(sharing=SINGLE, chart_values={"dcgmExporter": {"enabled": False}, "driver": {"enabled": True}})
    assert operator_values([pool], ReleaseContext())["dcgmExporter"] == {"enabled": False}
    (refused,) = check_settings([pool])
    assert refused.code == "chart-value-ours"
    assert "devicePlugin.values.driver.enabled" in refused.seen


def test_settings_when_they_are_gpukubes_then_are_refused_offline_and_by_the_plan() -> None:
    pool = desire(chart_values={"migStrategy": "mixed", "config": {"default": "mine"}})
    assert [found.code for found in check_settings([pool])] == ["chart-value-ours"] * 2
    plan = plan_release([pool], Snapshot())
    assert (plan.action, plan.kind) == ("conflict", DEVICE_PLUGIN)
    assert "migStrategy" in plan.reason


def test_settings_when_they_say_what_gpukube_says_then_pass() -> None:
    assert check_settings([desire(chart_values={"gfd": {"enabled": True}})]) == []


def test_settings_when_pools_of_a_cluster_differ_then_both_are_named() -> None:
    other = desire(pool="other", chart_version="0.20.0", chart_values={"resources": {"limits": {"cpu": "10m"}}})
    found = check_settings([ASKING, other])
    assert [(one.code, one.seen) for one in found] == [
        ("chart-twice", "train-aks/other: devicePlugin.version is 0.20.0, but pool shared has 0.19.1"),
        (
            "chart-twice",
            "train-aks/other: devicePlugin.values.resources.limits.cpu is 10m, but pool shared has 50m",
        ),
    ]


def test_settings_when_no_chart_serves_the_pool_then_are_refused() -> None:
    assert [found.code for found in check_settings([advertised_by_cloud(ASKING)])] == ["chart-not-ours"] * 2
