"""Rules about KubeRay's fields: what its operator rejects, and how Ray's autoscaler reads a group.

Pure. Out of scope: the pods of the groups (the rules about pods check them).

Sources: KubeRay 1.7.0, ray-operator/controllers/ray/utils/{validation,resources,util}.go and common/pod.go; Ray,
python/ray/autoscaler/_private/kuberay/autoscaling_config.py.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.spec.kubesyntax import explain_value
from gpukube.spec.source.positions import PositionedDict
from gpukube.spec.wording import quoted, shown
from gpukube.workload.lint.edits import Insert, Rewrite
from gpukube.workload.lint.images import parse_image
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import RayCluster, amount, mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.source.positions import Data
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.lint.views import RayGroup
    from gpukube.workload.lint.world import World
    from gpukube.workload.manifests import Manifest

CLUSTERS: Final[Rules[RayCluster]] = Rules()
OBJECTS: Final[Rules[Manifest]] = Rules()

_UTILS: Final = "https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/controllers/ray/utils"
_TYPES: Final = "https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/apis/ray/v1"
_POD: Final = "https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/controllers/ray/common/pod.go"
_AUTOSCALER: Final = (
    "https://github.com/ray-project/ray/blob/master/python/ray/autoscaler/_private/kuberay/autoscaling_config.py"
)
_OPERATOR_GPU: Final = re.compile(r".*gpu|.*nvidia\.com/mig-\d+g\.\d+gb")
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_POD_NAME_PART: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?|")
"""Part of a DNS subdomain; KubeRay converts it to lower case (PodName in ray-operator's utils/util.go)."""
_LONGEST: Final = {"RayCluster": 53, "RayJob": 47, "RayService": 47, "RayCronJob": 36}
_EXCLUSIVE: Final = ("num-cpus", "num-gpus", "memory", "resources")
_LOGICAL: Final = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}


@CLUSTERS.rule(
    "ray-value-type",
    why="the values are strings in the resource's schema: the API server rejects numbers and booleans",
    fix="put it in quotes",
    source=f"{_TYPES}/raycluster_types.go",
)
def _value_type(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        for field in ("rayStartParams", "resources", "labels"):
            for name, value in mapping(group.data.get(field)).items():
                if value is None or isinstance(value, str | PositionedDict | list):
                    continue
                spelling = cluster.manifest.positions.origin.spellings.get(
                    cluster.manifest.positions.mark_at((*group.path, field, name))
                )
                written = json.dumps(spelling if spelling is not None else text(value) or _plain(value))
                where = group.at(field, name)
                yield Hit(
                    where=where,
                    seen=f"{field} {name} of {group} is {shown(value)}, not a string",
                    fix=f"write {written}",
                    edits=(Rewrite(where, written),),
                )


def _plain(value: Data) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@CLUSTERS.rule(
    "ray-resources-twice",
    why="KubeRay rejects the cluster: resource fields should not be set in both rayStartParams and Resources",
    fix="keep one of them",
    source=f"{_UTILS}/validation.go",
)
def _resources_twice(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        both = [name for name in _EXCLUSIVE if group.parameters.get(name)]
        if both and group.resources:
            yield Hit(
                where=group.key_at("resources"),
                seen=f"{group} has resources, and {both[0]} in rayStartParams",
            )


@CLUSTERS.rule(
    "ray-autoscaler-blind",
    why="Ray's autoscaler counts only resources that end in gpu: it never starts this group for a task with num_gpus",
    fix='write num-gpus: "1" in rayStartParams',
    source=_AUTOSCALER,
)
def _autoscaler_blind(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.workers if cluster.autoscaled else ():
        if group.gpus and not _is_counted(group) and not any(name.endswith("gpu") for name in group.gpus):
            yield _without_count(group, "Ray's autoscaler counts no GPU")


@CLUSTERS.rule(
    "ray-operator-blind",
    severity="warning",
    why="KubeRay passes --num-gpus to Ray only for names that end in gpu and for plain MIG profiles",
    fix='write num-gpus: "1" in rayStartParams',
    source=f"{_UTILS}/resources.go",
)
def _operator_blind(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        if cluster.autoscaled and not group.is_head:
            continue  # ray-autoscaler-blind
        if group.gpus and not _is_counted(group) and not any(map(_OPERATOR_GPU.fullmatch, group.gpus)):
            yield _without_count(group, "KubeRay counts no GPU")


def _without_count(group: RayGroup, seen: str) -> Hit:
    name, count = next(iter(group.gpus.items()))
    container = group.container
    entry = f'num-gpus: "{count}"'
    return Hit(
        where=group.cluster.manifest.positions.key_at(
            (*group.path, "template", "spec", *(container.path if container else ()), "resources", "limits", name)
        ),
        seen=f"{seen} in {group}, whose Ray container requests {name}",
        fix=f"write {entry} in rayStartParams of the group",
        edits=_add_parameter(group, entry),
    )


def _add_parameter(group: RayGroup, entry: str) -> tuple[Edit, ...]:
    if group.resources:
        return ()
    if group.parameters:
        return (Insert(group.at("rayStartParams"), entry),)
    if group.data.get("rayStartParams", "none") == {}:
        return (Rewrite(group.at("rayStartParams"), f"{{{entry}}}"),)
    return () if "rayStartParams" in group.data else (Insert(group.at(), f"rayStartParams: {{{entry}}}"),)


def _is_counted(group: RayGroup) -> bool:
    return "num-gpus" in group.parameters or any(_is_gpu_key(name.lower()) for name in group.resources)


def _is_gpu_key(name: str) -> bool:
    return _OPERATOR_GPU.fullmatch(name) is not None


@CLUSTERS.rule(
    "ray-container-order",
    severity="warning",
    why="only the first container runs Ray: Ray does not see the devices of others",
    fix="make the Ray container the first one",
    source=f"{_UTILS}/constant.go",
)
def _container_order(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        for container in group.pod.containers if group.pod else ():
            if not container.is_init and container.order and container.gpus and not group.gpus and group.pod:
                yield Hit(
                    where=group.pod.at(*container.path, "resources"),
                    seen=f"container {container.name} of {group} requests a GPU, but the first container requests none",
                )


@CLUSTERS.rule(
    "ray-gpu-count",
    severity="warning",
    why="Ray runs that many tasks with num_gpus in each pod; those beyond the limit find no device",
    fix="write the container's limit",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html#overriding-ray-gpu-capacity-advanced",
)
def _gpu_count(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        has = sum(group.gpus.values())
        for field, named in (("rayStartParams", group.parameters), ("resources", group.resources)):
            for name, value in named.items():
                count = amount(value) if name == "num-gpus" or _is_gpu_key(name.lower()) else None
                if count is not None and count > has:
                    limit = f"a limit of {has}" if has else "no GPU in its limits"
                    yield Hit(
                        where=group.at(field, name),
                        seen=f"{group} has {name} {shown(value)}, and its Ray container {limit}",
                    )


@CLUSTERS.rule(
    "ray-gpu-names",
    severity="warning",
    why="KubeRay uses the alphabetically first name and omits the others from --num-gpus",
    fix="set num-gpus in rayStartParams to the number that Ray should count",
    source=_POD,
)
def _gpu_names(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        counted = [name for name in group.gpus if _is_gpu_key(name)]
        if len(counted) > 1 and not _is_counted(group) and group.pod and group.container:
            yield Hit(
                where=group.pod.key_at(*group.container.path, "resources", "limits", counted[1]),
                seen=f"the Ray container of {group} requests {' and '.join(counted)}",
            )


@CLUSTERS.rule(
    "ray-resource-key",
    severity="warning",
    why="Ray's autoscaler knows only one spelling of these names and treats others as custom resources",
    fix="write GPU or CPU",
    source=_AUTOSCALER,
)
def _resource_key(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        for name in group.resources:
            short = name.rpartition("/")[2].lower()
            right = _LOGICAL.get("gpu" if _is_gpu_key(name.lower()) else short, name)
            if name != right and ("/" not in name or right == "GPU"):
                where = group.key_at("resources", name)
                yield Hit(
                    where=where,
                    seen=f"resources of {group} has the key {quoted(name)}",
                    fix=f"write {right}",
                    edits=(Rewrite(where, right),) if right not in group.resources else (),
                )


@CLUSTERS.rule(
    "ray-no-cpu",
    why="Ray's autoscaler exits with an error, and no group of the cluster scales",
    fix="write a request or limit for cpu, or num-cpus in rayStartParams",
    source=_AUTOSCALER,
)
def _no_cpu(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups if cluster.autoscaled else ():
        container = group.container
        counted = "num-cpus" in group.parameters or "CPU" in group.resources
        if container and group.pod and not counted and not container.has("cpu") and not container.is_misplaced:
            yield Hit(
                where=group.pod.key_at(*container.path, "resources"),
                seen=f"the Ray container of {group} has no cpu, but enableInTreeAutoscaling is true",
            )


@CLUSTERS.rule(
    "ray-endless",
    severity="warning",
    why="the default is 2147483647: a runaway program starts nodes until the pool or the quota is full",
    fix="write maxReplicas: the number that the pool has room for",
    source=f"{_TYPES}/raycluster_types.go",
)
def _endless(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.workers if cluster.autoscaled else ():
        if group.gpus and group.data.get("maxReplicas") is None:
            yield Hit(where=group.at(), seen=f"{group} requests GPUs but has no maxReplicas")


@CLUSTERS.rule(
    "ray-bounds",
    why="KubeRay rejects the cluster",
    fix="write 0 <= minReplicas <= maxReplicas",
    source=f"{_UTILS}/validation.go",
)
def _bounds(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.workers:
        least, most, count = (group.count(field) for field in ("minReplicas", "maxReplicas", "replicas"))
        for field in ("minReplicas", "maxReplicas"):
            if (group.count(field) or 0) < 0:
                yield Hit(where=group.at(field), seen=f"{group} has {field} {group.count(field)}")
        if least is not None and most is not None and least > most:
            yield Hit(
                where=group.at("minReplicas"), seen=f"{group} has minReplicas {least}, more than maxReplicas {most}"
            )
        elif count is not None and not (least or 0) <= count <= (count if most is None else most):
            yield Hit(
                where=group.at("replicas"),
                seen=f"{group} has replicas {count}, outside minReplicas {least or 0} and maxReplicas {most}",
                why="KubeRay silently uses the nearest limit",
                fix="write a number between the limits",
                severity="warning",
            )


@CLUSTERS.rule(
    "ray-never-starts",
    severity="warning",
    why="without Ray's autoscaler the group stays at its replicas: it has no pods",
    fix="write enableInTreeAutoscaling: true in the spec of the cluster, or replicas of 1 or more",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/configuring-autoscaling.html",
)
def _never_starts(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.workers if not cluster.autoscaled else ():
        none = not group.count("replicas") and not group.count("minReplicas")
        if group.gpus and none and group.data.get("suspend") is not True:
            yield Hit(where=group.at("replicas"), seen=f"{group} requests GPUs but has no replicas")


@CLUSTERS.rule(
    "ray-version-differs",
    severity="warning",
    why="KubeRay configures the cluster by rayVersion; pods with another version do not join, or lack features",
    fix="write the version of the image as rayVersion",
    source=f"{_TYPES}/raycluster_types.go",
)
def _version_differs(cluster: RayCluster, _: World) -> Iterator[Hit]:
    declared = text(cluster.spec.get("rayVersion"))
    for group in cluster.groups:
        image = parse_image(group.container.image) if group.container else None
        if image and image.is_ray and image.version and declared and image.version != declared and group.pod:
            path = group.container.path if group.container else ()
            yield Hit(
                where=group.pod.at(*path, "image"),
                seen=f"{group} has Ray {image.version} in its image, but rayVersion is {declared}",
            )


@OBJECTS.rule(
    "ray-version-old",
    severity="warning",
    why="v1alpha1 is deprecated, and KubeRay 1.9 will not serve it",
    fix="write apiVersion: ray.io/v1",
    source="https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/config/crd/bases/ray.io_rayclusters.yaml",
)
def _version_old(manifest: Manifest, _: World) -> Iterator[Hit]:
    if manifest.api_version == "ray.io/v1alpha1":
        where = manifest.positions.at("apiVersion")
        yield Hit(where=where, seen=f"{manifest} has apiVersion ray.io/v1alpha1", edits=(Rewrite(where, "ray.io/v1"),))


@CLUSTERS.rule(
    "ray-job-keeps-gpus",
    severity="warning",
    why="the cluster of a RayJob remains after the job: without autoscaling all its workers keep their GPUs",
    fix="write shutdownAfterJobFinishes: true",
    source=f"{_TYPES}/rayjob_types.go",
)
def _keeps_gpus(cluster: RayCluster, _: World) -> Iterator[Hit]:
    spec = mapping(cluster.manifest.positions.within(cluster.path[:-1]).root)
    if cluster.manifest.kind not in ("RayJob", "RayCronJob") or not any(group.gpus for group in cluster.groups):
        return
    if spec.get("shutdownAfterJobFinishes") is True or spec.get("deletionStrategy") is not None:
        return
    idle = cluster.autoscaled and not any(group.count("minReplicas") for group in cluster.workers if group.gpus)
    if idle and not any(group.gpus for group in cluster.groups if group.is_head):
        return  # the autoscaler removes the workers
    yield Hit(
        where=cluster.manifest.positions.at((*cluster.path[:-1], "shutdownAfterJobFinishes")),
        seen=f"{cluster.manifest} requests GPUs but has no shutdownAfterJobFinishes",
    )


@CLUSTERS.rule(
    "ray-autoscaler-version",
    why="KubeRay rejects it unless version 2 of the autoscaler is set, even if Ray would use it by default",
    fix="write autoscalerOptions: {version: v2} in the spec of the cluster",
    source=f"{_UTILS}/validation.go",
)
def _autoscaler_version(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.workers if not cluster.is_v2 else ():
        for field in ("idleTimeoutSeconds", "priority"):
            value = group.count(field)
            if value is not None and (value or field == "idleTimeoutSeconds"):
                yield Hit(where=group.at(field), seen=f"{group} has {field} {value}")


@CLUSTERS.rule(
    "ray-name",
    why="names become parts of the names and labels of pods and services; KubeRay rejects the object",
    fix="write a shorter name of lower-case letters, digits and -, beginning with a letter",
    source=f"{_UTILS}/validation.go",
)
def _names(cluster: RayCluster, _: World) -> Iterator[Hit]:
    manifest = cluster.manifest
    most = _LONGEST.get(manifest.kind, 63)
    name = manifest.name
    if name and (len(name) > most or not _LABEL.fullmatch(name)):
        seen = f"{len(name)} characters, and {most} are allowed" if len(name) > most else "not a DNS label"
        yield Hit(where=manifest.positions.at("metadata.name"), seen=f"{manifest.kind} name {quoted(name)} is {seen}")
    earlier: set[str] = set()
    for group in cluster.workers:
        if group.name in earlier:
            yield Hit(
                where=group.at("groupName"),
                seen=f"two groups have the name {quoted(group.name)}",
                why="KubeRay mistakes the pods of one for those of the other",
                fix="use a different name for each group",
            )
        elif explain_value(group.name):
            yield Hit(where=group.at("groupName"), seen=f"groupName {quoted(group.name)} cannot be a label")
        elif not _POD_NAME_PART.fullmatch(group.name.lower()):
            yield Hit(
                where=group.at("groupName"),
                seen=f"groupName {quoted(group.name)} cannot be part of a pod name",
                why="KubeRay names the pods CLUSTER-GROUP-worker-SUFFIX: the API server rejects them, and none starts",
                fix=f"write {re.sub(r'[^a-z0-9-]+', '-', group.name.lower()).strip('-') or 'gpu'}",
            )
        earlier.add(group.name)


@CLUSTERS.rule(
    "ray-head-gpu",
    severity="hint",
    why="the head runs as long as the cluster, so its node is never removed",
    fix='leave the GPU to worker groups, and write num-gpus: "0" for the head',
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html",
)
def _head_gpu(cluster: RayCluster, _: World) -> Iterator[Hit]:
    for group in cluster.groups:
        if group.is_head and group.gpus and group.pod and group.container and cluster.workers:
            yield Hit(where=group.pod.key_at(*group.container.path, "resources"), seen="the head requests a GPU")
