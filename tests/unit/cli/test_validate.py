"""`gpukube validate` as it is called: formats, exit codes, everything in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpukube.cli.app import run
from gpukube.cli.kinds import FORMATS
from gpukube.engine.documents.schema import document_schema

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
"""
GOOD = "  - {name: a, clusters: [train], instanceType: Standard_NC4as_T4_v3, nodes: {count: 1}}\n"
LONG = GOOD.replace("name: a", "name: abcdefghijkl")
SILENCED = LONG.replace("nodes:", "silence: [{rule: GPK502, reason: never replaced}], nodes:")
HINTED = GOOD.replace("name: a", "name: b").replace("nodes:", "silence: [{rule: GPK502, reason: gone}], nodes:")


@pytest.fixture
def validate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Write pools to pools.yaml and validate that, or what the words name."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str, pools: str = GOOD) -> tuple[int, str, str]:
        Path("pools.yaml").write_text(f"{HEAD}pools:\n{pools}", "utf-8")
        code = run(["validate", *(words if "-f" in words else ("-f", "pools.yaml", *words))])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_text_when_right_then_counts(validate: Callable[..., tuple[int, str, str]]) -> None:
    assert validate() == (0, "ok: 1 pool on 1 cluster\n", "")
    assert validate("-o", "text") == (0, "ok: 1 pool on 1 cluster\n", "")


def test_text_when_findings_are_silenced_then_counts_them(validate: Callable[..., tuple[int, str, str]]) -> None:
    assert validate(pools=SILENCED) == (0, "ok: 1 pool on 1 cluster, 1 finding silenced\n", "")


def test_text_when_wrong_then_all_is_told_and_counted(validate: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = validate(pools=GOOD.replace("nodes", "node") + LONG + HINTED)
    assert (code, out, err.splitlines()[-1]) == (4, "", "1 error, 1 warning, 1 hint")
    assert [line.partition(":")[2].partition(": ")[2] for line in err.splitlines() if line[0] == "p"] == [
        'error[GPK117 unknown-key]: pools[0] has no "node"',
        'warning[GPK502 aks-name-length]: "abcdefghijkl" has 12 of 12 characters',
        'hint[GPK314 silence-unused]: pools[2].silence[0].rule is "GPK502", but there is no such finding',
    ]


@pytest.mark.parametrize(("pools", "code"), [(LONG, 4), (HINTED, 0), (SILENCED, 0), (GOOD, 0)])
def test_strict_when_given_then_warnings_are_errors(
    pools: str, code: int, validate: Callable[..., tuple[int, str, str]]
) -> None:
    assert validate(pools=pools)[0] == 0
    assert validate("--strict", pools=pools)[0] == code


def document(out: str) -> dict[str, Any]:
    found = json.loads(out)
    Draft202012Validator(document_schema("validation")).validate(found)
    assert isinstance(found, dict)
    return found


def test_json_when_wrong_then_holds_every_finding_by_severity(validate: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = validate("-o", "json", pools=GOOD.replace("nodes", "node") + LONG + HINTED)
    found = document(out)
    assert (code, found["valid"], found["pools"]) == (4, False, 2)
    assert [(one["id"], one["code"]) for level in ("errors", "warnings", "hints") for one in found[level]] == [
        ("GPK117", "unknown-key"),
        ("GPK502", "aks-name-length"),
        ("GPK314", "silence-unused"),
    ]
    fields = [one["field"] for level in ("errors", "warnings", "hints") for one in found[level]]
    assert fields == ["pools[0].node", "pools[1].name", "pools[2].silence[0].rule"]
    assert found["errors"][0]["position"] == {"file": "pools.yaml", "line": 7, "column": 70}
    assert "unknown-key" in err


def test_json_when_findings_are_silenced_then_lists_them_with_reasons(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    found = document(validate("-o", "json", pools=SILENCED)[1])
    (silenced,) = found["silenced"]
    assert (silenced["finding"]["code"], silenced["reason"]) == ("aks-name-length", "never replaced")
    assert (found["valid"], found["errors"], found["warnings"], found["hints"]) == (True, [], [], [])


def test_yaml_when_asked_for_then_the_same_as_json(validate: Callable[..., tuple[int, str, str]]) -> None:
    assert yaml.safe_load(validate("-o", "yaml", pools=LONG)[1]) == json.loads(validate("-o", "json", pools=LONG)[1])


def test_sarif_when_wrong_then_a_log_on_stdout_and_texts_on_stderr(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, err = validate("-o", "sarif", pools=GOOD.replace("nodes", "node"))
    (started,) = json.loads(out)["runs"]
    assert (code, [result["ruleId"] for result in started["results"]]) == (4, ["GPK117"])
    assert started["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pools.yaml"
    assert err.startswith("pools.yaml:7:70: error[GPK117 unknown-key]")


def test_github_when_wrong_then_annotations_alone(validate: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = validate("-o", "github", pools=GOOD.replace("nodes", "node") + LONG + HINTED)
    assert (code, err) == (4, "")
    assert [line.partition("::")[2].partition(",title=")[0] for line in out.splitlines()[:3]] == [
        "error file=pools.yaml,line=7,col=70",
        "warning file=pools.yaml,line=8,col=12",
        "notice file=pools.yaml,line=9,col=87",
    ]
    assert out.splitlines()[3] == "gpukube: 1 error, 1 warning, 1 hint"


def test_github_when_more_is_wrong_than_it_shows_then_capped_and_the_rest_in_the_log(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    wrong = [GOOD.replace("nodes", "node").replace("name: a", f"name: a{n}") for n in range(30)]
    lines = validate("-o", "github", pools="".join(wrong))[1].splitlines()
    assert len([line for line in lines if line.startswith("::error ")]) == 10
    assert lines[9] == "::error title=gpukube::21 more of this level are in the log of this step"
    assert len([line for line in lines if line.startswith("error: ")]) == 21


def test_format_when_unknown_then_says_which_there_are(validate: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = validate("-o", "name")
    assert (code, out) == (4, "")
    assert f"choose one of {', '.join(FORMATS['Validation'])}" in err


FIELDS = {
    "of defaults": ("defaults: {labels: {a: no}}\npools:\n" + GOOD, (), "defaults.labels.a"),
    "of a cluster": (f"pools:\n{GOOD}", ("--set", "clusters.train.subscription=x"), "clusters.train.subscription"),
    "that is set": (f"pools:\n{GOOD}", ("--set", "pools.a.nodes.count=x"), "pools[0].nodes.count"),
    "that a cloud refuses": (f"pools:\n{GOOD.replace('name: a', 'name: A')}", (), "pools[0].name"),
    "that is missing": (f"pools:\n{GOOD.replace('{count: 1}', '{}')}", (), "pools[0].nodes"),
    "with a prefix": (
        f"pools:\n{GOOD.replace('nodes:', 'labels: {a.b/c: 1}, nodes:')}",
        (),
        'pools[0].labels["a.b/c"]',
    ),
    "of the whole": (f"kinds: x\npools:\n{GOOD}", (), "kinds"),
}


@pytest.mark.parametrize(("rest", "words", "field"), FIELDS.values(), ids=FIELDS)
def test_finding_when_listed_then_names_its_field(
    rest: str, words: tuple[str, ...], field: str, validate: Callable[..., tuple[int, str, str]]
) -> None:
    Path("x.yaml").write_text(HEAD + rest, "utf-8")
    found = document(validate("-f", "x.yaml", "-o", "json", *words)[1])
    assert [one["field"] for one in (*found["errors"], *found["warnings"])] == [field]


# A pool that the GPU catalog or its cloud refuses, beside what is wrong already in the text or the shape.
REFUSED = GOOD.replace("Standard_NC4as_T4_v3", "Standard_NC4as_T4_v9").replace("name: a", "name: typo")
UPPER = GOOD.replace("name: a", "name: Upper")
BESIDE = {
    "an unknown key": GOOD.replace("nodes", "node"),
    "a wrong type": GOOD.replace("count: 1", "count: x"),
    "a broken rule": GOOD.replace("{count: 1}", "{}"),
    "a duplicate key": GOOD.replace("nodes:", "nodes: {count: 2}, nodes:"),
    "an unset variable": GOOD.replace("nodes:", 'labels: {a: "${NOT_SET}"}, nodes:'),
    "an unknown cluster": GOOD.replace("[train]", "[trian]"),
    "a pool of the same name": GOOD + GOOD,
}


@pytest.mark.parametrize("wrong", BESIDE.values(), ids=BESIDE)
def test_run_when_one_pool_is_wrong_then_what_clouds_refuse_of_the_others_is_told_too(
    wrong: str, validate: Callable[..., tuple[int, str, str]]
) -> None:
    found = document(validate("-o", "json", pools=wrong + REFUSED + UPPER)[1])
    assert {"instance-type", "aks-name"} < {one["code"] for one in found["errors"]}
    assert len(found["errors"]) == 3


def test_run_when_a_file_is_wrong_then_what_clouds_refuse_in_the_others_is_told_too(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    Path("broken.yaml").write_text("pools: [", "utf-8")
    Path("empty.yaml").write_text("", "utf-8")
    found = document(validate("-f", "*.yaml", "-f", "missing.yaml", "-o", "json", pools=REFUSED)[1])
    assert [one["code"] for one in found["errors"]] == [
        "yaml-syntax",
        "document-empty",
        "file-missing",
        "instance-type",
    ]


def test_run_when_an_argument_cannot_be_set_then_nothing_is_judged_that_it_may_change(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    pools = REFUSED + GOOD.replace("nodes:", "labels: {country: no}, nodes:")
    found = document(validate("-o", "json", "--set", "pools.typ.instanceType=Standard_NC4as_T4_v3", pools=pools)[1])
    assert [one["code"] for one in (*found["errors"], *found["warnings"])] == ["set-path", "yaml-ambiguous"]


def test_run_when_the_head_is_wrong_then_pools_are_judged_all_the_same(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    Path("odd.yaml").write_text(f"{HEAD}extra: 1\npools:\n{UPPER}".replace("metadata: {name: ml}\n", ""), "utf-8")
    found = document(validate("-f", "odd.yaml", "-o", "json")[1])
    assert [one["code"] for one in found["errors"]] == ["missing-key", "unknown-key", "aks-name"]


def test_run_when_a_cluster_is_wrong_then_its_pools_are_judged_on_the_others(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    other = "  serve: {provider: aks, subscription: x, resourceGroup: ml, name: serve}\n"
    Path("two.yaml").write_text(f"{HEAD}{other}pools:\n{UPPER.replace('[train]', '[serve, train]')}", "utf-8")
    found = document(validate("-f", "two.yaml", "-o", "json")[1])
    assert [one["code"] for one in found["errors"]] == ["format", "aks-name"]


def test_run_when_repeated_then_the_same_order(validate: Callable[..., tuple[int, str, str]]) -> None:
    pools = "".join(BESIDE.values()) + REFUSED + UPPER + LONG + HINTED
    first, second = validate(pools=pools), validate(pools=pools)
    assert first == second
    lines = [line.split(":") for line in first[2].splitlines() if line.startswith("pools.yaml:")]
    places = [(int(line[1]), int(line[2])) for line in lines]
    assert places == sorted(places)


def test_yaml_trap_when_it_is_also_an_error_then_one_message_explains_it(
    validate: Callable[..., tuple[int, str, str]],
) -> None:
    found = document(validate("-o", "json", pools=GOOD.replace("count: 1", "count: 1_0"))[1])
    (error,) = found["errors"]
    assert (error["code"], found["warnings"]) == ("type", [])
    assert error["why"] == '"1_0" without quotes is a string in YAML 1.2 and the number 10 in YAML 1.1'
