"""Drains nodes before a cloud removes them: cordon, then evict pods within their disruption budgets.

In scope: one drain with a time limit. Out of scope: what a budget allows (`store.eviction`), what a cloud does with
the remaining pods (its `lifecycle`).
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

_RETRY_S = 5.0
"""Sandbox seconds between two attempts, as in kubectl drain."""
_MIN_WALL_S, _MIN_RETRY_S = 2.0, 0.05
"""Wall-clock seconds: minimum for the whole drain, and between two attempts after the limit."""
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod that is still on a node when the drain times out.

    Attributes:
        node: The node.
        pod: Namespace and name.
        reason: Last refusal of the eviction API; "" if the pod was already terminating.
    """

    node: str
    pod: str
    reason: str


async def drain(api: ObjectApi, clock: Clock, nodes: Sequence[str], limit_s: float) -> list[Blocked]:
    """Cordon nodes and evict their pods, retrying until no pods are left or the time limit is reached.

    DaemonSet pods, mirror pods, and finished pods stay. If the sandbox's time runs fast, the limit is still at least a
    few wall-clock seconds, because the controllers that end pods need them.

    Returns:
        The remaining pods.
    """
    await cordon(api, nodes, unschedulable=True)
    end, machine_end = clock.now() + limit_s, time.monotonic() + _MIN_WALL_S
    while True:
        left: list[Blocked] = []
        for node in nodes:
            for pod in await api.list("pods", fields=f"spec.nodeName={node}"):
                if _is_exempt(pod):
                    continue
                reason = "" if meta(pod).get("deletionTimestamp") else await api.evict(pod)
                left.append(Blocked(node, f"{namespace_of(pod)}/{name_of(pod)}", reason))
        if not left:
            return left
        if (rest_s := end - clock.now()) > 0:
            await clock.sleep(min(_RETRY_S, rest_s))
        elif time.monotonic() < machine_end:
            await asyncio.sleep(_MIN_RETRY_S)
        else:
            return left


async def cordon(api: ObjectApi, nodes: Iterable[str], *, unschedulable: bool) -> None:
    """Cordon or uncordon nodes."""
    for name in nodes:
        node = await api.get("nodes", name)
        if node is not None and bool(spec(node).get("unschedulable")) != unschedulable:
            await api.patch("nodes", node, {"spec": {"unschedulable": True if unschedulable else None}})


def _is_exempt(pod: JsonObject) -> bool:
    owned = any(owner["kind"] == "DaemonSet" for owner in meta(pod).get("ownerReferences") or ())
    ended = status(pod).get("phase") in {"Succeeded", "Failed"}
    return owned or ended or _MIRROR in (meta(pod).get("annotations") or {})
