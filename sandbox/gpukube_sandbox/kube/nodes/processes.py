"""The environment of a program in a container.

In scope: the data it can access. Out of scope: what a program does (`programs`, `drivers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.containers import mounted_config_map
from gpukube_sandbox.kube.store.objects import namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.nodes.podruns import ContainerRun, PodRun
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

    NodeFaults = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Process:
    """A container's process on a machine.

    Attributes:
        api: The cluster's API.
        machine: The machine it runs on.
        node: The current node object.
        pod: The pod object.
        run: The kubelet's state of the pod.
        container: The kubelet's state of the container.
        log: Lines written so far.
        now: Sandbox time.
        faults: Takes a fault's action and a pool, and returns whether it strikes a node of the pool now.
    """

    api: ObjectApi
    machine: Machine
    node: JsonObject
    pod: JsonObject
    run: PodRun
    container: ContainerRun
    log: list[str]
    now: float
    faults: NodeFaults

    def is_struck(self, action: str) -> bool:
        """Return whether a fault strikes this start of the program."""
        return self.faults(action, self.machine.shape.pool)

    async def file(self, path: str) -> dict[str, str]:
        """Return the data of the ConfigMap mounted at a path; empty if there is none."""
        found = mounted_config_map(self.pod, self.container.body, path)
        if found is None:
            return {}
        name, key = found
        data: dict[str, str] = (await self.api.get("configmaps", name, namespace_of(self.pod)) or {}).get("data") or {}
        return {key: data[key]} if key and key in data else {} if key else data
