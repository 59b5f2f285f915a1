"""Kubernetes quantities: parses "500m", "50Gi", or 8 into numbers, and formats numbers for readers.

Pure. In scope: the syntax. Out of scope: what a pod requests (`requests`), and checking it (`lint`).

Custom code, because no installed library parses all of them. lightkube's `parse_quantity` belongs to its own layer
(gpukube.cluster.kube), rejects "5n", "4u", and "1E3", accepts "1Zi", and rounds to thousandths. The sandbox has its own
parser on purpose.

Source: kubernetes/apimachinery pkg/api/resource/quantity.go (`ParseQuantity`) and suffix.go.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Final

_NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_FORM: Final = re.compile(rf"([+-]?)({_NUMBER})(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?[0-9]+))", re.ASCII)
_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {
    letter: Fraction(1000) ** power
    for power, letter in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_NANO: Final = 10**9
_MOST_BINARY: Final = 2**63 - 1
_MOST_EXPONENT: Final = 1000
"""Maximum exponent; larger ones would only use up memory: Kubernetes' own numbers end far below."""


def parse_quantity(value: object) -> Fraction:
    """Parse a quantity as the API server does.

    Digits beyond a billionth are rounded away from zero, and values with a binary suffix are capped at 2^63-1. A digit
    is required: like the schemas of CRDs, this rejects "m" and ".", which the API server's decoder reads as 0.

    Args:
        value: Value in a manifest: a string or a number.

    Raises:
        ValueError: It is not a quantity.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004 - an error in the manifest, not in the program
    return _parse(str(value).strip())


@lru_cache(maxsize=4096)  # the pods of a chart request the same few amounts
def _parse(text: str) -> Fraction:
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, number, binary, decimal, exponent = found.groups()
    amount = Fraction(f"{number}0") if number.endswith(".") else Fraction(number)
    if binary:
        amount = min(amount * _BINARY[binary], Fraction(_MOST_BINARY))
    elif exponent:
        if abs(int(exponent)) > _MOST_EXPONENT:
            raise ValueError(f"{text!r} has an exponent beyond {_MOST_EXPONENT}")
        amount *= Fraction(10) ** int(exponent)
    else:
        amount *= _DECIMAL[decimal]
    amount = Fraction(ceil(amount * _NANO), _NANO)
    return -amount if sign == "-" else amount


def whole(quantity: Fraction) -> int | None:
    """Return a quantity as an integer, "3000m" as 3; None if it has a fraction."""
    return quantity.numerator if quantity.denominator == 1 else None


def cpu_text(millicores: int) -> str:
    """Format CPUs for readers: "3", "500m", "3500m"."""
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


def memory_text(size: int) -> str:
    """Format bytes with the largest binary suffix that leaves at least ten units, rounded down: "50Gi", "500Mi"."""
    for suffix, unit in reversed(_BINARY.items()):
        if size >= 10 * unit or (size >= unit and size % unit == 0):
            return f"{size // unit}{suffix}"
    return str(size)
