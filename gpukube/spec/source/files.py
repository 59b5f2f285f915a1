"""Reads texts from files, directories, patterns, and stdin.

In scope: reading, with failures as diagnostics. Out of scope: YAML.

Patterns are expanded here too, for quoted ones in CI files and for shells that do not expand them (cmd.exe,
PowerShell). A file that several paths name is read once.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding, Where
from gpukube.spec.source.document import MOST_BYTES
from gpukube.spec.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

_SUFFIXES: Final = (".yaml", ".yml")
_KIND: Final = b"GPUNodePools"
_OPENED: Final = ("/dev/fd/", "/dev/stdin", "/proc/")
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class Source:
    """One text and its name in messages."""

    name: str
    text: str


def read_sources(
    paths: Sequence[str], stdin: TextIO | None, *, most: int = MOST_BYTES
) -> tuple[tuple[Source, ...], tuple[Finding, ...]]:
    """Read all paths.

    Paths are files; directories (their *.yaml and *.yml, not recursive); patterns with * ? [] and ** (any depth), which
    match only files; "-" for stdin. Directories and patterns skip hidden files and return the others sorted by name.

    At most one byte more than the limit is read from each; the YAML reader then rejects it.

    Args:
        paths: Paths as written.
        stdin: Read if a path is "-".
        most: The limit, in bytes.
    """
    if not paths:
        return (), (Finding("file-missing", Where("-f"), "no spec given", fix="add -f FILE"),)
    seen: set[str] = set()
    read = [entry for path in paths for entry in _read(path, stdin, seen, most)]
    return (
        tuple(entry for entry in read if isinstance(entry, Source)),
        tuple(entry for entry in read if isinstance(entry, Finding)),
    )


def read_regular(paths: Sequence[str], *, most: int) -> Iterator[str]:
    """Yield the texts of readable regular files, for completion, which must not block or have side effects.

    Pipes, terminals, and stdin are skipped.

    Args:
        paths: As written.
        most: Maximum bytes of all files together; the rest is not read.
    """
    for path in paths:
        try:
            files = [] if path == "-" else _files(path)
        except (OSError, ValueError):
            continue
        for file in () if isinstance(files, Finding) else files:
            found = _read_file(file, most) if Path(file).is_file() else None
            if isinstance(found, Source):
                most -= len(found.text)
                yield found.text
            if most <= 0:
                return


def _read(path: str, stdin: TextIO | None, seen: set[str], most: int) -> Iterator[Source | Finding]:
    """Read one path; `seen` contains the files read before, under any name."""
    if path == "-":
        yield _read_stdin(stdin, most)
        return
    try:
        files = _files(path)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        yield _explain(error, path)
        return
    if isinstance(files, Finding):
        yield files
        return
    for file in files:
        place = os.path.abspath(file)  # noqa: PTH100 - resolve() would follow links, which can fail
        if place not in seen:
            seen.add(place)
            yield _read_file(file, most)


def _files(path: str) -> list[str] | Finding:
    """Return the files of a path: itself, a directory's content, or a pattern's matches."""
    if Path(path).is_dir():
        inside = sorted(str(file) for file in Path(path).iterdir() if _is_spec(file))
        return inside or Finding(
            "directory-empty",
            Where(path),
            "contains no *.yaml or *.yml file",
            fix="pass the file, or another directory",
        )
    if not glob.has_magic(path) or Path(path).exists():
        return [path]
    matches = sorted(name for name in glob.iglob(path, recursive=True) if Path(name).is_file())  # noqa: PTH207 - names as written, without hidden ones
    return matches or Finding("pattern-empty", Where(path), "matches no file", fix=_loosen(path))


def _loosen(pattern: str) -> str:
    """Return the fix with the nearest pattern that matches something."""
    folder = pattern
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120 - "" without a folder
    deeper = os.path.join(folder, "**", "*.yaml")  # noqa: PTH118 - as the user would write it
    if Path(folder or ".").is_dir() and deeper != pattern and next(glob.iglob(deeper, recursive=True), None):  # noqa: PTH207
        return f"write {deeper}"
    return "check the pattern and its directory"


def _is_spec(file: Path) -> bool:
    return file.suffix in _SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def _read_stdin(stdin: TextIO | None, most: int) -> Source | Finding:
    if stdin is None:
        return Finding("file-unreadable", Where("-"), "stdin is closed", fix="pass a file")
    try:
        return Source("-", stdin.read(most + 1))
    except UnicodeDecodeError as error:
        return _explain_encoding(error, "-")
    except OSError as error:
        return _explain(error, "-")


def _read_file(name: str, most: int) -> Source | Finding:
    try:
        if _waits(name):
            fix = "pass a file, - for stdin, or <(COMMAND)"
            return Finding("file-unreadable", Where(name), "cannot be read: it is a named pipe", fix=fix)
        with Path(name).open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        return _explain(error, name)
    try:
        return Source(name, raw.decode("utf-8-sig", "ignore" if len(raw) > most else "strict"))
    except UnicodeDecodeError as error:
        return _explain_encoding(error, name)


def _waits(name: str) -> bool:
    """Return whether opening a path may block: a named pipe may have no writer, but one from the shell has."""
    return not name.startswith(_OPENED) and stat.S_ISFIFO(Path(name).stat().st_mode)


def _explain(error: OSError | ValueError, name: str) -> Finding:
    if isinstance(error, OSError) and error.errno in _MISSING:
        return Finding("file-missing", Where(name), "does not exist", fix=_suggest(name))
    reason = (error.strerror or "unknown error") if isinstance(error, OSError) else "not a path"
    return Finding(
        "file-unreadable", Where(name), f"cannot be read: {reason.lower()}", fix="check the path and its permissions"
    )


def _suggest(name: str) -> str:
    """Return the fix with the most similar file in the same folder."""
    try:
        beside = {file.name for file in Path(name).parent.iterdir()}
    except OSError:
        return "check the path"
    while near := nearest(Path(name).name, beside):
        if _holds_spec(found := Path(name).with_name(near)):
            return f"did you mean {found}?"
        beside.remove(near)
    return "check the path"


def _holds_spec(path: Path) -> bool:
    """Return whether a file contains gpukube's kind, or a directory contains YAML files."""
    try:
        if path.is_dir():
            return any(map(_is_spec, path.iterdir()))
        if _waits(str(path)):
            return False
        with path.open("rb") as file:
            return _KIND in file.read(MOST_BYTES)
    except OSError:
        return False


def _explain_encoding(error: UnicodeDecodeError, name: str) -> Finding:
    before = error.object[: error.start]
    line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
    return Finding(
        "encoding",
        Where(name, line, column),
        f"byte 0x{error.object[error.start]:02x} is not UTF-8",
        fix="save the file as UTF-8",
    )
