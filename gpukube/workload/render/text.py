"""Formats manifests as YAML text, with comments on the lines of their values.

In scope: the writer. Out of scope: the content of manifests. Custom code, because PyYAML writes no comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.spec.dump import dump_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_PLAIN_IN_FLOW: Final = re.compile(r"[A-Za-z][\w./:-]*[\w.]|[A-Za-z]")
_LITERAL: Final = re.compile(r"(?=[^\n]*\n)[!-~](?:[ -~\n]*[!-~])?\n?")
_UNBROKEN: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Noted:
    """A value with a comment on its line."""

    value: object
    comment: str


class Flow(dict[str, object]):
    """A mapping that is written on one line."""


def write_documents(documents: Iterable[Mapping[str, object]], head: Iterable[str] = ()) -> str:
    """Format manifests, one document each.

    Args:
        documents: Mappings, lists, strings, numbers, and booleans, any of them `Noted`.
        head: Lines of the comment at the top.
    """
    written = ["\n".join(_mapping(document, 0)) for document in documents]
    return "".join(f"# {line}\n" for line in head) + "\n---\n".join(written) + "\n"


def plain(value: object) -> object:
    """Return the data without comments and formatting."""
    if isinstance(value, Noted):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _mapping(node: Mapping[str, object], indent: int) -> Iterator[str]:
    pad = " " * indent
    for key, item in node.items():
        value, comment = (item.value, f"  # {item.comment}") if isinstance(item, Noted) else (item, "")
        name = f"{pad}{_scalar(key)}:"
        if isinstance(value, Flow) or not isinstance(value, dict | list | tuple) or not value:
            lines = _scalar_lines(value, pad)
            yield f"{name} {lines[0]}{comment}"
            yield from lines[1:]
        elif isinstance(value, dict):
            yield name + comment
            yield from _mapping(value, indent + 2)
        elif all(not isinstance(part, dict | list | tuple | Noted) for part in value):
            yield f"{name} {_flow(value)}{comment}"
        else:
            yield name + comment
            yield from _items(value, indent)


def _items(items: Iterable[object], indent: int) -> Iterator[str]:
    pad = " " * indent
    for item in items:
        value, comment = (item.value, f"  # {item.comment}") if isinstance(item, Noted) else (item, "")
        if isinstance(value, dict) and not isinstance(value, Flow):
            first, *rest = _mapping(value, indent + 2)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}- {_flow(value)}{comment}"


def _scalar_lines(value: object, pad: str) -> list[str]:
    if isinstance(value, str) and _LITERAL.fullmatch(value):
        mark = "|" if value.endswith("\n") else "|-"
        return [mark, *(f"{pad}  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))]
    return [_flow(value) if isinstance(value, dict | list | tuple) else _scalar(value)]


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    text = _scalar(value)
    if not isinstance(value, str) or (text == value and _PLAIN_IN_FLOW.fullmatch(text)):
        return text
    return _quoted(value)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return value if dump_scalar(value) == value else _quoted(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=_UNBROKEN)
    return dumped.rstrip("\n")
