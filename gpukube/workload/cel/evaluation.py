"""Evaluates CEL expressions: true, false, an error, or unknown.

Pure. In scope: operators, macros, and the functions that selectors of devices use. Out of scope: the variables.

What is outside of this subset is unknown, never a guess. `&&` and `||` ignore an error, or an unknown value, on one
side if the other side decides.

Source: google/cel-spec doc/langdef.md; google/cel-go interpreter/ and ext/strings.go; kubernetes/apiserver
pkg/cel/library.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from gpukube.workload.cel.syntax import MACROS, Call, Field, Item, Listing, Literal, Mapping, Name
from gpukube.workload.cel.values import (
    BeyondSubset,
    CelError,
    Option,
    Partial,
    Quantity,
    Semver,
    Unnamed,
    parse_semver,
    quantity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Mapping as Variables

    from gpukube.workload.cel.syntax import Expression

_BITS: Final = 2**63
_SHARED_REGEX: Final = re.compile(
    r"(?:[^][\\()*+?{]|\\[.dDwWsSbB^$|()\[\]{}*+?/_-]|\((?:\?:)?(?!\?)|\)(?![*+?{])|[*+?]\??(?![*+?{])|\{|\[[^][:\\&~|]+\])*"
)
"""Regular expressions that mean the same in RE2 and in `re`: no repeated groups, classes without escapes."""
_MOST_REPEATS: Final = 4
"""Repeats in a regular expression; the time grows with their power."""


def evaluate(node: Expression, variables: Variables[str, object]) -> object:
    """Return the value of an expression.

    Raises:
        CelError: It fails.
        BeyondSubset: It is unknown.
    """
    match node:
        case Literal(value):
            return value
        case Name(name):
            if name not in variables:
                raise CelError(f"undeclared reference to {name}")
            return variables[name]
        case Field(of, name, optional):
            return _entry(evaluate(of, variables), name, optional=optional)
        case Item(of, key, optional):
            return _entry(evaluate(of, variables), evaluate(key, variables), optional=optional)
        case Listing(items):
            return [evaluate(item, variables) for item in items]
        case Mapping(entries):
            return Partial({str(_text(evaluate(key, variables))): evaluate(value, variables) for key, value in entries})
    return _call(node, variables)


def _call(node: Call, variables: Variables[str, object]) -> object:
    match node:
        case Call("&&" | "||", (left, right)):
            return _decide(((left, variables), (right, variables)), decisive=node.name == "||")
        case Call("?:", (condition, chosen, other)):
            return evaluate(chosen if _bool(evaluate(condition, variables)) else other, variables)
        case Call("has", (Field(of, name, _),), None):
            return _has(evaluate(of, variables), name)
        case Call("bind", (Name(name), value, body), Name("cel")):
            return evaluate(body, {**variables, name: evaluate(value, variables)})
        case Call(name, (Name(variable), *bodies), of) if of is not None and name in MACROS and bodies:
            return _macro(name, evaluate(of, variables), variable, bodies, variables)
        case Call(name, arguments, Name("optional")):
            return _optional(name, [evaluate(argument, variables) for argument in arguments])
    return _apply(node, variables)


def _apply(node: Call, variables: Variables[str, object]) -> object:
    """Call an operator, a function or a method with values."""
    values = [evaluate(argument, variables) for argument in node.arguments]
    if node.of is not None:
        if isinstance(node.of, Name) and node.of.name not in variables:
            raise BeyondSubset(f"{node.of.name}.{node.name}()")
        values.insert(0, evaluate(node.of, variables))
        table = _METHODS
    else:
        table = _FUNCTIONS
    function = table.get((node.name, len(values)))
    if function is None:
        raise BeyondSubset(f"{node.name}()")
    return function(*values)


# logic


def _decide(sides: Iterable[tuple[Expression, Variables[str, object]]], *, decisive: bool) -> bool:
    """Return the decisive value if one side has it, and the other value if none has.

    Raises:
        CelError, BeyondSubset: Of the sides that fail or are unknown, when none decides: an unknown one may yet.
    """
    problems: list[CelError | BeyondSubset] = []
    for expression, variables in sides:
        try:
            if _bool(evaluate(expression, variables)) is decisive:
                return decisive
        except (CelError, BeyondSubset) as problem:
            problems.append(problem)
    if problems:
        raise min(problems, key=lambda one: isinstance(one, CelError))
    return not decisive


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError("no such overload")


def _macro(
    name: str, items: object, variable: str, bodies: list[Expression], variables: Variables[str, object]
) -> object:
    if name in ("optMap", "optFlatMap"):
        raise BeyondSubset(f"{name}()")
    listed = _listed(items)
    if name == "map":
        if len(bodies) > 1:
            listed = [item for item in listed if _bool(evaluate(bodies[0], {**variables, variable: item}))]
        return [evaluate(bodies[-1], {**variables, variable: item}) for item in listed]
    if name == "filter":
        return [item for item in listed if _bool(evaluate(bodies[0], {**variables, variable: item}))]
    if name in ("exists_one", "existsOne"):
        return sum(_bool(evaluate(bodies[0], {**variables, variable: item})) for item in listed) == 1
    return _decide(((bodies[0], {**variables, variable: item}) for item in listed), decisive=name == "exists")


def _listed(items: object) -> list[object]:
    if isinstance(items, list):
        return items
    if isinstance(items, Partial):
        if items.is_open:
            raise BeyondSubset("all attributes of a device, which only the node shows")
        return list(items.known)
    raise CelError("no such overload")


# maps, and optional values


def _entry(of: object, key: object, *, optional: bool) -> object:
    if isinstance(of, Option):
        return Option(tuple(_entry(value, key, optional=False) for value in of.held if _has(value, key)))
    if optional:
        return Option((_entry(of, key, optional=False),)) if _has(of, key) else Option()
    if isinstance(of, Partial):
        return of.get(key)
    if isinstance(of, list) and isinstance(key, int) and not isinstance(key, bool):
        if 0 <= key < len(of):
            return of[key]
        raise CelError(f"index out of bounds: {key}")
    raise CelError("no such overload")


def _has(of: object, key: object) -> bool:
    if isinstance(of, Partial):
        return of.has(key)
    if isinstance(of, list) and isinstance(key, int):
        return 0 <= key < len(of)
    raise CelError("no such overload")


def _optional(name: str, values: list[object]) -> Option:
    match name, values:
        case "none", []:
            return Option()
        case "of", [value]:
            return Option((value,))
    raise BeyondSubset(f"optional.{name}()")


def _held(of: object) -> tuple[object, ...]:
    if not isinstance(of, Option):
        raise CelError("no such overload")
    return of.held


def _or_value(of: object, default: object) -> object:
    return (*_held(of), default)[0]


def _or(of: object, other: object) -> object:
    _held(other)
    return of if _held(of) else other


def _value(of: object) -> object:
    if not (held := _held(of)):
        raise CelError("optional.none() dereference")
    return held[0]


# comparisons


def equal(one: object, other: object) -> bool:
    """Return whether two values are equal.

    Raises:
        CelError: Versions and quantities are only comparable with their own kind.
        BeyondSubset: That is unknown.
    """
    if isinstance(one, Unnamed) or isinstance(other, Unnamed):
        raise BeyondSubset("an identifier that only the node shows")
    if isinstance(one, Semver):
        if isinstance(other, Semver):
            return one.compare(other) == 0
        raise CelError("no such overload")
    if isinstance(one, Quantity):
        if isinstance(other, Quantity):
            return one.compare(other) == 0
        raise CelError("no such overload")
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Partial | Option) or isinstance(other, Partial | Option):
        raise BeyondSubset("comparing maps")
    if isinstance(one, bool) or isinstance(other, bool):
        return type(one) is type(other) and one == other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and one == other


def _differs(one: object, other: object) -> bool:
    """Return whether two values are not equal; values that cannot be compared are not."""
    try:
        return not equal(one, other)
    except CelError:
        return True


def _contains(item: object, items: object) -> bool:
    if isinstance(items, Partial):
        return items.has(item)
    if not isinstance(items, list):
        raise CelError("no such overload")
    return any(not _differs(item, other) for other in items)


def _order(one: object, other: object) -> int:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
    if numbers or (isinstance(one, str) and isinstance(other, str)) or (type(one) is type(other) is bool):
        left: Any = one
        return int(left > other) - int(left < other)
    raise CelError("no such overload")


def _compare(one: object, other: object) -> int:
    match one, other:
        case Semver(), Semver():
            return one.compare(other)
        case Quantity(), Quantity():
            return one.compare(other)
    raise CelError("no such overload")


# numbers and text


def _number(value: object) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    raise CelError("no such overload")


def _bounded(value: float) -> int | float:
    if isinstance(value, int) and not -_BITS <= value < _BITS:
        raise CelError("integer overflow")
    return value


def _plus(one: object, other: object) -> object:
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *other]
    if type(one) is not type(other):
        raise CelError("no such overload")
    return _bounded(_number(one) + _number(other))


def _arithmetic(sign: str) -> Callable[[object, object], object]:
    def calculate(one: object, other: object) -> object:
        left, right = _number(one), _number(other)
        if type(left) is not type(right):
            raise CelError("no such overload")
        if sign == "-":
            return _bounded(left - right)
        if sign == "*":
            return _bounded(left * right)
        if isinstance(left, float) or isinstance(right, float):
            raise BeyondSubset("division of fractions")
        if right == 0:
            raise CelError("division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return _bounded(quotient if sign == "/" else left - right * quotient)

    return calculate


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Unnamed):
        raise BeyondSubset("an identifier that only the node shows")
    raise CelError("no such overload")


def _size(value: object) -> int:
    if isinstance(value, Partial):
        return len(_listed(value))
    if isinstance(value, str | list):
        return len(value)
    raise CelError("no such overload")


def _matches(value: object, pattern: object) -> bool:
    text, written = _text(value), _text(pattern)
    if "\n" in text:
        raise BeyondSubset("text of several lines")
    return _regex(written).search(text) is not None


@lru_cache(maxsize=256)
def _regex(written: str) -> re.Pattern[str]:
    inner = written.removeprefix("(?i)")
    if not _SHARED_REGEX.fullmatch(inner) or sum(map(inner.count, "*+{")) > _MOST_REPEATS:
        raise BeyondSubset(f"the regular expression {written}")
    try:
        return re.compile(inner, re.ASCII | (re.IGNORECASE if inner != written else re.NOFLAG))
    except re.error:
        raise BeyondSubset(f"the regular expression {written}") from None


def _ascii(value: object, change: Callable[[str], str]) -> str:
    return "".join(change(char) if char.isascii() else char for char in _text(value))


def _index(value: object, of: object) -> int:
    return _text(value).find(_text(of))


def _part(value: object, begin: object, end: object = None) -> str:
    text = _text(value)
    first, last = _number(begin), len(text) if end is None else _number(end)
    if not (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last <= len(text)):
        raise CelError("index out of range")
    return text[first:last]


def _split(value: object, by: object) -> list[object]:
    text, separator = _text(value), _text(by)
    return list(text.split(separator) if separator else text)


def _version(value: object, normalize: object = False) -> Semver:  # noqa: FBT002 - as in CEL
    return parse_semver(_text(value), normalize=_bool(normalize))


def _is(read: Callable[..., object]) -> Callable[..., bool]:
    def check(*values: object) -> bool:
        try:
            read(*values)
        except CelError:
            return False
        return True

    return check


def _semver_number(index: int) -> Callable[[object], int]:
    def get(value: object) -> int:
        if not isinstance(value, Semver):
            raise CelError("no such overload")
        return value.numbers[index]

    return get


def _amount(value: object) -> Quantity:
    if not isinstance(value, Quantity):
        raise CelError("no such overload")
    return value


def _shifted(one: object, other: object, sign: int) -> Quantity:
    by = quantity(str(other)) if isinstance(other, int) and not isinstance(other, bool) else _amount(other)
    amount = _amount(one).amount + sign * by.amount
    return Quantity(amount, amount)


def _as_integer(value: object) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return _amount(value).amount.numerator


def _is_integer(value: object) -> bool:
    amount = _amount(value).amount
    return amount.denominator == 1 and -_BITS <= amount.numerator < _BITS


def _sign(value: object) -> int:
    return _amount(value).compare(quantity("0"))


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise BeyondSubset("string()")


def _int(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII):
        return int(_bounded(int(value)))
    if isinstance(value, str):
        raise CelError("type conversion error")
    raise BeyondSubset("int()")


def _negated(value: object) -> object:
    return _bounded(-_number(value))


_FUNCTIONS: Final[dict[tuple[str, int], Callable[..., object]]] = {
    ("==", 2): equal,
    ("!=", 2): _differs,
    ("<", 2): lambda one, other: _order(one, other) < 0,
    ("<=", 2): lambda one, other: _order(one, other) <= 0,
    (">", 2): lambda one, other: _order(one, other) > 0,
    (">=", 2): lambda one, other: _order(one, other) >= 0,
    ("in", 2): _contains,
    ("+", 2): _plus,
    **{(sign, 2): _arithmetic(sign) for sign in "-*/%"},
    ("!_", 1): lambda value: not _bool(value),
    ("-_", 1): _negated,
    ("size", 1): _size,
    ("dyn", 1): lambda value: value,
    ("int", 1): _int,
    ("string", 1): _string,
    ("quantity", 1): lambda value: quantity(_text(value)),
    ("isQuantity", 1): _is(lambda value: quantity(_text(value))),
    ("semver", 1): _version,
    ("semver", 2): _version,
    ("isSemver", 1): _is(_version),
    ("isSemver", 2): _is(_version),
    ("matches", 2): _matches,
}
_METHODS: Final[dict[tuple[str, int], Callable[..., object]]] = {
    ("size", 1): _size,
    ("matches", 2): _matches,
    ("contains", 2): lambda value, part: _text(part) in _text(value),
    ("startsWith", 2): lambda value, part: _text(value).startswith(_text(part)),
    ("endsWith", 2): lambda value, part: _text(value).endswith(_text(part)),
    ("lowerAscii", 1): lambda value: _ascii(value, str.lower),
    ("upperAscii", 1): lambda value: _ascii(value, str.upper),
    ("trim", 1): lambda value: _text(value).strip(),
    ("replace", 3): lambda value, old, new: _text(value).replace(_text(old), _text(new)),
    ("split", 2): _split,
    ("indexOf", 2): _index,
    ("substring", 2): _part,
    ("substring", 3): _part,
    ("compareTo", 2): _compare,
    ("isGreaterThan", 2): lambda one, other: _compare(one, other) > 0,
    ("isLessThan", 2): lambda one, other: _compare(one, other) < 0,
    ("major", 1): _semver_number(0),
    ("minor", 1): _semver_number(1),
    ("patch", 1): _semver_number(2),
    ("add", 2): lambda one, other: _shifted(one, other, 1),
    ("sub", 2): lambda one, other: _shifted(one, other, -1),
    ("sign", 1): _sign,
    ("isInteger", 1): _is_integer,
    ("asInteger", 1): _as_integer,
    ("orValue", 2): _or_value,
    ("or", 2): _or,
    ("value", 1): _value,
    ("hasValue", 1): lambda of: bool(_held(of)),
}
