"""The controller of KubeRay's operator, which works while a pod of its Deployment is running.

In scope: which objects it reconciles, in which order. Out of scope: how (`clusters`, `apps`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.kuberay.apps import RayJobs, RayServices
from gpukube_sandbox.kube.kuberay.clusters import RayClusters
from gpukube_sandbox.kube.nodes.containers import arguments_of
from gpukube_sandbox.kube.store.objects import meta, namespace_of, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

_NAMESPACES = "--watch-namespace"
_OTHERS = "kueue.x-k8s.io/multikueue"


class KubeRay:
    """The operator of a cluster; does nothing unless it is installed.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        machines: Node name -> machine.
    """

    watches = ("rayclusters", "rayjobs", "rayservices", "pods", "jobs")

    def __init__(self, api: ObjectApi, clock: Clock, machines: Mapping[str, Machine]) -> None:
        self._api = api
        self._machines = machines
        self._clusters = RayClusters(api, clock)
        self._jobs = RayJobs(api, clock)
        self._services = RayServices(api, clock)

    async def reconcile(self) -> float | None:
        """Advance every Ray object by one step; return the time of the next step that no change triggers."""
        services, jobs, clusters = [await self._mine(plural) for plural in ("rayservices", "rayjobs", "rayclusters")]
        if not (services or jobs or clusters):
            return None
        pods = await self._api.list("pods")
        watched = self._watched(pods)
        if watched is None:
            return None

        def seen(objects: list[JsonObject]) -> list[JsonObject]:
            return [item for item in objects if not watched or namespace_of(item) in watched]

        due = [await self._services.reconcile(service, clusters, pods) for service in seen(services)]
        due += [await self._jobs.reconcile(job, clusters) for job in seen(jobs)]
        for cluster in seen(clusters):
            await self._clusters.reconcile(cluster, pods)
        return min((moment for moment in due if moment is not None), default=None)

    async def _mine(self, plural: str) -> list[JsonObject]:
        found = await self._api.list(plural)
        return [
            item for item in found if spec(item).get("managedBy") != _OTHERS and not meta(item).get("deletionTimestamp")
        ]

    def _watched(self, pods: list[JsonObject]) -> frozenset[str] | None:
        """Return the watched namespaces, empty for all; None if none of its pods is running."""
        running = {
            run.uid: item.body
            for machine in self._machines.values()
            if machine.up
            for run in machine.pods.values()
            for item in run.mains
            if item.role == "kuberay-operator" and item.state == "running"
        }
        body = next((running[meta(pod)["uid"]] for pod in pods if meta(pod)["uid"] in running), None)
        if body is None:
            return None
        arguments = arguments_of(body)
        named = arguments[arguments.index(_NAMESPACES) + 1] if _NAMESPACES in arguments[:-1] else ""
        return frozenset(filter(None, named.split(",")))
