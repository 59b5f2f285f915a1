"""Specs -> desired pools: everything wrong in all of them, and the filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.engine.prepare import Filters, Prepared, prepare
from gpukube.errors import SpecError
from gpukube.spec.load import load_specs

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
    return {key: [wanted.target.pool for wanted in pools] for key, pools in found.desired.items()}


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


@pytest.mark.parametrize("filters", [Filters(clusters=("prod*",)), Filters(pools=("h100",))])
def test_prepare_when_a_filter_matches_nothing_then_said(filters: Filters, tmp_path: Path) -> None:
    assert [code for code, _ in wrong(tmp_path, spec(t4("one")), filters=filters)] == ["no-match"]


def test_prepare_when_only_warned_then_the_warnings_are_kept_once(tmp_path: Path) -> None:
    found = prepared(tmp_path, spec(t4("elevenchars", "train, serve")))
    assert {d.severity for d in found.warnings} == {"warning"}
    assert [d.code for d in found.warnings].count("aks-name-length") == 1
