"""The DaemonSet controller.

In scope: which nodes get a pod, replacing pods of an older template, status counts.
Out of scope: running pods.

Source: docs concepts/workloads/controllers/daemonset (automatic tolerations); kubernetes pkg/controller/daemon
(util.ReplaceDaemonSetPodNodeNameNodeAffinity).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.controllers.replicas import create_pod, is_available, new_pod, template_hash
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_terminal, matches_node, pod_requests, untolerated
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.store.defaults import TEMPLATE_GENERATION
from gpukube_sandbox.kube.store.objects import (
    annotations_of,
    labels,
    meta,
    name_of,
    namespace_of,
    owner_uids,
    spec,
    status,
)

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.scheduler.snapshot import Snapshot
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_HASH = "controller-revision-hash"
_NAME, _REQUIRED = "metadata.name", "requiredDuringSchedulingIgnoredDuringExecution"
_ROLLS_AFTER_S = 2.0
"""Sandbox seconds from a template change to the first deleted pod, so that a client that re-reads right after its
change still finds old pods running."""
_PRESSURES = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
AUTOMATIC_TOLERATIONS: tuple[dict[str, str], ...] = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    *({"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoSchedule"} for name in _PRESSURES),
)


def should_run(pod_spec: JsonObject, node: JsonObject) -> tuple[bool, bool]:
    """Return whether a pod of this template may start on a node, and whether a running one may stay."""
    if not matches_node(pod_spec, node):
        return False, False
    tolerant = {**pod_spec, "tolerations": [*(pod_spec.get("tolerations") or ()), *AUTOMATIC_TOLERATIONS]}
    taints = spec(node).get("taints") or []
    return untolerated(tolerant, taints) is None, untolerated(tolerant, taints, {"NoExecute"}) is None


class DaemonSets:
    """Keeps one pod of each DaemonSet on every node that its template matches.

    A refused pod is retried when an object that may have caused the refusal changes; a real controller retries on its
    own.
    """

    watches = ("daemonsets", "pods", "nodes", "serviceaccounts", "resourcequotas", "runtimeclasses")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "daemonset-controller")
        self._changed: dict[str, tuple[str, float]] = {}
        self._room: Snapshot | None = None
        self._there: tuple[list[JsonObject], list[JsonObject]] = [], []

    async def reconcile(self) -> float | None:
        """Reconcile every DaemonSet; return the time at which the next rollout begins."""
        nodes = await self._api.list("nodes")
        pods = await self._api.list("pods")
        due: list[float] = []
        self._room, self._there = None, (nodes, pods)
        owned: dict[str, list[JsonObject]] = {}
        for pod in pods:
            for uid in owner_uids(pod):
                owned.setdefault(uid, []).append(pod)
        for daemonset in await self._api.list("daemonsets"):
            if not meta(daemonset).get("deletionTimestamp"):
                due += await self._reconcile_one(daemonset, nodes, owned.get(meta(daemonset)["uid"], []))
        return min(due, default=None)

    def _rollout_start(self, daemonset: JsonObject, revision: str) -> float:
        """Return the time from which pods of older templates are replaced."""
        uid, now = meta(daemonset)["uid"], self._clock.now()
        known, since = self._changed.get(uid, ("", now))
        if known != revision:
            since = now
            self._changed[uid] = (revision, now)
        return since + _ROLLS_AFTER_S

    async def _reconcile_one(
        self, daemonset: JsonObject, nodes: list[JsonObject], pods: list[JsonObject]
    ) -> list[float]:
        template = spec(daemonset)["template"]
        revision = template_hash(template)
        start = self._rollout_start(daemonset, revision)
        verdicts = {name_of(node): should_run(template.get("spec") or {}, node) for node in nodes}
        by_node: dict[str, list[JsonObject]] = {}
        for pod in pods:
            by_node.setdefault(_node_of(pod), []).append(pod)
        for name, (may_start, may_stay) in verdicts.items():
            present = by_node.get(name, [])
            for pod in present:
                if not may_stay or (is_terminal(pod) and not meta(pod).get("deletionTimestamp")):
                    await self._api.delete("pods", pod)
            if may_start and not present:
                pod = _daemon_pod(daemonset, name, revision)
                self._bind(pod, name)
                await create_pod(self._api, self._events, ("daemonsets", daemonset), pod)
        rolls = self._clock.now() >= start
        if rolls:
            await self._roll(daemonset, pods, revision, sum(may_start for may_start, _ in verdicts.values()))
        await self._report(daemonset, verdicts, by_node, revision)
        return [] if rolls else [start]

    def _bind(self, pod: JsonObject, name: str) -> None:
        """Bind a pod to its node if it fits; otherwise leave it to the scheduler, which reports why it does not."""
        self._room = self._room or take_snapshot(*self._there, ())
        view, requested = self._room.nodes[name], pod_requests(pod)
        if all(count <= view.room[what] - view.used[what] for what, count in requested.items() if count):
            pod["spec"]["nodeName"] = name
            view.take(pod)

    async def _roll(self, daemonset: JsonObject, pods: list[JsonObject], revision: str, desired: int) -> None:
        strategy = spec(daemonset).get("updateStrategy") or {}
        outdated = [
            pod for pod in pods if labels(pod).get(_HASH) != revision and not meta(pod).get("deletionTimestamp")
        ]
        if strategy.get("type") == "OnDelete" or not outdated:
            return
        unavailable = desired - sum(map(is_available, pods))
        # Replacing old pods that are not available costs nothing.
        for pod in [pod for pod in outdated if not is_available(pod)]:
            await self._api.delete("pods", pod)
        spare = _share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), desired) - unavailable
        for pod in [pod for pod in outdated if is_available(pod)][: max(0, spare)]:
            await self._api.delete("pods", pod)

    async def _report(
        self,
        daemonset: JsonObject,
        verdicts: dict[str, tuple[bool, bool]],
        by_node: dict[str, list[JsonObject]],
        revision: str,
    ) -> None:
        desired = [name for name, (may_start, _) in verdicts.items() if may_start]
        placed = [by_node[name][0] for name in desired if by_node.get(name)]
        available = sum(is_available(pod) for pod in placed)
        numbers = {
            "desiredNumberScheduled": len(desired),
            "currentNumberScheduled": len(placed),
            "numberMisscheduled": sum(bool(by_node.get(name)) and not verdict[0] for name, verdict in verdicts.items()),
            "updatedNumberScheduled": sum(labels(pod).get(_HASH) == revision for pod in placed),
            "numberReady": available,
            "numberAvailable": available,
            "numberUnavailable": len(desired) - available,
            "observedGeneration": meta(daemonset).get("generation", 1),
        }
        if any(status(daemonset).get(key) != value for key, value in numbers.items()):
            await self._api.patch_status("daemonsets", daemonset, numbers)


def _daemon_pod(daemonset: JsonObject, node: str, revision: str) -> JsonObject:
    generation = annotations_of(daemonset)[TEMPLATE_GENERATION]
    pod = new_pod("DaemonSet", daemonset, {_HASH: revision, "pod-template-generation": generation})
    affinity = pod["spec"].get("affinity") or {}
    chosen = {"nodeSelectorTerms": [{"matchFields": [{"key": _NAME, "operator": "In", "values": [node]}]}]}
    pod["spec"]["affinity"] = {**affinity, "nodeAffinity": {**(affinity.get("nodeAffinity") or {}), _REQUIRED: chosen}}
    pod["spec"]["tolerations"] = [*(pod["spec"].get("tolerations") or ()), *AUTOMATIC_TOLERATIONS]
    pod["metadata"]["namespace"] = namespace_of(daemonset)
    return pod


def _node_of(pod: JsonObject) -> str:
    """Return the node that a DaemonSet's pod is bound to or intended for."""
    if name := spec(pod).get("nodeName"):
        return str(name)
    required = ((spec(pod).get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    fields = [item for term in required.get("nodeSelectorTerms") or () for item in term.get("matchFields") or ()]
    return next((str(item["values"][0]) for item in fields if item["key"] == _NAME), "")


def _share(value: int | str, of: int) -> int:
    if isinstance(value, int):
        return value
    return max(1, -(-int(value.rstrip("%")) * of // 100))
