"""Manages a cluster's releases: guards, repairs, dry-runs, and changes it through either Helm engine.

In scope: the order of steps around a Helm run. Out of scope: running Helm, and the values.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from gpukube.cluster.helm.chart import ChartSource, chart_digest, chart_types
from gpukube.cluster.helm.choice import choose_engine
from gpukube.cluster.helm.engine import DEADLINE_S, HelmAnswer, HelmJob
from gpukube.cluster.helm.retry import run_with_retries
from gpukube.cluster.helm.runs import RunLog
from gpukube.cluster.kube.releases import newest, release_history, secret_name
from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE, NAMESPACE_LABELS, RUN_LABEL
from gpukube.cluster.release.charts import ChartCache
from gpukube.cluster.release.crds import create_types, look_at_types, try_types
from gpukube.cluster.release.grants import require_grants, try_objects
from gpukube.cluster.release.migration import OutgoingRelease
from gpukube.cluster.release.reach import require_reach
from gpukube.cluster.release.reclaim import reclaim_objects
from gpukube.cluster.release.removal import await_pods_gone, forget_release, kubeconfig_file, uninstall_release
from gpukube.cluster.release.rendered import read_manifest, require_rendered
from gpukube.cluster.release.rollback import fallback_of, kept_error, rolled_back_error
from gpukube.cluster.release.shared_values import put
from gpukube.cluster.state.release_drift import manifest_objects
from gpukube.core.jsontree import at
from gpukube.errors import Conflict, FieldConflict, GpukubeError, HelmError, HelmTimeout, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine, EngineChoice
    from gpukube.cluster.helm.runs import Mark
    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired, KubeAccess

_CUT_OFF_S: Final = DEADLINE_S + 15
"""Seconds after which a pending release change is considered abandoned: no live run of gpukube lasts longer."""
_LOOK_AGAIN_S: Final = 1.0
_NOTIFY_EVERY_S: Final = 15
"""Seconds between countdown messages, so that a long wait does not print a line per check."""
_ATTEMPTS: Final = 4
"""Attempts of a change that others interrupt: theirs takes seconds, so several in a row are no coincidence."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of a dry run of a release.

    Attributes:
        digest: Digest of the chart, "sha256:..."; "" for a directory.
        contested: Whether another manager owns fields that the chart sets, which Helm does not overwrite.
        other_types: CRDs of the chart that exist in another version; they are not changed.
    """

    digest: str
    contested: bool
    other_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, injected.

    Attributes:
        now: Returns the current time.
        pause: Waits some seconds; raises if the run was stopped.
        stopped: Returns whether the run should end: on the user's request, or at its timeout.
    """

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    pause: Callable[[float], None] = time.sleep
    stopped: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as Helm needs it: current access, and its API for what Helm does not do."""

    access: Callable[[], KubeAccess]
    kube: Kube


def connect_helm(  # noqa: PLR0913 - the settings of a manager
    cluster: Cluster,
    environ: Mapping[str, str],
    chart: ChartSource | None = None,
    choice: EngineChoice = "auto",
    *,
    clock: Clock | None = None,
    notify: Callable[[str], None] | None = None,
) -> ReleaseManager:
    """Choose a Helm for a cluster; makes no call to the cluster yet.

    Args:
        cluster: The cluster.
        environ: Environment for Helm; settings that choose a cluster are removed.
        chart: Source of the charts; NVIDIA's repositories by default.
        choice: Forces the helm command or the embedded Helm.
        clock: Time.
        notify: Called with what the run is waiting for.

    Raises:
        MissingExtra: No Helm is available.
    """
    report = notify or (lambda _message: None)
    engine = choose_engine(environ, choice, clock.stopped if clock else None, report)
    return ReleaseManager(cluster, engine, chart or ChartSource(), clock, notify)


class Changes(Protocol):
    """The release changes that `apply_release` makes; ReleaseManager implements them."""

    def rehearse(self, plan: ReleasePlan) -> None:
        """Apply the planned objects in a dry run before the release that they replace is uninstalled."""

    def install_or_upgrade(self, plan: ReleasePlan, expected_revision: int) -> HelmAnswer:
        """Apply the plan to the release, once."""

    def remove(self, outgoing: OutgoingRelease) -> None:
        """Uninstall a release that another one replaces."""


def apply_release(
    manager: Changes, kube: Kube, plan: ReleasePlan, replan: Callable[[Sequence[Release]], ReleasePlan]
) -> HelmAnswer | None:
    """Bring the release to the required state, even if others change it concurrently; uninstall outgoing ones first.

    Helm reports success even if it could not record the end of its change (helm.sh/helm 4.2 pkg/action: it logs "failed
    to record the release"), so the record is read, and the change is repeated.

    Args:
        manager: Changes the release.
        kube: Its cluster.
        plan: The plan shown to the user.
        replan: Plans again from the current cluster; gets the revisions that the last change overwrote unseen.

    Returns:
        Helm's last answer; None if there was nothing to do.

    Raises:
        Conflict: Others kept changing it, or the plan is a conflict.
        HelmError: Raised by Helm, or its record remains incomplete.
        AccessError, ClusterError: Raised by the calls.
    """
    answer: HelmAnswer | None = None
    taken = [item for item in plan.leaves if item.kind is None]
    for attempt in range(1, _ATTEMPTS + 1):
        if not _is_due(plan):
            return answer
        if any(outgoing.there for outgoing in plan.leaves):
            manager.rehearse(plan)
        for outgoing in plan.leaves:  # before the new release: two plugins on a node leave it without devices
            manager.remove(outgoing)
        try:
            answer = manager.install_or_upgrade(plan, plan.revision)
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
            # Another run was faster between the read and Helm: nothing was written, so read and plan again.
            plan = replace(replan(()), contested=plan.contested)
            continue
        # Helm has no compare-and-set: revisions written between the read and the write were overwritten unseen.
        history = release_history(kube, plan.name, plan.namespace)
        missed = [item for item in history if plan.revision < item.revision < answer.revision and not item.pending]
        is_open = any(item.pending and item.revision == answer.revision for item in history)
        if not missed and not is_open:
            for outgoing in taken:
                forget_release(kube, outgoing)
            return answer
        if is_open and attempt == _ATTEMPTS:
            raise HelmError(
                f"Helm changed the release but could not record it, {_ATTEMPTS} times",
                where=plan.kind.address,
                fix=f"check that Secrets of namespace {NAMESPACE} can be updated; then run again",
                code="release-open",
            )
        plan = replan(missed)
    if _is_due(plan):
        raise Conflict(
            f"other runs changed the release during each of {_ATTEMPTS} upgrades",
            where=plan.kind.address,
            fix="run again: the last upgrade may have overwritten config entries of another run",
            code="release-moved",
        )
    return answer


class ReleaseManager:
    """The releases of a cluster, changed through a Helm engine.

    Args:
        cluster: Cluster of the releases.
        engine: Runs Helm.
        chart: Source of the charts.
        clock: Time.
        notify: Called with what the run is waiting for.
    """

    def __init__(
        self,
        cluster: Cluster,
        engine: Engine,
        chart: ChartSource,
        clock: Clock | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._clock = clock or Clock()
        self._notify = notify or (lambda _message: None)
        self._runs = RunLog(_CUT_OFF_S)
        self._charts = ChartCache(engine, chart)

    def version(self) -> str:
        """Return the name and version of the Helm in use."""
        return self._engine.version()

    def dry_run(self, plan: ReleasePlan, pools: Sequence[Desired] = ()) -> Trial:
        """Download the chart, render it for this cluster, and check that it does what the plan requires; write nothing.

        Args:
            plan: The release.
            pools: Declared pools, on whose nodes the rendered pods must run.

        Raises:
            HelmError: The chart is missing, rejects or ignores the values, or its pods would not run.
            StalePlan: The chart is not the one that the plan was made with.
            AccessError: The call failed, or this identity may not grant the permissions in the chart's roles.
            ClusterError: The call failed.
        """
        kube = self._cluster.kube
        kube.version()
        live = self._live(plan.kind) if plan.revision or self._charts.compares(plan) else None
        chart = self._chart(plan, live)
        installed = plan.revision > 0 and not plan.pending
        trial = _trial_of(plan)
        contested = False
        try:
            answer = self._run(trial, chart, installed=installed, dry_run=True)
        except FieldConflict:
            contested = True  # rendering the chart works without the cluster
            answer = self._run(trial, chart, installed=installed, dry_run=True, offline=True)
        require_rendered(answer.manifest, plan)
        rendered = read_manifest(answer.manifest, plan)
        require_reach(rendered, plan, pools)
        types = look_at_types(kube, self._types(chart, plan))
        try_types(kube, types)
        require_grants(kube, rendered, manifest_objects(live.manifest) if live else (), plan)
        return Trial(chart_digest(chart), contested, types.other)

    def rehearse(self, plan: ReleasePlan) -> None:
        """Apply every object of a release in a dry run, after creating its namespace and CRDs if missing.

        Raises:
            HelmError: The server rejects an object; the message names it.
            AccessError, ClusterError: The call failed.
        """
        kube = self._cluster.kube
        chart = self._chart(plan)
        kube.ensure_namespace(plan.namespace, NAMESPACE_LABELS)
        self._create_types(plan, chart)
        answer = self._run(_trial_of(plan), chart, installed=False, dry_run=True, offline=True)
        try_objects(kube, read_manifest(answer.manifest, plan), plan)

    def install_or_upgrade(self, plan: ReleasePlan, expected_revision: int) -> HelmAnswer:
        """Apply the plan to the release, once. If Helm fails halfway, roll back to the last deployed revision.

        Raises:
            Conflict: The live revision is not the expected one; plan again.
            HelmError, AccessError, ClusterError: See dry_run.
        """
        kube = self._cluster.kube
        live = self._live(plan.kind)
        if (found := live.revision if live else 0) != expected_revision:
            raise _moved(plan.kind, found, expected_revision)
        live = self._repaired(live, plan.kind)
        # While this run waited for another one, that one or a third may have changed the release again.
        if live and live.revision > expected_revision:
            raise _moved(plan.kind, live.revision, expected_revision)
        kube.ensure_namespace(plan.namespace, NAMESPACE_LABELS)
        manager = self._engine.field_manager
        if live and (plan.drift or plan.contested or (manager and plan.appliers - {manager})):
            reclaim_objects(kube, live, manager)
        chart = self._chart(plan, live)
        self._create_types(plan, chart)
        try:
            return self._change(plan, chart, live)
        except (Conflict, WaitTimeout):
            raise
        except GpukubeError as error:
            raise self._go_back(plan.kind, error) from error

    def _change(self, plan: ReleasePlan, chart: Path, live: Release | None) -> HelmAnswer:
        try:
            return self._run(plan, chart, installed=live is not None, dry_run=False)
        except FieldConflict:
            # Helm has recorded the attempt as failed; nothing else may change the release before the next attempt.
            if live is None or not reclaim_objects(self._cluster.kube, live, self._engine.field_manager):
                raise
        return self._run(plan, chart, installed=True, dry_run=False)

    def _go_back(self, kind: ReleaseKind, error: GpukubeError) -> GpukubeError:
        """Roll back to the last deployed revision if Helm recorded a failure; return the error with the outcome."""
        try:
            former = fallback_of(release_history(self._cluster.kube, kind.name, NAMESPACE))
        except GpukubeError:
            return error  # the cluster does not answer: the state is unknown, and the next run reads it first
        if former is None:
            return error
        self._notify(f"rolling back to revision {former.revision}")
        try:
            with kubeconfig_file(self._cluster.access()) as path:
                self._engine.rollback(path, kind.name, NAMESPACE, former.revision)
        except GpukubeError as cause:
            return kept_error(error, former, cause)
        return rolled_back_error(error, former)

    def uninstall(self, kind: ReleaseKind) -> bool:
        """Uninstall one of gpukube's releases; return False if it does not exist."""
        outgoing = OutgoingRelease(kind.name, NAMESPACE, kind.title, kind.plugin, kind)
        return uninstall_release(self._engine, self._cluster.access(), self._cluster.kube, outgoing)

    def take_away(self, kind: ReleaseKind) -> None:
        """Uninstall a gpukube release that nothing replaces, once no other run changes it; repeating it is harmless.

        Raises:
            See remove.
        """
        live = self._repaired(self._live(kind), kind)
        self.remove(OutgoingRelease(kind.name, NAMESPACE, kind.title, kind.plugin, kind, there=live is not None))

    def remove(self, outgoing: OutgoingRelease) -> None:
        """Uninstall a release that another one replaces, and wait until its plugin is gone from all nodes.

        Raises:
            Conflict: Its pods do not terminate.
            HelmError, AccessError, ClusterError: See dry_run.
        """
        kube = self._cluster.kube
        if outgoing.there:
            self._notify(f"uninstalling {outgoing.address}")
            with self._stoppable():
                uninstall_release(self._engine, self._cluster.access(), kube, outgoing)
        await_pods_gone(kube, outgoing, self._clock.pause, self._notify)

    def close(self) -> None:
        """Delete the downloaded charts."""
        self._charts.close()

    def _live(self, kind: ReleaseKind) -> Release | None:
        return newest(release_history(self._cluster.kube, kind.name, NAMESPACE))

    def _chart(self, plan: ReleasePlan, live: Release | None = None) -> Path:
        with self._stoppable():
            return self._charts.chart(plan, live)

    def _types(self, chart: Path, plan: ReleasePlan) -> tuple[Tree, ...]:
        return chart_types(chart, nfd=at(plan.values, "nfd", "enabled") is True)

    def _create_types(self, plan: ReleasePlan, chart: Path) -> None:
        kube = self._cluster.kube
        create_types(kube, look_at_types(kube, self._types(chart, plan)), self._clock.pause)

    def _run(
        self, plan: ReleasePlan, chart: Path, *, installed: bool, dry_run: bool, offline: bool = False
    ) -> HelmAnswer:
        def run() -> HelmAnswer:
            return self._run_once(plan, chart, installed=installed, dry_run=dry_run, offline=offline)

        # A client that is refused gets a new token, which Helm then uses too.
        return run_with_retries(run, self._clock.pause, self._cluster.kube.version)

    def _run_once(self, plan: ReleasePlan, chart: Path, *, installed: bool, dry_run: bool, offline: bool) -> HelmAnswer:
        with kubeconfig_file(self._cluster.access()) as path, self._stoppable():
            job = HelmJob(path, plan.name, plan.namespace, chart, plan.values, installed=installed, dry_run=dry_run)
            if dry_run:  # the operator's first: the cluster does not have the ClusterPolicy CRD yet
                offline = offline or (plan.kind is GPU_OPERATOR and not installed)
                return self._engine.upgrade(replace(job, offline=offline))
            with self._runs.run() as mark:
                try:
                    labels = self._charts.record(chart, plan) | ({RUN_LABEL: mark.name} if mark else {})
                    return self._engine.upgrade(replace(job, mark=mark, labels=labels))
                except HelmTimeout:
                    self._forget_cut_off(plan, mark)
                    raise

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Distinguish a Helm that was ended because the run is stopping from one that took too long."""
        try:
            yield
        except HelmTimeout:
            self._clock.pause(0.0)  # raises if the run should end
            raise

    def _forget_cut_off(self, plan: ReleasePlan, mark: Mark | None) -> None:
        """Delete the record of a change that this run has just ended itself; no one needs to wait for it.

        A helm older than 3.13 writes no mark, so its values identify it. If the cluster does not answer, the next run
        repairs the release.
        """
        kube = self._cluster.kube.cleaning()
        with suppress(GpukubeError):
            live = newest(release_history(kube, plan.name, plan.namespace))
            if live is None or not live.pending or live.revision <= plan.revision:
                return
            own_change = live.run == mark.name if live.run and mark else live.values == plan.values
            if own_change:
                kube.delete_secret(live.namespace, secret_name(live.name, live.revision))

    def _repaired(self, live: Release | None, kind: ReleaseKind) -> Release | None:
        """Return a release that Helm will accept: Helm rejects one whose last change was interrupted.

        A change that is still in progress is waited for. An interrupted one leaves a pending record; without that
        record the release is as the previous revision left it, and the next change corrects every object. Runs on this
        machine are known to be interrupted immediately, all others by their age.
        """
        # Another run may end, die, or start between two reads, so each iteration re-reads the newest record.
        while live and live.pending and not self._runs.is_dead(live.run):
            left = _CUT_OFF_S - self._age_s(live)
            if left <= 0:
                break
            most = math.ceil(left / _NOTIFY_EVERY_S) * _NOTIFY_EVERY_S
            self._notify(f"waiting up to {most} s: another Helm run may be changing the release")
            self._clock.pause(_LOOK_AGAIN_S)
            live = self._live(kind)
        if live and live.pending:
            self._cluster.kube.delete_secret(live.namespace, secret_name(live.name, live.revision))
            return self._live(kind)
        if live and live.status == "uninstalling":
            self.uninstall(kind)
            return self._live(kind)
        return live

    def _age_s(self, live: Release) -> float:
        try:
            since = datetime.fromisoformat(live.deployed_at)
            return (self._clock.now() - since).total_seconds()
        except (ValueError, TypeError):
            return math.inf


def _is_due(plan: ReleasePlan) -> bool:
    """Return whether the plan changes the release; raise Conflict if nothing may be done."""
    if plan.action == "conflict":
        raise Conflict.of(plan.diagnostics, plan.reason)
    return plan.action in ("install", "upgrade")


def _moved(kind: ReleaseKind, found: int, expected: int) -> Conflict:
    return Conflict(
        f"the release is at revision {found}, but the plan was made from {expected}",
        where=kind.address,
        fix="run again to start from the current release",
        code="release-moved",
    )


def _trial_of(plan: ReleasePlan) -> ReleasePlan:
    """For a dry run next to the other release, rename the service account of the bundled NFD, which both charts have.

    Its name is fixed (nfd.master.serviceAccount.name in both values.yaml), both releases are in gpukube's namespace,
    and Helm rejects objects of another release. Everything else in the chart is tried as it will be installed.
    """
    if not any(item.there for item in plan.leaves):
        return plan
    values = dict(plan.values)
    put(values, (plan.kind.nfd, "master", "serviceAccount", "name"), f"{plan.name}-trial")
    return replace(plan, values=values)
