"""StatefulSets: pods with stable names.

In scope: pods by ordinal, created in order or in parallel, replaced after a template change. Out of scope: volumes.

Source: kubernetes pkg/controller/statefulset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.controllers.replicas import create_pod, is_available, new_pod, owned_by, template_hash
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_ready, is_terminal
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, spec, status

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_HASH = "controller-revision-hash"


class StatefulSets:
    """Keeps the pods NAME-0 to NAME-n of each StatefulSet."""

    watches = ("statefulsets", "pods")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._events = Recorder(api, clock, "statefulset-controller")

    async def reconcile(self) -> float | None:
        """Reconcile every StatefulSet."""
        owners = await self._api.list("statefulsets")
        pods = await self._api.list("pods") if owners else []
        for owner in owners:
            if not meta(owner).get("deletionTimestamp"):
                await self._reconcile_one(owner, {name_of(pod): pod for pod in owned_by(owner, pods)})
        return None

    async def _reconcile_one(self, owner: JsonObject, pods: dict[str, JsonObject]) -> None:
        revision = f"{name_of(owner)}-{template_hash(spec(owner)['template'])}"
        desired = [f"{name_of(owner)}-{number}" for number in range(int(spec(owner).get("replicas", 1)))]
        one_by_one = spec(owner).get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        settled = True
        for number, name in enumerate(desired):
            pod = pods.get(name)
            if pod is None:
                index = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}
                made = new_pod("StatefulSet", owner, {**index, _HASH: revision})
                del made["metadata"]["generateName"]
                made["metadata"]["name"] = name
                made["spec"]["hostname"] = name
                await create_pod(self._api, self._events, ("statefulsets", owner), made)
            elif is_terminal(pod) and not meta(pod).get("deletionTimestamp"):
                await self._api.delete("pods", pod)
            settled = settled and pod is not None and is_available(pod)
            if one_by_one and not settled:
                break
        too_many = sorted((name for name in pods if name not in desired), key=_number, reverse=True)
        for name in too_many[: 1 if one_by_one else None]:
            settled = False
            await self._drop(owner, pods[name])
        if settled:
            await self._roll(owner, [pods[name] for name in desired], revision)
        await self._report(owner, [pods[name] for name in desired if name in pods], revision)

    async def _drop(self, owner: JsonObject, pod: JsonObject) -> None:
        if not meta(pod).get("deletionTimestamp"):
            await self._api.delete("pods", pod)
            message = f"delete Pod {name_of(pod)} in StatefulSet {name_of(owner)} successful"
            await self._events.record("statefulsets", owner, "SuccessfulDelete", message)

    async def _roll(self, owner: JsonObject, pods: list[JsonObject], revision: str) -> None:
        """Replace one pod of an older template, highest ordinal first; pods below the partition stay."""
        strategy = spec(owner).get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        first = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        outdated = [pod for pod in pods[first:] if labels(pod).get(_HASH) != revision]
        if outdated:
            await self._drop(owner, outdated[-1])

    async def _report(self, owner: JsonObject, pods: list[JsonObject], revision: str) -> None:
        ready, updated = sum(map(is_ready, pods)), sum(labels(pod).get(_HASH) == revision for pod in pods)
        numbers: JsonObject = {
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": sum(map(is_available, pods)),
            "updatedReplicas": updated,
            "currentReplicas": updated,
            "updateRevision": revision,
            "observedGeneration": meta(owner).get("generation", 1),
        }
        done = updated == len(pods) or not status(owner).get("currentRevision")
        numbers |= {"currentRevision": revision} if done else {}
        if any(status(owner).get(key) != value for key, value in numbers.items()):
            await self._api.patch_status("statefulsets", owner, numbers)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
