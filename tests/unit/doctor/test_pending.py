"""Pods that wait: the doctor puts the rules of `workload lint` to them, so that one mistake has one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.doctor.check import examine
from gpukube.doctor.checks.workloads import CHECKS
from gpukube.doctor.document import doctor_document
from gpukube.doctor.gather import pod_facts
from gpukube.rule_ids import ALIASES, code_of, rule_id
from gpukube.workload.lint.registry import RULES
from tests.unit.cluster.builders import desire
from tests.unit.doctor.patients import patient

if TYPE_CHECKING:
    from gpukube.core.faults import Fault
    from gpukube.core.values import Desired


def found(spec: dict[str, object], *desired: Desired) -> Fault:
    """Examine a cluster with one pod that waits."""
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}}}
    pod = {
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"containers": [container], **spec},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}],
        },
    }
    examination = examine(patient(pods=(pod_facts(pod),), desired=desired), CHECKS)
    (one,) = (item.finding for item in examination.found if item.check.id == "pods-pending")
    return one


def test_pod_when_a_rule_explains_why_it_waits_then_its_fix_is_given_with_the_number() -> None:
    one = found({"nodeSelector": {"nvidia.com/gpu": "true"}})
    assert one.evidence[-1] == ("GPK723 selector-resource-name: nvidia.com/gpu is required as a label of the node")
    assert one.fix == "select the pool by its own label; the request alone finds nodes with GPUs"


def test_pod_when_pools_are_declared_then_is_compared_with_them() -> None:
    one = found({"nodeSelector": {"disk": "fast"}}, desire())
    assert any(line.startswith("GPK720 selector-no-pool: ") for line in one.evidence)


def test_pod_when_nothing_is_wrong_with_it_then_the_scheduler_alone_is_quoted() -> None:
    one = found({})
    assert not any("GPK" in line for line in one.evidence)
    assert one.fix.startswith("wait until devices are free")


@pytest.mark.parametrize(("check", "code"), ALIASES.items())
def test_check_when_lint_finds_the_same_then_its_name_is_an_alias_of_the_rule(check: str, code: str) -> None:
    assert code in RULES
    assert code_of(check) == code
    assert next(one.rule for one in CHECKS if one.id == check) == code


def test_document_when_a_check_has_a_rule_then_its_number_is_there() -> None:
    pod = {
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpus": "1"}}}]},
        "status": {"phase": "Pending"},
    }
    examination = examine(patient(pods=(pod_facts(pod),)), CHECKS)
    ailments = doctor_document([examination])["clusters"][0]["ailments"]
    assert [(one["check"], one["rule"]) for one in ailments] == [
        ("pods-ask-misspelt-name", rule_id("gpu-name-unknown"))
    ]
