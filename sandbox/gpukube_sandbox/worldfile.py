"""World files: the initial content of a sandbox.

In scope: reading a file, declaring it in a running sandbox, and the position of each mistake. Out of scope: the content
of an entry, which each cloud validates.

Plain scalars are parsed as in YAML 1.2, but only those that occur in world files: a version `1.30` and an account
`012345678901` stay strings.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import yaml

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Part = Literal["clusters", "things", "stock"]
PARTS: Final[tuple[Part, ...]] = ("clusters", "things", "stock")
_SHAPE: Final = (
    "write clusters: [{provider: eks, account: ..., region: ..., name: ...}], things: [{provider: eks, ...}] and "
    "stock: [{provider: eks, free: 0}]"
)
_ENTRY: Final = "see docs/sandbox.md, What exists, for the format"
_MAX_BYTES: Final = 1 << 20
_MAX_VALUES: Final = 100_000
"""Maximum number of values, including those of aliases: a few lines can expand to billions."""
_DEEPEST: Final = 50
_OPENED: Final = ("/dev/fd/", "/dev/stdin", "/proc/")
"""Paths of pipes that the shell opened, <(COMMAND), which have a writer."""
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a world file.

    Attributes:
        file: File name as specified.
        line: Line, starting at 1; 0 for the file as a whole.
        column: Column, starting at 1; 0 for the file as a whole.
        message: What is wrong, one lower-case line.
        fix: What to write or do.
    """

    file: str
    line: int
    column: int
    message: str
    fix: str

    def __str__(self) -> str:
        """Render as file:line:column: message."""
        return f"{self.file}:{self.line}:{self.column}: {self.message}" if self.line else f"{self.file}: {self.message}"


class WorldError(Exception):
    """A world file cannot be read, is invalid, or contains an entry that the sandbox rejects.

    Args:
        mistakes: At least one, sorted by position.
    """

    def __init__(self, *mistakes: Mistake) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a world file.

    Attributes:
        part: Key of the list that contains it.
        body: The entry, as the control API expects it.
        file: Its file.
        node: The entry with positions.
    """

    part: Part
    body: dict[str, object]
    file: str
    node: yaml.MappingNode

    def mistake_at(self, at: Iterable[str | int], message: str) -> Mistake:
        """Return a mistake at a path of keys and indexes, or at the nearest enclosing value in the file."""
        place: yaml.Node = self.node
        node: yaml.Node = self.node
        for step in at:
            if isinstance(node, yaml.MappingNode):
                pair = next((pair for pair in node.value if pair[0].value == step), None)
                if pair is None:
                    place = node
                    break
                place, node = pair
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                place = node = node.value[step]
            else:
                break
        return _mistake(self.file, place, message, _ENTRY)


def read_world(path: str) -> list[Entry]:
    """Read a world file and return its entries, clusters first.

    Raises:
        WorldError: It cannot be read, or is invalid; contains all mistakes.
    """
    text = _read(path)
    found: list[Mistake | Entry] = []
    try:
        for root in yaml.compose_all(text, Loader=yaml.SafeLoader):
            found += _entries(root, path)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise WorldError(Mistake(path, *place, f"not YAML: {error.problem or error.context}", _SHAPE)) from error
    except (yaml.YAMLError, RecursionError) as error:  # a character that YAML does not allow; endless brackets
        reason = getattr(error, "reason", "nested too deeply")
        raise WorldError(Mistake(path, 0, 0, f"not YAML: {reason}", _SHAPE)) from error
    if wrong := [item for item in found if isinstance(item, Mistake)]:
        raise WorldError(*wrong)
    return sorted((item for item in found if isinstance(item, Entry)), key=lambda entry: PARTS.index(entry.part))


def populate(info: daemon.SandboxInfo, entries: Iterable[Entry]) -> None:
    """Declare entries in a running sandbox; existing resources stay unchanged.

    Raises:
        WorldError: The sandbox rejects an entry. Entries before it are declared, entries after it are not.
        SandboxError: It does not respond.
    """
    for entry in entries:
        try:
            daemon.call(info, "POST", entry.part, entry.body)
        except daemon.Refused as error:
            raise WorldError(entry.mistake_at(error.at, str(error))) from error


def _read(path: str) -> str:
    try:
        if not path.startswith(_OPENED) and stat.S_ISFIFO(Path(path).stat().st_mode):  # reading could block
            raise WorldError(Mistake(path, 0, 0, "cannot be read: it is a named pipe", "pass a file, or <(COMMAND)"))
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise WorldError(Mistake(path, 0, 0, "does not exist", "check the path")) from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = ((isinstance(error, OSError) and error.strerror) or "not a path").lower()
        fix = "check the path and its permissions"
        raise WorldError(Mistake(path, 0, 0, f"cannot be read: {reason}", fix)) from error
    if len(raw) > _MAX_BYTES:
        raise WorldError(Mistake(path, 0, 0, f"is larger than {_MAX_BYTES} bytes", "split it into several files"))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start) + 1, error.start - raw.rfind(b"\n", 0, error.start)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise WorldError(Mistake(path, line, column, message, "save the file as UTF-8")) from error


def _entries(root: yaml.Node, path: str) -> Iterator[Mistake | Entry]:
    if isinstance(root, yaml.ScalarNode) and _scalar(root) is None:
        return
    if not isinstance(root, yaml.MappingNode):
        yield _mistake(path, root, "a world is a mapping", _SHAPE)
        return
    for key, value in root.value:
        part = next((name for name in PARTS if name == key.value), None)
        if part is None:
            yield _mistake(path, key, f'a world has no "{key.value}"', _SHAPE)
        elif not isinstance(value, yaml.SequenceNode):
            yield _mistake(path, value, f"{part} must be a list", _SHAPE)
        else:
            for item in value.value:
                plain = _Plain(path)
                body = plain.value(item)
                if not isinstance(item, yaml.MappingNode):
                    yield _mistake(path, item, f"an entry of {part} must be a mapping", _SHAPE)
                elif plain.mistakes:
                    yield from plain.mistakes
                elif isinstance(body, dict):
                    yield Entry(part, body, path, item)


class _Plain:
    """Converts YAML nodes to plain values, and collects mistakes."""

    def __init__(self, path: str) -> None:
        self.mistakes: list[Mistake] = []
        self._path = path
        self._count = 0

    def value(self, node: yaml.Node, depth: int = 0) -> object:
        self._count += 1
        if depth > _DEEPEST or self._count > _MAX_VALUES:
            if not self.mistakes:
                self.mistakes.append(_mistake(self._path, node, "has too many values", "write fewer, without aliases"))
            return None
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.mistakes.append(_mistake(self._path, key, "a key must be a string", _ENTRY))
            elif key.value in found:
                self.mistakes.append(_mistake(self._path, key, f'key "{key.value}" is written twice', "keep one"))
            else:
                found[key.value] = self.value(value, depth + 1)
        return found


def _scalar(node: yaml.ScalarNode) -> object:
    text = str(node.value)
    if node.style is None and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if node.style is None and _WHOLE.fullmatch(text) and len(text) < 20 else text  # noqa: PLR2004 - longer than any count


def _mistake(path: str, node: yaml.Node, message: str, fix: str) -> Mistake:
    mark = node.start_mark
    return Mistake(path, mark.line + 1, mark.column + 1, message, fix)
