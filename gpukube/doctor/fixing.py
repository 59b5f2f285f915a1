"""Safe fixes of the doctor: node labels, DaemonSet restarts, and gpukube's release reconciled with the spec.

In scope: the writes, all idempotent. Out of scope: whether a fix is needed (the checks).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import NODES, RELEASE_TYPES
from gpukube.core.faults import LabelNode, Reconcile, Restart
from gpukube.core.jsontree import pointer, texts, tree
from gpukube.engine.change.clusters import prepare_cluster
from gpukube.engine.looking import plan_clusters
from gpukube.engine.plan.planning import Scope
from gpukube.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.faults import SafeFix
    from gpukube.core.jsontree import Tree
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_ATTEMPTS: Final = 5
"""Attempts to patch an object that others write at the same time."""
_RESTARTED: Final = "gpukube.io/restarted-at"
"""Annotation of the pod template; a new value makes the controller restart the pods, like kubectl's own."""


def apply_fixes(fixes: Sequence[SafeFix], session: Session, prepared: Prepared, run: Run) -> tuple[str, ...]:
    """Apply fixes: gpukube's release first, so that labels and restarts find it in its desired state.

    Returns:
        What was done, one line each; objects that somebody else changed meanwhile are omitted.

    Raises:
        AccessError: A write is not allowed.
        ClusterError, HelmError, Conflict: A call failed.
    """
    done = []
    for item in sorted(fixes, key=lambda each: not isinstance(each, Reconcile)):
        run.report("release", str(item), session.cluster.key)
        if isinstance(item, Reconcile):
            # Uses all the safety checks of a create, but no pool.
            key = session.cluster.key
            (plan,) = plan_clusters(
                replace(prepared, clusters={key: prepared.clusters[key]}, desired={key: prepared.desired[key]}),
                {key: session},
                run,
                Scope(retire=False),
            )
            prepare_cluster(plan, session, run)
            done.append(str(item))
        elif isinstance(item, LabelNode):
            done += [str(item)] if _label(session.kube(), item) else []
        else:
            done += [str(item)] if _restart(session.kube(), item, run.clock.now()) else []
    return tuple(done)


def _label(kube: Kube, desired: LabelNode) -> bool:
    # Only if the label is unchanged since it was read: a later change may be intended.
    for _ in range(_ATTEMPTS):
        node = kube.find_object(NODES, desired.node)
        if node is None or texts(node, "metadata", "labels").get(desired.key) != desired.live:
            return False
        path = pointer("metadata", "labels", desired.key)
        operation = {"op": "remove", "path": path}
        if desired.desired is not None:
            operation = {"op": "add", "path": path, "value": desired.desired}
        if kube.change_object(NODES, node, [operation]):
            return True
    raise _contended(kube, f"node {desired.node}")


def _restart(kube: Kube, desired: Restart, now: float) -> bool:
    kind: ApiType = RELEASE_TYPES["DaemonSet"]
    # The patch applies only to the version that was read, and each pod changes a DaemonSet's status.
    for _ in range(_ATTEMPTS):
        live = kube.find_object(kind, desired.name, desired.namespace)
        if live is None:
            return False
        if kube.change_object(kind, live, [_stamp(live, f"{now:.0f}")]):
            return True
    raise _contended(kube, f"DaemonSet {desired.namespace}/{desired.name}")


def _stamp(live: Tree, moment: str) -> Tree:
    path = ("spec", "template", "metadata", "annotations")
    if tree(live, *path):
        return {"op": "add", "path": pointer(*path, _RESTARTED), "value": moment}
    return {"op": "add", "path": pointer(*path), "value": {_RESTARTED: moment}}


def _contended(kube: Kube, what: str) -> ClusterError:
    return ClusterError(
        f"{what} changed during each attempt to fix it",
        where=kube.server,
        fix="find what writes to it (kubectl get --output yaml --show-managed-fields), then run again",
        code="cluster-answer",
    )
