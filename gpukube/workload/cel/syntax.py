"""Parses CEL expressions.

Pure. In scope: tokens and precedence. Out of scope: what an expression is worth (`evaluation`).

Custom code, because the libraries on PyPI cannot parse optional fields (`.?profile.orValue("")`), which selectors of
devices need, or provide no syntax tree.

Source: google/cel-spec doc/langdef.md ("Syntax"); optional syntax: google/cel-go cel/library.go (`OptionalTypes`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.workload.cel.values import BeyondSubset

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\n\r\f]+|//[^\n]*)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)(?P<unsigned>[uU]?)
    |(?P<prefix>[rR][bB]|[bB][rR]|[rRbB])?(?P<quote>\"\"\"|'''|"|')
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<mark>\|\||&&|[=!<>]=|[][(){}.,:?<>!+*/%-])""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<sign>[abfnrtv\\?\"'`])|[xX](?P<byte>[0-9a-fA-F]{2})|u(?P<four>[0-9a-fA-F]{4})"
    r"|U(?P<eight>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<bad>.?))",
    re.DOTALL | re.ASCII,
)
_SIGNS: Final = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))
_BINARY: Final = (("||",), ("&&",), ("<", "<=", ">=", ">", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))
"""Operators by precedence, the loosest first; all associate to the left."""
_RESERVED: Final = frozenset(
    ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
     "namespace", "return", "var", "void", "while", "in")
)  # fmt: skip
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 40
"""Nesting of an expression that is still evaluated; real selectors have less than ten levels."""
_LONGEST: Final = 100
"""Operators in a row, and fields in a row, that are still evaluated."""
_MOST_INT: Final = 2**63


class CelSyntaxError(ValueError):
    """The text is not a CEL expression, with the offset where that shows.

    Args:
        why: Human-readable.
        offset: Of the first wrong character.
    """

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a string, true, false, or null."""

    value: object


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """`of.name`, or `of.?name`."""

    of: Expression
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """`of[key]`, or `of[?key]`."""

    of: Expression
    key: Expression
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a method, a macro, or an operator by its sign; the conditional is "?:"."""

    name: str
    arguments: tuple[Expression, ...]
    of: Expression | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """`[a, b]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """`{a: b}`."""

    entries: tuple[tuple[Expression, Expression], ...]


Expression: TypeAlias = Literal | Name | Field | Item | Call | Listing | Mapping


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "literal", "name", "mark", "end"
    text: str
    value: object
    offset: int


@lru_cache(maxsize=1024)
def parse_cel(text: str) -> Expression:
    """Parse an expression.

    Raises:
        CelSyntaxError: It is not one.
        BeyondSubset: It has more than this parser supports: bytes, messages, optional elements of lists, much nesting.
    """
    return _Parser(list(_tokens(text))).whole()


def unknown_names(node: Expression, known: frozenset[str]) -> Iterator[str]:
    """Yield the variables of an expression that are not known; macros define theirs."""
    match node:
        case Name(name) if name not in known:
            yield name
        case Call("bind", (Name(name), value, body), Name("cel")):
            yield from unknown_names(value, known)
            yield from unknown_names(body, known | {name})
        case Call(macro, (Name(name), *bodies), of) if of is not None and macro in MACROS and bodies:
            yield from unknown_names(of, known)
            for body in bodies:
                yield from unknown_names(body, known | {name})
        case _:
            for part in _parts(node):
                yield from unknown_names(part, known)


def _parts(node: Expression) -> Iterator[Expression]:
    match node:
        case Field(of, _, _):
            yield of
        case Item(of, key, _):
            yield from (of, key)
        case Listing(items):
            yield from items
        case Mapping(entries):
            for entry in entries:
                yield from entry
        case Call(_, arguments, of):
            yield from arguments
            if of is not None and not (isinstance(of, Name) and of.name in _NAMESPACES):
                yield of


_NAMESPACES: Final = frozenset({"cel", "optional", "math", "sets", "base64", "strings", "ip", "cidr"})
"""Names before functions, which are no variables (google/cel-go ext, kubernetes/apiserver pkg/cel/library)."""
MACROS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "map", "filter", "optMap", "optFlatMap"})
"""Methods whose first argument is a variable that they define."""


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise CelSyntaxError(f"{text[at]!r} is not allowed here", at)
        start, at = at, match.end()
        if match["quote"]:
            value, at = _string(text, match)
            found.append(_Token("literal", text[start:at], value, start))
        elif match["float"]:
            found.append(_Token("literal", match["float"], float(match["float"]), start))
        elif match["int"]:
            if match["unsigned"]:
                raise BeyondSubset("unsigned integers")
            found.append(_Token("literal", match["int"], int(match["int"], 16 if "x" in match["int"] else 10), start))
        elif match["name"]:
            found.append(_Token("name", match["name"], None, start))
        elif match["mark"]:
            found.append(_Token("mark", match["mark"], None, start))
    return [*found, _Token("end", "the end", None, len(text))]


def _string(text: str, begin: re.Match[str]) -> tuple[str, int]:
    quote, prefix = begin["quote"], (begin["prefix"] or "").lower()
    at, raw = begin.end(), "r" in prefix
    parts = []
    while not text.startswith(quote, at):
        if at >= len(text) or (len(quote) == 1 and text[at] in "\r\n"):
            raise CelSyntaxError("the string is not closed", begin.start())
        if text[at] == "\\" and not raw:
            escape = _ESCAPE.match(text, at)
            if escape is None or escape["bad"] is not None:
                raise CelSyntaxError(f"{text[at : at + 2]!r} is not an escape", at)
            parts.append(_unescaped(escape))
            at = escape.end()
        else:
            parts.append(text[at])
            at += 1
    if "b" in prefix:
        raise BeyondSubset("bytes")
    return "".join(parts), at + len(quote)


def _unescaped(escape: re.Match[str]) -> str:
    if escape["sign"]:
        return _SIGNS[escape["sign"]]
    if escape["octal"]:
        return chr(int(escape["octal"], 8))
    code = int(escape["byte"] or escape["four"] or escape["eight"], 16)
    if code >= 0x110000 or 0xD800 <= code < 0xE000:  # noqa: PLR2004 - the end of Unicode, and its surrogates
        raise CelSyntaxError("the escape is not a character", escape.start())
    return chr(code)


class _Parser:
    """Reads tokens by recursive descent."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        found = self._expression()
        if self._next.kind != "end":
            raise self._unexpected()
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def _accept(self, *marks: str) -> str:
        """Take one of some marks, or the operator `in`; return "" if another token comes."""
        token = self._next
        if token.text in marks and (token.kind == "mark" or token.text == "in"):
            self._at += 1
            return token.text
        return ""

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._unexpected(mark)

    def _unexpected(self, wanted: str = "") -> CelSyntaxError:
        token = self._next
        found = "it ends" if token.kind == "end" else f"{token.text} is not expected"
        return CelSyntaxError(f"{found}{f', {wanted} is missing' if wanted else ''}", token.offset)

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BeyondSubset("deep nesting")
        found = self._binary(0)
        if self._accept("?"):
            chosen = self._binary(0)
            self._expect(":")
            found = Call("?:", (found, chosen, self._expression()))
        self._depth -= 1
        return found

    def _binary(self, level: int) -> Expression:
        if level == len(_BINARY):
            return self._unary()
        found = self._binary(level + 1)
        count = 0
        while operator := self._accept(*_BINARY[level]):
            found = Call(operator, (found, self._binary(level + 1)))
            count += 1
            if count > _LONGEST:
                raise BeyondSubset("deep nesting")
        return found

    def _unary(self) -> Expression:
        for sign in ("!", "-"):
            count = 0
            while self._accept(sign):
                count += 1
            if count > _LONGEST:
                raise BeyondSubset("deep nesting")
            if count:
                found = self._member(signed=sign == "-")
                for _ in range(count):
                    found = Call(f"{sign}_", (found,))
                return found
        return self._member()

    def _member(self, *, signed: bool = False) -> Expression:
        found = self._primary(signed=signed)
        count = 0
        while mark := self._accept(".", "["):
            count += 1
            if count > _LONGEST:
                raise BeyondSubset("deep nesting")
            optional = bool(self._accept("?"))
            if mark == "[":
                found = Item(found, self._expression(), optional)
                self._expect("]")
                continue
            token = self._take()
            if token.kind != "name" or token.text in _CONSTANTS or token.text == "in":
                self._at -= 1
                raise self._unexpected("a field")
            if not optional and self._accept("("):
                found = self._macro(token.text, self._list(")"), found, token.offset)
            else:
                found = Field(found, token.text, optional)
        if isinstance(found, Name | Field) and self._next.text == "{" and self._next.kind == "mark":
            raise BeyondSubset("messages")
        return found

    def _primary(self, *, signed: bool = False) -> Expression:
        token = self._next
        if token.kind == "literal":
            self._at += 1
            if isinstance(token.value, int) and token.value >= _MOST_INT + signed:
                raise CelSyntaxError(f"{token.text} is larger than 64 bits", token.offset)
            return Literal(token.value)
        if self._accept("("):
            found = self._expression()
            self._expect(")")
            return found
        if self._accept("["):
            if self._next.text == "?" and self._next.kind == "mark":
                raise BeyondSubset("optional elements")
            return Listing(tuple(self._list("]", trailing=True)))
        if self._accept("{"):
            return Mapping(tuple(self._entries()))
        self._accept(".")
        token = self._take()
        if token.kind != "name" or (token.text in _RESERVED):
            self._at -= 1
            raise self._unexpected("a value" if token.kind == "end" else "")
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text])
        if self._accept("("):
            return self._macro(token.text, self._list(")"), None, token.offset)
        return Name(token.text)

    def _macro(self, name: str, arguments: list[Expression], of: Expression | None, offset: int) -> Call:
        if name == "has" and of is None and not (len(arguments) == 1 and isinstance(arguments[0], Field)):
            raise CelSyntaxError("has() takes a field: has(a.b)", offset)
        if name in MACROS and of is not None and len(arguments) > 1 and not isinstance(arguments[0], Name):
            raise CelSyntaxError(f"the first argument of {name}() is the name of a variable", offset)
        return Call(name, tuple(arguments), of)

    def _list(self, end: str, *, trailing: bool = False) -> list[Expression]:
        found: list[Expression] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if trailing and self._accept(end):
                    break
            found.append(self._expression())
        return found

    def _entries(self) -> list[tuple[Expression, Expression]]:
        found: list[tuple[Expression, Expression]] = []
        while not self._accept("}"):
            if found:
                self._expect(",")
                if self._accept("}"):
                    break
            if self._next.text == "?" and self._next.kind == "mark":
                raise BeyondSubset("optional elements")
            key = self._expression()
            self._expect(":")
            found.append((key, self._expression()))
        return found
