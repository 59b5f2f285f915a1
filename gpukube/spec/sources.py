"""Files, directories and stdin -> texts.

Lives here: reading, with what can go wrong as diagnostics. Must not live here: YAML.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube.errors import Diagnostic, Where
from gpukube.spec.wording import nearest
from gpukube.spec.yamldoc import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

__all__ = ["Source", "read_sources"]

_SUFFIXES: Final = (".yaml", ".yml")
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class Source:
    """One text and the name it has in messages."""

    name: str
    text: str


def read_sources(paths: Sequence[str], stdin: TextIO | None) -> tuple[tuple[Source, ...], tuple[Diagnostic, ...]]:
    """Read all paths: files, directories (their *.yaml and *.yml by name, hidden ones left out), "-" for stdin.

    At most one byte more than the limit is read of each; the YAML reader then refuses it.
    """
    if not paths:
        return (), (Diagnostic("file-missing", Where("-f"), "no spec is given", fix="add -f FILE"),)
    read = [entry for path in paths for entry in _read(path, stdin)]
    return (
        tuple(entry for entry in read if isinstance(entry, Source)),
        tuple(entry for entry in read if isinstance(entry, Diagnostic)),
    )


def _read(path: str, stdin: TextIO | None) -> Iterator[Source | Diagnostic]:
    if path == "-":
        yield _read_stdin(stdin)
        return
    try:
        if not Path(path).is_dir():
            yield _read_file(path)
            return
        files = sorted(f for f in Path(path).iterdir() if _is_spec(f))
    except OSError as error:
        yield _explain(error, path)
        return
    if not files:
        yield Diagnostic(
            "directory-empty", Where(path), "holds no *.yaml or *.yml file", fix="name the file, or another directory"
        )
    yield from (_read_file(str(file)) for file in files)


def _is_spec(file: Path) -> bool:
    return file.suffix in _SUFFIXES and not file.name.startswith(".") and not file.is_dir()


def _read_stdin(stdin: TextIO | None) -> Source | Diagnostic:
    if stdin is None:
        return Diagnostic("file-unreadable", Where("-"), "there is no standard input", fix="name a file")
    try:
        return Source("-", stdin.read(MOST_BYTES + 1))
    except UnicodeDecodeError as error:
        return _explain_encoding(error, "-")
    except OSError as error:
        return _explain(error, "-")


def _read_file(name: str) -> Source | Diagnostic:
    try:
        with Path(name).open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        return _explain(error, name)
    try:
        return Source(name, raw.decode("utf-8-sig", "ignore" if len(raw) > MOST_BYTES else "strict"))
    except UnicodeDecodeError as error:
        return _explain_encoding(error, name)


def _explain(error: OSError | ValueError, name: str) -> Diagnostic:
    if isinstance(error, OSError) and error.errno in _MISSING:
        return Diagnostic("file-missing", Where(name), "does not exist", fix=_suggest(name))
    reason = (error.strerror or "unknown error") if isinstance(error, OSError) else "not a path"
    return Diagnostic(
        "file-unreadable", Where(name), f"cannot be read: {reason.lower()}", fix="check the path and its permissions"
    )


def _suggest(name: str) -> str:
    """Name the file beside it that was most likely meant."""
    try:
        beside = [file.name for file in Path(name).parent.iterdir()]
    except OSError:
        return "check the path"
    near = nearest(Path(name).name, beside)
    return f"write {Path(name).with_name(near)}" if near else "check the path"


def _explain_encoding(error: UnicodeDecodeError, name: str) -> Diagnostic:
    before = error.object[: error.start]
    line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
    return Diagnostic(
        "encoding",
        Where(name, line, column),
        f"byte 0x{error.object[error.start]:02x} is not UTF-8",
        fix="save the file as UTF-8",
    )
