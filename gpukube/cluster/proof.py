"""The outcome of looking at a pool's nodes: findings, and what they add up to.

Lives here: the values. Must not live here: how they are found (verify).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Nodes

__all__ = [
    "NOT_MANAGED",
    "Check",
    "Finding",
    "NodeProof",
    "PoolProof",
    "Probe",
    "ProbeStatus",
    "ProofStatus",
    "Step",
    "Weight",
]

NOT_MANAGED: Final = "not managed: no GPU is advertised until you install a plugin"
"""What plans and reports have of a pool whose device plugin the spec leaves to others, until somebody's shows a GPU."""

Step = Literal[
    "node",
    "ready",
    "advertiser-label",
    "config-label",
    "config-entry",
    "placement",
    "driver",
    "plugin-pod",
    "features",
    "geometry",
    "count",
    "stale-name",
    "probe",
]
"""What must hold, in this order, before a node shows the devices promised."""
Weight = Literal["note", "waiting", "broken"]
ProofStatus = Literal["proven", "waiting", "broken", "empty", "unmanaged"]
ProbeStatus = Literal["passed", "failed", "skipped"]


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
class Check:
    """One thing of a node, as it should be and as it is.

    Attributes:
        what: "label gpukube.io/advertiser", "taint sku=gpu:NoSchedule", "condition Ready", "plugin pod".
        expected, seen: Words; "" for absent.
        holds: Whether they agree.
    """

    what: str
    expected: str
    seen: str
    holds: bool


@dataclass(frozen=True, slots=True)
class NodeProof:
    """One node: devices promised and devices allocatable, by resource name; and what else was looked at.

    Attributes:
        checks: What was compared beside the devices; one that does not hold need not hinder anything.
    """

    node: str
    expected: Mapping[str, int]
    seen: Mapping[str, int]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """What a pod with one device of a pool saw.

    Attributes:
        status: "skipped" is no failure: there was nothing to ask without starting a node, or no device free.
        says: One line.
        resource: What it asked for.
        image: What it ran.
        node: Where it ran; "" when it did not.
        output: What `nvidia-smi -L` wrote.
        findings: What is wrong with that.
    """

    status: ProbeStatus
    says: str
    resource: str
    image: str
    node: str = ""
    output: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolProof:
    """One pool on one cluster.

    Attributes:
        cluster, pool: Which.
        status: "empty" is a pool that may have no nodes, and has none, in a cluster that is ready for them; "unmanaged"
            one whose nodes are there and whose device plugin the spec leaves to others, so that no device is due.
        nodes: Numbers promised.
        nodes_seen: Nodes that carry the pool's marks.
        per_node: Each of them.
        findings: Of the pool as a whole; those of the nodes are in per_node.
        expected: Resource -> devices promised by the fewest and by the most nodes.
        total: Resource -> devices allocatable on all nodes.
        probe: What a pod saw; None when none was asked for.
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
    probe: Probe | None = None

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Findings of the pool, then of its nodes, then of the probe."""
        nodes = (finding for node in self.per_node for finding in node.findings)
        return (*self.findings, *nodes, *(self.probe.findings if self.probe else ()))

    @property
    def missing_step(self) -> Finding | None:
        """The finding to tell first: the earliest step, what is broken before what may pass."""
        real = [finding for finding in self.all_findings if finding.weight != "note"]
        return min(real, key=lambda item: (item.weight != "broken", _ORDER[item.step], item.where), default=None)


_ORDER: Final[dict[str, int]] = {step: place for place, step in enumerate(get_args(Step))}
