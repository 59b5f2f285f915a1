"""Faults in clusters of all clouds: the doctor finds each by its check, and verify is red where devices suffer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.waiting import wait_for
from tests.e2e.faults import FAULTS, PATIENTS
from tests.e2e.stage import ailments, errors_of, inside

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.changes.world import Document
    from tests.e2e.stage import Stage

QUICK = ("image", "default", "NFD", "MPS", "nothing", "otherwise", "kept off", "all nodes", "two shares")
"""Faults of the default run: those whose checks no other test plays out in a cluster."""
CASES = [pytest.param(name, marks=[] if any(word in name for word in QUICK) else [pytest.mark.slow]) for name in FAULTS]


@pytest.fixture(scope="module")
def hospital(stage: Stage) -> tuple[Stage, Mapping[str, Document]]:
    """Make the clusters that get ill, well; whoever makes one ill heals it."""
    documents = {key: ward.document(key) for key, ward in PATIENTS.items()}
    for key, ward in PATIENTS.items():
        stage.make(ward.cloud, key)
    assert errors_of(stage.create_all(*documents.values())) == {}
    stage.require_green(*documents.values())
    return stage, documents


def steps_of(stage: Stage, document: Document) -> set[str]:
    """Name the step that verify names first, of each pool that is not as promised."""
    reports = stage.glance(document).values()
    found = [report.error.diagnostics[0].code for report in reports if report.error is not None]
    return {code.removeprefix("step-") for code in found}


@pytest.mark.turns(6)
@pytest.mark.parametrize("name", CASES)
def test_fault_when_put_into_a_cluster_then_found_by_its_check_and_by_verify_where_devices_suffer(
    name: str, hospital: tuple[Stage, Mapping[str, Document]]
) -> None:
    stage, documents = hospital
    fault = FAULTS[name]
    document = documents[fault.at]
    found: dict[str, str] = {}

    def is_found() -> bool:
        found.clear()
        found.update({check: ailment.severity for _, check, ailment in ailments(stage.diagnose(document))})
        errors = {check for check, severity in found.items() if severity == "error"}
        return found.get(fault.check) == fault.severity and errors <= {fault.check, *fault.beside}

    steps: set[str] = set()

    def are_steps(*wanted: str) -> bool:
        steps.clear()
        steps.update(steps_of(stage, document))
        return steps == set(wanted)

    with inside(stage.info, fault.at) as cluster:
        fault.inject(cluster)
        try:
            wait_for(is_found, lambda: (fault.check, found))
            wait_for(lambda: are_steps(*filter(None, [fault.step])), lambda: (fault.step, steps))
        finally:
            fault.heal(cluster)
    stage.require_healthy(document)
    wait_for(are_steps, lambda: steps)


def test_faults_when_counted_then_no_fewer_than_are_promised() -> None:
    assert len(FAULTS) >= 25
    assert {fault.at for fault in FAULTS.values()} == set(PATIENTS)
