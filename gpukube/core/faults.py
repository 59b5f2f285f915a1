"""What a check of a live cluster finds and what fixes it, as values: cloud packages and the doctor both make them.

In scope: the values. Out of scope: how faults are found, and how a fix is applied (doctor).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from gpukube.errors import Severity


@dataclass(frozen=True, slots=True)
class LabelNode:
    """Set a label of a node, or remove it.

    Attributes:
        live: Value that was seen, None for none: if it is another one by then, nothing is done.
        desired: None removes the label.
    """

    node: str
    key: str
    live: str | None
    desired: str | None
    needs_spec: ClassVar[bool] = False

    def __str__(self) -> str:
        """Describe it as the question before it does."""
        if self.desired is None:
            return f"remove the label {self.key}={self.live} from node {self.node}"
        return f"label node {self.node} {self.key}={self.desired}"


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart the pods of a DaemonSet, one node after the other as its update strategy says."""

    namespace: str
    name: str
    needs_spec: ClassVar[bool] = False

    def __str__(self) -> str:
        """Describe it as the question before it does."""
        return f"restart DaemonSet {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Bring our release on a cluster to the spec."""

    needs_spec: ClassVar[bool] = True

    def __str__(self) -> str:
        """Describe it as the question before it does."""
        return "bring gpukube's release to the spec"


SafeFix: TypeAlias = LabelNode | Restart | Reconcile
"""What the doctor may do by itself after asking: nothing of it stops a running pod that uses a GPU."""


@dataclass(frozen=True, slots=True)
class Fault(Finding):
    """A finding of a check, which puts its id into `code`, and what comes of it into `why` where that is open.

    Attributes:
        safe_fix: What the doctor may do about it itself; None when somebody has to decide.
    """

    safe_fix: SafeFix | None = None


def fault(  # noqa: PLR0913 - the parts of a finding
    where: str,
    seen: str,
    fix: str,
    evidence: tuple[str, ...] = (),
    *,
    severity: Severity = "error",
    why: str = "",
    safe_fix: SafeFix | None = None,
) -> Fault:
    """Make the finding of a check.

    Args:
        where: Node, object or pool: "node n1", "DaemonSet gpu-operator/nvidia-device-plugin-daemonset".
        seen: What is wrong with the value seen; one lower-case line without a full stop.
        fix: The exact command, or what to write.
        evidence: Further lines that were seen.
        severity: An error keeps GPUs from being used or will; a warning costs or risks something.
        why: What comes of it, where that is another thing than the check's own consequence.
        safe_fix: What the doctor may do about it itself; None when somebody has to decide.
    """
    return Fault("", Where(where), seen, fix, why, severity, evidence, safe_fix)
