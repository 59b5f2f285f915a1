"""Checks names and types of an expression before it is stored.

In scope: undeclared names, unknown fields of the device, calls that no signature takes, the type of the result.
Out of scope: the cost of an expression, which Kubernetes limits too.

Source: k8s.io/dynamic-resource-allocation cel/compile.go; cel-go checker/errors.go.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.store.cel.evaluation import qualified
from gpukube_sandbox.kube.store.cel.functions import FUNCTIONS, UNKNOWN, overload_of
from gpukube_sandbox.kube.store.cel.syntax import (
    Bind,
    Call,
    CelSyntaxError,
    ListOf,
    Literal,
    Loop,
    MapOf,
    Name,
    Node,
    Select,
)
from gpukube_sandbox.kube.store.cel.values import QUANTITY, type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE: Final = "kubernetes.DRADevice"
_FIELDS: Final = {
    "driver": "string",
    "attributes": "map(map(dyn))",
    "capacity": f"map(map({QUANTITY}))",
    "allowMultipleAllocations": "bool",
}
_NUMBERS: Final = frozenset({"int", "double"})


def check(node: Node, names: Mapping[str, str]) -> str:
    """Return the type of an expression.

    Args:
        node: The expression.
        names: Types of its variables; a map's may name its values' type, as in "map(map(dyn))".

    Raises:
        CelSyntaxError: A name or type is wrong.
    """
    match node:
        case Literal(value):
            return type_of(value)
        case Name(name):
            if name not in names:
                raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')")
            return names[name]
        case ListOf(items):
            _alike([check(item, names) for item in items])
            return "list"
        case MapOf(entries):
            _alike([check(key, names) for key, _ in entries])
            _alike([check(value, names) for _, value in entries])
            return "map"
        case Bind(name, value, body):
            return check(body, {**names, name: check(value, names)})
        case Select():
            return _select(node, names)
        case Loop():
            return _loop(node, names)
    return _call(node, names)


def _alike(kinds: list[str]) -> None:
    """Reject literals of lists and maps that mix types."""
    known = [kind for kind in kinds if kind != "dyn"]
    for kind in known:
        if kind != known[0]:
            raise CelSyntaxError(f"expected type '{known[0]}' but found '{kind}'")


def _content(kind: str) -> str:
    """Return the type of a map's values."""
    return kind[len("map(") : -1] if kind.startswith("map(") else "dyn"


def _plain(kind: str) -> str:
    return "map" if kind.startswith("map(") else kind


def _select(node: Select, names: Mapping[str, str]) -> str:
    of = check(node.of, names)
    if of == DEVICE:
        if node.field not in _FIELDS:
            raise CelSyntaxError(f"undefined field '{node.field}'")
        found = _FIELDS[node.field]
    elif _plain(of) in {"map", "dyn", "optional_type"}:
        found = _content(of)
    else:
        raise CelSyntaxError(f"type '{of}' does not support field selection")
    if node.tests:
        return "bool"
    return "optional_type" if node.optional or of == "optional_type" else found


def _loop(node: Loop, names: Mapping[str, str]) -> str:
    over = _plain(check(node.over, names))
    optional = node.macro in {"optMap", "optFlatMap"}
    if over not in ({"optional_type", "dyn"} if optional else {"list", "map", "dyn"}):
        text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        raise CelSyntaxError(text)
    scope = {**names, node.variable: "string" if over == "map" else "dyn"}
    _expect(node.test, scope, "bool")
    check(node.result, scope)
    if optional:
        return "optional_type"
    return "list" if node.macro in {"map", "filter"} else "bool"


def _expect(node: Node, names: Mapping[str, str], kind: str) -> None:
    found = check(node, names)
    if found not in {kind, "dyn"}:
        raise CelSyntaxError(f"expected type '{kind}' but found '{found}'")


def _call(node: Call, names: Mapping[str, str]) -> str:
    match node.function, node.args:
        case "_&&_" | "_||_", (left, right):
            for side in (left, right):
                _expect(side, names, "bool")
            return "bool"
        case "_?_:_", (test, then, otherwise):
            _expect(test, names, "bool")
            kinds = {check(then, names), check(otherwise, names)}
            return kinds.pop() if len(kinds) == 1 else "dyn"
        case "_[_]" | "_[?_]", (of, key):
            kind, index = check(of, names), check(key, names)
            if _plain(kind) not in {"map", "list", "dyn", "optional_type"}:
                text = f"found no matching overload for '{node.function}' applied to '({kind}, {index})'"
                raise CelSyntaxError(text)
            return "optional_type" if "?" in node.function or kind == "optional_type" else _content(kind)
        case "_==_" | "_!=_", (left, right):
            return _equality(node.function, check(left, names), check(right, names))
        case "or" | "orValue", (other,) if node.target is not None:
            _expect(node.target, names, "optional_type")
            kind = check(other, names)
            return "optional_type" if node.function == "or" else kind
    return _function(node, names)


def _equality(function: str, left: str, right: str) -> str:
    kinds = {_plain(left), _plain(right)} - {"dyn"}
    if len(kinds) > 1 and not kinds <= _NUMBERS:
        raise CelSyntaxError(f"found no matching overload for '{function}' applied to '({left}, {right})'")
    return "bool"


def _function(node: Call, names: Mapping[str, str]) -> str:
    name, target = qualified(node)
    if name in UNKNOWN:
        raise CelSyntaxError(f"the sandbox does not emulate the function {name}")
    if name not in FUNCTIONS:
        raise CelSyntaxError(f"undeclared reference to '{name}' (in container '')")
    parts = (*([target] if target is not None else []), *node.args)
    kinds = tuple(_plain(check(part, names)) for part in parts)
    found = overload_of(name, kinds, method=target is not None)
    if found is None:
        shown = f"{kinds[0]}.({', '.join(kinds[1:])})" if target is not None else f"({', '.join(kinds)})"
        raise CelSyntaxError(f"found no matching overload for '{name}' applied to '{shown}'")
    if name == "matches":
        _check_pattern(node.args[-1])
    return found.result


def _check_pattern(node: Node) -> None:
    match node:
        case Literal(str(pattern)):
            try:
                re.compile(pattern)
            except re.error as problem:
                raise CelSyntaxError(f"invalid matches argument: {problem}") from None
