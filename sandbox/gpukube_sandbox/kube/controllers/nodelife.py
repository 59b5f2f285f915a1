"""Node lifecycle: the effects of cordons and taints on nodes and their pods.

In scope: the taint of a cordon, evicting pods that do not tolerate a taint.
Out of scope: booting (`cluster`), draining (clients use the eviction API).

Source: kubernetes pkg/controller/nodelifecycle (taintMap), pkg/controller/tainteviction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import toleration_of
from gpukube_sandbox.kube.scheduler.filters import UNSCHEDULABLE
from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject


class NodeLife:
    """Taints cordoned nodes, and evicts pods that do not, or no longer, tolerate a node's `NoExecute` taints."""

    watches = ("nodes", "pods")
    emulates = ""

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "taint-eviction-controller")
        self._since: dict[tuple[str, str], float] = {}

    async def reconcile(self) -> float | None:
        """Check every node that is cordoned or has such a taint; return the time at which the next toleration ends."""
        tainted: dict[str, list[JsonObject]] = {}
        for node in await self._api.list("nodes"):
            await self._cordon(node)
            hard = [taint for taint in spec(node).get("taints") or () if taint.get("effect") == "NoExecute"]
            if hard:
                tainted[name_of(node)] = hard
        if not tainted:
            self._since.clear()
            return None
        due: list[float] = []
        for pod in await self._api.list("pods"):
            taints = tainted.get(spec(pod).get("nodeName") or "")
            if taints and not meta(pod).get("deletionTimestamp"):
                due += await self._evict(pod, taints)
        return min(due, default=None)

    async def _cordon(self, node: JsonObject) -> None:
        taints = spec(node).get("taints") or []
        marked = any(taint["key"] == UNSCHEDULABLE["key"] for taint in taints)
        if bool(spec(node).get("unschedulable")) != marked:
            others = [taint for taint in taints if taint["key"] != UNSCHEDULABLE["key"]]
            changed = others if marked else [*others, UNSCHEDULABLE]
            await self._api.patch("nodes", node, {"spec": {"taints": changed or None}})

    async def _evict(self, pod: JsonObject, taints: list[JsonObject]) -> list[float]:
        """Evict a pod now, or return the time at which its toleration of one of the taints ends."""
        now = self._clock.now()
        ends = []
        for taint in taints:
            since = self._since.setdefault((meta(pod)["uid"], taint["key"]), now)
            toleration = toleration_of(spec(pod), taint)
            if toleration is None:
                ends.append(now)
            elif toleration.get("tolerationSeconds") is not None:
                ends.append(since + float(toleration["tolerationSeconds"]))
        if not ends:
            return []
        if min(ends) > now:
            return [min(ends)]
        message = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        await self._events.record("pods", pod, "TaintManagerEviction", message)
        await self._api.delete("pods", pod)
        return []
