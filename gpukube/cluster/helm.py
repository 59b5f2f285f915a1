"""Helm through one small interface: what is asked of it, and what it answers.

Lives here: `Helm` and its engine as protocols. Must not live here: the two engines (helm_cli, helm_sdk) and the choice
of one (helm_choice), what the values are (plugin), and the order of guard, repair and upgrade (keeper).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpukube.cluster.chart import ChartSource
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release_migration import Leaving
    from gpukube.cluster.release_plan import ReleasePlan
    from gpukube.cluster.runs import Mark
    from gpukube.core.values import Desired

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


class Helm(Protocol):
    """The release of one cluster."""

    def version(self) -> str:
        """Name the Helm in use."""

    def dry_run(self, plan: ReleasePlan, pools: Sequence[Desired] = ()) -> str:
        """Fetch the chart, render it for this cluster, check that it does what the plan asks; nothing is written.

        Args:
            plan: The release.
            pools: Declared pools, on whose nodes the rendered pods must land.

        Returns:
            The digest of the chart, "sha256:...", "" for a directory.

        Raises:
            HelmError: No chart, or it refuses or ignores the values, or its pods would not land.
            StalePlan: The chart is not the one that the plan was made with.
            AccessError, ClusterError: The cluster.
        """

    def install_or_upgrade(self, plan: ReleasePlan, expected_revision: int) -> HelmAnswer:
        """Bring the release to the plan, once. When Helm fails half-way, the last deployed revision is put back.

        Raises:
            Conflict: The live revision is not the expected one; plan again.
            HelmError, AccessError, ClusterError: As dry_run.
        """

    def uninstall(self, kind: ReleaseKind) -> bool:
        """Remove one of our releases; False when it was not there."""

    def remove(self, leaving: Leaving) -> None:
        """Take away what another release is to follow, and wait until its plugin is gone from all nodes.

        Raises:
            Conflict: Pods of it do not go.
            HelmError, AccessError, ClusterError: As dry_run.
        """
