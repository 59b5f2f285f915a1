"""From paths to specs."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import SpecError
from gpukube.spec.loading.load import load_specs
from gpukube.spec.source.document import MOST_BYTES
from tests.unit.spec.samples import FULL, HEAD, POOL, load_text, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

GOOD = spec_of(POOL)


def renamed(owner: str, pool: str) -> str:
    return GOOD.replace("ml-platform", owner).replace("name: a,", f"name: {pool},")


def test_spec_when_it_uses_every_field_then_all_arrive(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, FULL)
    mig, shared, kept = loaded.spec.pools
    assert loaded.spec.metadata.name == "ml-platform"
    assert [cluster.provider for cluster in loaded.spec.clusters.values()] == ["eks", "aks", "gke"]
    assert (mig.name_on("aks"), mig.name_on("eks")) == ("a100", "a100mig")
    assert (mig.instance_type_on("eks"), mig.instance_type_on("aks")) == ("p4d.24xlarge", None)
    assert mig.native_on("aks") == {"maxPods": 60, "podSubnetID": None, "list": [1, {"a": "b"}]}
    assert mig.native_on("eks") == {}
    assert mig.sharing.mig is not None
    assert (mig.sharing.mig.strategy, mig.gpu_taint, mig.deletion_protection) == ("mixed", True, True)
    assert mig.disk is not None
    assert (mig.disk.size_gib, mig.zones, mig.tags) == (256, ("1", "2"), {"cost": "42"})
    assert (mig.driver.owner, mig.device_plugin.owner) == ("cloud", "helm")
    assert shared.instance_type_on("aks") == "Standard_NC4as_T4_v3"
    assert (shared.capacity.type, shared.capacity.max_price) == ("spot", 2.0)
    assert shared.nodes is not None
    assert shared.nodes.autoscaling is not None
    assert (shared.nodes.autoscaling.initial, shared.nodes.autoscaling.scope) == (1, "zone")
    assert shared.sharing.time_slicing is not None
    assert shared.sharing.time_slicing.fail_requests_greater_than_one
    assert [(taint.key, taint.value, taint.effect) for taint in shared.taints] == [
        ("dedicated", "vision", "NoSchedule")
    ]
    assert (shared.kubernetes_version, shared.max_pods_per_node) == ("1.34", 60)
    assert shared.upgrade is not None
    assert (shared.upgrade.max_surge, shared.upgrade.max_unavailable) == ("33%", 0)
    assert (shared.driver.version, shared.device_plugin.version) == ("latest", "0.20.0")
    assert shared.device_plugin.values == {"compatWithCPUManager": True}
    reserved = kept.capacity.reserved
    assert reserved is not None
    written = reserved.model_dump(by_alias=True, exclude_none=True)
    assert written["eks"] == {"capacityBlock": "cr-0123456789abcdef0"}
    assert written["gke"]["flexStart"] == {"maxRunDuration": "7d"}
    assert kept.sharing.mig is not None
    assert kept.sharing.mig.layout == ("3g.20gb", "2g.10gb", "1g.5gb")


def test_spec_when_little_is_written_then_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    pool = load_text(tmp_path, GOOD + "").spec.pools[0]
    assert (pool.capacity.type, pool.gpu_taint, pool.deletion_protection) == ("on-demand", True, False)
    assert (pool.driver.owner, pool.device_plugin.owner) == ("auto", "auto")
    assert (pool.sharing.mig, pool.sharing.time_slicing, pool.sharing.mps) == (None, None, None)


def test_mig_strategy_when_not_written_then_is_single(tmp_path: Path) -> None:
    text = spec_of(POOL.replace("nodes:", "sharing: {mig: {profile: 1g.5gb}}, nodes:"))
    mig = load_text(tmp_path, text).spec.pools[0].sharing.mig
    assert mig is not None
    assert mig.strategy == "single"


def test_models_when_loaded_then_cannot_be_changed(tmp_path: Path) -> None:
    pool = load_text(tmp_path, GOOD).spec.pools[0]
    with pytest.raises(ValueError, match="frozen"):
        pool.name = "b"


def test_directory_when_given_then_yaml_files_are_read_by_name(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", ".hidden.yaml", "notes.txt"):
        (tmp_path / name).write_text(renamed(name.strip(".").replace(".", "-"), name[0].strip(".") or "h"), "utf-8")
    (tmp_path / "deeper.yaml").mkdir()
    loaded = load_specs([str(tmp_path)], environ={})
    assert [spec.spec.metadata.name for spec in loaded] == ["a-yaml", "b-yml"]
    assert loaded[0].source == str(tmp_path / "a.yaml")


def test_stdin_when_dash_then_is_read_and_named_dash() -> None:
    (loaded,) = load_specs(["-"], stdin=io.StringIO(GOOD), environ={})
    assert loaded.source == "-"
    assert str(loaded.positions.at("metadata.name")) == "-:3:18"


def test_documents_when_several_then_each_is_a_spec_and_empty_ones_are_passed_over() -> None:
    text = f"---\n{renamed('x', 'a')}---\n---\n{renamed('y', 'b')}---\n"
    loaded = load_specs(["-"], stdin=io.StringIO(text), environ={})
    assert [spec.spec.metadata.name for spec in loaded] == ["x", "y"]
    assert loaded[1].positions.at("pools[0].name").line > loaded[0].positions.at("pools[0].name").line


def test_several_files_when_all_are_wrong_then_all_mistakes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "syntax.yaml").write_text("a: [", "utf-8")
    (tmp_path / "key.yaml").write_text(GOOD.replace("nodes:", "node:"), "utf-8")
    (tmp_path / "empty.yaml").write_text("# nothing\n", "utf-8")
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff")
    (tmp_path / "big.yaml").write_bytes(b"a" * (MOST_BYTES + 1))
    with pytest.raises(SpecError) as caught:
        load_specs([str(tmp_path), str(tmp_path / "missing.yaml")], environ={})
    assert sorted(found.code for found in caught.value.diagnostics) == [
        "document-empty",
        "encoding",
        "file-missing",
        "unknown-key",
        "yaml-limit",
        "yaml-syntax",
    ]


def test_paths_when_none_then_says_what_to_add() -> None:
    with pytest.raises(SpecError, match="no spec given"):
        load_specs([], environ={})


def test_path_when_it_cannot_be_one_then_is_a_diagnostic() -> None:
    with pytest.raises(SpecError) as caught:
        load_specs(["a\0b"], environ={})
    assert [found.code for found in caught.value.diagnostics] == ["file-unreadable"]


def test_one_wrong_pool_when_others_break_rules_then_both_are_reported(tmp_path: Path) -> None:
    pools = POOL.replace("count: 1}}", "count: x}}") + POOL.replace("name: a,", "name: b, capacity: {maxPrice: 1},")
    found = problems_of(tmp_path, spec_of(pools))
    assert sorted(one.code for one in found) == ["max-price", "type"]


def test_another_kind_when_loaded_then_only_that_is_said(tmp_path: Path) -> None:
    found = problems_of(tmp_path, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n")
    assert [one.seen for one in found] == [
        'apiVersion is "v1"; it can be gpukube.io/v1alpha1',
        'kind is "ConfigMap"; it can be GPUNodePools',
    ]


@pytest.mark.parametrize("text", ["text", "[1, 2]", "42", "true"])
def test_document_when_it_is_no_mapping_then_says_so(text: str, tmp_path: Path) -> None:
    assert [one.code for one in problems_of(tmp_path, text)] == ["type"]


def test_same_pool_when_in_two_documents_then_is_refused() -> None:
    text = f"{renamed('x', 'a')}---\n{renamed('y', 'a').replace('train-aks', 'other')}"
    with pytest.raises(SpecError) as caught:
        load_specs(["-"], stdin=io.StringIO(text), environ={})
    assert [found.code for found in caught.value.diagnostics] == ["duplicate-pool"]


def test_one_cluster_when_a_spec_has_two_keys_for_it_then_a_pool_on_both_is_refused(tmp_path: Path) -> None:
    text = GOOD.replace(
        "name: train}\n  train-gke",
        "name: train}\n  again: {provider: aks, name: TRAIN, "
        "subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml}\n  train-gke",
    )
    (found,) = problems_of(tmp_path, text.replace("[train-aks]", "[train-aks, again]"))
    assert found.code == "duplicate-pool"
    assert found.seen.endswith("also has on again (the same cluster as train-aks)")


def test_azure_cluster_when_written_in_another_case_then_is_the_same() -> None:
    text = f"{renamed('x', 'a')}---\n{renamed('y', 'a').replace('resourceGroup: ml', 'resourceGroup: ML')}"
    with pytest.raises(SpecError, match="also has on "):
        load_specs(["-"], stdin=io.StringIO(text), environ={})


def test_alias_when_pools_share_a_part_then_its_mistake_is_reported_once(tmp_path: Path) -> None:
    first = "  - {name: a, clusters: &on [train-aks], gpu: &gpu {model: T4-16GB, cuont: 1}, nodes: {count: 1}}\n"
    found = problems_of(
        tmp_path, HEAD + "pools:\n" + first + "  - {name: b, clusters: *on, gpu: *gpu, nodes: {count: 1}}\n"
    )
    assert [one.code for one in found] == ["unknown-key"]


def test_null_when_in_a_native_field_then_is_kept_and_elsewhere_refused(tmp_path: Path) -> None:
    assert not problems_of(tmp_path, spec_of(POOL.replace("nodes:", "aks: {podSubnetID: null}, nodes:")))
    found = problems_of(tmp_path, spec_of(POOL.replace("nodes:", "disk: , sharing: {mps: null}, nodes:")))
    assert [one.code for one in found] == ["empty-value", "empty-value"]
