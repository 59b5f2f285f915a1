"""Substitutes ${NAME} and ${NAME:-default} in the texts of a spec.

In scope: substitution in plain data, from a given mapping. Out of scope: reading the process environment.

Substitution applies only to values that are texts: keys, numbers, and comments are not changed. The result is always a
text, so that a variable can change neither the structure nor the type of a spec (numbers are set with --set). `$${` is
a literal `${`. As in a shell, the default applies if the variable is unset or empty; it is plain text without `$`, `{`,
or `}`, so it cannot be nested.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.spec.source.positions import Data, PositionedDict, PositionedList
from gpukube.spec.wording import nearest, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.spec.source.positions import Origin

_WRITTEN: Final = re.compile(
    r"(?P<escaped>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>[^${}]*))?\}|(?P<broken>\$\{[^}]*\}?)"
)


def substitute(root: Data, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Replace every ${NAME} below root, in place, and return findings for those that cannot be replaced.

    A list or mapping shared by several aliases is visited once: a second replacement would undo the escape.
    """
    problems: list[Finding] = []
    waiting: list[Data] = [root]
    visited: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited or not isinstance(node, PositionedDict | PositionedList):
            continue
        visited.add(id(node))
        for step, value, mark in _entries(node):
            if not isinstance(value, str):
                waiting.append(value)
            elif "${" in value:
                _put(node, step, _expand(value, mark, node.origin, environ, problems))
    return tuple(problems)


def _entries(node: PositionedDict | PositionedList) -> list[tuple[str | int, Data, int]]:
    if isinstance(node, PositionedDict):
        return [(key, value, node.value_marks[key]) for key, value in node.items()]
    return [(index, value, node.value_marks[index]) for index, value in enumerate(node)]


def _put(node: PositionedDict | PositionedList, step: str | int, text: str) -> None:
    if isinstance(node, PositionedDict):
        node[str(step)] = text
    else:
        node[int(step)] = text


def _expand(text: str, mark: int, origin: Origin, environ: Mapping[str, str], problems: list[Finding]) -> str:
    """Expand one text; report missing or malformed variables and leave them as written."""

    def replace(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        if found["escaped"]:
            return "${"
        if default is not None:
            return environ.get(name) or default
        if name is not None and name in environ:
            return environ[name]
        problems.append(_explain(found, environ, mark, origin))
        return found.group()

    origin.spellings[mark] = text
    return _WRITTEN.sub(replace, text)


def _explain(found: re.Match[str], environ: Mapping[str, str], mark: int, origin: Origin) -> Finding:
    where = origin.where(mark)
    if found["broken"]:
        return Finding(
            "env-syntax",
            where,
            f"{quoted(found.group())} is not a variable",
            fix="write ${NAME} or ${NAME:-plain text} with letters, digits and _ in the name, or $${ for a literal ${",
        )
    name = found["name"]
    near = nearest(name, environ)
    hint = f"; {near} is set" if near else ""
    return Finding(
        "env-missing",
        where,
        f"variable {name} is not set{hint}",
        fix=f"export {name}=..., or write ${{{name}:-DEFAULT}}, or $${{{name}}} for the literal text",
    )
