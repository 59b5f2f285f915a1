"""Custom resources are judged by the schema of their own definition: pruned, filled in, refused as a real 1.36 does."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.patches import merge_patch
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.store import Store
from gpukube_sandbox.kube.store.validation.custom import unknown_fields
from sandbox_tests.kube.side_by_side.test_side_by_side import RAY

DEFINITIONS = CORE["customresourcedefinitions"]
NAMES = {"kind": "Ray", "plural": "rays", "singular": "ray", "listKind": "RayList"}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": RAY}}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "rays.ray.example.com"},
    "spec": {"group": "ray.example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION]},
}
BASE: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"head": {}}}
REFUSED = {
    "spec: {groups: [{replicas: 2}]}": "spec.groups[0].name: Required value",
    "spec: {groups: [{name: a, replicas: two}]}": 'spec.groups[0].replicas in body must be of type integer: "string"',
    "spec: {groups: [{name: a, replicas: -1}]}": "in body should be greater than or equal to 0",
    "spec: {groups: [{name: a, replicas: 200}]}": "in body should be less than or equal to 100",
    "spec: {head: {params: {gpus: 0}}}": 'spec.head.params.gpus in body must be of type string: "integer"',
    "spec: []": 'spec in body must be of type object: "array"',
    "spec: {mode: Batch}": 'spec.mode: Unsupported value: "Batch": supported values: "Serve", "Train"',
    "spec: {groups: [{name: a b}]}": "spec.groups[0].name in body should match '^[a-z-]+$'",
    "spec: {port: [80]}": 'spec.port in body must be of type integer,string: "array"',
    "spec: {tags: [a, a]}": 'spec.tags[1]: Duplicate value: "a"',
    "spec: {groups: [{name: a}, {name: a}]}": 'spec.groups[1]: Duplicate value: {"name":"a"}',
    "spec: {tags: [a, b, c, d]}": "spec.tags: Too many: 4: must have at most 3 items",
}


def ready() -> Store:
    store = Store(ManualClock())
    store.create(DEFINITIONS, DEFINITION)
    return store


def create(store: Store, change: str) -> dict[str, Any]:
    kind = next(kind for kind in store.kinds.values() if kind.kind == "Ray")
    return store.create(kind, merge_patch(BASE, yaml.safe_load(change)))


@pytest.mark.parametrize("change", REFUSED)
def test_resource_when_its_schema_refuses_it_then_422_with_the_field(change: str) -> None:
    with pytest.raises(ApiProblem) as caught:
        create(ready(), change)
    assert (caught.value.code, REFUSED[change] in caught.value.message) == (422, True)


def test_resource_when_taken_then_pruned_and_filled_in_but_for_what_is_open() -> None:
    made = create(ready(), "spec: {hed: 1, open: {a: {b: 1}}, port: http, head: {x: 1}, groups: [{name: a, y: 1}]}")
    assert made["spec"] == {
        "head": {},
        "open": {"a": {"b": 1}},
        "port": "http",
        "groups": [{"name": "a", "replicas": 1}],
    }


def test_fields_when_the_schema_has_them_not_then_named() -> None:
    sent = {"apiVersion": "v1", "metadata": {"name": "x"}, "spec": {"hed": 1, "head": {"x": 1}, "open": {"a": 1}}}
    assert list(unknown_fields(sent, RAY)) == ["spec.hed", "spec.head.x"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata": {"name": "foo"}}, 'must be spec.names.plural+"."+spec.group'),
        ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}}, "schemas are required"),
        ({"spec": {"versions": [{**VERSION, "storage": False}]}}, "must have exactly one version marked as storage"),
    ],
)
def test_definition_when_it_is_none_then_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiProblem) as caught:
        Store(ManualClock()).create(DEFINITIONS, merge_patch(DEFINITION, change))
    assert (caught.value.code, words in caught.value.message) == (422, True)
