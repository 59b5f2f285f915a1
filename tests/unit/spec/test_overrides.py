"""--set path=value."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import SpecError
from gpukube.spec.loading.load import load_specs
from tests.unit.spec.samples import FULL, POOL, load_text, problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

CASES: dict[str, tuple[str, str, object]] = {
    "by index": ("pools[0].nodes.count=2", "nodes", {"count": 2, "autoscaling": None}),
    "by name": ("pools.a100mig.nodes.count=2", "nodes", {"count": 2, "autoscaling": None}),
    "a new mapping": ("pools.a100mig.labels.team=x", "labels", {"team": "x"}),
    "a key with dots": ('pools.a100mig.labels["example.com/team"]=x', "labels", {"example.com/team": "x"}),
    "quoted text": ('pools.a100mig.tags.cost="7"', "tags", {"cost": "7"}),
    "an equals sign in the value": ("pools.a100mig.tags.cost=a=b", "tags", {"cost": "a=b"}),
    "a list": ('pools.a100mig.zones=["3"]', "zones", ("3",)),
    "an item of a list": ('pools.a100mig.zones[1]="3"', "zones", ("1", "3")),
    "a boolean": ("pools.a100mig.gpuTaint=false", "gpuTaint", False),
    "a version": ("pools.a100mig.kubernetesVersion=1.30", "kubernetesVersion", "1.30"),
    "a label of digits": ("pools.a100mig.labels.build=007", "labels", {"build": "007"}),
    "a label that is true": ("pools.a100mig.labels.team=True", "labels", {"team": "True"}),
    "numbers in a list of strings": ("pools.a100mig.zones=[1, 02]", "zones", ("1", "02")),
    "numbers in a mapping of texts": (
        "pools.a100mig.tags={a: 1.10, b: yes, c: true}",
        "tags",
        {"a": "1.10", "b": "yes", "c": "true"},
    ),
    "a number in the defaults": ("defaults.kubernetesVersion=1.30", "kubernetesVersion", "1.30"),
    "a number or a share": ("pools.a100mig.upgrade.maxSurge=1", "upgrade", {"maxSurge": 1, "maxUnavailable": None}),
    "a number of native fields": ("pools.a100mig.eks.gpuCount=2", "eks", {"gpuCount": 2}),
    "a mapping": ("pools.a100mig.nodes={count: 9}", "nodes", {"count": 9, "autoscaling": None}),
}


@pytest.mark.parametrize(("argument", "key", "value"), CASES.values(), ids=CASES)
def test_value_when_set_then_is_in_the_spec(argument: str, key: str, value: object, tmp_path: Path) -> None:
    loaded = load_text(tmp_path, FULL, sets=[argument])
    assert loaded.spec.pools[0].model_dump(by_alias=True)[key] == value


NO_PATHS = ["a", "=1", "[0]=1", "pools..a=1", "pools.a.zones=[1", "pools.a.tags={a: 1}}", ".".join("a" * 5000) + "=1"]


@pytest.mark.parametrize("argument", NO_PATHS)
def test_argument_when_it_is_no_path_and_value_then_is_refused(argument: str, tmp_path: Path) -> None:
    assert [found.code for found in problems_of(tmp_path, FULL, sets=[argument])] == ["set-syntax"]


def test_sets_when_several_then_the_last_wins(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, FULL, sets=["pools[0].nodes.count=2", "pools.a100mig.nodes.count=3"])
    assert loaded.spec.pools[0].nodes is not None
    assert loaded.spec.pools[0].nodes.count == 3


def test_set_value_when_asked_for_its_position_then_is_the_argument(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, FULL, sets=["pools[0].disk.sizeGiB=9"])
    assert str(loaded.positions.at("pools[0].disk.sizeGiB")) == "--set pools[0].disk.sizeGiB"
    assert loaded.positions.at("pools[0].disk.type").line > 0


def test_set_value_when_wrong_then_the_message_names_the_argument(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, FULL, sets=["pools[0].disk.sizeGiB=big"])
    assert found.render().startswith('--set pools[0].disk.sizeGiB: error[GPK120 type]: pools[0].disk.sizeGiB is "big"')


def test_account_when_set_without_quotes_then_is_kept_as_written(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, spec_of(POOL), sets=["clusters.train-eks.account=012345678901", "metadata.name=7"])
    assert loaded.spec.clusters["train-eks"].model_dump()["account"] == "012345678901"
    assert loaded.spec.metadata.name == "7"


def test_set_value_when_of_the_wrong_type_then_the_fix_is_an_argument(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, FULL, sets=['pools[0].disk.sizeGiB="9"'])
    assert found.fix == "write --set pools[0].disk.sizeGiB=9 without quotes"


def test_set_value_when_defaults_say_otherwise_then_wins(tmp_path: Path) -> None:
    text = spec_of(POOL.replace(", nodes: {count: 1}", ""), "{nodes: {autoscaling: {min: 0, max: 3}}}")
    nodes = load_text(tmp_path, text, sets=["pools.a.nodes.count=7"]).spec.pools[0].nodes
    assert nodes is not None
    assert (nodes.count, nodes.autoscaling) == (7, None)


def test_set_when_pools_share_an_alias_then_changes_one(tmp_path: Path) -> None:
    shared = POOL.replace("nodes: {count: 1}", "nodes: &n {count: 1}") + POOL.replace("name: a", "name: b").replace(
        "{count: 1}}\n", "*n }\n"
    )
    spec = load_text(tmp_path, spec_of(shared), sets=["pools.b.nodes.count=5"]).spec
    assert [pool.nodes.count for pool in spec.pools if pool.nodes] == [1, 5]


def two_documents() -> io.StringIO:
    return io.StringIO(spec_of(POOL) + "---\n" + spec_of(POOL.replace("name: a", "name: b")))


def test_set_when_several_documents_then_applies_where_the_pool_is() -> None:
    first, second = load_specs(["-"], stdin=two_documents(), sets=["pools.b.nodes.count=5"], environ={})
    assert [spec.spec.pools[0].nodes.count for spec in (first, second) if spec.spec.pools[0].nodes] == [1, 5]


def test_set_when_several_documents_and_no_pool_is_named_then_applies_to_all() -> None:
    loaded = load_specs(["-"], stdin=two_documents(), sets=["clusters.train-aks.name=x"], environ={})
    assert [spec.spec.clusters["train-aks"].name for spec in loaded] == ["x", "x"]


def test_set_when_index_could_mean_several_documents_then_is_refused() -> None:
    with pytest.raises(SpecError, match="could mean 2 documents"):
        load_specs(["-"], stdin=two_documents(), sets=["pools[0].nodes.count=5"], environ={})


def test_set_when_its_pool_may_be_in_a_broken_file_then_only_the_break_is_reported(tmp_path: Path) -> None:
    found = problems_of(tmp_path, spec_of(POOL) + "]", sets=["pools.a.nodes.count=5"])
    assert [one.code for one in found] == ["yaml-syntax"]


def test_set_value_when_a_very_long_number_then_is_a_text(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, FULL, sets=[f"pools[0].tags.cost={'9' * 301}"])
    assert loaded.spec.pools[0].tags == {"cost": "9" * 301}


def test_set_when_a_list_item_has_no_such_name_then_is_refused(tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, FULL, sets=["pools.t4shared.taints.dedicated.value=x"])
    assert found.seen == 'pools.t4shared.taints has no item named "dedicated"'


@pytest.mark.parametrize("path", ["pools.t4shared.labels", "defaults.tags"])
def test_set_when_the_key_has_dots_then_the_form_in_brackets_is_given(path: str, tmp_path: Path) -> None:
    (found,) = problems_of(tmp_path, FULL, sets=[f"{path}.nvidia.com/foo=bar"])
    assert (found.code, found.fix) == ("set-path", f"write --set '{path}[\"nvidia.com/foo\"]=VALUE'")
