"""The one release of a cluster: which chart it is, what its values must be, and what that means for the live one.

Lives here: pools and a sighting -> ReleasePlan; pure. Must not live here: the values (plugin, operator), running Helm.

A cluster has one release. The device plugin's chart and the GPU Operator beside each other would be two plugins on one
node, and going from one to the other takes a moment without any: that is never done unasked.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.releases import DEPLOYED
from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR, NAMESPACE, RELEASE_KINDS, ReleaseKind
from gpukube.cluster.release.adoption import leaving_of, refuse_adoption
from gpukube.cluster.release.chart_settings import asked_version, check_own_values
from gpukube.cluster.release.migration import find_leaving, is_there, refuse_change, refuse_stranding, say_leaving
from gpukube.cluster.release.operator_values import (
    check_declared_strategies,
    check_drivers,
    check_strategies,
    operator_strays,
    operator_values,
)
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import Surroundings, put, unneeded_entries
from gpukube.cluster.state.nfd import find_nfd
from gpukube.cluster.state.release_drift import find_drift, manifest_objects, say_drift
from gpukube.core.jsontree import texts, tree
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.migration import Leaving
    from gpukube.cluster.state.release_drift import Drift
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed, Taint

ReleaseAction = Literal["install", "upgrade", "none", "conflict", "unknown"]


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One chart value that differs; None means absent. The path is dotted."""

    path: str
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """What will happen to the release of one cluster, and why.

    Attributes:
        action: "unknown" when the cluster's API could not be read; "conflict" when nothing may be done, as diagnostics
            say.
        reason: One line, for "none" too.
        values, old_values: User values after and before.
        changes: Values that differ.
        revision: Newest live revision the plan was made from; 0 when there is none.
        pending: Helm's word when a former run was cut off; "".
        version: Of the chart to install.
        kind: Which chart it is.
        diagnostics: What stands against it.
        drift: Fields of its objects that somebody changed by hand, and objects that are gone; restored.
        leaves: What is taken away before.
        adopted: Releases of the user's whose values are in these.
        digest: Of the chart that the plan was made with, "sha256:..."; "" when it was not fetched.
    """

    action: ReleaseAction
    reason: str
    values: Mapping[str, object]
    old_values: Mapping[str, object]
    changes: tuple[ValueChange, ...]
    revision: int = 0
    pending: str = ""
    version: str = DEVICE_PLUGIN.version
    kind: ReleaseKind = DEVICE_PLUGIN
    diagnostics: tuple[Finding, ...] = ()
    drift: tuple[Drift, ...] = ()
    leaves: tuple[Leaving, ...] = ()
    adopted: tuple[Release, ...] = ()
    digest: str = ""

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.kind.name

    @property
    def namespace(self) -> str:
        """Where it is."""
        return NAMESPACE

    @property
    def chart(self) -> str:
        """Name of the chart."""
        return self.kind.chart

    @property
    def keys(self) -> tuple[str, ...]:
        """Config entries that the release will have."""
        return tuple(sorted(tree(self.values, *self.kind.entries)))


_VALUES: Final[Mapping[ReleaseKind, Callable[[Sequence[Desired], Surroundings], dict[str, object]]]] = {
    DEVICE_PLUGIN: chart_values,
    GPU_OPERATOR: operator_values,
}


def check_values(pools: Sequence[Desired]) -> list[Finding]:
    """Find what pools of one cluster may not ask of the values of its release."""
    found: list[Finding] = []
    for kind in RELEASE_KINDS:
        served = [pool for pool in pools if pool.ownership.advertiser == kind.advertiser]
        if any(pool.target.chart_values for pool in served):
            found += check_own_values(served, _VALUES[kind](served, Surroundings()))
    operated = [pool for pool in pools if pool.ownership.advertiser == GPU_OPERATOR.advertiser]
    return [*found, *check_declared_strategies(operated)]


def plan_release(  # noqa: PLR0913 -- each is a fact of its own, and callers name them
    pools: Sequence[Desired],
    seen: Snapshot,
    *,
    live_pools: Sequence[Observed] = (),
    retire: bool = False,
    missed: Sequence[Release] = (),
    chart_version: str = "",
    migrate: bool = False,
    adopt: Sequence[Release] = (),
) -> ReleasePlan:
    """Compare the release that these pools need with the live one.

    Args:
        pools: Declared pools of one cluster; those whose advertiser is the chart or the operator are served.
        seen: The cluster.
        live_pools: All pools of the cluster, of all owners: their labels name entries, their taints need tolerations.
        retire: Drop entries of ours that no declared pool needs and no live pool and no node names, also when no pool
            of this spec is served. Without it nothing is dropped: another spec may have added an entry whose pool is
            still to come.
        missed: Revisions that an upgrade of ours replaced without having seen them; their entries come back.
        chart_version: Of the chart the user names; "" for ours, or the live one's if that is newer.
        migrate: Whether our other release may be taken away for this one; its entries are carried over.
        adopt: Releases of the user's that may be taken over (release_adoption); their values are merged into ours.

    Returns:
        The plan of one release. It is a "conflict" when the cluster has the other one and it may not go, or would get
        it besides, or when a migration or takeover would leave nodes of others without a plugin, the operator would
        take over nodes of others, or cannot serve these pools together.
    """
    kind = _kind_needed(pools, seen)
    served = [pool for pool in pools if pool.ownership.advertiser == kind.advertiser]
    live = seen.release_of(kind)
    if not served and not (retire and live and is_there(live)):
        reason = "no pool of this spec needs it" if live is None else "no pool of this spec changes it"
        values = live.values if live else {}
        return ReleasePlan("none", reason, values, values, (), live.revision if live else 0, kind=kind)
    leaves = find_leaving(kind, seen) if served else ()
    former = next(iter([live] if live else adopt), None)
    version = (
        chart_version
        or asked_version(served)
        or (_newer(former.chart_version, kind.version) if former else kind.version)
    )
    around = Surroundings(
        live=former.values if former else {},
        taints=_live_taints(live_pools, pools, kind),
        named=_named_keys(seen, live_pools),
        by_others=_named_keys(seen, live_pools, but=pools),
        bundle_nfd=find_nfd(seen, [(item.namespace, item.name) for item in adopt]) is None,
        retire=retire,
        missed=(*_carried(leaves, seen, kind), *(release.values for release in (*adopt, *missed))),
        moves=live is not None and live.chart_version != version,
    )
    if not served:
        return _only_retired(seen, around, kind)
    values = _VALUES[kind](served, around)
    refusals = [
        *_other_kind(kind, served, pools, leaves, migrate=migrate),
        *(refuse_stranding(leaves, served, seen, live_pools) if migrate else ()),
        *refuse_adoption(adopt, kind, served, seen),
        *_operators(kind, served, seen, around),
        *(check_drivers(served, seen, live_pools, _cluster_of(served)) if kind is GPU_OPERATOR else ()),
        *check_own_values(served, values),
    ]
    if refusals:
        there = live.values if live else {}
        revision = live.revision if live else 0
        said = refusals[0].seen
        return ReleasePlan("conflict", said, there, there, (), revision, kind=kind, diagnostics=tuple(refusals))
    plan = _judge(values, seen, kind, version)
    plan = _taking_over(plan, adopt)
    leaves = (*leaves, *map(leaving_of, adopt))
    return _after(leaves, plan, seen) if leaves else plan


def _carried(leaves: Sequence[Leaving], seen: Snapshot, kind: ReleaseKind) -> Iterator[Mapping[str, object]]:
    """Give the entries of what leaves, where this chart wants them: nodes name them until their labels move."""
    for item in leaves:
        former = seen.release_of(item.kind) if item.kind else None
        if former and item.kind:
            values: dict[str, object] = {}
            put(values, kind.entries, texts(former.values, *item.kind.entries))
            yield values


def _taking_over(plan: ReleasePlan, adopt: Sequence[Release]) -> ReleasePlan:
    """Show a takeover as what becomes of the user's values, where we have none yet."""
    if not adopt or plan.old_values:
        return replace(plan, adopted=tuple(adopt))
    old = adopt[0].values
    return replace(plan, adopted=tuple(adopt), old_values=old, changes=value_changes(old, plan.values))


def _after(leaves: tuple[Leaving, ...], plan: ReleasePlan, seen: Snapshot) -> ReleasePlan:
    action: ReleaseAction = "install" if plan.action == "install" else "upgrade"
    return replace(plan, action=action, reason=f"{plan.reason}; {say_leaving(leaves, seen)}", leaves=leaves)


def _only_retired(seen: Snapshot, around: Surroundings, kind: ReleaseKind) -> ReleasePlan:
    """Take entries out of a release that serves no pool of this spec, and leave the rest of it to its owners.

    One whose last change was cut off is changed again even without an entry to drop: the record of that change has its
    values already, and its objects may be those of before.
    """
    live = seen.release_of(kind)
    dropped = unneeded_entries(around, kind.entries)
    values = copy.deepcopy(dict(around.live))
    put(values, kind.entries, {key: entry for key, entry in tree(values, *kind.entries).items() if key not in dropped})
    cut_off = f"its last change ended as {live.status}" if live and live.pending else ""
    return ReleasePlan(
        "upgrade" if dropped or cut_off else "none",
        "; ".join(filter(None, (_dropping(sorted(dropped)), cut_off))) or "no pool of this spec changes it",
        values if dropped else around.live,
        around.live,
        value_changes(around.live, values) if dropped else (),
        live.revision if live else 0,
        live.status if live and live.pending else "",
        live.chart_version if live else kind.version,
        kind,
    )


def _dropping(keys: Sequence[str]) -> str:
    entries = "entries" if len(keys) > 1 else "entry"
    return f"drops {entries} {', '.join(keys)}, which no pool and no node names" if keys else ""


def _kind_needed(pools: Sequence[Desired], seen: Snapshot) -> ReleaseKind:
    """Choose the release these pools need; the live one when they need none."""
    needed = {pool.ownership.advertiser for pool in pools}
    wanted = [kind for kind in RELEASE_KINDS if kind.advertiser in needed]
    there = [kind for kind in RELEASE_KINDS if is_there(seen.release_of(kind))]
    return [*wanted, *there, DEVICE_PLUGIN][0]


def _other_kind(
    kind: ReleaseKind,
    served: Sequence[Desired],
    pools: Sequence[Desired],
    leaves: Sequence[Leaving],
    *,
    migrate: bool,
) -> list[Finding]:
    """Refuse two kinds in one cluster: asked for both (which no consent helps), or one there that may not go."""
    others = [other for other in RELEASE_KINDS if other is not kind]
    asked = [other for other in others if any(pool.ownership.advertiser == other.advertiser for pool in pools)]
    there = [] if migrate else [item.kind for item in leaves if item.there and item.kind]
    return [refuse_change(kind, other, served) for other in dict.fromkeys([*asked, *there])]


def _operators(kind: ReleaseKind, served: Sequence[Desired], seen: Snapshot, around: Surroundings) -> list[Finding]:
    if kind is not GPU_OPERATOR:
        return []
    where = _cluster_of(served)
    return [*operator_strays(seen, where, served), *check_strategies(served, around, where)]


def _cluster_of(served: Sequence[Desired]) -> Where:
    return Where(served[0].target.cluster.key)


def _judge(values: dict[str, object], seen: Snapshot, kind: ReleaseKind, version: str) -> ReleasePlan:
    live = seen.release_of(kind)
    if live is None:
        reason = f"{kind.chart} {version} is not installed"
        return ReleasePlan("install", reason, values, {}, value_changes({}, values), version=version, kind=kind)
    changes = value_changes(live.values, values)
    dropped = sorted(tree(live.values, *kind.entries).keys() - tree(values, *kind.entries).keys())
    gone = {".".join((*kind.entries, key)) for key in dropped}
    others = [change.path for change in changes if change.path not in gone]
    drift = _drift(live, seen)
    reasons = [
        f"{len(others)} values differ" if len(others) > 1 else f"{others[0]} differs" if others else "",
        _dropping(dropped),
        f"chart {live.chart_version} -> {version}" if version != live.chart_version else "",
        f"its last change ended as {live.status}" if live.status != "deployed" else "",
        *say_drift(drift),
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
        kind,
        drift=drift,
    )


def _drift(live: Release, seen: Snapshot) -> tuple[Drift, ...]:
    """Compare a release that stands with its objects; one whose last change was cut off is changed anyway."""
    if seen.objects is None or live.status != DEPLOYED:
        return ()
    return find_drift(manifest_objects(live.manifest), seen.objects)


def _newer(live: str, ours: str) -> str:
    """Give the newer of two chart versions: a newer gpukube's release is not taken back."""
    return max(live, ours, key=_version_key)


def _version_key(version: str) -> tuple[int, ...]:
    numbers = version.removeprefix("v").split("-", maxsplit=1)[0]
    return tuple(int(part) if part.isdigit() else -1 for part in numbers.split("."))


def _live_taints(live_pools: Sequence[Observed], pools: Sequence[Desired], kind: ReleaseKind) -> frozenset[Taint]:
    """Collect the taints of other live pools; a declared one is planned for as declared, whatever it carries now."""
    declared = {(pool.target.owner, pool.target.pool) for pool in pools}
    others = (pool for pool in live_pools if (pool.owner, pool.pool) not in declared)
    served = (pool for pool in others if pool.labels.get(ADVERTISER_LABEL) == kind.advertiser)
    return frozenset(taint for pool in served for taint in pool.effective_taints)


def _named_keys(seen: Snapshot, live_pools: Sequence[Observed], but: Sequence[Desired] = ()) -> frozenset[str]:
    """List the entries that pools and nodes name; those of some pools left out."""
    left_out = {(pool.target.owner, pool.target.pool) for pool in but}
    carriers = [*(node.labels for node in seen.nodes), *(pool.labels for pool in live_pools)]
    return frozenset(
        labels[CONFIG_LABEL]
        for labels in carriers
        if labels.get(CONFIG_LABEL) and (labels.get(OWNER_LABEL), labels.get(POOL_LABEL)) not in left_out
    )


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
