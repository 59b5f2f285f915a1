"""Reports as JUnit: well-formed whatever clusters answer, a case per pool, node and probe, and numbers that agree."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from gpukube.cli.formats.junit import junit_lines
from gpukube.cluster.proof.outcome import Check, NodeProof, PoolProof, Probe, missing
from gpukube.core.values import Nodes
from gpukube.engine.documents.report import report_document
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CloudError, ClusterError, Finding, Where
from gpukube.visible import visible_tree
from tests.builders import CLUSTER

GPU = "nvidia.com/gpu"
RIGHT = NodeProof("node-0", {GPU: 56}, {GPU: 56}, (), (Check("condition Ready", "True", "True", holds=True),))
LOST = missing("node-1", "config-label", "error", "no label <config>", "whole GPUs", "kubectl label node node-1")
WRONG = NodeProof("node-1", {GPU: 56}, {GPU: 8}, (LOST,), (Check("label config", "c-1", "", holds=False),))
PROOF = PoolProof(
    "train-aks",
    "good",
    "proven",
    Nodes(1, 1, 1, autoscaled=False),
    1,
    (RIGHT,),
    (),
    {GPU: (56, 56)},
    {GPU: 56},
    Probe("passed", "sees 1g.5gb", GPU, "cuda:1", "node-0", ("GPU 0: \x1b[31mA100",)),
)
BROKEN = replace(
    PROOF,
    pool="bad",
    status="broken",
    per_node=(RIGHT, WRONG),
    probe=Probe("failed", "sees nothing", GPU, "cuda:1", "node-0", (), (replace(LOST, code="step-probe"),)),
)
UNPROVEN = ClusterError.of(
    [Finding("step-config-label", Where("train-aks/bad: node-1"), "no label", fix="label it")], "node-1: no label"
)
REPORTS = (
    ClusterReport(
        CLUSTER,
        (
            PoolReport("good", "good", "unchanged", "matches the spec", proof=PROOF),
            PoolReport("bad", "bad", "failed", "differs", proof=BROKEN, error=UNPROVEN),
            PoolReport("lost", "lost", "failed", "could not be read", error=ClusterError("no answer")),
            PoolReport("late", "late", "not-attempted", "no request was sent"),
            PoolReport(
                "zero",
                "zero",
                "unchanged",
                "matches the spec",
                proof=replace(PROOF, per_node=(), probe=Probe("skipped", "no node", GPU, "cuda:1")),
            ),
        ),
    ),
    ClusterReport(replace(CLUSTER, key="lost-aks"), (), error=CloudError("no cluster", fix="check", code="no-cluster")),
)


def written() -> ET.Element:
    text = "\n".join(junit_lines(visible_tree(report_document(REPORTS, kind="Verify"))))
    assert text.startswith("<?xml")
    return ET.fromstring(text)  # noqa: S314 -- what we wrote ourselves


def results() -> dict[str, str]:
    found = {}
    for case in written().iter("testcase"):
        tags = [child.tag for child in case if child.tag != "system-out"]
        assert len(tags) <= 1
        found[f"{case.get('classname')}.{case.get('name')}"] = tags[0] if tags else "passed"
    return found


def test_junit_when_a_report_is_written_then_a_case_for_each_pool_node_and_probe() -> None:
    assert results() == {
        "train-aks.good": "passed",
        "train-aks.good.node-0": "passed",
        "train-aks.good.probe": "passed",
        "train-aks.bad": "failure",
        "train-aks.bad.node-0": "passed",
        "train-aks.bad.node-1": "failure",
        "train-aks.bad.probe": "failure",
        "train-aks.lost": "error",
        "train-aks.late": "skipped",
        "train-aks.zero": "passed",
        "train-aks.zero.probe": "skipped",
        "lost-aks.cluster": "error",
    }


def test_junit_when_counted_then_the_numbers_are_those_of_the_cases() -> None:
    root = written()
    total = {"tests": 12, "failures": 3, "errors": 2, "skipped": 2}
    assert {name: int(root.get(name, "")) for name in total} == total
    assert {name: sum(int(suite.get(name, "")) for suite in root) for name in total} == total


def test_junit_when_a_node_is_wrong_then_the_step_its_reason_and_its_remedy_are_told() -> None:
    (case,) = [case for case in written().iter("testcase") if case.get("name") == "node-1"]
    failure = case.find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("step-config-label", "no label <config>")
    assert failure.text is not None
    assert "why: whole GPUs" in failure.text
    assert "fix: kubectl label node node-1" in failure.text
    said = case.findtext("system-out") or ""
    assert "nvidia.com/gpu: 8, promised 56" in said
    assert "label config: absent, not c-1" in said


def test_junit_when_a_cluster_answers_control_characters_then_still_xml() -> None:
    (case,) = [
        c for c in written().iter("testcase") if (c.get("classname"), c.get("name")) == ("train-aks.good", "probe")
    ]
    assert "GPU 0: <U+001B>[31mA100" in (case.findtext("system-out") or "")


def test_junit_when_nothing_was_declared_then_an_empty_run() -> None:
    root = ET.fromstring("\n".join(junit_lines(report_document((), kind="Verify"))))  # noqa: S314 -- ours
    assert (root.get("tests"), len(root)) == ("0", 0)
