"""Parses CEL into a tree.

In scope: the grammar, macros, optional selection (`a.?b`, `a[?b]`). Out of scope: names and types (`checking`), values
(`evaluation`); message construction (`Type{...}`), which selectors of devices have no type for.

Source: github.com/google/cel-spec doc/langdef.md; the macros of cel-go's standard environment, ext.Bindings and
OptionalTypes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpukube_sandbox.kube.store.cel.values import INT64

if TYPE_CHECKING:
    from collections.abc import Callable


class CelSyntaxError(Exception):
    """An expression that does not parse."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: bool, int, float, str, bytes, or None."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a map or object: `of.field`, `of.?field`, or `has(of.field)`."""

    of: Node
    field: str
    optional: bool = False
    tests: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method (with `target`), or an operator (its name is "_+_", "!_", "_[_]", "_[?_]", "_?_:_" ...)."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal."""

    entries: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A macro with a variable: all, exists, exists_one, map, filter, optMap, optFlatMap.

    Attributes:
        macro: Its name.
        over: The list, map or optional value.
        variable: Name of the variable.
        test: Condition of all, exists, exists_one, filter, and of a map with three arguments; else true.
        result: What map, optMap and optFlatMap compute; else null.
    """

    macro: str
    over: Node
    variable: str
    test: Node = Literal(True)  # noqa: FBT003 - the value of the expression `true`
    result: Node = Literal(None)


@dataclass(frozen=True, slots=True)
class Bind:
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node


Node: TypeAlias = Literal | Name | Select | Call | ListOf | MapOf | Loop | Bind

_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:\s|//[^\n]*)+)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0x[0-9a-fA-F]+|\d+)(?P<unsigned>[uU]?)
    |(?P<string>(?P<prefix>[rR]?[bB]?|[bB][rR])(?P<body>\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<raw>(?P<rawprefix>[rR][bB]?|[bB][rR])(?P<rawbody>"[^"\n]*"|'[^'\n]*'))
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE,
)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|[abfnrtv\\?\"'`])|\\")
_RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})  # fmt: skip
_WORDS: Final = {"true": True, "false": False, "null": None}
_RELATIONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in")
_LOOPS: Final = {"all": "test", "exists": "test", "exists_one": "test", "existsOne": "test", "filter": "test",
                 "map": "result", "optMap": "result", "optFlatMap": "result"}  # fmt: skip
_LOOP_ARGUMENTS: Final = 2
_DEEPEST: Final = 250
"""Nesting that cel-go's parser allows."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    value: Any = None


def parse(expression: str) -> Node:
    """Parse an expression.

    Raises:
        CelSyntaxError: It is no CEL.
    """
    parser = _Parser(_tokens(expression), expression)
    tree = parser.expression()
    if parser.token.kind != "end":
        raise parser.unexpected()
    return tree


def _error(expression: str, at: int, message: str) -> CelSyntaxError:
    line = expression.count("\n", 0, at) + 1
    column = at - (expression.rfind("\n", 0, at) + 1)
    shown = expression.split("\n")[line - 1]
    return CelSyntaxError(f"ERROR: <input>:{line}:{column + 1}: {message}\n | {shown}\n | {'.' * column}^")


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error(text, at, f"Syntax error: token recognition error at: '{text[at]}'")
        kind, word = str(match.lastgroup), match[0]
        if match["float"]:
            found.append(_Token("literal", word, at, float(word)))
        elif match["int"]:
            number = int(match["int"], 0 if "x" in word else 10)
            found.append(_Token("literal", word, at, number))
        elif match["string"] or match["raw"]:
            prefix = (match["prefix"] or match["rawprefix"] or "").lower()
            found.append(_Token("literal", word, at, _string(text, at, prefix, match["body"] or match["rawbody"])))
        elif match["name"]:
            found.append(_Token("name", word, at))
        elif match["sign"]:
            found.append(_Token(word, word, at))
        elif kind != "space":
            raise _error(text, at, "Syntax error")
        at = match.end()
    found.append(_Token("end", "<EOF>", at))
    return found


def _string(text: str, at: int, prefix: str, quoted: str) -> str | bytes:
    size = 3 if quoted[:3] in {'"""', "'''"} else 1
    inner = quoted[size:-size]
    if "r" not in prefix:
        inner = _ESCAPE.sub(lambda match: _unescaped(text, at, match[1]), inner)
    return inner.encode() if "b" in prefix else inner


def _unescaped(text: str, at: int, code: str | None) -> str:
    if code is None:
        raise _error(text, at, "Syntax error: token recognition error")
    if code[0] in "xuU":
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _ESCAPES.get(code, code)


class _Parser:
    def __init__(self, tokens: list[_Token], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> _Token:
        return self._tokens[self._at]

    def unexpected(self) -> CelSyntaxError:
        found = self.token
        return _error(self._text, found.at, f"Syntax error: mismatched input '{found.text}'")

    def _take(self, kind: str) -> _Token:
        found = self.token
        if found.kind != kind:
            raise self.unexpected()
        self._at += 1
        return found

    def _takes(self, *kinds: str) -> str:
        """Take a token of one of these kinds; return its kind, or "" if it is another."""
        found = self.token
        word = found.text if found.kind == "name" and found.text == "in" else found.kind
        if word not in kinds:
            return ""
        self._at += 1
        return word

    def expression(self) -> Node:
        """Parse `or ? or : expression`, or what binds tighter."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _error(self._text, self.token.at, f"expression recursion limit exceeded: {_DEEPEST}")
        found = self._or()
        if self._takes("?"):
            then = self._or()
            self._take(":")
            found = Call("_?_:_", (found, then, self.expression()))
        self._depth -= 1
        return found

    def _or(self) -> Node:
        return self._chain(self._and, "||")

    def _and(self) -> Node:
        return self._chain(self._relation, "&&")

    def _relation(self) -> Node:
        return self._chain(self._sum, *_RELATIONS)

    def _sum(self) -> Node:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Node:
        return self._chain(self._unary, "*", "/", "%")

    def _chain(self, part: Callable[[], Node], *operators: str) -> Node:
        found = part()
        while operator := self._takes(*operators):
            found = Call("@in" if operator == "in" else f"_{operator}_", (found, part()))
        return found

    def _unary(self) -> Node:
        signs: list[str] = []
        while sign := self._takes("!", "-"):
            if signs and sign not in signs:
                self._at -= 1
                raise self.unexpected()
            signs.append(sign)
        literal = self.token
        found = self._member()
        if signs[-1:] == ["-"] and found == Literal(literal.value) and _is_number(literal.value):
            signs.pop()
            found = Literal(-literal.value)
        if isinstance(found, Literal) and _is_int(found.value) and not INT64[0] <= found.value <= INT64[1]:
            raise _error(self._text, literal.at, "invalid int literal")
        for sign in signs:
            found = Call(f"{sign}_", (found,))
        return found

    def _member(self) -> Node:
        found = self._primary()
        while True:
            if self._takes("."):
                found = self._after_dot(found)
            elif self._takes("["):
                optional = self._takes("?")
                index = self.expression()
                self._take("]")
                found = Call("_[?_]" if optional else "_[_]", (found, index))
            else:
                return found

    def _after_dot(self, of: Node) -> Node:
        optional = bool(self._takes("?"))
        start = self.token
        name = self._take("name").text
        if name in {"in", *_WORDS}:
            self._at -= 1
            raise self.unexpected()
        if optional or not self._takes("("):
            return Select(of, name, optional=optional)
        args = self._until(")")
        if of == Name("cel") and name == "bind":
            return self._bind(start, args)
        if name in _LOOPS:
            return self._loop(start, of, args)
        return Call(name, args, of)

    def _bind(self, start: _Token, args: tuple[Node, ...]) -> Node:
        match args:
            case (Name(name), value, body):
                return Bind(name, value, body)
        raise _error(self._text, start.at, "cel.bind() variable names must be simple identifiers")

    def _loop(self, start: _Token, over: Node, args: tuple[Node, ...]) -> Node:
        macro = start.text.replace("existsOne", "exists_one")
        match args:
            case (Name(variable), body) if _LOOPS[start.text] == "test":
                return Loop(macro, over, variable, test=body)
            case (Name(variable), body):
                return Loop(macro, over, variable, result=body)
            case (Name(variable), test, body) if macro == "map":
                return Loop(macro, over, variable, test=test, result=body)
        if len(args) == _LOOP_ARGUMENTS:
            raise _error(self._text, start.at, "argument is not an identifier")
        return Call(start.text, args, over)

    def _primary(self) -> Node:
        start = self.token
        if start.kind == "literal":
            self._at += 1
            return Literal(start.value)
        if self._takes("("):
            found = self.expression()
            self._take(")")
            return found
        if self._takes("["):
            return ListOf(self._until("]"))
        if self._takes("{"):
            return self._map()
        self._takes(".")  # a leading dot names the root, which is where all names are
        name = self._take("name").text
        if name in _WORDS:
            return Literal(_WORDS[name])
        if name in _RESERVED:
            self._at -= 1
            raise _error(self._text, start.at, f"reserved identifier: {name}")
        if not self._takes("("):
            return Name(name)
        args = self._until(")")
        if name == "has":
            return self._has(start, args)
        return Call(name, args)

    def _has(self, start: _Token, args: tuple[Node, ...]) -> Node:
        match args:
            case (Select(of, field, optional=False, tests=False),):
                return Select(of, field, tests=True)
        raise _error(self._text, start.at, "invalid argument to has() macro")

    def _until(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._takes(end):
            if found:
                self._take(",")
                if end != ")" and self._takes(end):
                    break
            found.append(self.expression())
        return tuple(found)

    def _map(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._takes("}"):
            if entries:
                self._take(",")
                if self._takes("}"):
                    break
            key = self.expression()
            self._take(":")
            entries.append((key, self.expression()))
        return MapOf(tuple(entries))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)
