"""The scheduler: pods without a node get one, or a reason why not.

Lives here: filtering nodes and binding. Must not live here: the filters themselves (`scheduling`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpukube.sandbox.clock import timestamp
from gpukube.sandbox.kube.controllers.scheduling import (
    allocatable_of,
    is_terminal,
    matches_node,
    pod_requests,
    untolerated,
)
from gpukube.sandbox.kube.store.objects import meta, name_of, spec, status

if TYPE_CHECKING:
    from gpukube.sandbox.clock import Clock
    from gpukube.sandbox.kube.store.objectapi import ObjectApi
    from gpukube.sandbox.kube.store.objects import JsonObject


class Scheduler:
    """Binds pods to the first node, by name, with room; spreads by taking the node with the fewest pods."""

    watches = ("pods", "nodes")
    stands_for = "kube-scheduler"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def reconcile(self) -> float | None:
        """Try to place every pod that waits."""
        nodes = await self._api.list("nodes")
        pods = await self._api.list("pods")
        used: dict[str, Counter[str]] = {name_of(node): Counter() for node in nodes}
        for pod in pods:
            if spec(pod).get("nodeName") in used and not is_terminal(pod):
                used[spec(pod)["nodeName"]].update(pod_requests(pod))
        for pod in pods:
            if not spec(pod).get("nodeName") and not is_terminal(pod) and not meta(pod).get("deletionTimestamp"):
                await self._place(pod, nodes, used)
        return None

    async def _place(self, pod: JsonObject, nodes: list[JsonObject], used: dict[str, Counter[str]]) -> None:
        verdicts = {name_of(node): why_not(pod, node, used[name_of(node)]) for node in nodes}
        free = [name for name, reasons in verdicts.items() if not reasons]
        if free:
            chosen = min(free, key=lambda name: (used[name]["pods"], name))
            used[chosen].update(pod_requests(pod))
            await self._api.patch("pods", pod, {"spec": {"nodeName": chosen}})
            return
        message = explain(list(verdicts.values()))
        told: JsonObject = next(
            (item for item in status(pod).get("conditions") or () if item["type"] == "PodScheduled"), {}
        )
        if told.get("message") != message:
            now = timestamp(self._clock.now())
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            await self._api.patch_status("pods", pod, {"conditions": [{**condition, "lastTransitionTime": now}]})


def why_not(pod: JsonObject, node: JsonObject, used: Counter[str]) -> list[str]:
    """List why a pod cannot run on a node, in the scheduler's words; empty when it can."""
    if spec(node).get("unschedulable"):
        return ["node(s) were unschedulable"]
    taint = untolerated(spec(pod), spec(node).get("taints") or ())
    if taint:
        return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if not matches_node(spec(pod), node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    room = allocatable_of(node)
    lacking = [name for name, asked in pod_requests(pod).items() if asked > room[name] - used[name] and asked]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in sorted(lacking)]


def explain(verdicts: list[list[str]]) -> str:
    """Write the message of a pod that fits nowhere, as `kubectl describe pod` shows it."""
    if not verdicts:
        return "no nodes available to schedule pods"
    counted = Counter(reason for reasons in verdicts for reason in reasons)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counted.items()))
    return f"0/{len(verdicts)} nodes are available: {reasons}."
