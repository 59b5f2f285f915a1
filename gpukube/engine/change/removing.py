"""Takes gpukube's own release out of clusters where no pool and no node needs it any more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.names import NAMESPACE, RELEASE_KINDS
from gpukube.cluster.release.migration import is_there
from gpukube.cluster.state.snapshot import look
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.release import open_manager, require_removable
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import ClusterReport
from gpukube.errors import Conflict, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Observed
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Removal:
    """What would be removed.

    Attributes:
        plans: All clusters.
        kinds: By cluster key: the releases of gpukube's that are there and that nothing needs.
    """

    plans: tuple[ClusterPlan, ...]
    kinds: Mapping[str, tuple[ReleaseKind, ...]]

    def releases(self) -> list[str]:
        """Name what would be removed."""
        return [f"{key}: release {kind.address}" for key, kinds in self.kinds.items() for kind in kinds]


def needed_by(kind: ReleaseKind, pools: Iterable[Observed], seen: Snapshot) -> list[str]:
    """Name the live pools of all owners, and the nodes of none of them, whose label asks for a release."""
    pools = list(pools)
    names = [f"pool {pool.name}" for pool in pools if pool.labels.get(ADVERTISER_LABEL) == kind.advertiser]
    nodes = [node.name for node in seen.nodes if node.labels.get(ADVERTISER_LABEL) == kind.advertiser]
    return sorted(names) or [f"node {name}" for name in sorted(nodes)]


def plan_release_removal(plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run) -> Removal:
    """Look for releases of gpukube's that can go; a cluster that refuses is left for the removal to report."""

    def removable(key: str) -> tuple[ReleaseKind, ...]:
        try:
            return _removable(sessions[key])
        except GpukubeError:
            return ()

    tasks = {plan.cluster.key: partial(removable, plan.cluster.key) for plan in plans if plan.error is None}
    found = run_all(tasks, run.parallelism)
    return Removal(tuple(plans), {key: kinds for key, kinds in found.items() if isinstance(kinds, tuple)})


def remove_releases(removal: Removal, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Uninstall what was found, cluster by cluster, each looked at once more; one that refuses stops no other."""
    return report_all(removal.plans, sessions, run, _remove_on_cluster)


def _removable(session: Session) -> tuple[ReleaseKind, ...]:
    """Find the releases in a cluster.

    Raises:
        Conflict: A pool or a node needs one.
        AccessError, ClusterError, CloudError: As look, and the cloud.
    """
    seen = look(session.kube())
    kinds = tuple(kind for kind in RELEASE_KINDS if is_there(seen.release_of(kind)))
    live = session.cloud.pools() if kinds else ()
    for kind in kinds:
        if names := needed_by(kind, live, seen):
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise Conflict(
                f"{', '.join(names[:_SHOWN])}{more} needs release {kind.address}",
                where=session.cluster.key,
                why=f"the label {ADVERTISER_LABEL}={kind.advertiser} asks for {kind.title}, which advertises the GPUs",
                fix="delete the pools first (gpukube pool delete), and wait until their nodes have left the cluster "
                f"(kubectl get nodes --selector {ADVERTISER_LABEL}={kind.advertiser})",
                code="release-needed",
            )
    return kinds


def _remove_on_cluster(plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    if plan.error is not None:
        raise plan.error
    key = plan.cluster.key
    run.report("check", "looking for gpukube's release, and for what needs it", key)
    kinds = _removable(session)
    if not kinds:
        return ClusterReport(plan.cluster, (), "release: gpukube has none here", removed=True)
    kube = session.kube()
    require_removable(kube, kinds, key)
    manager = open_manager(session, run)
    try:
        for kind in kinds:
            manager.take_away(kind)
    finally:
        manager.close()
    names = ", ".join(kind.address for kind in kinds)
    left = f"its CustomResourceDefinitions and namespace {NAMESPACE} stay, as others may use them"
    run.report("done", f"removed {names}", key)
    return ClusterReport(plan.cluster, (), f"release: {names} removed; {left}", removed=True)
