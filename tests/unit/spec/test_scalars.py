"""YAML 1.2 core scalars."""

from __future__ import annotations

import math
from datetime import date

import pytest
import yaml

from gpukube.spec.source.scalars import TooManyDigitsError, other_reading, parse_plain

CASES: dict[str, object] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "FALSE": False,
    "no": "no",
    "on": "on",
    "yes": "yes",
    "y": "y",
    "nUll": "nUll",
    "10": 10,
    "-7": -7,
    "+7": 7,
    "010": 10,
    "0o10": 8,
    "0x1F": 31,
    "0b1": "0b1",
    "1_000": "1_000",
    "1:30": "1:30",
    "1.30": 1.3,
    ".5": 0.5,
    "5.": 5.0,
    "1e3": 1000.0,
    "-.inf": -math.inf,
    ".": ".",
    "-": "-",
    "1.2.3": "1.2.3",
    "1g.5gb": "1g.5gb",
    "2026-01-01": "2026-01-01",
}


@pytest.mark.parametrize(("text", "value"), CASES.items())
def test_plain_scalar_when_parsed_then_follows_yaml_1_2_core(text: str, value: object) -> None:
    parsed = parse_plain(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_plain_scalar_when_nan_then_is_a_float() -> None:
    parsed = parse_plain(".nan")
    assert isinstance(parsed, float)
    assert math.isnan(parsed)


def test_other_reading_when_a_text_of_digits_is_absurdly_long_then_nothing_is_computed() -> None:
    text = f"1_{'0' * 400}"
    assert other_reading(text, parse_plain(text)) == ""


@pytest.mark.parametrize("text", ["9" * 301, "0x" + "f" * 300, "1." + "0" * 300])
def test_plain_number_when_absurdly_long_then_is_refused(text: str) -> None:
    with pytest.raises(TooManyDigitsError):
        parse_plain(text)


# What YAML 1.1 makes of it: the rules of yaml.org/type, which PyYAML's own tables repeat (see below).
OTHERWISE = {
    "no": "the boolean false",
    "on": "the boolean true",
    "Yes": "the boolean true",
    "OFF": "the boolean false",
    "0777": "the number 511",
    "010": "the number 8",
    "-0777": "the number -511",
    "08": "a string",
    "1_0": "the number 10",
    "0_": "the number 0",
    "1_000.5": "the number 1000.5",
    "1e3": "a string",
    "1.5e3": "a string",
    "0b11": "the number 3",
    "0o17": "a string",
    "0x_ff": "the number 255",
    "1:30": "the number 90",
    "-1:30": "the number -90",
    "190:20:30": "the number 685230",
    "1:30.5": "the number 90.5",
    "2024-01-01": "a date",
    "2024-01-01T10:00:00Z": "a date",
    "2024-1-1 10:00:00 +01:00": "a date",
}
ALIKE = (
    *("", "~", "null", "NULL", "true", "False", "y", "n", "nothing", "one", "+", ".", "1.2.3", "1g.5gb"),
    *("0", "10", "-7", "+7", "07", "00", "0x1F", "1.30", ".5", "5.", "1.5e+3", ".inf", "-.INF", ".nan", "1:75"),
    *("111122223333", "2024-01-1", "20240101", "0b"),
)


@pytest.mark.parametrize(("text", "seen"), OTHERWISE.items())
def test_plain_scalar_when_yaml_1_1_reads_it_otherwise_then_says_how(text: str, seen: str) -> None:
    assert other_reading(text, parse_plain(text)) == seen


@pytest.mark.parametrize("text", ALIKE)
def test_plain_scalar_when_both_versions_agree_then_says_nothing(text: str) -> None:
    assert other_reading(text, parse_plain(text)) == ""


@pytest.mark.parametrize("text", [*OTHERWISE, *ALIKE])
def test_other_reading_when_compared_with_a_reader_of_yaml_1_1_then_is_what_that_reads(text: str) -> None:
    older, ours = read_by_yaml_1_1(text), parse_plain(text)
    same = type(older) is type(ours) and (older == ours or older != older)  # noqa: PLR0124 - not a number
    assert other_reading(text, ours) == ("" if same else described(older))


def read_by_yaml_1_1(text: str) -> object:
    value: object = yaml.safe_load(f"[{text}\n]")
    return value[0] if isinstance(value, list) and value else None


def described(value: object) -> str:
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {value:g}"
    return "a date" if isinstance(value, date) else "a string"
