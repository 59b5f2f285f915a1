"""Removes gpukube's releases from clusters where no pool and no node needs them any more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gpukube.cluster.kube.api_types import RESOURCE_CLAIMS
from gpukube.cluster.names import ALL_KINDS, DRA_DRIVER, NAMESPACE
from gpukube.cluster.release.migration import is_there
from gpukube.cluster.release.shared_values import served_names
from gpukube.cluster.state.published import driver_results
from gpukube.cluster.state.snapshot import look
from gpukube.core.jsontree import text
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.engine.change.clusters import report_all
from gpukube.engine.change.release import open_manager, require_removable
from gpukube.engine.run.fanout import run_all
from gpukube.engine.run.report import ClusterReport
from gpukube.errors import Conflict, GpukubeError
from gpukube.gpu.claims import DRIVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Observed
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Removal:
    """Releases to remove.

    Attributes:
        plans: Plans of all clusters.
        kinds: By cluster key: gpukube's releases that exist and that nothing needs.
    """

    plans: tuple[ClusterPlan, ...]
    kinds: Mapping[str, tuple[ReleaseKind, ...]]

    def releases(self) -> list[str]:
        """Return the names of the releases to remove."""
        return [f"{key}: release {kind.address}" for key, kinds in self.kinds.items() for kind in kinds]


def needed_by(kind: ReleaseKind, pools: Sequence[Observed], seen: Snapshot) -> list[str]:
    """Return the live pools of all owners that need a release, or if there are none the nodes, by their label."""
    return sorted(served_names(seen, pools, kind.carries))


def plan_release_removal(plans: Sequence[ClusterPlan], sessions: Mapping[str, Session], run: Run) -> Removal:
    """Find gpukube's releases that can be removed; a cluster that fails here is reported by the removal."""

    def removable(key: str) -> tuple[ReleaseKind, ...]:
        try:
            return _removable(sessions[key])
        except GpukubeError:
            return ()

    tasks = {plan.cluster.key: partial(removable, plan.cluster.key) for plan in plans if plan.error is None}
    found = run_all(tasks, run.parallelism)
    return Removal(tuple(plans), {key: kinds for key, kinds in found.items() if isinstance(kinds, tuple)})


def remove_releases(removal: Removal, sessions: Mapping[str, Session], run: Run) -> tuple[ClusterReport, ...]:
    """Uninstall the releases per cluster, after checking again; a cluster that fails does not stop the others."""
    return report_all(removal.plans, sessions, run, _remove_on_cluster)


def _removable(session: Session) -> tuple[ReleaseKind, ...]:
    """Return the cluster's releases that nothing needs.

    Raises:
        Conflict: Pools or nodes need all that exist, or claims have devices of the DRA driver.
        AccessError, ClusterError, CloudError: See look, and the cloud.
    """
    kube = session.kube()
    seen = look(kube)
    kinds = tuple(kind for kind in ALL_KINDS if is_there(seen.release_of(kind)))
    live = session.cloud.pools() if kinds else ()
    needed = {kind: needed_by(kind, live, seen) for kind in kinds}
    free = tuple(kind for kind in kinds if not needed[kind])
    if kinds and not free:
        raise _still_needed(kinds[0], needed[kinds[0]], session)
    if DRA_DRIVER in free and (claims := _allocated(kube)):
        raise Conflict(
            f"ResourceClaims have devices of {DRIVER}: {_some(claims)}",
            where=session.cluster.key,
            why="without the driver, nothing frees their devices on the nodes, and their pods do not end",
            fix="delete the pods and claims first: kubectl get resourceclaims --all-namespaces shows them",
            code="release-needed",
        )
    return free


def _still_needed(kind: ReleaseKind, names: Sequence[str], session: Session) -> Conflict:
    return Conflict(
        f"{_some(names)} needs release {kind.address}",
        where=session.cluster.key,
        why=f"the label {ADVERTISER_LABEL}={kind.advertiser} requires {kind.title}, which advertises the GPUs",
        fix="delete the pools first (gpukube pool delete), and wait until their nodes have left the cluster "
        f"(kubectl get nodes --selector {ADVERTISER_LABEL}={kind.advertiser})",
        code="release-needed",
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _allocated(kube: Kube) -> list[str]:
    """Return namespace and name of the claims that have devices of NVIDIA's DRA driver."""
    return sorted(
        f"{text(claim, 'metadata', 'namespace')}/{text(claim, 'metadata', 'name')}"
        for claim in kube.objects(RESOURCE_CLAIMS) or ()
        if driver_results(claim)
    )


def _remove_on_cluster(plan: ClusterPlan, session: Session, run: Run) -> ClusterReport:
    if plan.error is not None:
        raise plan.error
    key = plan.cluster.key
    run.report("check", "reading gpukube's releases and what needs them", key)
    kinds = _removable(session)
    if not kinds:
        return ClusterReport(plan.cluster, (), "release: gpukube has no release here", removed=True)
    kube = session.kube()
    require_removable(kube, kinds, key)
    manager = open_manager(session, run)
    try:
        # The DRA driver before the operator: it frees devices with the driver that the operator may have installed.
        for kind in reversed(kinds):
            manager.take_away(kind)
    finally:
        manager.close()
    names = ", ".join(kind.address for kind in kinds)
    whose = "its" if len(kinds) == 1 else "their"
    left = f"{whose} CustomResourceDefinitions and namespace {NAMESPACE} stay, as others may use them"
    run.report("done", f"removed {names}", key)
    return ClusterReport(plan.cluster, (), f"release: {names} removed; {left}", removed=True)
