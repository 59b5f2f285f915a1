"""Rules about what pods of several GPUs use to communicate: the fast network, huge pages, shared memory.

Pure. Out of scope: GPUs themselves (`resources`, `placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.hugepages import HUGE
from gpukube.gpu.sharing import Sharing
from gpukube.workload.lint.placement import pools_text, unsure
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import GPU, NOTHING, Loose, Pod, amount, mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.workload.lint.world import World

CONTAINERS: Final[Rules[Pod | Loose]] = Rules()
"""Rules about containers, and about limits and requests elsewhere."""
PODS: Final[Rules[Pod]] = Rules()

_NETWORKS: Final = ("vpc.amazonaws.com/efa", "rdma/", "networking.gke.io.networks/")
"""Names, or their beginning, of the resources of EFA, InfiniBand, and GKE's networks."""
_SHM: Final = "/dev/shm"  # noqa: S108 - in the container


@CONTAINERS.rule(
    "hugepages-alone",
    why="the API server rejects it: HugePages require cpu or memory",
    fix="write cpu and memory too",
    source="https://github.com/kubernetes/kubernetes/blob/v1.34.0/pkg/apis/core/v1/validation/validation.go",
)
def _alone(pod: Pod | Loose, _: World) -> Iterator[Hit]:
    for container in pod.containers:
        for part, named in (("limits", container.limits), ("requests", container.requests)):
            huge = [name for name in named if name.startswith(HUGE)]
            if huge and not container.has("cpu") and not container.has("memory"):
                yield Hit(
                    where=pod.key_at(*container.path, container.field, part, huge[0]),
                    seen=f"{container} requests {huge[0]}, and neither cpu nor memory",
                )
                break


@PODS.rule(
    "network-not-offered",
    why="no node has the resource: the pod stays Pending",
    fix="write network: {highSpeed: true} in the pool, or request none",
    source="https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html",
)
def _not_offered(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not places.every or not pod.gpus:
        return
    scope = places.chosen or places.every
    for name in (*pod.request.devices, *pod.request.others):
        huge = name.startswith(HUGE)
        pages = f"write hugepages: {{{name.removeprefix(HUGE)}: NUMBER}} in the pool, or request none" if huge else ""
        if (huge or name.startswith(_NETWORKS)) and all(name in place.lacking for place in scope):
            yield Hit(
                where=pod.place_of(name),
                seen=f"pool {pools_text(scope[:1])} does not have {name}"
                if places.bound
                else f"no pool of the spec has {name}",
                fix=pages,
                severity=unsure(places),
            )


@PODS.rule(
    "network-unrequested",
    severity="hint",
    why="pods reach the network between GPUs only through its devices: without one, the job communicates over TCP",
    fix="request the devices; gpukube workload render shows how many",
    source="https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html",
)
def _unrequested(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or not places.fitting or not pod.gpus or not _communicates(pod):
        return
    if any(count < place.offer.gpus.get(name, 0) for place in places.fitting for name, count in pod.gpus.items()):
        return  # pods with a part of a node seldom communicate
    fabrics = [place.offer.desired.fabric for place in places.fitting]
    for fabric in fabrics[:1]:
        if fabric and all(fabrics) and not any(other and other.covers(name) for other in fabrics for name in pod.names):
            yield Hit(
                where=pod.place_of(next(iter(pod.gpus))),
                seen=f"the nodes of {pools_text(places.fitting)} have {fabric.title}, and the pods request no "
                f"{fabric.request or fabric.resource}",
            )


def _communicates(pod: Pod) -> bool:
    """Return whether a pod probably communicates with others like it, and not over the node's own network."""
    together = pod.template.role == "job" and pod.template.replicas.most > 1
    return together and pod.spec.get("hostNetwork") is not True and not sequence(pod.spec.get("resourceClaims"))


@PODS.rule(
    "shm-missing",
    severity="hint",
    why="processes of a container exchange data through it (NCCL, PyTorch), and end with an error if it is full",
    fix="mount an emptyDir with medium: Memory at /dev/shm",
    source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html#shared-memory",
)
def _shm(pod: Pod, world: World) -> Iterator[Hit]:
    if pod.spec.get("hostIPC") is True or pod.template.role.startswith("ray"):  # KubeRay mounts one
        return
    places = world.places(pod)
    if places and any(place.offer.desired.target.sharing != Sharing() for place in places.offering):
        return  # they may be shares of one GPU
    for container in pod.apps:
        gpus = amount(container.limits.get(GPU)) or NOTHING
        mounts = (mapping(mount).get("mountPath") for mount in sequence(container.data.get("volumeMounts")))
        if gpus > 1 and _SHM not in mounts:
            yield Hit(
                where=pod.key_at(*container.path, "resources", "limits", GPU),
                seen=f"container {container.name} has {gpus} GPUs and the default /dev/shm of 64 MiB",
            )
