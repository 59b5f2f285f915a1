"""Plain data with the position of each key and value, and paths into it.

In scope: the dict and list subclasses that the YAML loader creates, field paths ("pools[0].gpu.model"), and their
lookup. Out of scope: parsing YAML, models, specific fields.

A position is one packed int (a mark): source number, line, column. A 13,000-line file has about 30,000 of them; as
objects they would cost more than parsing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.errors import Where

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

Scalar: TypeAlias = str | int | float | bool | None
Data: TypeAlias = "Scalar | PositionedDict | PositionedList"
Path: TypeAlias = tuple[str | int, ...]

_COLUMN_BITS: Final = 20
_LINE_BITS: Final = 28
_COLUMN_MASK: Final = (1 << _COLUMN_BITS) - 1
_LINE_MASK: Final = (1 << _LINE_BITS) - 1


@dataclass(slots=True)
class Origin:
    """The sources of one document's data; shared by all its dicts and lists.

    Attributes:
        names: Sources by number: 0 is the file, the others are `--set` arguments.
        spellings: Mark -> text as written, only if the value does not show it (1.30, 010, ${NAME}).
    """

    names: list[str]
    spellings: dict[int, str] = field(default_factory=dict)

    def add(self, name: str) -> int:
        """Register a source without lines (a `--set` argument) and return the mark of everything in it."""
        self.names.append(name)
        return (len(self.names) - 1) << (_LINE_BITS + _COLUMN_BITS)

    def marks_of(self, where: Where) -> tuple[int, ...]:
        """Return the marks of a place: one in the file, one per argument of that name, none for other sources."""
        if where.line:
            return (pack(where.line, where.column),) if where.source == self.names[0] else ()
        shift = _LINE_BITS + _COLUMN_BITS
        return tuple(number << shift for number, name in enumerate(self.names) if number and name == where.source)

    def where(self, mark: int) -> Where:
        """Unpack a mark."""
        source = self.names[mark >> (_LINE_BITS + _COLUMN_BITS)]
        line = (mark >> _COLUMN_BITS) & _LINE_MASK
        return Where(source, line, (mark & _COLUMN_MASK) if line else 0)


def pack(line: int, column: int) -> int:
    """Pack a 1-based line and column of source 0; a column beyond 2^20 becomes the last one."""
    return line << _COLUMN_BITS | (column if column <= _COLUMN_MASK else _COLUMN_MASK)  # noqa: FURB136 - min() costs more


class PositionedDict(dict[str, "Data"]):
    """A mapping with the marks of its start, every key, and every value."""

    __slots__ = ("key_marks", "mark", "origin", "value_marks")

    def __init__(self, origin: Origin, mark: int) -> None:
        self.origin = origin
        self.mark = mark
        self.key_marks: dict[str, int] = {}
        self.value_marks: dict[str, int] = {}

    def put(self, key: str, value: Data, key_mark: int, value_mark: int) -> None:
        """Set one entry with its two marks."""
        self[key] = value
        self.key_marks[key] = key_mark
        self.value_marks[key] = value_mark

    def take(self, key: str, other: PositionedDict) -> None:
        """Copy one entry from another mapping, including marks."""
        self.put(key, other[key], other.key_marks[key], other.value_marks[key])

    def clone(self) -> PositionedDict:
        """Return a shallow copy, including marks."""
        copy = PositionedDict(self.origin, self.mark)
        copy.update(self)
        copy.key_marks.update(self.key_marks)
        copy.value_marks.update(self.value_marks)
        return copy


class PositionedList(list["Data"]):
    """A sequence with the marks of its start and every item."""

    __slots__ = ("mark", "origin", "value_marks")

    def __init__(self, origin: Origin, mark: int) -> None:
        self.origin = origin
        self.mark = mark
        self.value_marks: list[int] = []

    def put(self, value: Data, mark: int) -> None:
        """Append one item with its mark."""
        self.append(value)
        self.value_marks.append(mark)

    def clone(self) -> PositionedList:
        """Return a shallow copy, including marks."""
        copy = PositionedList(self.origin, self.mark)
        copy.extend(self)
        copy.value_marks.extend(self.value_marks)
        return copy


_CONTAINERS: Final = (PositionedDict, PositionedList)
_PLAIN: Final = r"[\w/+@:-]+"
_PLAIN_SEGMENT: Final = re.compile(_PLAIN)
_SEGMENT: Final = re.compile(rf'\.(?P<plain>{_PLAIN})|\[(?P<index>\d{{1,9}})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]')


def render_path(path: Path) -> str:
    """Render a path as people write it: pools[0].labels["example.com/team"]."""
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        elif _PLAIN_SEGMENT.fullmatch(segment):
            text += f".{segment}"
        else:
            text += f"[{json.dumps(segment, ensure_ascii=False)}]"
    return text.removeprefix(".")


@lru_cache(maxsize=1024)  # the rules use the same few hundred paths in every pool
def parse_path(text: str) -> Path:
    """Parse the output of `render_path`.

    Raises:
        ValueError: The text is not a path.
    """
    rest = text if text.startswith("[") or not text else f".{text}"
    path: list[str | int] = []
    position = 0
    while position < len(rest):
        found = _SEGMENT.match(rest, position)
        if found is None:
            raise ValueError(text)
        plain, index, quoted = found.group("plain", "index", "quoted")
        path.append(plain if plain is not None else int(index) if index is not None else str(json.loads(quoted)))
        position = found.end()
    return tuple(path)


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions of the fields of a spec, or of one part of it.

    Paths are relative to `prefix`; keys are spelled as in the file (camelCase).
    """

    root: Data
    origin: Origin = field(repr=False)
    mark: int
    prefix: Path = ()

    def at(self, path: str | Path = ()) -> Where:
        """Return the position of a value, or of the nearest enclosing value that exists."""
        return self.origin.where(self.mark_at(path))

    def key_at(self, path: str | Path) -> Where:
        """Return the position of the last key of the path, or of the nearest enclosing value that exists."""
        steps = _steps(path)
        parent = self._walk(steps[:-1])[0]
        if steps and isinstance(parent, PositionedDict) and steps[-1] in parent:
            return self.origin.where(parent.key_marks[str(steps[-1])])
        return self.at(steps)

    def within(self, path: str | Path) -> Positions:
        """Return the positions of one part; their paths are relative to that part."""
        steps = _steps(path)
        node, mark, complete = self._walk(steps)
        return Positions(node if complete else None, self.origin, mark, self.prefix + steps)

    def has(self, path: str | Path) -> bool:
        """Return whether the path exists (in the pool itself or in the defaults)."""
        return self._walk(_steps(path))[2]

    def path(self, path: str | Path = ()) -> str:
        """Render the full path of a relative one, for messages: pools[0].gpu.model."""
        return render_path(self.prefix + _steps(path))

    def mark_at(self, path: str | Path = ()) -> int:
        """Return the packed position that `at` unpacks."""
        return self._walk(_steps(path))[1]

    def all_marks(self) -> list[int]:
        """Return the packed positions of everything below: keys, values, and this part itself."""
        marks = [self.mark]
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, PositionedDict):
                marks += node.key_marks.values()
                marks += node.value_marks.values()
                waiting += node.values()
            elif isinstance(node, PositionedList):
                marks += node.value_marks
                waiting += node
        return marks

    def paths_of(self, marks: Collection[int]) -> dict[int, str]:
        """Return the full path of the first key or value at each packed position, outer ones first."""
        found: dict[int, str] = {}
        waiting: list[tuple[Path, Data]] = [(self.prefix, self.root)]
        while waiting and len(found) < len(marks):
            above, node = waiting.pop()
            inside: list[tuple[Path, Data]] = []
            for step, value, places in _parts(node):
                for mark in places:
                    if mark in marks and mark not in found:
                        found[mark] = render_path((*above, step))
                if isinstance(value, _CONTAINERS):
                    inside.append(((*above, step), value))
            waiting += reversed(inside)
        return found

    def _walk(self, steps: Path) -> tuple[Data, int, bool]:
        """Follow the steps as far as they exist; return the last node, its mark, and whether all steps exist."""
        node, mark = self.root, self.mark
        for step in steps:
            if isinstance(node, PositionedDict) and step in node:
                key = str(step)
                mark, node = node.value_marks[key], node[key]
            elif isinstance(node, PositionedList) and isinstance(step, int) and 0 <= step < len(node):
                mark, node = node.value_marks[step], node[step]
            else:
                return node, mark, False
        return node, mark, True


def _parts(node: Data) -> Iterator[tuple[str | int, Data, tuple[int, ...]]]:
    """Yield the entries of a mapping or list with the marks of their keys and values."""
    if isinstance(node, PositionedDict):
        for key, value in node.items():
            yield key, value, (node.key_marks[key], node.value_marks[key])
    elif isinstance(node, PositionedList):
        for index, value in enumerate(node):
            yield index, value, (node.value_marks[index],)


def _steps(path: str | Path) -> Path:
    """Accept a path in both forms; an invalid text becomes (): a report must not fail because of its position."""
    if not isinstance(path, str):
        return path
    try:
        return parse_path(path)
    except ValueError:
        return ()


def is_unknown(path: Path, unknown: Iterable[Path]) -> bool:
    """Return whether a field, or one around or below it, is unknown."""
    return any(path[: len(other)] == other or other[: len(path)] == path for other in unknown)
