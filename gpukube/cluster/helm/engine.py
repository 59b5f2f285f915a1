"""Helm through one small interface: what it is asked to do, and what it answers.

In scope: the protocol of an engine, its job and answer. Out of scope: the two engines (cli, embedded) and the
choice of one (choice), what the values are and the order of guard, repair and upgrade (cluster.release).
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
"""For one run of Helm, which waits for no pod; the embedded Helm has no limit of its own on a silent server."""
HOOKS_S: Final = 60
"""For each of the chart's hooks (at uninstall the operator's clean-up job before, NFD's after)."""
HISTORY: Final = 10
"""Revisions kept."""
EngineChoice = Literal["auto", "cli", "embedded"]


@dataclass(frozen=True, slots=True)
class HelmJob:
    """One install or upgrade; the chart is a local archive or directory.

    Attributes:
        offline: Whether a trial leaves the cluster out: a chart that brings a type and an object of it can be tried
            against the API only where the type is known already (helm/helm#7449).
        mark: Kept locked while Helm runs; None for a trial.
        labels: Go into the release's record.
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
    """What Helm says of a release.

    Attributes:
        revision: The new revision.
        status: "deployed", or "pending-..." in a dry run.
        manifest: Rendered objects.
    """

    revision: int
    status: str
    manifest: str


class Engine(Protocol):
    """One way of running Helm. All methods raise our errors, end by a deadline and wait for no pod."""

    @property
    def field_manager(self) -> str:
        """Name in managedFields of what this Helm applies on the server; "" for one that does not (Helm 3)."""

    def version(self) -> str:
        """Name the Helm and how it is run: "helm v3.6.2"."""

    def pull(self, source: ChartSource, directory: Path) -> Path:
        """Fetch a chart from a repository or OCI registry as an archive into a directory."""

    def upgrade(self, job: HelmJob) -> HelmAnswer:
        """Install or upgrade, or try it."""

    def rollback(self, kubeconfig: Path, name: str, namespace: str, revision: int) -> None:
        """Make a new revision that is a former one again."""

    def uninstall(self, kubeconfig: Path, name: str, namespace: str, *, keep_history: bool = False) -> None:
        """Remove a release, with or without its records; a missing one is fine."""
