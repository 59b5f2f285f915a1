"""The OpenAPI version 2 document, with which Helm 3 and older kubectl validate objects before sending them.

In scope: the document as plain data, built from the types that this API validates, and the choice of its encoding.
Out of scope: validation on the server (`schema`), protobuf (`openapi_wire`), version 3 (`discovery`).

Types are declared only as far as `schema` checks them: no field is required, nothing has a format. How clients use it:
kubernetes/kube-openapi pkg/util/proto/document.go and validation/types.go.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, get_args, get_origin

from gpukube_sandbox.kube.http.openapi_wire import encode_document
from gpukube_sandbox.kube.store.schema import field_hints, model_of, required_hint
from gpukube_sandbox.kube.store.structure import PATCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

_ASKS_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
# Go's media type parser rejects the "@" in the request's type, so current servers answer with a dot.
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_JSON = "application/json"

_SCALARS: dict[type, str] = {str: "string", int: "integer", bool: "boolean", float: "number"}


def encoded(kinds: Iterable[Kind], accept: str) -> tuple[bytes, str]:
    """Encode the document in the format that a client accepts.

    Returns:
        The body and its content type: protobuf for clients that accept it, JSON for all others.
    """
    return _encoded(tuple(kinds), protobuf=_ASKS_PROTOBUF in accept or _PROTOBUF in accept)


@functools.lru_cache(maxsize=8)
def _encoded(kinds: tuple[Kind, ...], *, protobuf: bool) -> tuple[bytes, str]:
    whole = document(kinds)
    return (encode_document(whole), _PROTOBUF) if protobuf else (json.dumps(whole).encode(), _JSON)


def document(kinds: Iterable[Kind]) -> JsonObject:
    """Return the document of these types: a definition for each type and for the types of its parts."""
    definitions: JsonObject = {}
    for kind in kinds:
        model = model_of(kind.group, kind.kind)
        name = _name(model) if model else ".".join((*reversed(kind.group.split(".")), kind.version, kind.kind))
        # An open type has no "type", not "object": clients read "object" as a map, which must not contain null.
        definitions.setdefault(name, {})["x-kubernetes-group-version-kind"] = [
            {"group": kind.group, "version": kind.version, "kind": kind.kind}
        ]
        if model:
            _declare(model, definitions)
    info = {"title": "Kubernetes", "version": "unversioned"}
    return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}


def _name(model: type) -> str:
    return f"io.k8s.api.{model.__module__.rpartition('.')[2].replace('_', '.')}.{model.__name__}"


def _declare(model: type, definitions: JsonObject) -> None:
    waiting = [model]
    while waiting:
        model = waiting.pop()
        entry = definitions.setdefault(_name(model), {})
        if "properties" in entry:
            continue
        hints = field_hints(model)
        properties = {field: _schema(hint) | _patch_marks(model, field) for field, hint in hints.items()}
        if model.__name__ == "ObjectMeta":
            properties["clusterName"] = {}  # no longer served, but not rejected
        entry |= {"type": "object", "properties": properties}
        waiting += [part for hint in hints.values() for part in _parts(hint)]


def _patch_marks(model: type, field: str) -> dict[str, str]:
    strategy, key = PATCHES.get((model.__name__, field), ("", ""))
    marks = {"x-kubernetes-patch-strategy": strategy, "x-kubernetes-patch-merge-key": key}
    return {name: value for name, value in marks.items() if value}


def _schema(hint: Any) -> JsonObject:  # noqa: ANN401 -- any type hint
    """Return a JSON Schema of the server's checks of a value; empty if it accepts anything."""
    hint = required_hint(hint)
    if get_origin(hint) is list:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if hint is dict:
        return {"type": "object"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    return {"$ref": f"#/definitions/{_name(hint)}"} if _is_model(hint) else {}


def _parts(hint: Any) -> Iterator[type]:  # noqa: ANN401 -- any type hint
    hint = required_hint(hint)
    if get_origin(hint) is list:
        yield from _parts(get_args(hint)[0])
    elif _is_model(hint):
        yield hint


def _is_model(hint: Any) -> bool:  # noqa: ANN401 -- any type hint
    return isinstance(hint, type) and hasattr(hint, "from_dict")
