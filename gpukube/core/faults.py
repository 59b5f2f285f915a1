"""Findings of live cluster checks and their fixes, as values that cloud packages and the doctor create.

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
    """Set or remove a label of a node.

    Attributes:
        live: Observed value, None if absent; if it has changed since, the fix is skipped.
        desired: New value; None removes the label.
    """

    node: str
    key: str
    live: str | None
    desired: str | None
    needs_spec: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the text of the confirmation prompt."""
        if self.desired is None:
            return f"remove the label {self.key}={self.live} from node {self.node}"
        return f"label node {self.node} {self.key}={self.desired}"


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart the pods of a DaemonSet, following its update strategy."""

    namespace: str
    name: str
    needs_spec: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the text of the confirmation prompt."""
        return f"restart DaemonSet {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Reconcile:
    """Update gpukube's release on a cluster to match the spec."""

    needs_spec: ClassVar[bool] = True

    def __str__(self) -> str:
        """Return the text of the confirmation prompt."""
        return "bring gpukube's release to the spec"


SafeFix: TypeAlias = LabelNode | Restart | Reconcile
"""Fixes that the doctor may apply after confirmation; none stops a running pod that uses a GPU."""


@dataclass(frozen=True, slots=True)
class Fault(Finding):
    """A finding of a check; `code` is the check's id, and an empty `why` becomes the check's consequence.

    Attributes:
        safe_fix: Fix that the doctor may apply; None if a person has to decide.
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
    """Return the finding of a check.

    Args:
        where: Node, object, or pool: "node n1", "DaemonSet gpu-operator/nvidia-device-plugin-daemonset".
        seen: What is wrong, with the observed value; one lower-case line without a period.
        fix: The exact command, or what to write.
        evidence: Additional observed lines.
        severity: An error prevents the use of GPUs, now or later; a warning means cost or risk.
        why: Consequence, if it differs from the check's own.
        safe_fix: Fix that the doctor may apply; None if a person has to decide.
    """
    return Fault("", Where(where), seen, fix, why, severity, evidence, safe_fix)
