"""Evaluates a tree of CEL.

In scope: what depends on evaluation order: selection, conditions, macros, optional values; calls by their arguments'
types. Out of scope: the functions (`functions`).

As in CEL, `&&` and `||` absorb an error of one side if the other decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.cel.functions import NAMESPACES, overload_of
from gpukube_sandbox.kube.store.cel.syntax import Bind, Call, ListOf, Literal, Loop, MapOf, Name, Node, Select
from gpukube_sandbox.kube.store.cel.values import NONE, CelError, Maybe, equal, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def evaluate(node: Node, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    """Return the value of an expression.

    Args:
        node: The expression.
        names: Values of its variables.

    Raises:
        CelError: A missing key, no such overload, an invalid argument.
    """
    match node:
        case Literal(value):
            return value
        case Name(name):
            return names[name]
        case ListOf(items):
            return [evaluate(item, names) for item in items]
        case MapOf(entries):
            return {evaluate(key, names): evaluate(value, names) for key, value in entries}
        case Bind(name, value, body):
            return evaluate(body, {**names, name: evaluate(value, names)})
        case Select():
            return _select(node, names)
        case Loop():
            return _loop(node, names)
    return _call(node, names)


def _select(node: Select, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    of = evaluate(node.of, names)
    if node.tests:
        held = of.value if isinstance(of, Maybe) else of
        return isinstance(held, dict) and node.field in held
    return _index(of, node.field, optional=node.optional)


def _index(of: Any, key: Any, *, optional: bool) -> Any:  # noqa: ANN401 - any values
    """Return an item; an optional one if the index or its container is optional."""
    if isinstance(of, Maybe):
        return _index(of.value, key, optional=True) if of.exists else NONE
    if isinstance(of, dict):
        found = key in of if isinstance(key, str | int | bool) else False
    elif isinstance(of, list) and type_of(key) == "int":
        found = 0 <= key < len(of)
    else:
        raise CelError("no such overload")
    if optional:
        return Maybe(exists=True, value=of[key]) if found else NONE
    if not found:
        raise CelError(f"no such key: {key}" if isinstance(of, dict) else f"index out of bounds: {key}")
    return of[key]


def _call(node: Call, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    match node.function, node.args:
        case "_&&_" | "_||_", (left, right):
            return _decide([(left, names), (right, names)], decisive=node.function == "_||_")
        case "_?_:_", (test, then, otherwise):
            return evaluate(then if _truth(evaluate(test, names)) else otherwise, names)
        case "_[_]" | "_[?_]", (of, key):
            return _index(evaluate(of, names), evaluate(key, names), optional=node.function == "_[?_]")
        case "_!=_", (left, right):
            return _differ(evaluate(left, names), evaluate(right, names))
        case "or" | "orValue", (other,) if node.target is not None:
            return _or(evaluate(node.target, names), node.function, other, names)
    function, target = qualified(node)
    values = [evaluate(item, names) for item in (*([target] if target is not None else []), *node.args)]
    found = overload_of(function, tuple(map(type_of, values)), method=target is not None)
    if found is None:
        raise CelError("no such overload")
    return found.apply(*values)


def qualified(node: Call) -> tuple[str, Node | None]:
    """Return the full name of a called function, and its target if it is a method."""
    match node.target:
        case Name(namespace) if namespace in NAMESPACES:
            return f"{namespace}.{node.function}", None
    return node.function, node.target


def _differ(left: Any, right: Any) -> bool:  # noqa: ANN401 - any values
    """Return whether two values differ; of different types they do, even where `==` is an error (cel-go, evalNe)."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def _or(optional: Any, function: str, other: Node, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any values
    if not isinstance(optional, Maybe):
        raise CelError("no such overload")
    if not optional.exists:
        return evaluate(other, names)
    return optional if function == "or" else optional.value


def _truth(value: Any) -> bool:  # noqa: ANN401 - any value
    if not isinstance(value, bool):
        raise CelError("no such overload")
    return value


def _decide(tests: Iterable[tuple[Node, Mapping[str, Any]]], *, decisive: bool) -> bool:
    """Return the result of `&&` and `all` (decided by false) or `||` and `exists` (by true); raise the first error."""
    failure: CelError | None = None
    for test, names in tests:
        try:
            if _truth(evaluate(test, names)) is decisive:
                return decisive
        except CelError as problem:
            failure = failure or problem
    if failure:
        raise failure
    return not decisive


def _loop(node: Loop, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    over = evaluate(node.over, names)
    if node.macro in {"optMap", "optFlatMap"}:
        return _on_optional(node, over, names)
    if not isinstance(over, list | dict):
        raise CelError("no such overload")
    scopes = [{**names, node.variable: item} for item in over]
    if node.macro in {"all", "exists"}:
        return _decide([(node.test, scope) for scope in scopes], decisive=node.macro == "exists")
    if node.macro == "exists_one":
        return sum(_passes(node, scope) for scope in scopes) == 1
    if node.macro == "filter":
        return [scope[node.variable] for scope in scopes if _passes(node, scope)]
    return [evaluate(node.result, scope) for scope in scopes if _passes(node, scope)]


def _on_optional(node: Loop, optional: Any, names: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any value
    if not isinstance(optional, Maybe):
        raise CelError("no such overload")
    if not optional.exists:
        return NONE
    found = evaluate(node.result, {**names, node.variable: optional.value})
    return Maybe(exists=True, value=found) if node.macro == "optMap" else found


def _passes(node: Loop, scope: Mapping[str, Any]) -> bool:
    return _truth(evaluate(node.test, scope))
