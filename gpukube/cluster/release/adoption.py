"""Adopting a release of the plugin's chart that the user made with Helm: what becomes of its values and its nodes.

Lives here: finding such releases, and what stands against a takeover. Must not live here: taking it away
(removal), the plan (plan), and other advertisers, which are never taken over (state.advertisers).

It is taken over by our own release, not kept under its name: its plugin goes to nodes that ours must not touch, and
two releases of one chart beside each other would be two plugins. It is uninstalled with its history kept, so that a
run killed in between still finds its values; the history goes when ours is deployed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.releases import find_releases
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.migration import Leaving, is_there
from gpukube.cluster.state.release_drift import manifest_objects
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.core.jsontree import items, text
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.releases import Release, SecretReader
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.advertisers import ForeignAdvertiser
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired

_OURS: Final = (NAMESPACE, DEVICE_PLUGIN.name)
_SHOWN: Final = 3


def adoptable_releases(kube: SecretReader, seen: Snapshot) -> tuple[Release, ...]:
    """Find the releases of the plugin's chart that are not ours, in all namespaces.

    One that was uninstalled with its history kept counts as long as ours is not there: a takeover may have been cut
    off after it.

    Raises:
        AccessError: Secrets may not be listed in all namespaces.
        ClusterError: The API did not answer.
    """
    ours = is_there(seen.release_of(DEVICE_PLUGIN))
    found = [item for item in find_releases(kube) if item.chart == DEVICE_PLUGIN.chart]
    return tuple(item for item in found if (item.namespace, item.name) != _OURS and (is_there(item) or not ours))


def leaving_of(release: Release) -> Leaving:
    """Describe a release that is taken over as one that leaves."""
    return Leaving(
        name=release.name,
        namespace=release.namespace,
        title=f"your {release.chart} {release.chart_version}, whose values are adopted",
        plugin=_plugin_of(release),
        kind=None,
        there=is_there(release),
    )


def _plugin_of(release: Release) -> str:
    """Name the DaemonSet that advertises: it has the chart's own container."""
    for obj in manifest_objects(release.manifest):
        containers = [text(item, "name") for item in items(obj, "spec", "template", "spec", "containers")]
        if text(obj, "kind") == "DaemonSet" and DEVICE_PLUGIN.container in containers:
            return text(obj, "metadata", "name")
    return release.name


def refuse_adoption(
    adopted: Sequence[Release], kind: ReleaseKind, served: Sequence[Desired], seen: Snapshot
) -> list[Finding]:
    """Return what prevents the adoption of these releases, each with a fix.

    Args:
        adopted: Releases the user allows to be taken over.
        kind: Which release the cluster shall have.
        served: Declared pools that it serves.
        seen: The cluster.
    """
    if not adopted:
        return []
    where = Where(served[0].target.cluster.key)
    first = adopted[0]
    uninstall = f"helm uninstall {first.name} --namespace {first.namespace}"
    if len(adopted) > 1:
        names = ", ".join(f"{item.namespace}/{item.name}" for item in adopted)
        message = f"there are {len(adopted)} releases of {first.chart}: {names}"
        return [_refusal(where, message, f"keep one: {uninstall}")]
    if kind is not DEVICE_PLUGIN:
        message = f"release {first.namespace}/{first.name} is of {first.chart}, but these pools need {kind.title}"
        return [_refusal(where, message, f"remove it: {uninstall}; or put these pools on another cluster")]
    external = text(first.values, "config", "name")
    if external:
        message = (
            f"the entries of release {first.namespace}/{first.name} are in ConfigMap {external}, outside the release"
        )
        return [_refusal(where, message, f"move them into its value config.map first; or remove it: {uninstall}")]
    return _refuse_strays(first, served, seen, where)


def _refuse_strays(release: Release, served: Sequence[Desired], seen: Snapshot, where: Where) -> list[Finding]:
    """Refuse when nodes that only their plugin serves would be left without one."""
    marks = {(pool.target.owner, pool.target.pool) for pool in served}
    names = sorted(node.name for node in seen.nodes if _is_served(node, release, seen) and not _is_ours(node, marks))
    if not names:
        return []
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [
        _refusal(
            where,
            f"release {release.namespace}/{release.name} also serves {', '.join(names[:_SHOWN])}{more}, which would be "
            "left without a plugin",
            f"let gpukube serve them: kubectl label node {' '.join(names)} "
            f"{ADVERTISER_LABEL}={DEVICE_PLUGIN.advertiser} "
            "(and in their pools, for new nodes); or keep that release, and write devicePlugin.owner: none",
        )
    ]


def _is_served(node: NodeView, release: Release, seen: Snapshot) -> bool:
    plugin = (release.namespace, _plugin_of(release))
    placed = [item.placement for item in seen.daemonsets if (item.namespace, item.name) == plugin]
    return bool(node.devices) and any(
        not daemon_misfits(placement, node.labels, node.taints, name=node.name) for placement in placed
    )


def _is_ours(node: NodeView, marks: set[tuple[str, str]]) -> bool:
    labelled = node.labels.get(ADVERTISER_LABEL) == DEVICE_PLUGIN.advertiser
    return labelled or (node.labels.get(OWNER_LABEL, ""), node.labels.get(POOL_LABEL, "")) in marks


def _refusal(where: Where, message: str, fix: str) -> Finding:
    why = "after an adoption every GPU node must have exactly one plugin"
    return Finding("foreign-advertiser", where, message, why=why, fix=fix)


def still_foreign(found: Iterable[ForeignAdvertiser], leaves: Iterable[Leaving]) -> tuple[ForeignAdvertiser, ...]:
    """Leave out of the foreign advertisers what is taken over."""
    going = {(item.namespace, item.plugin) for item in leaves if item.kind is None}
    return tuple(item for item in found if (item.namespace, item.name) not in going)
