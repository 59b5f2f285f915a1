"""Writes the order of autoscaled families where the cluster's autoscaler reads it, and takes pools that are gone out.

Each write is guarded by the version that it was planned from: other owners write into the same ConfigMap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.expander import NAME, recorded, without_gone
from gpukube.core.jsontree import at, strings, text, texts, trees
from gpukube.core.order_plans import CONFIG_MAP, plan_class, plan_map
from gpukube.core.permissions import PRINT_POLICY
from gpukube.core.scaling_order import FamilyOrder, GroupOrder
from gpukube.engine.plan.orders import CONFIG_MAPS, class_type, map_namespace
from gpukube.errors import AccessError, ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.core.order_plans import OrderPlan
    from gpukube.core.scaling_order import ClassOrder
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_TRIES: Final = 20
"""Most attempts at one write; each conflict means that another write succeeded."""


def require_writable(plan: ClusterPlan, session: Session) -> None:
    """Check the permissions to write the planned orders, before anything is installed.

    Raises:
        AccessError: Some are missing; names them.
        ClusterError: The cluster did not answer.
    """
    how, kube = session.provider.extras.order, session.kube()
    needed = {
        ("create" if item.live is None else "patch", _type(how).plural, _type(how).group, item.namespace)
        for item in plan.orders
        if item.acts and how is not None
    }
    missing = [
        f"{verb} {resource}"
        for verb, resource, group, namespace in sorted(needed)
        if not kube.may(verb, resource, group=group, namespace=namespace)
    ]
    if missing:
        raise AccessError(
            f"not allowed in the cluster: {', '.join(missing)}",
            where=plan.cluster.key,
            why="the autoscaler reads the order of a pool's alternatives there",
            fix=f"get a role that allows it: {PRINT_POLICY} prints one",
            code="kube-permissions",
        )


def _type(how: GroupOrder | ClassOrder) -> ApiType:
    return CONFIG_MAPS if isinstance(how, GroupOrder) else class_type(how)


def write_orders(plan: ClusterPlan, session: Session, run: Run) -> None:
    """Write the planned orders, before the pools: an autoscaler must not see a pool without its order.

    Raises:
        AccessError: The identity may not write the objects.
        ClusterError: The cluster did not answer, or an object changes all the time.
    """
    how = session.provider.extras.order
    if how is None or not any(item.acts for item in plan.orders):
        return
    kube = session.kube()
    for item in (item for item in plan.orders if item.acts):
        names = ", ".join(order.family for order in item.orders)
        run.report("update", f"writing the order of {names} into {item}", plan.cluster.key)
        if isinstance(how, GroupOrder):
            _write_map(kube, item, how)
        else:
            _write_class(kube, item, how)


def drop_gone(touched: Collection[tuple[str, str]], plan: ClusterPlan, session: Session, run: Run) -> str:
    """Take pools that no longer exist out of the orders; call it once pools were deleted or replaced.

    Args:
        touched: Owner and name of the families of these pools.
        plan: The cluster.
        session: Session of the cluster.
        run: The run.

    Returns:
        One line for the summary; "" if nothing was to be done.

    Raises:
        GpukubeError: See write_orders.
    """
    how = session.provider.extras.order
    if how is None or plan.seen is None:
        return ""
    kube = session.kube()
    there = {pool.name for pool in session.cloud.pools() if pool.fields}
    if isinstance(how, GroupOrder):
        namespace = map_namespace(plan.cluster, plan.seen, how)
        changed = _drop_from_map(kube, namespace, how, touched, there) if namespace else []
    else:
        changed = _drop_from_classes(kube, how, touched, there)
    if changed:
        run.report("update", f"deleted pools taken out of {', '.join(changed)}", plan.cluster.key)
    return f"order: {', '.join(changed)} without the deleted pools" if changed else ""


def _write_map(kube: Kube, item: OrderPlan, how: GroupOrder) -> None:
    planned = {(order.owner, order.family) for order in item.orders}

    def again(live: Tree | None) -> OrderPlan:
        kept = [order for order in recorded(live or {}) or () if (order.owner, order.family) not in planned]
        return plan_map(live, item.namespace, item.orders, how, kept)

    _settle(kube, CONFIG_MAPS, item, again)


def _write_class(kube: Kube, item: OrderPlan, how: ClassOrder) -> None:
    _settle(kube, class_type(how), item, lambda live: plan_class(live, item.orders[0], how))


def _settle(kube: Kube, kind: ApiType, item: OrderPlan, again: Callable[[Tree | None], OrderPlan]) -> None:
    """Write an object; plan it again whenever somebody else wrote first."""
    for _ in range(_TRIES):
        if not item.acts:
            return
        if item.live is None:
            try:
                kube.create_object(kind, item.desired)
            except ClusterError:
                if kube.find_object(kind, item.name, item.namespace) is None:
                    raise
            else:
                return
        elif kube.change_object(kind, item.live, _changes(item.live, item.desired)):
            return
        item = again(kube.find_object(kind, item.name, item.namespace))
    raise ClusterError(
        f"{item} changed before each of {_TRIES} attempts to write it",
        where=kube.server,
        fix="find out what else writes it, then run this again",
    )


def _changes(live: Tree, desired: Tree) -> list[Tree]:
    """Return the patch of what gpukube writes: data or spec, and the record."""
    part = "data" if "data" in desired else "spec"
    changes: list[Tree] = [{"op": "add", "path": f"/{part}", "value": desired[part]}]
    if annotations := texts(desired, "metadata", "annotations"):
        changes.append(
            {
                "op": "add",
                "path": "/metadata/annotations",
                "value": {**texts(live, "metadata", "annotations"), **annotations},
            }
        )
    return changes


def _drop_from_map(
    kube: Kube, namespace: str, how: GroupOrder, touched: Collection[tuple[str, str]], there: Collection[str]
) -> list[str]:
    def again(live: Tree | None) -> OrderPlan | None:
        before = recorded(live) if live is not None else None
        if before is None:
            return None
        mine = [order for order in before if (order.owner, order.family) in touched]
        others = [order for order in before if (order.owner, order.family) not in touched]
        return plan_map(live, namespace, without_gone(mine, there), how, others)

    item = again(kube.find_object(CONFIG_MAPS, NAME, namespace))
    if item is None or not item.acts:
        return []
    _settle(kube, CONFIG_MAPS, item, lambda live: again(live) or replace(item, action="none"))
    return [f"{CONFIG_MAP} {namespace}/{NAME}"]


def _drop_from_classes(
    kube: Kube, how: ClassOrder, touched: Collection[tuple[str, str]], there: Collection[str]
) -> list[str]:
    changed = []
    for owner, family in sorted(touched):
        live = kube.find_object(class_type(how), family)
        ranks = tuple(strings(rank.get("nodepools")) for rank in trees(at(live, "spec", "priorities")))
        left = without_gone([FamilyOrder(owner, family, ranks)], there)
        item = plan_class(live, left[0] if left else FamilyOrder(owner, family, ()), how)
        if live is None or item.action == "foreign":
            continue
        if not left:
            kube.delete_object(class_type(how), text(live, "metadata", "name"), "")
            changed.append(f"{how.kind} {family}")
            continue
        if item.acts:
            _write_class(kube, item, how)
            changed.append(str(item))
    return changed
