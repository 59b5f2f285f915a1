"""Converts loaded specs to records of a saved plan and back, with the positions of every key and value.

A message about a spec in a saved plan points to the line of the file that it was loaded from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.saved.records import SpecRecord
from gpukube.spec.loading.load import check_documents
from gpukube.spec.source.document import Document
from gpukube.spec.source.positions import Origin, PositionedDict, PositionedList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.spec.loading.load import LoadedSpec
    from gpukube.spec.source.positions import Data

_DEFAULTS = "defaults"
"""Already merged into every pool; merging again would duplicate them."""


def pack_spec(loaded: LoadedSpec) -> SpecRecord:
    """Return the record of a spec, with its positions."""
    origin, root = loaded.positions.origin, loaded.positions.root
    marks = [loaded.positions.mark, *_marks(_without_defaults(root))]
    known = set(marks)
    return SpecRecord(
        names=tuple(origin.names),
        data=_plain(_without_defaults(root)),
        marks=tuple(marks),
        spellings=tuple(sorted((mark, text) for mark, text in origin.spellings.items() if mark in known)),
    )


def unpack_specs(records: Sequence[SpecRecord]) -> tuple[LoadedSpec, ...]:
    """Check the specs of a saved plan as if they had just been loaded.

    Raises:
        ValueError: Data and positions do not match.
        SpecError: A spec is invalid; positions are those of its own file.
    """
    return check_documents([_document(record) for record in records])


def _without_defaults(root: Data) -> Data:
    if not isinstance(root, PositionedDict) or _DEFAULTS not in root:
        return root
    kept = root.clone()
    del kept[_DEFAULTS], kept.key_marks[_DEFAULTS], kept.value_marks[_DEFAULTS]
    return kept


def _plain(node: Data) -> object:
    if isinstance(node, PositionedDict):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, PositionedList):
        return [_plain(value) for value in node]
    return node


def _marks(node: Data) -> Iterator[int]:
    """Return all marks below a node; keys are sorted, so that a file with reordered keys still matches."""
    if isinstance(node, PositionedDict):
        yield node.mark
        for key in sorted(node):
            yield node.key_marks[key]
            yield node.value_marks[key]
            yield from _marks(node[key])
    elif isinstance(node, PositionedList):
        yield node.mark
        for value, mark in zip(node, node.value_marks, strict=True):
            yield mark
            yield from _marks(value)


def _document(record: SpecRecord) -> Document:
    origin = Origin(list(record.names), dict(record.spellings))
    marks = iter([_checked(mark, origin) for mark in record.marks])
    try:
        mark = next(marks)
        root = _positioned(record.data, marks, origin)
    except StopIteration as error:
        raise ValueError("fewer positions than values") from error
    if next(marks, None) is not None:
        raise ValueError("more positions than values")
    return Document(root, mark, origin)


def _checked(mark: int, origin: Origin) -> int:
    try:
        origin.where(mark)
    except IndexError as error:
        raise ValueError("a position in no file") from error
    return mark


def _positioned(value: object, marks: Iterator[int], origin: Origin) -> Data:
    if isinstance(value, dict):
        mapping = PositionedDict(origin, next(marks))
        placed = {key: (next(marks), next(marks), _positioned(value[key], marks, origin)) for key in sorted(value)}
        for key in value:
            key_mark, value_mark, inner = placed[key]
            mapping.put(key, inner, key_mark, value_mark)
        return mapping
    if isinstance(value, list):
        items = PositionedList(origin, next(marks))
        for inner in value:
            mark = next(marks)
            items.put(_positioned(inner, marks, origin), mark)
        return items
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(type(value).__name__)
