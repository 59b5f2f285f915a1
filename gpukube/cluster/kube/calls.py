"""The base of all Kubernetes client calls, and the calls for objects of any type.

In scope: mapping failures to gpukube's errors, and objects as JSON trees. Out of scope: calls for one type (client).
"""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

import httpx2
from lightkube import ApiError
from lightkube.generic_resource import (
    GenericGlobalResource,
    GenericNamespacedResource,
    create_global_resource,
    create_namespaced_resource,
)
from lightkube.types import CascadeType, PatchType

from gpukube.cancellation import raise_if_cancelled
from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.kube.failures import FAILURES, explain
from gpukube.cluster.kube.lightkube_types import prepare_type
from gpukube.cluster.kube.limits import UNLIMITED
from gpukube.cluster.kube.slices import slice_view
from gpukube.cluster.names import FIELD_MANAGER
from gpukube.core.jsontree import Tree, text, tree
from gpukube.errors import AccessError, ClusterError, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lightkube import Client
    from lightkube.core.client import LabelSelector

    from gpukube.cluster.kube.connection import Connection
    from gpukube.cluster.kube.limits import Caller
    from gpukube.cluster.kube.slices import SliceView

_T = TypeVar("_T")
_PAGE: Final = 500  # objects per response, like kubectl's --chunk-size
_NOT_FOUND, _CONFLICT = 404, 409
UNAUTHORIZED: Final = 401
_JUDGED: Final = (400, 403, 409, 422)
"""Status codes with which an API server rejects an object it has checked; a webhook may choose others."""
_REGISTRY: Final = Lock()


_GLOBAL: Final[dict[ApiType, type[GenericGlobalResource]]] = {}
_NAMESPACED: Final[dict[ApiType, type[GenericNamespacedResource]]] = {}


def global_kind(kind: ApiType) -> type[GenericGlobalResource]:
    """Register a type with lightkube, once: its registry rejects a second registration, or one from a second thread."""
    with _REGISTRY:
        if kind not in _GLOBAL:
            described = create_global_resource(kind.group, kind.version, _listed(kind), kind.plural)
            prepare_type(described)
            _GLOBAL[kind] = described
        return _GLOBAL[kind]


def namespaced_kind(kind: ApiType) -> type[GenericNamespacedResource]:
    """Register a namespaced type; see global_kind."""
    with _REGISTRY:
        if kind not in _NAMESPACED:
            described = create_namespaced_resource(kind.group, kind.version, _listed(kind), kind.plural)
            prepare_type(described)
            _NAMESPACED[kind] = described
        return _NAMESPACED[kind]


def _listed(kind: ApiType) -> str:
    """Return a class name that differs from lightkube's own typed one."""
    return f"Listed{kind.plural.title()}"


class KubeCalls:
    """Calls that do not depend on an object type.

    Args:
        connection: Connection to the API.
        server: Address of the API, for messages.
        calls: Runs each call.
    """

    def __init__(self, connection: Connection, server: str, calls: Caller = UNLIMITED) -> None:
        self._connection = connection
        self._server = server
        self._calls = calls

    @property
    def _client(self) -> Client:
        return self._connection.client

    @property
    def _transport(self) -> httpx2.Client:
        """The HTTP client with CA, credentials, and timeout, for requests that lightkube has no call for."""
        return self._client._client._client  # noqa: SLF001 -- the only way to reach it

    @property
    def server(self) -> str:
        """Address of the API, for messages."""
        return self._server

    def objects(
        self, kind: ApiType, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[Tree, ...] | None:
        """See Kube."""
        found = self._find(f"listing {kind.plural}", lambda: self._list(kind, namespace or "*", dict(labels or {})))
        return None if found is None else tuple(tree(item) for item in found)

    def _list(
        self, kind: ApiType, namespace: str, labels: LabelSelector
    ) -> list[GenericGlobalResource] | list[GenericNamespacedResource]:
        if kind.namespaced:
            listed = self._client.list(namespaced_kind(kind), namespace=namespace, labels=labels, chunk_size=_PAGE)
            return list(listed)
        return list(self._client.list(global_kind(kind), labels=labels, chunk_size=_PAGE))

    def find_object(self, kind: ApiType, name: str, namespace: str = "") -> Tree | None:
        """See Kube."""
        doing = f"reading {kind.kind} {name}"
        if kind.namespaced:
            found = self._find(doing, lambda: tree(self._client.get(namespaced_kind(kind), name, namespace=namespace)))
        else:
            found = self._find(doing, lambda: tree(self._client.get(global_kind(kind), name)))
        return found

    def change_object(self, kind: ApiType, live: Tree, operations: Sequence[Tree]) -> bool:
        """See Kube.

        The patch also replaces the resource version with itself: the API answers 409 if it is no longer current.
        """
        name, namespace = text(live, "metadata", "name"), text(live, "metadata", "namespace")
        version = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": text(live, "metadata", "resourceVersion"),
        }
        return self._guarded(
            f"changing {kind.kind} {name}", lambda: self._patch(kind, name, namespace, [version, *operations])
        )

    def create_object(self, kind: ApiType, obj: Tree) -> Tree:
        """See Kube."""
        name = text(obj, "metadata", "name")
        made = self._call(f"creating {kind.kind} {name}", lambda: self._create(kind, obj), changes=True)
        return tree(made)

    def _create(self, kind: ApiType, obj: Tree) -> object:
        if kind.namespaced:
            return self._client.create(namespaced_kind(kind).from_dict(dict(obj)), field_manager=FIELD_MANAGER)
        return self._client.create(global_kind(kind).from_dict(dict(obj)), field_manager=FIELD_MANAGER)

    def try_object(self, kind: ApiType, obj: Tree) -> str:
        """See Kube."""
        name, namespace = text(obj, "metadata", "name"), text(obj, "metadata", "namespace")
        doing = f"trying {kind.kind} {name}"
        try:
            apply = partial(self._apply_dry, kind, name, namespace, obj)
            self._calls(self._server, doing, lambda: self._renewing(lambda: _once_more(apply)))
        except httpx2.HTTPStatusError as error:
            if isinstance(error, ApiError) and error.response.status_code in _JUDGED:
                return error.status.message or f"rejected with code {error.response.status_code}"
            raise self._explained(doing, error) from error
        except FAILURES as error:
            raise self._explained(doing, error) from error
        return ""

    def would_store(self, kind: ApiType, obj: Tree) -> Tree:
        """See Kube."""
        made = global_kind(kind).from_dict(dict(obj))
        return tree(
            self._call(
                f"trying {kind.kind} {text(obj, 'metadata', 'name')}",
                lambda: self._client.create(made, field_manager=FIELD_MANAGER, dry_run=True),
            )
        )

    def _apply_dry(self, kind: ApiType, name: str, namespace: str, obj: Tree) -> object:
        body = dict(obj)
        if kind.namespaced:
            return self._client.patch(
                namespaced_kind(kind),
                name,
                body,
                namespace=namespace,
                patch_type=PatchType.APPLY,
                field_manager=FIELD_MANAGER,
                force=True,
                dry_run=True,
            )
        return self._client.patch(
            global_kind(kind),
            name,
            body,
            patch_type=PatchType.APPLY,
            field_manager=FIELD_MANAGER,
            force=True,
            dry_run=True,
        )

    def delete_object(self, kind: ApiType, name: str, namespace: str) -> None:
        """See Kube."""
        doing, cascade = f"deleting {kind.kind} {name}", CascadeType.BACKGROUND
        if kind.namespaced:
            place = namespaced_kind(kind)
            self._find(
                doing, lambda: self._client.delete(place, name, namespace=namespace, cascade=cascade), changes=True
            )
        else:
            self._find(doing, lambda: self._client.delete(global_kind(kind), name, cascade=cascade), changes=True)

    def pod_log(self, namespace: str, name: str, lines: int, container: str = "") -> tuple[str, ...]:
        """See Kube."""
        which = container or None
        return self._call(
            f"reading the log of pod {name}",
            lambda: tuple(
                self._client.log(name, namespace=namespace, container=which, tail_lines=lines, newlines=False)
            ),
        )

    def _patch(self, kind: ApiType, name: str, namespace: str, patch: list[Tree]) -> object:
        if kind.namespaced:
            place = namespaced_kind(kind)
            return self._client.patch(
                place, name, patch, namespace=namespace, patch_type=PatchType.JSON, field_manager=FIELD_MANAGER
            )
        return self._client.patch(
            global_kind(kind), name, patch, patch_type=PatchType.JSON, field_manager=FIELD_MANAGER
        )

    def object_names(self, group: str, plural: str, versions: Iterable[str]) -> tuple[str, ...] | None:
        """See Kube."""
        found = self._custom(group, plural, versions)
        return None if found is None else tuple(sorted(text(item, "metadata", "name") for item in found))

    def resource_slices(self) -> tuple[SliceView, ...]:
        """See Kube."""
        found = self._custom("resource.k8s.io", "resourceslices", ("v1", "v1beta2", "v1beta1")) or ()
        return tuple(sorted(map(slice_view, found), key=lambda item: (item.driver, item.node, item.name)))

    def _custom(self, group: str, plural: str, versions: Iterable[str]) -> tuple[Tree, ...] | None:
        for version in versions:
            found = self.objects(ApiType(group, version, plural, plural, namespaced=False))
            if found is not None:
                return found
        return None

    def _find(self, doing: str, call: Callable[[], _T], *, changes: bool = False) -> _T | None:
        """Run a call; return None if the object does not exist."""
        try:
            return self._calls(self._server, doing, lambda: self._renewing(lambda: _once_more(call)), changes=changes)
        except httpx2.HTTPStatusError as error:
            if error.response.status_code == _NOT_FOUND:
                return None
            raise self._explained(doing, error) from error
        except FAILURES as error:
            raise self._explained(doing, error) from error

    def _guarded(self, doing: str, call: Callable[[], object]) -> bool:
        """Run a write; return False if the object has changed since it was read, or is gone."""
        try:
            self._calls(self._server, doing, lambda: self._renewing(call), changes=True)
        except httpx2.HTTPStatusError as error:
            if error.response.status_code in (_NOT_FOUND, _CONFLICT):
                return False
            raise self._explained(doing, error) from error
        except FAILURES as error:
            raise self._explained(doing, error) from error
        return True

    def _call(self, doing: str, call: Callable[[], _T], *, changes: bool = False) -> _T:
        try:
            return self._calls(self._server, doing, lambda: self._renewing(lambda: _once_more(call)), changes=changes)
        except FAILURES as error:
            raise self._explained(doing, error) from error

    def _renewing(self, call: Callable[[], _T]) -> _T:
        """Run a call; if it is refused as unauthorized (an expired token), repeat it once with new credentials."""
        client = self._client
        try:
            return call()
        except httpx2.HTTPStatusError as error:
            if error.response.status_code != UNAUTHORIZED or not self._connection.renew(client):
                raise
        raise_if_cancelled()
        return call()

    def _explained(self, doing: str, error: Exception) -> AccessError | ClusterError:
        return explain(Where(self._server), doing, error)


def _once_more(call: Callable[[], _T]) -> _T:
    """Repeat a read whose connection broke: a load balancer may close an idle one just as the next request is sent.

    Go's clients do the same for requests without side effects (golang/go: net/http, Request.isReplayable).
    """
    try:
        return call()
    except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError) as error:
        if error.request.method != "GET":
            raise
        raise_if_cancelled()
        return call()
