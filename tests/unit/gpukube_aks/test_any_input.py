"""Whatever Azure answers and whatever stands under `aks:`, nothing of the pure half falls over."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.values import Change
from gpukube.errors import GpukubeError
from gpukube_aks import AksProvider
from gpukube_aks.codes import CODES, FAILURE_CODES
from gpukube_aks.facts.meanings import _TABLE, error_of, read_problem
from gpukube_aks.pool.members import FIELDS, NATIVE, REFUSED
from gpukube_aks.pool.observe import observe_pool
from tests.builders import make_target

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)
PROPERTIES = st.sampled_from([*dict.fromkeys(path.partition(".")[0] for path in (*NATIVE, *FIELDS, *REFUSED))])
CODES_AND_TEXTS = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from(["OperationNotAllowed", "QuotaExceeded", "New"]) | JSON,
        "message": st.sampled_from(['Code="AllocationFailed" Message="x"', "exceeding approved x Family Cores quota"])
        | JSON,
        "details": JSON,
        "error": JSON,
    },
)


@given(st.dictionaries(PROPERTIES, JSON, max_size=6))
@settings(max_examples=60)
def test_observe_when_given_any_properties_reads_what_it_can(properties: dict[str, object]) -> None:
    observed = observe_pool({"name": "p", "properties": properties})

    assert observed.state in {"ready", "busy", "failed"}
    assert all(
        AksProvider().update_row(Change(field, value, None)).field == field for field, value in observed.fields.items()
    )


@given(st.dictionaries(PROPERTIES | st.text(max_size=9), JSON, max_size=4))
@settings(max_examples=60)
def test_check_when_given_any_native_fields_finds_with_known_codes(native: dict[str, object]) -> None:
    found = AksProvider().check(make_target(native=native))

    assert {problem.code for problem in found} <= CODES.keys()
    assert all(problem.fix and problem.seen for problem in found)


@given(st.integers(100, 599), CODES_AND_TEXTS | JSON)
@settings(max_examples=60)
def test_failure_when_given_any_body_is_an_error_with_a_known_code(status: int, body: object) -> None:
    error = error_of(read_problem(status, body), "train-aks")

    assert isinstance(error, GpukubeError)
    assert error.diagnostics[0].code in FAILURE_CODES
    assert "\n\n" not in error.render()


def test_codes_when_compared_with_the_table_of_failures_are_all_documented() -> None:
    assert {row.code or row.error.default_code for row in _TABLE} <= FAILURE_CODES.keys()
    assert all(row.fix for row in _TABLE)
