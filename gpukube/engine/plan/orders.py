"""Plans how the autoscaler of a cluster learns the order of autoscaled families; changes nothing.

All pools of such a family are simply created, without nodes, as the autoscaler starts these. Where nothing can tell it
the order, only the first pool of a family is: with more, it would choose by its own rules, also the most expensive.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.state.scaling import command_of, running_scaler
from gpukube.core.expander import EXPANDER, EXPANDER_FLAG, NAME, flag_of, recorded, uses_priorities
from gpukube.core.families import families
from gpukube.core.order_plans import CONFIG_MAP, plan_class, plan_map
from gpukube.core.scaling_order import FamilyOrder, GroupOrder
from gpukube.errors import AccessError, ClusterError, Finding, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.scaling_order import ClassOrder
    from gpukube.core.values import ClusterFacts, ClusterRef, Desired, PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.session import Session

CONFIG_MAPS: Final = ApiType("", "v1", "ConfigMap", "configmaps")
MANAGED_NAMESPACE: Final = "kube-system"
"""Where an autoscaler that the cloud runs reads its ConfigMap (docs: aks/cluster-autoscaler-overview), and any other
without the flag --namespace, wherever it runs (kubernetes/autoscaler cluster-autoscaler/config/flags)."""


class _Unknown(Exception):
    """Nothing can tell the autoscaler an order; the text says why."""


def with_orders(plan: ClusterPlan, session: Session) -> ClusterPlan:
    """Add the objects that order the autoscaled families of a cluster; without them, only their first pools stay."""
    scaled = {key: found for key, found in families(plan.desired).items() if found[0].target.nodes.autoscaled}
    orders = tuple(_order(members, plan.pools) for members in scaled.values())
    try:
        planned, found = _planned(plan, session, orders)
    except _Unknown as unknown:
        return _first_only(plan, scaled.values(), str(unknown))
    alone = [item for item in planned if item.action == "foreign" and item.kind != CONFIG_MAP]
    plan = replace(plan, orders=tuple(planned), diagnostics=(*plan.diagnostics, *found))
    for item in alone:
        members = [found for key, found in scaled.items() if key == (item.orders[0].owner, item.orders[0].family)]
        plan = _first_only(plan, members, f"{item} is not gpukube's")
    return plan


def class_type(how: ClassOrder) -> ApiType:
    """Return the type of the objects that order families one by one."""
    return ApiType(how.group, how.version, how.kind, how.plural, namespaced=False)


def map_namespace(cluster: ClusterRef, seen: Snapshot | None, how: GroupOrder) -> str:
    """Return where the autoscaler reads its ConfigMap; "" if no autoscaler was found."""
    if how.profile:
        return MANAGED_NAMESPACE
    scaler = running_scaler(cluster, seen) if seen else None
    if scaler is None:
        return ""
    written = flag_of(command_of(scaler), "namespace")
    return scaler.namespace if "$(" in written else written or MANAGED_NAMESPACE  # from the pod's own fields


def wrong_expander(
    cluster: ClusterRef, facts: ClusterFacts | None, seen: Snapshot | None, how: GroupOrder
) -> tuple[str, str] | None:
    """Return the expander of an autoscaler that ignores the ConfigMap, and how to set the right one.

    None if the autoscaler reads it, or if no autoscaler was found.
    """
    if how.profile:
        expander = facts.expander if facts else ""
        fix = how.profile.format_map({**cluster.identity, "name": cluster.name})
    elif seen and (scaler := running_scaler(cluster, seen)):
        expander = flag_of(command_of(scaler), EXPANDER_FLAG)
        fix = f"start {scaler} with --expander={EXPANDER},least-waste"
    else:
        return None
    return None if uses_priorities(expander) else (expander or "the default", fix)


def _order(members: Sequence[Desired], pools: Sequence[PoolPlan]) -> FamilyOrder:
    """Return the order of a family, with the pools that replace others; pools in the way are not the family's."""
    target = members[0].target
    plans = {(pool.desired.target.owner, pool.desired.target.pool): pool for pool in pools if pool.desired}
    ranks: list[tuple[str, ...]] = [()] * (members[-1].target.rank + 1)
    for member in members:
        pool = plans.get((member.target.owner, member.target.pool))
        if pool is None or pool.action == "conflict":
            continue
        successor = (pool.replacement.name,) if pool.replacement else ()
        ranks[member.target.rank] = tuple(dict.fromkeys((pool.name, *successor)))
    return FamilyOrder(target.owner, target.family, tuple(ranks))


def _planned(
    plan: ClusterPlan, session: Session, orders: Sequence[FamilyOrder]
) -> tuple[list[OrderPlan], list[Finding]]:
    how = session.provider.extras.order
    if how is None:
        message = "the autoscaler of this cloud takes no order"
        raise _Unknown(message)
    if plan.seen is None:
        message = f"the cluster was not read: {plan.unknown}"
        raise _Unknown(message)
    kube = session.kube()
    try:
        if isinstance(how, GroupOrder):
            return _by_groups(plan, kube, orders, how)
        return _by_classes(kube, orders, how), []
    except (AccessError, ClusterError) as error:
        raise _Unknown(str(error)) from error


def _by_groups(
    plan: ClusterPlan, kube: Kube, orders: Sequence[FamilyOrder], how: GroupOrder
) -> tuple[list[OrderPlan], list[Finding]]:
    namespace = map_namespace(plan.cluster, plan.seen, how)
    if not namespace:
        message = "no Cluster Autoscaler was found, and nothing else takes an order of node groups"
        raise _Unknown(message)
    live = kube.find_object(CONFIG_MAPS, NAME, namespace)
    item = plan_map(live, namespace, orders, how, _kept(plan, recorded(live or {}) or (), orders))
    names = ", ".join(order.family for order in orders)
    found = []
    if item.action == "foreign":
        found.append(
            Finding(
                "order-foreign",
                Where(plan.cluster.key),
                f"{item} does not order {names}: {item.why}",
                f"write these lines in its priorities: {_one_line(item.content)}",
                "one map serves all tools, and gpukube changes only a map that it created and can read",
                "warning",
            )
        )
    if wrong := wrong_expander(plan.cluster, plan.facts, plan.seen, how):
        expander, fix = wrong
        found.append(
            Finding(
                "order-ignored",
                Where(plan.cluster.key),
                f"the autoscaler ignores the order of {names}: its expander is {expander}",
                fix,
                "only the priority expander reads the order; another one chooses among all pools on which a pod fits",
                "warning",
            )
        )
    return [item], found


def _kept(plan: ClusterPlan, before: Sequence[FamilyOrder], orders: Sequence[FamilyOrder]) -> tuple[FamilyOrder, ...]:
    """Return the other families of the map: those of other owners as they are, own ones while they have pools."""
    planned = {(order.owner, order.family) for order in orders}
    owners, live = {order.owner for order in orders}, {pool.name for pool in plan.live if pool.fields}
    others = (order for order in before if (order.owner, order.family) not in planned)
    return tuple(
        order
        for order in others
        if order.owner not in owners or any(name in live for rank in order.ranks for name in rank)
    )


def _by_classes(kube: Kube, orders: Sequence[FamilyOrder], how: ClassOrder) -> list[OrderPlan]:
    version = kube.version()
    if _numbers(version) < _numbers(how.oldest)[: len(_numbers(version))]:
        message = f"{how.kind} needs version {how.oldest}, and the cluster has {version}"
        raise _Unknown(message)
    found = kube.objects(class_type(how))
    if found is None:
        message = f"the cluster has no {how.kind}"
        raise _Unknown(message)
    live = {str(item["metadata"]["name"]): item for item in found if isinstance(item["metadata"], dict)}
    return [plan_class(live.get(order.family), order, how) for order in orders]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _first_only(plan: ClusterPlan, scaled: Iterable[Sequence[Desired]], why: str) -> ClusterPlan:
    """Drop the creation of all pools but the first of some families, and say so, also if all are there already."""
    plans = {(pool.desired.target.owner, pool.pool): pool for pool in plan.pools if pool.desired}
    dropped: list[PoolPlan] = []
    found: list[Finding] = []
    for first, *others in scaled:
        later = [plans.get((one.target.owner, one.target.pool)) for one in others]
        new = [pool for pool in later if pool is not None and pool.action == "create"]
        unknown = f"nothing can tell an autoscaler to try {first.target.family} first"
        told = [(pool.where, f"not created: {unknown}") for pool in new] or [(first.target.where, unknown)]
        fix = "apply again once something can; or declare it as a pool of its own"
        found += [Finding("order-unknown", where, seen, fix, why, "warning") for where, seen in told]
        dropped += new
    pools = tuple(pool for pool in plan.pools if pool not in dropped)
    return replace(plan, pools=pools, diagnostics=(*plan.diagnostics, *found))


def _one_line(priorities: str) -> str:
    """Return rendered priorities as one line of YAML: {1000: ['a', 'b'], 990: ['c']}."""
    lines: list[str] = []
    for line in priorities.splitlines():
        if line.startswith(" "):
            lines[-1] += (", " if lines[-1][-1] != "[" else "") + line.removeprefix("  - ")
        else:
            lines.append(f"{line} [")
    return f"{{{', '.join(f'{line}]' for line in lines)}}}"
