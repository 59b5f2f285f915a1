"""What an examination adds up to: checks that could not be made, the exit code, what is offered, the document."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from gpukube.core.faults import LabelNode, Reconcile, Restart, SafeFix, fault
from gpukube.doctor.check import Check, Checks, Examination, examine
from gpukube.doctor.diagnose import doctor_exit_code, safe_fixes
from gpukube.doctor.document import doctor_document
from gpukube.engine.documents.schema import document_schema
from gpukube.errors import AccessError, ClusterError, ExitCode
from tests.builders import CLUSTER
from tests.unit.doctor.patients import patient

if TYPE_CHECKING:
    from gpukube.core.faults import Fault
    from gpukube.doctor.evidence import Evidence

LABEL = LabelNode("gpu-1", "team", None, "vision")
RESTART = Restart("ns", "plugin")


def check(
    name: str = "x", *, severity: str = "error", needs: tuple[str, ...] = (), safe_fix: SafeFix | None = None
) -> Check:
    found = fault("node n", "seen", "kubectl", severity=severity, safe_fix=safe_fix)  # type: ignore[arg-type]  # test data
    return Check(name, "title", "what follows", "https://example.org", lambda _evidence: [found], needs)  # type: ignore[arg-type]  # test data


def has_errors(severity: str = "error", safe_fix: SafeFix | None = None) -> Examination:
    return examine(patient(), [check(severity=severity, safe_fix=safe_fix)])


def unreadable(error: AccessError | ClusterError) -> Examination:
    return Examination(CLUSTER, troubles=(error,), unreadable=error)


def test_examine_when_something_could_not_be_read_then_only_checks_that_need_it_are_skipped() -> None:
    refused = AccessError("listing helm releases is not allowed")
    evidence = patient(troubles={"releases": refused, "config-maps": refused})
    seen = examine(evidence, [check("a", needs=("nodes",)), check("b", needs=("nodes", "releases"))])
    assert ([item.check.id for item in seen.found], seen.made) == (["a"], 1)
    assert [(item.check.id, item.reading) for item in seen.skipped] == [("b", "releases")]
    assert (seen.troubles, seen.unreadable) == ((refused,), None)


@pytest.mark.parametrize("reading", ["cloud", "nodes"])
def test_examine_when_a_whole_side_could_not_be_read_then_it_is_blind(reading: str) -> None:
    error = AccessError("no")
    assert examine(patient(troubles={reading: error}), []).unreadable is error


def test_examine_when_warnings_and_errors_are_found_then_errors_come_first() -> None:
    seen = examine(patient(), [check("w", severity="warning"), check("e")])
    assert [item.check.id for item in seen.found] == ["e", "w"]


def test_examine_when_a_finding_has_a_consequence_then_it_counts_for_more_than_the_checks() -> None:
    worse = replace(check("w"), find=lambda _evidence: [fault("n", "seen", "fix", why="worse")])
    seen = examine(patient(), [worse, check("x")])
    assert [(item.finding.code, item.finding.why) for item in seen.found] == [("w", "worse"), ("x", "what follows")]


def test_checks_when_a_finder_is_decorated_then_it_is_one_with_what_its_module_needs_and_no_graver_than_it_says() -> (
    None
):
    checks = Checks(needs=("nodes",))

    @checks.add("mild", title="t", consequence="c", link="l", severity="warning")
    def _mild(evidence: Evidence) -> list[Fault]:
        return [fault(evidence.cluster.key, "seen", "fix")]

    @checks.add("grave", title="t", consequence="c", link="l", needs=("pods",))
    def _grave(evidence: Evidence) -> list[Fault]:
        return [*_mild(evidence), fault(evidence.cluster.key, "seen", "fix", severity="warning")]

    found = [(item.check.id, item.finding.severity) for item in examine(patient(), checks).found]
    assert found == [("grave", "error"), ("mild", "warning"), ("grave", "warning")]
    assert [check.needs for check in checks] == [("nodes",), ("pods",)]


EXITS = {
    "healthy": ((Examination(CLUSTER),), ExitCode.DONE),
    "warnings only": ((has_errors("warning"),), ExitCode.DONE),
    "ill": ((Examination(CLUSTER), has_errors()), ExitCode.ERROR),
    "no access": ((unreadable(AccessError("no")),), ExitCode.ACCESS),
    "no access to one, another ill": ((has_errors(), unreadable(AccessError("no"))), ExitCode.ACCESS),
    "mending refused": ((replace(has_errors(), fix_error=AccessError("no")),), ExitCode.ACCESS),
    "several reasons": ((unreadable(AccessError("no")), unreadable(ClusterError("no"))), ExitCode.ERROR),
}


@pytest.mark.parametrize("name", EXITS)
def test_exit_code_when_examined_then_as_documented(name: str) -> None:
    examinations, code = EXITS[name]
    assert doctor_exit_code(examinations) == code


def test_mends_when_the_same_is_offered_twice_then_once_and_the_release_only_with_a_spec() -> None:
    seen = examine(
        patient(), [check("a", safe_fix=LABEL), check("b", safe_fix=LABEL), check("c", safe_fix=Reconcile())]
    )
    assert safe_fixes(seen, with_spec=True) == (LABEL, Reconcile())
    assert safe_fixes(seen, with_spec=False) == (LABEL,)


SAID = {
    "label": (LABEL, "label node gpu-1 team=vision"),
    "no label": (LabelNode("gpu-1", "team", "vision", None), "remove the label team=vision from node gpu-1"),
    "restart": (RESTART, "restart DaemonSet ns/plugin"),
    "release": (Reconcile(), "bring gpukube's release to the spec"),
}


@pytest.mark.parametrize("name", SAID)
def test_mend_when_asked_about_then_said_in_one_line(name: str) -> None:
    mend, said = SAID[name]
    assert str(mend) == said


def test_document_when_made_then_as_its_schema_says() -> None:
    seen = examine(
        patient(troubles={"releases": AccessError("no")}), [check(safe_fix=RESTART), check("y", needs=("releases",))]
    )
    document = doctor_document([seen, unreadable(ClusterError("gone"))])
    Draft202012Validator(document_schema("doctor")).validate(document)
    assert (document["exitCode"], document["summary"]) == (1, {"error": 1})
    assert document["clusters"][0]["ailments"][0]["fix"] == "restart DaemonSet ns/plugin"
    assert document["clusters"][0]["skipped"] == [{"check": "y", "reading": "releases"}]
