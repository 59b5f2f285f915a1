"""The device plugin's one release per cluster: what its values must be, and what that means for the live one.

Lives here: pools and live release -> chart values and a ReleasePlan; pure. Must not live here: running Helm, and
the content of a config entry (gpu.plugin_config).

What the values take care of (NVIDIA/k8s-device-plugin v0.20.0, chart and README):
- the chart's `migStrategy` overrides flags.migStrategy of every entry, so it is never set;
- helm merges maps, so `affinity: {}` keeps the chart's default terms; the list nodeSelectorTerms is replaced;
- `tolerations` replaces the default list, whose entries are therefore repeated; it does not reach NFD, whose workers
  tolerate nvidia.com/gpu=present:NoSchedule only (#734), and whose master and collector tolerate no GPU taint;
- a node label that names a missing entry makes the plugin exit on that node, so entries are only ever added, or
  retired when nothing names them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.jsontree import at, items, texts, tree
from gpukube.cluster.names import (
    CHART_NAME,
    CHART_VERSION,
    CONFIG_MAP_NAME,
    NAMESPACE,
    PLUGIN_NAME,
    RELEASE_NAME,
)
from gpukube.cluster.nfd import find_nfd
from gpukube.cluster.scheduling import tolerates
from gpukube.cluster.views import Toleration, placement_of
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL
from gpukube.gpu.plugin_config import UNSHARED, config_key, plugin_config, render_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.release import Release
    from gpukube.cluster.sighting import Sighting
    from gpukube.core.values import Desired, Observed, Taint

__all__ = [
    "DEFAULT_KEY",
    "ReleasePlan",
    "Surroundings",
    "ValueChange",
    "chart_values",
    "plan_release",
    "unknown_plan",
    "value_changes",
]

DEFAULT_KEY: Final = config_key(UNSHARED)
"""The entry of nodes without a label: whole GPUs."""
ReleaseAction = Literal["install", "upgrade", "none", "unknown"]

_AFFINITY_PATH: Final = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_AFFINITY: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": ADVERTISER_LABEL, "operator": "In", "values": ["chart"]}]}
            ]
        }
    }
}
_GPU_TAINTS: Final = Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule")
_PLUGIN_DEFAULTS: Final = (Toleration("CriticalAddonsOnly", "Exists"), _GPU_TAINTS)
_CONTROL_PLANE: Final = Toleration("node-role.kubernetes.io/control-plane", effect="NoSchedule")
_WORKER_DEFAULTS: Final = (
    Toleration("node-role.kubernetes.io/master", effect="NoSchedule"),
    _CONTROL_PLANE,
    _GPU_TAINTS,
)
_TOLERATION_LISTS: Final[tuple[tuple[tuple[str, ...], tuple[Toleration, ...]], ...]] = (
    (("tolerations",), _PLUGIN_DEFAULTS),
    (("nfd", "worker", "tolerations"), _WORKER_DEFAULTS),
    (("nfd", "master", "tolerations"), (_CONTROL_PLANE, _GPU_TAINTS)),
    (("nfd", "gc", "tolerations"), (_GPU_TAINTS,)),
)
"""Every list of tolerations that must cover the pools' taints, with the entries of the chart's own default (for NFD's
workers nvidia.com/gpu whatever its value)."""
_BANNED: Final = (
    "migStrategy",
    "nodeSelector",
    "devicePlugin",
    "nameOverride",
    "fullnameOverride",
    "namespaceOverride",
    "selectorLabelsOverride",
)
"""Values that would undo ours: taken out of the live ones."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One chart value that differs; None means absent. The path is dotted."""

    path: str
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the values must go along with, beside the pools asked for.

    Attributes:
        live: User values of the live release; what is not ours in them stays.
        taints: Taints of other live pools that the release serves.
        named: Entries that live pools and nodes name.
        bundle_nfd: Whether the chart brings NFD.
        retire: Entries to drop unless a pool or a node names them.
        missed: Values of revisions that were overwritten unseen.
    """

    live: Mapping[str, object] = field(default_factory=dict)
    taints: frozenset[Taint] = frozenset()
    named: frozenset[str] = frozenset()
    bundle_nfd: bool = True
    retire: frozenset[str] = frozenset()
    missed: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What will happen to the release of one cluster, and why.

    Attributes:
        action: "unknown" when the cluster's API could not be read.
        reason: One line, for "none" too.
        chart, version: What to install.
        values, old_values: User values after and before.
        changes: Values that differ.
        revision: Newest live revision the plan was made from; 0 when there is none.
        pending: Helm's word when a former run was cut off; "".
    """

    action: ReleaseAction
    reason: str
    values: Mapping[str, object]
    old_values: Mapping[str, object]
    changes: tuple[ValueChange, ...]
    revision: int = 0
    pending: str = ""
    version: str = CHART_VERSION
    chart: str = CHART_NAME
    name: str = RELEASE_NAME
    namespace: str = NAMESPACE

    @property
    def keys(self) -> tuple[str, ...]:
        """Config entries that the release will have."""
        return tuple(sorted(tree(self.values, "config", "map")))


def unknown_plan(reason: str) -> ReleasePlan:
    """Make the plan for a cluster whose API cannot be reached."""
    return ReleasePlan("unknown", reason, {}, {}, ())


def plan_release(  # noqa: PLR0913 -- each is a fact of its own, and callers name them
    pools: Sequence[Desired],
    seen: Sighting,
    *,
    live_pools: Sequence[Observed] = (),
    retire: frozenset[str] = frozenset(),
    missed: Sequence[Release] = (),
    chart_version: str = "",
) -> ReleasePlan:
    """Compare the release that these pools need with the live one.

    Args:
        pools: Declared pools of one cluster; those whose advertiser is the chart are served.
        seen: The cluster.
        live_pools: All pools of the cluster, of all owners: their labels name entries, their taints need tolerations.
        retire: Entries to drop if no pool and no node names them. Others are never dropped: another spec may
            have added one whose pool is still to come.
        missed: Revisions that an upgrade of ours replaced without having seen them; their entries come back.
        chart_version: Of the chart the user names; "" for ours, or the live one's if that is newer.
    """
    served = [pool for pool in pools if pool.ownership.advertiser == "chart"]
    live = seen.release
    if not served and not (live and retire):
        reason = "no pool of this spec needs it" if live is None else "no pool of this spec changes it"
        return _nothing(live, reason)
    around = Surroundings(
        live=live.values if live else {},
        taints=_live_taints(live_pools),
        named=_named_keys(seen, live_pools),
        bundle_nfd=find_nfd(seen) is None,
        retire=retire,
        missed=tuple(release.values for release in missed),
    )
    return _judge(chart_values(served, around), seen, chart_version)


def _nothing(live: Release | None, reason: str) -> ReleasePlan:
    values = live.values if live else {}
    return ReleasePlan("none", reason, values, values, (), live.revision if live else 0)


def _judge(values: dict[str, object], seen: Sighting, chart_version: str) -> ReleasePlan:
    live = seen.release
    if live is None:
        version = chart_version or CHART_VERSION
        reason = f"{CHART_NAME} {version} is not installed"
        return ReleasePlan("install", reason, values, {}, value_changes({}, values), version=version)
    changes = value_changes(live.values, values)
    version = chart_version or _newer(live.chart_version, CHART_VERSION)
    reasons = [
        f"{len(changes)} values differ" if len(changes) > 1 else f"{changes[0].path} differs" if changes else "",
        f"chart {live.chart_version} -> {version}" if version != live.chart_version else "",
        f"its last change ended as {live.status}" if live.status != "deployed" else "",
        *(() if changes else _drift(values, seen)),
    ]
    said = "; ".join(reason for reason in reasons if reason)
    return ReleasePlan(
        "upgrade" if said else "none",
        said or f"revision {live.revision} already serves these pools",
        values,
        live.values,
        changes,
        live.revision,
        live.status if live.pending else "",
        version,
    )


def _newer(live: str, ours: str) -> str:
    """Give the newer of two chart versions: a newer gpukube's release is not taken back."""
    return max(live, ours, key=_version_key)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else -1 for part in version.split("-", maxsplit=1)[0].split("."))


def _drift(values: Mapping[str, object], seen: Sighting) -> list[str]:
    """Find what was changed by hand behind a release whose values are right; an upgrade repairs it."""
    found = []
    plugin = next((item for item in seen.daemonsets if (item.namespace, item.name) == (NAMESPACE, PLUGIN_NAME)), None)
    if plugin is None:
        found.append(f"DaemonSet {PLUGIN_NAME} is gone")
    else:
        wanted = placement_of(values)
        if set(wanted.tolerations) - set(plugin.placement.tolerations):
            found.append(f"DaemonSet {PLUGIN_NAME} lost tolerations")
        if at(wanted.affinity, *_AFFINITY_PATH) != at(plugin.placement.affinity, *_AFFINITY_PATH):
            found.append(f"DaemonSet {PLUGIN_NAME} has another affinity")
    entries = {key: entry.strip() for key, entry in (seen.config_map or {}).items()}
    if entries != {key: entry.strip() for key, entry in texts(values, "config", "map").items()}:
        found.append(f"config map {CONFIG_MAP_NAME} has other entries")
    return found


def chart_values(pools: Sequence[Desired], around: Surroundings) -> dict[str, object]:
    """Merge what these pools need into the live values; deterministic, and the same for any order of pools."""
    values = copy.deepcopy({key: value for key, value in around.live.items() if key not in _BANNED})
    values["config"] = {"default": DEFAULT_KEY, "map": _merged_entries(pools, around)}
    values["affinity"] = copy.deepcopy(_AFFINITY)
    _set(values, ("gfd", "enabled"), new=True)
    _set(values, ("nfd", "enabled"), new=around.bundle_nfd)
    _set(values, ("nfd", "worker", "nodeSelector"), new={ADVERTISER_LABEL: "chart"})
    hard = {taint for pool in pools for taint in pool.effective_taints} | around.taints
    for path, defaults in _TOLERATION_LISTS:
        present = [item for source in (*around.missed, around.live) for item in items(source, *path)]
        _set(values, path, new=_tolerations(defaults, present, hard))
    return values


def _merged_entries(pools: Sequence[Desired], around: Surroundings) -> dict[str, str]:
    entries = _entries(pools)
    keep = around.named | entries.keys()
    older = [texts(source, "config", "map") for source in (*around.missed, around.live)]
    carried = {
        key: entry for source in older for key, entry in source.items() if key not in around.retire or key in keep
    }
    return dict(sorted((carried | entries).items()))


def _entries(pools: Sequence[Desired]) -> dict[str, str]:
    configs = [UNSHARED, *(plugin_config(pool.target.sharing) for pool in pools)]
    return {config_key(config): render_config(config).strip() for config in configs}


def _tolerations(defaults: Sequence[Toleration], present: Sequence[object], taints: Iterable[Taint]) -> list[object]:
    """Put the chart's defaults first, then what others added, then what our taints lack, the latter two sorted."""
    others = {_read(item): item for item in present}
    added = {item for item in others if item not in defaults}
    for taint in sorted(taints):
        if taint.effect != "PreferNoSchedule" and not tolerates((*defaults, *added), taint):
            added.add(Toleration(taint.key, "Equal", taint.value, taint.effect))
    return [others.get(item, _write(item)) for item in (*defaults, *sorted(added))]


def _read(item: object) -> Toleration:
    return placement_of({"tolerations": [item]}).tolerations[0]


def _write(item: Toleration) -> dict[str, object]:
    if item.operator == "Exists":
        written: dict[str, object] = {"key": item.key, "operator": "Exists"}
    else:
        written = {"key": item.key, "operator": "Equal", "value": item.value}
    return {**written, "effect": item.effect} if item.effect else written


def _live_taints(live_pools: Sequence[Observed]) -> frozenset[Taint]:
    served = (pool for pool in live_pools if pool.labels.get(ADVERTISER_LABEL) == "chart")
    return frozenset(taint for pool in served for taint in pool.effective_taints)


def _named_keys(seen: Sighting, live_pools: Sequence[Observed]) -> frozenset[str]:
    carriers = [*(node.labels for node in seen.nodes), *(pool.labels for pool in live_pools)]
    return frozenset(labels[CONFIG_LABEL] for labels in carriers if labels.get(CONFIG_LABEL))


def _set(values: dict[str, object], path: tuple[str, ...], *, new: object) -> None:
    branch = values
    for key in path[:-1]:
        below = tree(branch, key)
        branch[key] = below
        branch = below
    branch[path[-1]] = new


def value_changes(old: Mapping[str, object], new: Mapping[str, object], prefix: str = "") -> tuple[ValueChange, ...]:
    """List the leaves that differ, sorted by path; lists are leaves."""
    found: list[ValueChange] = []
    for key in sorted({*old, *new}):
        path = f"{prefix}{key}"
        before, after = old.get(key), new.get(key)
        if isinstance(before or {}, dict) and isinstance(after or {}, dict) and (before or after):
            found += value_changes(tree(before), tree(after), f"{path}.")
        elif before != after:
            found.append(ValueChange(path, before, after))
    return tuple(found)
