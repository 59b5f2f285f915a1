"""Linting whole files: order, ignores, fields, formats; and any manifest without a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.cli.formats.github import github_lines
from gpukube.cli.formats.sarif import sarif_log
from gpukube.engine.documents.summary import validation_summary
from gpukube.engine.documents.validation import lint_document
from gpukube.rule_ids import rule_id
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import Linted, lint
from tests.manifests import objects
from tests.unit.workload.specs import offers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.errors import Finding
    from gpukube.workload.offers import PoolOffer

POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: c
      resources: {requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 0}}
"""


def found(text: str, *, strict: bool = False) -> Linted:
    return lint([Source("m.yaml", text)], strict=strict)


def brief(one: Finding) -> str:
    return f"{one.where} {rule_id(one.code)}"


def said(text: str) -> list[str]:
    return [brief(one) for one in found(text).findings]


def test_documents_when_linted_then_positions_are_those_of_the_file() -> None:
    assert said(f"{POD}---\n{POD}") == ["m.yaml:7:77 GPK709", "m.yaml:15:77 GPK709"]


def test_object_when_it_comes_from_stdin_then_is_named() -> None:
    (one,) = lint([Source("-", POD)]).findings
    assert one.seen == "Pod/a: container c requests 0 nvidia.com/gpu"


def test_warnings_when_strict_then_are_errors() -> None:
    assert found(POD).is_right
    assert not found(POD, strict=True).is_right


def test_fields_when_found_then_are_named_in_the_document() -> None:
    _, warning = lint_document(found(f"{POD}---\n{POD}"))["warnings"]
    assert warning["field"] == 'spec.containers[0].resources.limits["nvidia.com/gpu"]' or warning["field"].endswith(
        "gpu"
    )


def test_template_when_shared_by_an_anchor_then_its_finding_is_said_once() -> None:
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: &s {containers: [{name: c, "
    job += "resources: {limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 0}}}]}}}\nother: {template: {spec: *s}}\n"
    assert len(said(job)) == 1


LINE = "resources: {requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 0}}"
IGNORES = {
    "on the line": POD.replace(LINE, f"{LINE} # gpukube: ignore GPK709 - as a test"),
    "by name": POD.replace(LINE, f"{LINE} # gpukube: ignore gpu-zero: as a test"),
    "two rules": POD.replace(
        LINE,
        "resources: {limits: {gpu: 1}, requests: {nvidia.com/gpu: 1}} # gpukube: ignore "
        "GPK701, GPK704, gpu-without-cpu - as a test",
    ),
    "above the line": POD.replace(f"      {LINE}", f"      # gpukube: ignore GPK709 - as a test\n\n      {LINE}"),
    "above the object": f"# gpukube: ignore GPK709 - as a test\n# more\n---\n{POD}",
    "annotation": POD.replace("{name: a}", '{name: a, annotations: {gpukube.io/lint-ignore: "GPK709: as a test"}}'),
    "annotation of a template": (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  activeDeadlineSeconds: 60\n"
        "  template:\n    metadata:\n      annotations:\n"
        "        gpukube.io/lint-ignore: |\n          GPK711: as a test; GPK709: as a test\n"
        "    spec:\n      containers:\n"
        "        - {name: c, resources: {limits: {nvidia.com/gpu: 0}}}\n"
        "        - {name: d, resources: {limits: {nvidia.com/gpu: 1}}}\n"
    ),
}


@pytest.mark.parametrize("name", IGNORES)
def test_finding_when_ignored_then_is_counted_and_not_reported(name: str) -> None:
    result = found(IGNORES[name])
    assert [brief(one) for one in result.findings] == []
    assert {one.reason for one in result.ignored} == {"as a test"}
    assert lint_document(result)["silenced"][0]["reason"] == "as a test"


SHARED_BY_OTHERS = {
    "KAI by fraction": ('annotations: {gpu-fraction: "0.5"}', "schedulerName: kai-scheduler"),
    "KAI by memory": ('annotations: {gpu-memory: "2000"}', ""),
    "another scheduler": ("", "schedulerName: volcano"),
}


@pytest.mark.parametrize("name", SHARED_BY_OTHERS)
def test_gpu_when_another_scheduler_gives_a_part_of_it_then_is_not_hidden_from_the_pod(name: str) -> None:
    metadata, scheduler = SHARED_BY_OTHERS[name]
    pod = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a, {metadata}}}\nspec:\n  {scheduler}\n"
        "  containers: [{name: c, image: nvcr.io/nvidia/cuda:12.6.3-base}]\n"
    )
    assert said(pod) == []


UNJUDGED = """apiVersion: v1
kind: LimitRange
metadata: {name: gpus}
spec: {limits: [{type: Container, max: {nvidia.com/gpu: 2}}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: queue}
spec: {resourceGroups: [{coveredResources: [nvidia.com/gpu]}]}
---
apiVersion: example.com/v1
kind: Plain
metadata: {name: plain, labels: {nvidia.com/gpu: "true"}}
spec: {nodeSelector: {nvidia.com/gpu: "true"}, tolerations: [{key: nvidia.com/gpu}], env: [{value: nvidia.com/gpu}]}
"""


def test_devices_when_nothing_is_known_of_their_place_then_their_objects_are_named() -> None:
    result = found(UNJUDGED)
    assert (result.is_right, result.unjudged) == (
        True,
        ("LimitRange/gpus (nvidia.com/gpu)", "ClusterQueue/queue (nvidia.com/gpu)"),
    )
    assert validation_summary(lint_document(result)) == (
        "ok: 3 objects, 0 pod templates; not judged: LimitRange/gpus (nvidia.com/gpu), "
        "ClusterQueue/queue (nvidia.com/gpu)"
    )


OTHERS = {
    "another line": POD.replace("- name: c", "- name: c # gpukube: ignore GPK709 - no"),
    "another rule": POD.replace(LINE, f"{LINE} # gpukube: ignore GPK711 - no"),
    "another object": f"# gpukube: ignore GPK709 - no\n{POD.replace('gpu: 0', 'gpu: 1')}---\n{POD}",
}


@pytest.mark.parametrize("name", OTHERS)
def test_finding_when_something_else_is_ignored_then_is_reported_with_the_unused_ignore(name: str) -> None:
    assert sorted(one.rpartition(" ")[2] for one in said(OTHERS[name])) == ["GPK709", "GPK776"]


def test_annotation_of_github_when_a_finding_is_in_the_second_document_then_stands_at_its_line() -> None:
    lines = list(github_lines(lint_document(found(f"{POD}---\n{POD}"))))
    assert lines[1].startswith("::warning file=m.yaml,line=15,col=77,title=gpukube [GPK709 gpu-zero]::")
    assert lines[-1] == "gpukube: ok: 2 objects, 2 pod templates"


def test_sarif_when_written_then_has_the_rule_and_what_is_accepted() -> None:
    run = sarif_log(lint_document(found(IGNORES["on the line"])))["runs"]
    assert isinstance(run, list)
    (result,) = run[0]["results"]
    assert (result["ruleId"], result["suppressions"][0]["justification"]) == ("GPK709", "as a test")
    assert "docs/diagnostics/workloads.md#gpk709" in run[0]["tool"]["driver"]["rules"][0]["help"]["text"]


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> tuple[PoolOffer, ...]:
    directory = tmp_path_factory.mktemp("spec")
    return tuple(offers(directory, "whole", "mixed", "sliced", "renamed", "spot", "tainted").values())


def check(drawn: Sequence[object], pools: Sequence[PoolOffer]) -> None:
    """Lint anything, against pools too: each finding has a place in the file, a rule and a fix."""
    result = lint([Source("m.yaml", "\n---\n".join(map(json.dumps, drawn)))], offers=pools)
    for one in result.findings:
        assert one.where.source == "m.yaml"
        assert one.where.line or one.code == "no-manifest"
        assert rule_id(one.code)
        assert one.fix
    lint_document(result)


@settings(max_examples=100)
@given(st.lists(objects(), max_size=3))
def test_manifests_when_they_are_anything_then_end_without_a_traceback(
    pools: tuple[PoolOffer, ...], drawn: list[object]
) -> None:
    check(drawn, pools)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(objects())
def test_ten_thousand_manifests_when_linted_then_end_without_a_traceback(
    pools: tuple[PoolOffer, ...], drawn: object
) -> None:
    check([drawn], pools)
