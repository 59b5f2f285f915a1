"""The file of a saved plan: written so that only its owner can read it, read with an explanation of every defect.

In scope: writing and reading, and checks before the content is used. Out of scope: the content of a plan.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from gpukube import __version__
from gpukube.engine.saved.options import PlanOptions
from gpukube.engine.saved.recording import digest
from gpukube.engine.saved.records import KIND, SCHEMA_VERSION, PlanRecord
from gpukube.engine.saved.specs import unpack_specs
from gpukube.errors import Finding, SpecError, Where

if TYPE_CHECKING:
    from gpukube.engine.documents.parts import Document
    from gpukube.spec.loading.load import LoadedSpec

MOST_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of the file; a plan of 10,000 pools has some tens of MiB."""
_AGAIN: Final = "plan again: gpukube pool plan -f FILE --out plan.json"


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A saved plan that was read: its checksum is right and its specs are valid.

    Attributes:
        specs: The specs, ready to be prepared.
        options: Other options that shaped the plan.
        record: The whole file.
        source: The path as the user wrote it.
        warnings: Warnings about the file.
    """

    specs: tuple[LoadedSpec, ...]
    options: PlanOptions
    record: PlanRecord
    source: str
    warnings: tuple[Finding, ...] = ()


def write_plan(document: Document, path: str) -> None:
    """Write a saved plan, readable only for its owner; replace an existing file atomically.

    A symbolic link at the path is replaced too, never followed, as somebody else may have chosen its target.

    Raises:
        SpecError: No file can be written at the path.
        OSError: Writing fails, for example because the disk is full.
    """
    place = Path(path)
    where = Where(str(place))
    if not place.parent.is_dir():
        message = f'the directory "{place.parent}" does not exist'
        raise SpecError(message, where=where, fix="create it, or use another", code="saved-plan-path")
    if not place.is_symlink() and place.exists() and not place.is_file():
        raise SpecError("it is not a regular file", where=where, fix="use the path of a file", code="saved-plan-path")
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    # mkstemp creates with O_EXCL and O_NOFOLLOW and mode 0600, under a name that nobody can predict.
    handle, temporary = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_plan(path: str, *, version: str = __version__) -> SavedPlan:
    """Read a saved plan and check everything that needs no cloud.

    Args:
        path: The file.
        version: Version of this gpukube.

    Raises:
        SpecError: The file cannot be read, is not a saved plan, has another format or is from a newer gpukube, was
            changed after it was written, or contains an invalid spec.
    """
    raw, mode = _read(path)
    document = _parse(raw, path)
    schema, writer = document.get("schemaVersion"), document.get("gpukubeVersion")
    if schema != SCHEMA_VERSION:
        message = f"its format is {json.dumps(schema)}; this gpukube reads {SCHEMA_VERSION}"
        _refuse("saved-plan-version", path, message, fix="apply it with the gpukube that wrote it, or plan again")
    if isinstance(writer, str) and _numbers(writer) > _numbers(version):
        message = f"it was written by gpukube {writer}; this is {version}"
        _refuse("saved-plan-version", path, message, fix=f"install gpukube {writer}, or plan again")
    if document.get("checksum") != _checksum(document, path):
        _refuse(
            "saved-plan-edited",
            path,
            "it was changed after it was written: its checksum does not match",
            why="a saved plan is applied as it was reviewed, or not at all",
        )
    try:
        record = msgspec.convert(document, PlanRecord)
        specs = unpack_specs(record.specs)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        _refuse("saved-plan", path, f"it is not a saved plan of gpukube: {_lowered(error)}", cause=error)
    options = PlanOptions(**msgspec.structs.asdict(record.options))
    return SavedPlan(specs, options, record, path, _exposure(path, mode))


def _checksum(document: Document, path: str) -> str:
    try:
        return digest({key: value for key, value in document.items() if key != "checksum"})
    except RecursionError as error:
        _refuse("saved-plan", path, f"it is not JSON: {_lowered(error)}", cause=error)


def _read(path: str) -> tuple[bytes, int]:
    """Read at most one byte more than the limit, and the mode of that same file."""
    try:
        # Opening a pipe without a writer would block.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror or "unknown error").lower() if isinstance(error, OSError) else "not a path"
        _refuse(
            "saved-plan", path, f"it cannot be read: {reason}", fix="use the file that plan --out wrote", cause=error
        )
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        _refuse("saved-plan", path, "it is not a file", fix="use the file that plan --out wrote")
    with os.fdopen(handle, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        _refuse("saved-plan", path, f"it is larger than {MOST_BYTES} bytes")
    return raw, status.st_mode


def _parse(raw: bytes, path: str) -> Document:
    try:
        document: object = json.loads(raw, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse("saved-plan", path, f"it is not JSON: {_lowered(error)}", cause=error)
    if not isinstance(document, dict) or document.get("kind") != KIND:
        message = document.get("kind") if isinstance(document, dict) else None
        seen = f'its kind is "{message}"' if isinstance(message, str) else "it has no kind"
        _refuse(
            "saved-plan",
            path,
            f"it is not a saved plan: {seen}",
            fix="use the file that plan --out wrote; pass a spec with -f",
        )
    return document


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Reject a key that is written twice: parsers disagree on which value counts."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is written twice")
    return made


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version; a suffix (rc1, .dev0) does not count."""
    found = re.match(r"\d{1,9}(\.\d{1,9})*", version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()


def _exposure(path: str, mode: int) -> tuple[Finding, ...]:
    """Warn about a file that others may read or change; only a warning, as CI easily loses a file's mode."""
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ()
    what = "change" if mode & (stat.S_IWGRP | stat.S_IWOTH) else "read"
    return (
        Finding(
            "saved-plan-open",
            Where(path),
            f"others on this machine may {what} it (mode {stat.S_IMODE(mode):04o})",
            fix=f"chmod 600 {path}",
            why="it contains specs and requests with the values of variables; its checksum is not a signature",
            severity="warning",
        ),
    )


def _lowered(error: Exception) -> str:
    text = str(error) if not isinstance(error, RecursionError) else "nested too deep"
    return text[:1].lower() + text[1:].rstrip(".")


def _refuse(  # noqa: PLR0913 - the parts of a message
    code: str, path: str, message: str, *, fix: str = _AGAIN, why: str = "", cause: Exception | None = None
) -> NoReturn:
    raise SpecError(message, where=path, fix=fix, why=why, code=code) from cause
