"""YAML 1.2 core schema: what an unquoted scalar means.

Lives here: text -> null, boolean, integer, float or string. Must not live here: positions, diagnostics.

The rules are those of YAML 1.2.2 section 10.3.2, not PyYAML's YAML 1.1: `no`, `on` and `1:30` are strings,
`010` is ten, `0o10` is eight.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.spec.positions import Scalar

__all__ = ["TooManyDigitsError", "parse_plain"]

_WORDS: Final[dict[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_PREFIXED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_BEGINS: Final = frozenset("-+.0123456789")
_MOST_DIGITS: Final = 300
"""Longer numbers mean nothing here, and converting them costs time that grows with the square of the length."""


class TooManyDigitsError(ValueError):
    """A number of more than 300 digits."""


def parse_plain(text: str) -> Scalar:
    """Say what an unquoted scalar means.

    Raises:
        TooManyDigitsError: A number longer than any that can be meant.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _parse_number(text) if text[0] in _NUMBER_BEGINS else text


def _parse_number(text: str) -> Scalar:
    """Parse what begins like a number; a string when it is none after all."""
    if _INTEGER.fullmatch(text):
        return int(_bounded(text))
    if _PREFIXED.fullmatch(text):
        return int(_bounded(text), 0)
    if _FLOAT.fullmatch(text):
        return float(_bounded(text))
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


def _bounded(text: str) -> str:
    if len(text) > _MOST_DIGITS:
        raise TooManyDigitsError
    return text
