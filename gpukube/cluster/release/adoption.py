"""Adopting a release of the plugin's chart that the user installed with Helm: its values and its nodes.

In scope: finding such releases, and what prevents an adoption. Out of scope: uninstalling (removal), the plan (plan),
and other advertisers, which are never adopted (state.advertisers).

gpukube's own release replaces it, rather than continuing under its name: its plugin also runs on nodes that gpukube
must not touch, and two releases of one chart would be two plugins. It is uninstalled with its history kept, so that a
run killed in between still finds its values; the history is deleted once gpukube's release is deployed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.cluster.kube.releases import find_releases
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.migration import OutgoingRelease, is_there
from gpukube.cluster.release.shared_values import put
from gpukube.cluster.state.release_drift import manifest_objects
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.core.jsontree import items, text, texts, tree
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.core.yamltext import parse_yaml
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.releases import Release, SecretReader
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.state.advertisers import ForeignAdvertiser
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired

_OWN: Final = (NAMESPACE, DEVICE_PLUGIN.name)
_SHOWN: Final = 3
_ENTRIES: Final = DEVICE_PLUGIN.entries
_CUTTING: Final = ("single", "mixed")
_PRODUCT: Final = "nvidia.com/gpu.product"
_CUT_PRODUCT: Final = "-MIG-"
"""Part of GFD's product label under `single` (NVIDIA/k8s-device-plugin docs/gpu-feature-discovery, MIG strategies)."""
_MIG: Final = "nvidia.com/mig-"


def adoptable_releases(kube: SecretReader, seen: Snapshot) -> tuple[Release, ...]:
    """Return the releases of the plugin's chart that are not gpukube's, in all namespaces.

    A release uninstalled with its history kept counts until gpukube's is installed: an adoption may have been
    interrupted after that step.

    Raises:
        AccessError: Secrets may not be listed in all namespaces.
        ClusterError: The API did not answer.
    """
    installed = is_there(seen.release_of(DEVICE_PLUGIN))
    found = [item for item in find_releases(kube) if item.chart == DEVICE_PLUGIN.chart]
    return tuple(item for item in found if (item.namespace, item.name) != _OWN and (is_there(item) or not installed))


def with_meaning(release: Release) -> Release:
    """Write the chart's `migStrategy` into a release's entries, because gpukube's release does not set it.

    It is an environment variable of the plugin, which overrides the entries (NVIDIA/k8s-device-plugin README,
    "Configuration Option Details"): without it the user's entries would have another meaning.
    """
    strategy = text(release.values, "migStrategy")
    entries = {name: _with_strategy(entry, strategy) for name, entry in texts(release.values, *_ENTRIES).items()}
    if not strategy or not entries:
        return release
    values = dict(release.values)
    put(values, _ENTRIES, entries)
    return replace(release, values=values)


def _with_strategy(entry: str, strategy: str) -> str:
    try:
        config = tree(parse_yaml(entry))
    except yaml.YAMLError:
        return entry
    if not config or text(config, "flags", "migStrategy") == strategy:
        return entry
    flags = {**tree(config, "flags"), "migStrategy": strategy}
    return str(yaml.safe_dump({**config, "flags": flags}, sort_keys=False))


def outgoing_release(release: Release) -> OutgoingRelease:
    """Return an adopted release as one that leaves."""
    return OutgoingRelease(
        name=release.name,
        namespace=release.namespace,
        title=f"your {release.chart} {release.chart_version}, whose values are adopted",
        plugin=_plugin_of(release),
        kind=None,
        there=is_there(release),
    )


def _plugin_of(release: Release) -> str:
    """Return the name of the DaemonSet that advertises: it has the chart's own container."""
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
        adopted: Releases that the user allows to be adopted.
        kind: Release that the cluster should have.
        served: Declared pools that the release serves.
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
        message = f"release {first.namespace}/{first.name} uses {first.chart}, but these pools need {kind.title}"
        return [_refusal(where, message, f"remove it: {uninstall}; or move these pools to another cluster")]
    external = text(first.values, "config", "name")
    if external:
        message = (
            f"the entries of release {first.namespace}/{first.name} are in ConfigMap {external}, outside the release"
        )
        return [_refusal(where, message, f"move them into its value config.map first; or remove it: {uninstall}")]
    return [*_refuse_unserved(first, served, seen, where), *_refuse_cut(first, served, seen, where)]


def _refuse_cut(release: Release, served: Sequence[Desired], seen: Snapshot, where: Where) -> list[Finding]:
    """Report nodes with MIG instances that would get the entry for whole GPUs because no declared pool sets another."""
    strategy = text(release.values, "migStrategy")
    marks = {(pool.target.owner, pool.target.pool) for pool in served}
    names = sorted(
        node.name
        for node in seen.nodes
        if strategy in _CUTTING
        and _is_cut(node)
        and _is_served(node, release, seen)
        and not node.labels.get(CONFIG_LABEL)
        and (node.labels.get(OWNER_LABEL, ""), node.labels.get(POOL_LABEL, "")) not in marks
    )
    if not names or any(not _is_ours(node, marks) for node in seen.nodes if node.name in names):
        return []  # those are unserved nodes
    return [
        _refusal(
            where,
            f"{', '.join(names)} would lose migStrategy {strategy} of release {release.namespace}/{release.name}",
            "declare their pools (gpukube pool import writes them), or keep that release, and write "
            "devicePlugin.owner: none",
        )
    ]


def _is_cut(node: NodeView) -> bool:
    """Return whether a node advertises MIG instances: by their names, or under `single` by GFD's product label."""
    return _CUT_PRODUCT in node.labels.get(_PRODUCT, "") or any(name.startswith(_MIG) for name in node.devices)


def _refuse_unserved(release: Release, served: Sequence[Desired], seen: Snapshot, where: Where) -> list[Finding]:
    """Report nodes that would lose their only plugin."""
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


def still_foreign(
    found: Iterable[ForeignAdvertiser], leaves: Iterable[OutgoingRelease]
) -> tuple[ForeignAdvertiser, ...]:
    """Return the foreign advertisers that are not adopted."""
    going = {(item.namespace, item.plugin) for item in leaves if item.kind is None}
    return tuple(item for item in found if (item.namespace, item.name) not in going)
