"""Values of CEL that Python has no type for: versions, quantities, optional values, errors; and equality.

Source: k8s.io/apiserver pkg/cel/{quantity,semver}.go; github.com/blang/semver/v4; cel-go common/types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from decimal import Decimal

QUANTITY: Final = "kubernetes.Quantity"
SEMVER: Final = "kubernetes.Semver"
INT64: Final = (-(2**63), 2**63 - 1)
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?",
    re.ASCII,
)


class CelError(Exception):
    """An error while evaluating: a missing key, no such overload, an invalid argument."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A semantic version; its build is ignored in comparisons."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...] = ()

    @property
    def _key(self) -> tuple[object, ...]:
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.before)
        return (*self.numbers, not self.before, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._key == other._key

    def __lt__(self, other: Semver) -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)


def is_version(text: str) -> bool:
    """Return whether a text is a version by semver.org 2.0.0."""
    return bool(_SEMVER.fullmatch(text))


def parse_version(text: str) -> Semver:
    """Parse a version.

    Raises:
        CelError: It is none.
    """
    found = _SEMVER.fullmatch(text)
    if not found:
        raise CelError("No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid version {text}")  # noqa: PLR2004 - two dots
    major, minor, patch, before, _ = found.groups()
    return Semver((int(major), int(minor), int(patch)), tuple(before.split(".")) if before else ())


def normalized(text: str) -> str:
    """Return a version with three numbers without leading zeros and "v", as `semver(text, true)` reads it."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [part if len(part) <= 1 else _without_zeros(part) for part in parts]
    if len(parts) < 3 and any(sign in parts[-1] for sign in "+-"):  # noqa: PLR2004 - three numbers
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _without_zeros(part: str) -> str:
    short = part.lstrip("0")
    return short if short[:1].isdigit() else f"0{short}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount, such as 40Gi."""

    amount: Decimal


@dataclass(frozen=True, slots=True)
class Maybe:
    """An optional value: `value` if `exists`."""

    exists: bool
    value: Any = None


NONE: Final = Maybe(exists=False)


def type_of(value: Any) -> str:  # noqa: ANN401, PLR0911 - any value of CEL
    """Return the name of a value's type."""
    match value:
        case None:
            return "null_type"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case list():
            return "list"
        case dict():
            return "map"
    return {Quantity: QUANTITY, Semver: SEMVER}.get(type(value), "optional_type")


def equal(left: Any, right: Any) -> bool:  # noqa: ANN401 - any values of CEL
    """Return whether two values are equal; values of different types are not, except numbers.

    Raises:
        CelError: The left one is a quantity or version, and the right one is of another type.
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, Quantity | Semver) and type(left) is not type(right):
        raise CelError("no such overload")
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(equal(one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    if isinstance(left, Maybe) and isinstance(right, Maybe):
        return left.exists == right.exists and (not left.exists or equal(left.value, right.value))
    kinds = {type_of(left), type_of(right)}
    return (len(kinds) == 1 or kinds == {"int", "double"}) and bool(left == right)
