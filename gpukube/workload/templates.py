"""Pod templates, wherever an object has them: its path, its role, how many pods it stands for.

Pure. Lives here: the kinds and where they keep their templates. Must not live here: what is in a template.

Kinds: Pod, PodTemplate, Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob, JobSet
(jobset.x-k8s.io), RayCluster, RayJob, RayService and RayCronJob (ray.io), and any other that has a pod template at
spec.template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from gpukube.core.jsontree import at
from gpukube.spec.source.positions import PositionedDict, PositionedList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.spec.source.positions import Data, Path
    from gpukube.workload.manifests import Manifest

Role = Literal["pod", "replica", "daemon", "job", "ray-head", "ray-worker", "ray-submitter"]

ENDLESS: Final = 2**31 - 1
"""maxReplicas of a Ray worker group that has none (ray.io_rayclusters.yaml: default 2147483647)."""

_PERCENT: Final = re.compile(r"(\d{1,3})%")
_RAY_CLUSTERS: Final[dict[str, Path]] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}


class Replicas(NamedTuple):
    """How many pods of a template there are.

    Attributes:
        least: Always, or as soon as the object runs.
        most: When an autoscaler has raised it; ENDLESS without a limit.
    """

    least: int
    most: int


_ONE: Final = Replicas(1, 1)
_NONE: Final = Replicas(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """A pod, or what pods are made of.

    Attributes:
        manifest: The object that has it.
        path: Path of the template in the object; metadata and spec are below it. () for a Pod.
        metadata: Of the pods.
        spec: Of the pods; empty where there is none.
        role: What the pods are to the object.
        replicas: How many; of a DaemonSet none, it has one for each node that it fits.
        surge: How many pods more a roll-out needs.
        group: Name of the worker group or of the replicated job; "" where there is none.
    """

    manifest: Manifest
    path: Path = ()
    metadata: PositionedDict
    spec: PositionedDict
    role: Role
    replicas: Replicas = _ONE
    surge: int = 0
    group: str = ""

    def __str__(self) -> str:
        """Name it for messages: "RayCluster/train, group gpu"."""
        return f"{self.manifest}, group {self.group}" if self.group else str(self.manifest)


def pod_templates(manifest: Manifest) -> tuple[PodTemplate, ...]:
    """List the pod templates of an object, as they stand in it."""
    if path := ray_cluster_path(manifest):
        return tuple(_of_ray(manifest, path))
    find = _KINDS.get(manifest.kind, _of_unknown)
    return tuple(find(manifest))


def ray_cluster_path(manifest: Manifest) -> Path | None:
    """Return where an object of KubeRay has the spec of its Ray cluster; None for other objects."""
    return _RAY_CLUSTERS.get(manifest.kind) if manifest.api_version.startswith("ray.io/") else None


def _template(  # noqa: PLR0913 - the parts of a PodTemplate
    manifest: Manifest,
    path: Path,
    role: Role,
    replicas: Replicas = _ONE,
    *,
    surge: int = 0,
    group: str = "",
) -> Iterator[PodTemplate]:
    """Yield the template at a path, if there is one."""
    node = at(manifest.root, *path)
    if isinstance(node, PositionedDict):
        yield PodTemplate(
            manifest=manifest,
            path=path,
            metadata=_mapping(manifest, node.get("metadata")),
            spec=_mapping(manifest, node.get("spec")),
            role=role,
            replicas=replicas,
            surge=surge,
            group=group,
        )


def _mapping(manifest: Manifest, value: Data) -> PositionedDict:
    return value if isinstance(value, PositionedDict) else PositionedDict(manifest.root.origin, manifest.root.mark)


def _of_pod(manifest: Manifest) -> Iterator[PodTemplate]:
    return _template(manifest, (), "pod")


def _of_pod_template(manifest: Manifest) -> Iterator[PodTemplate]:
    return _template(manifest, ("template",), "pod", _NONE)


def _of_deployment(manifest: Manifest) -> Iterator[PodTemplate]:
    count = _count(manifest, "spec", "replicas", default=1)
    return _template(manifest, ("spec", "template"), "replica", Replicas(count, count), surge=_surge(manifest, count))


def _of_replicas(manifest: Manifest) -> Iterator[PodTemplate]:
    count = _count(manifest, "spec", "replicas", default=1)
    return _template(manifest, ("spec", "template"), "replica", Replicas(count, count))


def _of_daemon_set(manifest: Manifest) -> Iterator[PodTemplate]:
    return _template(manifest, ("spec", "template"), "daemon", _NONE)


def _of_job(manifest: Manifest) -> Iterator[PodTemplate]:
    count = _job_pods(manifest, ("spec",))
    return _template(manifest, ("spec", "template"), "job", Replicas(count, count))


def _of_cron_job(manifest: Manifest) -> Iterator[PodTemplate]:
    job: Path = ("spec", "jobTemplate", "spec")
    count = _job_pods(manifest, job)
    return _template(manifest, (*job, "template"), "job", Replicas(count, count))


def _of_job_set(manifest: Manifest) -> Iterator[PodTemplate]:
    for index in _indices(manifest, ("spec", "replicatedJobs")):
        above: Path = ("spec", "replicatedJobs", index)
        job: Path = (*above, "template", "spec")
        count = _count(manifest, *above, "replicas", default=1) * _job_pods(manifest, job)
        name = at(manifest.root, *above, "name")
        group = name if isinstance(name, str) else ""
        yield from _template(manifest, (*job, "template"), "job", Replicas(count, count), group=group)


def _of_unknown(manifest: Manifest) -> Iterator[PodTemplate]:
    """Find the template of a kind that is built like a Deployment."""
    if isinstance(at(manifest.root, "spec", "template", "spec", "containers"), list):
        yield from _of_replicas(manifest)


def _of_ray(manifest: Manifest, cluster: Path) -> Iterator[PodTemplate]:
    """Find head, worker groups and submitter of KubeRay's objects.

    The operator clamps replicas to the bounds of the group (GetWorkerGroupDesiredReplicas in ray-operator's
    utils/util.go); with the in-tree autoscaler a group begins with its replicas and then lives between the bounds. A
    RayService has two clusters while it is upgraded, unless its strategy is None.
    """
    doubled = manifest.kind == "RayService" and at(manifest.root, "spec", "upgradeStrategy", "type") != "None"
    yield from _template(manifest, (*cluster, "headGroupSpec", "template"), "ray-head", surge=int(doubled))
    autoscaled = at(manifest.root, *cluster, "enableInTreeAutoscaling") is True
    for index in _indices(manifest, (*cluster, "workerGroupSpecs")):
        group: Path = (*cluster, "workerGroupSpecs", index)
        replicas = _ray_replicas(manifest, group, autoscaled=autoscaled)
        name = at(manifest.root, *group, "groupName")
        yield from _template(
            manifest,
            (*group, "template"),
            "ray-worker",
            replicas,
            surge=replicas.least if doubled else 0,
            group=name if isinstance(name, str) else "",
        )
    if manifest.kind in ("RayJob", "RayCronJob"):
        yield from _template(manifest, (*cluster[:-1], "submitterPodTemplate"), "ray-submitter")


def _ray_replicas(manifest: Manifest, group: Path, *, autoscaled: bool) -> Replicas:
    if at(manifest.root, *group, "suspend") is True:
        return _NONE
    hosts = _count(manifest, *group, "numOfHosts", default=1)
    least = _count(manifest, *group, "minReplicas", default=0)
    most = _count(manifest, *group, "maxReplicas", default=ENDLESS)
    if not autoscaled:
        least = most = min(max(_count(manifest, *group, "replicas", default=0), least), most)
    return Replicas(least * hosts, min(most * hosts, ENDLESS))


def _job_pods(manifest: Manifest, job: Path) -> int:
    """Return how many pods of a Job run at once."""
    parallelism = _count(manifest, *job, "parallelism", default=1)
    completions = at(manifest.root, *job, "completions")
    return min(parallelism, completions) if type(completions) is int and completions >= 0 else parallelism


def _surge(manifest: Manifest, replicas: int) -> int:
    """Return how many pods a Deployment may have above its replicas while it rolls out; 25 % rounded up by default."""
    if at(manifest.root, "spec", "strategy", "type") == "Recreate":
        return 0
    surge = at(manifest.root, "spec", "strategy", "rollingUpdate", "maxSurge")
    if type(surge) is int:
        return max(surge, 0)
    percent = read_percent(surge)
    return ceil(replicas * (25 if percent is None else percent) / 100)


def read_percent(value: object) -> int | None:
    """Read "25%"; None for anything else, and for numbers that no roll-out has."""
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _indices(manifest: Manifest, path: Path) -> range:
    found = at(manifest.root, *path)
    return range(len(found)) if isinstance(found, PositionedList) else range(0)


def _count(manifest: Manifest, *path: str | int, default: int) -> int:
    """Return a number of pods, the default where none is written or something else is."""
    found = at(manifest.root, *path)
    return min(found, ENDLESS) if type(found) is int and found >= 0 else default


_KINDS: Final[dict[str, Callable[[Manifest], Iterator[PodTemplate]]]] = {
    "Pod": _of_pod,
    "PodTemplate": _of_pod_template,
    "Deployment": _of_deployment,
    "ReplicaSet": _of_replicas,
    "ReplicationController": _of_replicas,
    "StatefulSet": _of_replicas,
    "DaemonSet": _of_daemon_set,
    "Job": _of_job,
    "CronJob": _of_cron_job,
    "JobSet": _of_job_set,
}
