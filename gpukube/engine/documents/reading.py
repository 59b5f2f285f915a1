"""Documents read back from a file, which may come from anyone: a pull request, an editor, another gpukube.

In scope: reading, and checks that let consumers rely on the shape. Out of scope: rendering (cli), merging documents of
several shards.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Final, NoReturn, get_args, get_type_hints

import msgspec

from gpukube.engine.documents.schema import SCHEMA_NAMES, document_shape
from gpukube.errors import SpecError

if TYPE_CHECKING:
    from gpukube.engine.documents.parts import Document

MOST_BYTES: Final = 256 * 1024 * 1024
"""Maximum size; a plan of 10,000 pools is some tens of MiB."""
MOST_DEEP: Final = 60
"""Maximum nesting of objects and lists; documents, including a cloud's request, have about 20 levels."""
_MOST_DIGITS: Final = 18
_SHOWN: Final = 200
_AGAIN: Final = "create it again: gpukube ... -o json > FILE"


def read_document(path: str) -> Document:
    """Read a document that a run wrote with `-o json`; every required key exists and has the right type.

    Args:
        path: The file; "-" for standard input.

    Raises:
        SpecError: The file cannot be read, is not a gpukube document, or was written by an incompatible version.
    """
    document = _parsed(_read(path), path)
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(kind, str):
        _refuse("report-document", path, "it is not a gpukube document: it has no kind")
    if kind == "SavedPlan":
        fix = "gpukube pool plan -o json writes the plan as a document; this file is input for gpukube pool apply"
        _refuse("report-document", path, "it is a saved plan", fix=fix)
    if kind not in SCHEMA_NAMES:
        fix = "show it with the gpukube that wrote it, or create it again with this one"
        _refuse("report-document", path, f'this gpukube has no documents of kind "{_short(kind)}"', fix=fix)
    shape, version = document_shape(kind), document.get("schemaVersion")
    (known,) = get_args(get_type_hints(shape)["schemaVersion"])
    if version != known or isinstance(version, bool):
        fix = "show it with the gpukube that wrote it, or create it again with this one"
        message = f"its schemaVersion is {_short(json.dumps(version))}, but for a {kind} this gpukube reads {known}"
        _refuse("report-version", path, message, fix=fix)
    try:
        msgspec.convert(document, shape)
    except (ValueError, RecursionError) as error:
        # A document from an older gpukube lacks keys that were added later.
        fix = f"it was edited, or is from another version; {_AGAIN}"
        _refuse("report-document", path, f"it is not a complete {kind}: {_short(_lowered(error))}", fix=fix)
    return document


def _read(path: str) -> bytes:
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MOST_BYTES + 1) if sys.stdin else b""  # None: the shell closed it
        else:
            with open(path, "rb") as file:  # noqa: PTH123 - the path as given; pipes work too
                raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror or "unknown error").lower() if isinstance(error, OSError) else "not a path"
        fix = "use a file that a command wrote with -o json"
        _refuse("report-file", path, f"it cannot be read: {reason}", fix=fix)
    if len(raw) > MOST_BYTES:
        _refuse("report-file", path, f"it is larger than {MOST_BYTES} bytes", fix="split the run with --cluster")
    if not raw.strip():
        fix = "the run that should have written it failed: check its output, and run it again"
        _refuse("report-cut", path, "it is empty", fix=fix)
    return raw


def _parsed(raw: bytes, path: str) -> object:
    try:
        document: object = json.loads(raw, parse_constant=_number, parse_float=_number, parse_int=_integer)
        _require_flat(document)
        json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is not text and cannot be written
    except (ValueError, RecursionError) as error:
        if _is_cut(error):
            fix = "the run that wrote it was interrupted: run it again"
            _refuse("report-cut", path, f"it is truncated: {_short(_lowered(error))}", fix=fix)
        _refuse("report-document", path, f"it is not JSON: {_short(_lowered(error))}")
    return document


def _is_cut(error: Exception) -> bool:
    """Return whether JSON failed because an object is incomplete, rather than because of its content."""
    if not isinstance(error, json.JSONDecodeError) or not error.doc.lstrip().startswith("{"):
        return False
    rest = error.doc[error.pos :].rstrip()  # the rest of an incomplete word or escape
    return error.msg.startswith("Unterminated string") or (error.msg != "Extra data" and len(rest) < len("\\u00e4"))


def _number(text: str) -> float:
    """Parse a number that arithmetic can use: JSON has neither infinity nor NaN, and 1e999 would be one."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:_MOST_DIGITS]} is not finite")
    return number


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"the number {text[:_MOST_DIGITS]}... is too large")
    return int(text)


def _require_flat(document: object) -> None:
    level: list[object] = [document]
    for _ in range(MOST_DEEP):
        below = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [child for children in below for child in children]
        if not level:
            return
    raise RecursionError


def _lowered(error: Exception) -> str:
    text = str(error) if not isinstance(error, RecursionError) else "nested too deep"
    return text[:1].lower() + text[1:].rstrip(".")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _refuse(code: str, path: str, message: str, *, fix: str = _AGAIN) -> NoReturn:
    raise SpecError(message, where=path, fix=fix, code=code)
