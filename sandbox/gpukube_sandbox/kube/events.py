"""Records events about objects, as `kubectl describe` and `kubectl get events` show them.

In scope: writing events, counting repetitions, deleting old ones. Out of scope: the messages.

Source: k8s.io/client-go tools/record (EventCorrelator: same object, reason and message are one event with a count).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.store.kinds import kind_named
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_MAX_EVENTS = 300
"""Maximum number of events kept per component. A real API server keeps events for an hour, which is too short to read
them if the sandbox's time runs fast."""


class Recorder:
    """Records events on behalf of one component.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        component: "default-scheduler", "kubelet".
    """

    def __init__(self, api: ObjectApi, clock: Clock, component: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._recorded: dict[tuple[str, str, str], tuple[JsonObject, int]] = {}
        self._last = 0
        self._residue = (
            crc32(component.encode()) % 1000
        )  # two components may record an event about one object at the same moment

    async def record(self, plural: str, obj: JsonObject, reason: str, message: str, *, warning: bool = False) -> None:
        """Create an event about an object, or increment the count of an identical one.

        Args:
            plural: The object's type.
            obj: The object; it may be deleted already.
            reason: "FailedScheduling".
            message: What happened.
            warning: The type is Warning, not Normal.
        """
        key = (meta(obj).get("uid") or name_of(obj), reason, message)
        now = timestamp(self._clock.now())
        known = self._recorded.pop(key, None)
        if known:
            event, count = known
            await self._api.patch("events", event, {"count": count + 1, "lastTimestamp": now})
            self._recorded[key] = event, count + 1
            return
        written = self._written(plural, obj, reason, message)
        written |= {"type": "Warning" if warning else "Normal", "firstTimestamp": now, "lastTimestamp": now}
        created = await self._api.create("events", written)
        if created:
            details = {"name": name_of(created), "namespace": namespace_of(created)}
            self._recorded[key] = {"metadata": details}, 1
        if len(self._recorded) > _MAX_EVENTS:
            oldest, _ = self._recorded.pop(next(iter(self._recorded)))
            await self._api.delete("events", oldest)

    def _written(self, plural: str, obj: JsonObject, reason: str, message: str) -> JsonObject:
        kind, name = kind_named(plural), name_of(obj)
        about = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": name,
            "namespace": namespace_of(obj),
            # The kubelet and the node controller use the node's name as its uid, and kubectl looks events up by it.
            "uid": name if kind.kind == "Node" else meta(obj).get("uid", ""),
            "resourceVersion": meta(obj).get("resourceVersion", ""),
        }
        self._last = max(self._last + 1000, int(self._clock.now() * 1e6) * 1000 + self._residue)
        return {
            "metadata": {
                "name": f"{name}.{self._last:x}",  # the moment in nanoseconds, so that names sort by time
                "namespace": namespace_of(obj) or "default",
            },
            "involvedObject": {key: value for key, value in about.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "count": 1,
        }
