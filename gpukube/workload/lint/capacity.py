"""Rules about capacity: requests beyond a node, more pods than a pool can hold, autoscalers that cannot help.

Pure. Each object is checked on its own; `gpukube workload fit` considers what runs next to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.workload.lint.placement import pools_text, unsure
from gpukube.workload.lint.places import per_node, room_for
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import Pod, RayCluster, mapping
from gpukube.workload.quantity import cpu_text, memory_text
from gpukube.workload.requests import is_other
from gpukube.workload.templates import ENDLESS, read_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.errors import Where
    from gpukube.workload.lint.places import Place
    from gpukube.workload.lint.world import World

PODS: Final[Rules[Pod]] = Rules()
CLUSTERS: Final[Rules[RayCluster]] = Rules()

_RESOURCES: Final = "https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/"
_DEPLOYMENT: Final = "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#max-unavailable"
_KUBERAY: Final = "https://github.com/ray-project/kuberay/blob/v1.7.0/ray-operator/apis/ray/v1"
_INSTANCE_TYPE: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_WITHOUT_DRIVER: Final = ("p2.",)
"""Machine families on EKS whose driver support ended with the images for Kubernetes 1.24."""


@PODS.rule(
    "gpu-too-large",
    why="one node must provide all that a pod requests: it stays Pending",
    fix="request less, or use larger machines",
    source=f"{_RESOURCES}#how-pods-with-resource-requests-are-scheduled",
)
def _too_large(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not pod.gpus or not places.open or places.fitting:
        return
    place = max(places.open, key=lambda one: -len(one.short))
    for name, has in place.short.items():
        write = {"cpu": cpu_text, "memory": memory_text}.get(name, memory_text if is_other(name) else str)
        amounts = {"cpu": pod.request.cpu, "memory": pod.request.memory, **pod.request.devices, **pod.request.others}
        needed = amounts.get(name, 0)
        yield Hit(
            where=pod.place_of(name),
            seen=f"the pod requests {write(needed)} {name}, "
            f"{'' if places.bound else 'more than any pool of the spec has: '}"
            f"a node of {place.offer.name} has {write(has)}",
            severity=unsure(places),
        )


@PODS.rule(
    "replicas-beyond-pools",
    why="the pools of the spec have no room for more: the rest stays Pending",
    fix="raise the maximum of the pool, or run fewer replicas",
    source="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md",
)
def _beyond(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not pod.gpus or not places.fitting:
        return
    room = room_for(pod, places.fitting)
    least, most = pod.template.replicas
    where = _replicas_place(pod)
    if least > room:
        yield Hit(
            where=where,
            seen=f"{least} pods, and {pools_text(places.fitting)} has room for {room}",
            severity=unsure(places),
        )
    elif room < most < ENDLESS:
        yield Hit(
            where=where,
            seen=f"up to {most} pods, and {pools_text(places.fitting)} has room for {room}",
            severity="warning",
        )


def _replicas_place(pod: Pod) -> Where:
    """Return the position of the pod count."""
    positions, above = pod.manifest.positions, pod.template.path[:-1]
    for field in ("maxReplicas", "replicas", "parallelism"):
        if positions.has((*above, field)):
            return positions.at((*above, field))
    return pod.at()


@PODS.rule(
    "from-zero-blind",
    why="while the pool is empty, the autoscaler does not know that its nodes have the resource: it starts none",
    fix="keep one node: write min: 1 in the pool",
    source="https://github.com/kubernetes/autoscaler/issues/8095",
)
def _blind(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not pod.gpus or not places.fitting:
        return
    for name, count in pod.request.devices.items():
        if all(place.from_zero and place.offer.expected.devices.get(name, 0) < count for place in places.fitting):
            has = places.fitting[0].offer.expected.devices.get(name, 0)
            yield Hit(
                where=pod.place_of(name),
                seen=f"the autoscaler of {pools_text(places.fitting)} expects {has} {name} of an empty pool's node, "
                f"and the pod requests {count}",
                severity=unsure(places),
            )


@PODS.rule(
    "rollout-stuck",
    severity="warning",
    why="the new pod waits for a GPU that the old pod keeps until the new one is ready",
    fix="write strategy: {type: Recreate}, or maxSurge: 0 and maxUnavailable: 1",
    source=_DEPLOYMENT,
)
def _stuck(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if pod.manifest.kind != "Deployment" or not pod.gpus or not places or not places.fitting:
        return
    count, room = pod.template.replicas.least, room_for(pod, places.fitting)
    if pod.template.surge and count <= room < count + pod.template.surge and not _may_lose(pod, count):
        yield Hit(
            where=pod.manifest.positions.at(("spec", "strategy")),
            seen=f"a rollout needs {count + pod.template.surge} pods, and {pools_text(places.fitting)} has room for "
            f"{room}",
        )


def _may_lose(pod: Pod, count: int) -> bool:
    """Return whether a rollout may stop an old pod before a new one is ready; default 25 %, rounded down."""
    strategy = mapping(mapping(pod.manifest.root.get("spec")).get("strategy"))
    written = mapping(strategy.get("rollingUpdate")).get("maxUnavailable", "25%")
    if (percent := read_percent(written)) is not None:
        return count * percent // 100 > 0
    return type(written) is int and written > 0


@PODS.rule(
    "machine-without-driver",
    severity="warning",
    why="EKS images have had no driver for the K80 since Kubernetes 1.25: the node has no working GPU",
    fix="use a newer family, such as g4dn",
    source="https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions-extended.html",
)
def _without_driver(pod: Pod, _: World) -> Iterator[Hit]:
    for key, value, path in pod.required_labels:
        if key in _INSTANCE_TYPE and value.startswith(_WITHOUT_DRIVER):
            yield Hit(where=pod.at(*path), seen=f"the pod selects machines of type {value}")


@PODS.rule(
    "gpu-stranded",
    severity="hint",
    why="the rest of a node is too small for another such pod",
    fix="request a number that divides the GPUs of a node",
    source=_RESOURCES,
)
def _stranded(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not places.fitting or len(pod.gpus) != 1 or pod.template.replicas.most <= 1:
        return
    ((name, count),) = pod.gpus.items()
    left = [(place, *_left(pod, place, name)) for place in places.fitting]
    if all(unused for _, _, unused in left):
        place, fits, unused = left[0]
        has = place.offer.real.devices[name]
        bound = "" if has // count == fits else ": cpu or memory is used up first"
        yield Hit(
            where=pod.place_of(name),
            seen=f"a node of {place.offer.name} fits {fits} of these pods, and {unused} of its {has} {name} stay "
            f"unused{bound}",
            fix="" if not bound else "request less cpu and memory",
        )


def _left(pod: Pod, place: Place, name: str) -> tuple[int, int]:
    """Return how many pods fit a node, and how many devices are then left.

    Returns no devices if the pod limit ends it: no request changes that, and the network's limit is seldom known.
    """
    fits = min(per_node(pod, place), pod.template.replicas.most)
    full = fits == per_node(pod, place) != place.offer.real.pods
    return fits, place.offer.real.devices[name] - fits * pod.gpus[name] if full else 0


@PODS.rule(
    "job-without-deadline",
    severity="hint",
    why="a job that hangs keeps its GPUs until someone stops it",
    fix="write activeDeadlineSeconds in the Job's spec",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-termination-and-cleanup",
)
def _without_deadline(pod: Pod, _: World) -> Iterator[Hit]:
    if pod.template.role != "job" or not pod.gpus:
        return
    above = pod.template.path[:-1]
    job = mapping(pod.manifest.positions.within(above).root)
    if job.get("activeDeadlineSeconds") is None and pod.spec.get("activeDeadlineSeconds") is None:
        yield Hit(where=pod.manifest.positions.at(above), seen=f"{pod} requests GPUs and has no deadline")


@CLUSTERS.rule(
    "ray-service-doubles",
    severity="warning",
    why="an upgrade starts a second cluster next to the first: its pods stay Pending, and the upgrade never ends",
    fix="write upgradeStrategy: {type: None}, or raise the maximum of the pool",
    source=f"{_KUBERAY}/rayservice_types.go",
)
def _doubles(cluster: RayCluster, world: World) -> Iterator[Hit]:
    for group in cluster.groups:
        places = world.places(group.pod) if group.pod else None
        if group.pod is None or not places or not group.gpus or not places.fitting or not group.pod.template.surge:
            continue
        count, room = group.pod.template.replicas.least, room_for(group.pod, places.fitting)
        if count <= room < 2 * count:
            yield Hit(
                where=cluster.manifest.positions.at(("spec", "upgradeStrategy", "type")),
                seen=f"an upgrade needs {2 * count} pods of {group}, and {pools_text(places.fitting)} has room for "
                f"{room}",
            )


@CLUSTERS.rule(
    "ray-pool-fixed",
    severity="warning",
    why="Ray's autoscaler adds pods but no nodes: beyond the size of the pool they stay Pending",
    fix="write nodes.autoscaling in the pool, or limit maxReplicas to its size",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/configuring-autoscaling.html",
)
def _pool_fixed(cluster: RayCluster, world: World) -> Iterator[Hit]:
    for group in cluster.workers if cluster.autoscaled else ():
        places = world.places(group.pod) if group.pod else None
        if group.pod is None or not places or not group.gpus or not places.fitting:
            continue
        fixed = not any(place.offer.desired.target.nodes.autoscaled for place in places.fitting)
        room = room_for(group.pod, places.fitting)
        if fixed and group.pod.template.replicas.most > room:
            yield Hit(
                where=group.at("maxReplicas"),
                seen=f"{group} scales beyond {room} pods, and {pools_text(places.fitting)} has a fixed size",
            )
