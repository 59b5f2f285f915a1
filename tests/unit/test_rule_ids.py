"""Every code that validate can show has a number of its own, in the range of its room."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from gpukube.codes import GPUS, POOLS, WORKLOADS
from gpukube.errors import Finding, Where
from gpukube.rule_ids import RULE_IDS, code_of, rule_id, rule_label
from gpukube.spec.codes import CODES as SPEC_CODES
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES

RANGES = {
    "GPK1": SPEC_CODES,
    "GPK2": GPUS,
    "GPK3": POOLS,
    "GPK4": EKS_CODES,
    "GPK5": AKS_CODES,
    "GPK6": GKE_CODES,
    "GPK7": WORKLOADS,
}


@pytest.mark.parametrize(("prefix", "codes"), RANGES.items(), ids=RANGES)
def test_codes_when_validate_can_show_them_then_each_has_a_number_of_its_range(
    prefix: str, codes: dict[str, str]
) -> None:
    assert [code for code in codes if not re.fullmatch(rf"{prefix}\d\d", rule_id(code))] == []


def test_numbers_when_given_then_only_to_codes_of_the_tables() -> None:
    assert sorted(RULE_IDS.keys() - {code for codes in RANGES.values() for code in codes}) == []


def test_numbers_when_given_then_each_once() -> None:
    assert [number for number, count in Counter(RULE_IDS.values()).items() if count > 1] == []


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("file-missing", "GPK101"),
        ("no-instance-type", "GPK127"),
        ("gpu-model", "GPK201"),
        ("no-machine", "GPK204"),
        ("missing-feature", "GPK301"),
        ("eks-name", "GPK401"),
        ("aks-name", "GPK501"),
        ("gke-name", "GPK601"),
    ],
)
def test_number_when_once_given_then_stays(code: str, number: str) -> None:
    assert rule_id(code) == number


@pytest.mark.parametrize(
    ("rule", "code"),
    [("GPK101", "file-missing"), ("file-missing", "file-missing"), ("GPK999", None), ("foreign-pool", None)],
)
def test_code_of_when_asked_by_number_or_name_then_finds_it(rule: str, code: str | None) -> None:
    assert code_of(rule) == code


@pytest.mark.parametrize(
    ("code", "shown"),
    [("file-missing", "GPK101 file-missing"), ("foreign-pool", "foreign-pool"), ("acme-own-rule", "acme-own-rule")],
)
def test_diagnostic_when_rendered_then_shows_the_number_where_there_is_one(code: str, shown: str) -> None:
    assert rule_label(code) == shown
    assert Finding(code, Where("x"), "is wrong").render() == f"x: error[{shown}]: is wrong"
