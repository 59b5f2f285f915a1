"""The release of NVIDIA's DRA driver: its values, and its plan beside the device plugin's release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cluster.names import DRA_DRIVER, DRA_KINDS
from gpukube.cluster.release.chart_settings import check_agreement, check_served
from gpukube.cluster.release.dra_values import dra_values
from gpukube.cluster.release.offline_checks import check_settings
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.reach import check_reach, planned_daemonsets
from gpukube.cluster.release.rendered import require_rendered
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import at
from gpukube.core.values import Taint
from gpukube.errors import HelmError
from tests.builders import make_observed
from tests.unit.cluster.builders import VISION_TAINT, claimed, desire, dra_release, installed, named, node_of, operated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import Desired

EMPTY = Snapshot()
POOL = claimed(pool="claims")
TAINTED = claimed(pool="tainted", taints=(VISION_TAINT,))
ELSEWHERE = claimed("/run/nvidia/driver", pool="elsewhere")


def plan(pools: Sequence[Desired], seen: Snapshot = EMPTY, **options: object) -> ReleasePlan:
    return plan_release(pools, seen, kinds=DRA_KINDS, **options)  # type: ignore[arg-type]  # test data


def with_release(pools: Sequence[Desired], **changes: object) -> Snapshot:
    return Snapshot(dra_history=(dra_release(*pools, **changes),))


def test_values_when_a_pool_claims_then_those_of_gpus_only_on_its_nodes() -> None:
    values = dra_values([POOL], ReleaseContext())
    assert values["gpuResourcesEnabledOverride"] is True
    assert values["resources"] == {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}}
    assert values["nvidiaDriverRoot"] == "/"
    terms = at(
        values,
        *("kubeletPlugin", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        "nodeSelectorTerms",
    )
    assert isinstance(terms, list)
    ours = {"key": "gpukube.io/advertiser", "operator": "In", "values": ["dra"]}
    assert [term["matchExpressions"][0] for term in terms] == [ours] * 4
    assert not check_reach(plan([POOL]), [POOL])


def test_values_when_the_operator_changes_mig_then_the_plugin_leaves_and_returns() -> None:
    """It publishes the devices that it finds when it starts."""
    seen = plan([POOL])
    for value, stuck in (("true", 0), ("paused-for-mig-change", 1)):
        pool = replace(POOL, labels={**POOL.labels, "nvidia.com/gpu.deploy.client": value})
        assert len(check_reach(seen, [pool])) == stuck, value


def test_values_when_a_node_gets_mig_then_the_plugin_starts_only_once_the_layout_is_applied() -> None:
    """Before, it would publish whole GPUs of a node that is about to have none."""
    release = plan([POOL])
    (daemonset,) = planned_daemonsets(release)
    born = {**POOL.labels, "nvidia.com/mig.config": "all-1g.5gb"}
    for state, runs in (("", False), ("pending", False), ("failed", False), ("success", True)):
        labels = {**born, "nvidia.com/mig.config.state": state} if state else born
        assert bool(daemon_misfits(daemonset.placement, labels, ())) is not runs, state
    assert not check_reach(release, [replace(POOL, labels=born)])


def test_values_when_pools_have_taints_then_all_are_tolerated_beside_the_charts_own() -> None:
    live = replace(make_observed(POOL), owner="team-b", pool="theirs", name="theirs")
    theirs = replace(live, labels=POOL.labels, effective_taints=(Taint("team", "b", "NoExecute"),))
    found = plan([TAINTED], live_pools=[theirs]).values["kubeletPlugin"]
    assert isinstance(found, dict)
    assert found["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "vision", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "b", "effect": "NoExecute"},
    ]
    assert not check_reach(plan([TAINTED]), [TAINTED])
    untolerated = replace(POOL, effective_taints=(VISION_TAINT,))
    assert [item.code for item in check_reach(plan([POOL]), [untolerated])] == ["reach"]


def test_values_when_others_set_some_then_theirs_stay_and_breaking_ones_go() -> None:
    theirs = {"logVerbosity": "6", "nameOverride": "x", "kubeletPlugin": {"nodeSelector": {"a": "b"}}}
    values = dra_values([POOL], ReleaseContext(live=theirs))
    assert values["logVerbosity"] == "6"
    assert "nameOverride" not in values
    assert at(values, "kubeletPlugin", "nodeSelector") == {}


def test_plan_when_there_is_no_release_then_one_is_installed_and_the_plugins_stays() -> None:
    charted = desire(pool="charted")
    found = plan([POOL, charted], installed([charted]))
    assert (found.action, found.kind, found.version) == ("install", DRA_DRIVER, "0.4.1")
    assert plan_release([POOL, charted], installed([charted])).action == "none"
    assert found.leaves == ()
    assert found.keys == ()


def test_plan_when_the_release_has_all_then_nothing_and_with_another_taint_an_upgrade() -> None:
    assert plan([POOL], with_release([POOL])).action == "none"
    found = plan([POOL, TAINTED], with_release([POOL]))
    assert (found.action, [change.path for change in found.changes]) == ("upgrade", ["kubeletPlugin.tolerations"])


@pytest.mark.parametrize("retire", [False, True])
def test_plan_when_no_pool_needs_it_then_nothing_changes(retire: bool) -> None:  # noqa: FBT001 - a case
    assert plan([desire()], retire=retire).action == "none"
    found = plan([desire()], with_release([POOL]), retire=retire)
    assert (found.action, found.revision) == ("none", 1)
    assert found.reason == "no pool or node needs it; gpukube release remove uninstalls it"
    busy = plan([desire()], replace(with_release([POOL]), nodes=(node_of(POOL),)), retire=retire)
    assert busy.reason == "no pool of this spec changes it"


def test_plan_when_a_run_was_killed_then_the_release_is_changed_again() -> None:
    assert plan([POOL], with_release([POOL], status="pending-install")).action == "upgrade"


def test_plan_when_a_run_overwrote_another_then_its_toleration_comes_back() -> None:
    missed = dra_release(POOL, TAINTED)
    found = plan([POOL], with_release([POOL]), missed=[missed])
    assert VISION_TAINT.key in str(found.values["kubeletPlugin"])


def test_plan_when_pools_have_their_drivers_in_two_places_then_it_names_both() -> None:
    found = plan([POOL, ELSEWHERE])
    assert (found.action, [item.code for item in found.diagnostics]) == ("conflict", ["dra-roots"])
    assert "elsewhere has its driver in /run/nvidia/driver, but" in found.reason
    assert [item.code for item in check_settings([POOL, ELSEWHERE])] == ["dra-roots"]


def test_plan_when_the_live_release_serves_nodes_elsewhere_then_a_conflict_else_it_moves() -> None:
    """The release changes before the pools: on the old nodes it would find no driver."""
    seen = with_release([ELSEWHERE])
    for busy in (
        plan([POOL], replace(seen, nodes=(node_of(POOL),))),
        plan([POOL], seen, live_pools=[make_observed(POOL)]),
    ):
        assert [item.code for item in busy.diagnostics] == ["dra-roots"]
        assert "in /run/nvidia/driver" in busy.reason
    assert plan([POOL], seen).action == "upgrade"


def test_settings_when_pools_have_both_releases_then_each_has_its_own() -> None:
    old, new = claimed(pool="a", chart_version="0.4.0"), desire(pool="b", chart_version="0.20.0")
    assert not check_agreement([old, new])
    assert not check_served([old])
    other = claimed(pool="c", chart_version="0.4.1")
    assert [item.code for item in check_agreement([old, new, other])] == ["chart-twice"]
    assert plan([old]).version == "0.4.0"
    ours = claimed(chart_values={"kubeletPlugin": {"nodeSelector": {"team": "a"}}})
    assert [item.code for item in check_settings([ours])] == ["chart-value-ours"]
    assert at(plan([claimed(chart_values={"logVerbosity": "6"})]).values, "logVerbosity") == "6"


def rendered(values: Mapping[str, object], **changes: object) -> str:
    """Make what the chart renders from values, in short."""
    plugin = values["kubeletPlugin"]
    assert isinstance(plugin, dict)
    env = [{"name": "NVIDIA_DRIVER_ROOT", "value": values["nvidiaDriverRoot"]}]
    pod = {
        "containers": [{"name": "gpus", "env": env}],
        "affinity": plugin["affinity"],
        "tolerations": plugin["tolerations"],
        **changes,
    }
    classes = [{"kind": "DeviceClass", "metadata": {"name": name}} for name in ("gpu.nvidia.com", "mig.nvidia.com")]
    return yaml.safe_dump_all([named("DaemonSet", DRA_DRIVER.plugin, spec={"template": {"spec": pod}}), *classes])


def test_rendered_when_the_chart_does_what_the_values_say_then_it_passes() -> None:
    found = plan([TAINTED])
    require_rendered(rendered(found.values), found)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"affinity": {}}, "affinity"),
        ({"tolerations": []}, "toleration for nvidia.com/gpu|toleration for dedicated"),
        ({"containers": [{"name": "gpus"}]}, "driver root is not /"),
        ({"containers": [{"name": "gpus"}, {"name": "compute-domains"}]}, "containers are gpus, compute-domains"),
    ],
    ids=["affinity", "tolerations", "root", "compute domains"],
)
def test_rendered_when_the_chart_ignores_a_value_then_it_is_named(changes: dict[str, object], said: str) -> None:
    found = plan([TAINTED])
    with pytest.raises(HelmError, match=said):
        require_rendered(rendered(found.values, **changes), found)


def test_rendered_when_a_class_is_missing_then_it_is_named() -> None:
    found = plan([POOL])
    with pytest.raises(HelmError, match=r"no DeviceClass mig\.nvidia\.com"):
        require_rendered(rendered(found.values).replace("mig.nvidia.com", "other"), found)
    with pytest.raises(HelmError, match="no DaemonSet"):
        require_rendered("", found)


def test_plan_when_the_operator_serves_pools_of_dra_then_both_releases_and_no_setting_of_one_in_the_other() -> None:
    beside = replace(
        claimed(chart_values={"logVerbosity": "6"}, chart_version="0.4.0"),
        ownership=replace(POOL.ownership, operator_values={}),
    )
    operator = plan_release([beside], Snapshot())
    assert (operator.kind.advertiser, operator.version) == ("operator", operator.kind.version)
    assert "logVerbosity" not in operator.values
    assert plan([beside]).version == "0.4.0"
    assert plan([operated()]).action == "none"
