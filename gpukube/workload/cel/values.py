"""The values of CEL that Kubernetes adds, and those of which only a part is known.

Pure. In scope: semantic versions, quantities, optional values, maps with unknown entries. Out of scope: functions.

Source: kubernetes/apiserver pkg/cel/library/{semverlib,quantity}.go; semver.org, 11 (precedence).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.workload.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_PART: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_SEMVER: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PART}))?(?:\+{_PART})?", re.ASCII)


class CelError(Exception):
    """The expression fails: the scheduler then places the pod nowhere."""


class BeyondSubset(Exception):
    """What the expression is worth is unknown, with what is unknown in it."""


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...] = ()

    def compare(self, other: Semver) -> int:
        """Return -1, 0, or 1."""
        one, two = self._key(), other._key()
        return (one > two) - (one < two)

    def _key(self) -> tuple[object, ...]:
        parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.before)
        return self.numbers, not parts, parts


def parse_semver(text: str, *, normalize: bool = False) -> Semver:
    """Parse a version.

    Args:
        text: The version.
        normalize: Whether to accept "v1", "1.2", and leading zeros.

    Raises:
        CelError: It is not one.
    """
    if normalize:
        numbers, rest = re.fullmatch(r"([^+-]*)(.*)", text.removeprefix("v"), re.DOTALL).groups()  # type: ignore[union-attr]  # matches every text
        padded = [part.lstrip("0") or "0" if part else part for part in numbers.split(".")]
        text = ".".join([*padded, "0", "0"][: max(3, len(padded))]) + rest
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise CelError(f"{text!r} is not a version")
    major, minor, patch, before = found.groups()
    return Semver((int(major), int(minor), int(patch)), tuple(before.split(".")) if before else ())


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, or the range in which one is."""

    least: Fraction
    most: Fraction

    @property
    def amount(self) -> Fraction:
        """The amount.

        Raises:
            BeyondSubset: Only its range is known.
        """
        if self.least != self.most:
            raise BeyondSubset("an amount that only the node shows")
        return self.least

    def compare(self, other: Quantity) -> int:
        """Return -1, 0, or 1.

        Raises:
            BeyondSubset: The ranges do not tell.
        """
        if self.most < other.least:
            return -1
        if self.least > other.most:
            return 1
        one, two = self.amount, other.amount
        return (one > two) - (one < two)


def quantity(text: str) -> Quantity:
    """Parse a quantity.

    Raises:
        CelError: It is not one.
    """
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise CelError(str(error)) from None
    return Quantity(amount, amount)


@dataclass(frozen=True, slots=True)
class Option:
    """An optional value: none, or one in a tuple."""

    held: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A text of which only the node shows how it reads: equal numbers stand for equal texts."""

    number: int


class _Unknown:
    """A value that exists, but is unknown."""


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Partial:
    """A map, perhaps with more entries than are known.

    Attributes:
        known: Entries; UNKNOWN is a value that is not known.
        is_open: Whether there may be others.
        absent: Keys that it does not have in any case.
    """

    known: Mapping[str, object]
    is_open: bool = False
    absent: frozenset[str] = frozenset()

    def has(self, key: object) -> bool:
        """Return whether there is an entry.

        Raises:
            BeyondSubset: That is unknown.
        """
        if key in self.known:
            return True
        if self.is_open and key not in self.absent:
            raise BeyondSubset(f"{key}, which only the node shows")
        return False

    def get(self, key: object) -> object:
        """Return the value of an entry.

        Raises:
            CelError: There is none.
            BeyondSubset: It is unknown.
        """
        if not self.has(key):
            raise CelError(f"no such key: {key}")
        value = self.known[str(key)]
        if value is UNKNOWN:
            raise BeyondSubset(f"{key}, which only the node shows")
        return value


@dataclass(frozen=True, slots=True)
class Domains(Partial):
    """Attributes or capacity by domain; one that a device does not have is empty (dynamic-resource-allocation/cel)."""

    def get(self, key: object) -> object:
        """Return the entries of a domain."""
        return self.known.get(str(key), Partial({}))
