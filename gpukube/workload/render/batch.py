"""Kubernetes' own workload kinds, and JobSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.workload.render.pods import TEMPLATE_LABEL, metadata, pod_spec
from gpukube.workload.render.text import Noted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Fitted

_ONCE: Final = ("nvidia-smi", "-L")
_FOREVER: Final = ("sh", "-c", "nvidia-smi -L && exec sleep infinity")
_DAY_S: Final = 24 * 3600
_RETRIES: Final = 3
_SLOW_START_S: Final = 1800
_DEADLINE: Final = Noted(_DAY_S, "a day; a job that hangs releases its GPUs")


def render_pod(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a Pod."""
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata(fitted), "spec": pod_spec(fitted, _ONCE)}]


def render_job(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a Job; with many pods, as many run concurrently as the pool has room for."""
    spec = {**_job_spec(fitted, _RETRIES), "template": {"spec": pod_spec(fitted, _ONCE)}}
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(fitted), "spec": spec}]


def render_jobset(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a JobSet whose pods run together, find each other by name, and restart together."""
    fitted.replicas()
    job = {**_job_spec(fitted, 0), "template": {"spec": pod_spec(fitted, _ONCE)}}
    spec = {
        "failurePolicy": {"maxRestarts": _RETRIES},
        "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": job}}],
    }
    return [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata(fitted), "spec": spec}]


def render_deployment(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a Deployment whose rollout does not wait for devices that its own old pods use."""
    replicas = fitted.replicas()
    strategy: dict[str, object] = {}
    if replicas == fitted.capacity:
        why = Noted({"maxSurge": 0, "maxUnavailable": 1}, "the pool has no room for one more pod")
        recreate = Noted("Recreate", "the pool has no room for one more pod")
        strategy = {"type": recreate} if replicas == 1 else {"type": "RollingUpdate", "rollingUpdate": why}
    spec = {
        "replicas": replicas,
        **({"strategy": strategy} if strategy else {}),
        **_slow_start(fitted),
        **_labelled(fitted),
    }
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(fitted), "spec": spec}]


def render_statefulset(fitted: Fitted, _pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a StatefulSet and the headless Service that names its pods; it replaces pods in place, without surge."""
    name = fitted.intent.name
    service = {"clusterIP": "None", "selector": {TEMPLATE_LABEL: name}, "ports": [{"name": "http", "port": 8000}]}
    spec = {"serviceName": name, "replicas": fitted.replicas(), **_labelled(fitted)}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata(fitted), "spec": service},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(fitted), "spec": spec},
    ]


def _job_spec(fitted: Fitted, retries: int) -> dict[str, object]:
    count = 1 if fitted.intent.replicas is None else fitted.intent.replicas
    at_once: object = min(count, fitted.capacity)
    if count > fitted.capacity:
        at_once = Noted(at_once, "all that the pool has room for")
    pods = {"completionMode": "Indexed", "completions": count, "parallelism": at_once} if count > 1 else {}
    return {**pods, "backoffLimit": retries, "activeDeadlineSeconds": _DEADLINE}


def _labelled(fitted: Fitted) -> dict[str, object]:
    labels = {TEMPLATE_LABEL: fitted.intent.name}
    spec = pod_spec(fitted, _FOREVER, restart="Always")
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}


def _slow_start(fitted: Fitted) -> dict[str, object]:
    if not fitted.offer.desired.target.nodes.autoscaled:
        return {}
    return {"progressDeadlineSeconds": Noted(_SLOW_START_S, "a node may have to start first")}
