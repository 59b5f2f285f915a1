"""The cluster's releases during a run: checked before anything costs money, then brought to the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.kube.releases import release_history
from gpukube.cluster.names import (
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRA_KINDS,
    GPU_OPERATOR,
    NAMESPACE,
    RELEASE_KINDS,
    kind_of,
)
from gpukube.cluster.release.entries import Overwritten, dropped_entries, with_entries
from gpukube.cluster.release.manager import Clock, Cluster, apply_release, connect_helm
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.quota import quota_shortage
from gpukube.cluster.state.snapshot import has_entry, look
from gpukube.core.fields import label
from gpukube.core.owners import CONFIG_LABEL
from gpukube.core.permissions import PRINT_POLICY
from gpukube.errors import AccessError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

STOPPED_CLEANUP = "release: stopped before unused entries were dropped; run it again"

_TYPES = "customresourcedefinitions"
_RBAC = "rbac.authorization.k8s.io"
_OF_PLUGIN = (
    ("secrets", ""),
    ("configmaps", ""),
    ("serviceaccounts", ""),
    ("daemonsets", "apps"),
    ("deployments", "apps"),
    ("clusterroles", _RBAC),
    ("clusterrolebindings", _RBAC),
    ("roles", _RBAC),
    ("rolebindings", _RBAC),
    (_TYPES, "apiextensions.k8s.io"),
)
NEEDED: Final[Mapping[ReleaseKind, tuple[tuple[str, str], ...]]] = {
    DEVICE_PLUGIN: _OF_PLUGIN,
    GPU_OPERATOR: (*_OF_PLUGIN, ("clusterpolicies", "nvidia.com")),
    DRA_DRIVER: (
        *(row for row in _OF_PLUGIN if row[0] not in ("configmaps", "deployments")),
        ("deviceclasses", "resource.k8s.io"),
        ("validatingadmissionpolicies", "admissionregistration.k8s.io"),
        ("validatingadmissionpolicybindings", "admissionregistration.k8s.io"),
    ),
}
"""Resource and group of what an installation creates (objects of the rendered charts nvidia-device-plugin 0.20.0 with
NFD, gpu-operator v26.7.0, and dra-driver-nvidia-gpu 0.4.1)."""
_PODS = {DEVICE_PLUGIN: (3, 2), GPU_OPERATOR: (3, 2), DRA_DRIVER: (1, 0)}
"""Pods on each node, and in addition to them. Of the plugin's chart: plugin, GFD and NFD's worker; NFD's master and
collector (objects of the same charts)."""
_QUOTAS = ApiType("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)


def ensure_releases(releases: Sequence[ReleasePlan], plan: ClusterPlan, session: Session, run: Run) -> str:
    """Check permissions, dry-run the charts, then install or upgrade the releases: nothing is written if one fails.

    Args:
        releases: The planned releases.
        plan: The cluster's plan.
        session: Session of the cluster.
        run: The run.

    Returns:
        One line for the summary; "" if no pool of the cluster needs a release.

    Raises:
        AccessError: A permission that a chart needs is missing.
        HelmError, ClusterError, Conflict, MissingExtra: See ReleaseManager.
    """
    lines = [f"{_title(item)}: {item.reason}" for item in releases if item.revision and not _is_due(item)]
    due = [release for release in releases if _is_due(release)]
    if not due:
        return "; ".join(lines)
    key = plan.cluster.key
    kube = session.kube()
    run.report("check", f"checking permissions and the chart{'s' if len(due) > 1 else ''}", key)
    for release in due:
        _require_permissions(kube, release, key)
    _require_room(kube, plan, due, key)
    manager = open_manager(session, run)
    desired = [pool.desired for pool in plan.pools if pool.desired]
    try:
        trials = [manager.dry_run(release, desired) for release in due]
        for release, trial in zip(due, trials, strict=True):
            lines.append(_install(manager, replace(release, contested=trial.contested), plan, session, run))
            lines += [_outdated_types(trial.other_types, release, run)] if trial.other_types else []
    finally:
        manager.close()
    return "; ".join(lines)


def _title(release: ReleasePlan) -> str:
    return "release" if release.kind in RELEASE_KINDS else f"release {release.name}"


def _is_due(release: ReleasePlan) -> bool:
    return release.action in ("install", "upgrade")


def open_manager(session: Session, run: Run) -> ReleaseManager:
    """Open the release manager of a cluster; the caller closes it."""
    key = session.cluster.key
    return connect_helm(
        Cluster(session.access, session.kube()),
        run.environ,
        run.chart,
        clock=helm_clock(run),
        notify=lambda message: run.report("release", message, key),
    )


def helm_clock(run: Run) -> Clock:
    """Return a clock that ties the release manager to the run: pauses and child processes end with the run."""
    wait = run.wait(run.resume, lambda _message: None)
    pause: Callable[[float], None] = lambda seconds: wait.pause(seconds, "Helm was changing the release")  # noqa: E731
    return Clock(pause=pause, stopped=lambda: run.is_over)


def retire_entries(plan: ClusterPlan, session: Session, run: Run, *, left: Collection[str] = ()) -> str:
    """Drop the config entries that nothing uses any more, once labels have moved or pools are gone.

    Node objects outlive their pool briefly and still name its entry, so wait a little for them. An entry still in use
    after that stays; the next apply drops it.

    Args:
        plan: The cluster's plan, before the changes.
        session: Session of the cluster.
        run: The run.
        left: Entries of pools that no longer exist, which a killed run may have left.

    Returns:
        One line for the summary; "" if there was nothing to drop or to finish.

    Raises:
        GpukubeError: See ensure_releases.
    """
    if plan.release is None:
        return ""
    # A pool stops using an entry when its label moves to another one, or when the pool is deleted.
    moved = {c.change.old for p in plan.pools for c in p.changes if c.change.field == label(CONFIG_LABEL)}
    gone = {p.observed.labels.get(CONFIG_LABEL) for p in plan.pools if p.observed and p.action in ("delete", "replace")}
    freed = {str(entry) for entry in moved | gone if entry} | set(entries_left(plan, left))
    if not freed and not is_pending(plan):
        return ""
    key = plan.cluster.key
    end = run.clock.now() + run.pace.settle_s
    # An entry may be dropped only once no node names it, and nodes outlive their pool. Read pools and nodes in the same
    # round, as another run may assign the entry to a pool meanwhile.
    while True:
        live, seen = session.cloud.pools(), look(session.kube())
        lingering = freed & {node.labels.get(CONFIG_LABEL, "") for node in seen.nodes}
        lingering -= {pool.labels.get(CONFIG_LABEL, "") for pool in live}
        if not lingering or run.clock.now() >= end:
            break
        run.report("release", f"waiting for nodes that still use entry {', '.join(sorted(lingering))}", key)
        run.clock.wait(run.pace.poll_s)
    version = run.chart_version(RELEASE_KINDS)
    release = plan_release(plan.desired, seen, live_pools=live, retire=True, chart_version=version)
    return ensure_releases([release], plan, session, run)


def entries_left(plan: ClusterPlan, entries: Collection[str]) -> frozenset[str]:
    """Return the entries that the release still has in its record or in the cluster; one changes before the other."""
    if plan.seen is None or plan.release is None:
        return frozenset()
    kind = plan.release.kind
    live = plan.seen.release_of(kind)
    recorded = kind.entries_in(live.values) if live else {}
    return frozenset(entries) & {*recorded, *(plan.seen.entries_of(kind) or {})}


def is_pending(plan: ClusterPlan) -> bool:
    """Return whether the last change of the release has not ended: its run was killed, or is still running."""
    live = plan.seen.release_of(plan.release.kind) if plan.seen and plan.release else None
    return live is not None and live.pending


def restore_entry(plan: ClusterPlan, pool: PoolPlan, session: Session, run: Run) -> None:
    """Restore the config entry that a pool is about to use, if another run has dropped it since this run added it.

    Nothing names an entry between the release's upgrade and the pool's own call, and pools of a cluster may queue for
    an hour: the apply of another spec sees an unused entry. Nodes that name a missing entry have no devices.

    Raises:
        GpukubeError: See ensure_releases.
    """
    desired = pool.desired
    kind = kind_of(desired.ownership.advertiser) if desired else None
    if desired is None or kind is None or not desired.ownership.config_key or pool.action in ("no-op", "conflict"):
        return
    if has_entry(session.kube(), kind, desired.ownership.config_key):
        return
    live = session.cloud.pools()
    version = run.chart_version(RELEASE_KINDS)
    release = plan_release(plan.desired, look(session.kube()), live_pools=live, chart_version=version)
    ensure_releases([release], plan, session, run)


def _install(manager: ReleaseManager, release: ReleasePlan, plan: ClusterPlan, session: Session, run: Run) -> str:
    key = plan.cluster.key
    kube = session.kube()
    desired = [pool.desired for pool in plan.pools if pool.desired]
    kinds = RELEASE_KINDS if release.kind in RELEASE_KINDS else DRA_KINDS

    plans = [release]
    overwritten = Overwritten(dropped_entries(release))

    def replan(missed: Sequence[Release]) -> ReleasePlan:
        run.report("release", "changed by somebody else: planning again", key)
        overwritten.add(plans[-1], missed)
        return replan_now()

    def replan_now() -> ReleasePlan:
        plans.append(
            plan_release(
                desired,
                look(kube),
                kinds=kinds,
                live_pools=session.cloud.pools(),
                dropped=overwritten.dropped,
                missed=overwritten.revisions,
                chart_version=run.chart_version(kinds),
                adopt=release.adopted,
            )
        )
        return plans[-1]

    run.report("release", f"{release.action}s {release.chart} {release.version} with {manager.version()}", key)
    answer = apply_release(manager, kube, release, replan)
    if back := _dropped_too_early(overwritten.dropped.difference(plans[-1].keys), session):
        run.report("release", f"restoring {', '.join(sorted(back))}, which a pool uses now", key)
        bases = {item.revision for item in plans}
        before = [item for item in release_history(kube, release.name, release.namespace) if item.revision in bases]
        overwritten.revisions += tuple(with_entries(item, release.kind, back) for item in before)
        answer = apply_release(manager, kube, replan_now(), replan)
    revision = answer.revision if answer else release.revision
    return f"release: {release.chart} {release.version}, revision {revision}"


def _outdated_types(names: Sequence[str], release: ReleasePlan, run: Run) -> str:
    """Return a line on CRDs that differ from the chart's, with the command that updates them."""
    source = replace(run.chart, version=release.version, chart=release.chart)
    return (
        f"{', '.join(names)}: differ from this chart, and left alone as others may use them; to update: "
        f"helm show crds {source.show_words} | kubectl apply --server-side --force-conflicts -f -"
    )


def _needed(release: ReleasePlan) -> Iterator[tuple[str, str, str]]:
    quota = (("resourcequotas", ""),) if release.values.get("extraObjects") else ()
    yield from (("create", *row) for row in (*NEEDED[release.kind], *quota))
    if any(item.there for item in release.leaves):
        leaving = (DEVICE_PLUGIN, *(item.kind for item in release.leaves if item.kind))
        yield from (("delete", *row) for row in _removed(leaving))


def _removed(kinds: Iterable[ReleaseKind]) -> list[tuple[str, str]]:
    """Return the types that an uninstall deletes, without CRDs: Helm leaves them (helm.sh, Best Practices, CRDs)."""
    return sorted({row for kind in kinds for row in NEEDED[kind] if row[0] != _TYPES})


def require_removable(kube: Kube, kinds: Iterable[ReleaseKind], key: str) -> None:
    """Check the permissions to remove releases before removing any.

    Raises:
        AccessError: Permissions to delete their objects are missing; names them.
        ClusterError: The cluster could not be read.
    """
    missing = [
        f"delete {resource}"
        for resource, group in _removed(kinds)
        if not kube.may("delete", resource, group=group, namespace=NAMESPACE)
    ]
    if missing:
        raise AccessError(
            f"not allowed in the cluster: {', '.join(missing)}",
            where=key,
            why=f"releases of namespace {NAMESPACE} are uninstalled whole",
            fix=f"get a role that allows it: {PRINT_POLICY} prints one for a spec with pools that need the release",
            code="kube-permissions",
        )


def _dropped_too_early(dropped: frozenset[str], session: Session) -> frozenset[str]:
    """List dropped entries that a live pool names: another run used one between this run's read and the end of Helm."""
    if not dropped:
        return frozenset()
    return dropped & {pool.labels.get(CONFIG_LABEL, "") for pool in session.cloud.pools()}


def _require_room(kube: Kube, plan: ClusterPlan, releases: Sequence[ReleasePlan], key: str) -> None:
    """Raise if the namespace has a quota that rejects the pods of new releases."""
    needed = sum(_pods_of(release, plan) for release in releases if release.action == "install")
    if not needed:
        return
    shortage = quota_shortage(kube.objects(_QUOTAS, NAMESPACE) or (), needed)
    if shortage:
        raise ClusterError(
            shortage,
            where=key,
            why="a DaemonSet whose pods a quota rejects reports no error: the nodes would have no GPUs",
            fix=f"raise it, or remove it: kubectl get resourcequota --namespace {NAMESPACE}",
        )


def _pods_of(release: ReleasePlan, plan: ClusterPlan) -> int:
    per_node, others = _PODS[release.kind]
    served = [pool for pool in plan.desired if release.kind.serves(pool.ownership)]
    return others + per_node * sum(pool.target.nodes.count for pool in served)


def _require_permissions(kube: Kube, release: ReleasePlan, key: str) -> None:
    missing = [
        f"{verb} {resource}"
        for verb, resource, group in _needed(release)
        if not kube.may(verb, resource, group=group, namespace=NAMESPACE)
    ]
    if missing:
        raise AccessError(
            f"not allowed in the cluster: {', '.join(missing)}",
            where=key,
            why=f"{release.kind.title} is installed into namespace {NAMESPACE}",
            fix=f"get a role that allows it: {PRINT_POLICY} prints one",
            code="kube-permissions",
        )
