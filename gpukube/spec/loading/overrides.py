"""Applies `--set path=value` to plain data.

In scope: parsing the argument, finding its target, replacing the value. Out of scope: models.

A path names a pool by index (pools[0]) or by name (pools.a100mig), and a key with dots in brackets and quotes
(pools.a100mig.labels["example.com/team"]). The value is parsed as YAML: 2 is a number, "2" a string, [a, b] a list. If
the field is a string, the text is kept as written, as with Helm's --set-string: a shell removes the quotes that YAML
would need around 1.30 or 012345678901. Values apply to the document as written, before defaults are merged: a set value
is the pool's own and overrides defaults. With several documents, a path applies to each that has the named pool or
cluster.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding, Where
from gpukube.spec.reference.fields import is_text
from gpukube.spec.source.document import MOST_DEPTH, Document, load_documents
from gpukube.spec.source.positions import Data, Path, PositionedDict, PositionedList, parse_path, render_path
from gpukube.spec.source.scalars import TooManyDigitsError, parse_plain
from gpukube.spec.wording import choices, nearest_first, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_NESTED_AS_YAML: Final = ("[", "{", '"', "'")
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class _Override:
    """One parsed argument; `name` is its source in positions, `written` the text of a plain value."""

    path: Path
    value: Data
    name: str
    written: str


class _PathError(Exception):
    """A path that does not exist: message and fix."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.message, self.fix = message, fix


def apply_sets(documents: Sequence[Document], sets: Sequence[str]) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
    """Apply the arguments in order; report and skip those that cannot be applied."""
    changed, problems = list(documents), list[Finding]()
    for text in sets:
        override = _parse(text)
        if isinstance(override, Finding):
            problems.append(override)
            continue
        try:
            for index in _targets(changed, override.path):
                changed[index] = _apply(changed[index], override)
        except _PathError as error:
            problems.append(Finding("set-path", Where(override.name), error.message, fix=error.fix))
    return tuple(changed), tuple(problems)


def _parse(text: str) -> _Override | Finding:
    """Parse path=value; the value does not appear in messages."""
    left, equals, right = text.partition("=")
    name = f"--set {left.strip()}"
    try:
        path = parse_path(left.strip())
        value = _parse_value(right)
    except ValueError:
        path, value = (), None
    if not equals or not path or isinstance(path[0], int) or len(path) > MOST_DEPTH:
        return Finding(
            "set-syntax",
            Where("--set"),
            f"{quoted(left)} is not path=value",
            fix="write for example --set pools.NAME.nodes.count=2",
        )
    end = 3 if path[0] == "pools" else 2
    if path[0] in ("pools", "defaults") and path[end - 1 : end] in (("labels",), ("tags",)) and len(path) > end + 1:
        whole = render_path((*path[:end], ".".join(map(str, path[end:]))))
        message = f"{render_path(path[:end])} has plain keys, and a dot separates the parts of a path"
        return Finding("set-path", Where(name), message, fix=f"write --set {shlex.quote(f'{whole}=VALUE')}")
    return _Override(path, value, name, right)


def _parse_value(text: str) -> Data:
    """Parse a value as YAML.

    Raises:
        ValueError: It starts like a list, mapping, or quoted text, but is not one.
    """
    if not text.startswith(_NESTED_AS_YAML):
        try:
            return parse_plain(text)
        except TooManyDigitsError:
            return text
    documents, problems = load_documents(text, "--set")
    if any(found.severity == "error" for found in problems) or len(documents) != 1:
        raise ValueError(text)
    return documents[0].root


def _targets(documents: Sequence[Document], path: Path) -> list[int]:
    """Return the documents that a path applies to.

    Raises:
        _PathError: No document contains the path, or an index is ambiguous.
    """
    everywhere = list(range(len(documents)))
    if len(path) == 1 or path[0] not in {"pools", "clusters"}:
        return everywhere
    if isinstance(path[1], int):
        if len(documents) > 1:
            raise _PathError(f"{render_path(path[:2])} could mean {len(documents)} documents", "name the pool instead")
        return everywhere
    found = [index for index, document in enumerate(documents) if path[1] in _names(document, str(path[0]))]
    if not found:
        known = nearest_first(path[1], [name for d in documents for name in _names(d, str(path[0]))])[:_MOST_NAMED]
        fix = f"write {choices(known)}" if known else "check -f"
        raise _PathError(f"no {str(path[0]).removesuffix('s')} is named {quoted(path[1])}", fix)
    return found


def _names(document: Document, part: str) -> list[str]:
    """Return the well-formed pool names or cluster keys of a document."""
    node = document.root.get(part) if isinstance(document.root, PositionedDict) else None
    if isinstance(node, PositionedDict):
        return list(node)
    items = node if isinstance(node, PositionedList) else []
    names = [item.get("name") for item in items if isinstance(item, PositionedDict)]
    return [name for name in names if isinstance(name, str)]


def _apply(document: Document, override: _Override) -> Document:
    mark = document.origin.add(override.name)
    value = _Marking(document, mark).copy(override.value, override.path, override.written)
    if not isinstance(value, PositionedDict | PositionedList | str | None) and override.written != str(value):
        document.origin.spellings[mark] = override.written
    return replace(document, root=_Assignment(override.path, value, mark, document).into(document.root))


@dataclass(frozen=True, slots=True)
class _Marking:
    """Copies a value so that all parts have the mark of its argument."""

    document: Document
    mark: int

    def copy(self, value: Data, path: Path, written: str) -> Data:
        """Copy a value for a path; `written` is the text of a scalar."""
        if isinstance(value, PositionedDict):
            mapping = PositionedDict(self.document.origin, self.mark)
            for key, inner in value.items():
                text = value.origin.spellings.get(value.value_marks[key], _plain(inner))
                mapping.put(key, self.copy(inner, (*path, key), text), self.mark, self.mark)
            return mapping
        if isinstance(value, PositionedList):
            items = PositionedList(self.document.origin, self.mark)
            for index, inner in enumerate(value):
                text = value.origin.spellings.get(value.value_marks[index], _plain(inner))
                items.put(self.copy(inner, (*path, index), text), self.mark)
            return items
        is_other = value is not None and not isinstance(value, str)
        return written if is_other and is_text(path) else value


def _plain(value: Data) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Assignment:
    """Sets a value in a document. Copies the nodes on the path, because aliases share nodes."""

    path: Path
    value: Data
    mark: int
    document: Document

    def into(self, node: Data, depth: int = 0) -> Data:
        """Return the node with the value at the rest of the path.

        Raises:
            _PathError: The path goes through a scalar, or past the end of a list.
        """
        if depth == len(self.path):
            return self.value
        if isinstance(node, PositionedList):
            return self._into_list(node, depth)
        step = self.path[depth]
        if isinstance(step, str) and (node is None or isinstance(node, PositionedDict)):
            return self._into_mapping(node, step, depth)
        above = render_path(self.path[:depth])
        fix = f"set the whole list: --set '{above}=[...]'" if node is None else "shorten the path"
        raise _PathError(f"{above} has no {render_path((step,))}", fix)

    def _into_list(self, node: PositionedList, depth: int) -> PositionedList:
        items = node.clone()
        index = _index(node, self.path[depth], self.path[:depth])
        items[index] = self.into(node[index], depth + 1)
        if depth + 1 == len(self.path):
            items.value_marks[index] = self.mark
        return items

    def _into_mapping(self, node: PositionedDict | None, step: str, depth: int) -> PositionedDict:
        mapping = PositionedDict(self.document.origin, self.mark) if node is None else node.clone()
        last = depth + 1 == len(self.path)
        mapping.put(
            step,
            self.into(mapping.get(step), depth + 1),
            mapping.key_marks.get(step, self.mark),
            self.mark if last else mapping.value_marks.get(step, self.mark),
        )
        return mapping


def _index(items: PositionedList, step: str | int, above: Path) -> int:
    """Return the index of a list item, given its index or `name`."""
    if isinstance(step, int):
        if step < len(items):
            return step
        fix = f"write a number below {len(items)}" if items else "set the whole list, it is empty"
        raise _PathError(f"{render_path(above)} has no item with index {step}", fix)
    for index, item in enumerate(items):
        if isinstance(item, PositionedDict) and item.get("name") == step:
            return index
    raise _PathError(f"{render_path(above)} has no item named {quoted(step)}", "use an index, counting from 0")
