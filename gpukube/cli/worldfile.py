"""The world file of `gpukube sandbox up --world`: what exists before anybody asks for a pool.

Lives here: reading it, and where each entry is. Must not live here: what an entry may hold, which the sandbox says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.errors import Finding, SpecError, Where
from gpukube.spec.source.document import load_documents
from gpukube.spec.source.files import read_sources
from gpukube.spec.source.positions import PositionedDict, PositionedList, Positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.source.document import Document

Part = Literal["clusters", "things"]
PARTS: Final[tuple[Part, ...]] = ("clusters", "things")
_FIX: Final = (
    "write clusters: [{provider: eks, account: ..., region: ..., name: ...}] and things: [{provider: eks, ...}]"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a world file.

    Attributes:
        part: Under which key it is; clusters come before what is in them.
        body: What it says.
        places: Where it says that.
    """

    part: Part
    body: dict[str, object]
    places: Positions


def read_world(path: str) -> list[Entry]:
    """Read a world file; its clusters first.

    Raises:
        SpecError: It cannot be read, or is no world file; holds everything that is wrong.
    """
    sources, problems = read_sources([path], None)
    found: list[Finding | Entry] = list(problems)
    for source in sources:
        documents, more = load_documents(source.text, source.name)
        found += more
        for document in documents:
            found += _entries(document)
    wrong = [item for item in found if isinstance(item, Finding) and item.severity == "error"]
    if wrong:
        raise SpecError.of(wrong)
    entries = [item for item in found if isinstance(item, Entry)]
    return sorted(entries, key=lambda entry: PARTS.index(entry.part))


def _entries(document: Document) -> Iterator[Finding | Entry]:
    root, origin = document.root, document.origin
    if root is None:
        return
    if not isinstance(root, PositionedDict):
        yield _wrong(origin.where(document.mark), "a world is a mapping")
        return
    for key, value in root.items():
        part = next((name for name in PARTS if name == key), None)
        if part is None:
            yield _wrong(origin.where(root.key_marks[key]), f'a world has no "{key}"')
        elif not isinstance(value, PositionedList):
            yield _wrong(origin.where(root.value_marks[key]), f"{key} must be a list")
        else:
            for item, mark in zip(value, value.value_marks, strict=True):
                if isinstance(item, PositionedDict):
                    yield Entry(part, dict(item), Positions(item, origin, mark))
                else:
                    yield _wrong(origin.where(mark), f"an entry of {key} must be a mapping")


def _wrong(where: Where, text: str) -> Finding:
    return Finding("sandbox-world", where, text, fix=_FIX)
