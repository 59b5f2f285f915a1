"""Values of the GPU Operator's chart, and the nodes its operands would go to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR
from gpukube.cluster.release.operator_values import (
    check_declared_strategies,
    check_drivers,
    check_plugin,
    check_strategies,
    check_unserved_nodes,
    mig_strategies,
    operator_values,
)
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import DEFAULT_KEY, ReleaseContext
from gpukube.cluster.state.scheduling import tolerates
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import at, items, number, texts
from gpukube.core.values import Taint
from gpukube.errors import Where
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.builders import make_observed
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MIXED,
    MPS,
    SINGLE,
    SLICED,
    VISION_TAINT,
    desire,
    node_of,
    operated,
    operated_node,
    operating,
)

if TYPE_CHECKING:
    from gpukube.core.values import Desired

CUT, SHARED = operated(sharing=SINGLE), operated(sharing=SLICED, pool="t4")
ALONE = ReleaseContext()
HERE = Where("train")
VALUES = operator_values([CUT], ALONE)


def entries(values: dict[str, object]) -> dict[str, str]:
    return texts(values, *GPU_OPERATOR.entries)


FIXED = {
    "the image brings the driver": (("driver", "enabled"), False),
    "the image brings the toolkit": (("toolkit", "enabled"), False),
    "the operator's plugin advertises": (("devicePlugin", "enabled"), True),
    "features are discovered": (("gfd", "enabled"), True),
    "the MIG manager runs": (("migManager", "enabled"), True),
    "the strategy of all cut pools": (("mig", "strategy"), "single"),
    "the classic stack": (("clusterPolicy", "deployCR"), True),
    "not the one of DRA": (("gpuCluster", "deployCR"), False),
    "no virtual machines": (("sandboxWorkloads", "enabled"), False),
    "a config map is made": (("devicePlugin", "config", "create"), True),
    "by its name": (("devicePlugin", "config", "name"), "gpukube-gpu-operator-configs"),
    "nodes without a label run whole GPUs": (("devicePlugin", "config", "default"), DEFAULT_KEY),
    "NFD looks at our nodes only": (
        ("node-feature-discovery", "worker", "nodeSelector"),
        {"gpukube.io/advertiser": "operator"},
    ),
}


@pytest.mark.parametrize("case", FIXED)
def test_values_when_made_then_as_the_pools_need_whatever_is_live(case: str) -> None:
    path, desired = FIXED[case]
    live: dict[str, object] = {path[-1]: "another"}
    for key in reversed(path[:-1]):
        live = {key: live}
    assert at(VALUES, *path) == desired
    assert at(operator_values([CUT], ReleaseContext(live=live)), *path) == desired


def test_values_when_pools_differ_then_an_entry_for_each_with_a_strategy_of_its_own() -> None:
    made = entries(operator_values([CUT, SHARED], ALONE))
    assert set(made) == {DEFAULT_KEY, CUT.ownership.config_key, SHARED.ownership.config_key}
    assert {yaml.safe_load(text)["flags"]["migStrategy"] for text in made.values()} == {"none", "single"}


STRATEGIES = {
    "single": ([CUT, SHARED], ALONE, {"single"}, "single"),
    "mixed": ([operated(sharing=MIXED), SHARED], ALONE, {"mixed"}, "mixed"),
    "nothing is cut": ([SHARED], ALONE, set(), "single"),
    "by another spec's pool": (
        [SHARED],
        ReleaseContext(
            live=operator_values([operated(sharing=MIXED)], ALONE),
            by_others=frozenset({operated(sharing=MIXED).ownership.config_key}),
        ),
        {"mixed"},
        "mixed",
    ),
    "an entry that nothing names": (
        [CUT],
        ReleaseContext(live=operator_values([operated(sharing=MIXED)], ALONE)),
        {"single"},
        "single",
    ),
    "an entry edited by hand": (
        [CUT],
        ReleaseContext(live={"devicePlugin": {"config": {"data": {"c-1": "a: ["}}}}, by_others=frozenset({"c-1"})),
        {"single"},
        "single",
    ),
}


@pytest.mark.parametrize("case", STRATEGIES)
def test_values_when_pools_are_cut_then_their_strategy_is_everybodys(case: str) -> None:
    pools, context, strategies, value = STRATEGIES[case]
    assert mig_strategies(pools, context) == strategies
    assert at(operator_values(pools, context), "mig", "strategy") == value
    assert check_strategies(pools, context, HERE) == []


UNSERVED = {
    "single and mixed": ([CUT, operated(sharing=MIXED, pool="mix")], "strategies single and mixed"),
    "mps beside mixed": ([operated(sharing=MPS, pool="m"), operated(sharing=MIXED)], "m is shared by MPS"),
}


@pytest.mark.parametrize("case", UNSERVED)
def test_check_when_one_strategy_cannot_serve_all_then_refused(case: str) -> None:
    pools, message = UNSERVED[case]
    (found,) = check_strategies(pools, ALONE, HERE)
    assert (found.code, found.severity, found.where) == ("operator-strategy", "error", HERE)
    assert message in found.seen
    assert check_strategies([CUT, operated(sharing=MPS)], ALONE, HERE) == []


def test_values_when_an_entry_is_written_then_it_is_the_one_of_the_other_chart() -> None:
    chart = chart_values([desire(sharing=SINGLE)], ALONE)
    assert entries(VALUES) == texts(chart, *DEVICE_PLUGIN.entries)


LISTS = {
    "operands": ("daemonsets", "tolerations"),
    "operator": ("operator", "tolerations"),
    "nfd worker": ("node-feature-discovery", "worker", "tolerations"),
    "nfd master": ("node-feature-discovery", "master", "tolerations"),
    "nfd gc": ("node-feature-discovery", "gc", "tolerations"),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("taint", [GPU_TAINT, VISION_TAINT, Taint("own", "", "NoExecute")], ids=str)
def test_values_when_pools_are_tainted_then_every_part_tolerates_them(case: str, taint: Taint) -> None:
    values = operator_values([operated(taints=(GPU_TAINT, VISION_TAINT, taint))], ALONE)
    assert tolerates(placement_of({"tolerations": items(values, *LISTS[case])}).tolerations, taint)


@pytest.mark.parametrize("case", ["operator", "nfd worker", "nfd master"])
def test_values_when_a_list_is_replaced_then_the_control_plane_stays_open(case: str) -> None:
    made = placement_of({"tolerations": items(VALUES, *LISTS[case])})
    assert tolerates(made.tolerations, Taint("node-role.kubernetes.io/control-plane", "", "NoSchedule"))


def test_values_when_the_mode_changes_by_reboot_only_then_the_manager_may() -> None:
    live = {"migManager": {"env": [{"name": "WITH_REBOOT", "value": "false"}, {"name": "A", "value": "b"}]}}
    made = items(operator_values([CUT], ReleaseContext(live=live)), "migManager", "env")
    assert made == [{"name": "WITH_REBOOT", "value": "true"}, {"name": "A", "value": "b"}]


def test_values_when_the_operator_is_placed_then_rather_not_on_nodes_that_it_reboots() -> None:
    path = ("operator", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    heaviest = max(items(VALUES, *path), key=lambda item: number(item, "weight"))
    assert items(heaviest, "preference", "matchExpressions") == [
        {"key": "gpukube.io/advertiser", "operator": "DoesNotExist"}
    ]


@pytest.mark.parametrize("bundled", [True, False])
def test_values_when_nfd_is_there_or_not_then_said_explicitly(bundled: bool) -> None:  # noqa: FBT001 -- a case
    assert at(operator_values([CUT], ReleaseContext(bundle_nfd=bundled)), "nfd", "enabled") is bundled


def test_values_when_the_version_stays_then_no_job_before_an_upgrade() -> None:
    assert at(VALUES, "operator", "upgradeCRD") is False


def test_values_when_the_version_moves_then_its_types_come_along_and_it_stays_so() -> None:
    moved = operator_values([CUT], ReleaseContext(live=VALUES, moves=True))
    assert at(moved, "operator", "upgradeCRD") is True
    assert operator_values([CUT], ReleaseContext(live=moved)) == moved


def test_values_when_live_has_settings_of_others_then_they_stay() -> None:
    live: dict[str, object] = {"dcgmExporter": {"enabled": False}, "nameOverride": "x", "gfd": {"version": "v1"}}
    values = operator_values([CUT], ReleaseContext(live=live))
    assert (values["dcgmExporter"], values["gfd"]) == ({"enabled": False}, {"version": "v1", "enabled": True})
    assert "nameOverride" not in values
    assert live["gfd"] == {"version": "v1"}


def test_values_when_an_entry_is_retired_and_unnamed_then_it_goes_else_stays() -> None:
    key = SHARED.ownership.config_key
    context = ReleaseContext(live=operator_values([SHARED], ALONE), retire=True)
    assert key not in entries(operator_values([CUT], context))
    assert key in entries(operator_values([CUT], replace(context, named=frozenset({key}))))
    assert key in entries(operator_values([CUT], ReleaseContext(missed=(context.live,))))


SHARINGS = st.one_of(
    st.just(Sharing()),
    st.builds(
        Sharing,
        mig=st.builds(MigCut, st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb"]), st.just("single")),
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
    st.builds(lambda sharing, taints: operated(sharing=sharing, taints=taints), SHARINGS, st.sets(TAINTS).map(tuple)),
    max_size=4,
)


@settings(max_examples=40)
@given(POOLS, POOLS)
def test_merge_when_two_specs_share_a_cluster_then_neither_drops_the_other(mine: list, theirs: list) -> None:  # type: ignore[type-arg]  # pools
    live = operator_values(theirs, ALONE)
    merged = operator_values(mine, ReleaseContext(live=live))
    assert entries(live).items() <= entries(merged).items()
    for path in LISTS.values():
        assert all(item in items(merged, *path) for item in items(live, *path))
    assert operator_values(mine, ReleaseContext(live=merged)) == merged
    assert operator_values(theirs, ReleaseContext(live=operator_values(mine, ALONE))) == merged


# Nodes of others

FOREIGN = node_of(CUT, "other", labels={"feature.node.kubernetes.io/pci-0302_10de.present": "true"})
KEPT = {
    "our own nodes": operated_node(CUT),
    "nodes without NVIDIA devices": replace(FOREIGN, labels={"feature.node.kubernetes.io/pci-1d0f.present": "true"}),
    "nodes told off": replace(FOREIGN, labels={**FOREIGN.labels, "nvidia.com/gpu.deploy.operands": "false"}),
    "nodes that no NFD has seen": replace(FOREIGN, labels={"nvidia.com/gpu.present": "true"}),
}


@pytest.mark.parametrize("case", KEPT)
def test_strays_when_the_operator_keeps_off_then_none(case: str) -> None:
    assert check_unserved_nodes(Snapshot(nodes=(KEPT[case],)), HERE) == []


@pytest.mark.parametrize("key", ["pci-10de", "pci-0302_10de", "pci-0300_10de"])
def test_strays_when_nfd_has_seen_a_gpu_elsewhere_then_refused_with_the_label_that_keeps_it_off(key: str) -> None:
    node = replace(FOREIGN, labels={f"feature.node.kubernetes.io/{key}.present": "true"})
    (found,) = check_unserved_nodes(Snapshot(nodes=(node, operated_node(CUT))), HERE)
    assert (found.code, found.severity, found.where) == ("operator-strays", "error", HERE)
    assert "other" in found.seen
    assert "kubectl label node other nvidia.com/gpu.deploy.operands=false" in found.fix


def test_strays_when_there_are_many_then_three_are_named_and_all_are_in_the_fix() -> None:
    nodes = tuple(replace(FOREIGN, name=f"n{place}") for place in range(5))
    (found,) = check_unserved_nodes(Snapshot(nodes=nodes), HERE)
    assert "n0, n1, n2 and 2 more" in found.seen
    assert "n0 n1 n2 n3 n4 " in found.fix


DRIVER_VALUES = {"driver.enabled": True, "toolkit.enabled": True}
DRIVEN = replace(CUT, ownership=replace(CUT.ownership, driver="operator", values=DRIVER_VALUES))


@pytest.mark.parametrize(("live", "desired"), [(CUT, DRIVEN), (DRIVEN, CUT)], ids=["begins", "ends"])
def test_drivers_when_the_operator_serves_nodes_then_it_neither_begins_nor_ends_to_bring_the_driver(
    live: Desired, desired: Desired
) -> None:
    seen = operating([live], operated_node(live))
    (found,) = check_drivers([desired], seen, (), HERE)
    assert (found.code, found.severity, found.where) == ("operator-driver", "error", HERE)
    assert "node-1" in found.seen
    assert check_drivers([live], seen, (), HERE) == []
    assert check_drivers([desired], operating([live]), (), HERE) == [], "it serves nothing"


def test_drivers_when_a_pool_at_zero_is_served_then_it_counts() -> None:
    pool = make_observed(CUT, labels=CUT.labels)
    (found,) = check_drivers([DRIVEN], operating([CUT]), [pool], HERE)
    assert f"pool {pool.name}" in found.seen


def test_drivers_when_pools_run_different_systems_then_refused() -> None:
    other = replace(DRIVEN, target=replace(DRIVEN.target, image="AzureLinux"))
    (found,) = check_drivers([DRIVEN, other], Snapshot(), (), HERE)
    assert found.seen.endswith("pools of AzureLinux and of the default image")
    assert check_drivers([CUT, replace(CUT, target=other.target)], Snapshot(), (), HERE) == []


def test_values_when_the_operator_brings_the_driver_then_both_are_on_and_off_again_afterwards() -> None:
    made = operator_values([DRIVEN], ALONE)
    assert (at(made, "driver", "enabled"), at(made, "toolkit", "enabled")) == (True, True)
    back = operator_values([CUT], ReleaseContext(live=made))
    assert (at(back, "driver", "enabled"), at(back, "toolkit", "enabled")) == (False, False)


def test_values_when_the_owner_asks_for_more_then_they_are_there() -> None:
    runtime = {"operator.runtimeClass": "nvidia-container-runtime"}
    pool = replace(CUT, ownership=replace(CUT.ownership, values=runtime))
    assert at(operator_values([pool], ReleaseContext()), "operator", "runtimeClass") == "nvidia-container-runtime"


# Beside the DRA driver

CLAIMED = operated(plugin_owner="dra", sharing=SINGLE, pool="claimed")


def test_values_when_the_operator_serves_pools_of_dra_then_its_plugin_is_off_and_nfd_finds_their_nodes() -> None:
    made = operator_values([CLAIMED], ALONE)
    assert at(made, "devicePlugin", "enabled") is False
    assert at(made, "migManager", "enabled") is True
    assert at(made, "node-feature-discovery", "worker", "nodeSelector") == {"gpukube.io/advertiser": "dra"}
    assert entries(made).keys() == {DEFAULT_KEY}, "no plugin reads one"


def test_values_when_each_chart_has_its_own_then_those_of_the_dra_driver_do_not_reach_the_operator() -> None:
    ownership = replace(
        CLAIMED.ownership, values={"nvidiaDriverRoot": "/opt"}, operator_values={"driver.enabled": True}
    )
    target = replace(CLAIMED.target, chart_values={"kubeletPlugin": {"priorityClassName": ""}})
    made = operator_values([replace(CLAIMED, ownership=ownership, target=target)], ALONE)
    assert at(made, "driver", "enabled") is True
    assert not {"nvidiaDriverRoot", "kubeletPlugin"} & made.keys()


def test_strategies_when_pools_are_of_dra_then_none() -> None:
    other = operated(plugin_owner="dra", sharing=MIXED, pool="other")
    assert mig_strategies([CLAIMED, other], ALONE) == frozenset()
    assert check_declared_strategies([CLAIMED, other]) == []


@pytest.mark.parametrize(("live", "desired", "turned"), [(CUT, CLAIMED, "turned off"), (CLAIMED, CUT, "turned on")])
def test_plugin_when_it_would_be_switched_under_nodes_then_refused(
    live: Desired, desired: Desired, turned: str
) -> None:
    seen = operating([live], operated_node(live))
    (found,) = check_plugin([desired], seen, (), HERE)
    assert (found.code, found.severity, found.where) == ("operator-plugin", "error", HERE)
    assert turned in found.seen
    assert "node-1" in found.seen
    assert "; or " in found.fix or ", or " in found.fix
    assert check_plugin([live], seen, (), HERE) == []
    assert check_plugin([desired], operating([live]), (), HERE) == [], "it serves nothing"
    assert check_plugin([desired], Snapshot(), (), HERE) == [], "it is new"


def test_plugin_when_nodes_of_dra_are_kept_off_then_it_may_be_turned_on() -> None:
    kept = operated_node(CLAIMED, **{"nvidia.com/gpu.deploy.operands": "false"})
    assert check_plugin([CUT], operating([CLAIMED], kept), (), HERE) == []


def test_strays_when_the_operator_serves_nodes_of_dra_then_only_without_its_plugin() -> None:
    node = operated_node(CLAIMED)
    assert check_unserved_nodes(Snapshot(nodes=(node,)), HERE, [CLAIMED]) == []
    (found,) = check_unserved_nodes(Snapshot(nodes=(node,)), HERE, [CUT, replace(CUT, target=CLAIMED.target)])
    assert (found.code, "node-1" in found.seen) == ("operator-strays", True)
