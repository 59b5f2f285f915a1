"""The end of Capacity Blocks: EKS scales their groups to zero, then EC2 ends what still runs in them.

In scope: groups with machines in a block, on the sandbox's clock. Out of scope: other reservations, whose machines run
on at their end (docs: AWSEC2 capacity-reservations-using); UltraServers, which are not emulated.

Sources: docs: eks/capacity-blocks-mng (40 minutes before the end), AWSEC2 capacity-blocks-how (30 minutes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from gpukube_sandbox.eks.lifecycle import terminate_instance
from gpukube_sandbox.kube.draining import drain

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup

_SCALED_S: Final = 40 * 60.0
_ENDED_S: Final = 30 * 60.0


@dataclass(slots=True)
class BlockEnds:
    """Follows the blocks of a cluster's groups; implements `Follower`."""

    cluster: EksCluster
    clock: Clock
    watches: ClassVar[tuple[str, ...]] = ("nodes",)

    async def reconcile(self) -> float | None:
        """Empty the groups whose block is about to end; return when the next one is."""
        due = []
        for group in list(self.cluster.groups.values()):
            for end, nodes in self._ends(group).items():
                if self.clock.now() < end - _SCALED_S:
                    due.append(end - _SCALED_S)
                    continue
                group.members["scalingConfig"] = {**group.scaling, "minSize": 0, "desiredSize": 0}
                await drain(self.cluster.kube.api, self.clock, nodes, end - _ENDED_S - self.clock.now())
                for node in nodes:
                    if node in group.nodes:
                        await terminate_instance(self.cluster, group, node)
        return min(due, default=None)

    def _ends(self, group: NodeGroup) -> dict[float, list[str]]:
        """Return when blocks end, with the group's machines in them."""
        found: dict[float, list[str]] = {}
        for node in group.nodes:
            entry = self.cluster.known.reservations.get(group.instances[node].reservation)
            if entry is not None and entry.block and entry.end is not None:
                found.setdefault(entry.end, []).append(node)
        return found
