"""RayClusters: their pods and status.

In scope: one reconciliation of a cluster. Out of scope: manifests, jobs and services (`apps`).

Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/raycluster_controller.go, utils/validation.go.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.replicas import owned_by
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.kuberay.manifests import (
    GROUP,
    NODE_TYPE,
    autoscaler_rights,
    desired_pods,
    desired_resources,
    groups_of,
    head_pod,
    head_service,
    head_service_name,
    scales_itself,
    worker_pod,
)
from gpukube_sandbox.kube.matching import is_ready, is_terminal
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, namespace_of, spec, status
from gpukube_sandbox.kube.store.patches import merge_patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_LONGEST_NAME = 53
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_INDEX = "ray.io/worker-group-replica-index"
_RESOURCES = ("num-cpus", "num-gpus", "memory", "resources")


def faults(cluster: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the operator's objections to a cluster that the API server accepted: reason and message of the event."""
    name = name_of(cluster)
    if len(name) > _LONGEST_NAME:
        yield "InvalidRayClusterMetadata", f"RayCluster name should be no more than {_LONGEST_NAME} characters"
    elif not _DNS_1035.fullmatch(name):
        yield "InvalidRayClusterMetadata", "RayCluster name should be a valid DNS1035 label"
    for text in spec_faults(spec(cluster)):
        yield "InvalidRayClusterSpec", text


def spec_faults(body: JsonObject) -> Iterator[str]:
    """Yield the operator's objections to a cluster spec, standalone or in a job or service."""
    head = body["headGroupSpec"]
    if not head["template"].get("spec", {}).get("containers"):
        yield "headGroupSpec should have at least one container"
    yield from _group_faults("Head", head)
    options, itself = body.get("autoscalerOptions") or {}, bool(body.get("enableInTreeAutoscaling"))
    for group in body.get("workerGroupSpecs") or ():
        name, minimum, maximum = group["groupName"], group.get("minReplicas"), group.get("maxReplicas")
        if not group["template"].get("spec", {}).get("containers"):
            yield "workerGroupSpec should have at least one container"
        for key, bound in (("minReplicas", minimum), ("maxReplicas", maximum)):
            if bound is not None and bound < 0:
                yield f"worker group {name} has negative {key} {bound}"
        if minimum is not None and maximum is not None and minimum > maximum:
            yield f"worker group {name} has minReplicas {minimum} greater than maxReplicas {maximum}"
        yield from _group_faults(name, group)
        if itself and group.get("suspend"):
            yield f"worker group {name} cannot be suspended with Autoscaler enabled"
        restart = group["template"].get("spec", {}).get("restartPolicy")
        if itself and options.get("version") == "v2" and restart not in {None, "Never"}:
            yield f"restartPolicy for worker group {name} should be Never or unset when using autoscaler V2"
    if (options.get("idleTimeoutSeconds") or 0) < 0:
        yield f"autoscalerOptions.idleTimeoutSeconds must be non-negative, got {options['idleTimeoutSeconds']}"


def _group_faults(name: str, group: JsonObject) -> Iterator[str]:
    given = group.get("rayStartParams") or {}
    if any(given.get(key) for key in _RESOURCES) and group.get("resources"):
        yield (
            "resource fields should not be set in both rayStartParams and Resources for "
            f"{name} group; please use only one"
        )
    if "labels" in given:
        yield (
            f"rayStartParams['labels'] is not supported for {name} group; please use the top-level Labels field instead"
        )


class RayClusters:
    """Reconciles RayClusters.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
    """

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "raycluster-controller")

    async def reconcile(self, cluster: JsonObject, pods: list[JsonObject]) -> None:
        """Reconcile a cluster's pods with its spec, and its status with its pods.

        Args:
            cluster: The RayCluster.
            pods: All pods.
        """
        wrong = next(faults(cluster), None)
        if wrong:
            part = "metadata" if wrong[0].endswith("Metadata") else "spec"
            place = f"{namespace_of(cluster)}/{name_of(cluster)}"
            text = f"The RayCluster {part} is invalid {place}: {wrong[1]}"
            await self._events.record("rayclusters", cluster, wrong[0], text, warning=True)
            return
        mine = owned_by(cluster, pods)
        living = [pod for pod in mine if not meta(pod).get("deletionTimestamp")]
        if spec(cluster).get("suspend"):
            for pod in living:
                await self._delete(cluster, pod, "DeletedPod", "due to suspension")
        else:
            await self._around(cluster)
            await self._head(cluster, [pod for pod in living if labels(pod).get(NODE_TYPE) == "head"])
            for group in groups_of(cluster):
                named = [pod for pod in living if labels(pod).get(GROUP) == group["groupName"]]
                await self._group(cluster, group, named)
        await self._report(cluster, living, gone=not mine)

    async def _around(self, cluster: JsonObject) -> None:
        rights = autoscaler_rights(cluster) if scales_itself(cluster) else []
        for plural, made in [("services", head_service(cluster, cluster)), *rights]:
            if not await self._api.get(plural, name_of(made), namespace_of(cluster)):
                await self._api.create(plural, made)

    async def _head(self, cluster: JsonObject, heads: list[JsonObject]) -> None:
        for pod in heads:
            if is_terminal(pod):
                await self._delete(cluster, pod, "DeletedHeadPod")
        if not heads:
            await self._make(cluster, head_pod(cluster), "Head")

    async def _group(self, cluster: JsonObject, group: JsonObject, pods: list[JsonObject]) -> None:
        leaving = set((group.get("scaleStrategy") or {}).get("workersToDelete") or ())
        running = [pod for pod in pods if name_of(pod) not in leaving and not is_terminal(pod)]
        for pod in pods:
            if pod not in running:
                await self._delete(cluster, pod, "DeletedWorkerPod")
        taken = {labels(pod).get(_INDEX) for pod in running}
        free = (index for index in range(len(running) + desired_pods(group) + 1) if str(index) not in taken)
        missing = desired_pods(group) - len(running)
        for index in [next(free) for _ in range(missing)]:
            await self._make(cluster, worker_pod(cluster, group, index), "Worker")
        # With Ray's autoscaler, only the autoscaler chooses workers to delete: it names them in workersToDelete.
        surplus = 0 if scales_itself(cluster) else max(0, -missing)
        for pod in running[:surplus]:
            await self._delete(cluster, pod, "DeletedWorkerPod")

    async def _make(self, cluster: JsonObject, pod: JsonObject, kind: str) -> None:
        refusals: list[str] = []
        made = await self._api.create("pods", pod, refusals)
        place = namespace_of(cluster)
        if made:
            text = f"Created {kind.lower()} Pod {place}/{name_of(made)}"
            await self._events.record("rayclusters", cluster, f"Created{kind}Pod", text)
        for message in refusals:
            text = f"Failed to create {kind.lower()} Pod {place}/{meta(pod).get('name', '')}, {message}"
            await self._events.record("rayclusters", cluster, f"FailedToCreate{kind}Pod", text, warning=True)

    async def _delete(self, cluster: JsonObject, pod: JsonObject, reason: str, why: str = "") -> None:
        await self._api.delete("pods", pod)
        text = f"Deleted Pod {namespace_of(pod)}/{name_of(pod)}{why and ' '}{why}"
        await self._events.record("rayclusters", cluster, reason, text)

    async def _report(self, cluster: JsonObject, pods: list[JsonObject], *, gone: bool) -> None:
        now, old = timestamp(self._clock.now()), status(cluster)
        numbers = _replica_counts(cluster, pods)
        head = next((pod for pod in pods if labels(pod).get(NODE_TYPE) == "head"), None)
        if head:
            numbers["head"] = _head_info(cluster, head)
        whole = len(pods) == numbers["desiredWorkerReplicas"] + 1 and all(map(is_ready, pods))
        numbers["conditions"] = conditions(
            _conditions(old), _new_conditions(cluster, head, whole=whole, gone=gone), now
        )
        suspended = bool(spec(cluster).get("suspend"))
        state = "suspended" if suspended and gone else "ready" if whole and not suspended else old.get("state")
        if state:
            numbers["state"] = state
            if state != old.get("state"):
                numbers["stateTransitionTimes"] = {**(old.get("stateTransitionTimes") or {}), state: now}
        if merge_patch(old, numbers) != old:
            await self._api.patch_status("rayclusters", cluster, {**numbers, "lastUpdateTime": now})


def _replica_counts(cluster: JsonObject, pods: list[JsonObject]) -> JsonObject:
    groups = groups_of(cluster)
    workers = [pod for pod in pods if labels(pod).get(NODE_TYPE) == "worker"]
    bounds = [(group, int(group.get("numOfHosts") or 1)) for group in groups if not group.get("suspend")]
    return {
        "desiredWorkerReplicas": sum(map(desired_pods, groups)),
        "availableWorkerReplicas": sum(status(pod).get("phase") == "Running" for pod in workers),
        "readyWorkerReplicas": sum(map(is_ready, workers)),
        "minWorkerReplicas": sum(int(group.get("minReplicas") or 0) * hosts for group, hosts in bounds),
        "maxWorkerReplicas": min(2147483647, sum(int(group["maxReplicas"]) * hosts for group, hosts in bounds)),
        **desired_resources(cluster),
        "observedGeneration": meta(cluster).get("generation", 1),
    }


def _head_info(cluster: JsonObject, head: JsonObject) -> JsonObject:
    address = status(head).get("podIP", "")
    return {
        "podIP": address,
        "podName": name_of(head),
        "serviceIP": address,
        "serviceName": head_service_name(cluster),
    }


def _new_conditions(
    cluster: JsonObject, head: JsonObject | None, *, whole: bool, gone: bool
) -> dict[str, tuple[bool, str, str]]:
    """Return the current conditions: whether each is true, its reason, and its message."""
    old, suspended = _conditions(status(cluster)), bool(spec(cluster).get("suspend"))
    ready = head is not None and is_ready(head)
    ready_as = ("HeadPodRunningAndReady", "") if ready else ("ContainersNotReady", "")
    came_as = ("AllPodRunningAndReadyFirstTime", "All Ray Pods are ready for the first time")
    coming = ("RayClusterPodsProvisioning", "RayCluster Pods are being provisioned for first time")
    first = any(one["type"] == "RayClusterProvisioned" and one["status"] == "True" for one in old)
    came = (whole or first) and not (suspended and gone)
    return {
        "HeadPodReady": (ready, *(ready_as if head else ("HeadPodNotFound", "Head Pod not found"))),
        "RayClusterProvisioned": (came, *(came_as if came else coming)),
        "RayClusterSuspending": (suspended and not gone, "RayClusterSuspending", ""),
        "RayClusterSuspended": (suspended and gone, "RayClusterSuspended", ""),
    }


def _conditions(found: JsonObject) -> list[JsonObject]:
    return found.get("conditions") or []


def conditions(old: list[JsonObject], desired: dict[str, tuple[bool, str, str]], now: str) -> list[JsonObject]:
    """Return conditions; unchanged ones keep their last transition time.

    Args:
        old: The previous conditions.
        desired: Type -> status, reason, message.
        now: Transition time of changes.
    """
    known = {item["type"]: item for item in old}
    made = []
    for kind, (is_true, reason, message) in desired.items():
        before, value = known.get(kind) or {}, "True" if is_true else "False"
        since = before.get("lastTransitionTime", now) if before.get("status") == value else now
        made.append({"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": since})
    return made
