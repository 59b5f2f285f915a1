"""Finds the pod templates in an object: path, role, and number of pods.

Pure. In scope: known kinds with the paths of their templates, and searching all other kinds. Out of scope: the content
of a template.

Kinds: Pod, PodTemplate, Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob, JobSet
(jobset.x-k8s.io), RayCluster, RayJob, RayService, and RayCronJob (ray.io), and any other with a pod template at
spec.template. In objects of other kinds every mapping with a list of containers counts as a pod spec (PyTorchJob,
LeaderWorkerSet, a Job of Volcano), and other requests for NVIDIA's resources are found too (NIMService, TrainJob); how
many pods those create is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from gpukube.core.jsontree import at
from gpukube.spec.source.positions import PositionedDict, PositionedList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.spec.source.positions import Data, Path
    from gpukube.workload.manifests import Manifest

Role = Literal["pod", "replica", "daemon", "job", "ray-head", "ray-worker", "ray-submitter", "embedded"]

ENDLESS: Final = 2**31 - 1
"""maxReplicas of a Ray worker group that sets none (ray.io_rayclusters.yaml: default 2147483647)."""

_GROUPS: Final = frozenset({"", "apps", "batch", "extensions", "jobset.x-k8s.io"})
"""API groups of the known kinds; other groups have kinds with the same names (batch.volcano.sh)."""
_WITHOUT_PODS: Final = frozenset({"CustomResourceDefinition", "ResourceQuota"})
"""Kinds without pods: schemas of other objects; a quota has its own rule."""
_CONTAINER_SET: Final = "containerSet"
"""Field of Argo Workflows with the containers of a pod whose tolerations and selectors are elsewhere."""
_OF_NODES: Final = frozenset(
    {"labels", "matchLabels", "annotations", "nodeSelector", "nodeLabels", "tolerations", "taints", "nodeTaints", "env"}
)
"""Fields in which a resource name is a label, a taint key, or text."""
_RESOURCES: Final = "resource"
"""Prefix of field names with limits and requests: resources, resourcesPerNode of a TrainJob."""
_PARTS: Final = ("limits", "requests")
_DEVICE: Final = re.compile(r"(requests\.|limits\.)?nvidia\.com/(gpu|gpu\.shared|mig-\d.*)")
_PERCENT: Final = re.compile(r"(\d{1,3})%")
_RAY_CLUSTERS: Final[dict[str, Path]] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}


class Replicas(NamedTuple):
    """Number of pods of a template.

    Attributes:
        least: Minimum, as soon as the object runs.
        most: Maximum that an autoscaler may set; ENDLESS without a limit.
    """

    least: int
    most: int


_ONE: Final = Replicas(1, 1)
_NONE: Final = Replicas(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """A pod, or a template of pods.

    Attributes:
        manifest: Object that contains it.
        path: Path of the template in the object; () for a Pod.
        base: Path of its pod spec in the object.
        metadata: Metadata of the pods.
        spec: Spec of the pods; empty if missing.
        role: Role of the pods in the object.
        replicas: Number of pods; 0 for a DaemonSet, which has one per matching node.
        surge: Additional pods during a rollout.
        group: Name of the worker group or replicated job; "" if there is none.
    """

    manifest: Manifest
    path: Path = ()
    base: Path = ("spec",)
    metadata: PositionedDict
    spec: PositionedDict
    role: Role
    replicas: Replicas = _ONE
    surge: int = 0
    group: str = ""

    def __str__(self) -> str:
        """Render for messages: "RayCluster/train, group gpu"."""
        return f"{self.manifest}, group {self.group}" if self.group else str(self.manifest)


class Requirements(NamedTuple):
    """Limits and requests outside of a pod spec.

    Attributes:
        manifest: Object that contains them.
        path: Path of the mapping with the field.
        field: Name of the field: "resources", "resourcesPerNode".
        holder: The mapping.
    """

    manifest: Manifest
    path: Path
    field: str
    holder: PositionedDict


class Contents(NamedTuple):
    """Pods and devices in an object.

    Attributes:
        templates: Its pod templates, in order.
        requirements: Limits and requests of NVIDIA's resources outside of them.
        unjudged: Devices that it names in a place with unknown meaning.
    """

    templates: tuple[PodTemplate, ...]
    requirements: tuple[Requirements, ...] = ()
    unjudged: tuple[str, ...] = ()


def pod_templates(manifest: Manifest) -> tuple[PodTemplate, ...]:
    """Return the pod templates of an object, in order."""
    return read_contents(manifest).templates


def read_contents(manifest: Manifest) -> Contents:
    """Find pod templates, and everything else that names devices."""
    if path := ray_cluster_path(manifest):
        return Contents(tuple(_of_ray(manifest, path)))
    group = manifest.api_version.rpartition("/")[0]
    if find := _KINDS.get(manifest.kind) if group in _GROUPS else None:
        return Contents(tuple(find(manifest)))
    if isinstance(at(manifest.root, "spec", "template", "spec", "containers"), list):  # built like a Deployment
        return Contents(tuple(_of_replicas(manifest)))
    return _search(manifest)


def scaled(template: PodTemplate, bounds: Replicas) -> PodTemplate:
    """Return a template under an autoscaler: never fewer pods than its minimum, whatever the object declares."""
    surge = _surge(template.manifest, bounds.least) if template.manifest.kind == "Deployment" else template.surge
    return replace(template, replicas=bounds, surge=surge)


def _search(manifest: Manifest) -> Contents:
    """Search an object of an unknown kind."""
    templates: list[PodTemplate] = []
    requirements: list[Requirements] = []
    unjudged: dict[str, None] = {}
    waiting: list[tuple[Path, Data]] = [] if manifest.kind in _WITHOUT_PODS else [((), manifest.root)]
    while waiting:
        path, node = waiting.pop()
        inner: list[tuple[Path, Data]] = []
        if isinstance(node, PositionedDict):
            if _is_pod_spec(path, node):
                templates.append(_embedded(manifest, path, node))
                continue
            for key, value in node.items():
                if _names_devices(key, value):
                    requirements.append(Requirements(manifest, path, key, node))
                elif key not in _OF_NODES:
                    unjudged |= dict.fromkeys([key] if _DEVICE.fullmatch(key) else ())
                    inner.append(((*path, key), value))
        elif isinstance(node, PositionedList):
            inner = [((*path, index), item) for index, item in enumerate(node)]
        elif isinstance(node, str) and _DEVICE.fullmatch(node):
            unjudged[node] = None
        waiting += reversed(inner)
    return Contents(tuple(templates), tuple(requirements), tuple(unjudged))


def _is_pod_spec(path: Path, node: PositionedDict) -> bool:
    containers = node.get("containers")
    if not isinstance(containers, PositionedList) or not containers or path[-1:] == (_CONTAINER_SET,):
        return False
    return all(isinstance(item, PositionedDict) for item in containers)


def _embedded(manifest: Manifest, path: Path, spec: PositionedDict) -> PodTemplate:
    above = path[:-1] if path[-1:] == ("spec",) else path
    owner = manifest.positions.within(above).root if above != path else None
    metadata = owner.get("metadata") if isinstance(owner, PositionedDict) else None
    return PodTemplate(
        manifest=manifest,
        path=above,
        base=path,
        metadata=_mapping(manifest, metadata),
        spec=spec,
        role="embedded",
        replicas=_NONE,
    )


def _names_devices(field: str, value: Data) -> bool:
    """Return whether a field has limits or requests that include NVIDIA's resources."""
    if not field.startswith(_RESOURCES) or not isinstance(value, PositionedDict):
        return False
    parts = [part for name in _PARTS if isinstance(part := value.get(name), PositionedDict)]
    return any("nvidia" in name.lower() for part in parts for name in part)


def ray_cluster_path(manifest: Manifest) -> Path | None:
    """Return the path of the Ray cluster spec in a KubeRay object; None for other objects."""
    return _RAY_CLUSTERS.get(manifest.kind) if manifest.api_version.startswith("ray.io/") else None


def _template(  # noqa: PLR0913 - the fields of a PodTemplate
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
            base=(*path, "spec"),
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


def _of_ray(manifest: Manifest, cluster: Path) -> Iterator[PodTemplate]:
    """Yield head, worker groups, and submitter of KubeRay objects.

    The operator clamps replicas to the group's limits (GetWorkerGroupDesiredReplicas in ray-operator's utils/util.go);
    with the in-tree autoscaler a group starts with its replicas and then stays within the limits. A RayService has two
    clusters during an upgrade, unless its strategy is None.
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
    """Return how many pods of a Job run concurrently."""
    parallelism = _count(manifest, *job, "parallelism", default=1)
    completions = at(manifest.root, *job, "completions")
    return min(parallelism, completions) if type(completions) is int and completions >= 0 else parallelism


def _surge(manifest: Manifest, replicas: int) -> int:
    """Return how many pods a Deployment may have above its replicas during a rollout; default 25 %, rounded up."""
    if at(manifest.root, "spec", "strategy", "type") == "Recreate":
        return 0
    surge = at(manifest.root, "spec", "strategy", "rollingUpdate", "maxSurge")
    if type(surge) is int:
        return max(surge, 0)
    percent = read_percent(surge)
    return ceil(replicas * (25 if percent is None else percent) / 100)


def read_percent(value: object) -> int | None:
    """Parse "25%"; return None for anything else, and for percentages that no rollout has."""
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _indices(manifest: Manifest, path: Path) -> range:
    found = at(manifest.root, *path)
    return range(len(found)) if isinstance(found, PositionedList) else range(0)


def _count(manifest: Manifest, *path: str | int, default: int) -> int:
    """Return a number of pods; the default if missing or invalid."""
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
