"""Documents read back from a file, which may come from anybody: a pull request, an editor, another gpukube.

In scope: reading, and the checks after which whoever shows a document may rely on its shape. Out of scope: how
it is shown (cli), documents of several shards made one.
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
"""A plan of 10,000 pools takes some tens of MiB."""
MOST_DEEP: Final = 60
"""Objects and lists in each other; documents have about 20 with a cloud's request in them."""
_MOST_DIGITS: Final = 18
_SHOWN: Final = 200
_AGAIN: Final = "write it again: gpukube ... -o json > FILE"


def read_document(path: str) -> Document:
    """Read a document that a run wrote with `-o json`; every key of its shape is there, and of its type.

    Args:
        path: The file; "-" for standard input.

    Raises:
        SpecError: The file cannot be read, is no document of gpukube, or one that another version of it wrote.
    """
    document = _parsed(_read(path), path)
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(kind, str):
        _refuse("report-document", path, "it is not a document of gpukube: it has no kind")
    if kind == "SavedPlan":
        fix = "gpukube pool plan -o json writes the plan as a document; this file is for gpukube pool apply"
        _refuse("report-document", path, "it is a saved plan", fix=fix)
    if kind not in SCHEMA_NAMES:
        fix = "show it with the gpukube that wrote it, or write it again with this one"
        _refuse("report-document", path, f'this gpukube has no documents of kind "{_short(kind)}"', fix=fix)
    shape, version = document_shape(kind), document.get("schemaVersion")
    (known,) = get_args(get_type_hints(shape)["schemaVersion"])
    if version != known or isinstance(version, bool):
        fix = "show it with the gpukube that wrote it, or write it again with this one"
        message = f"its schemaVersion is {_short(json.dumps(version))}; for a {kind} this gpukube reads {known}"
        _refuse("report-version", path, message, fix=fix)
    try:
        msgspec.convert(document, shape)
    except (ValueError, RecursionError) as error:
        # A key that came with a newer gpukube is missing in what an older one wrote.
        fix = f"it was edited, or is of another version; {_AGAIN}"
        _refuse("report-document", path, f"it is not a whole {kind}: {_short(_lowered(error))}", fix=fix)
    return document


def _read(path: str) -> bytes:
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MOST_BYTES + 1) if sys.stdin else b""  # None: the shell has closed it
        else:
            with open(path, "rb") as file:  # noqa: PTH123 - the name as it was given; a pipe is one too
                raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror or "unknown error").lower() if isinstance(error, OSError) else "not a path"
        fix = "use a file that a command wrote with -o json"
        _refuse("report-file", path, f"it cannot be read: {reason}", fix=fix)
    if len(raw) > MOST_BYTES:
        _refuse("report-file", path, f"it is larger than {MOST_BYTES} bytes", fix="split the run with --cluster")
    if not raw.strip():
        fix = "the run that should have written it failed: see what it reported, and run it again"
        _refuse("report-cut", path, "it is empty", fix=fix)
    return raw


def _parsed(raw: bytes, path: str) -> object:
    try:
        document: object = json.loads(raw, parse_constant=_number, parse_float=_number, parse_int=_integer)
        _require_flat(document)
        json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair is no text, and nothing can write it
    except (ValueError, RecursionError) as error:
        if _is_cut(error):
            fix = "the run that wrote it was ended: run it again"
            _refuse("report-cut", path, f"it is cut off: {_short(_lowered(error))}", fix=fix)
        _refuse("report-document", path, f"it is not JSON: {_short(_lowered(error))}")
    return document


def _is_cut(error: Exception) -> bool:
    """Return whether it is the beginning of an object that is not JSON, and nothing that stands in it."""
    if not isinstance(error, json.JSONDecodeError) or not error.doc.lstrip().startswith("{"):
        return False
    rest = error.doc[error.pos :].rstrip()  # of a word or an escape that is not complete, that
    return error.msg.startswith("Unterminated string") or (error.msg != "Extra data" and len(rest) < len("\\u00e4"))


def _number(text: str) -> float:
    """Read a number that arithmetic holds: JSON has neither infinities nor NaN, and 1e999 would be one."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:_MOST_DIGITS]} is none")
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
