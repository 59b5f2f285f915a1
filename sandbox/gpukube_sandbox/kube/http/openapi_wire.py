"""Encodes an OpenAPI version 2 document as protobuf.

In scope: a table of the messages of openapi.v2.Document that the sandbox's document needs, and their encoding. Out of
scope: the content of the document (`openapi_v2`).

Source: google/gnostic openapiv2/OpenAPIv2.proto; protobuf.dev, programming-guides/encoding.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

_BYTES = 2
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Document": {
        "swagger": (1, "string"),
        "info": (2, "Info"),
        "paths": (8, "Paths"),
        "definitions": (9, "named:Schema"),
    },
    "Info": {"title": (1, "string"), "version": (2, "string")},
    "Paths": {},
    "Schema": {
        "$ref": (1, "string"),
        "type": (22, "TypeItem"),
        "items": (23, "ItemsItem"),
        "properties": (25, "named:Schema"),
    },
}
"""Message -> JSON key -> field number and type; "named:" is a message with pairs of a name and that type."""

_EXTENSIONS = {"Schema": 31}
"""Message -> field number of its vendor_extension."""


def encode_document(document: JsonObject) -> bytes:
    """Encode a document as openapi.v2.Document.

    Raises:
        KeyError: It contains a key that is not in the table.
    """
    return _message(document, "Document")


def _message(values: JsonObject, form: str) -> bytes:
    fields, written = _MESSAGES[form], bytearray()
    for key, value in values.items():
        if key.startswith("x-"):
            # The type Any carries values without their own message as YAML, a superset of JSON.
            carried = _field(1, key.encode()) + _field(2, _field(2, json.dumps(value).encode()))
            written += _field(_EXTENSIONS[form], carried)
        else:
            number, kind = fields[key]
            written += _field(number, _value(value, kind))
    return bytes(written)


def _value(value: Any, form: str) -> bytes:  # noqa: ANN401 -- any JSON value
    if form == "string":
        return str(value).encode()
    if form == "TypeItem":
        return _field(1, value.encode())
    if form == "ItemsItem":
        return _field(1, _message(value, "Schema"))
    if form.startswith("named:"):
        of = form.removeprefix("named:")
        return b"".join(
            _field(1, _field(1, name.encode()) + _field(2, _message(item, of))) for name, item in value.items()
        )
    return _message(value, form)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:  # noqa: PLR2004 -- seven bits per byte
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
