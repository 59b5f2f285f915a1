"""Reports as JUnit: well-formed whatever clusters answer, a case per pool, node and probe, and numbers that agree."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from gpukube.cli.formats.junit import junit_lines
from gpukube.engine.documents.report import report_document
from gpukube.visible import visible_tree
from tests.documents import PROVEN


def written() -> ET.Element:
    text = "\n".join(junit_lines(visible_tree(report_document(PROVEN, kind="Verify"))))
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
