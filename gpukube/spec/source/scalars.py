"""Parses unquoted scalars by the YAML 1.2 core schema.

In scope: text -> null, boolean, integer, float, or string; how YAML 1.1 reads the same text. Out of scope: positions,
diagnostics.

The rules are those of YAML 1.2.2 section 10.3.2, not PyYAML's YAML 1.1: `no`, `on` and `1:30` are strings,
`010` is ten, `0o10` is eight. Other tools that read the same file (kubectl, Helm, PyYAML, Ansible) follow 1.1 in part;
`other_reading` returns values that they read differently.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpukube.spec.source.positions import Scalar

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
"""Maximum digits of a number: longer ones are never meaningful, and converting them takes quadratic time."""


class TooManyDigitsError(ValueError):
    """A number of more than 300 digits."""


def parse_plain(text: str) -> Scalar:
    """Return the value of an unquoted scalar.

    Raises:
        TooManyDigitsError: The number has too many digits.
    """
    if text in _WORDS:
        return _WORDS[text]
    return _parse_number(text) if text[0] in _NUMBER_BEGINS else text


def _parse_number(text: str) -> Scalar:
    """Parse a text that starts like a number; return a string if it is not one."""
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


_OLD_WORDS: Final[dict[str, str]] = {
    written: f"the boolean {meaning}"
    for word, meaning in (("yes", "true"), ("on", "true"), ("no", "false"), ("off", "false"))
    for written in (word, word.capitalize(), word.upper())
}
"""YAML 1.1 booleans (yaml.org/type/bool.html), without y and n, which PyYAML and Go parsers also read as strings."""
_OLD_BEGINS: Final = _NUMBER_BEGINS | frozenset("yYnNoO")
_AGREED: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?|[-+]?\.[0-9]+|0x[0-9a-fA-F]+")
"""Numbers that both versions read the same way."""
_OLD_SEXAGESIMAL: Final = re.compile(r"(?P<sign>[-+]?)(?P<parts>[0-9][0-9_]*(:[0-5]?[0-9])+)(?P<rest>\.[0-9_]*)?")
_OLD_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?"
    r"([ \t]*(Z|[-+][0-9]{1,2}(:?[0-9]{2})?))?"
)
_OLD_INTEGERS: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (re.compile(r"[-+]?0b[01_]+"), 2),
    (re.compile(r"[-+]?0[0-7_]+"), 8),
    (re.compile(r"[-+]?[1-9][0-9_]*"), 10),
    (re.compile(r"[-+]?0x[0-9a-fA-F_]+"), 16),
)
"""YAML 1.1 integers (yaml.org/type/int.html): form -> base."""
_OLD_FLOAT: Final = re.compile(r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+][0-9]+)?")
"""YAML 1.1 floats (yaml.org/type/float.html): without a point and a sign in the exponent it is a string."""


def other_reading(text: str, value: Scalar) -> str:
    """Describe how YAML 1.1 reads an unquoted scalar, if that differs.

    Args:
        text: The text as written.
        value: The result of `parse_plain`.

    Returns:
        "the boolean false", "the number 511", "a date", "a string"; "" if both agree.
    """
    if not text or text[0] not in _OLD_BEGINS or text in _WORDS or _AGREED.fullmatch(text):
        return ""
    if text in _OLD_WORDS:
        return _OLD_WORDS[text]
    if _OLD_DATE.fullmatch(text):
        return "a date"
    number = _old_number(text)
    if isinstance(value, str):
        return "" if number is None else f"the number {number:g}"
    if number is None:
        return "" if _SPECIAL.fullmatch(text) else "a string"
    return "" if number == value else f"the number {number:g}"


def _old_number(text: str) -> float | None:
    """Parse a number by the rules of YAML 1.1."""
    if len(text) > _MOST_DIGITS:
        return None
    if found := _OLD_SEXAGESIMAL.fullmatch(text):
        total = 0.0
        for part in found["parts"].replace("_", "").split(":"):
            total = total * 60 + int(part)
        total += float(f"0{found['rest'].replace('_', '')}0") if found["rest"] else 0
        return -total if found["sign"] == "-" else total
    for form, base in _OLD_INTEGERS:
        if form.fullmatch(text):
            digits = re.sub("0b|0x", "", text).replace("_", "")
            return float(int(digits, base)) if digits.lstrip("+-") else 0.0
    return float(text.replace("_", "")) if _OLD_FLOAT.fullmatch(text) else None
