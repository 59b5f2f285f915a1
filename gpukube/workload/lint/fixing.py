"""Applies edits to YAML text by position, so that comments, order, and anchors stay.

Pure. In scope: finding where keys, values, and entries start and end, and replacing text there. Out of scope: deciding
what to change (the rules).

An edit that the text does not allow is skipped: its finding remains. Each round applies the edits that do not overlap;
the caller then parses the text again and requests the next ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from gpukube.spec.source.document import PARSER
from gpukube.workload.lint.edits import Append, Drop, Insert, Move, Rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from yaml.nodes import Node

    from gpukube.errors import Where
    from gpukube.workload.lint.edits import Edit

_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_ANCHOR: Final = re.compile(r"(&\S+\s+)*")
_STEP: Final = 2
_BOM: Final = "\ufeff"

_Place = tuple[int, int]
Found = TypeVar("Found")


class _CannotError(Exception):
    """The text does not allow an edit."""


@dataclass(frozen=True, slots=True, order=True)
class _Change:
    """Replacement text from `begin` to `end`; inserted if both are the same."""

    begin: int
    end: int
    text: str


def apply_edits(text: str, units: Iterable[Sequence[Edit]]) -> str:
    """Apply edits to a text.

    Args:
        text: YAML; returned unchanged if it cannot be parsed.
        units: Groups of edits: all edits of a group are applied, or none.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    try:
        body = _Text(text.removeprefix(_BOM))
    except yaml.YAMLError:
        return text
    changes: list[_Change] = []
    for unit in _merged(units):
        try:
            found = [change for edit in unit for change in body.changes(edit)]
        except _CannotError:
            continue
        if not any(_meets(one, other) for one in found for other in changes):
            changes += found
    return bom + _put(body.text, changes)


def _merged(units: Iterable[Sequence[Edit]]) -> list[Sequence[Edit]]:
    """Merge the moves into one mapping, which come from one finding per entry."""
    moves: dict[tuple[Where, str], list[Edit]] = {}
    others: list[Sequence[Edit]] = []
    for unit in units:
        if len(unit) == 1 and isinstance(unit[0], Move) and unit[0].under:
            moves.setdefault((unit[0].into, unit[0].under), []).append(unit[0])
        else:
            others.append(unit)
    return [*moves.values(), *others]


def _meets(one: _Change, other: _Change) -> bool:
    if one.begin == one.end or other.begin == other.end:
        return one.begin < other.end and other.begin < one.end if one.begin != other.begin else one.end == other.end
    return one.begin < other.end and other.begin < one.end


def _put(text: str, changes: Iterable[_Change]) -> str:
    parts, at = [], 0
    for change in sorted(dict.fromkeys(changes), key=lambda one: (one.begin, one.end)):
        parts += [text[at : change.begin], change.text]
        at = change.end
    return "".join([*parts, text[at:]])


@dataclass(slots=True)
class _Entry:
    """An entry of a mapping, by its index."""

    mapping: MappingNode
    index: int

    @property
    def key(self) -> Node:
        return self.mapping.value[self.index][0]  # type: ignore[no-any-return]

    @property
    def value(self) -> Node:
        return self.mapping.value[self.index][1]  # type: ignore[no-any-return]


@dataclass(slots=True)
class _Text:
    """A text with the positions of its nodes."""

    text: str
    starts: list[int] = field(default_factory=lambda: [0])
    entries: dict[_Place, _Entry] = field(default_factory=dict)
    scalars: dict[_Place, Node] = field(default_factory=dict)
    mappings: dict[_Place, MappingNode] = field(default_factory=dict)
    sequences: dict[_Place, SequenceNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.starts += [found.end() for found in _BREAK.finditer(self.text)]
        seen: set[int] = set()
        for root in filter(None, yaml.compose_all(self.text, Loader=PARSER)):
            waiting = [root]
            while waiting:
                node = waiting.pop()
                if id(node) in seen:  # an alias refers to the node itself
                    continue
                seen.add(id(node))
                waiting += self._index(node)

    def changes(self, edit: Edit) -> list[_Change]:
        """Translate an edit.

        Raises:
            _CannotError: The text does not allow it.
        """
        match edit:
            case Rewrite():
                return [self._rewrite(edit)]
            case Insert():
                return [self._insert(_found(self.mappings, edit.mapping), edit.text)]
            case Append():
                return [self._append(_found(self.sequences, edit.sequence), edit.text)]
            case Drop():
                return [self._drop(_found(self.entries, edit.key))]
            case Move():
                return self._move(edit)

    def _index(self, node: Node) -> Iterator[Node]:
        place = _place(node)
        if isinstance(node, MappingNode):
            self.mappings[place] = node
            for index, (key, value) in enumerate(node.value):
                self.entries[_place(key)] = _Entry(node, index)
                yield key
                yield value
        elif isinstance(node, SequenceNode):
            self.sequences[place] = node
            yield from node.value
        else:
            self.scalars[place] = node

    def _offset(self, place: _Place) -> int:
        return self.starts[place[0] - 1] + place[1] - 1

    def _begin(self, node: Node) -> int:
        """Return where a node begins, after its anchor."""
        begin = self._offset(_place(node))
        anchor = _ANCHOR.match(self.text, begin)
        return anchor.end() if anchor else begin

    def _end(self, node: Node) -> int:
        """Return where a node ends; a block collection ends with its last scalar."""
        while isinstance(node, MappingNode | SequenceNode) and not node.flow_style:
            if not node.value:
                raise _CannotError
            last = node.value[-1]
            node = last[1] if isinstance(last, tuple) else last
            if self._offset(_place(node)) < self._offset(_place(last[0] if isinstance(last, tuple) else last)):
                raise _CannotError  # an alias: the node is elsewhere
        end = self.starts[node.end_mark.line] + node.end_mark.column
        if isinstance(node, ScalarNode) and node.style in ("|", ">"):
            return len(self.text[:end].rstrip())
        return end

    def _rewrite(self, edit: Rewrite) -> _Change:
        place = (edit.where.line, edit.where.column)
        node = self.scalars.get(place) or self.sequences.get(place)
        if node is None and place in self.mappings and self.mappings[place].flow_style:
            node = self.mappings[place]
        if node is None or (isinstance(node, ScalarNode) and node.style in ("|", ">")):
            raise _CannotError
        return _Change(self._begin(node), self._end(node), edit.text)

    def _insert(self, mapping: MappingNode, text: str) -> _Change:
        if mapping.flow_style:
            at = self.text.index("{", self._begin(mapping)) + 1
            return _Change(at, at, f"{text}, " if mapping.value else text)
        if not mapping.value:
            raise _CannotError
        key = mapping.value[0][0]
        at = self._offset(_place(key))
        return _Change(at, at, f"{text}{self._newline()}{' ' * (_place(key)[1] - 1)}")

    def _append(self, sequence: SequenceNode, text: str) -> _Change:
        if not sequence.value:
            raise _CannotError
        end = self._end(sequence.value[-1])
        if sequence.flow_style:
            return _Change(end, end, f", {text}")
        first = self._offset(_place(sequence.value[0]))
        begin = self.starts[_place(sequence.value[0])[0] - 1]
        dash = self.text.rfind("-", begin, first)
        if dash < 0:
            raise _CannotError
        at = self._line_end(end)
        return _Change(at, at, f"{self._newline()}{' ' * (dash - begin)}- {text}")

    def _drop(self, entry: _Entry) -> _Change:
        mapping, index = entry.mapping, entry.index
        begin, end = self._offset(_place(entry.key)), self._end(entry.value)
        if mapping.flow_style:
            if index + 1 < len(mapping.value):
                return _Change(begin, self._offset(_place(mapping.value[index + 1][0])), "")
            return _Change(self._end(mapping.value[index - 1][1]) if index else begin, end, "")
        if self._is_first_in_line(begin):
            return _Change(self._line_begin(begin), self._next_line(end), "")
        if index + 1 < len(mapping.value):  # after the dash of a list
            return _Change(begin, self._offset(_place(mapping.value[index + 1][0])), "")
        raise _CannotError

    def _move(self, edit: Move) -> list[_Change]:
        entry = _found(self.entries, edit.key)
        into = _found(self.mappings, edit.into)
        if entry.mapping is into and edit.under:
            return self._nest(entry, into, edit.under)
        if edit.under or into.flow_style:
            raise _CannotError
        return self._move_block(entry, into)

    def _nest(self, entry: _Entry, mapping: MappingNode, under: str) -> list[_Change]:
        """Move an entry one level deeper in its own mapping, under an existing or new key."""
        target = next((value for key, value in mapping.value if key.value == under), None)
        if isinstance(target, MappingNode):
            text = self.text[self._offset(_place(entry.key)) : self._end(entry.value)]
            if "\n" in text or "\r" in text:
                raise _CannotError
            return [self._drop(entry), self._insert(target, text)]
        if target is not None:
            raise _CannotError
        first, last = self._run(entry)
        begin = self._offset(_place(mapping.value[first][0]))
        end = self._end(mapping.value[last][1])
        if mapping.flow_style:
            return [_Change(begin, end, f"{under}: {{{self.text[begin:end]}}}")]
        if not self._is_first_in_line(begin):
            raise _CannotError
        begin, end = self._line_begin(begin), self._line_end(end)
        column = _place(entry.key)[1] - 1
        moved = self._shifted(self.text[begin:end], _STEP)
        return [_Change(begin, end, f"{' ' * column}{under}:{self._newline()}{moved}")]

    def _run(self, entry: _Entry) -> tuple[int, int]:
        """Return the range of resource entries around one: they were meant as one mapping."""
        names = [str(key.value) for key, _ in entry.mapping.value]
        meant = [name not in ("limits", "requests", "claims", "<<") for name in names]
        first = last = entry.index
        while first and meant[first - 1]:
            first -= 1
        while last + 1 < len(meant) and meant[last + 1]:
            last += 1
        return first, last

    def _move_block(self, entry: _Entry, into: MappingNode) -> list[_Change]:
        """Move an entry of a block mapping to the end of another one."""
        begin = self._offset(_place(entry.key))
        if entry.mapping.flow_style or not into.value or not self._is_first_in_line(begin):
            raise _CannotError
        begin, end = self._line_begin(begin), self._line_end(self._end(entry.value))
        shift = _place(into.value[0][0])[1] - _place(entry.key)[1]
        at = self._line_end(self._end(into))
        return [
            _Change(at, at, self._newline() + self._shifted(self.text[begin:end], shift)),
            _Change(begin, self._next_line(end), ""),
        ]

    def _shifted(self, text: str, by: int) -> str:
        """Indent lines by more, or by less if all of them allow it."""
        lines = text.splitlines(keepends=True)
        if by < 0 and any(line[:-by].strip(" ") for line in lines if line.strip()):
            raise _CannotError
        return "".join((" " * by + line if by >= 0 else line[-by:]) if line.strip() else line for line in lines)

    def _is_first_in_line(self, at: int) -> bool:
        return not self.text[self._line_begin(at) : at].strip()

    def _line_begin(self, at: int) -> int:
        return max(start for start in self.starts if start <= at)

    def _line_end(self, at: int) -> int:
        found = _BREAK.search(self.text, at)
        return found.start() if found else len(self.text)

    def _next_line(self, at: int) -> int:
        found = _BREAK.search(self.text, at)
        return found.end() if found else len(self.text)

    def _newline(self) -> str:
        found = _BREAK.search(self.text)
        return found.group() if found else "\n"


def _place(node: Node) -> _Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _found(places: dict[_Place, Found], where: Where) -> Found:
    try:
        return places[where.line, where.column]
    except KeyError:
        raise _CannotError from None
