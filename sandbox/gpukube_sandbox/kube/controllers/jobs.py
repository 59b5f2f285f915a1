"""Jobs: pods that run to completion.

In scope: completions, parallelism, indexes, retries, deadlines, TTL after completion.
Out of scope: running pods.

Source: kubernetes pkg/controller/job.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.replicas import create_pod, new_pod, owned_by
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import is_ready, is_terminal
from gpukube_sandbox.kube.store.objects import annotations_of, meta, name_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_INDEX = "batch.kubernetes.io/job-completion-index"
_BACK_OFF_S, _LONGEST_BACK_OFF_S = 10.0, 600.0
_MESSAGES = {
    "CompletionsReached": "Reached expected number of succeeded pods",
    "BackoffLimitExceeded": "Job has reached the specified backoff limit",
    "DeadlineExceeded": "Job was active longer than specified deadline",
}


class Jobs:
    """Runs each Job's pods until enough have succeeded or too many have failed."""

    watches = ("jobs", "pods")
    emulates = "kube-controller-manager"

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "job-controller")

    async def reconcile(self) -> float | None:
        """Advance every Job by one step; return the time of the next deadline."""
        jobs = await self._api.list("jobs")
        pods = await self._api.list("pods") if jobs else []
        due: list[float] = []
        for job in jobs:
            if meta(job).get("deletionTimestamp"):
                continue
            ended = _ended(job)
            if ended is None:
                due += await self._reconcile_one(job, owned_by(job, pods))
            elif (kept := spec(job).get("ttlSecondsAfterFinished")) is not None:
                due += await self._expire(job, owned_by(job, pods), ended + int(kept))
        return min(due, default=None)

    async def _expire(self, job: JsonObject, pods: list[JsonObject], moment: float) -> list[float]:
        """Delete a finished Job and its pods once its TTL has expired."""
        if self._clock.now() < moment:
            return [moment]
        for pod in pods:
            await self._api.delete("pods", pod)
        await self._api.delete("jobs", job)
        return []

    async def _reconcile_one(self, job: JsonObject, pods: list[JsonObject]) -> list[float]:
        now = timestamp(self._clock.now())
        active = [pod for pod in pods if not is_terminal(pod)]
        phases = [status(pod).get("phase") for pod in pods]
        done, failed = _completed(job, pods), phases.count("Failed")
        numbers: JsonObject = {"active": len(active), "succeeded": done, "failed": failed}
        numbers["ready"] = sum(map(is_ready, active))
        if _is_indexed(job):
            numbers["completedIndexes"] = _ranges(_indexes(pods, "Succeeded"))
        suspended = bool(spec(job).get("suspend"))
        if not suspended:
            numbers["startTime"] = status(job).get("startTime") or now
        limit = spec(job).get("activeDeadlineSeconds")
        deadline = None if limit is None or suspended else _seconds(numbers["startTime"]) + int(limit)
        retry_at = _next_try(pods, failed)
        if verdict := self._verdict(job, done, active, failed, deadline):
            await self._finish(job, active, verdict, numbers)
        elif suspended:
            for pod in active:
                await self._api.delete("pods", pod)
        elif retry_at <= self._clock.now():
            for pod in _missing(job, pods, active, done):
                await create_pod(self._api, self._events, ("jobs", job), pod)
        if any(status(job).get(key) != value for key, value in numbers.items()):
            await self._api.patch_status("jobs", job, numbers)
        if verdict or suspended:
            return []
        return [moment for moment in (deadline, retry_at) if moment is not None and moment > self._clock.now()]

    def _verdict(
        self, job: JsonObject, done: int, active: list[JsonObject], failed: int, deadline: float | None
    ) -> str:
        desired = spec(job).get("completions")
        if done >= int(desired) if desired is not None else done and not active:
            return "CompletionsReached"
        if failed > int(spec(job).get("backoffLimit", 6)):
            return "BackoffLimitExceeded"
        return "DeadlineExceeded" if deadline is not None and self._clock.now() >= deadline else ""

    async def _finish(self, job: JsonObject, active: list[JsonObject], reason: str, numbers: JsonObject) -> None:
        now, well = timestamp(self._clock.now()), reason == "CompletionsReached"
        condition = {"reason": reason, "message": _MESSAGES[reason], "lastProbeTime": now, "lastTransitionTime": now}
        kinds = ("SuccessCriteriaMet", "Complete") if well else ("FailureTarget", "Failed")
        numbers["conditions"] = [{"type": kind, "status": "True", **condition} for kind in kinds]
        numbers |= {"completionTime": now} if well else {}
        for pod in active:
            await self._api.delete("pods", pod)
        if well:
            await self._events.record("jobs", job, "Completed", "Job completed")
        else:
            await self._events.record("jobs", job, reason, _MESSAGES[reason], warning=True)


def _is_indexed(job: JsonObject) -> bool:
    return spec(job).get("completionMode") == "Indexed"


def _indexes(pods: Iterable[JsonObject], *phases: str) -> set[int]:
    return {int(annotations_of(pod).get(_INDEX, -1)) for pod in pods if status(pod).get("phase") in phases}


def _completed(job: JsonObject, pods: list[JsonObject]) -> int:
    """Return the number of succeeded pods, counting each index once."""
    if _is_indexed(job):
        return len(_indexes(pods, "Succeeded"))
    return sum(status(pod).get("phase") == "Succeeded" for pod in pods)


def _ranges(indexes: set[int]) -> str:
    """Format indexes as in a Job's status: "0-2,5"."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _next_try(pods: list[JsonObject], failed: int) -> float:
    """Return when a failed pod may be replaced: ten seconds after the first failure, doubled each time."""
    ends = [
        _seconds(item["state"]["terminated"]["finishedAt"])
        for pod in pods
        if status(pod).get("phase") == "Failed"
        for item in status(pod).get("containerStatuses") or ()
        if "terminated" in item["state"]
    ]
    return max(ends) + min(_BACK_OFF_S * 2 ** (failed - 1), _LONGEST_BACK_OFF_S) if ends else 0.0


def _missing(job: JsonObject, pods: list[JsonObject], active: list[JsonObject], done: int) -> list[JsonObject]:
    """Return the pods to create now."""
    desired, parallel = spec(job).get("completions"), int(spec(job).get("parallelism", 1))
    # A Job without completions is a work queue: after the first success it creates no more pods.
    left = parallel * (not done) if desired is None else min(parallel, int(desired) - done)
    missing = max(0, left - len(active))
    if not _is_indexed(job):
        return [new_pod("Job", job, {}) for _ in range(missing)]
    taken = _indexes(pods, "Pending", "Running", "Succeeded")
    free = [index for index in range(int(desired or 0)) if index not in taken]
    return [_indexed_pod(job, index) for index in free[:missing]]


def _indexed_pod(job: JsonObject, index: int) -> JsonObject:
    pod = new_pod("Job", job, {_INDEX: str(index)})
    pod["metadata"]["generateName"] = f"{name_of(job)}-{index}-"
    pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], _INDEX: str(index)}
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{_INDEX}']"}}
    for container in pod["spec"]["containers"]:
        container["env"] = [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
    return pod


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _ended(job: JsonObject) -> float | None:
    """Return the time at which a Job finished; None if it has not."""
    for item in status(job).get("conditions") or ():
        if item["type"] in {"Complete", "Failed"} and item["status"] == "True":
            return _seconds(item["lastTransitionTime"])
    return None
