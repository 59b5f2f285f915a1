"""YAML 1.2 core scalars."""

from __future__ import annotations

import math

import pytest

from gpukube.spec.scalars import TooManyDigitsError, parse_plain

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


@pytest.mark.parametrize("text", ["9" * 301, "0x" + "f" * 300, "1." + "0" * 300])
def test_plain_number_when_absurdly_long_then_is_refused(text: str) -> None:
    with pytest.raises(TooManyDigitsError):
        parse_plain(text)
