"""Whatever AWS answers and whatever stands under `eks:`, nothing of the pure half falls over."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.meanings import Problem
from gpukube.core.values import Change
from gpukube_eks import EksProvider
from gpukube_eks.codes import CODES, FAILURE_CODES
from gpukube_eks.facts.meanings import error_of
from gpukube_eks.pool.native import MANAGED, NATIVE, REFUSED
from gpukube_eks.pool.observe import observe_group, observe_leftover
from gpukube_eks.pool.template import contains
from tests.unit.gpukube_eks.samples import eks_target

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
)
TOPS = sorted({path.partition(".")[0] for path in NATIVE} | MANAGED.keys() | REFUSED.keys())
MEMBERS = st.sampled_from([*TOPS, "status", "health"])
TEMPLATE = st.dictionaries(st.sampled_from(["BlockDeviceMappings", "UserData", "InstanceType"]), JSON, max_size=3)


@given(st.dictionaries(MEMBERS, JSON, max_size=6), TEMPLATE)
@settings(max_examples=60)
def test_observe_when_given_any_group_reads_what_it_can(group: dict[str, object], data: dict[str, object]) -> None:
    observed = observe_group(group, data, {})

    assert observed.state in {"ready", "busy", "failed"}
    assert all(
        EksProvider().update_row(Change(field, value, None)).field == field for field, value in observed.fields.items()
    )


@given(st.dictionaries(st.sampled_from(["LaunchTemplateName", "Tags"]), JSON))
@settings(max_examples=30)
def test_leftover_when_given_any_template_is_failed(template: dict[str, object]) -> None:
    assert observe_leftover(template).state == "failed"


@given(st.dictionaries(st.sampled_from(TOPS) | st.text(max_size=9), JSON, max_size=4))
@settings(max_examples=60)
def test_check_when_given_any_native_fields_finds_with_known_codes(native: dict[str, object]) -> None:
    found = EksProvider().check(eks_target(native=native))

    assert {problem.code for problem in found} <= CODES.keys()
    assert all(problem.fix and problem.seen for problem in found)


@given(
    st.sampled_from(["ResourceInUseException", "AsgInstanceLaunchFailures", ""]) | st.text(), st.text(), st.booleans()
)
@settings(max_examples=60)
def test_failure_when_given_any_code_is_an_error_with_a_known_code(code: str, text: str, is_late: bool) -> None:  # noqa: FBT001
    assert error_of(Problem(code, text, is_late=is_late), "train-eks").diagnostics[0].code in FAILURE_CODES


@given(JSON)
def test_contains_when_compared_with_itself_holds(value: object) -> None:
    assert contains(value, value)
