"""Specs -> desired pools: everything wrong in all of them, and the filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpukube.core.shards import Shard
from gpukube.engine.documents.shards import spec_digest
from gpukube.engine.plan.ownership import carries_operator
from gpukube.engine.plan.prepare import Filters, Prepared, prepare, prepare_addresses
from gpukube.engine.saved.records import SpecRecord
from gpukube.engine.saved.specs import pack_spec, unpack_specs
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


def in_shard(index: int, total: int = 3, **filters: tuple[str, ...]) -> Filters:
    return Filters(**filters, shard=Shard(index, total))


FLEET = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: fleet}
clusters:
  east: {provider: eks, account: "111122223333", region: us-east-1, name: train}
  aks: {provider: aks, subscription: 11111111-2222-3333-4444-AAAAAAAAAAAA, resourceGroup: Ml, name: train}
  gke: {provider: gke, project: ml-prod, location: us-central1, name: train}
  west: {provider: eks, account: "111122223333", region: us-west-2, name: train}
  idle: {provider: gke, project: ml-prod, location: us-central1, name: idle}
pools:
  - name: t4
    clusters: [east, aks, gke, west]
    instanceType: {eks: g4dn.xlarge, aks: Standard_NC4as_T4_v3, gke: g2-standard-4}
    nodes: {count: 1}
  - name: more
    clusters: [west]
    instanceType: g4dn.xlarge
    nodes: {count: 1}
"""


def test_prepare_when_in_shards_then_each_cluster_whole_in_one_at_its_place(tmp_path: Path) -> None:
    whole = prepared(tmp_path, FLEET)
    parts = [prepared(tmp_path, FLEET, filters=in_shard(index)) for index in (1, 2, 3)]
    together = {place: key for part in parts for key, place in part.places.items()}
    assert [together[place] for place in sorted(together)] == list(whole.clusters)
    assert {part.of for part in parts} == {len(whole.clusters)}
    assert sum(len(part.clusters) for part in parts) == len(whole.clusters)
    for part in parts:
        assert list(part.clusters) == list(part.places)
        assert names(part) == {key: names(whole)[key] for key in part.clusters}
        assert part.unused == tuple(key for key in whole.unused if key in part.clusters)
        assert part.warnings == whole.warnings  # the spec is judged as a whole
        assert not part.filters.active  # what else lives on these clusters is still undeclared
    assert (whole.places, whole.of) == ({}, len(whole.clusters))


SPELT: dict[str, str] = {
    "keys": FLEET.replace("  east:", "  one:").replace("  aks: {", "  two: {").replace("[east, aks,", "[one, two,"),
    "case, where the cloud ignores it": FLEET.replace("AAAAAAAAAAAA", "aaaaaaaaaaaa").replace("Ml", "ML"),
    "credentials": FLEET.replace("region: us-east-1,", "region: us-east-1, profile: night,"),
    "order": FLEET.replace("  aks: {", "  moved: {provider: gke, project: p2, location: us-east4, name: x}\n  aks: {"),
}


@pytest.mark.parametrize("name", SPELT)
def test_prepare_when_a_cluster_is_written_otherwise_then_its_shard_stays(name: str, tmp_path: Path) -> None:
    def shards(text: str) -> dict[tuple[str, ...], int]:
        return {
            (cluster.provider, cluster.name, cluster.identity.get("region", "")): index
            for index in range(1, 9)
            for cluster in prepared(tmp_path, text, filters=in_shard(index, 8)).clusters.values()
        }

    before, after = shards(FLEET), shards(SPELT[name])
    assert SPELT[name] != FLEET
    assert {key: after[key] for key in before} == before
    assert len(set(before.values())) > 2


def test_prepare_when_globs_and_a_shard_then_the_globs_first(tmp_path: Path) -> None:
    parts = [prepared(tmp_path, FLEET, filters=in_shard(n, clusters=("east", "gke"))) for n in (1, 2, 3)]
    assert {key: place for part in parts for key, place in part.places.items()} == {"east": 1, "gke": 2}
    assert {part.of for part in parts} == {2}
    for index in (1, 2, 3):  # a pool may be on clusters of one shard alone
        part = prepared(tmp_path, FLEET, filters=in_shard(index, pools=("more",)))
        assert part.narrowed().clusters.keys() <= {"west"}
    assert wrong(tmp_path, FLEET, filters=in_shard(1, clusters=("nowhere",))) == [("no-match", 0)]


def test_prepare_when_no_cluster_is_in_the_shard_then_nothing_is_left_and_nothing_wrong(tmp_path: Path) -> None:
    parts = [prepared(tmp_path, FLEET, filters=in_shard(index, 50)) for index in range(1, 51)]
    empty = [part for part in parts if not part.clusters]
    assert len(empty) >= 45
    assert {(len(part.desired), part.of, len(part.places)) for part in empty} == {(0, 5, 0)}


def test_spec_digest_when_the_same_is_written_otherwise_then_equal(tmp_path: Path) -> None:
    def digest(text: str, name: str = "pools.yaml", sets: tuple[str, ...] = ()) -> str:
        path = tmp_path / name
        path.write_text(text)
        return spec_digest(load_specs([str(path)], sets=sets, environ={"MODEL": "g4dn.xlarge"}))

    first = digest(FLEET)
    assert first == digest(f"# a comment\n{FLEET}", "other.yaml")
    assert first == digest(FLEET.replace("    instanceType: g4dn.xlarge", "    instanceType: ${MODEL}"))
    changed = [
        digest(FLEET, sets=("pools.more.nodes.count=2",)),
        digest(FLEET.replace("us-west-2", "us-west-1")),
        digest(FLEET.replace("pools:\n", "defaults: {labels: {team: a}}\npools:\n")),
    ]
    assert len({first, *changed}) == 4


def test_spec_digest_when_the_spec_comes_out_of_a_saved_plan_then_equal(tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(FLEET.replace("pools:\n", "defaults: {labels: {team: a}}\npools:\n"))
    specs = load_specs([str(path)], sets=["pools.more.nodes.count=2"], environ={})
    kept = msgspec.json.decode(msgspec.json.encode([pack_spec(one) for one in specs]), type=list[SpecRecord])
    assert spec_digest(unpack_specs(kept)) == spec_digest(specs)
