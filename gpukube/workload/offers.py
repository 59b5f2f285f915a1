"""What the pools of a spec offer to pods: devices, room, labels and taints of their nodes, real and expected.

Pure. Lives here: a pool as the scheduler and the autoscaler see it. Must not live here: pods, and what one cloud adds
to its nodes (its provider's `nodes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Taint


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """A node without pods of users, as the scheduler counts.

    Attributes:
        devices: Extended resources -> how many.
        cpu: Millicores for pods; None when unknown.
        memory: Bytes for pods; None when unknown.
        pods: Most pods; None when unknown.
        labels: Without zone and host name.
        taints: All of them.
    """

    devices: Mapping[str, int]
    cpu: int | None
    memory: int | None
    pods: int | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOffer:
    """What one pool on one cluster offers to pods.

    Attributes:
        desired: The pool; its target has names, machine, sharing, node range and zones.
        real: A node that is up and whose devices are proven; its labels are those of the creation and the ones that
            GPU feature discovery adds where it runs.
        expected: A node as the autoscaler imagines it while the pool is empty.
        tolerates_resources: Whether the cluster's admission adds a toleration for each extended resource that a pod
            asks for.
        selector: Labels that choose this pool's nodes, safe while it is empty.
        price: US dollars per node and hour, spot price for a spot pool; None when unknown.
    """

    desired: Desired
    real: NodeShape
    expected: NodeShape
    tolerates_resources: bool
    selector: Mapping[str, str]
    price: float | None

    @property
    def name(self) -> str:
        """Cluster key and pool, "train-aks/a100mig"."""
        return str(self.desired.target.where)
