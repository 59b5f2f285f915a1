"""Saves and restores worlds, so that a slow setup runs only once.

In scope: copying and restoring the state of a world. Out of scope: which worlds are saved.

A world is saved only when idle: no operation, no booting machine, no active fault. Its time stops while it is saved.
Controllers and kubelets restart and resume from the objects.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.world import SavedWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.world import World

_SHARED = ("clock", "plan", "lag", "faults", "stock")
"""Fields of a service that belong to the sandbox, not to its content."""


def save_world(world: World) -> SavedWorld | None:
    """Return a copy of a world; None while an operation is running."""
    if world.faults.faults or any(kube.is_busy for kube in _kubes(world)) or not _drop_finished_tasks(world):
        return None
    services = copy.deepcopy(_state(world), _memo(world))
    requests, origin = list(world.log.requests), list(world.origin)
    return SavedWorld(world.clock.now(), services, world.stock.save(), requests, origin)


async def load_world(world: World, saved: SavedWorld) -> None:
    """Restore a saved world; existing tokens of clusters with the same name stay valid."""
    tokens = {key: cluster.token for service in (world.aks, world.eks) for key, cluster in service.clusters.items()}
    await world.reset()
    world.clock.set_now(saved.now)
    for name, found in copy.deepcopy(saved.services, _memo(world)).items():
        service = _services(world)[name]
        for key, value in found.items():
            setattr(service, key, value)
    world.stock.load(saved.stock)
    world.log.requests[:], world.log.count = saved.requests, len(saved.requests)
    world.origin[:] = saved.origin
    for service in _services(world).values():
        for key, cluster in service.clusters.items():  # type: ignore[attr-defined]  # all three have clusters
            if key in tokens:
                cluster.token = cluster.kube.token = tokens[key]
            await cluster.kube.start()
            world.kube_apps[key] = make_app(cluster.kube, world.permits)


def _services(world: World) -> dict[str, object]:
    services: dict[str, object] = {"aks": world.aks, "eks": world.eks}
    if world.gke.is_loaded:
        services["gke"] = world.gke.service()
    return services


def _state(world: World) -> dict[str, dict[str, object]]:
    return {
        name: {field.name: getattr(service, field.name) for field in fields(service) if field.name not in _SHARED}  # type: ignore[arg-type]  # all are dataclasses
        for name, service in _services(world).items()
    }


def _memo(world: World) -> dict[int, object]:
    """Return the memo of objects that a copy shares with the original."""
    return {id(shared): shared for shared in (world.clock, world.faults, world.stock)}


def _kubes(world: World) -> Iterator[KubeCluster]:
    for clusters in (world.aks.clusters, world.eks.clusters, world.gke.clusters):
        yield from (cluster.kube for cluster in clusters.values())


def _drop_finished_tasks(world: World) -> bool:
    """Drop finished tasks, which cannot be copied; return whether no task is left."""
    holders: list[tuple[object, str]] = [(operation, "task") for operation in world.aks.operations.values()]
    if world.gke.is_loaded:
        holders += [(operation, "task") for operation in world.gke.service().operations.values()]
    groups = [group for cluster in world.eks.clusters.values() for group in cluster.groups.values()]
    holders += [(group, name) for group in groups for name in ("task", "growth")]
    for holder, name in holders:
        task = getattr(holder, name)
        if task is not None and task.done():
            setattr(holder, name, None)
    return not any(getattr(holder, name) for holder, name in holders)
