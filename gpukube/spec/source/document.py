"""Parses YAML to plain data with line and column of every key and value.

In scope: the event loop over PyYAML's parser, limits, rejected YAML features. Out of scope: files, fields of the spec,
models.

It reads events, because building PyYAML's node tree costs several times as much and its constructors follow YAML 1.1.
It uses the C parser if PyYAML was built with it, else the Python one (ten times slower). Errors, with a position:
duplicate keys, tags, merge keys, keys that are not strings, data that is too large or too deep, too many aliases or
documents, an alias inside its own anchor. Warnings: values that YAML 1.1 reads differently.

That is the policy for specs. For other files there is a subclass of `Reader` (gpukube.workload.manifests).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gpukube.errors import Finding, Where
from gpukube.spec.source.positions import Data, Origin, PositionedDict, PositionedList, pack
from gpukube.spec.source.scalars import TooManyDigitsError, other_reading, parse_plain
from gpukube.spec.source.syntax import explain_syntax, place_of
from gpukube.spec.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.spec.source.positions import Scalar

MOST_BYTES: Final = 5 * 1024 * 1024
MOST_DEPTH: Final = 64
MOST_DOCUMENTS: Final = 1000
MOST_KEYS: Final = 20_000
MOST_ALIASES: Final = 1000
MOST_ALIAS_NODES: Final = 100_000

_STANDARD_TAGS: Final = "tag:yaml.org,2002:"

Parser = type[yaml.SafeLoader] | type[yaml.CSafeLoader]
PARSER: Final[Parser] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Characters not allowed in YAML (YAML 1.2.2 section 5.1); checked here, since the two parsers report them differently.
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for reading YAML.

    Attributes:
        size: Bytes of one text in UTF-8.
        depth: Nested collections.
        documents: Documents per text.
        keys: Keys per mapping.
        aliases: Aliases per document.
        alias_nodes: Total values that a document's aliases may expand to: stops a "billion laughs" attack early.
    """

    size: int = MOST_BYTES
    depth: int = MOST_DEPTH
    documents: int = MOST_DOCUMENTS
    keys: int = MOST_KEYS
    aliases: int = MOST_ALIASES
    alias_nodes: int = MOST_ALIAS_NODES


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document as plain data.

    Attributes:
        root: Usually a PositionedDict; None for an empty document.
        mark: Packed position of the root.
        origin: Unpacks marks; shared by everything under root.
    """

    root: Data
    mark: int
    origin: Origin


class _Mark(Protocol):
    line: int
    column: int


class _Event(Protocol):
    """The used attributes of PyYAML's events; which ones exist depends on the class, see _HANDLERS."""

    start_mark: _Mark
    anchor: str | None
    tag: str | None
    value: str
    implicit: tuple[bool, bool]


class _StopReadingError(Exception):
    """A limit is exceeded: the rest is not read."""


def load_documents(
    text: str, source: str, *, parser: Parser = PARSER, policy: type[Reader] | None = None
) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
    """Load all documents of a YAML stream.

    Args:
        text: The stream, at most 5 MiB in UTF-8.
        source: Name for positions: the file as the user wrote it, "-" for stdin.
        parser: PyYAML's C parser, or its Python one.
        policy: What to accept and reject; defaults to the policy for specs.

    Returns:
        The readable documents, and all problems. If a problem is local (a duplicate key, a tag), the document is
        returned anyway, so that one run reports its other problems too.
    """
    text = text.removeprefix("\ufeff")
    reader = (policy or Reader)(source)
    if problem := _check_text(text, source, reader.limits.size):
        return (), (problem,)
    loader = parser(text)
    try:
        for event in iter(loader.get_event, None):
            if handle := _HANDLERS.get(type(event)):
                handle(reader, event)
    except _StopReadingError:
        pass  # the exceeded limit is among the problems
    except yaml.YAMLError as error:
        reader.problems.append(explain_syntax(error, text, source))
    finally:
        loader.dispose()
    return tuple(reader.documents), tuple(reader.problems)


def _check_text(text: str, source: str, most: int) -> Finding | None:
    """Reject input that must not reach the parser: too much text, characters not allowed in YAML."""
    if len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most:
        return Finding("yaml-limit", Where(source), f"is larger than {most} bytes", fix="split it into several files")
    if found := _UNPRINTABLE.search(text):
        return Finding(
            "yaml-syntax",
            place_of(text, found.start(), source),
            f"character U+{ord(found.group()):04X} is not allowed in YAML",
            fix="remove it, or write it as an escape in double quotes",
        )
    return None


class Reader:
    """Builds documents from events. One method per event; state is the stack of open collections.

    A policy overrides `plain`, the meaning of an unquoted scalar; `key`, the allowed keys; and `place`.
    """

    limits: ClassVar[Limits] = Limits()

    def __init__(self, source: str) -> None:
        self.source = source
        self.documents: list[Document] = []
        self.problems: list[Finding] = []
        self.reset()

    def reset(self) -> None:
        """Start a document."""
        self.origin = Origin([self.source])
        self.root: Data = None
        self.root_mark = pack(1, 1)
        self.open: list[PositionedDict | PositionedList] = []
        self.keys: list[tuple[str | None, int] | None] = []  # per open collection: the key that awaits its value
        self.names: list[tuple[str, int] | None] = []  # per open collection: its anchor and the count before it
        self.anchors: dict[str, tuple[Data, int] | None] = {}  # None while the anchored collection is open
        self.count = 0  # values so far, including expanded aliases
        self.aliases = 0
        self.alias_nodes = 0

    def start_document(self, event: _Event) -> None:
        """Start a document."""
        self.reset()
        self.root_mark = _mark(event)
        if len(self.documents) >= self.limits.documents:
            self._stop(self.root_mark, f"more than {self.limits.documents} documents", "split it into several files")

    def end_document(self, _event: _Event) -> None:
        """Store the document."""
        self.documents.append(Document(self.root, self.root_mark, self.origin))

    def scalar(self, event: _Event) -> None:
        """Process a key or a value."""
        mark = _mark(event)
        text, is_plain = event.value, event.implicit[0]
        value: Data = text
        if event.tag is not None:
            self._refuse_tag(event.tag, mark)
        elif is_plain:
            value = self.plain(text, mark)
        self.count += 1
        if self._awaits_key():
            self.key(value, text, mark, plain=is_plain)
            return
        self.place(value, mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)

    def start_mapping(self, event: _Event) -> None:
        """Open a mapping."""
        self._start(event, PositionedDict(self.origin, _mark(event)))

    def start_sequence(self, event: _Event) -> None:
        """Open a list."""
        self._start(event, PositionedList(self.origin, _mark(event)))

    def end(self, _event: _Event) -> None:
        """Close the innermost collection and add it to its parent."""
        node, name = self.open.pop(), self.names.pop()
        self.keys.pop()
        if name is not None:
            self.anchors[name[0]] = (node, self.count - name[1])
        if self._awaits_key():
            self.refuse("yaml-key", node.mark, "a mapping or list is used as a key", "write a string as the key")
            self.keys[-1] = (None, node.mark)
        else:
            self.place(node, node.mark)

    def alias(self, event: _Event) -> None:
        """Use the value of an anchor."""
        mark = _mark(event)
        name = event.anchor or ""
        found = self.anchors.get(name, (None, 0))
        if name not in self.anchors:
            self.refuse("yaml-alias", mark, f'no anchor "&{name}" before this alias', self._known_anchors())
        elif found is None:
            self.refuse("yaml-alias", mark, f'"*{name}" is inside its own anchor', "write the value in full")
        value, size = found or (None, 0)
        self._count_alias(size, mark)
        if self._awaits_key():
            self.key(value, name, mark, plain=False)
        else:
            self.place(value, mark)

    def _start(self, event: _Event, node: PositionedDict | PositionedList) -> None:
        if event.tag is not None:
            self._refuse_tag(event.tag, node.mark)
        if len(self.open) >= self.limits.depth:
            self._stop(node.mark, f"is nested more than {self.limits.depth} levels deep", "flatten it")
        self.names.append((event.anchor, self.count) if event.anchor is not None else None)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.count += 1
        self.open.append(node)
        self.keys.append(None)

    def _awaits_key(self) -> bool:
        return bool(self.open) and self.keys[-1] is None and type(self.open[-1]) is PositionedDict

    def key(self, value: Data, text: str, mark: int, *, plain: bool) -> None:
        """Store a key until its value follows; a rejected key is None and its value is dropped."""
        key: str | None = None
        if plain and text == "<<":
            self.refuse(
                "yaml-merge-key", mark, 'merge key "<<" is not supported', "write the keys in full, or use defaults"
            )
        elif not isinstance(value, str):
            self.refuse("yaml-key", mark, f"key {text or 'null'} is not a string", f'put it in quotes: "{text}"')
        elif value in self.open[-1]:
            self._duplicate(value, mark)
        else:
            key = value
        if len(self.open[-1]) >= self.limits.keys:
            self._stop(mark, f"more than {self.limits.keys} keys in one mapping", "split it into several files")
        self.keys[-1] = (key, mark)

    def place(self, value: Data, mark: int) -> None:
        """Add a complete value to its parent."""
        if not self.open:
            self.root, self.root_mark = value, mark
            return
        parent = self.open[-1]
        if isinstance(parent, PositionedList):
            parent.put(value, mark)
            return
        key, key_mark = self.keys[-1] or (None, 0)
        self.keys[-1] = None
        if key is not None:
            parent.put(key, value, key_mark, mark)

    def plain(self, text: str, mark: int) -> Data:
        """Return the value of an unquoted scalar."""
        try:
            value, is_respelled, older = _read_plain(text)
        except TooManyDigitsError:
            self.refuse("yaml-limit", mark, f"a number of {len(text)} digits", "write a shorter one, or quote it")
            return 0
        if is_respelled:
            self.origin.spellings[mark] = text
        if older:
            self._ambiguous(text, value, older, mark)
        return value

    def _ambiguous(self, text: str, value: Data, older: str, mark: int) -> None:
        """Warn about a value that other tools would read differently."""
        here = "a string" if isinstance(value, str) else f"the number {value}"
        fix = f'write "{text}" in quotes' if isinstance(value, str) else f"write {value:g}, or quote it to get a string"
        why = "gpukube follows YAML 1.2; PyYAML, kubectl, Helm, and others follow parts of YAML 1.1"
        message = f"{quoted(text)} without quotes is {here} in YAML 1.2 and {older} in YAML 1.1"
        where = self.origin.where(mark)
        self.problems.append(Finding("yaml-ambiguous", where, message, fix=fix, why=why, severity="warning"))

    def _count_alias(self, size: int, mark: int) -> None:
        self.aliases += 1
        self.alias_nodes += size
        self.count += size
        if self.aliases > self.limits.aliases:
            self._stop(mark, f"more than {self.limits.aliases} aliases", "move repeated parts to defaults")
        if self.alias_nodes > self.limits.alias_nodes:
            self._stop(mark, f"the aliases expand to more than {self.limits.alias_nodes} values", "use fewer aliases")

    def _known_anchors(self) -> str:
        known = ", ".join(f"*{name}" for name in list(self.anchors)[:5])
        return f"use one of {known}" if known else 'define it first, or quote a string that begins with "*"'

    def _refuse_tag(self, tag: str, mark: int) -> None:
        written = f"!!{tag.removeprefix(_STANDARD_TAGS)}" if tag.startswith(_STANDARD_TAGS) else tag
        self.refuse(
            "yaml-tag", mark, f'tag "{written}" is not supported', "remove it; quote a value that must be a string"
        )

    def _duplicate(self, key: str, mark: int) -> None:
        parent = self.open[-1]
        first = self.origin.where(parent.key_marks[key]) if isinstance(parent, PositionedDict) else None
        seen = f"; first at {first.line}:{first.column}" if first else ""
        self.refuse("yaml-duplicate-key", mark, f"key {quoted(key)} is written twice{seen}", "keep one of them")

    def _stop(self, mark: int, message: str, fix: str) -> None:
        self.refuse("yaml-limit", mark, message, fix)
        raise _StopReadingError

    def refuse(self, code: str, mark: int, message: str, fix: str) -> None:
        """Add a problem."""
        self.problems.append(Finding(code, self.origin.where(mark), message, fix=fix))


def _mark(event: _Event) -> int:
    start = event.start_mark
    return pack(start.line + 1, start.column + 1)


@lru_cache(maxsize=1024)  # most scalars are keys, the same few in every pool
def _read_plain(text: str) -> tuple[Scalar, bool, str]:
    """Return an unquoted scalar's value, whether its spelling must be kept, and what YAML 1.1 reads instead."""
    value = parse_plain(text)
    return value, type(value) is not str and str(value) != text, other_reading(text, value)


_HANDLERS: Final[dict[object, Callable[[Reader, _Event], None]]] = {
    ScalarEvent: Reader.scalar,
    MappingStartEvent: Reader.start_mapping,
    MappingEndEvent: Reader.end,
    SequenceStartEvent: Reader.start_sequence,
    SequenceEndEvent: Reader.end,
    AliasEvent: Reader.alias,
    DocumentStartEvent: Reader.start_document,
    DocumentEndEvent: Reader.end_document,
}
