"""Plans a cluster's releases: which chart, which values, and what that means for the live one.

In scope: pools and a snapshot -> ReleasePlan; pure. Out of scope: the values (plugin_values, operator_values,
dra_values), running Helm.

A cluster has one release of a device plugin, and beside it one of the DRA driver; each is planned alone. The device
plugin's chart and the GPU Operator together would be two plugins on one node, and switching leaves a moment without
any, so gpukube switches only if the user allows it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.releases import DEPLOYED
from gpukube.cluster.names import (
    ALL_KINDS,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    GPU_OPERATOR,
    NAMESPACE,
    RELEASE_KINDS,
    ReleaseKind,
)
from gpukube.cluster.release.adoption import outgoing_release, refuse_adoption, with_meaning
from gpukube.cluster.release.chart_settings import check_own_values, requested_version
from gpukube.cluster.release.dra_values import check_declared_roots, check_roots, dra_values
from gpukube.cluster.release.migration import (
    describe_outgoing,
    find_outgoing,
    is_there,
    refuse_change,
    refuse_stranding,
)
from gpukube.cluster.release.operator_values import (
    check_declared_strategies,
    check_drivers,
    check_plugin,
    check_strategies,
    check_unserved_nodes,
    operator_values,
)
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.reclaim import appliers
from gpukube.cluster.release.shared_values import ReleaseContext, put, unneeded_entries
from gpukube.cluster.state.nfd import find_nfd
from gpukube.cluster.state.release_drift import describe_drift, find_drift, manifest_objects
from gpukube.core.jsontree import tree
from gpukube.core.owners import CONFIG_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.migration import OutgoingRelease
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """The planned change of one release of a cluster, and why.

    Attributes:
        action: "unknown" if the cluster's API could not be read; "conflict" if nothing may be done, as diagnostics
            explain.
        reason: One line, even for "none".
        values, old_values: User values after and before.
        changes: Values that differ.
        revision: Newest live revision that the plan was made from; 0 if there is none.
        pending: Helm's status if an earlier run was interrupted; "" otherwise.
        version: Chart version to install.
        kind: Kind of the release.
        diagnostics: What prevents it.
        drift: Fields of its objects that were changed manually, and missing objects; all are restored.
        leaves: Releases to uninstall first.
        adopted: The user's releases whose values are included.
        digest: Digest of the chart that the plan was made with, "sha256:..."; "" if not downloaded.
        contested: Whether a dry run found that another manager owns fields that the chart sets: they are reclaimed
            first.
        appliers: Field managers under which Helm has applied its live objects.
    """

    action: ReleaseAction
    reason: str
    values: Mapping[str, object]
    old_values: Mapping[str, object]
    changes: tuple[ValueChange, ...] = ()
    revision: int = 0
    pending: str = ""
    version: str = DEVICE_PLUGIN.version
    kind: ReleaseKind = DEVICE_PLUGIN
    diagnostics: tuple[Finding, ...] = ()
    drift: tuple[Drift, ...] = ()
    leaves: tuple[OutgoingRelease, ...] = ()
    adopted: tuple[Release, ...] = ()
    digest: str = ""
    contested: bool = False
    appliers: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Name of the release."""
        return self.kind.name

    @property
    def namespace(self) -> str:
        """Namespace of the release."""
        return NAMESPACE

    @property
    def chart(self) -> str:
        """Name of the chart."""
        return self.kind.chart

    @property
    def is_absent(self) -> bool:
        """Whether the release neither exists nor will."""
        return self.action == "none" and not self.revision

    @property
    def keys(self) -> tuple[str, ...]:
        """Config entries that the release will have."""
        return tuple(sorted(self.kind.entries_in(self.values)))


_VALUES: Final[Mapping[ReleaseKind, Callable[[Sequence[Desired], ReleaseContext], dict[str, object]]]] = {
    DEVICE_PLUGIN: chart_values,
    GPU_OPERATOR: operator_values,
    DRA_DRIVER: dra_values,
}


def check_values(pools: Sequence[Desired]) -> list[Finding]:
    """Report pools that the releases of one cluster cannot serve together, and values that they may not set."""
    found: list[Finding] = []
    for kind in ALL_KINDS:
        served = _advertised(pools, kind)
        if any(pool.target.chart_values for pool in served):
            found += check_own_values(served, _VALUES[kind](served, ReleaseContext()))
    operated, claimed = ([pool for pool in pools if kind.serves(pool.ownership)] for kind in (GPU_OPERATOR, DRA_DRIVER))
    return [*found, *check_declared_strategies(operated), *check_declared_roots(claimed)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Input of the rules: the required release, the cluster's state, and what the user allows.

    Attributes:
        kind: The required release.
        others: Other releases that are required too, or exist and may not be uninstalled.
        served: Declared pools that the release serves, at least one.
        values: Values of the release.
        where: The cluster.
        Others: See the arguments of plan_release.
    """

    kind: ReleaseKind
    others: tuple[ReleaseKind, ...]
    served: Sequence[Desired]
    values: Mapping[str, object]
    where: Where
    seen: Snapshot
    live_pools: Sequence[Observed]
    context: ReleaseContext
    leaves: tuple[OutgoingRelease, ...]
    migrate: bool
    adopt: Sequence[Release]

    @property
    def is_operator(self) -> bool:
        """Whether the GPU Operator is required."""
        return self.kind is GPU_OPERATOR

    @property
    def advertised(self) -> list[Desired]:
        """The served pools for which the release is the advertiser, so that their chart settings are its own."""
        return _advertised(self.served, self.kind)


_RULES: Final[tuple[Callable[[_Case], Iterable[Finding]], ...]] = (
    # A cluster has one release: the device plugin's chart and the operator would be two plugins on one node.
    lambda case: (refuse_change(case.kind, other, case.served) for other in case.others),
    # What a migration uninstalls must not serve anyone else.
    lambda case: refuse_stranding(case.leaves, case.served, case.seen, case.live_pools) if case.migrate else (),
    # Adopting the user's release must not take nodes from anyone.
    lambda case: refuse_adoption(case.adopt, case.kind, case.served, case.seen),
    # The operator serves every node that is not excluded, with one strategy and one driver for all.
    lambda case: check_unserved_nodes(case.seen, case.where, case.served) if case.is_operator else (),
    lambda case: check_strategies(case.served, case.context, case.where) if case.is_operator else (),
    lambda case: check_drivers(case.served, case.seen, case.live_pools, case.where) if case.is_operator else (),
    lambda case: check_plugin(case.served, case.seen, case.live_pools, case.where) if case.is_operator else (),
    # The DRA driver looks for the GPU driver in one place.
    lambda case: check_roots(case.served, case.seen, case.live_pools, case.where) if case.kind is DRA_DRIVER else (),
    # The user's values must not break what the pools need.
    lambda case: check_own_values(case.advertised, case.values),
)
"""Reasons against a release, most severe first: the first finding becomes the plan's reason."""


def plan_release(  # noqa: PLR0913 -- independent inputs, passed by name
    pools: Sequence[Desired],
    seen: Snapshot,
    *,
    kinds: Sequence[ReleaseKind] = RELEASE_KINDS,
    live_pools: Sequence[Observed] = (),
    retire: bool = False,
    dropped: Collection[str] = (),
    missed: Sequence[Release] = (),
    chart_version: str = "",
    migrate: bool = False,
    adopt: Sequence[Release] = (),
) -> ReleasePlan:
    """Compare the release that these pools need with the live one.

    Args:
        pools: Declared pools of one cluster, of all advertisers.
        seen: The cluster.
        kinds: The kinds of which the cluster has at most one: those of a device plugin, or the DRA driver.
        live_pools: All pools of the cluster, of all owners: their labels name entries, their taints need tolerations.
        retire: Drop gpukube's entries that no declared pool needs and no live pool or node names, even if no pool of
            this spec is served. By default nothing is dropped: another spec may have added an entry whose pool does not
            exist yet.
        dropped: Entries that this run or a concurrent one has dropped: they are not carried along, unless a pool or
            a node names them by now.
        missed: Revisions that this run's upgrade overwrote unseen; their entries are restored.
        chart_version: Chart version that the user requests; "" for gpukube's, or the live one's if that is newer.
        migrate: Whether gpukube's other release may be uninstalled for this one; its entries are kept.
        adopt: The user's releases that may be adopted (release_adoption); their values are merged.

    Returns:
        The plan of one release. It is a "conflict" if the cluster has the other release, which may not be uninstalled,
        or would get both; if a migration or adoption would leave other owners' nodes without a plugin; if the operator
        would serve other owners' nodes, or the release cannot serve these pools together.
    """
    kinds_needed = [kind for kind in kinds if any(kind.serves(pool.ownership) for pool in pools)]
    kinds_there = [kind for kind in kinds if is_there(seen.release_of(kind))]
    kind = [*kinds_needed, *kinds_there, kinds[0]][0]
    served = [pool for pool in pools if kind.serves(pool.ownership)]
    live = seen.release_of(kind)
    live_values = live.values if live else {}
    as_it_is = partial(
        ReleasePlan, values=live_values, old_values=live_values, revision=live.revision if live else 0, kind=kind
    )
    if not served and not ((retire or dropped or missed) and is_there(live)):
        if live is None:
            return as_it_is(action="none", reason="no pool of this spec needs it", version=kind.version)
        return as_it_is(action="none", reason=_why_idle(kind, seen, live_pools), version=live.chart_version)

    leaves = find_outgoing(kind, seen) if served and kind in RELEASE_KINDS else ()
    kept = [with_meaning(item) for item in adopt]
    former = live or next(iter(kept), None)
    version = chart_version or requested_version(_advertised(served, kind))
    if not version:  # a newer gpukube's release is not downgraded
        version = max(former.chart_version, kind.version, key=_version_key) if former else kind.version
    context = ReleaseContext(
        live=former.values if former else {},
        taints=_live_taints(live_pools, pools, kind),
        named=_named_keys(seen, live_pools),
        by_others=_named_keys(seen, live_pools, except_pools=pools),
        bundle_nfd=find_nfd(seen, [(item.namespace, item.name) for item in adopt]) is None,
        retire=retire,
        dropped=frozenset(dropped),
        missed=(*_entries_of(leaves, seen, kind), *(release.values for release in (*kept, *missed))),
        moves=live is not None and live.chart_version != version,
        version=version,
    )
    if live and not served:
        retired = _plan_retirement(live, context, kind)
        idle = retired if retired.action != "none" else replace(retired, reason=_why_idle(kind, seen, live_pools))
        return replace(idle, appliers=appliers(seen.objects or ()))

    values = _VALUES[kind](served, context)
    there = [item.kind for item in leaves if item.there and item.kind and not migrate]
    case = _Case(
        kind=kind,
        others=tuple(dict.fromkeys([*(other for other in kinds_needed if other is not kind), *there])),
        served=served,
        values=values,
        where=Where(served[0].target.cluster.key),
        seen=seen,
        live_pools=live_pools,
        context=context,
        leaves=leaves,
        migrate=migrate,
        adopt=adopt,
    )
    if refusals := tuple(finding for rule in _RULES for finding in rule(case)):
        return as_it_is(action="conflict", reason=refusals[0].seen, diagnostics=refusals)

    if live is None:
        plan = ReleasePlan(
            action="install",
            reason=f"{kind.chart} {version} is not installed",
            values=values,
            old_values={},
            changes=value_changes({}, values),
            version=version,
            kind=kind,
        )
    else:
        plan = _compare(live, values, seen, kind=kind, version=version)
    if adopt and not plan.old_values:  # an adoption is shown as changes of the user's values
        old = adopt[0].values
        plan = replace(plan, old_values=old, changes=value_changes(old, values))
    leaves = (*leaves, *map(outgoing_release, adopt))
    if leaves:
        action: ReleaseAction = "install" if plan.action == "install" else "upgrade"
        plan = replace(plan, action=action, reason=f"{plan.reason}; {describe_outgoing(leaves, seen)}", leaves=leaves)
    return replace(plan, adopted=tuple(adopt))


def _entries_of(leaves: Sequence[OutgoingRelease], seen: Snapshot, kind: ReleaseKind) -> Iterator[Mapping[str, object]]:
    """Yield the entries of outgoing releases that this chart needs: nodes name them until their labels change."""
    for item in leaves:
        former = seen.release_of(item.kind) if item.kind else None
        if former and item.kind:
            values: dict[str, object] = {}
            put(values, kind.entries, item.kind.entries_in(former.values))
            yield values


def _plan_retirement(live: Release, context: ReleaseContext, kind: ReleaseKind) -> ReleasePlan:
    """Plan to drop entries from a release that serves no pool of this spec, and to restore overwritten ones.

    A release whose last change was interrupted is changed even without an entry to drop: its record already has the new
    values, but its objects may be the old ones.
    """
    unneeded = unneeded_entries(context, kind.entries) if kind.entries else frozenset()
    older = [kind.entries_in(source) for source in (*context.missed, context.live)]
    entries = {key: entry for source in older for key, entry in source.items() if key not in unneeded}
    dropped, lost = sorted(older[-1].keys() - entries.keys()), sorted(entries.keys() - older[-1].keys())
    values = copy.deepcopy(dict(context.live))
    if dropped or lost:
        put(values, kind.entries, entries)
    reasons = [
        _describe_dropped(dropped),
        f"restores {', '.join(lost)}, which another run added" if lost else "",
        f"its last change ended as {live.status}" if live.pending else "",
    ]
    return ReleasePlan(
        action="upgrade" if any(reasons) else "none",
        reason="; ".join(filter(None, reasons)),
        values=values,
        old_values=context.live,
        changes=value_changes(context.live, values),
        revision=live.revision,
        pending=live.status if live.pending else "",
        version=live.chart_version,
        kind=kind,
    )


def _compare(
    live: Release, values: Mapping[str, object], seen: Snapshot, *, kind: ReleaseKind, version: str
) -> ReleasePlan:
    """Compare a live release that may be changed with the required state: each difference is a reason to upgrade."""
    changes = value_changes(live.values, values)
    dropped = sorted(kind.entries_in(live.values).keys() - kind.entries_in(values).keys())
    gone = {".".join((*kind.entries, key)) for key in dropped}
    others = [change.path for change in changes if change.path not in gone]
    drift: tuple[Drift, ...] = ()
    if seen.objects is not None and live.status == DEPLOYED:  # an interrupted one is changed anyway
        drift = find_drift(manifest_objects(live.manifest), seen.objects)
    reasons = [
        f"{len(others)} values differ" if len(others) > 1 else f"{others[0]} differs" if others else "",
        _describe_dropped(dropped),
        f"chart {live.chart_version} -> {version}" if version != live.chart_version else "",
        f"its last change ended as {live.status}" if live.status != DEPLOYED else "",
        *describe_drift(drift),
    ]
    return ReleasePlan(
        action="upgrade" if any(reasons) else "none",
        reason="; ".join(filter(None, reasons)) or f"revision {live.revision} already serves these pools",
        values=values,
        old_values=live.values,
        changes=changes,
        revision=live.revision,
        pending=live.status if live.pending else "",
        version=version,
        kind=kind,
        drift=drift,
        appliers=appliers(seen.objects or ()),
    )


def _why_idle(kind: ReleaseKind, seen: Snapshot, live_pools: Sequence[Observed]) -> str:
    if any(map(kind.carries, (*(node.labels for node in seen.nodes), *(pool.labels for pool in live_pools)))):
        return "no pool of this spec changes it"
    return "no pool or node needs it; gpukube release remove uninstalls it"


def _describe_dropped(keys: Sequence[str]) -> str:
    entries = "entries" if len(keys) > 1 else "entry"
    return f"removes {entries} {', '.join(keys)}, which no pool or node uses" if keys else ""


def _version_key(version: str) -> tuple[int, ...]:
    numbers = version.removeprefix("v").split("-", maxsplit=1)[0]
    return tuple(int(part) if part.isdigit() else -1 for part in numbers.split("."))


def _live_taints(live_pools: Sequence[Observed], pools: Sequence[Desired], kind: ReleaseKind) -> frozenset[Taint]:
    """Return the taints of other live pools; a declared pool counts with its declared taints, whatever it has now."""
    declared = {(pool.target.owner, pool.target.pool) for pool in pools}
    others = (pool for pool in live_pools if (pool.owner, pool.pool) not in declared)
    served = (pool for pool in others if kind.carries(pool.labels))
    return frozenset(taint for pool in served for taint in pool.effective_taints)


def _advertised(pools: Sequence[Desired], kind: ReleaseKind) -> list[Desired]:
    return [pool for pool in pools if pool.ownership.advertiser == kind.advertiser]


def _named_keys(seen: Snapshot, live_pools: Sequence[Observed], except_pools: Sequence[Desired] = ()) -> frozenset[str]:
    """Return the entries that pools and nodes name, except those of some pools."""
    left_out = {(pool.target.owner, pool.target.pool) for pool in except_pools}
    carriers = [*(node.labels for node in seen.nodes), *(pool.labels for pool in live_pools)]
    return frozenset(
        labels[CONFIG_LABEL]
        for labels in carriers
        if labels.get(CONFIG_LABEL) and (labels.get(OWNER_LABEL), labels.get(POOL_LABEL)) not in left_out
    )


def value_changes(old: Mapping[str, object], new: Mapping[str, object], prefix: str = "") -> tuple[ValueChange, ...]:
    """Return the leaves that differ, sorted by path; lists are leaves."""
    found: list[ValueChange] = []
    for key in sorted({*old, *new}):
        path = f"{prefix}{key}"
        before, after = old.get(key), new.get(key)
        if isinstance(before or {}, dict) and isinstance(after or {}, dict) and (before or after):
            found += value_changes(tree(before), tree(after), f"{path}.")
        elif before != after:
            found.append(ValueChange(path, before, after))
    return tuple(found)
