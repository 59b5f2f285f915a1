"""The JSON Schema agrees with the models about what a spec may look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpukube.spec.model import Pool, PoolSettings
from gpukube.spec.reference.fields import keys_of
from gpukube.spec.reference.schema import json_schema
from tests.unit.spec.samples import FULL, HEAD, POOL, problems_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

GOOD = {
    "every field": FULL,
    "a minimal pool": spec_of(POOL),
    "a variable where a form is needed": spec_of(POOL).replace('"111122223333"', '"${ACCOUNT}"'),
    "a variable with a default": spec_of(POOL).replace('"111122223333"', '"${NO_SUCH:-111122223333}"'),
    "a variable where one of a few is needed": spec_of(POOL.replace("nodes:", 'capacity: {type: "${TYPE}"}, nodes:')),
    "a variable for the cloud": spec_of(POOL).replace("provider: gke", 'provider: "${CLOUD}"'),
    "a price with a variable for the kind": spec_of(
        POOL.replace("nodes:", 'capacity: {type: "${TYPE}", maxPrice: 1}, nodes:')
    ),
    "a layout": spec_of(POOL.replace("nodes:", "sharing: {mig: {layout: [1g.5gb]}}, nodes:")),
    "defaults that a pool completes": spec_of(POOL, "{capacity: {maxPrice: 1}}").replace(
        "nodes:", "capacity: {type: spot}, nodes:"
    ),
    "a GPU by another name": spec_of(POOL.replace("T4-16GB", "nvidia-tesla-t4")),
    "a machine that the catalog does not know": spec_of(
        POOL.replace("nodes:", "instanceType: {aks: Standard_NC4as_T4_v4}, nodes:")
    ),
    "defaults complete a pool": spec_of(
        "  - {name: a}\n", "{clusters: [train-aks], instanceType: x, nodes: {count: 1}}"
    ),
    "defaults complete a mapping": spec_of(
        POOL.replace("count: 1}, nodes", "count: 1}, disk: {type: x}, nodes"), "{disk: {sizeGiB: 9}}"
    ),
}
BAD = {
    "unknown key at the top": spec_of(POOL) + "pool: []\n",
    "unknown key in a pool": spec_of(POOL.replace("nodes:", "colour: red, nodes:")),
    "unknown key deep": spec_of(POOL.replace("nodes:", "sharing: {mig: {profil: x}}, nodes:")),
    "unknown key in defaults": spec_of(POOL, "{colour: red}"),
    "name in defaults": spec_of(POOL, "{name: red}"),
    "snake case": spec_of(POOL.replace("nodes:", "gpu_taint: true, nodes:")),
    "number for a text": spec_of(POOL.replace("nodes:", "labels: {a: 1}, nodes:")),
    "text for a number": spec_of(POOL.replace("count: 1}}", 'count: "1"}}')),
    "text for a boolean": spec_of(POOL.replace("nodes:", "gpuTaint: yes, nodes:")),
    "text for a list": spec_of(POOL.replace("[train-aks]", "train-aks")),
    "wrong choice": spec_of(POOL.replace("nodes:", "capacity: {type: preemptible}, nodes:")),
    "too many replicas": spec_of(POOL.replace("nodes:", "sharing: {mps: {replicas: 49}}, nodes:")),
    "too few replicas": spec_of(POOL.replace("nodes:", "sharing: {timeSlicing: {replicas: 1}}, nodes:")),
    "price of nothing": spec_of(POOL.replace("nodes:", "capacity: {type: spot, maxPrice: 0}, nodes:")),
    "no pools": HEAD + "pools: []\n",
    "no clusters": spec_of(POOL)
    .replace(HEAD[HEAD.index("  train-eks") :], "")
    .replace("clusters:\n", "clusters: {}\n"),
    "missing metadata": spec_of(POOL).replace("metadata: {name: ml-platform}\n", ""),
    "wrong kind": spec_of(POOL).replace("GPUNodePools", "NodePools"),
    "wrong version": spec_of(POOL).replace("v1alpha1", "v1"),
    "bad owner": spec_of(POOL).replace("ml-platform", "ml platform"),
    "bad account": spec_of(POOL).replace('"111122223333"', '"1"'),
    "bad Azure cluster name": spec_of(POOL).replace("resourceGroup: ml, name: train", "resourceGroup: ml, name: a/b"),
    "bad Azure resource group": spec_of(POOL).replace("resourceGroup: ml,", "resourceGroup: ml.,"),
    "bad cluster key": spec_of(POOL).replace("train-gke:", "train.gke:"),
    "cluster without a provider": spec_of(POOL).replace("provider: gke, ", ""),
    "variable for a number": spec_of(POOL.replace("count: 1}}", 'count: "${N}"}}')),
    "unknown provider": spec_of(POOL).replace("provider: gke", "provider: gcp"),
    "field of another provider": spec_of(POOL).replace("provider: gke", "provider: gke, account: x"),
    "unknown provider in names": spec_of(POOL.replace("nodes:", "names: {gcp: x}, nodes:")),
    "unknown provider in instanceType": spec_of(POOL.replace("nodes:", "instanceType: {gcp: x}, nodes:")),
    "empty value": spec_of(POOL.replace("nodes:", "disk: , nodes:")),
    "empty value of a text": spec_of(POOL.replace("nodes:", "disk: {sizeGiB: 9, type: }, nodes:")),
    "empty text": spec_of(POOL.replace("nodes:", 'zones: [""], nodes:')),
    "incomplete without defaults": spec_of("  - {name: a, clusters: [train-aks], instanceType: x}\n"),
    "no cluster": spec_of(POOL.replace("[train-aks]", "[]")),
    "no machine": spec_of("  - {name: a, clusters: [train-aks], nodes: {count: 1}}\n"),
    "count and autoscaling": spec_of(POOL.replace("{count: 1}}", "{count: 1, autoscaling: {min: 0, max: 1}}}")),
    "neither profile nor layout": spec_of(POOL.replace("nodes:", "sharing: {mig: {strategy: mixed}}, nodes:")),
    "an empty layout": spec_of(POOL.replace("nodes:", "sharing: {mig: {layout: []}}, nodes:")),
    "a price for machines on demand": spec_of(POOL.replace("nodes:", "capacity: {maxPrice: 1}, nodes:")),
    "a reservation for spot machines": spec_of(POOL.replace("nodes:", "capacity: {type: spot, reserved: {}}, nodes:")),
    "mps and timeSlicing": spec_of(
        POOL.replace("nodes:", "sharing: {mps: {replicas: 2}, timeSlicing: {replicas: 2}}, nodes:")
    ),
    "incomplete taint in defaults": spec_of(POOL, "{taints: [{key: a}]}"),
    "pool without a name": spec_of(POOL.replace("name: a, ", ""), "{zones: []}"),
    "a list": "[]",
    "a text": "text",
}
ENVIRON = {"ACCOUNT": "111122223333", "TYPE": "spot", "CLOUD": "gke"}


def is_valid(text: str) -> bool:
    return VALIDATOR.is_valid(yaml.safe_load(text.replace("yes", '"yes"')))


def test_schema_when_made_then_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == "urn:gpukube:spec:v1alpha1"


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good_spec_when_judged_then_schema_and_models_accept_it(text: str, tmp_path: Path) -> None:
    assert is_valid(text)
    assert problems_of(tmp_path, text, environ=ENVIRON) == ()


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_bad_spec_when_judged_then_schema_and_models_refuse_it(text: str, tmp_path: Path) -> None:
    assert not is_valid(text)
    assert problems_of(tmp_path, text) != ()


def objects(node: object) -> Iterator[dict[str, object]]:
    if isinstance(node, dict):
        if "properties" in node and node.get("type") == "object":
            yield node
        for inner in node.values():
            yield from objects(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from objects(inner)


def definitions() -> dict[str, dict[str, object]]:
    return cast("dict[str, dict[str, object]]", SCHEMA["$defs"])


def test_schema_when_walked_then_objects_are_closed_and_fields_described() -> None:
    found = list(objects(SCHEMA))
    assert len(found) > 20
    for one in found:
        assert one.get("additionalProperties") is False or one is definitions()["Cluster"]
        for key, field in cast("dict[str, dict[str, object]]", one["properties"]).items():
            # A field described in the words of its model refers to them.
            target = str(field.get("$ref", "")).removeprefix("#/$defs/")
            assert field.get("description") or definitions()[target].get("description"), f"{key} has no description"
            assert "_" not in key


def test_schema_when_walked_then_every_reference_leads_somewhere_and_nothing_is_unused() -> None:
    text = str(SCHEMA)
    uses = {name: text.count(f"'#/$defs/{name}'") for name in definitions()}
    assert [name for name, count in uses.items() if not count] == []
    assert text.count("#/$defs/") == sum(uses.values())


def test_pool_keys_when_listed_then_are_those_of_the_schema() -> None:
    for name, model in (("Pool", Pool), ("PoolSettingsPart", PoolSettings)):
        assert set(cast("dict[str, object]", definitions()[name]["properties"])) == set(keys_of(model))
