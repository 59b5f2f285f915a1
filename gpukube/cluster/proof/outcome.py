"""The outcome of looking at a pool's nodes: findings, and what they add up to.

In scope: the values. Out of scope: how they are found (verify).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Nodes
    from gpukube.errors import Severity

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
ProofStatus = Literal["proven", "waiting", "broken", "empty", "unmanaged"]
ProbeStatus = Literal["passed", "failed", "skipped"]


def missing(  # noqa: PLR0913, PLR0917 - the parts of a finding
    where: str, step: Step, severity: Severity, seen: str, means: str = "", fix: str = ""
) -> Finding:
    """Make the finding of a step that is missing on a node or in a cluster.

    Args:
        where: Node or object.
        step: Which step.
        severity: A hint hinders nothing; what a warning is about usually passes by itself; an error does not.
        seen: What was seen, one line.
        means: What that usually comes from; "" when it is plain.
        fix: What to run; "" when waiting is all there is to do.
    """
    return Finding(f"step-{step}", Where(where), seen, fix, means, severity)


def code_of_step(step: Step) -> str:
    """Return the code of a finding about a step: "step-driver"."""
    return f"step-{step}"


def step_of(finding: Finding) -> Step:
    """Return the step that a finding of a proof is about."""
    return cast("Step", finding.code.removeprefix("step-"))


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
        message: One line.
        resource: What it asked for.
        image: What it ran.
        node: Where it ran; "" when it did not.
        output: What `nvidia-smi -L` wrote.
        findings: What is wrong with that.
    """

    status: ProbeStatus
    message: str
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
        real = [finding for finding in self.all_findings if finding.severity != "hint"]
        return min(real, key=lambda item: (item.severity != "error", _ORDER[step_of(item)], item.where), default=None)


_ORDER: Final[dict[str, int]] = {step: place for place, step in enumerate(get_args(Step))}
