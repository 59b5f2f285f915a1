"""Lists in chunks: `limit` and `continue`.

In scope: the token, and the objects as of the first chunk. Out of scope: HTTP responses.

Source: docs reference/using-api/api-concepts, retrieving large result sets in chunks; k8s.io/apiserver
pkg/storage/continue.go.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import name_of, namespace_of
from gpukube_sandbox.kube.store.problems import ApiProblem, bad_request, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube_sandbox.kube.http.requests import Target
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You must start a new list without "
    "the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Page:
    """A chunk of a list.

    Attributes:
        items: The objects.
        version: resourceVersion of the whole list.
        more: Metadata with the token of the next chunk; empty for the last one.
    """

    items: list[JsonObject]
    version: int
    more: JsonObject = field(default_factory=dict)


def read_page(store: Store, target: Target, query: Mapping[str, str], selects: Callable[[JsonObject], bool]) -> Page:
    """Return the requested chunk; all objects if the query has no limit.

    Raises:
        ApiProblem: 400 for an invalid token, 410 if its version is no longer in the log.
    """
    version, start = _read_token(query["continue"]) if query.get("continue") else (store.version, ("", ""))
    held = _objects_at(store, target, version)
    found = [obj for key, obj in sorted(held.items()) if key > start and selects(obj)]
    _check_version(query)
    requested = query.get("limit") or "0"
    if not requested.removeprefix("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{requested}": invalid syntax')
    limit = max(int(requested), 0)
    if not limit or len(found) <= limit:
        return Page(found, version)
    chunk = found[:limit]
    more: JsonObject = {"continue": _write_token(version, chunk[-1])}
    if not query.get("labelSelector") and not query.get("fieldSelector"):
        more["remainingItemCount"] = len(found) - limit
    return Page(chunk, version, more)


def _objects_at(store: Store, target: Target, version: int) -> dict[tuple[str, str], JsonObject]:
    """Return the objects as of a version, so that all chunks of a list are consistent."""
    held = {(namespace_of(obj), name_of(obj)): obj for obj in store.all_of(target.kind, target.namespace)}
    try:
        changes = store.changes_since(target.kind, version)
    except ApiProblem:
        raise ApiProblem(410, "Expired", _EXPIRED) from None
    for change in reversed(changes):
        key = (namespace_of(change.obj), name_of(change.obj))
        held.pop(key, None)
        if change.old is not None and target.namespace in {"", key[0]}:
            held[key] = change.old
    return held


def _check_version(query: Mapping[str, str]) -> None:
    since = query.get("resourceVersion") or ""
    if since and not since.isdigit():
        text = f'Invalid value: "{since}": strconv.ParseUint: parsing "{since}": invalid syntax'
        raise bad_request(f"invalid resource version: resourceVersion: {text}")
    match, lasts = query.get("resourceVersionMatch") or "", query.get("timeoutSeconds") or "0"
    if not lasts.removeprefix("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{lasts}": invalid syntax')
    if match not in {"", "Exact", "NotOlderThan"}:
        text = f'resourceVersionMatch: Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        raise invalid("ListOptions", "", text, "meta.k8s.io")
    if match and not since:
        text = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise invalid("ListOptions", "", text, "meta.k8s.io")


def _write_token(version: int, last: JsonObject) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": version, "start": f"{namespace_of(last)}/{name_of(last)}"}
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = content["start"].partition("/")
        return int(content["rv"]), (namespace, name)
    except (ValueError, TypeError, KeyError):
        raise bad_request(f"continue key is not valid: {token}") from None
