"""The outcome of looking at a pool's nodes: findings, and what they add up to.

Lives here: the values. Must not live here: how they are found (verify).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Nodes

__all__ = ["Finding", "NodeProof", "PoolProof", "ProofStatus", "Step", "Weight"]

Step = Literal[
    "node",
    "ready",
    "advertiser-label",
    "config-label",
    "config-entry",
    "placement",
    "plugin-pod",
    "features",
    "geometry",
    "count",
    "stale-name",
]
"""What must hold, in this order, before a node shows the devices promised."""
Weight = Literal["note", "waiting", "broken"]
ProofStatus = Literal["proven", "waiting", "broken", "empty"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A step that is missing on a node or in a cluster.

    Attributes:
        where: Node or object.
        step: Which step.
        weight: "note" hinders nothing; "waiting" usually passes by itself; "broken" does not.
        seen: What was seen, one line.
        means: What that usually comes from; "" when it is plain.
        fix: What to run; "" when waiting is all there is to do.
    """

    where: str
    step: Step
    weight: Weight
    seen: str
    means: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class NodeProof:
    """One node: devices promised and devices allocatable, by resource name."""

    node: str
    expected: Mapping[str, int]
    seen: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def proven(self) -> bool:
        """Whether the node shows what was promised and nothing stands against it."""
        return all(finding.weight == "note" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class PoolProof:
    """One pool on one cluster.

    Attributes:
        cluster, pool: Which.
        status: "empty" is a pool that may have no nodes, and has none, in a cluster that is ready for them.
        nodes: Numbers promised.
        nodes_seen: Nodes that carry the pool's marks.
        per_node: Each of them.
        findings: Of the pool as a whole; those of the nodes are in per_node.
        expected: Resource -> devices promised by the fewest and by the most nodes.
        total: Resource -> devices allocatable on all nodes.
    """

    cluster: str
    pool: str
    status: ProofStatus
    nodes: Nodes
    nodes_seen: int
    per_node: tuple[NodeProof, ...]
    findings: tuple[Finding, ...]
    expected: Mapping[str, tuple[int, int]]
    total: Mapping[str, int]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Findings of the pool, then of its nodes."""
        return (*self.findings, *(finding for node in self.per_node for finding in node.findings))

    @property
    def missing_step(self) -> Finding | None:
        """The finding to tell first: the earliest step, what is broken before what may pass."""
        real = [finding for finding in self.all_findings if finding.weight != "note"]
        return min(real, key=lambda item: (item.weight != "broken", _ORDER[item.step], item.where), default=None)


_ORDER: Final[dict[str, int]] = {step: place for place, step in enumerate(get_args(Step))}
