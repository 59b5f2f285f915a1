"""Quantities as Kubernetes reads them: the tables are those of apimachinery's own tests (pkg/api/resource)."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.workload.quantity import cpu_text, memory_text, parse_quantity, whole

MOST = 2**63 - 1
READ: dict[object, Fraction | int] = {
    # As they stand in manifests, and as Kubernetes' own tests write them.
    0: 0,
    8: 8,
    0.5: Fraction(1, 2),
    "0": 0,
    "0n": 0,
    "0Ki": 0,
    "1Ki": 1024,
    "7Mi": 7 * 1024**2,
    "6Gi": 6 * 1024**3,
    "5Ti": 5 * 1024**4,
    "4Pi": 4 * 1024**5,
    "3Ei": 3 * 1024**6,
    "5n": Fraction(5, 10**9),
    "4u": Fraction(4, 10**6),
    "3m": Fraction(3, 1000),
    "9": 9,
    "50k": 50_000,
    "7M": 7 * 10**6,
    "6G": 6 * 10**9,
    "300T": 3 * 10**14,
    "2P": 2 * 10**15,
    "1E": 10**18,
    "1E-3": Fraction(1, 1000),
    "1e3": 1000,
    "1E6": 10**6,
    "1.3E+6": 1_300_000,
    "0.5e-2": Fraction(5, 1000),
    "100.035k": 100_035,
    "0.0005k": Fraction(1, 2),
    "0.05000": Fraction(5, 100),
    "1.01E": 101 * 10**16,
    "-3": -3,
    "+3": 3,
    # Rounded away from zero, and ended.
    "3.001n": Fraction(4, 10**9),
    "1.1E-9": Fraction(2, 10**9),
    "0.0000000001": Fraction(1, 10**9),
    "-0.9n": Fraction(-1, 10**9),
    "0.00000012345": Fraction(124, 10**9),
    "9Ei": MOST,
    "9223372036854775807Ki": MOST,
    "12E": 12 * 10**18,
    # Fractions of binary units, and what people should not write.
    "100.035Ki": Fraction(10243584, 100),
    "0.5Mi": 524288,
    "0.025Ti": Fraction(274877906944, 10),
    "0.000000000001Ki": Fraction(2, 10**9),
    ".001": Fraction(1, 1000),
    "1.": 1,
    "1.G": 10**9,
    " 1": 1,  # JSON's decoder trims
    "1 ": 1,
}
REFUSED: tuple[object, ...] = (
    *("", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", "1Zi", "1K", "1 Gi"),
    *("m", ".", "-", "1e", "0x10", "\u0661", "inf", "nan", "1e1000000000", float("inf"), float("nan"), 1e400),
    *(True, False, None, [], {}),
)


@pytest.mark.parametrize("value", READ)
def test_quantity_when_kubernetes_reads_it_then_the_same_number(value: object) -> None:
    assert parse_quantity(value) == READ[value]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_quantity_when_it_is_none_then_value_error(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity|has an exponent"):
        parse_quantity(value)


@pytest.mark.parametrize(
    ("value", "number"), [("3", 3), ("3000m", 3), ("3Ki", 3072), ("3e0", 3), (3.0, 3), ("0.5", None), ("1500m", None)]
)
def test_quantity_when_numerically_whole_then_told(value: object, number: int | None) -> None:
    assert whole(parse_quantity(value)) == number


@given(st.text() | st.integers() | st.floats())
def test_quantity_when_anything_then_a_number_or_value_error(value: object) -> None:
    with suppress(ValueError):
        assert isinstance(parse_quantity(value), Fraction)


def test_texts_when_written_for_people_then_the_usual_units() -> None:
    assert [cpu_text(value) for value in (0, 500, 3000, 3500)] == ["0", "500m", "3", "3500m"]
    sizes = (0, 1000, 1024, 500 * 1024**2, 3 * 1024**3 // 2, 53 * 1024**3 + 5, 2 * 1024**4)
    assert [memory_text(size) for size in sizes] == ["0", "1000", "1Ki", "500Mi", "1536Mi", "53Gi", "2Ti"]


@given(st.integers(0, 2**62))
def test_texts_when_read_back_then_never_more(size: int) -> None:
    assert size * 9 / 10 <= parse_quantity(memory_text(size)) <= size
    assert parse_quantity(cpu_text(size)) * 1000 == size
