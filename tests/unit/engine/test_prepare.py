"""Specs -> desired pools: everything wrong in all of them, and the filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.engine.plan.ownership import carries_operator
from gpukube.engine.plan.prepare import Filters, Prepared, prepare, prepare_addresses
from gpukube.errors import SpecError
from gpukube.provider import load_provider
from gpukube.spec.loading.load import load_specs
from tests.builders import make_observed

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: {owner}}}
clusters:
  train: {{provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: {cluster}}}
  serve: {{provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: serve}}
pools:
"""
T4 = "  - {{name: {name}, clusters: [{clusters}], instanceType: Standard_NC4as_T4_v3, nodes: {{count: 1}}{more}}}\n"

ALL = Filters()


def spec(*pools: str, owner: str = "ml", cluster: str = "train") -> str:
    return HEAD.format(owner=owner, cluster=cluster) + "".join(pools)


def t4(name: str, clusters: str = "train", more: str = "") -> str:
    return T4.format(name=name, clusters=clusters, more=f", {more}" if more else "")


def prepared(directory: Path, *specs: str, filters: Filters = ALL) -> Prepared:
    paths = []
    for number, text in enumerate(specs):
        path = directory / f"spec{number}.yaml"
        path.write_text(text)
        paths.append(str(path))
    return prepare(load_specs(paths, environ={}), filters)


def wrong(directory: Path, *specs: str, filters: Filters = ALL) -> list[tuple[str, int]]:
    with pytest.raises(SpecError) as caught:
        prepared(directory, *specs, filters=filters)
    return sorted((d.code, d.where.line) for d in caught.value.diagnostics if d.severity == "error")


def names(found: Prepared) -> dict[str, list[str]]:
    return {key: [desired.target.pool for desired in pools] for key, pools in found.desired.items()}


def test_prepare_when_pools_go_to_several_clusters_then_each_has_its_own(tmp_path: Path) -> None:
    found = prepared(tmp_path, spec(t4("one", "train, serve"), t4("two", "serve")))
    assert names(found) == {"train": ["one"], "serve": ["one", "two"]}
    assert found.owners == ("ml",)


def test_prepare_when_two_specs_share_a_cluster_then_one_cluster_and_two_owners(tmp_path: Path) -> None:
    found = prepared(tmp_path, spec(t4("one")), spec(t4("two"), owner="vision"))
    assert names(found) == {"train": ["one", "two"], "serve": []}
    assert found.owners == ("ml", "vision")
    assert [d.target.owner for d in found.desired["train"]] == ["ml", "vision"]


def test_prepare_when_one_key_means_two_clusters_then_told_where(tmp_path: Path) -> None:
    assert wrong(tmp_path, spec(t4("one")), spec(t4("two"), cluster="other")) == [("cluster-twice", 5)]


def test_prepare_when_two_keys_mean_one_cluster_then_told_also_across_specs(tmp_path: Path) -> None:
    one = spec(t4("one"))
    other_key = spec(t4("two", "serving"), owner="vision").replace("  train: ", "  serving: ")
    assert wrong(tmp_path, one, other_key) == [("cluster-keys", 5)]
    other_case = other_key.replace("resourceGroup: ml, name: train", "resourceGroup: ML, name: Train")
    assert other_case != other_key
    assert wrong(tmp_path, one, other_case) == [("cluster-keys", 5)]


def test_prepare_when_two_pools_would_be_one_in_the_cloud_then_told(tmp_path: Path) -> None:
    assert wrong(tmp_path, spec(t4("one")), spec(t4("two", more="names: {aks: one}"), owner="b")) == [
        ("duplicate-pool", 8)
    ]
    assert wrong(tmp_path, spec(t4("one")), spec(t4("one"), owner="vision")) == [("duplicate-pool", 8)]


def test_prepare_when_several_pools_are_wrong_then_all_are_told_at_once(tmp_path: Path) -> None:
    bad_name, bad_cut = t4("much-too-long-a-name"), t4("cut", more="sharing: {mig: {profile: 1g.5gb}}")
    assert {code for code, _ in wrong(tmp_path, spec(bad_name, bad_cut), spec(t4("Upper"), owner="b"))} == {
        "aks-name",
        "mig-capable",
    }


def test_prepare_when_a_filter_leaves_the_wrong_pool_out_then_still_wrong(tmp_path: Path) -> None:
    text = spec(t4("good"), t4("much-too-long-a-name", "serve"))
    assert wrong(tmp_path, text, filters=Filters(pools=("good",))) == [("aks-name", 9)]
    assert wrong(tmp_path, text, filters=Filters(clusters=("train",))) == [("aks-name", 9)]


FILTERS: dict[str, tuple[Filters, dict[str, list[str]]]] = {
    "none": (ALL, {"train": ["one", "two"], "serve": ["one"]}),
    "cluster": (Filters(clusters=("tr*",)), {"train": ["one", "two"]}),
    "two clusters": (Filters(clusters=("serve", "train")), {"train": ["one", "two"], "serve": ["one"]}),
    "pool": (Filters(pools=("t?o",)), {"train": ["two"], "serve": []}),
    "both": (Filters(clusters=("serve",), pools=("one",)), {"serve": ["one"]}),
    "upper case is another name": (Filters(clusters=("train", "SERVE")), {"train": ["one", "two"]}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_prepare_when_filtered_then_what_matches(name: str, tmp_path: Path) -> None:
    filters, expected = FILTERS[name]
    found = prepared(tmp_path, spec(t4("one", "train, serve"), t4("two")), filters=filters)
    assert names(found) == expected
    assert found.filters.active is (filters != ALL)


def test_prepare_when_no_pool_is_on_a_cluster_then_it_is_not_used(tmp_path: Path) -> None:
    text = spec(t4("one", "train"), t4("two", "train, serve"))
    everything, one = prepared(tmp_path, text), prepared(tmp_path, text, filters=Filters(pools=("one",)))
    assert (list(everything.narrowed().clusters), everything.unused) == (["train", "serve"], ())
    assert (list(one.narrowed().clusters), one.unused) == (["train"], ("serve",))
    addressed = prepare_addresses(["aks:11111111-2222-3333-4444-555555555555/ml/train"])
    assert (list(addressed.narrowed().clusters), addressed.unused) == (list(addressed.clusters), ())


@pytest.mark.parametrize("filters", [Filters(clusters=("prod*",)), Filters(pools=("h100",))])
def test_prepare_when_a_filter_matches_nothing_then_said(filters: Filters, tmp_path: Path) -> None:
    assert [code for code, _ in wrong(tmp_path, spec(t4("one")), filters=filters)] == ["no-match"]


def test_prepare_when_only_warned_then_the_warnings_are_kept_once(tmp_path: Path) -> None:
    found = prepared(tmp_path, spec(t4("elevenchars", "train, serve")))
    assert {d.severity for d in found.warnings} == {"warning"}
    assert [d.code for d in found.warnings].count("aks-name-length") == 1


EKS = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: {owner}}}
clusters:
  train: {{provider: eks, account: "111122223333", region: us-east-1, name: train}}
pools:
"""
P4D = "  - {{name: {name}, clusters: [train], instanceType: p4d.24xlarge, nodes: {{count: 1}}{more}}}\n"
CUT = "sharing: {mig: {profile: 1g.5gb}}"
BY = "devicePlugin: {{owner: {}}}".format


def eks(*pools: tuple[str, str], owner: str = "ml") -> str:
    return EKS.format(owner=owner) + "".join(
        P4D.format(name=name, more=f", {more}" if more else "") for name, more in pools
    )


def advertisers(found: Prepared) -> dict[str, str]:
    return {desired.target.pool: desired.ownership.advertiser for desired in found.desired["train"]}


def test_prepare_when_a_pool_must_be_cut_by_the_operator_then_it_serves_all_of_the_cluster(tmp_path: Path) -> None:
    found = prepared(tmp_path, eks(("cut", CUT)), eks(("whole", ""), ("theirs", BY("none")), owner="vision"))
    assert advertisers(found) == {"cut": "operator", "whole": "operator", "theirs": "none"}
    labels = {desired.target.pool: desired.labels for desired in found.desired["train"]}
    assert labels["theirs"]["nvidia.com/gpu.deploy.operands"] == "false"
    assert "pool cut" in found.desired["train"][1].ownership.reason


def test_prepare_when_filters_leave_the_cut_pool_out_then_it_still_decides(tmp_path: Path) -> None:
    found = prepared(tmp_path, eks(("cut", CUT), ("whole", "")), filters=Filters(pools=("whole",)))
    assert advertisers(found) == {"whole": "operator"}
    assert found.choices["train"].row == "cut-by-operator"


def test_prepare_when_only_a_pool_of_somebody_elses_operator_is_cut_then_the_chart(tmp_path: Path) -> None:
    found = prepared(tmp_path, eks(("cut", f"{CUT}, {BY('none')}"), ("whole", "")))
    assert advertisers(found) == {"cut": "none", "whole": "chart"}
    assert "nvidia.com/gpu.deploy.operands" not in found.desired["train"][0].labels


def test_prepare_when_the_operator_is_asked_for_then_neighbours_follow_and_the_chart_is_refused(tmp_path: Path) -> None:
    assert advertisers(prepared(tmp_path, eks(("one", BY("operator")), ("two", "")))) == {
        "one": "operator",
        "two": "operator",
    }
    assert wrong(tmp_path, eks(("one", BY("operator")), ("two", BY("helm")))) == [("owner", 8)]


@pytest.mark.parametrize(
    ("more", "advertiser", "row"),
    [("", "operator", "operator-live"), (BY("helm"), "chart", "helm-asked"), (BY("none"), "none", "operator-live")],
)
def test_settle_when_an_operator_of_ours_is_there_then_it_serves_unless_told_otherwise(
    more: str, advertiser: str, row: str, tmp_path: Path
) -> None:
    found = prepared(tmp_path, eks(("whole", more)))
    settled = found.settle("train", load_provider("eks"), operator_live=True)
    (pool,) = settled.desired
    assert (pool.ownership.advertiser, settled.choice.row, settled.refusals) == (advertiser, row, ())
    assert pool.labels.get("gpukube.io/advertiser", "none") == advertiser
    assert found.settle("train", load_provider("eks"), operator_live=False).desired == found.desired["train"]


def test_settle_when_the_operator_would_undo_the_clouds_cut_then_refused_and_nothing_advertises(tmp_path: Path) -> None:
    cut = f"  - {{name: cut, clusters: [train], instanceType: Standard_ND96asr_v4, nodes: {{count: 1}}, {CUT}}}\n"
    found = prepared(tmp_path, spec(cut, t4("whole")))
    settled = found.settle("train", load_provider("aks"), operator_live=True)
    assert [pool.ownership.advertiser for pool in settled.desired] == ["none", "operator"]
    assert [(refusal.code, refusal.where.line) for refusal in settled.refusals] == [("owner", 8)]
    assert "undo the MIG layout" in settled.refusals[0].seen


def test_carries_operator_when_a_live_pool_of_any_owner_says_so_then_true(tmp_path: Path) -> None:
    operated, charted = (
        prepared(tmp_path, eks(("pool", more))).desired["train"][0] for more in (BY("operator"), BY("helm"))
    )
    assert carries_operator([make_observed(charted), make_observed(operated, owner="stranger")])
    assert not carries_operator([make_observed(charted)])
