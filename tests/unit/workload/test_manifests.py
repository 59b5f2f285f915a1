"""Manifests are read as kubectl reads them, with positions."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings

from gpukube.spec.source.document import PARSER
from gpukube.workload.manifests import LIMITS, parse_plain, read_manifests
from tests.manifests import objects, only
from tests.strategies import TEXTS

PARSERS = {"c": PARSER, "python": yaml.SafeLoader}

SCALARS = {
    "yes": True, "On": True, "y": True, "true": True, "no": False, "OFF": False, "n": False, "yEs": "yEs",
    "": None, "~": None, "Null": None, "1": 1, "-1": -1, "+3": 3, "010": 8, "0o10": 8, "08": 8.0, "0x1F": 31, "0b11": 3,
    "1_000": 1000, "1.30": 1.3, "1e3": 1000.0, ".5": 0.5, "5.": 5.0, "1:30": "1:30", "2026-01-01": "2026-01-01",
    "12.1.1": "12.1.1", "1Gi": "1Gi", "-": "-", ".": ".", "0x": "0x", "_1": "_1", "1__": 1, "9" * 400: "9" * 400,
}  # fmt: skip
"""What goyaml.v2 makes of unquoted scalars, as kubernetes-sigs/yaml hands it on as JSON."""


@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_scalar_when_not_quoted_then_is_what_kubectl_takes_it_for(text: str, value: object) -> None:
    found = parse_plain(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("parser", PARSERS)
def test_documents_when_read_then_each_object_has_its_names_and_positions(parser: str) -> None:
    text = "# Source: chart\n---\n---\nkind: Pod\nmetadata: {name: a, namespace: b}\n---\nx: 1\n--- \n- 1\n"
    reading = read_manifests(text, "m.yaml", parser=PARSERS[parser])
    assert reading.findings == ()
    (pod,) = reading.manifests
    assert (pod.kind, pod.name, pod.namespace, str(pod)) == ("Pod", "a", "b", "Pod/a")
    assert str(pod.positions.at("metadata.name")) == "m.yaml:5:18"


def test_list_when_read_then_its_items_are_objects_of_their_own() -> None:
    inner = {"kind": "PodList", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}]}
    text = json.dumps({"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}}, 3, inner]}, indent=1)
    first, second = read_manifests(text, "-").manifests
    assert (first.name, second.name) == ("a", "b")
    assert first.positions.path("metadata.name") == "items[0].metadata.name"
    assert str(second.positions.at("metadata.name")) == "-:18:15"


MERGED: dict[str, tuple[str, dict[object, object]]] = {
    "mapping": ("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n", {"x": 1, True: 3}),
    "written first": ("a: &a {x: 1, z: 2}\nb:\n  z: 3\n  <<: *a\n", {"x": 1, "z": 3}),
    "list": ("a: &a {x: 1}\nc: &c {x: 2, w: 3}\nb:\n  <<: [*a, *c]\n", {"x": 1, "w": 3}),
    "twice": ("a: &a {x: 1}\nc: &c {x: 2, w: 3}\nb:\n  <<: *a\n  <<: *c\n", {"x": 1, "w": 3}),
    "in a merged one": ("a: &a {x: 1}\nc: &c {<<: *a, w: 3}\nb: {<<: *c}\n", {"x": 1, "w": 3}),
    "beside a collection": ("a: &a {x: {k: 1}}\nb:\n  <<: *a\n  x: {k: 2}\n  w: [1]\n", {"x": {"k": 2}, "w": [1]}),
}


@pytest.mark.parametrize("name", MERGED)
def test_merge_key_when_read_then_what_is_written_has_precedence(name: str) -> None:
    text, expected = MERGED[name]
    root = only(f"kind: K\n{text}").root
    assert root["b"] == {("true" if key is True else key): value for key, value in expected.items()}


def test_merged_value_when_found_then_its_position_is_where_it_is_written() -> None:
    manifest = only("kind: K\na: &a {x: 1}\nb: {<<: *a}\n")
    assert str(manifest.positions.at("b.x")) == "m.yaml:2:11"
    assert str(manifest.positions.key_at("b.x")) == "m.yaml:2:8"


def test_keys_when_they_are_no_texts_then_become_texts_as_for_kubectl() -> None:
    assert only("kind: K\ndata: {80: a, 1.5: b, on: c, 2026-01-01: d}\n").root["data"] == {
        "80": "a", "1.5": "b", "true": "c", "2026-01-01": "d",
    }  # fmt: skip


WRONG = {
    "duplicate": ("kind: K\nkind: L\n", "yaml-duplicate-key", "m.yaml:2:1"),
    "tag": ("kind: K\nx: !!binary aa\n", "yaml-tag", "m.yaml:2:4"),
    "null key": ("kind: K\n~: 1\n", "yaml-key", "m.yaml:2:1"),
    "merge of a text": ("kind: K\n<<: a\n", "yaml-merge-key", "m.yaml:2:1"),
    "syntax": ("kind: K\nx: [1\n", "yaml-syntax", "m.yaml:3:1"),
    "deep": ("[" * (LIMITS.depth + 1), "yaml-limit", f"m.yaml:1:{LIMITS.depth + 1}"),
    "template": ("kind: K\nname: {{ .Values.name }}\n", "yaml-key", "m.yaml:2:8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_yaml_when_wrong_then_the_finding_has_its_place(name: str) -> None:
    text, code, where = WRONG[name]
    found = read_manifests(text, "m.yaml").findings[0]
    assert (found.code, str(found.where)) == (code, where)


def test_yaml_when_it_is_of_another_tool_then_its_tags_and_keys_are_its_own() -> None:
    text = "Resources: {a: !Ref b, ~: 1}\n---\nkind: K\nx: !Ref b\n"
    assert [str(found.where) for found in read_manifests(text, "m.yaml").findings] == ["m.yaml:4:4"]


def test_key_when_written_twice_then_its_last_value_is_read() -> None:
    reading = read_manifests("kind: K\na: {x: 1}\na: {y: 2}\n", "m.yaml")
    assert [found.code for found in reading.findings] == ["yaml-duplicate-key"]
    assert reading.manifests[0].root["a"] == {"true": 2}


def test_template_of_helm_when_read_then_the_fix_is_to_render_it() -> None:
    found = read_manifests("kind: K\nname: {{ .Values.name }}\n", "m.yaml").findings[0]
    assert found.fix.startswith("render it first: helm template . | gpukube workload lint -")


def test_word_when_only_old_yaml_reads_it_as_a_boolean_then_nothing_is_warned_of() -> None:
    reading = read_manifests("kind: K\nx: yes\n", "m.yaml")
    assert reading.findings == ()
    assert reading.manifests[0].positions.origin.spellings


@settings(max_examples=40)
@given(objects())
def test_object_when_written_by_a_json_library_then_is_read_back(found: object) -> None:
    reading = read_manifests(json.dumps(found), "m.yaml")
    if isinstance(found, dict) and found.get("kind") and found["kind"] != "List" and not reading.findings:
        assert json.dumps(reading.manifests[0].root, sort_keys=True) == json.dumps(found, sort_keys=True)


@given(TEXTS)
def test_text_when_it_is_anything_then_no_traceback(text: str) -> None:
    read_manifests(text, "m.yaml")
