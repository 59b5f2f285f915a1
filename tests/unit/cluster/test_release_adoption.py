"""Taking over a release that the user made with Helm: its values come along, and no node is left without a plugin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cluster.kube.releases import Release
from gpukube.cluster.kube.views import Toleration, placement_of
from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.adoption import adoptable_releases, outgoing_release, still_foreign
from gpukube.cluster.release.plan import ReleasePlan, plan_release
from gpukube.cluster.state.advertisers import find_advertisers
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import texts
from tests.unit.cluster.builders import (
    SINGLE,
    container,
    daemonset,
    desire,
    installed,
    node_of,
    operated,
    release_secret,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

CUT = desire(sharing=SINGLE)
PRESENT = {"nodeSelector": {"nvidia.com/gpu.present": "true"}}
THEIRS: Mapping[str, object] = {
    "config": {"map": {"vision": "version: v1"}, "default": "vision"},
    "tolerations": [{"key": "team", "operator": "Exists"}],
    "resources": {"limits": {"cpu": "100m"}},
    "migStrategy": "single",
}
MANIFEST = yaml.safe_dump_all(
    [
        {"kind": "DaemonSet", "metadata": {"name": "nvdp-gpu-feature-discovery"}},
        {
            "kind": "DaemonSet",
            "metadata": {"name": "nvdp-nvidia-device-plugin"},
            "spec": {"template": {"spec": {"containers": [{"name": "nvidia-device-plugin-ctr"}]}}},
        },
    ]
)
RELEASE = Release("nvdp", "nvidia", DEVICE_PLUGIN.chart, "0.17.4", 7, "deployed", THEIRS, MANIFEST)
PLUGIN = daemonset(
    "nvdp-nvidia-device-plugin",
    "nvidia",
    labels={"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": "nvdp"},
    placement=replace(placement_of(PRESENT), tolerations=(Toleration("", "Exists"),)),
    containers=(container("nvcr.io/nvidia/k8s-device-plugin:v0.17.4", name="nvidia-device-plugin-ctr"),),
)
SEEN = Snapshot(nodes=(node_of(CUT),), daemonsets=(PLUGIN,))


def take_over(seen: Snapshot = SEEN, *releases: Release) -> ReleasePlan:
    return plan_release([CUT], seen, adopt=releases or [RELEASE])


def test_plan_when_a_release_is_taken_over_then_it_leaves_and_its_values_are_in_ours() -> None:
    plan = take_over()
    (outgoing,) = plan.leaves
    assert (plan.action, plan.name, plan.adopted) == ("install", DEVICE_PLUGIN.name, (RELEASE,))
    assert (outgoing.address, outgoing.plugin, outgoing.kind, outgoing.there) == (
        "nvidia/nvdp",
        PLUGIN.name,
        None,
        True,
    )
    assert {"vision", CUT.ownership.config_key} < set(plan.keys)
    assert {"key": "team", "operator": "Exists"} in list(plan.values["tolerations"])  # type: ignore[call-overload]
    assert plan.values["resources"] == THEIRS["resources"]
    assert "nvidia/nvdp (your nvidia-device-plugin 0.17.4, whose values are adopted) is uninstalled" in plan.reason


def test_plan_when_a_release_is_taken_over_then_what_changes_of_its_values_is_shown() -> None:
    changes = {change.path: (change.old, change.new) for change in take_over().changes}
    assert changes["migStrategy"] == ("single", None)
    assert "resources.limits.cpu" not in changes
    assert changes["config.map.vision"] == ("version: v1", "version: v1\nflags:\n  migStrategy: single\n")
    assert changes["gfd.enabled"] == (None, True)


def test_plan_when_their_release_brought_nfd_then_ours_brings_it_instead() -> None:
    labels = {"app.kubernetes.io/name": "node-feature-discovery", "app.kubernetes.io/instance": "nvdp"}
    worker = daemonset("nvdp-node-feature-discovery-worker", "nvidia", labels=labels)
    seen = replace(SEEN, daemonsets=(PLUGIN, worker))
    assert take_over(seen).values["nfd"] == take_over().values["nfd"]
    assert plan_release([CUT], seen).values["nfd"] != take_over().values["nfd"]


def test_plan_when_theirs_is_newer_then_its_version_stays() -> None:
    assert take_over(SEEN, replace(RELEASE, chart_version="0.99.0")).version == "0.99.0"
    assert take_over().version == DEVICE_PLUGIN.version


@pytest.mark.parametrize(
    ("strategy", "entry", "kept"),
    [
        ("single", "version: v1", "single"),
        ("mixed", "version: v1\nflags: {migStrategy: none, gdsEnabled: true}", "mixed"),
        ("", "version: v1\nflags: {migStrategy: mixed}", "mixed"),
    ],
)
def test_plan_when_theirs_has_a_mig_strategy_for_all_then_each_of_its_entries_says_it(
    strategy: str, entry: str, kept: str
) -> None:
    values = {"migStrategy": strategy, "config": {"map": {"vision": entry}}}
    plan = take_over(SEEN, replace(RELEASE, values=values))
    config = yaml.safe_load(texts(plan.values, "config", "map")["vision"])
    assert config["flags"]["migStrategy"] == kept
    assert config["flags"].get("gdsEnabled") == ("gdsEnabled" in entry or None)
    assert "migStrategy" not in plan.values


STRAY = node_of(CUT, "stray", labels={"nvidia.com/gpu.present": "true"})
UNDECLARED = node_of(
    CUT,
    "undeclared",
    labels={
        "gpukube.io/advertiser": "chart",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    },
)
OTHER = replace(RELEASE, name="other")
REFUSED = {
    "it serves nodes of nobody": (replace(SEEN, nodes=(STRAY,)), [RELEASE], "also serves stray"),
    "it cuts nodes that no pool declares": (
        replace(SEEN, nodes=(UNDECLARED,)),
        [RELEASE],
        "undeclared would lose migStrategy single of release nvidia/nvdp",
    ),
    "there are two": (
        SEEN,
        [RELEASE, OTHER],
        "there are 2 releases of nvidia-device-plugin: nvidia/nvdp, nvidia/other",
    ),
    "its entries are elsewhere": (
        SEEN,
        [replace(RELEASE, values={"config": {"name": "mine"}})],
        "are in ConfigMap mine, outside the release",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_plan_when_a_takeover_would_lose_something_then_refused_with_the_way_out(case: str) -> None:
    seen, releases, said = REFUSED[case]
    plan = take_over(seen, *releases)
    (found,) = plan.diagnostics
    assert (plan.action, plan.leaves, found.code) == ("conflict", (), "foreign-advertiser")
    assert said in found.seen
    assert found.fix


def test_plan_when_the_operator_is_needed_then_their_chart_is_not_taken_over() -> None:
    (found,) = plan_release([operated(sharing=SINGLE)], SEEN, adopt=[RELEASE]).diagnostics
    assert "these pools need the GPU Operator" in found.seen
    assert "helm uninstall nvdp --namespace nvidia" in found.fix


@pytest.mark.parametrize(
    "node", [node_of(CUT), replace(STRAY, allocatable={"cpu": "4"}), replace(STRAY, labels={})], ids=str
)
def test_plan_when_no_node_depends_on_theirs_alone_then_taken_over(node: object) -> None:
    assert take_over(replace(SEEN, nodes=(node,))).action == "install"  # type: ignore[arg-type]  # test data


def test_advertisers_when_one_is_taken_over_then_only_the_others_are_foreign() -> None:
    static = daemonset("static", pod_labels={"name": "nvidia-device-plugin-ds"})
    found = find_advertisers(replace(SEEN, daemonsets=(PLUGIN, static)), [CUT])
    assert [item.name for item in still_foreign(found, [outgoing_release(RELEASE)])] == ["static"]


class Secrets:
    """Helm's records in all namespaces."""

    def __init__(self, *releases: Release) -> None:
        self._releases = releases

    def release_secrets(
        self, namespace: str = "", name: str = "", *, superseded: bool = False
    ) -> tuple[Mapping[str, object], ...]:
        assert (namespace, name, superseded) == ("", "", False)
        return tuple(
            release_secret(
                {
                    "name": release.name,
                    "namespace": release.namespace,
                    "version": release.revision,
                    "chart": {"metadata": {"name": release.chart}},
                    "info": {"status": release.status},
                }
            )
            for release in self._releases
        )


OURS = replace(RELEASE, name=DEVICE_PLUGIN.name, namespace="gpukube-system")
GONE = replace(RELEASE, status="uninstalled")


@pytest.mark.parametrize(
    ("releases", "seen", "names"),
    [
        ([RELEASE, OURS, replace(RELEASE, name="web", chart="nginx")], SEEN, ["nvdp"]),
        ([GONE], SEEN, ["nvdp"]),
        ([GONE], installed([CUT]), []),
        ([RELEASE], installed([CUT]), ["nvdp"]),
    ],
    ids=["not ours and of the chart", "cut off before ours came", "history of one taken over", "beside ours"],
)
def test_adoptable_when_looked_for_then_those_of_the_chart_that_are_not_ours(
    releases: list[Release], seen: Snapshot, names: list[str]
) -> None:
    assert [item.name for item in adoptable_releases(Secrets(*releases), seen)] == names
