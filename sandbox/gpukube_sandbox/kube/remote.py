"""The controllers' API client for a real API server, over HTTP.

In scope: `RemoteApi`. Out of scope: starting the server (`controlplane`), controllers.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import httpx

from gpukube_sandbox.kube.store.kinds import kind_named
from gpukube_sandbox.kube.store.objects import name_of, namespace_of
from gpukube_sandbox.kube.store.problems import refusal_message

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableSequence

    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_MERGE = {"content-type": "application/merge-patch+json"}
_NOT_DONE = frozenset({403, 404, 409, 422})
"""Status codes that need no retry: the object is deleted, was changed, or must not be created. The next change wakes
the controller."""
_LATER = frozenset({429, 500, 502, 503, 504})
"""Status codes of a server that is starting or waits for a slow etcd; the request is retried."""
_ATTEMPTS = 240
_PAUSE_S = 0.25


class _Wakeup:
    """A wakeup that the watches of several types trigger."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Wake the waiter."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for the next change; one since the last wait counts."""
        await self._event.wait()
        self._event.clear()


class RemoteApi:
    """The `ObjectApi` of an API server.

    Args:
        url: Its https URL.
        token: Bearer token with all rights.
        ca_pem: Certificate of its authority.
    """

    def __init__(self, url: str, token: str, ca_pem: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cadata=ca_pem),
            trust_env=False,
            timeout=httpx.Timeout(60.0, read=None),
            limits=httpx.Limits(max_connections=None),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        *,
        params: dict[str, str] | None = None,
        refusals: MutableSequence[str] | None = None,
    ) -> JsonObject | None:
        headers = _MERGE if method == "PATCH" else {}
        request = self._client.build_request(method, path, json=body, params=params, headers=headers)
        for attempt in range(_ATTEMPTS):
            try:
                answer = await self._client.send(request)
            except httpx.TransportError:
                # The server is restarting, or has not started yet.
                if attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(_PAUSE_S)
                continue
            if answer.status_code in _NOT_DONE:
                if refusals is not None:
                    refusals.append(str(answer.json().get("message", "")))
                return None
            if answer.status_code in _LATER and attempt < _ATTEMPTS - 1:
                await asyncio.sleep(_PAUSE_S)
                continue
            answer.raise_for_status()
            found: JsonObject = answer.json()
            return found
        return None

    @staticmethod
    def _path(plural: str, namespace: str = "", name: str = "", part: str = "") -> str:
        kind = kind_named(plural)
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        scope = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
        return "/".join(filter(None, (f"{root}{scope}/{plural}", name, part)))

    def _place(self, plural: str, obj: JsonObject, part: str = "") -> str:
        return self._path(plural, namespace_of(obj), name_of(obj), part)

    async def list(self, plural: str, namespace: str = "", *, where: str = "", fields: str = "") -> list[JsonObject]:
        """List objects; return an empty list for a type that the server does not have."""
        params = {"labelSelector": where, "fieldSelector": fields}
        found = await self._send("GET", self._path(plural, namespace), params={k: v for k, v in params.items() if v})
        return list((found or {}).get("items") or ())

    async def get(self, plural: str, name: str, namespace: str = "") -> JsonObject | None:
        """Read one object."""
        return await self._send("GET", self._path(plural, namespace, name))

    async def create(
        self, plural: str, obj: JsonObject, refusals: MutableSequence[str] | None = None
    ) -> JsonObject | None:
        """Create an object; return None if the server refuses."""
        kind = kind_named(plural)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return await self._send("POST", self._path(plural, namespace_of(obj)), body, refusals=refusals)

    async def patch(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the object."""
        await self._send("PATCH", self._place(plural, obj), change)

    async def patch_status(self, plural: str, obj: JsonObject, change: JsonObject) -> None:
        """Merge a change into the status."""
        await self._send("PATCH", self._place(plural, obj, "status"), {"status": change})

    async def bind(self, pod: JsonObject, node: str) -> None:
        """Bind a pod to a node."""
        body = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": node}}
        await self._send("POST", self._place("pods", pod, "binding"), {**body, "metadata": {"name": name_of(pod)}})

    async def delete(self, plural: str, obj: JsonObject, *, grace_s: int | None = None) -> None:
        """Delete the object with background propagation."""
        body: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        await self._send("DELETE", self._place(plural, obj), body)

    async def evict(self, pod: JsonObject) -> str:
        """Evict a pod without retrying: a budget's refusal is a final answer here."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace_of(pod), "name": name_of(pod)},
        }
        answer = await self._client.post(self._place("pods", pod, "eviction"), json=body)
        if answer.is_success or answer.status_code == httpx.codes.NOT_FOUND:
            return ""
        answer_body = answer.json()
        return refusal_message(str(answer_body.get("message", "")), answer_body.get("details"))

    @contextmanager
    def watching(self, *plurals: str) -> Iterator[_Wakeup]:
        """Yield a wakeup; one watch per type runs until the block ends."""
        wakeup = _Wakeup()
        tasks = [asyncio.create_task(self._watch(plural, wakeup)) for plural in plurals]
        try:
            yield wakeup
        finally:
            for task in tasks:
                task.cancel()

    async def _watch(self, plural: str, wakeup: _Wakeup) -> None:
        while True:
            # Restart a watch that breaks, or whose type does not exist yet.
            with suppress(httpx.TransportError):
                await self._follow(plural, wakeup)
            await asyncio.sleep(_PAUSE_S)

    async def _follow(self, plural: str, wakeup: _Wakeup) -> None:
        async with self._client.stream("GET", self._path(plural), params={"watch": "true"}) as answer:
            if answer.is_success:
                async for _ in answer.aiter_lines():
                    wakeup.wake()


if TYPE_CHECKING:
    _: type[ObjectApi] = RemoteApi
