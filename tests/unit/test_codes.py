"""The tables of codes and the source agree: every code that a place gives is listed, every listed one is given."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from gpukube.errors import ExitCode
from gpukube_aks.codes import FAILURE_CODES as AKS_FAILURES
from gpukube_eks.codes import FAILURE_CODES as EKS_FAILURES
from gpukube_gke.codes import FAILURE_CODES as GKE_FAILURES
from tools.code_sites import exit_codes, find_sites, sites_of
from tools.codes_docs import TABLES
from tools.diagnostics_docs import FAMILIES

RULES = {code: title for _, table in FAMILIES.values() for code, (_, title) in table.items()}
LISTED = {code for table in TABLES.values() for code in table} | RULES.keys()
SHARED = {
    "kubeconfig": "whoever reads it",
    **dict.fromkeys(
        (AKS_FAILURES.keys() & GKE_FAILURES.keys())
        | (AKS_FAILURES.keys() & EKS_FAILURES.keys())
        | (EKS_FAILURES.keys() & GKE_FAILURES.keys()),
        "what two clouds answer alike",
    ),
    "cluster-unreachable": "the cluster's API, whether its cloud or its network says so",
    **dict.fromkeys(("access", "capacity", "quota", "cloud"), "a class's own code, which Azure's answers carry too"),
}
"""Codes that stand in two tables."""


@pytest.fixture(scope="module")
def exits() -> dict[str, tuple[ExitCode, ...]]:
    return exit_codes()


def test_source_when_it_gives_a_code_then_a_table_lists_it(exits: dict[str, tuple[ExitCode, ...]]) -> None:
    unlisted = sorted(exits.keys() - LISTED)
    assert unlisted == [], (
        f"add these to gpukube/codes.py or the provider's codes.py, then run: python -m tools.codes_docs: {unlisted}"
    )


def test_tables_when_they_list_a_code_then_the_source_gives_it(exits: dict[str, tuple[ExitCode, ...]]) -> None:
    unused = sorted(LISTED - exits.keys())
    assert unused == [], f"nothing gives these codes; remove them from their table of codes: {unused}"


def test_source_when_a_code_is_no_literal_then_the_search_knows_where_it_comes_from() -> None:
    assert [site for site in find_sites() if not site.code] == []


def test_tables_when_two_list_a_code_then_it_is_known() -> None:
    counted = Counter(
        code for table in (*TABLES.values(), *(table for _, table in FAMILIES.values())) for code in table
    )
    assert {code for code, count in counted.items() if count > 1} == SHARED.keys()


@pytest.mark.parametrize(
    ("file", "source", "expected"),
    [
        ("gpukube/a.py", 'Finding("new", where, "m")', [("new", ExitCode.BAD_INPUT)]),
        ("gpukube/a.py", 'Finding("new", where, "m", severity="warning")', [("new", ExitCode.DONE)]),
        ("gpukube/cluster/a.py", 'Finding(code="new", where=where)', [("new", ExitCode.ERROR)]),
        ("gpukube/a.py", 'raise errors.QuotaError("m", code="new")', [("new", ExitCode.CAPACITY)]),
        ("gpukube/a.py", 'raise Conflict("m")', []),
        ("gpukube/a.py", "raise Conflict('m', code='a' if x else 'b')", [("a", ExitCode.ERROR), ("b", ExitCode.ERROR)]),
        ("gpukube/a.py", "Finding(kind, where, 'm')", [("", ExitCode.BAD_INPUT)]),
        ("gpukube/a.py", "Finding(f'other-{kind}', where, 'm')", [("", ExitCode.BAD_INPUT)]),
        (
            "gpukube/a.py",
            "class _Row:\n    says: str\n    makes: type\n    code: str\n_Row('m', AccessError, 'new')",
            [("new", ExitCode.ACCESS)],
        ),
        (
            "gpukube/a.py",
            "def say(self, code, text):\n    return Finding(code, where, text)\nself.say('new', 'm')",
            [("new", ExitCode.BAD_INPUT)],
        ),
        ("gpukube/a.py", "log('Finding', code='new')", []),
    ],
)
def test_search_when_a_place_gives_a_code_then_finds_it(
    file: str, source: str, expected: list[tuple[str, ExitCode]]
) -> None:
    assert [(site.code, site.exit_code) for site in sites_of(file, source)] == expected


def test_codes_when_listed_then_kebab_case() -> None:
    assert [code for code in sorted(LISTED) if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)] == []


def test_sentences_when_printed_then_each_is_one() -> None:
    sentences = [sentence for table in (*TABLES.values(), RULES) for sentence in table.values()]
    assert [sentence for sentence in sentences if not re.fullmatch(r"[^\n|]*\.", sentence)] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("yaml-syntax", [ExitCode.BAD_INPUT]),
        ("mig-profile", [ExitCode.BAD_INPUT]),
        ("no-provider", [ExitCode.BAD_INPUT]),
        ("instance-status", [ExitCode.DONE]),
        ("aks-spot-floor", [ExitCode.DONE]),
        ("nfd-taint", [ExitCode.DONE]),
        ("foreign-pool", [ExitCode.ERROR]),
        ("step-geometry", [ExitCode.ERROR]),
        ("defect", [ExitCode.ERROR]),
        ("tenant", [ExitCode.ACCESS]),
        ("zone-not-offered", [ExitCode.BAD_INPUT, ExitCode.CAPACITY]),
        ("timeout", [ExitCode.TIMED_OUT]),
    ],
)
def test_exit_codes_when_read_from_the_source_then_are_those_of_the_run(
    code: str, expected: list[ExitCode], exits: dict[str, tuple[ExitCode, ...]]
) -> None:
    assert list(exits[code]) == expected
