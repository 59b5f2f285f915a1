"""Functions, methods and operators of CEL, with the types of their arguments.

In scope: the standard functions, strings, lists, sets, regular expressions, quantities, versions, optional values.
Out of scope: what has its own evaluation order or scope (`evaluation`); times, URLs and addresses (`UNKNOWN`).

Source: cel-go's standard library, ext.{Strings,Sets}, OptionalTypes; k8s.io/apiserver pkg/cel/library.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpukube_sandbox.kube.store.cel.values import (
    INT64,
    NONE,
    QUANTITY,
    SEMVER,
    CelError,
    Maybe,
    Quantity,
    Semver,
    equal,
    is_version,
    normalized,
    parse_version,
)
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Overload(NamedTuple):
    """One signature of a function.

    Attributes:
        parameters: Types of the arguments, a method's target first; "dyn" takes any.
        result: Type of the result.
        apply: Computes it; raises CelError.
        method: Called as `target.name(...)`.
    """

    parameters: tuple[str, ...]
    result: str
    apply: Callable[..., Any]
    method: bool = False


UNKNOWN: Final = frozenset({"bytes", "cidr", "duration", "format", "ip", "isCIDR", "isIP", "isURL", "timestamp", "url"})
"""Functions that Kubernetes has and this emulation does not."""


def _whole(number: float) -> int:
    if not INT64[0] <= number <= INT64[1]:
        raise CelError("integer overflow")
    return int(number)


def _divided(left: int, right: int) -> int:
    """Divide as Go does, towards zero."""
    if not right:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return _whole(quotient if (left < 0) == (right < 0) else -quotient)


def _rest(left: int, right: int) -> int:
    return left - right * _divided(left, right)


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(parse_quantity(text))
    except ApiProblem as problem:
        raise CelError(problem.message) from None


def _succeeds(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except CelError:
        return False
    return True


def _compared(left: Any, right: Any) -> int:  # noqa: ANN401 - two numbers, quantities or versions
    return int(left > right) - int(left < right)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as problem:
        raise CelError(f"error parsing regexp: {problem}") from None


def _found(text: str, pattern: str) -> str:
    match = _pattern(pattern).search(text)
    return match[0] if match else ""


def _all_found(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches = [match[0] for match in _pattern(pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]


def _number(text: str, kind: type[int | float]) -> Any:  # noqa: ANN401 - an int or a float
    try:
        return kind(text)
    except ValueError:
        raise CelError(f"type conversion error from 'string' to '{'int' if kind is int else 'double'}'") from None


def _in(value: Any, among: Iterable[Any]) -> bool:  # noqa: ANN401 - any value
    return any(_equals(value, item) for item in among)


def _equals(value: Any, item: Any) -> bool:  # noqa: ANN401 - any values
    try:
        return equal(value, item)
    except CelError:
        return False


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        raise CelError(f"index out of range: {start}")
    return text[start:last]


def _character(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _split(text: str, by: str, limit: int = -1) -> list[str]:
    if not limit:
        return []
    parts = text.split(by) if by else list(text)
    return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], by.join(parts[limit - 1 :])]


def _extreme(choose: Callable[[list[Any]], Any], items: list[Any]) -> Any:  # noqa: ANN401 - an item
    if not items:
        raise CelError("min/max called on an empty list")
    return choose(items)


def _value(optional: Maybe) -> Any:  # noqa: ANN401 - any value
    if not optional.exists:
        raise CelError("optional.none() dereference")
    return optional.value


def _of_versions(text: str, *options: bool) -> Semver:
    return parse_version(normalized(text) if any(options) else text)


def _one(parameter: str, result: str, apply: Callable[..., Any]) -> tuple[Overload, ...]:
    return (Overload((parameter,), result, apply),)


def _methods(*signatures: tuple[str, str, Callable[..., Any]]) -> tuple[Overload, ...]:
    """Return methods whose parameters are given as words."""
    return tuple(Overload(tuple(words.split()), result, apply, method=True) for words, result, apply in signatures)


def _ordered(holds: Callable[[int], bool]) -> tuple[Overload, ...]:
    pairs = ["int int", "double double", "int double", "double int", "string string", "bytes bytes", "bool bool"]
    return tuple(Overload(tuple(pair.split()), "bool", lambda a, b: holds(_compared(a, b))) for pair in pairs)


def _operators(*signatures: tuple[str, Callable[..., Any]]) -> tuple[Overload, ...]:
    """Return operators on two operands of the result's type."""
    return tuple(Overload((kind, kind), kind, apply) for kind, apply in signatures)


FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = {
    "_==_": (Overload(("dyn", "dyn"), "bool", equal),),
    "_<_": _ordered(lambda sign: sign < 0),
    "_<=_": _ordered(lambda sign: sign <= 0),
    "_>_": _ordered(lambda sign: sign > 0),
    "_>=_": _ordered(lambda sign: sign >= 0),
    "_+_": _operators(
        ("int", lambda a, b: _whole(a + b)), ("double", lambda a, b: a + b), ("string", lambda a, b: a + b),
        ("bytes", lambda a, b: a + b), ("list", lambda a, b: a + b),
    ),
    "_-_": _operators(("int", lambda a, b: _whole(a - b)), ("double", lambda a, b: a - b)),
    "_*_": _operators(("int", lambda a, b: _whole(a * b)), ("double", lambda a, b: a * b)),
    "_/_": _operators(("int", _divided), ("double", lambda a, b: a / b if b else math.copysign(math.inf, a))),
    "_%_": _operators(("int", _rest)),
    "-_": (*_one("int", "int", lambda a: _whole(-a)), *_one("double", "double", lambda a: -a)),
    "!_": _one("bool", "bool", lambda a: not a),
    "@in": (Overload(("dyn", "list"), "bool", _in), Overload(("dyn", "map"), "bool", lambda key, held: key in held)),
    "size": tuple(
        Overload((kind,), "int", len, method=method)
        for kind in ("string", "bytes", "list", "map")
        for method in (False, True)
    ),
    "int": (
        *_one("int", "int", int), *_one("double", "int", _whole), *_one("string", "int", lambda a: _number(a, int)),
    ),
    "double": (
        *_one("double", "double", float), *_one("int", "double", float),
        *_one("string", "double", lambda a: _number(a, float)),
    ),
    "string": (
        *_one("string", "string", str), *_one("int", "string", str), *_one("double", "string", lambda a: f"{a:g}"),
        *_one("bool", "string", lambda a: "true" if a else "false"), *_one("bytes", "string", lambda a: a.decode()),
    ),
    "bool": (*_one("bool", "bool", bool), *_one("string", "bool", lambda a: a in {"true", "t", "1", "TRUE", "True"})),
    "dyn": _one("dyn", "dyn", lambda a: a),
    "matches": (
        Overload(("string", "string"), "bool", lambda a, b: bool(_pattern(b).search(a))),
        *_methods(("string string", "bool", lambda a, b: bool(_pattern(b).search(a)))),
    ),
    "contains": _methods(("string string", "bool", lambda a, b: b in a)),
    "startsWith": _methods(("string string", "bool", str.startswith)),
    "endsWith": _methods(("string string", "bool", str.endswith)),
    "lowerAscii": _methods(("string", "string", lambda a: a.encode().lower().decode())),
    "upperAscii": _methods(("string", "string", lambda a: a.encode().upper().decode())),
    "trim": _methods(("string", "string", str.strip)),
    "charAt": _methods(("string int", "string", _character)),
    "replace": _methods(
        ("string string string", "string", str.replace), ("string string string int", "string", str.replace)
    ),
    "split": _methods(("string string", "list", _split), ("string string int", "list", _split)),
    "substring": _methods(("string int", "string", _substring), ("string int int", "string", _substring)),
    "join": _methods(("list", "string", "".join), ("list string", "string", lambda a, b: b.join(a))),
    "find": _methods(("string string", "string", _found)),
    "findAll": _methods(
        ("string string", "list", _all_found), ("string string int", "list", _all_found),
    ),
    "indexOf": _methods(
        ("string string", "int", str.find), ("string string int", "int", str.find),
        ("list dyn", "int", lambda a, b: next((at for at, item in enumerate(a) if _equals(item, b)), -1)),
    ),
    "lastIndexOf": _methods(
        ("string string", "int", str.rfind),
        ("list dyn", "int", lambda a, b: max((at for at, item in enumerate(a) if _equals(item, b)), default=-1)),
    ),
    "isSorted": _methods(("list", "bool", lambda a: all(one <= other for one, other in itertools.pairwise(a)))),
    "sum": _methods(("list", "dyn", sum)),
    "min": _methods(("list", "dyn", lambda a: _extreme(min, a))),
    "max": _methods(("list", "dyn", lambda a: _extreme(max, a))),
    "sets.contains": (Overload(("list", "list"), "bool", lambda a, b: all(_in(item, a) for item in b)),),
    "sets.intersects": (Overload(("list", "list"), "bool", lambda a, b: any(_in(item, a) for item in b)),),
    "sets.equivalent": (
        Overload(
            ("list", "list"), "bool", lambda a, b: all(_in(item, a) for item in b) and all(_in(item, b) for item in a)
        ),
    ),
    "quantity": _one("string", QUANTITY, _quantity),
    "isQuantity": _one("string", "bool", lambda a: _succeeds(_quantity, a)),
    "sign": (Overload((QUANTITY,), "int", lambda a: _compared(a.amount, 0), method=True),),
    "isInteger": _methods((QUANTITY, "bool", lambda a: a.amount == a.amount.to_integral_value())),
    "asInteger": _methods((QUANTITY, "int", lambda a: _whole(int(a.amount)))),
    "asApproximateFloat": _methods((QUANTITY, "double", lambda a: float(a.amount))),
    "add": _methods(
        (f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.amount + b.amount)),
        (f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.amount + b)),
    ),
    "sub": _methods(
        (f"{QUANTITY} {QUANTITY}", QUANTITY, lambda a, b: Quantity(a.amount - b.amount)),
        (f"{QUANTITY} int", QUANTITY, lambda a, b: Quantity(a.amount - b)),
    ),
    "semver": (Overload(("string",), SEMVER, _of_versions), Overload(("string", "bool"), SEMVER, _of_versions)),
    "isSemver": (
        *_one("string", "bool", is_version),
        Overload(("string", "bool"), "bool", lambda a, b: _succeeds(lambda text: _of_versions(text, b), a)),
    ),
    "major": _methods((SEMVER, "int", lambda a: a.numbers[0])),
    "minor": _methods((SEMVER, "int", lambda a: a.numbers[1])),
    "patch": _methods((SEMVER, "int", lambda a: a.numbers[2])),
    "isGreaterThan": _methods(
        (f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.amount > b.amount),
        (f"{SEMVER} {SEMVER}", "bool", lambda a, b: a > b),
    ),
    "isLessThan": _methods(
        (f"{QUANTITY} {QUANTITY}", "bool", lambda a, b: a.amount < b.amount),
        (f"{SEMVER} {SEMVER}", "bool", lambda a, b: a < b),
    ),
    "compareTo": _methods(
        (f"{QUANTITY} {QUANTITY}", "int", lambda a, b: _compared(a.amount, b.amount)),
        (f"{SEMVER} {SEMVER}", "int", _compared),
    ),
    "optional.of": _one("dyn", "optional_type", lambda a: Maybe(exists=True, value=a)),
    "optional.none": (Overload((), "optional_type", lambda: NONE),),
    "optional.ofNonZeroValue": _one("dyn", "optional_type", lambda a: Maybe(exists=True, value=a) if a else NONE),
    "hasValue": _methods(("optional_type", "bool", lambda a: a.exists)),
    "value": _methods(("optional_type", "dyn", _value)),
}  # fmt: skip
"""Name -> its signatures; functions of a namespace have their full name."""

NAMESPACES: Final = frozenset(name.partition(".")[0] for name in FUNCTIONS if "." in name)
"""Namespaces of functions, such as "sets"."""


def overload_of(function: str, kinds: tuple[str, ...], *, method: bool) -> Overload | None:
    """Return the signature that takes arguments of these types; "dyn" may be any type."""
    for found in FUNCTIONS.get(function, ()):
        if found.method is method and len(found.parameters) == len(kinds):
            pairs = zip(kinds, found.parameters, strict=True)
            if all(kind == expected or "dyn" in {kind, expected} for kind, expected in pairs):
                return found
    return None
