"""Writes Terraform's language: blocks and arguments as values, formatted as by `terraform fmt`.

In scope: quoting, alignment, and names of resources. Out of scope: which resource a pool is (providers).

Rules: docs: terraform/language/syntax/configuration and terraform/language/expressions/strings (escapes, `$${`, `%%{`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TEMPLATES: Final = re.compile(r"([$%])(?=\{)")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Expression:
    """Text written verbatim: a reference, "aws_launch_template.a100.id"."""

    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block: `kind "label" { body }`.

    Attributes:
        kind: First word.
        labels: Quoted words after it.
        body: Arguments (name and value) and blocks, in output order. Arguments that are None or an empty map are
            omitted.
    """

    kind: str
    labels: tuple[str, ...]
    body: Sequence[Block | Argument]


Argument: TypeAlias = "tuple[str, object]"


def resource_name(pool: str) -> str:
    """Return the resource name for a pool: letters, digits, - and _, and no leading digit."""
    name = _NOT_NAME.sub("_", pool)
    return name if re.match(r"[A-Za-z_]", name) else f"pool_{name}"


def block(kind: str, *body: Block | Argument) -> Block:
    """Create a block without labels."""
    return Block(kind, (), body)


def import_block(kind: str, name: str, identity: str) -> Block:
    """Return the block that imports an existing object (Terraform 1.5, OpenTofu 1.6)."""
    return block("import", ("to", Expression(f"{kind}.{name}")), ("id", identity))


def render(blocks: Iterable[Block]) -> str:
    """Return the text of blocks, separated by blank lines."""
    return "\n".join("".join(f"{line}\n" for line in _block_lines(one)) for one in blocks)


def literal(value: object) -> str:
    """Return a value as one line of text."""
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, value))}]"
    text = "".join(_ESCAPES.get(char, char if char.isprintable() else _escape(char)) for char in str(value))
    return '"' + _TEMPLATES.sub(r"\1\1", text) + '"'


def values_of(one: Block) -> dict[str, object]:
    """Return the arguments of a block as in Terraform's JSON: nested blocks are lists of objects."""
    found: dict[str, object] = {}
    for item in one.body:
        if isinstance(item, Block):
            nested = found.setdefault(item.kind, [])
            if isinstance(nested, list) and (values := values_of(item)):
                nested.append(values)
        elif not _is_left_out(item[1]) and not isinstance(item[1], Expression):
            found[item[0]] = item[1]
    return found


def _escape(char: str) -> str:
    """Escape an invisible character: with four digits, or with eight beyond the first 65,536 characters."""
    short = f"\\u{ord(char):04x}"
    return short if char.encode("utf-16-le", "surrogatepass")[2:] == b"" else f"\\U{ord(char):08x}"


def _is_left_out(value: object) -> bool:
    return value is None or value == {}


def _block_lines(one: Block) -> list[str]:
    head = " ".join((one.kind, *map(literal, one.labels)))
    written = [item for item in one.body if isinstance(item, Block) or not _is_left_out(item[1])]
    if not written:
        return [f"{head} {{}}"]
    return [f"{head} {{", *(f"  {line}" for line in _body_lines(written)), "}"]


def _body_lines(items: Sequence[Block | Argument]) -> list[str]:
    """Return the lines of the items; equals signs of consecutive single-line arguments are aligned."""
    lines: list[str] = []
    run: list[tuple[str, str]] = []
    for item in items:
        if not isinstance(item, Block) and not isinstance(item[1], Mapping):
            run.append((item[0], literal(item[1])))
            continue
        lines += _aligned(run)
        run = []
        if isinstance(item, Block):
            lines += _block_lines(item)
        else:
            lines += _map_lines(item[0], dict(item[1]) if isinstance(item[1], Mapping) else {})
    return [*lines, *_aligned(run)]


def _map_lines(name: str, value: Mapping[str, object]) -> list[str]:
    pairs = [(key if _PLAIN_KEY.fullmatch(key) else literal(key), literal(one)) for key, one in value.items()]
    return [f"{name} = {{", *(f"  {line}" for line in _aligned(pairs)), "}"]


def _aligned(run: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in run), default=0)
    return [f"{name:<{width}} = {value}" for name, value in run]
