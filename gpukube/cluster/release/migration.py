"""Migrating from one release to the other: what must leave, which nodes would lose their plugin, and the messages.

In scope: a snapshot and pools -> what leaves and what prevents it; pure. Out of scope: uninstalling (removal), and the
plan of the new release (plan).

A node never has two advertisers at once: the outgoing release is uninstalled, and its plugin's pods are gone, before
    the other is installed. Nodes move when their pools' labels change, which applying the pools does afterwards. A run
    that was killed between any two of these steps detects what is left, and does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE, RELEASE_KINDS
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed

_AWAY: Final = "uninstalled"
"""Status of a release of which only the history remains (helm uninstall --keep-history)."""
_SHARED_BY: Final = "nvidia.com/gpu.sharing-strategy"
"""Node label set by GFD (NVIDIA/k8s-device-plugin docs/gpu-feature-discovery)."""
_WHY_ONE: Final = "both would advertise GPUs, and a cluster has one release of them"


@dataclass(frozen=True, slots=True)
class OutgoingRelease:
    """A release that must be gone before another one is installed.

    Attributes:
        name, namespace: Name and namespace of the release.
        title: Human-readable name.
        plugin: Name of its DaemonSet that advertises.
        kind: Its kind if it is gpukube's; None for a user's release that is adopted.
        there: Whether the release still exists; otherwise only pods of its plugin do, which must terminate first.
    """

    name: str
    namespace: str
    title: str
    plugin: str
    kind: ReleaseKind | None
    there: bool = True

    @property
    def address(self) -> str:
        """Namespace and name, as printed in messages."""
        return f"{self.namespace}/{self.name}"


def is_there(release: Release | None) -> bool:
    """Return whether more of a release exists than its history."""
    return release is not None and release.status != _AWAY


def find_outgoing(kind: ReleaseKind, seen: Snapshot) -> tuple[OutgoingRelease, ...]:
    """Return what is left of gpukube's other release if `kind` is required: the release, or its plugin's pods."""
    found = []
    for other in RELEASE_KINDS:
        there = is_there(seen.release_of(other))
        pods = any(pod.owner_kind == "DaemonSet" and pod.owner == other.plugin for pod in seen.pods)
        if other is not kind and (there or pods or seen.plugin_of(other) is not None):
            found.append(
                OutgoingRelease(
                    name=other.name,
                    namespace=NAMESPACE,
                    title=other.title,
                    plugin=other.plugin,
                    kind=other,
                    there=there,
                )
            )
    return tuple(found)


def refuse_change(kind: ReleaseKind, other: ReleaseKind, served: Sequence[Desired]) -> Finding:
    """Report a required migration that the user has not allowed, with both ways to resolve it."""
    names = ", ".join(pool.target.pool for pool in served)
    stays = (
        "to keep the chart, move the MIG pools to another cluster"
        if kind is GPU_OPERATOR
        else "to keep the operator, pass these pools and the MIG pool in one run (-f for both files), so that it "
        "serves them all"
    )
    return Finding(
        "release-migration",
        _where(served),
        f"{names} needs {kind.title}, but release {other.address} ({other.title}) is installed",
        why=f"{_WHY_ONE}; between the removal of one and the installation of the other, new pods get no GPU",
        fix=f"{stays}; or, to switch: --migrate-release uninstalls it first",
    )


def refuse_stranding(
    outgoing: Sequence[OutgoingRelease], served: Sequence[Desired], seen: Snapshot, live_pools: Sequence[Observed]
) -> list[Finding]:
    """Report a migration that would leave other owners' pools or nodes without a plugin.

    Args:
        outgoing: Releases that leave.
        served: Declared pools; their labels change with the migration.
        seen: The cluster.
        live_pools: All pools of the cluster.
    """
    declared = {(pool.target.owner, pool.target.pool) for pool in served}
    found = []
    for item in outgoing:
        if item.kind is None:
            continue
        pools = [pool for pool in live_pools if pool.labels.get(ADVERTISER_LABEL) == item.kind.advertiser]
        nodes = [node for node in seen.nodes if node.labels.get(ADVERTISER_LABEL) == item.kind.advertiser]
        marks = declared | {(pool.owner, pool.pool) for pool in pools}
        names = [f"pool {pool.name}" for pool in pools if (pool.owner, pool.pool) not in declared]
        names += [f"node {n.name}" for n in nodes if (n.labels.get(OWNER_LABEL), n.labels.get(POOL_LABEL)) not in marks]
        if names:
            found.append(_stranding(item, _where(served), sorted(names)))
    return found


def _stranding(item: OutgoingRelease, where: Where, names: Sequence[str]) -> Finding:
    return Finding(
        "release-migration",
        where,
        f"release {item.address} ({item.title}) also serves {', '.join(names)}, which would be left without a plugin",
        why=f"the label {ADVERTISER_LABEL} selects the release, and only applying a pool's own spec changes it",
        fix="pass all their specs in one run (-f for each file), without --pool; or delete these pools first",
    )


def describe_outgoing(outgoing: Sequence[OutgoingRelease], seen: Snapshot) -> str:
    """Describe in one line what is uninstalled, and what that means until the new release runs."""
    gone = [f"{item.address} ({item.title}) is uninstalled" for item in outgoing if item.there]
    going = [f"the pods of {item.plugin} must end first" for item in outgoing if not item.there]
    shared = any(node.labels.get(_SHARED_BY) == "mps" for node in seen.nodes)
    keep = "running pods keep theirs" + (", except those that share one by MPS" if shared else "")
    gap = f"until the nodes have the new plugin, new pods get no GPU; {keep}"
    return "; ".join([*gone, *going, gap])


def _where(served: Sequence[Desired]) -> Where:
    return Where(served[0].target.cluster.key)
