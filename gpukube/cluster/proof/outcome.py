"""The result of checking a pool's nodes: findings, and the status that follows.

In scope: the values. Out of scope: computing them (verify).
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
"""Status in plans and reports if the spec leaves the device plugin to others and no node advertises a GPU yet."""

Step = Literal[
    "node",
    "ready",
    "advertiser-label",
    "advertiser",
    "config-label",
    "config-entry",
    "device-class",
    "placement",
    "driver",
    "plugin-pod",
    "features",
    "slices",
    "geometry",
    "count",
    "stale-name",
    "hugepages",
    "fabric",
    "probe",
]
"""Conditions, in this order, before a node advertises the promised devices."""
ProofStatus = Literal["proven", "waiting", "broken", "empty", "unmanaged", "no-fabric"]
ProbeStatus = Literal["passed", "failed", "skipped"]


def missing(  # noqa: PLR0913, PLR0917 - the fields of a finding
    where: str, step: Step, severity: Severity, seen: str, means: str = "", fix: str = ""
) -> Finding:
    """Return the finding for a step that is missing on a node or in a cluster.

    Args:
        where: Node or object.
        step: The missing step.
        severity: A hint does no harm; a warning usually passes on its own; an error does not.
        seen: Observation, in one line.
        means: Usual cause; "" if obvious.
        fix: Command to run; "" if waiting is enough.
    """
    return Finding(f"step-{step}", Where(where), seen, fix, means, severity)


def code_of_step(step: Step) -> str:
    """Return the code of findings about a step: "step-driver"."""
    return f"step-{step}"


def step_of(finding: Finding) -> Step:
    """Return the step that a finding is about."""
    return cast("Step", finding.code.removeprefix("step-"))


@dataclass(frozen=True, slots=True)
class Check:
    """One property of a node, expected and observed.

    Attributes:
        what: "label gpukube.io/advertiser", "taint sku=gpu:NoSchedule", "condition Ready", "plugin pod".
        expected, seen: Values; "" for absent.
        holds: Whether they match.
    """

    what: str
    expected: str
    seen: str
    holds: bool


@dataclass(frozen=True, slots=True)
class NodeProof:
    """One node: promised and allocatable devices by resource name, and the other checks.

    Attributes:
        checks: Comparisons other than the devices; a failed one need not do harm.
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
        status: "skipped" is not a failure: probing would have started a node, or no device was free.
        message: One line.
        resource: Resource that it requested.
        image: Image that it ran.
        node: Node it ran on; "" if it did not run.
        output: Output of `nvidia-smi -L`.
        findings: Problems with the pod or its output.
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
    """Result for one pool on one cluster.

    Attributes:
        cluster, pool: Names.
        status: "empty": the pool may have no nodes and has none, and the cluster is ready for them; "unmanaged": the
            nodes exist and the spec leaves the device plugin to others, so no device is expected; "no-fabric": it is
            as good as that, but pods cannot use the fast network of the spec until something is installed.
        nodes: Promised node counts.
        nodes_seen: Nodes with the pool's labels.
        per_node: Result for each of them.
        findings: Findings about the pool as a whole; those about nodes are in per_node.
        expected: Resource -> devices promised by the minimum and maximum number of nodes.
        total: Resource -> devices allocatable on all nodes.
        probe: Result of the probe pod; None without one.
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
    def fabric_findings(self) -> tuple[Finding, ...]:
        """What keeps pods from the fast network, the causes first."""
        found = [finding for finding in self.all_findings if finding.code == code_of_step("fabric")]
        return tuple(sorted(found, key=lambda finding: not finding.fix))

    @property
    def missing_step(self) -> Finding | None:
        """The finding to report first: the earliest step, errors before warnings."""
        real = [finding for finding in self.all_findings if finding.severity != "hint"]
        return min(real, key=lambda item: (item.severity != "error", _ORDER[step_of(item)], item.where), default=None)


_ORDER: Final[dict[str, int]] = {step: place for place, step in enumerate(get_args(Step))}
