"""The API client of controllers and kubelets: a protocol, and its implementation for the store in memory.

In scope: the `ObjectApi` protocol and `StoreApi`. Out of scope: HTTP (`remote`), controllers.

Controllers use the protocol, so they also run against a real API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.eviction import evict
from gpukube_sandbox.kube.store.kinds import kind_named
from gpukube_sandbox.kube.store.objects import labels, name_of, namespace_of
from gpukube_sandbox.kube.store.patches import merge_patch
from gpukube_sandbox.kube.store.selectors import field_test, label_test

if TYPE_CHECKING:
    from collections.abc import MutableSequence
    from contextlib import AbstractContextManager

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store


class Wakeup(Protocol):
    """Wakes a controller when a watched object was written."""

    def wake(self) -> None:
        """Wake the waiter."""
        ...

    async def wait(self) -> None:
        """Wait for the next write; one since the last wait counts."""
        ...


class ObjectApi(Protocol):
    """The API calls of controllers. Types are named by their plural ("daemonsets").

    A missing object is not an error: `get` returns None, `list` of an unknown type is empty, patch and delete do
    nothing. A lost race (409) also does nothing: the write that won wakes the controller again.
    """

    async def list(self, plural: str, namespace: str = "", *, where: str = "", fields: str = "") -> list[JsonObject]:
        """List objects of a namespace ("" for all) by label selector and field selector."""
        ...

    async def get(self, plural: str, name: str, namespace: str = "") -> JsonObject | None:
        """Read an object."""
        ...

    async def create(
        self, plural: str, obj: JsonObject, refusals: MutableSequence[str] | None = None
    ) -> JsonObject | None:
        """Create an object; return None if the name exists or the API refuses, and add the refusal to `refusals`."""
        ...

    async def patch(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the object (RFC 7396)."""
        ...

    async def patch_status(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the object's status; `change` contains only the status."""
        ...

    async def delete(self, plural: str, obj: JsonObject, *, grace_s: int | None = None) -> None:
        """Delete the object; pods with the given grace period."""
        ...

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Bind a pod to a node; do nothing if the pod is deleted."""
        ...

    async def evict(self, pod: JsonObject) -> str:
        """Evict a pod; return the refusal, or "" if it was evicted or is deleted."""
        ...

    def watching(self, *plurals: str) -> AbstractContextManager[Wakeup]:
        """Return a wakeup for changes to objects of these types."""
        ...


class StoreApi:
    """The API of a store in the same process; no call waits, so a reconciliation sees a consistent state.

    Args:
        store: Contains the objects.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, plural: str, namespace: str = "", *, where: str = "", fields: str = "") -> list[JsonObject]:
        """List objects."""
        kind = kind_named(plural)
        if kind.key not in self._store.kinds:
            return []
        found = self._store.all_of(kind, namespace)
        if where:
            desired = label_test(where)
            found = [obj for obj in found if desired(labels(obj))]
        if fields:
            selected = field_test(fields)
            found = [obj for obj in found if selected(obj)]
        return found

    async def get(self, plural: str, name: str, namespace: str = "") -> JsonObject | None:
        """Read an object."""
        return self._store.find(kind_named(plural), namespace, name)

    async def create(
        self, plural: str, obj: JsonObject, refusals: MutableSequence[str] | None = None
    ) -> JsonObject | None:
        """Create an object; return None if the store refuses."""
        if kind_named(plural).key not in self._store.kinds:
            return None
        try:
            return self._store.create(kind_named(plural), obj)
        except problems.ApiProblem as problem:
            if refusals is not None:
                refusals.append(problem.message)
            return None

    async def patch(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the current object."""
        self._merge(plural, obj, change, "")

    async def patch_status(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the current status."""
        self._merge(plural, obj, {"status": change}, "status")

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Bind a pod to a node."""
        if self._store.find(kind_named("pods"), namespace_of(pod), name_of(pod)) is not None:
            self._store.bind(namespace_of(pod), name_of(pod), node)

    def _merge(self, plural: str, obj: JsonObject, change: JsonObject, part: str) -> None:
        kind = kind_named(plural)
        live = self._store.find(kind, namespace_of(obj), name_of(obj)) if kind.key in self._store.kinds else None
        if live is not None:
            self._store.update(kind, merge_patch(live, change), part=part)

    async def delete(self, plural: str, obj: JsonObject, *, grace_s: int | None = None) -> None:
        """Delete the object if it still exists."""
        kind = kind_named(plural)
        if kind.key in self._store.kinds and self._store.find(kind, namespace_of(obj), name_of(obj)) is not None:
            self._store.delete(kind, namespace_of(obj), name_of(obj), grace_s=grace_s)

    async def evict(self, pod: JsonObject) -> str:
        """Evict a pod if its budget allows it."""
        try:
            evict(self._store, namespace_of(pod), name_of(pod))
        except problems.ApiProblem as problem:
            return "" if problem.reason == "NotFound" else problems.refusal_message(problem.message, problem.details)
        return ""

    def watching(self, *plurals: str) -> AbstractContextManager[Wakeup]:
        """Return a wakeup for these types."""
        return self._store.subscribed(*(kind_named(plural) for plural in plurals))


if TYPE_CHECKING:
    _: type[ObjectApi] = StoreApi
