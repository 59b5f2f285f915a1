"""The interface of a Helm engine: its jobs and answers.

In scope: the protocol, job, and answer. Out of scope: the two engines (cli, embedded), choosing one (choice), the
values, and the order of guard, repair, and upgrade (cluster.release).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.runs import Mark

DEADLINE_S: Final = 120.0
"""Time limit of one Helm run, which waits for no pod; the embedded Helm sets none for a silent server."""
HOOKS_S: Final = 60
"""Time limit of each chart hook (at uninstall, the operator's cleanup job before, and NFD's after)."""
HISTORY: Final = 10
"""Maximum number of revisions kept."""
EngineChoice = Literal["auto", "cli", "embedded"]


@dataclass(frozen=True, slots=True)
class HelmJob:
    """One install or upgrade; the chart is a local archive or directory.

    Attributes:
        offline: Whether a dry run skips the cluster: if a chart contains a CRD and an object of it, a dry run against
            the API works only once the CRD exists (helm/helm#7449).
        mark: Lock held while Helm runs; None for a dry run.
        labels: Labels for the release's record.
    """

    kubeconfig: Path
    name: str
    namespace: str
    chart: Path
    values: Mapping[str, object]
    installed: bool
    dry_run: bool
    offline: bool = False
    mark: Mark | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HelmAnswer:
    """Helm's result for a release.

    Attributes:
        revision: The new revision.
        status: "deployed", or "pending-..." in a dry run.
        manifest: Rendered objects.
    """

    revision: int
    status: str
    manifest: str


class Engine(Protocol):
    """A way to run Helm. All methods raise gpukube's errors, end by a deadline, and wait for no pod."""

    @property
    def field_manager(self) -> str:
        """Name in managedFields of what this Helm applies server-side; "" if it does not (Helm 3)."""

    def version(self) -> str:
        """Return the version and how Helm runs: "helm v3.6.2 on PATH"."""

    def pull(self, source: ChartSource, directory: Path) -> Path:
        """Download a chart from a repository or OCI registry as an archive into a directory."""

    def upgrade(self, job: HelmJob) -> HelmAnswer:
        """Install or upgrade the release, or do a dry run."""

    def rollback(self, kubeconfig: Path, name: str, namespace: str, revision: int) -> None:
        """Create a new revision with the content of an earlier one."""

    def uninstall(self, kubeconfig: Path, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """Uninstall a release, with or without its records; do nothing if it does not exist."""
