"""Edits TOML text line by line: gpukube's keys are added and removed, every other byte stays.

In scope: text and trees. Out of scope: which keys (`bottlerocket`).

TOML libraries that keep comments (tomlkit) do not promise to keep every byte. Here each edit is proven instead: the
result is parsed again, and must be exactly the old document with the new keys.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.core.jsontree import leaves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Tables: TypeAlias = "Mapping[tuple[str, ...], Mapping[str, object]]"
"""Path of a table -> its keys, without those of tables below it."""

_MARK: Final = "# gpukube"
"""Comment at the end of each line that gpukube adds to a document of others."""
_DEEPEST: Final = 30
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_UNSUPPORTED: Final = (
    (re.compile(r"""^\s*\[[^\]\n]*["'][^\]\n]*\]\s*(#.*)?$""", re.MULTILINE), "a quoted key in a table header"),
    (re.compile(r"""^\s*'[^'\n]*"[^'\n]*'\s*=""", re.MULTILINE), "a quote within a quoted key"),
    (re.compile(r"""^[^#\n]*\\\"""", re.MULTILINE), "an escaped quote"),
)


def parse(text: str) -> dict[str, object]:
    """Parse a document.

    Raises:
        ValueError: It is not TOML, or nested deeper than any document of Bottlerocket's.
    """
    import tomllib  # noqa: PLC0415 - its patterns cost 1.4 ms, and only user data of Bottlerocket is TOML

    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    level: list[object] = [document]
    for _ in range(_DEEPEST):
        tables = [one for one in level if isinstance(one, dict | list)]
        level = [inner for one in tables for inner in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return document
    raise ValueError("nested too deep")


def write_tables(tables: Tables) -> str:
    """Return a document of gpukube's own."""
    return "\n".join("\n".join(_table_lines(path, keys)) + "\n" for path, keys in tables.items())


def tables_of(document: Mapping[str, object]) -> dict[tuple[str, ...], dict[str, object]]:
    """Return the keys of a document by table, in its order."""
    found: dict[tuple[str, ...], dict[str, object]] = {}
    for path, value in leaves(document):
        found.setdefault(path[:-1], {})[path[-1]] = value
    return found


def add_keys(text: str, tables: Tables) -> str:
    """Add keys to a document of others, with `_MARK` at the end of each line.

    Args:
        text: The document, without keys of gpukube.
        tables: Keys that it does not have.

    Raises:
        ValueError: It is not TOML, or its form leaves no place for a key, such as an inline table.
    """
    for path, keys in tables.items():
        merged = parse(text)
        _put(merged, path, keys)
        text = next((one for one in _placed(text, path, keys) if _is_document(one, merged)), "")
        if not text:
            raise ValueError(f"there is no place for keys of the table {'.'.join(path)}")
    return text


def without_marked(text: str) -> str:
    """Remove the lines that `add_keys` added; the text stays as it is if that would change anything else."""
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.rstrip().endswith(_MARK))
    try:
        before, after = parse(text), parse(kept)
    except ValueError:
        return text
    values = dict(leaves(before))
    # A line within a string of several lines only looks like one of gpukube's.
    return kept if all(values.get(path) == value or value == {} for path, value in leaves(after)) else text


def unsupported(text: str, document: Mapping[str, object]) -> str:
    """Return the first form of TOML that EKS cannot merge (docs: eks/launch-templates); "" for none."""
    forms = (form for pattern, form in _UNSUPPORTED if pattern.search(text))
    mixed = ("an array of mixed types" for _, value in leaves(document) if _is_mixed(value))
    return next(forms, "") or next(mixed, "")


def _is_mixed(value: object) -> bool:
    return isinstance(value, list) and len({type(one) for one in value}) > 1


def _placed(text: str, path: tuple[str, ...], keys: Mapping[str, object]) -> Iterator[str]:
    """Yield the document with the keys at each place that may be right: below a header, in a new table, with dots."""
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    headers = [(number, found) for number, line in enumerate(lines, 1) if (found := _header(line))]
    for number, found in headers:
        if found == path:
            yield _inserted(lines, number, [f"{_key(key)} = {_value(value)}" for key, value in keys.items()])
    yield _inserted(lines, len(lines), _table_lines(path, keys))
    for above in range(len(path) - 1, -1, -1):
        dotted = [f"{_dotted((*path[above:], key))} = {_value(value)}" for key, value in keys.items()]
        places = [number for number, found in headers if found == path[:above]] if above else [0]
        yield from (_inserted(lines, number, dotted) for number in places)


def _inserted(lines: list[str], number: int, added: list[str]) -> str:
    return "".join([*lines[:number], *(f"{line}  {_MARK}\n" for line in added), *lines[number:]])


def _header(line: str) -> tuple[str, ...]:
    """Return the path in a table's header; () for any other line."""
    text = line.strip()
    if not text.startswith("[") or text.startswith("[["):
        return ()
    try:
        inner: object = parse(text)
    except ValueError:
        return ()
    path: list[str] = []
    while isinstance(inner, dict) and inner:
        key, inner = next(iter(inner.items()))
        path.append(key)
    return tuple(path)


def _is_document(text: str, expected: Mapping[str, object]) -> bool:
    try:
        return parse(text) == expected
    except ValueError:
        return False


def _put(document: dict[str, object], path: tuple[str, ...], keys: Mapping[str, object]) -> None:
    inner = document
    for step in path:
        below = inner.setdefault(step, {})
        if not isinstance(below, dict):
            raise ValueError(f"{step} is not a table")  # noqa: TRY004 - of the document, not of the argument
        inner = below
    inner.update(keys)


def _table_lines(path: tuple[str, ...], keys: Mapping[str, object]) -> list[str]:
    return [f"[{_dotted(path)}]", *(f"{_key(key)} = {_value(value)}" for key, value in keys.items())]


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(map(_key, path))


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)


def _value(value: object) -> str:
    """Return a value of gpukube's: text without quotes or backslashes, a number, a boolean, or a list of these."""
    return json.dumps(value)
