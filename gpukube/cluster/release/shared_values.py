"""What the values of the charts share: config entries, tolerations, and existing live values.

In scope: merging into trees of values; pure. Out of scope: paths in a chart's values (plugin_values, operator_values,
dra_values), and the content of a config entry (gpu.plugin_config).

A node label that names a missing entry makes the plugin exit on that node, so entries are only ever added, or retired
once nothing names them. A list of tolerations replaces the chart's own, whose entries are therefore repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import Toleration, placement_of
from gpukube.cluster.state.scheduling import tolerates
from gpukube.core.jsontree import items, texts, tree
from gpukube.gpu.plugin_config import KEY_LENGTH, UNSHARED, config_key, plugin_config, render_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed, Taint

DEFAULT_KEY: Final = config_key(UNSHARED)
"""Entry for nodes without a label: whole GPUs."""
GPU_TAINTS: Final = Toleration("nvidia.com/gpu", "Exists", effect="NoSchedule")
CONTROL_PLANE: Final = Toleration("node-role.kubernetes.io/control-plane", effect="NoSchedule")
_OF_OURS: Final = re.compile(rf"c-[0-9a-f]{{{KEY_LENGTH}}}")
"""Names of gpukube's entries (config_key); users created entries with other names, which are never dropped."""


@dataclass(frozen=True, slots=True)
class ReleaseContext:
    """What the values depend on in addition to the requested pools.

    Attributes:
        live: User values of the live release; those that are not gpukube's stay.
        taints: Taints of other live pools that the release serves.
        named: Entries that live pools and nodes name.
        by_others: Those of them that pools outside the request name: the requested ones are about to change theirs.
        bundle_nfd: Whether the chart installs NFD.
        retire: Whether to drop gpukube's entries that no pool and no node names.
        dropped: Entries that this run or a concurrent one has dropped; a pool or node that names one brings it back.
        missed: Values of revisions that were overwritten unseen.
        moves: Whether a live release changes to another version of its chart.
        version: Version of the chart; "" if unknown.
    """

    live: Mapping[str, object] = field(default_factory=dict)
    taints: frozenset[Taint] = frozenset()
    named: frozenset[str] = frozenset()
    by_others: frozenset[str] = frozenset()
    bundle_nfd: bool = True
    retire: bool = False
    dropped: frozenset[str] = frozenset()
    missed: tuple[Mapping[str, object], ...] = ()
    moves: bool = False
    version: str = ""

    def all_taints(self, pools: Sequence[Desired]) -> frozenset[Taint]:
        """Return the taints of every served pool, requested and live."""
        return self.taints | {taint for pool in pools for taint in pool.effective_taints}

    def listed(self, path: tuple[str, ...]) -> list[object]:
        """Return the items of a list in live and overwritten values."""
        return [item for source in (*self.missed, self.live) for item in items(source, *path)]


def merged_entries(pools: Sequence[Desired], context: ReleaseContext, path: tuple[str, ...]) -> dict[str, str]:
    """Return the entries that these pools need, the default one, and others' existing ones, sorted by key."""
    configs = [UNSHARED, *(plugin_config(pool.target.sharing) for pool in pools)]
    entries = {config_key(config): render_config(config).strip() for config in configs}
    dropped = unneeded_entries(context, path, entries)
    older = [texts(source, *path) for source in (*context.missed, context.live)]
    carried = {key: entry for source in older for key, entry in source.items() if key not in dropped}
    return dict(sorted((carried | entries).items()))


def unneeded_entries(context: ReleaseContext, path: tuple[str, ...], needed: Iterable[str] = ()) -> frozenset[str]:
    """Return the gpukube entries to drop, which no pool and no node names; never the default one.

    Args:
        context: The live release, what names entries, and revisions overwritten unseen: the run that wrote one may be
            about to create a pool that needs it.
        path: Path of the entries in the values.
        needed: Entries that declared pools need.
    """
    candidates = set(context.dropped)
    if context.retire:
        candidates |= texts(context.live, *path).keys() - {key for one in context.missed for key in texts(one, *path)}
    return frozenset(filter(_OF_OURS.fullmatch, candidates - {DEFAULT_KEY, *needed, *context.named}))


def cover_taints(
    values: dict[str, object],
    lists: Iterable[tuple[tuple[str, ...], tuple[Toleration, ...]]],
    pools: Sequence[Desired],
    context: ReleaseContext,
) -> None:
    """Write every list of tolerations: path in the values, and the entries of the chart's own default."""
    hard = context.all_taints(pools)
    for path, defaults in lists:
        # The chart's defaults first, then what others added, then missing taints of the pools, the latter two sorted.
        others = {placement_of({"tolerations": [item]}).tolerations[0]: item for item in context.listed(path)}
        added = {item for item in others if item not in defaults}
        for taint in sorted(hard):
            if taint.effect != "PreferNoSchedule" and not tolerates((*defaults, *added), taint):
                added.add(Toleration(taint.key, "Equal", taint.value, taint.effect))
        put(values, path, [others.get(item, _write(item)) for item in (*defaults, *sorted(added))])


def _write(item: Toleration) -> dict[str, object]:
    if item.operator == "Exists":
        written: dict[str, object] = {"key": item.key, "operator": "Exists"}
    else:
        written = {"key": item.key, "operator": "Equal", "value": item.value}
    return {**written, "effect": item.effect} if item.effect else written


def served_names(
    seen: Snapshot, live_pools: Sequence[Observed], is_served: Callable[[Mapping[str, str]], bool]
) -> list[str]:
    """Name the live pools that a release serves by their labels, or if there are none the nodes."""
    pools = [f"pool {item.name}" for item in live_pools if is_served(item.labels)]
    return pools or [f"node {node.name}" for node in seen.nodes if is_served(node.labels)]


def put(values: dict[str, object], path: tuple[str, ...], new: object) -> None:
    """Set one value without changing the trees that `values` was made from."""
    branch = values
    for key in path[:-1]:
        below = tree(branch, key)
        branch[key] = below
        branch = below
    branch[path[-1]] = new
