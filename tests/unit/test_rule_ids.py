"""Every code that validate can show has a number of its own, in the range of its room, and keeps it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from gpukube.codes import GPUS, POOLS, SPEC, WORKLOADS
from gpukube.errors import Finding, Where
from gpukube.provider import load_provider, provider_names
from gpukube.rule_ids import code_of, rule_id, rule_label, rule_numbers
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES

RANGES = {
    "GPK1": SPEC,
    "GPK2": GPUS,
    "GPK3": POOLS,
    "GPK4": EKS_CODES,
    "GPK5": AKS_CODES,
    "GPK6": GKE_CODES,
    "GPK7": WORKLOADS,
}
GIVEN = Path(__file__).parent / "rule_numbers.txt"
"""Every number that was ever given, with its code. `pytest --update` adds lines, and changes none."""


@pytest.mark.parametrize(("prefix", "codes"), RANGES.items(), ids=RANGES)
def test_codes_when_validate_can_show_them_then_each_has_a_number_of_its_range(
    prefix: str, codes: dict[str, tuple[str, str]]
) -> None:
    outside = {code: number for code, (number, _) in codes.items() if not re.fullmatch(rf"{prefix}\d\d", number)}
    assert outside == {}, f"numbers of this table are {prefix}xx"


def test_numbers_when_given_then_only_to_codes_of_the_tables() -> None:
    assert rule_numbers() == {code: number for table in RANGES.values() for code, (number, _) in table.items()}


def test_numbers_when_given_then_each_once() -> None:
    installed = [load_provider(name).codes for name in provider_names()]
    counted = Counter(number for table in (SPEC, GPUS, POOLS, WORKLOADS, *installed) for number, _ in table.values())
    assert [number for number, count in counted.items() if count > 1] == [], "take the next free number of the table"


def test_number_when_once_given_then_stays(request: pytest.FixtureRequest) -> None:
    lines = GIVEN.read_text("utf-8").splitlines()
    numbers = [f"{number} {code}" for code, number in rule_numbers().items()]
    if request.config.getoption("--update", default=False):
        lines = sorted({*lines, *numbers})
        GIVEN.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert sorted({*lines} - {*numbers}) == [], "a number and its code stay: give the new code a number of its own"
    assert sorted({*numbers} - {*lines}) == [], "run: pytest --update tests/unit/test_rule_ids.py"


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("GPK101", "file-missing"),
        ("file-missing", "file-missing"),
        ("GPK401", "eks-name"),
        ("aks-name", "aks-name"),
        ("GPK999", None),
        ("foreign-pool", None),
        ("aks-unheard-of", None),
    ],
)
def test_code_of_when_asked_by_number_or_name_then_finds_it(rule: str, code: str | None) -> None:
    assert code_of(rule) == code


@pytest.mark.parametrize("code", ["no-credentials", "foreign-pool", "aks-unheard-of", "acme-own-rule", ""])
def test_number_when_only_a_live_run_reports_the_code_then_none(code: str) -> None:
    assert rule_id(code) == ""


@pytest.mark.parametrize(
    ("code", "shown"),
    [("file-missing", "GPK101 file-missing"), ("foreign-pool", "foreign-pool"), ("acme-own-rule", "acme-own-rule")],
)
def test_diagnostic_when_rendered_then_shows_the_number_where_there_is_one(code: str, shown: str) -> None:
    assert rule_label(code) == shown
    assert Finding(code, Where("x"), "is wrong").render() == f"x: error[{shown}]: is wrong"
