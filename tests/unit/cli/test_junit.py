"""Reports as JUnit: well-formed whatever clusters answer, a case per pool, node and probe, and numbers that agree."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from gpukube.cli.formats.junit import junit_lines
from gpukube.cli.kinds import FORMATS
from gpukube.engine.documents.report import report_document
from gpukube.visible import visible_tree
from tests.documents import DOCUMENTS, PROVEN


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
    assert {name: int(root.get(name, "")) for name in total if name != "skipped"} | {"skipped": 2} == total
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
    assert "nvidia.com/gpu: 8, expected 56" in said
    assert "label config: absent, not c-1" in said


def test_junit_when_a_cluster_answers_control_characters_then_still_xml() -> None:
    (case,) = [
        c for c in written().iter("testcase") if (c.get("classname"), c.get("name")) == ("train-aks.good", "probe")
    ]
    assert "GPU 0: <U+001B>[31mA100" in (case.findtext("system-out") or "")


XSD = ET.parse(Path(__file__).parent / "data" / "junit-10.xsd")  # noqa: S314 -- ours
"""jenkinsci/xunit-plugin, types/model/xsd/junit-10.xsd (MIT): what Jenkins holds reports to."""
XS = "{http://www.w3.org/2001/XMLSchema}"


def declared() -> dict[str, tuple[dict[str, bool], set[str]]]:
    """Read the schema: element -> its attributes, whether each is required, and the elements that may stand in it."""
    return {
        str(element.get("name")): (
            {str(each.get("name")): each.get("use") == "required" for each in element.iter(f"{XS}attribute")},
            {str(each.get("ref")) for each in element.iter(f"{XS}element") if each.get("ref")},
        )
        for element in XSD.getroot().findall(f"{XS}element")
    }


def require_valid(root: ET.Element) -> None:
    elements = declared()
    for element in root.iter():
        attributes, children = elements[element.tag]
        assert element.attrib.keys() <= attributes.keys(), (element.tag, element.attrib)
        assert {name for name, required in attributes.items() if required} <= element.attrib.keys(), element.tag
        assert {child.tag for child in element} <= children, element.tag


def made(name: str, **changes: object) -> ET.Element:
    document = visible_tree(json.loads(json.dumps(DOCUMENTS[name])) | changes)
    return ET.fromstring("\n".join(junit_lines(document)))  # noqa: S314 -- what we wrote ourselves


def cases(root: ET.Element) -> dict[str, str]:
    """Name every case with its suite, and how it ended."""
    return {
        f"{suite.get('name')} | {case.get('name')}": next((c.tag for c in case if c.tag != "system-out"), "passed")
        for suite in root
        for case in suite
    }


@pytest.mark.parametrize("name", [name for name, one in DOCUMENTS.items() if "junit" in FORMATS[one["kind"]]])
def test_junit_when_written_then_valid_by_jenkins_schema_and_never_without_tests(name: str) -> None:
    root = made(name)
    require_valid(root)
    assert int(root.get("tests", "0")) > 0
    assert all(int(suite.get("tests", "0")) == len(suite) > 0 for suite in root)


@pytest.mark.parametrize("name", ["Plan", "Apply", "Doctor"])
def test_junit_when_there_is_nothing_then_a_case_that_passes(name: str) -> None:
    changes: dict[str, object] = {"clusters": [], **({"warnings": []} if name == "Plan" else {})}
    root = made(name, **changes)
    require_valid(root)
    assert list(cases(root).values()) == ["passed"]


def test_validation_when_written_then_a_suite_per_file_and_a_pass_for_a_file_without_findings() -> None:
    assert cases(made("Validation")) == {
        "gpukube validation pools.yaml | 4:2 GPK120 type": "failure",
        "gpukube validation pools.yaml | 9:7 GPK502 aks-name-length": "passed",
        "gpukube validation more.yaml | 12:1 GPK322 sharing-isolation": "passed",
        "gpukube validation fine.yaml | no findings": "passed",
        "gpukube validation --set pools.x | --set pools.x GPK116 set-path": "failure",
    }


def test_diff_when_written_then_every_difference_is_a_failure_and_what_is_unknown_none() -> None:
    found = cases(made("Diff"))
    assert found["gpukube diff train-aks | a100cut"] == "failure"
    assert found["gpukube diff train-aks | t4label"] == "failure"
    assert found["gpukube diff train-aks | found"] == "failure"
    assert found["gpukube diff batch-aks | inside the cluster"] == "skipped"
    assert found["gpukube diff lost-aks | cluster"] == "error"
    assert set(cases(made("same")).values()) <= {"passed", "skipped"}


def test_plan_when_written_then_only_what_cannot_be_done_is_a_failure() -> None:
    root = made("Plan")
    failed = [name for name, end in cases(root).items() if end == "failure"]
    assert failed == ["gpukube plan train-aks | train-aks foreign-advertiser", "gpukube plan train-aks | found"]
    (case,) = [case for case in root.iter("testcase") if case.get("name") == "a100cut"]
    assert "sharing.mig.profile" in str(case.findtext("system-out"))


def test_doctor_when_written_then_errors_fail_warnings_pass_and_what_was_not_read_is_told() -> None:
    assert cases(made("Doctor")) == {
        "gpukube doctor train-aks | cluster": "error",
        "gpukube doctor train-aks | checks": "passed",
        "gpukube doctor train-aks | node n1": "passed",  # the later of two of this name: a warning
        "gpukube doctor train-aks | release-stuck": "skipped",
    }
    ends = [next((c.tag for c in case if c.tag != "system-out"), "passed") for case in made("Doctor").iter("testcase")]
    assert ends == ["error", "passed", "failure", "passed", "skipped"]


def test_fit_when_written_then_a_workload_without_a_place_is_a_failure() -> None:
    assert cases(made("Fit")) == {
        "gpukube fit train-aks | Deployment/web": "failure",
        "gpukube fit train-aks | Deployment/web, group small": "passed",
    }


def test_report_when_a_call_was_in_flight_then_an_error_with_the_command_to_resume() -> None:
    (case,) = [case for case in made("Apply").iter("testcase") if case.get("name") == "t4lost"]
    error = case.find("error")
    assert error is not None
    assert "to resume: gpukube pool apply -f pools.yaml --yes" in str(error.text)
