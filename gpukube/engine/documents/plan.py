"""The documents Plan and Diff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypedDict

from gpukube.core.fields import ZONES
from gpukube.core.jsontree import strings
from gpukube.core.live import live_machine
from gpukube.core.marks import names_another
from gpukube.core.prices import EMBEDDED
from gpukube.core.tolerations import pod_tolerations
from gpukube.engine.documents.parts import (
    WEIGHTS,
    change_part,
    counted,
    diagnostic_document,
    error_part,
    gpu_part,
    live_range,
    node_range,
    part_of,
    plain,
    position_of,
    request_part,
    silenced_part,
    toleration_part,
)
from gpukube.engine.documents.plan_parts import (
    has_no_end,
    leaving_part,
    quota_part,
    replacement_needs,
    replacement_part,
    upgrades_part,
)
from gpukube.engine.documents.prices import price_part, price_sum
from gpukube.engine.plan.fidelity import abilities_for, inexact
from gpukube.engine.plan.regions import region_of
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.prices import PriceBook
    from gpukube.core.values import Desired, Observed, PoolPlan
    from gpukube.engine.documents.shapes.parts import FamilyPart, GpuModel, NodeRange, Position, Toleration
    from gpukube.engine.documents.shapes.plan import (
        ClusterPart,
        Devices,
        Fidelity,
        GpuSum,
        Health,
        LiveState,
        Order,
        PlanDocument,
        PoolPart,
        Release,
        Summary,
        UnplannedPool,
    )
    from gpukube.engine.documents.shapes.prices import PoolPricePart
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.plan.silencing import Silenced
    from gpukube.errors import Finding

_PROMISED: Final = ("nodes", "sharing", "instanceType", "devicePlugin", "driver")
"""Fields that change what nodes should advertise: until a change is applied, live nodes are not checked against it."""

_OF_NODES: Final = frozenset(
    {
        *("node", "ready", "advertiser", "plugin-pod", "features", "slices", "geometry", "count", "stale-name"),
        *("hugepages", "fabric"),
    }
)
"""Steps that individual nodes pass or fail; other steps are drift, shown with the release or the repairs."""


class _Requested(TypedDict):
    """The part of a pool that only a declared one has."""

    declared: Position | None
    instanceType: str | None
    gpu: GpuModel | None
    nodes: NodeRange | None
    zones: list[str]
    driver: str | None
    devicePlugin: str | None
    managed: bool
    configEntry: str | None
    ownership: str | None
    tolerations: list[Toleration]
    fidelity: dict[str, Fidelity]
    family: NotRequired[FamilyPart]


def plan_document(  # noqa: PLR0913 - arguments other than the plans are keyword-only
    plans: Sequence[ClusterPlan],
    warnings: Sequence[Finding],
    *,
    kind: Literal["Plan", "Diff"] = "Plan",
    silenced: Sequence[Silenced] = (),
    not_read: Sequence[str] = (),
    prices: PriceBook = EMBEDDED,
) -> PlanDocument:
    """Return a plan, or with kind "Diff" the differences, with the findings on the spec.

    Args:
        plans: Plans of the clusters that were read.
        warnings: Findings on the spec.
        kind: Kind of the document.
        silenced: Findings that the spec accepts.
        not_read: Clusters that were not read because no pool is on them.
        prices: Prices beyond the embedded table.
    """
    clusters = [_cluster(plan, prices) for plan in plans]
    _add_families(plans, clusters)
    if kind == "Plan":
        _add_durations(plans, clusters)
    return {
        "schemaVersion": 1,
        "kind": kind,
        "differs": any(plan.differs for plan in plans),
        "summary": plan_totals(clusters, _gpu_sum(plans), prices),
        "clusters": clusters,
        "notRead": list(not_read),
        "warnings": [diagnostic_document(d) for d in warnings],
        "silenced": silenced_part(silenced),
    }


def plan_totals(clusters: Sequence[ClusterPart], gpus: GpuSum, prices: PriceBook) -> Summary:
    """Sum up the clusters of a plan; `gpus` is separate because parts omit live pools of other machines."""
    both = [release for cluster in clusters for release in (cluster["release"], cluster["draRelease"]) if release]
    releases = [release["action"] for release in both]
    unplanned = sum(len(cluster["unplanned"]) for cluster in clusters)
    return {
        "actions": counted(pool["action"] for cluster in clusters for pool in cluster["pools"]),
        "unplanned": unplanned,
        "releases": counted(action for action in releases if action not in ("none", "unknown")),
        "nodeRepairs": sum(len(cluster["nodeRepairs"]) for cluster in clusters),
        "undeclared": sum(len(cluster["undeclared"]) for cluster in clusters),
        "clusters": len(clusters),
        "clustersFailed": sum(cluster["error"] is not None for cluster in clusters),
        "clustersUnknown": sum(bool(cluster["unknown"]) for cluster in clusters),
        "duration": None
        if any(has_no_end(pool) for cluster in clusters for pool in cluster["pools"])
        else max(
            (part for cluster in clusters if (part := cluster["duration"])),
            key=lambda part: part["mostSeconds"],
            default=None,
        ),
        "gpus": gpus,
        "price": price_sum(
            [pool["price"] for cluster in clusters for pool in cluster["pools"]], prices, unplanned=unplanned
        ),
    }


def _gpu_sum(plans: Sequence[ClusterPlan]) -> GpuSum:
    pools = [pool for plan in plans for pool in plan.pools if pool.action != "conflict"]
    second_pools = [(pool, pool.replacement.beside) for pool in pools if pool.replacement]
    there = [*((pool, pool.observed) for pool in pools), *second_pools]
    live = [_live_gpus(pool.cluster.provider, observed) for pool, observed in there if observed]
    known = [gpus for gpus in live if gpus is not None]
    expected = [pool.desired.target for pool in pools if pool.desired and pool.action not in ("standby", "delete")]
    # A second pool of a family keeps its nodes until --rebalance empties it.
    staying = [
        gpus for pool in pools
        if pool.action == "standby" and pool.observed and (gpus := _live_gpus(pool.cluster.provider, pool.observed))
    ]  # fmt: skip
    all_read = all(plan.error is None for plan in plans)
    return {
        "before": add_gpus(known) if all_read and len(known) == len(live) else None,
        "min": add_gpus([*staying, *(target.machine.gpus * target.nodes.minimum for target in expected)]),
        "max": add_gpus([*staying, *(target.machine.gpus * target.nodes.maximum for target in expected)]),
    }


def add_gpus(counts: Iterable[float]) -> float:
    """Add up GPUs, including fractions; round, so that the order does not matter."""
    return round(sum(counts), 6)


def _live_gpus(provider: str, observed: Observed) -> float | None:
    machine = live_machine(provider, observed)
    return machine.gpus * observed.nodes if machine and observed.nodes is not None else None


def _cluster(plan: ClusterPlan, prices: PriceBook) -> ClusterPart:
    facts = plan.facts
    region = region_of(plan.cluster, facts.location if facts else "")
    part: ClusterPart = {
        "cluster": plan.cluster.key,
        "provider": plan.cluster.provider,
        "name": plan.cluster.name,
        "kubernetesVersion": facts.kubernetes_version if facts else None,
        "location": facts.location if facts else None,
        "status": facts.status if facts else None,
        "error": error_part(plan.error),
        "unknown": plan.unknown,
        "release": _release(plan.release) if plan.release else None,
        "draRelease": _release(dra) if (dra := plan.dra_release) and not dra.is_absent else None,
        "nodeRepairs": [
            {"node": r.node, "pool": r.pool, "field": r.field, "old": r.live, "new": r.desired} for r in plan.repairs
        ],
        "pools": [_pool(pool, plan.seen, price_part(pool, region, prices)) for pool in plan.pools],
        "unplanned": [_unplanned(expected) for expected in plan.desired] if plan.error else [],
        "undeclared": [
            {"name": o.name, "pool": o.pool, "owner": o.owner, "needs": ["--prune"]} for o in plan.undeclared
        ],
        "duration": None,
        "quotas": [quota_part(use) for use in plan.quotas],
        "diagnostics": [diagnostic_document(d) for d in plan.diagnostics],
    }
    if plan.orders:
        part["orders"] = [_order(item) for item in plan.orders]
    return part


def _order(plan: OrderPlan) -> Order:
    return {
        "object": str(plan),
        "action": plan.action,
        "why": plan.why,
        "families": [order.family for order in plan.orders],
        "content": plan.content.splitlines(),
    }


def _add_families(plans: Sequence[ClusterPlan], clusters: Sequence[ClusterPart]) -> None:
    if not any(pool.desired and pool.desired.target.family for plan in plans for pool in plan.pools):
        return
    from gpukube.core.families import families  # noqa: PLC0415 - only for families
    from gpukube.engine.documents.families import family_part, longest_waits, scaled_part  # noqa: PLC0415 - as above

    waits = longest_waits(plans)
    for plan, cluster in zip(plans, clusters, strict=True):
        declared = families(plan.desired)
        for pool, part in zip(plan.pools, cluster["pools"], strict=True):
            key = (pool.desired.target.owner, pool.desired.target.family) if pool.desired else ("", "")
            if place := family_part(pool, waits) or scaled_part(pool, declared.get(key, ())):
                part["family"] = place


def _add_durations(plans: Sequence[ClusterPlan], clusters: Sequence[ClusterPart]) -> None:
    from gpukube.engine.documents import durations  # noqa: PLC0415 - a diff has no durations

    for plan, cluster in zip(plans, clusters, strict=True):
        cluster["duration"] = durations.duration_of_cluster(plan)
        for pool, part in zip(plan.pools, cluster["pools"], strict=True):
            part["duration"] = durations.duration_of_pool(pool)


def _release(plan: ReleasePlan) -> Release:
    return {
        "action": plan.action,
        "why": plan.reason,
        "name": plan.name,
        "namespace": plan.namespace,
        "chart": plan.chart,
        "version": plan.version,
        "entries": list(plan.keys),
        "changes": [{"path": c.path, "old": plain(c.old), "new": plain(c.new)} for c in plan.changes],
        "drift": [
            {"object": d.object, "field": d.field, "old": plain(d.live), "new": plain(d.desired)} for d in plan.drift
        ],
    }


def _pool(plan: PoolPlan, seen: Snapshot | None, price: PoolPricePart | None) -> PoolPart:
    desired, observed = plan.desired if plan.action != "delete" else None, plan.observed
    locator = desired.target.locator if desired else None
    return {
        "pool": plan.pool,
        "name": plan.name,
        "action": plan.action,
        "why": plan.why,
        "needs": _needs(plan),
        **(_declared_pool(desired) if desired else _undeclared_pool(plan)),
        "devices": _devices(plan),
        "duration": None,
        "live": _live(plan.cluster.provider, observed) if observed else None,
        "loss": part_of(plan.loss) if plan.loss else None,
        "leaving": leaving_part(plan.leaving),
        "price": price,
        "replacement": replacement_part(plan),
        "changes": [change_part(c, locator) for c in plan.changes],
        "health": _health(plan, seen),
        "requests": [request_part(r) for r in plan.requests],
        "diagnostics": [diagnostic_document(d) for d in plan.diagnostics],
        "upgrades": upgrades_part(plan.upgrade),
    }


def _unplanned(desired: Desired) -> UnplannedPool:
    target = desired.target
    return {
        "pool": target.pool,
        "name": target.name,
        "declared": position_of(target.locator.at("name")),
        "instanceType": target.machine.name,
        "gpu": gpu_part(target.machine),
        "nodes": node_range(target.nodes),
        "zones": list(target.zones),
        "managed": desired.managed,
        "devices": _promised(None, desired),
    }


def _needs(plan: PoolPlan) -> list[str]:
    """Return the flags that apply needs for this action; no flag permits a refused change."""
    if plan.action == "replace":
        flags = replacement_needs(plan)
        return [*flags, "--allow-disruption"] if flags and plan.leaving and plan.leaving.needing else flags
    if plan.action == "update" or plan.resumes:
        return ["--allow-disruption"] if plan.disturbs else []
    if plan.action == "conflict":
        if plan.obstacle == "foreign-copy":
            return _adopt_from(plan)
        adoptable = plan.observed is not None and not plan.observed.owner and plan.observed.state == "ready"
        return ["--adopt"] if adoptable and plan.obstacle in ("foreign", "marks-lost") else []
    if plan.action == "adopt":
        managed = ["--adopt-managed"] if any(d.code == "managed-pool" for d in plan.diagnostics) else []
        return [*_adopt_from(plan), *managed] or ["--adopt"]
    return ["--prune"] if plan.action == "delete" and plan.family is None else []


def _adopt_from(plan: PoolPlan) -> list[str]:
    """Return --adopt-from if the copy of the labels names another owner and the pool can be adopted."""
    desired, observed = plan.desired, plan.observed
    if desired is None or observed is None or observed.copy is None:
        return []
    return [f"--adopt-from {observed.copy.owner}"] if names_another(desired, observed) else []


def _declared_pool(desired: Desired) -> _Requested:
    target, owner = desired.target, desired.ownership
    provider = load_provider(target.cluster.provider)
    return {
        "declared": position_of(target.locator.at("name")),
        "instanceType": target.machine.name,
        "gpu": gpu_part(target.machine),
        "nodes": node_range(target.nodes),
        "zones": list(target.zones),
        "driver": owner.driver,
        "devicePlugin": owner.advertiser,
        "managed": desired.managed,
        "configEntry": owner.config_key,
        "ownership": owner.reason,
        "tolerations": [
            toleration_part(toleration)
            for toleration in pod_tolerations(desired, tolerates_resources=provider.extras.tolerates_resources)
        ],
        "fidelity": {
            feature: part_of(ability) for feature, ability in inexact(target, abilities_for(target, provider)).items()
        },
    }


def _undeclared_pool(plan: PoolPlan) -> _Requested:
    """Describe a pool that is deleted, from its live state."""
    machine = live_machine(plan.cluster.provider, plan.observed) if plan.observed else None
    return {
        "declared": None,
        "instanceType": plan.observed.instance_type if plan.observed else None,
        "gpu": gpu_part(machine),
        "nodes": None,
        "zones": [],
        "driver": None,
        "devicePlugin": None,
        "managed": True,
        "configEntry": None,
        "ownership": None,
        "tolerations": [],
        "fidelity": {},
    }


def _devices(plan: PoolPlan) -> Devices:
    now = dict(plan.capacity) if plan.capacity is not None else None
    if plan.observed is None:
        now = {}
    if plan.desired is None or plan.action == "delete":
        return {"now": now, "perNode": {}, "min": {}, "max": {}}
    promised = _promised(now, plan.desired)
    if plan.action == "standby":  # it has no more nodes than now
        none = dict.fromkeys(promised["perNode"], 0)
        return {**promised, "min": {**none, **(now or {})}, "max": {**none, **(now or {})}}
    return promised


def _promised(now: dict[str, int] | None, desired: Desired) -> Devices:
    promise, nodes = desired.promise, desired.target.nodes
    if not desired.managed:
        return {"now": now, "perNode": {}, "min": {}, "max": {}}
    return {
        "now": now,
        "perNode": dict(promise.per_node),
        "min": promise.total(nodes.minimum),
        "max": promise.total(nodes.maximum),
    }


def _live(provider: str, observed: Observed) -> LiveState:
    return {
        "status": observed.status,
        "state": observed.state,
        "failure": observed.failure,
        "nodes": observed.nodes,
        "size": live_range(observed),
        "zones": list(strings(observed.fields.get(ZONES))),
        "instanceType": observed.instance_type,
        "gpu": gpu_part(live_machine(provider, observed)),
        "owner": observed.owner,
        "protected": observed.protected,
    }


def _health(plan: PoolPlan, seen: Snapshot | None) -> Health | None:
    """Check the live nodes against what they should advertise, if they were created for it."""
    same = plan.action in ("no-op", "update")  # nodes to adopt do not have gpukube's labels yet
    moved = any(c.change.field[0] in _PROMISED for c in plan.changes)
    if seen is None or plan.desired is None or plan.observed is None or not same or moved:
        return None
    from gpukube.cluster.proof.outcome import step_of  # noqa: PLC0415 - only for a cluster whose inside was read
    from gpukube.cluster.proof.verify import find_missing  # noqa: PLC0415 - as above

    found = [f for f in find_missing(plan.desired, seen) if step_of(f) in _OF_NODES]
    weights = {WEIGHTS[f.severity] for f in found}
    return {
        "status": "broken" if "broken" in weights else "waiting" if "waiting" in weights else "well",
        "findings": [
            {"where": str(f.where), "step": step_of(f), "weight": WEIGHTS[f.severity], "seen": f.seen, "fix": f.fix}
            for f in found
        ],
    }
