"""What a cloud's nodes are like for pods, before there is one: a provider gives one `NodeFacts` as its member `nodes`.

Pure. Lives here: its shape. Must not live here: any cloud, and what pods make of it (gpukube.workload).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Desired, Target


@dataclass(frozen=True, slots=True)
class Room:
    """What a node has for pods of users: its allocatable, less what the cloud's own DaemonSets request.

    Attributes:
        cpu: Millicores.
        memory: Bytes.
        pods: How many more pods it takes.
    """

    cpu: int
    memory: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a cloud's nodes are like for pods.

    Attributes:
        room: What a node of a pool has for pods; None where the catalog does not know the machine's processors or
            memory. An estimate on the safe side: it is never more than a real node has.
        labels: Labels that each node has at its creation, those of the pool included, and that the cloud's autoscaler
            knows while the pool is empty. Zone and host name are not among them: they differ from node to node.
        devices: Extended resources that the autoscaler expects of a node while the pool is empty.
        selector: The labels that choose the nodes of this pool and of no other, safe while the pool is empty.
    """

    room: Callable[[Target], Room | None]
    labels: Callable[[Desired], Mapping[str, str]]
    devices: Callable[[Desired], Mapping[str, int]]
    selector: Callable[[Desired], Mapping[str, str]]
