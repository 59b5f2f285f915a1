"""Watches: the event stream after a list.

In scope: which events a watch returns, in order, until it times out. Out of scope: HTTP.

Source: docs reference/using-api/api-concepts, efficient detection of changes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Change, Store

_BOOKMARK_EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The parameters of a watch.

    Attributes:
        selects: Combined label and field selector.
        version: resourceVersion to start after; None to start with the current objects.
        initial: First send the current objects, then a bookmark (sendInitialEvents).
        bookmarks: The client allows bookmarks.
        timeout_s: Wall-clock seconds until the stream ends.
    """

    selects: Callable[[JsonObject], bool]
    version: int | None
    initial: bool
    bookmarks: bool
    timeout_s: float


async def watch(store: Store, kind: Kind, namespace: str, query: WatchQuery) -> AsyncIterator[JsonObject]:
    """Yield watch events until the timeout.

    Raises:
        ApiProblem: 410 if the starting version is no longer in the log.
    """

    def selects(obj: JsonObject) -> bool:
        return (not namespace or obj["metadata"].get("namespace") == namespace) and query.selects(obj)

    loop = asyncio.get_running_loop()
    ends = loop.time() + query.timeout_s
    with store.subscribed(kind) as wakeup:
        at = store.version if query.version is None else query.version
        if query.version is None:
            for obj in filter(selects, store.all_of(kind, namespace)):
                yield {"type": "ADDED", "object": obj}
        if query.initial:
            yield _bookmark(kind, at, {"k8s.io/initial-events-end": "true"})
        is_quiet = False
        while True:
            changes, newest = store.changes_since(kind, at), store.version
            at = changes[-1].version if changes else at
            for event in filter(None, (_event(change, selects) for change in changes)):
                yield event
            if is_quiet and query.bookmarks:
                at = max(at, newest)  # as of the changes above: later writes are still to be sent
                yield _bookmark(kind, at, {})
            left = ends - loop.time()
            if left <= 0:
                return
            is_quiet = False
            try:
                async with asyncio.timeout(min(left, _BOOKMARK_EVERY_S)):
                    await wakeup.wait()
            except TimeoutError:
                is_quiet = True


def _event(change: Change, selects: Callable[[JsonObject], bool]) -> JsonObject | None:
    now = change.verb != "DELETED" and selects(change.obj)
    before = change.old is not None and selects(change.old)
    if now:
        return {"type": "MODIFIED" if before else "ADDED", "object": change.obj}
    return {"type": "DELETED", "object": change.obj} if before else None


def _bookmark(kind: Kind, version: int, annotations: dict[str, str]) -> JsonObject:
    meta: JsonObject = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = annotations
    return {"type": "BOOKMARK", "object": {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}}
