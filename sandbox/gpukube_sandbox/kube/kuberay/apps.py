"""RayJobs and RayServices: the clusters that they create, and their status.

Out of scope: pods (`clusters`). No Ray program runs: a job has succeeded once its submitter has finished, and a Ray
Serve application is running if the head is.

Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/rayjob_controller.go, rayservice_controller.go,
common/job.go.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING

import yaml

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.controllers.replicas import owned_by
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.kuberay.clusters import conditions, spec_faults
from gpukube_sandbox.kube.kuberay.manifests import (
    CLUSTER,
    NODE_TYPE,
    ORIGIN_KIND,
    ORIGIN_NAME,
    SERVES,
    head_service,
    head_service_name,
    owner_of,
    serve_service,
)
from gpukube_sandbox.kube.matching import is_ready
from gpukube_sandbox.kube.store.objects import annotations_of, copied, labels, meta, name_of, namespace_of, spec, status
from gpukube_sandbox.kube.store.patches import merge_patch

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_HASH = "ray.io/hash-without-replicas-and-workers-to-delete"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_DELETED_AFTER_S = 60.0
_LONGEST_NAME = 47
_SUBMITTER = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_ENDS = frozenset({"Complete", "Failed", "ValidationFailed"})


def _suffix(*parts: object) -> str:
    """Return five letters like a generated name's suffix, deterministic for the same parts."""
    digest = hashlib.sha256(json.dumps(parts, default=str).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _cluster(owner: JsonObject, name: str, body: JsonObject, marks: dict[str, str]) -> JsonObject:
    origin = {ORIGIN_NAME: name_of(owner), ORIGIN_KIND: owner["kind"]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {**labels(owner), **origin},
            "annotations": {**annotations_of(owner), **marks},
            "ownerReferences": [owner_of(owner)],
        },
        "spec": copied(body),
    }


class RayJobs:
    """Reconciles RayJobs.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
    """

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "rayjob-controller")

    async def reconcile(self, job: JsonObject, clusters: list[JsonObject]) -> float | None:
        """Advance a job by one step; return the time of the next step, if one is due without a change."""
        now, old = self._clock.now(), status(job)
        stage = old.get("jobDeploymentStatus") or ""
        if stage in _ENDS:
            return await self._shut_down(job, clusters)
        if wrong := _job_fault(job):
            place = f"{namespace_of(job)}/{name_of(job)}"
            await self._events.record("rayjobs", job, "InvalidRayJobSpec", f"{place}: {wrong}", warning=True)
            update = {"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed", "message": wrong}
            await self._api.patch_status("rayjobs", job, update)
            return None
        if not stage:
            suffix = _suffix(meta(job)["uid"])
            update = {
                "jobDeploymentStatus": "Initializing",
                "jobId": spec(job).get("jobId") or f"{name_of(job)}-{suffix}",
                "rayClusterName": f"{name_of(job)}-{suffix}",
                "startTime": timestamp(now),
                "observedGeneration": meta(job).get("generation", 1),
            }
            await self._api.patch_status("rayjobs", job, update)
            return now
        cluster = next((item for item in clusters if name_of(item) == old.get("rayClusterName")), None)
        if stage == "Initializing":
            await self._begin(job, cluster)
        elif stage == "Running":
            await self._follow(job, cluster)
        return None

    async def _begin(self, job: JsonObject, cluster: JsonObject | None) -> None:
        if cluster is None:
            made = _cluster(job, status(job)["rayClusterName"], spec(job)["rayClusterSpec"], {})
            if await self._api.create("rayclusters", made):
                text = f"Created RayCluster {namespace_of(job)}/{name_of(made)}"
                await self._events.record("rayjobs", job, "CreatedRayCluster", text)
            return
        update: JsonObject = {"rayClusterStatus": status(cluster)}
        if status(cluster).get("state") == "ready":
            update["dashboardURL"] = f"{head_service_name(cluster)}.{namespace_of(job)}.svc.cluster.local:8265"
            update["jobDeploymentStatus"] = "Waiting"
            if spec(job).get("submissionMode") != "InteractiveMode":
                update["jobDeploymentStatus"] = "Running"
                await self._api.create("jobs", _submitter(job, cluster, update["dashboardURL"]))
                text = f"Created submitter Kubernetes Job {namespace_of(job)}/{name_of(job)}"
                await self._events.record("rayjobs", job, "CreatedRayJobSubmitter", text)
        if merge_patch(status(job), update) != status(job):
            await self._api.patch_status("rayjobs", job, update)

    async def _follow(self, job: JsonObject, cluster: JsonObject | None) -> None:
        submitter, now = await self._api.get("jobs", name_of(job), namespace_of(job)), timestamp(self._clock.now())
        kinds = {one["type"] for one in status(submitter or {}).get("conditions") or () if one["status"] == "True"}
        update: JsonObject = {"rayClusterStatus": status(cluster) if cluster else {}, "jobStatus": "RUNNING"}
        if "Complete" in kinds:
            update |= {"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete", "endTime": now, "succeeded": 1}
        elif "Failed" in kinds:
            update |= {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "endTime": now, "failed": 1}
            update["reason"] = "SubmissionFailed"
        if merge_patch(status(job), update) != status(job):
            await self._api.patch_status("rayjobs", job, update)

    async def _shut_down(self, job: JsonObject, clusters: list[JsonObject]) -> float | None:
        if not spec(job).get("shutdownAfterJobFinishes") or "endTime" not in status(job):
            return None
        due = _seconds(status(job)["endTime"]) + float(spec(job).get("ttlSecondsAfterFinished") or 0)
        if self._clock.now() < due:
            return due
        for cluster in owned_by(job, clusters):
            if not meta(cluster).get("deletionTimestamp"):
                await self._api.delete("rayclusters", cluster)
                text = f"Deleted cluster {namespace_of(job)}/{name_of(cluster)}"
                await self._events.record("rayjobs", job, "DeletedRayCluster", text)
        return None


def _job_fault(job: JsonObject) -> str:
    if len(name_of(job)) > _LONGEST_NAME:
        return f"RayJob name should be no more than {_LONGEST_NAME} characters"
    body = spec(job)
    if not body.get("rayClusterSpec"):
        return "one of RayClusterSpec or ClusterSelector must be set"
    if (body.get("ttlSecondsAfterFinished") or 0) > 0 and not body.get("shutdownAfterJobFinishes"):
        return "a RayJob with shutdownAfterJobFinishes set to false is not allowed to have TTLSecondsAfterFinished"
    return next(spec_faults(body["rayClusterSpec"]), "")


def _submitter(job: JsonObject, cluster: JsonObject, address: str) -> JsonObject:
    head = spec(cluster)["headGroupSpec"]["template"]["spec"]["containers"][0]
    container = {"name": "ray-job-submitter", "image": head["image"], "resources": _SUBMITTER}
    plain: JsonObject = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    template: JsonObject = copied(spec(job).get("submitterPodTemplate") or plain)
    first = template["spec"]["containers"][0]
    submits = f"ray job submit --address http://{address} --submission-id {status(job)['jobId']} -- "
    first.setdefault("command", ["/bin/bash", "-ce", "--", f"{submits}{spec(job).get('entrypoint', '')}"])
    own = {ORIGIN_NAME: name_of(job), ORIGIN_KIND: "RayJob"}
    details = {"name": name_of(job), "namespace": namespace_of(job), "labels": own}
    limit = (spec(job).get("submitterConfig") or {}).get("backoffLimit", 2)
    return {
        "metadata": {**details, "ownerReferences": [owner_of(job)]},
        "spec": {"backoffLimit": limit, "template": template},
    }


class RayServices:
    """Reconciles RayServices.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
    """

    def __init__(self, api: ObjectApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._events = Recorder(api, clock, "rayservice-controller")

    async def reconcile(self, service: JsonObject, clusters: list[JsonObject], pods: list[JsonObject]) -> float | None:
        """Advance a service by one step; return the time of the next step, if one is due without a change."""
        wrong = next(spec_faults(spec(service)["rayClusterConfig"]), "")
        if wrong:
            text = f"The RayService spec is invalid {namespace_of(service)}/{name_of(service)}: {wrong}"
            await self._events.record("rayservices", service, "InvalidRayServiceSpec", text, warning=True)
            return None
        mine = [item for item in owned_by(service, clusters) if not meta(item).get("deletionTimestamp")]
        active = _named(mine, status(service).get("activeServiceStatus"))
        desired = _digest(spec(service)["rayClusterConfig"])
        fitting = next((item for item in mine if annotations_of(item).get(_HASH) == desired), None)
        may_upgrade = (spec(service).get("upgradeStrategy") or {}).get("type") != "None"
        if fitting is None and (active is None or may_upgrade):
            name = f"{name_of(service)}-{_suffix(meta(service)['uid'], desired)}"
            made = _cluster(service, name, spec(service)["rayClusterConfig"], {_HASH: desired})
            if await self._api.create("rayclusters", made):
                text = f"Created RayCluster {namespace_of(service)}/{name}"
                await self._events.record("rayservices", service, "CreatedRayCluster", text)
            return None
        pending = None if fitting is active else fitting
        # The applications of a cluster run as soon as its head does.
        if pending is not None and any(is_ready(pod) for pod in _heads(pending, pods)):
            active, pending = pending, None
        if active is not None:
            await self._services(service, active, pods)
        await self._report(service, active, pending, pods)
        return await self._clean_up(service, [item for item in mine if item not in (active, pending)])

    async def _services(self, service: JsonObject, active: JsonObject, pods: list[JsonObject]) -> None:
        for made in filter(None, (head_service(active, service), serve_service(active, service))):
            live = await self._api.get("services", name_of(made), namespace_of(service))
            if live is None:
                await self._api.create("services", made)
            elif spec(live).get("selector") != spec(made)["selector"]:
                change = {"metadata": {"labels": labels(made)}, "spec": {"selector": spec(made)["selector"]}}
                await self._api.patch("services", live, change)
        for pod in _heads(active, pods):
            update = "false" if spec(service).get("excludeHeadPodFromServeSvc") or not is_ready(pod) else "true"
            if labels(pod).get(SERVES) != update:
                await self._api.patch("pods", pod, {"metadata": {"labels": {SERVES: update}}})

    async def _report(
        self, service: JsonObject, active: JsonObject | None, pending: JsonObject | None, pods: list[JsonObject]
    ) -> None:
        old, now = status(service), timestamp(self._clock.now())
        serving = [
            pod
            for pod in pods
            if active is not None and labels(pod).get(CLUSTER) == name_of(active) and labels(pod).get(SERVES) == "true"
        ]
        ends = sum(map(is_ready, serving))
        started = any(one["type"] == "Ready" and one["status"] == "True" for one in old.get("conditions") or ())
        beginning = ("Initializing", "RayService is initializing")
        none_left = ("ZeroServeEndpoints", "The number of serve endpoints dropped to 0")
        many = ("NonZeroServeEndpoints", "Number of serve endpoints is greater than 0")
        both = ("BothActivePendingClustersExist", "Both active and pending Ray clusters exist")
        one = ("NoPendingCluster", "Active Ray cluster exists and no pending Ray cluster")
        ready = many if ends else none_left if started or active is not None else beginning
        upgrade = beginning if active is None else both if pending is not None else one
        update: JsonObject = {
            "serviceStatus": "Running" if ends else "",
            "numServeEndpoints": ends,
            "observedGeneration": meta(service).get("generation", 1),
            "activeServiceStatus": _part(service, active, running=bool(ends)),
            "pendingServiceStatus": _part(service, pending, running=False),
            "conditions": conditions(
                old.get("conditions") or [],
                {"Ready": (bool(ends), *ready), "UpgradeInProgress": (upgrade is both, *upgrade)},
                now,
            ),
        }
        if merge_patch(old, update) != old:
            new_pending: JsonObject = update["pendingServiceStatus"]
            new_pending |= {key: None for key in old.get("pendingServiceStatus") or {} if key not in new_pending}
            await self._api.patch_status("rayservices", service, {**update, "lastUpdateTime": now})

    async def _clean_up(self, service: JsonObject, others: list[JsonObject]) -> float | None:
        """Delete clusters that no longer serve, some time after the last switch."""
        delay = spec(service).get("rayClusterDeletionDelaySeconds")
        since = next(
            (one for one in status(service).get("conditions") or () if one["type"] == "UpgradeInProgress"), None
        )
        if not others or since is None:
            return None
        due = _seconds(since["lastTransitionTime"]) + (_DELETED_AFTER_S if delay is None else float(delay))
        if self._clock.now() < due:
            return due
        for cluster in others:
            await self._api.delete("rayclusters", cluster)
            text = f"Deleted RayCluster {namespace_of(service)}/{name_of(cluster)}"
            await self._events.record("rayservices", service, "DeletedRayCluster", text)
        return None


def _named(clusters: list[JsonObject], part: JsonObject | None) -> JsonObject | None:
    name = (part or {}).get("rayClusterName")
    return next((item for item in clusters if name_of(item) == name), None)


def _heads(cluster: JsonObject, pods: list[JsonObject]) -> list[JsonObject]:
    return [pod for pod in owned_by(cluster, pods) if labels(pod).get(NODE_TYPE) == "head"]


def _digest(body: JsonObject) -> str:
    """Return a hash of a cluster's spec, without the fields that scaling changes."""
    kept: JsonObject = copied(body)
    for group in kept.get("workerGroupSpecs") or ():
        for key in ("replicas", "minReplicas", "maxReplicas", "scaleStrategy"):
            group.pop(key, None)
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:32]


def _part(service: JsonObject, cluster: JsonObject | None, *, running: bool) -> JsonObject:
    if cluster is None:
        return {}
    state = "RUNNING" if running else "DEPLOYING"
    found: JsonObject = {"rayClusterName": name_of(cluster), "rayClusterStatus": status(cluster)}
    return found | {"applicationStatuses": {name: {"status": state} for name in _applications(service)}}


def _applications(service: JsonObject) -> list[str]:
    try:
        config = yaml.safe_load(spec(service).get("serveConfigV2") or "") or {}
        return [str(one.get("name") or "default") for one in config.get("applications") or ()]
    except (AttributeError, yaml.YAMLError):
        return []
