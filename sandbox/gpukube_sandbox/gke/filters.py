"""Filters of Compute Engine's lists.

In scope: parsing an expression, and matching a resource against it. Out of scope: lists (`market`, `quotas`,
`reservations`). Needs no Google library.

Source: the comment on `filter` of every list in Compute Engine's discovery document: either terms by AIP-160
(`guestCpus > 90`, `name = a*`, `labels.owner:*`, with AND, OR, NOT, and parentheses; OR binds more tightly), or terms
with regular expressions (`region eq .*west1`), one alone or several in parentheses each. The error message:
googleapis/google-api-go-client#406, googleapis/nodejs-compute#48.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpukube_sandbox.gke.wire.answers import Json, invalid

if TYPE_CHECKING:
    from collections.abc import Collection

Matcher = Callable[[Json], bool]

_FIELD = r"[A-Za-z][\w]*(?:\.[\w-]+)*"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_BY_PATTERN = re.compile(rf"\s*(?P<field>{_FIELD})\s+(?P<way>eq|ne)\s+(?P<value>{_QUOTED}|[^\s()]+)\s*")
_IN_PARENTHESES = re.compile(rf"\s*\((?P<term>\s*{_FIELD}\s+(?:eq|ne)\s+(?:{_QUOTED}|[^\s()]+)\s*)\)\s*")
_TOKEN = re.compile(rf"\s*(?:(?P<mark>[()])|(?P<sign>!=|<=|>=|[=<>:])|(?P<word>{_QUOTED}|[^\s()=<>:!\"']+))")
_JOINS = frozenset({"AND", "OR", "NOT"})
_SIGNS = frozenset({"=", "!=", "<", ">", "<=", ">=", ":"})
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
}


def parse_filter(text: str, fields: Collection[str]) -> Matcher:
    """Parse a filter; an empty one matches everything.

    Args:
        text: As sent.
        fields: Fields that resources of the list can have.

    Raises:
        GoogleError: 400 for an invalid filter.
    """
    if not text.strip():
        return lambda _item: True
    try:
        return _patterns(text, fields) or _Terms(text, fields).read()
    except (ValueError, IndexError, re.error) as error:
        raise invalid(f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.") from error


def _known(field: str, fields: Collection[str]) -> str:
    if field.partition(".")[0] not in fields:
        raise ValueError(field)
    return field


def _values(item: object, field: str) -> list[object]:
    """Return a resource's values of a field: none if it is not set, several below a list."""
    found: list[object] = [item]
    for name in field.split("."):
        below = [one.get(name) for one in found if isinstance(one, dict)]
        found = [each for one in below for each in (one if isinstance(one, list) else [one]) if each is not None]
    return found


def _patterns(text: str, fields: Collection[str]) -> Matcher | None:
    """Parse terms with regular expressions; None if the text has none."""
    alone = _BY_PATTERN.fullmatch(text)
    terms = [alone] if alone else []
    at = 0
    while not alone and (inside := _IN_PARENTHESES.match(text, at)):
        found = _BY_PATTERN.fullmatch(inside["term"])
        if found is None:
            raise ValueError(text)
        terms.append(found)
        at = inside.end()
    if not terms:
        return None
    if not alone and at < len(text):
        raise ValueError(text)
    matchers = [_by_pattern(_known(term["field"], fields), term["way"], _bare(term["value"])) for term in terms]
    return lambda item: all(fits(item) for fits in matchers)


def _by_pattern(field: str, way: str, value: str) -> Matcher:
    pattern = re.compile(value)

    def fits(item: Json) -> bool:
        found = any(pattern.fullmatch(_text(one)) for one in _values(item, field))
        return found == (way == "eq")

    return fits


def _bare(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Terms:
    """Parser of an AIP-160 expression.

    Args:
        text: The whole expression.
        fields: Fields that resources can have.
    """

    def __init__(self, text: str, fields: Collection[str]) -> None:
        self._fields = fields
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(text)
            self._tokens.append(found["mark"] or found["sign"] or found["word"])
            at = found.end()
        self._at = 0

    def read(self) -> Matcher:
        """Parse the whole expression.

        Raises:
            ValueError, IndexError: The expression is invalid.
        """
        fits = self._all_of()
        if self._at < len(self._tokens):
            raise ValueError(self._tokens[self._at])
        return fits

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _all_of(self) -> Matcher:
        parts = [self._any_of()]
        while self._next() not in {"", ")"}:
            if self._next() == "AND":
                self._take()
            parts.append(self._any_of())
        return lambda item: all(fits(item) for fits in parts)

    def _any_of(self) -> Matcher:
        parts = [self._one()]
        while self._next() == "OR":
            self._take()
            parts.append(self._one())
        return lambda item: any(fits(item) for fits in parts)

    def _one(self) -> Matcher:
        if self._next() == "NOT":
            self._take()
            fits = self._one()
            return lambda item: not fits(item)
        if self._next() == "(":
            self._take()
            fits = self._all_of()
            if self._take() != ")":
                raise ValueError(self._tokens)
            return fits
        field, sign, value = self._take(), self._take(), self._take()
        if not re.fullmatch(_FIELD, field) or sign not in _SIGNS or value in _JOINS | _SIGNS | {"(", ")"}:
            raise ValueError(field)
        return _compared(_known(field, self._fields), sign, _bare(value))


def _compared(field: str, sign: str, value: str) -> Matcher:
    if sign in _ORDERS:
        limit, compare = float(value), _ORDERS[sign]
        return lambda item: any(isinstance(one, int | float) and compare(one, limit) for one in _values(item, field))
    if (sign, value) == (":", "*"):
        return lambda item: bool(_values(item, field))
    # The effect of ":" on texts is undocumented: here it matches a substring.
    pattern = ".*".join(re.escape(part) for part in value.split("*"))
    like = re.compile(f".*{pattern}.*" if sign == ":" else pattern)

    def fits(item: Json) -> bool:
        found = any(_equals(one, value) or like.fullmatch(_text(one)) is not None for one in _values(item, field))
        return found != (sign == "!=")

    return fits


def _equals(found: object, value: str) -> bool:
    """Return whether two numbers are equal in any notation."""
    try:
        return isinstance(found, int | float) and not isinstance(found, bool) and found == float(value)
    except ValueError:
        return False
