"""A spec that was loaded can be written, and is the same when it is loaded again."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from gpukube.spec.dump import dump_spec, spec_data
from gpukube.spec.loading.load import load_specs
from gpukube.spec.model import Gpu, GPUNodePools, Metadata, Nodes, Pool
from gpukube.spec.reference.schema import json_schema
from gpukube_gke.spec import GkeCluster
from tests.strategies import Node, specs
from tests.unit.spec.samples import POOL, load_text, problems_of, spec_of

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())


def load(text: str) -> GPUNodePools:
    (loaded,) = load_specs(["-"], stdin=io.StringIO(text), environ={})
    return loaded.spec


def again(spec: GPUNodePools) -> GPUNodePools:
    return load(dump_spec(spec))


def plain(node: object) -> object:
    """Read ${ as the loader does: in values, not in keys."""
    if isinstance(node, dict):
        return {key: plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(item) for item in node]
    return node.replace("$${", "${") if isinstance(node, str) else node


@settings(max_examples=40)
@given(specs())
def test_spec_when_dumped_and_loaded_then_is_the_same(data: Node) -> None:
    VALIDATOR.validate(data)
    spec = GPUNodePools.model_validate(data)
    written = dump_spec(spec)
    found = load(written)
    assert found == spec
    assert spec_data(found) == spec_data(spec)
    assert plain(yaml.safe_load(written)) == spec_data(spec), "YAML 1.1 reads something else"


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_example_when_dumped_and_loaded_then_is_the_same(file: Path) -> None:
    for loaded in load_specs([str(file)], environ={}):
        assert again(loaded.spec) == loaded.spec


def test_dump_when_defaults_and_variables_were_used_then_they_are_written_out(tmp_path: Path) -> None:
    text = spec_of(POOL.replace("nodes:", 'labels: {a: "${A}"}, tags: {b: "$${B}"}, nodes:'), "{zones: ['1']}")
    spec = load_text(tmp_path, text, environ={"A": "x"}).spec
    (pool,) = yaml.safe_load(dump_spec(spec))["pools"]
    assert (pool["zones"], pool["labels"], pool["tags"]) == (["1"], {"a": "x"}, {"b": "$${B}"})
    assert again(spec) == spec


def test_dump_when_a_text_is_a_number_longer_than_any_then_it_is_quoted(tmp_path: Path) -> None:
    spec = load_text(tmp_path, spec_of(POOL.replace("nodes:", f"tags: {{a: '{'1' * 301}'}}, nodes:"))).spec
    assert again(spec).pools[0].tags == {"a": "1" * 301}


def test_dump_when_native_fields_are_null_then_they_stay(tmp_path: Path) -> None:
    spec = load_text(tmp_path, spec_of(POOL.replace("nodes:", "aks: {podSubnetID: null, list: [null]}, nodes:"))).spec
    assert again(spec).pools[0].native_on("aks") == {"podSubnetID": None, "list": [None]}


def test_dump_when_a_program_made_the_spec_then_unset_fields_are_left_out() -> None:
    cluster = GkeCluster(provider="gke", project="p", location="us-central1", name="train", impersonate=None)
    pool = Pool(name="t4", clusters=("c",), gpu=Gpu(model="T4-16GB", count=1), nodes=Nodes(count=1))
    head = {"apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": Metadata(name="ml")}
    spec = GPUNodePools.model_validate({**head, "clusters": {"c": cluster}, "pools": (pool,)})
    assert dump_spec(spec) == TEXT
    assert load(TEXT) == spec


TEXT = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  c: {provider: gke, project: p, location: us-central1, name: train}
pools:
- name: t4
  clusters: [c]
  gpu: {model: T4-16GB, count: 1}
  nodes: {count: 1}
"""


NULLS = {
    "values of a chart": ("devicePlugin: {values: {nfd: null, list: [null]}}", ()),
    "a native field": ("aks: {podSubnetID: null}", ()),
    "a reservation by provider": ("capacity: {type: on-demand, reserved: {aks: null}}", ("empty-value",)),
    "a name by provider": ("names: {aks: null}", ("empty-value",)),
}


@pytest.mark.parametrize(("field", "codes"), NULLS.values(), ids=NULLS)
def test_null_when_written_then_it_stays_where_the_mapping_is_somebody_elses(
    field: str, codes: tuple[str, ...], tmp_path: Path
) -> None:
    text = spec_of(POOL.replace("nodes:", f"{field}, nodes:"))
    assert tuple({one.code for one in problems_of(tmp_path, text)} & {"empty-value"}) == codes
    assert VALIDATOR.is_valid(yaml.safe_load(text)) == (not codes)
