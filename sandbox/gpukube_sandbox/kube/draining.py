"""Nodes that a cloud empties before it takes them away: cordoned, then evicted within the budgets of their pods.

In scope: one round of that, with a limit. Out of scope: what a budget allows (`store.eviction`), what a cloud
does with pods that are left (its `lifecycle`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.objects import meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_AGAIN_S = 5.0
"""Between two tries, as kubectl drain waits."""
_LEAST_S, _LEAST_AGAIN_S = 2.0, 0.05
"""Of the machine's time: for the whole, and between two tries after the limit."""
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that is still on a node when the time is over.

    Attributes:
        node: Where.
        pod: Namespace and name.
        reason: What the eviction API said last; "" where the pod was on its way.
    """

    node: str
    pod: str
    reason: str


async def drain(api: ObjectApi, clock: Clock, nodes: Sequence[str], limit_s: float) -> list[Blocked]:
    """Cordon nodes and evict their pods, again and again until none is left or the time is over.

    Pods of DaemonSets, mirror pods and those that have ended stay. Where time runs fast, the limit is some seconds of
    the machine's time at least: the controllers that end pods run by it.

    Returns:
        What is left.
    """
    await cordon(api, nodes, unschedulable=True)
    end, machine_end = clock.now() + limit_s, time.monotonic() + _LEAST_S
    while True:
        left: list[Blocked] = []
        for node in nodes:
            for pod in await api.list("pods", fields=f"spec.nodeName={node}"):
                if _stays(pod):
                    continue
                reason = "" if meta(pod).get("deletionTimestamp") else await api.evict(pod)
                left.append(Blocked(node, f"{namespace_of(pod)}/{name_of(pod)}", reason))
        if not left:
            return left
        if (rest_s := end - clock.now()) > 0:
            await clock.sleep(min(_AGAIN_S, rest_s))
        elif time.monotonic() < machine_end:
            await asyncio.sleep(_LEAST_AGAIN_S)
        else:
            return left


async def cordon(api: ObjectApi, nodes: Iterable[str], *, unschedulable: bool) -> None:
    """Let nodes take no new pods, or take them again."""
    for name in nodes:
        node = await api.get("nodes", name)
        if node is not None and bool(spec(node).get("unschedulable")) != unschedulable:
            await api.patch("nodes", node, {"spec": {"unschedulable": True if unschedulable else None}})


def _stays(pod: JsonObject) -> bool:
    owned = any(owner["kind"] == "DaemonSet" for owner in meta(pod).get("ownerReferences") or ())
    ended = status(pod).get("phase") in {"Succeeded", "Failed"}
    return owned or ended or _MIRROR in (meta(pod).get("annotations") or {})
