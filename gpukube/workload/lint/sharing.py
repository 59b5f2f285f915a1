"""Rules about GPUs that several containers share: replicas, MIG instances, isolation.

Pure. Out of scope: names of resources (`placement`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.workload.lint.placement import pools_text, unsure
from gpukube.workload.lint.rule import Hit, Rules
from gpukube.workload.lint.views import GPU, MIG, SHARED, Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.workload.lint.places import Place
    from gpukube.workload.lint.world import World

PODS: Final[Rules[Pod]] = Rules()
WORLDS: Final[Rules[World]] = Rules()

_SLICING: Final = "https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/README.md#with-cuda-time-slicing"


@PODS.rule(
    "shared-request-refused",
    why="the device plugin rejects a container that requests several shares: the pod fails on the node and stays there",
    fix="request 1",
    source="https://github.com/NVIDIA/k8s-device-plugin/blob/v0.20.0/internal/rm/rm.go",
)
def _refused(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if places and places.open and all(place.offer.single for place in places.open):
        for container in pod.containers:
            for name, count in container.gpus.items():
                if count > 1:
                    yield Hit(
                        where=pod.place_of(name),
                        seen=f"container {container.name} requests {count} {name}, and {pools_text(places.open)} "
                        "allows one share per container",
                        severity=unsure(places),
                    )


@PODS.rule(
    "shared-request-many",
    severity="warning",
    why="two shares may be on one GPU, and provide no more of its time or memory",
    fix="request 1",
    source=_SLICING,
)
def _many(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    at = places.open if places else ()
    known = bool(at) and all(_is_sliced(place) and not place.offer.single for place in at)
    for container in pod.containers:
        for name, count in container.gpus.items():
            if count > 1 and (known or (not at and name.endswith(SHARED))):
                shared = f"which {pools_text(at)} shares" if known else "which is shared"
                yield Hit(
                    where=pod.place_of(name),
                    seen=f"container {container.name} requests {count} {name}, {shared}",
                )


def _is_sliced(place: Place) -> bool:
    return place.offer.desired.target.sharing.slicing is not None


@WORLDS.rule(
    "shared-namespaces",
    severity="warning",
    why="pods that share a GPU by time-slicing or MPS are not isolated: one can use all memory, or crash the others",
    fix="use a separate pool per namespace, or a pool with MIG",
    source=_SLICING,
)
def _namespaces(world: World, _: World) -> Iterator[Hit]:
    users: dict[str, dict[str, Pod]] = {}
    for pod in world.pods:
        places = world.places(pod)
        if pod.gpus and pod.manifest.namespace and places and places.open and all(map(_is_sliced, places.open)):
            for place in places.open:
                users.setdefault(place.offer.name, {}).setdefault(pod.manifest.namespace, pod)
    for pool, pods in users.items():
        if len(pods) > 1:
            *_rest, last = pods.values()
            names = ", ".join(sorted(pods))
            yield Hit(
                where=last.manifest.positions.at("metadata.namespace"),
                seen=f"pods of the namespaces {names} share the GPUs of pool {pool}",
            )


@PODS.rule(
    "mig-many-instances",
    severity="warning",
    why="a CUDA process sees one MIG instance: the others stay unused unless the program starts more processes",
    fix="request one instance of a larger profile",
    source="https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
)
def _instances(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    at = places.open if places else ()
    cut = bool(at) and all(map(_is_cut, at))
    for container in pod.containers:
        for name, count in container.gpus.items():
            if count > 1 and (name.startswith(MIG) or (cut and name == GPU)) and not name.endswith(SHARED):
                yield Hit(
                    where=pod.place_of(name), seen=f"container {container.name} requests {count} MIG instances ({name})"
                )


def _is_cut(place: Place) -> bool:
    sharing = place.offer.desired.target.sharing
    return sharing.mig is not None and sharing.mig.strategy == "single" and sharing.slicing is None


@PODS.rule(
    "gpu-means-several",
    severity="warning",
    why="the same name is a whole GPU on one pool and a part of one on another: the scheduler may use either",
    fix="select the pool",
    source="https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-multi",
)
def _means_several(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if not places or places.bound or GPU not in pod.gpus:
        return
    kinds: dict[str, dict[str, Place]] = {}
    for place in places.open:
        kinds.setdefault(place.offer.desired.target.cluster.key, {}).setdefault(_kind(place), place)
    for found in kinds.values():
        if len(found) > 1:
            seen = " or ".join(f"{kind} of {place.offer.name}" for kind, place in found.items())
            yield Hit(
                where=pod.place_of(GPU),
                seen=f"{GPU} may be {seen}",
                fix=f"select the pool with {next(iter(found.values())).selector_text}",
            )
            return


def _kind(place: Place) -> str:
    sharing = place.offer.desired.target.sharing
    part = f"an instance {sharing.mig}" if sharing.mig else "a GPU"
    return f"a share of {part}" if sharing.slicing else part
